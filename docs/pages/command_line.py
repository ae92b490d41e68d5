"""The commands, their arguments and options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from pages.markdown import code, plain, table

COMMAND = "python -m hpcsimkit.run"


def cli_page() -> str:
    """Return usage, description, arguments and options of every command."""
    import typer

    from hpcsimkit.run import app

    program = typer.main.get_command(app)
    context = program.make_context(COMMAND, [], resilient_parsing=True)
    parts = [command_section(program, context, "Without a command"), *sub_commands(program, context)]
    return "\n".join(parts)


def sub_commands(group: Any, context: Any, prefix: str = "") -> Iterator[str]:
    """Yield the sections of the commands of a group, and of the groups in it."""
    for name, command in group.commands.items():
        if command.hidden:  # a former name
            continue
        own = type(context)(command, info_name=name, parent=context)
        yield command_section(command, own, f"`{prefix}{name}`")
        if hasattr(command, "commands"):
            yield from sub_commands(command, own, f"{prefix}{name} ")


def command_section(command: Any, context: Any, heading: str) -> str:
    """Return one command's section."""
    usage = command.get_usage(context).removeprefix("Usage: ")
    parts = [f"## {heading}\n", f"```text\n{usage}\n```\n", help_text(command.help or "")]
    parts.append(help_text(command.epilog or ""))
    for title, rows in _tables(command, context):
        parts.append(table((title, "Description"), rows))
    return "\n".join(parts)


def _tables(command: Any, context: Any) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the arguments of a command, then its options by group, each with a description."""
    from hpcsimkit.cli.groups import OPTIONS, grouped

    records = [(each, each.get_help_record(context)) for each in command.get_params(context)]
    shown = [
        (each.param_type_name, str(each.name), (code(record[0]), plain(record[1])))
        for each, record in records
        if record is not None
    ]
    arguments = [row for kind, _, row in shown if kind == "argument"]
    if arguments:
        yield "Argument", arguments
    yield from grouped([(name, row) for kind, name, row in shown if kind == "option"], OPTIONS, "Options")


def help_text(text: str) -> str:
    """Return a help text in Markdown: paragraphs are kept, command lines become one block."""
    paragraphs = inspect.cleandoc(text.replace("\b", "").replace("\f", "")).split("\n\n")
    return "\n".join(paragraph_text(paragraph.strip("\n")) for paragraph in paragraphs)


def paragraph_text(paragraph: str) -> str:
    """Return one paragraph of a help text in Markdown."""
    lines = [line.strip() for line in paragraph.splitlines()]
    commands = [line for line in lines if line.startswith(COMMAND)]
    words = plain("\n".join(line for line in lines if line not in commands))
    return words + "\n" + ("\n```text\n" + "\n".join(commands) + "\n```\n" if commands else "")
