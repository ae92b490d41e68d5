"""Logs as read by each code base, and the published tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import BY_FILE, Log, Logs
from hpcsimkit.reproductions.published_rules.published_numbers import SEEDS
from hpcsimkit.workloads.dirlab import published_starts, read_published

__all__ = ["FULL", "PROTOCOLS", "QUICK", "Protocol", "Scale", "Trace", "Traces", "Trial"]

LEAST = 3000
"""Minimum number of jobs of a log: two tests leave out 1024 at either end."""


class Protocol(NamedTuple):
    """A published test.

    Parameters
    ----------
    sequences, jobs : int
        Number of sequences, and of jobs of each.
    first : int, optional
        Number of jobs, from the start of the log, in which sequences begin; by default the whole log.
    run_times : bool
        Whether requested times are replaced by run times.
    """

    sequences: int
    jobs: int
    first: int | None = None
    run_times: bool = False


PROTOCOLS = {
    "schedinspector": Protocol(50, 256, run_times=True),
    "rlbackfilling": Protocol(10, 1024),
    "rlscheduler": Protocol(10, 1024, first=10_000),
}
"""Published tests by code base."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    share : float
        Share of the sequences of each test; the published numbers need all of them.
    seeds : int
        Number of seeds in the comparison of seeds.
    orders : tuple of str
        Base schedulers of the comparison of rules.
    read_me_rules : bool
        Whether to compare rules on RLScheduler's test too.
    """

    share: float = 1.0
    seeds: int = 80
    orders: tuple[str, ...] = ("fcfs", "sjf", "f1", "saf", "srf")
    read_me_rules: bool = True

    def sequences(self, code: str) -> int:
        """Return the number of sequences of a test."""
        return max(2, round(self.share * PROTOCOLS[code].sequences))


FULL = Scale()
QUICK = Scale(seeds=5, orders=("fcfs", "sjf"), read_me_rules=False)


@dataclass(frozen=True)
class Trace(Log):
    """A log.

    Parameters
    ----------
    path : Path
        File of the log.

    Examples
    --------
    >>> files = "lublin_256_new2.swf", "HPC2N-2002-2.2-cln.swf.gz", "a.swf"
    >>> [Trace(Path(name)).name for name in files]
    ['Lublin-2', 'HPC2N', 'a']
    """

    NAMES = BY_FILE

    _read: dict[str, Workload] = field(default_factory=dict, repr=False, compare=False)

    def log(self, code: str, *, swapped: bool = False) -> Workload:
        """Return the log as read by a code base.

        Parameters
        ----------
        code : str
            Code base.
        swapped : bool
            Whether estimates are requested times where the code base uses run times, and vice versa.
        """
        key = f"{code} swapped" if swapped else code
        if key not in self._read:
            self._read[key] = self._swapped(code) if swapped else self._whole(code)
        return self._read[key]

    def has_requests(self, code: str) -> bool:
        """Return whether any requested time differs from the run time."""
        one, other = (self.log(code, swapped=swapped).requested_time for swapped in (False, True))
        return not np.array_equal(one, other)

    def line(self) -> str:
        """Return a line on the log."""
        log = self.log("schedinspector")
        about = "with" if self.has_requests("schedinspector") else "without"
        return (
            f"{self.name}: {grouped(len(log))} jobs, {grouped(log.machine_size or 0)} nodes, "
            f"{about} requested times of their own"
        )

    def _whole(self, code: str) -> Workload:
        return self.long_enough(read_published(self.path, code), LEAST)

    def _swapped(self, code: str) -> Workload:
        log = self.log(code)
        times = np.maximum(log.run_time, 1)
        if PROTOCOLS[code].run_times:
            asked = self.log("rlbackfilling")  # requested times that are at least run times
            known = dict(zip(asked.id.tolist(), asked.requested_time.tolist(), strict=True))
            times = np.array(
                [known.get(job, time) for job, time in zip(log.id.tolist(), times.tolist(), strict=True)]
            )
        return replace(log, columns={**log.columns, "requested_time": times})


@dataclass(frozen=True)
class Trial:
    """Sequences of a log for a comparison of schedulers.

    Parameters
    ----------
    trace : Trace
        Log of the sequences.
    code : str
        Code base of the test protocol.
    seeds : tuple of int
        Random seeds; each gives the same number of sequences.
    sequences : int
        Number of sequences for each seed.
    """

    trace: Trace
    code: str
    seeds: tuple[int, ...]
    sequences: int

    @classmethod
    def published(cls, trace: Trace, code: str, scale: Scale) -> Trial:
        """Return the published test, with seed 1 if the paper does not use the log."""
        return cls(trace, code, (SEEDS.get((code, trace.name), 1),), scale.sequences(code))

    @property
    def is_whole(self) -> bool:
        """Whether the number of sequences is the published one."""
        return self.sequences == PROTOCOLS[self.code].sequences

    @property
    def jobs(self) -> int:
        """Number of jobs of each sequence."""
        return PROTOCOLS[self.code].jobs

    @cached_property
    def starts(self) -> list[int]:
        """Start indices of the sequences, seed by seed."""
        length = min(len(self.trace.log(self.code)), PROTOCOLS[self.code].first or 10**9)
        drawn = [published_starts(self.code, length, seed, self.sequences) for seed in self.seeds]
        return [int(start) for start in np.concatenate(drawn)]

    def scenarios(self, *, swapped: bool = False) -> Iterator[Scenario]:
        """Yield the sequences, under published semantics."""
        log = self.trace.log(self.code, swapped=swapped)
        for start in self.starts:
            yield Scenario.sequence(log, start, self.jobs)

    def words(self) -> str:
        """Return a one-line description.

        >>> Trial(Trace(Path("a.swf")), "schedinspector", (1,), 50).words()
        '50 sequences of 256 jobs, seed 1'
        """
        return f"{self.sequences} sequences of {self.jobs} jobs, seed {self.seeds[0]}"


class Traces(Logs[Trace]):
    """All logs."""

    def log_of(self, path: Path) -> Trace:
        """Return the log of a file."""
        return Trace(path)
