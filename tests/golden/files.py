"""Golden cases of files that describe a cluster: what is read from them as they are, and slightly changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.failure_files import FailureLog
from hpcsimkit.cluster.files import machines_text
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import read_log
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
        found = kind.read(next(iter(given)))
    except HpcsimkitError as error:
        return type(error).__name__
    return json.dumps([_content(found), *map(_answer, _questions(found))], sort_keys=True)


@cache
def _beside(folder: Path) -> tuple[Workload, Machines]:
    """Return the log and the machines in a folder, which stay what they are."""
    return read_log(folder / "jobs.sacct"), Machines.read(folder / "m.csv")


def _answer(question: Callable[[], Any]) -> Any:
    try:
        return _content(question())
    except HpcsimkitError as error:
        return str(error)


def _questions(found: Any) -> Iterator[Callable[[], Any]]:
    """Yield what else is asked about what was read, with the log and the machines that lie beside it."""
    if isinstance(found, Machines):
        yield lambda: machines_text(found)
    elif isinstance(found, FailureLog):
        yield lambda: found.record
        log, machines = _beside(Path.cwd())
        for cluster in (machines, Nodes(3), Nodes(1)):
            yield partial(found.on, log, cluster)
            yield partial(found.notes_on, cluster)
    elif isinstance(found, Partitions):
        log, _ = _beside(Path.cwd())
        yield lambda: found.default_times
        for ask in (found.reasons, found.missing, found.partly_unknown, found.unknown, found.admitted):
            yield partial(ask, log)
        yield lambda: found.with_rules(log.select(np.flatnonzero(found.missing(log) == ""))).columns


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
