"""What papers call the logs that are given, each once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from hpcsimkit.errors import UsageError
from hpcsimkit.workload import Workload

__all__ = ["Log", "each_once", "name_among"]


class Named(Protocol):
    """A log with the name that tables call it by, and its file."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def path(self) -> Path:
        """Its file."""


T = TypeVar("T", bound=Named)


@dataclass(frozen=True)
class Log:
    """A log that is given, by its file; reproductions add what they make of it.

    Parameters
    ----------
    path : Path
        Its file.

    Attributes
    ----------
    NAMES : mapping of str to str
        What tables call logs; see :func:`name_among`.

    Examples
    --------
    >>> Log(Path("mine.swf.gz")).name
    'mine'
    """

    NAMES: ClassVar[Mapping[str, str]] = {}

    path: Path

    @property
    def name(self) -> str:
        """What tables call it."""
        return name_among(self.path, self.NAMES)

    def long_enough(self, log: Workload, jobs: int) -> Workload:
        """Return what was read, which must have so many jobs.

        Raises
        ------
        UsageError
            It has fewer.
        """
        if len(log) < jobs:
            raise UsageError(f"{self.path}: {jobs} jobs or more are needed, found {len(log)}")
        return log


def name_among(path: Path, names: Mapping[str, str]) -> str:
    """Return what a log is called, or the name of its file.

    Parameters
    ----------
    path : Path
        Its file.
    names : mapping of str to str
        By regular expressions of how the names of files begin, without endings, in whatever case.

    Examples
    --------
    >>> name_among(Path("HPC2N-2002-2.2-cln.swf.gz"), {"hpc2n": "HPC2N"}), name_among(Path("KTH.swf"), {})
    ('HPC2N', 'KTH')
    """
    stem = path.name.removesuffix(".gz").removesuffix(".swf")
    return next((name for known, name in names.items() if re.match(known, stem, re.IGNORECASE)), stem)


def each_once(traces: Sequence[T]) -> Sequence[T]:
    """Return the logs, of which no two may have one name.

    Raises
    ------
    UsageError
        Two have.
    """
    names = [trace.name for trace in traces]
    for trace in traces:
        if names.count(trace.name) > 1:
            raise UsageError(f"{trace.path}: a log {trace.name!r} is given twice")
    return traces
