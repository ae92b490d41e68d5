"""Golden cases of files that describe a cluster: what is read from them as they are, and slightly changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hpcsimkit.errors import HpcsimkitError
from tests.fuzz.seeds import KINDS, Kind

DESCRIBING = (
    "machines",
    "partitions",
    "scontrol",
    "calendar",
    "reservations",
    "failures",
    "events",
    "ruled",
    "slurm-",
)
"""Beginnings of the kinds of files that describe a cluster."""

CHANGES = 60
WORDS = (
    "",
    "0",
    "-1",
    "1",
    "7",
    "1.5",
    "x",
    "UNLIMITED",
    "1-00:00:00",
    "30",
    "ALL",
    "n[1-3]",
    "n*",
    "2G",
    "yes",
    "NO",
)
"""Words that take the place of others."""


def files() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the name of each kind of file, and what makes the text of all that is read."""
    for name, kind in KINDS.items():
        if name.startswith(DESCRIBING) and name != "slurm-json":
            yield f"files {name}", partial(_read, kind, name)


def _read(kind: Kind, name: str) -> str:
    draw, here = Random(name), Path.cwd()
    with TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            given = kind.files()
            return "\n".join(_outcome(kind, changed, draw) for changed in _changed(given, draw))
        finally:
            os.chdir(here)


def _changed(given: Mapping[str, bytes], draw: Random) -> Iterator[Mapping[str, bytes]]:
    """Yield the files, and then with other words in the first one."""
    yield given
    first, *_ = given
    text = given[first].decode()
    separators = "=,|;: \t\"'[]\n"
    for _ in range(CHANGES):
        start = draw.randrange(len(text))
        while start and text[start - 1] not in separators:
            start -= 1
        end = start
        while end < len(text) and text[end] not in separators:
            end += 1
        yield {**given, first: (text[:start] + draw.choice(WORDS) + text[end:]).encode()}


def _outcome(kind: Kind, given: Mapping[str, bytes], draw: Random) -> str:
    for name, content in given.items():
        Path(name).write_bytes(content)
    try:
        return json.dumps(_content(kind.read(next(iter(given)))), sort_keys=True)
    except HpcsimkitError as error:
        return type(error).__name__


def _content(found: Any) -> Any:
    """Return all that an object holds, as plain values; names with an underscore are left out."""
    if isinstance(found, np.ndarray | np.generic):
        return found.tolist()
    if isinstance(found, Enum | type) or callable(found) or isinstance(found, Path):
        return str(getattr(found, "__name__", found)).rpartition("/")[2]
    if isinstance(found, Mapping):
        return {str(key): _content(value) for key, value in found.items()}
    if isinstance(found, set | frozenset):
        return sorted(map(str, found))
    if isinstance(found, list | tuple):
        return [_content(each) for each in found]
    if found is None or isinstance(found, bool | int | str):
        return found
    if isinstance(found, float):
        return f"{found:.9g}"
    names = [each.name for each in fields(found)] if is_dataclass(found) else sorted(vars(found))
    return {name: _content(getattr(found, name)) for name in names if not name.startswith("_")}
