"""Logs given to a reproduction, with their names in the paper."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

__all__ = ["BY_FILE", "Log", "Logs", "each_once", "name_among"]

BY_FILE = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"kth-sp2": "KTH-SP2",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin-1",
    r"lublin[-_]?(2|256_new2)(\.|$)": "Lublin-2",
}
"""Names of logs in papers, by patterns that match the beginning of the file name."""


class Named(Protocol):
    """Protocol of a log with its name in tables and its file."""

    @property
    def name(self) -> str:
        """Name in tables."""

    @property
    def path(self) -> Path:
        """Path of the file."""

    def line(self) -> str:
        """Return a line on the log."""


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


@dataclass(frozen=True)
class Logs(ABC, Generic[T]):
    """All logs of a reproduction.

    Parameters
    ----------
    paths : sequence of Path
        Files of the logs.
    scale : Scale, optional
        Size preset of the experiment.
    seed : int
        Random seed. Default: 0.
    """

    paths: Sequence[Path]
    scale: Any = None
    seed: int = 0

    @abstractmethod
    def log_of(self, path: Path) -> T:
        """Return the log of a file."""

    @cached_property
    def all(self) -> Sequence[T]:
        """Logs in the given order, each once."""
        return each_once([self.log_of(path) for path in self.paths])

    @property
    def first(self) -> T:
        """SDSC-SP2, the log of several papers' figures, or else the first log given."""
        return next((log for log in self.all if log.name == "SDSC-SP2"), self.all[0])

    def lines(self) -> Iterator[str]:
        """Yield a line on each log."""
        for log in self.all:
            yield log.line()


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
