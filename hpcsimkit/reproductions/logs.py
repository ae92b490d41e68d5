"""Logs given to a reproduction, with their names in the paper."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

__all__ = ["Log", "each_once", "name_among"]


class Named(Protocol):
    """Protocol of a log with its name in tables and its file."""

    @property
    def name(self) -> str:
        """Name in tables."""

    @property
    def path(self) -> Path:
        """Path of the file."""


T = TypeVar("T", bound=Named)


@dataclass(frozen=True)
class Log:
    """Log given by its file; reproductions add properties.

    Parameters
    ----------
    path : Path
        Path of the file.

    Attributes
    ----------
    NAMES : mapping of str to str
        Names of logs in tables; see :func:`name_among`.

    Examples
    --------
    >>> Log(Path("mine.swf.gz")).name
    'mine'
    """

    NAMES: ClassVar[Mapping[str, str]] = {}

    path: Path

    @property
    def name(self) -> str:
        """Name in tables."""
        return name_among(self.path, self.NAMES)

    def long_enough(self, log: Workload, jobs: int) -> Workload:
        """Return the workload read from the log, after a check of its number of jobs.

        Raises
        ------
        UsageError
            The workload has fewer jobs.
        """
        if len(log) < jobs:
            raise UsageError(f"{self.path}: {jobs} jobs or more are needed, found {len(log)}")
        return log


def name_among(path: Path, names: Mapping[str, str]) -> str:
    """Return the name of a log in tables, by default the name of its file.

    Parameters
    ----------
    path : Path
        Path of the file.
    names : mapping of str to str
        Names by regular expressions for the beginnings of file names, without suffixes and case-insensitive.

    Examples
    --------
    >>> name_among(Path("HPC2N-2002-2.2-cln.swf.gz"), {"hpc2n": "HPC2N"}), name_among(Path("KTH.swf"), {})
    ('HPC2N', 'KTH')
    """
    stem = path.name.removesuffix(".gz").removesuffix(".swf")
    return next((name for known, name in names.items() if re.match(known, stem, re.IGNORECASE)), stem)


def each_once(traces: Sequence[T]) -> Sequence[T]:
    """Return the logs, after a check that their names are unique.

    Raises
    ------
    UsageError
        Two logs have the same name.
    """
    names = [trace.name for trace in traces]
    for trace in traces:
        if names.count(trace.name) > 1:
            raise UsageError(f"{trace.path}: a log {trace.name!r} is given twice")
    return traces
