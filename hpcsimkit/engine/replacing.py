"""Replacement of finished results: nothing of other settings is replaced unasked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hpcsimkit.errors import UsageError

SHOWN = 3
"""Maximum number of settings in a message."""

LONGEST = 60
"""Maximum length of a value in a message."""


def check_replacement(
    place: Path, held: Mapping[str, Any] | None, asked: Mapping[str, Any], *, overwrite: bool
) -> None:
    """Check that a folder has no results of other settings, unless they may be replaced.

    On a terminal the user is asked.

    `held` are the settings of the results in it, None if they are not recorded; `asked` those of the results
    to come.

    >>> check_replacement(Path("out"), {"seed": 0}, {"seed": 0}, overwrite=False)
    >>> check_replacement(Path("out"), {"seed": 0}, {"seed": 2}, overwrite=True)
    """
    differs = "not recorded there" if held is None else difference(held, asked)
    if overwrite or not differs:
        return
    found = f"{place}: results of other settings are there: {differs}"
    if not (sys.stdin and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"{found}; --overwrite replaces them, another --out keeps them")
    sys.stderr.write(f"hpcsimkit: {found}; replace them? [y/N] ")
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        sys.stderr.write("\n")
    if answer.strip().lower() not in ("y", "yes"):
        raise UsageError(f"{place}: the results in it are kept")


def difference(held: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Return the first differences between settings as text; empty if they are equal.

    >>> difference({"seed": 1, "trainer": {"gamma": 1.0}}, {"seed": 2, "trainer": {"gamma": 0.9}, "load": 1})
    'seed was 1, is 2; trainer.gamma was 1.0, is 0.9; load was not set, is 1'
    """
    found = list(_differences(held, json.loads(json.dumps(asked, default=str)), ""))
    more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _differences(held: Mapping[str, Any], asked: Mapping[str, Any], prefix: str) -> Iterator[str]:
    for key in {**held, **asked}:
        one, other = held.get(key), asked.get(key)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _differences(one, other, f"{prefix}{key}.")
        elif one != other:
            yield f"{prefix}{key} was {_text(one)}, is {_text(other)}"


def _text(value: Any) -> str:
    """Return a setting as text, shortened.

    >>> _text(None), _text([]), _text(["fcfs", "sjf"]), _text("a.swf (6c2b9f01)")
    ('not set', 'none', 'fcfs, sjf', 'a.swf (6c2b9f01)')
    """
    if value is None:
        return "not set"
    text = ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
