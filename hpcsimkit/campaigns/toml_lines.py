"""Where things stand in a TOML text, and how to write one: what the standard library's reader leaves out."""

from __future__ import annotations

import json
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
    """Return a TOML text of plain values, lists of them, and tables one level deep (which come last).

    >>> print(toml_text({"seed": 1, "generate": {"nodes": 4}, "policies": ["fcfs", "sjf"]}), end="")
    seed = 1
    policies = ["fcfs", "sjf"]
    <BLANKLINE>
    [generate]
    nodes = 4
    """
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping)}
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{key} = {_value(value)}" for key, value in plain.items()]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_value(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Write a value; JSON's strings are TOML's too, but for the one character that TOML wants escaped."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, (str, bool, int)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(float(value))
