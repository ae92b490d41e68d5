"""Declarations of options and examples of commands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

PROGRAM = "python -m hpcsimkit.run"

Command = TypeVar("Command", bound=Callable[..., Any])

EXAMPLES: dict[Callable[..., Any], str] = {}
"""Examples at the end of the help text of each command."""


def examples_text(*commands: str) -> str:
    """Return the examples that end a help text; the first character prevents rewrapping."""
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {command}".rstrip() for command in commands)])


def examples(*commands: str) -> Callable[[Command], Command]:
    """Return a decorator that adds examples to the help text of a command."""

    def remember(command: Command) -> Command:
        EXAMPLES[command] = examples_text(*commands)
        return command

    return remember


def argument(kind: Any, metavar: str, help_text: str) -> Any:
    """Return the type of a command's argument without a flag, which is optional if it may be None."""
    return Annotated[kind, typer.Argument(metavar=metavar, help=help_text)]


def option(
    kind: Any,
    metavar: str | None,
    help_text: str,
    *flags: str,
    least: float | None = None,
    required: bool = False,
) -> Any:
    """Return the type of a command's argument for an option."""
    about = typer.Option(*flags, metavar=metavar, help=help_text, min=least)
    return Annotated[kind if required else kind | None, about]


def name_in_table(help_text: str, *flags: str) -> Any:
    """Return the type of a command's argument for an option that is the key `name` of a table of settings."""
    about = typer.Option(*flags, metavar="NAME", parser=lambda name: {"name": name}, help=help_text)
    return Annotated[dict[str, str] | None, about]


def former(kind: Any) -> Any:
    """Return the type of a command's argument for an option that help texts do not show any more."""
    return Annotated[kind if kind is bool else kind | None, typer.Option(hidden=True)]


def switch(flag: str, help_text: str, *flags: str) -> Any:
    """Return the type of a command's argument for an option without a value."""
    return Annotated[bool, typer.Option(flag, *flags, help=help_text)]
