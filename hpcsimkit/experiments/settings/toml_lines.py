"""Line numbers of TOML keys, and a TOML writer, both absent from the standard library."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

Location = Sequence[str | int]

MOST_READ = 2_000_000
"""Maximum total number of characters parsed in the search for a line, which takes a second or two."""


def line_of(text: str, location: Location) -> int | None:
    """Return the line (from 1) at which a key or an element of a list is complete; None if it is absent.

    The parser of the standard library is called with one more line each time, so that all of TOML is
    supported. In a long text, only keys near its beginning are found.

    Examples
    --------
    >>> text = "seed = 1|policies = [|  'fcfs',|  'sjf',|]".replace("|", chr(10))
    >>> line_of(text, ("policies", 1)), line_of(text, ("seed",)), line_of(text, ("jobs",))
    (4, 1, None)
    """
    lines = text.splitlines()
    read = 0
    for number in range(1, len(lines) + 1):
        head = "\n".join(lines[:number])
        read += len(head)
        if read > MOST_READ:
            return None
        for closing in ("", "\n]"):  # the second ends a list that goes on
            if _holds(head + closing, location):
                return number
    return None


def _holds(text: str, location: Location) -> bool:
    try:
        value: Any = tomllib.loads(text)
        for step in location:
            value = value[step]
    except (tomllib.TOMLDecodeError, KeyError, IndexError, TypeError):
        return False
    return True


def toml_text(values: Mapping[str, Any]) -> str:
    """Return a TOML text of plain values, lists of them, and tables or lists of tables, written last.

    >>> tables = {"machines": [{"count": 4, "cpus": 32}], "generate": {"nodes": 4}}
    >>> print(toml_text({**tables, "policies": ["fcfs", "sjf"]}), end="")
    policies = ["fcfs", "sjf"]
    <BLANKLINE>
    [[machines]]
    count = 4
    cpus = 32
    <BLANKLINE>
    [generate]
    nodes = 4
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in values.items() if not _tables(value)]
    for name, value in values.items():
        heading = f"[{_key(name)}]" if isinstance(value, Mapping) else f"[[{_key(name)}]]"
        for table in _tables(value):
            lines += ["", heading, *(f"{_key(key)} = {_value(entry)}" for key, entry in table.items())]
    return "\n".join(lines) + "\n"


def _tables(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return a value as a list of tables, empty if it contains none."""
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list) and value and isinstance(value[0], Mapping) else []


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    """Return a value in TOML; JSON strings are valid TOML, except for one character that TOML escapes."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_key(key)} = {_value(entry)}' for key, entry in value.items())} }}"
    if isinstance(value, (str, bool, int)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(float(value))
