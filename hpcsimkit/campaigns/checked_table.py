"""Tables of plain values, as flags and TOML files give them: what is wrong with them becomes one line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from hpcsimkit.campaigns.toml_lines import Location, line_of
from hpcsimkit.errors import UsageError
from hpcsimkit.files import read_bytes

__all__ = ["Problem", "Table", "nearest"]

Problem = tuple[Location, str]
"""Where something is wrong, and what, in words that go on from the name of the place."""


class Table(BaseModel):
    """A table of plain values, all of them checked, none unknown, none converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """Which of the values are tables themselves."""

    flags: ClassVar[Mapping[str, str]] = {}
    """What flags are called, if not as the value."""

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a table of the values, or where something is wrong with them, and what."""
        try:
            return cls(**values), None
        except ValidationError as error:
            return None, cls._first_problem(error)

    @classmethod
    def of_flags(cls, flags: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Self:
        """Return what the flags of a command say (None: not given), over other values.

        Raises
        ------
        UsageError
            A flag is not understood; the message names it.
        """
        given = {name: value for name, value in flags.items() if value is not None}
        table, problem = cls.checked({**(base or {}), **given})
        if table is None:
            location, text = problem or ((), "")
            flag = cls.flags.get(str(location[0]), f"--{location[0]}") if location else ""
            raise UsageError(f"{flag.replace('_', '-')}{text}".removeprefix(": "))
        return table

    @classmethod
    def of_toml(cls, file: Path) -> Self:
        """Read a TOML file.

        Raises
        ------
        UsageError
            The file cannot be read, is not TOML, or not such a table; the message names the line.
        """
        text = _text(file)
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(_not_toml(file, text, error)) from None
        table, problem = cls.checked(values)
        if table is None:
            location, message = problem or ((), "")
            line = line_of(text, location) if location else None
            where = f"{file}:{line}" if line else str(file)
            raise UsageError(f"{where}: {_dotted(location)}{message}".replace(": : ", ": "))
        return table

    @classmethod
    def _first_problem(cls, error: ValidationError) -> Problem:
        """Return the first thing that pydantic found wrong."""
        found = error.errors()[0]
        location: Location = found["loc"]
        if found["type"] == "extra_forbidden":
            table = cls.inner.get(str(location[0]), cls)
            return location, f": unknown key{nearest(str(location[-1]), list(table.model_fields))}"
        text = _lowered(found["msg"].removeprefix("Value error, "))
        if found["type"] == "value_error":
            return location, f": {text}"
        text = re.sub(r"^\w+ should", "must", text)
        return location, f" {text}, found {found['input']!r}"


def nearest(word: str, words: list[str]) -> str:
    """Return what a word that is not known may have meant, as the end of a message."""
    matches = get_close_matches(word, words, n=3, cutoff=0.5)
    return f"; nearest: {', '.join(matches)}" if matches else f"; known: {', '.join(words)}"


def _dotted(location: Location) -> str:
    """Return a location as it is read in TOML.

    >>> _dotted(("policies", 1)), _dotted(("generate", "nodes"))
    ('policies[1]', 'generate.nodes')
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: an experiment in TOML is needed, found no UTF-8 text") from None


def _not_toml(file: Path, text: str, error: tomllib.TOMLDecodeError) -> str:
    """Name the line; what the reader finds at the end of the text, it finds on the last line."""
    message, _, place = str(error).partition(" (at ")
    line = re.match(r"line (\d+)", place)
    number = int(line[1]) if line else len(text.splitlines())
    return f"{file}:{number}: not TOML: {_lowered(message)}"
