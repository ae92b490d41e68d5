"""Tables of plain values from flags and TOML files, with one-line messages for invalid ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Any, ClassVar, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from hpcsimkit.errors import UsageError, WorkloadError, nearest
from hpcsimkit.experiments.settings.toml_lines import Location, line_of
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.documents import toml_values
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format

ALLOW_CODE = "allow_code"
"""Key of a table that allows names to import code; never read from a file."""

Problem = tuple[Location, str]
"""Location of a problem, and a description that continues the name of the location."""


class Table(BaseModel):
    """Table of plain values: all values are checked, unknown keys are rejected, no type is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    inner: ClassVar[Mapping[str, type[BaseModel]]] = {}
    """Classes of the values that are tables, by key."""

    flags: ClassVar[Mapping[str, str]] = {}
    """Names of flags that differ from the keys."""

    file_format: ClassVar[Format]
    """Format of the files that contain such a table; those in other tables have none."""

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a table of the values, or the first problem."""
        too_long = next(_too_long(values), None)
        if (
            too_long is not None
        ):  # pydantic raises an OverflowError where it compares such a number with a float
            return None, (too_long, " must be a number of at most 300 digits")
        try:
            return cls(**values), None
        except ValidationError as error:
            return None, cls._first_problem(error)

    @classmethod
    def of_flags(cls, flags: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Self:
        """Return a table of the flags of a command (None: not given), which override other values.

        Of a table, only the keys that a flag gives are overridden.
        """
        base = base or {}
        given = {
            name: {**(base.get(name) or {}), **value} if isinstance(value, Mapping) else value
            for name, value in flags.items()
            if value is not None
        }
        table, problem = cls.checked({**base, **given})
        if table is None:
            location, text = problem or ((), "")
            flag = cls.flags.get(str(location[0]), f"--{location[0]}") if location else ""
            raise UsageError(f"{flag.replace('_', '-')}{text}".removeprefix(": "))
        return table

    @classmethod
    def of_toml(cls, file: Path, allow_code: Sequence[str] | None = None) -> Self:
        """Read a TOML file.

        `allow_code` is the value of that key, which is not allowed in files, for tables that have it.
        Messages name the line.
        """
        text = _text(file, cls.file_format)
        try:
            values = toml_values(text, file)
        except TOMLDecodeError as error:
            raise UsageError(_not_toml(file, text, error)) from None
        if ALLOW_CODE in values:
            where = f"{file}:{line_of(text, (ALLOW_CODE,))}"
            raise UsageError(
                f"{where}: {ALLOW_CODE}: a file does not consent to code, the flag --allow-code does"
            )
        given = {ALLOW_CODE: list(allow_code or ())} if ALLOW_CODE in cls.model_fields else {}
        table, problem = cls.checked({**values, **given})
        if table is None:
            location, message = problem or ((), "")
            line = line_of(text, location) if location else None
            where = f"{file}:{line}" if line else str(file)
            raise UsageError(f"{where}: {_dotted(location)}{message}".replace(": : ", ": "))
        return table

    def paths_from(self, folder: Path, *names: str) -> dict[str, Any]:
        """Return the fields that are paths, relative to a folder; those without a path are left out."""
        paths = {name: getattr(self, name) for name in names}
        return {name: str(folder / path) for name, path in paths.items() if isinstance(path, str)}

    @classmethod
    def _first_problem(cls, error: ValidationError) -> Problem:
        """Return the first problem found by pydantic."""
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


def limited(name: str) -> AfterValidator:
    """Return the check of a whole number against a limit, as metadata of its type.

    Examples
    --------
    >>> from typing import Annotated
    >>> from pydantic import create_model
    >>> number = Annotated[int, limited("sequences")]
    >>> Sampling = create_model("Sampling", __base__=Table, sequences=(number, 50))
    >>> Sampling.checked({"sequences": 10**9})[1][1]
    ': at most 10000 sampled sequences are accepted, found 1000000000; if they are meant: --limit \
sequences=1000000000'
    """

    def check(value: int | None) -> int | None:
        try:
            refuse_beyond(name, value or 0, "")
        except WorkloadError as error:
            raise ValueError(str(error).removeprefix(": ")) from None
        return value

    return AfterValidator(check)


def _too_long(value: Any, at: Location = ()) -> Iterator[Location]:
    """Yield the locations of whole numbers that are too long to be compared with a float.

    >>> list(_too_long({"jobs": 5, "search": {"values": [1, 10**400]}}))
    [('search', 'values', 1)]
    """
    if isinstance(value, int) and abs(value) >= 10**300:
        yield at
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield from _too_long(each, (*at, key))
    elif isinstance(value, list | tuple):
        for place, each in enumerate(value):
            yield from _too_long(each, (*at, place))


def _dotted(location: Location) -> str:
    """Return a location in TOML notation.

    >>> _dotted(("policies", 1)), _dotted(("generate", "nodes"))
    ('policies[1]', 'generate.nodes')
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _text(file: Path, form: Format) -> str:
    try:
        return read_bytes(file, form, lines=True).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: an experiment in TOML is needed, found no UTF-8 text") from None


def _not_toml(file: Path, text: str, error: TOMLDecodeError) -> str:
    """Return a message with the line number; an error at the end of the text is on the last line."""
    message, _, place = str(error).partition(" (at ")
    line = re.match(r"line (\d+)", place)
    number = int(line[1]) if line else len(text.splitlines())
    return f"{file}:{number}: not TOML: {_lowered(message)}"
