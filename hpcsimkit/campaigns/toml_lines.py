"""Where things stand in a TOML text, and how to write one: what the standard library's reader leaves out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["line_of", "toml_text"]

Location = Sequence[str | int]


def line_of(text: str, location: Location) -> int | None:
    """Return the line (first: 1) at which a key, or an element of a list, is complete; None if it is absent.

    The reader itself is asked, with one more line each time, so that whatever TOML allows is understood.

    Examples
    --------
    >>> text = "seed = 1|policies = [|  'fcfs',|  'sjf',|]".replace("|", chr(10))
    >>> line_of(text, ("policies", 1)), line_of(text, ("seed",)), line_of(text, ("jobs",))
    (4, 1, None)
    """
    lines = text.splitlines()
    for number in range(1, len(lines) + 1):
        head = "\n".join(lines[:number])
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
    """Return a TOML text of plain values, lists of them, and tables or lists of tables, which come last.

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
    """Return the tables that a value is, or is a list of."""
    if isinstance(value, Mapping):
        return [value]
    return value if isinstance(value, list) and value and isinstance(value[0], Mapping) else []


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


def _value(value: Any) -> str:
    """Write a value; JSON's strings are TOML's too, but for the one character that TOML wants escaped."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, (str, bool, int)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(float(value))
