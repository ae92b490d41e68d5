"""Job sets to learn from, made of any log: DRAS's training in three phases.

Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in High Performance Computing", IEEE
TPDS 2022, sections 3.3 and 5.3: an agent first learns from *sampled* jobs of a log that come at an even rate,
then from the *real* weeks of the log, then from *synthetic* jobs that are like it. Each set is an episode.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.mimic import Mimic, new_jobs
from hpcsimkit.workloads.weekly_arrivals import WEEK, mean_gap

__all__ = ["PHASES", "JobSet", "JobSets", "sampled", "three_phases", "weeks"]

PHASES = ("sampled", "real", "synthetic")
"""The kinds of job sets, in the order that the paper found best (its figure 5)."""


def sampled(log: Workload, jobs: int, rng: np.random.Generator) -> Workload:
    """Return jobs drawn at random from a log, that come at an even rate.

    Drawn without replacement, or with it if more jobs are asked for than there are. The time between
    submissions is exponential with the log's mean; the first job comes one such time after the log's first.

    Parameters
    ----------
    log : Workload
        Submitted at two different times at least.
    jobs : int
        How many, at least 1.
    rng : numpy.random.Generator
        Source of all randomness: equal generators, equal workloads.

    Raises
    ------
    WorkloadError
        `jobs` is below 1, or all jobs of the log are submitted at one instant.

    Examples
    --------
    >>> log = Workload({"submit_time": [0, 50, 200], "run_time": [1, 2, 3], "nodes": [4, 5, 6]})
    >>> w = sampled(log, 3, np.random.default_rng(1))
    >>> sorted(w.nodes.tolist()), w.provenance
    ([4, 5, 6], ('3 jobs sampled from workload, one every 100 s in the mean',))
    """
    if jobs < 1:
        raise WorkloadError(f"sampled: jobs needs 1 or more, found {jobs}")
    gap = mean_gap(log)
    rows = rng.choice(len(log), jobs, replace=jobs > len(log))
    submit = log.submit_time.min() + np.floor(rng.exponential(gap, jobs).cumsum())
    columns = {name: log.column(name)[rows] for name in log.columns}
    step = f"{jobs} jobs sampled from {log.name}, one every {gap:g} s in the mean"
    return new_jobs(log, {**columns, "submit_time": submit}, "sampled", step)


def weeks(log: Workload) -> list[Workload]:
    """Return the jobs of each week of a log; weeks without jobs are left out, the last may be short.

    Weeks are counted from the first submission. Jobs keep their submit times and the order of the log.

    >>> log = Workload({"submit_time": [90, 604_889, 604_890], "run_time": [1, 1, 1], "nodes": [1, 1, 1]})
    >>> [week.submit_time.tolist() for week in weeks(log)]
    [[90, 604889], [604890]]
    """
    if not len(log):
        return []
    first = int(log.submit_time.min())
    found = []
    for number in np.unique((log.submit_time - first) // WEEK).tolist():
        week = log.window(first + number * WEEK, first + (number + 1) * WEEK)
        found.append(replace(week, name=f"{log.name}-week-{number + 1}"))
    return found


class JobSet(NamedTuple):
    """The jobs of one episode.

    Attributes
    ----------
    phase : str
        One of `PHASES`.
    number : int
        Which set of its phase, from 0 on.
    workload : Workload
        The jobs.
    """

    phase: str
    number: int
    workload: Workload


@dataclass(frozen=True, eq=False)
class JobSets(Sequence[JobSet]):
    """Job sets in the order of a training; each is made when it is asked for, and not kept.

    Parameters
    ----------
    log : Workload
        What they are made of.
    jobs : int
        How many jobs a sampled or synthetic set has.
    seed : numpy.random.SeedSequence
        Where all randomness comes from.
    places : tuple of (str, int)
        The phase and the number of each set.
    """

    log: Workload
    jobs: int
    seed: np.random.SeedSequence = field(repr=False)
    places: tuple[tuple[str, int], ...] = field(repr=False)

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> JobSet: ...

    @overload
    def __getitem__(self, index: slice) -> JobSets: ...

    def __getitem__(self, index: int | slice) -> JobSet | JobSets:
        if isinstance(index, slice):
            return replace(self, places=self.places[index])
        phase, number = self.places[index]
        return JobSet(phase, number, self._workload(phase, number))

    def _workload(self, phase: str, number: int) -> Workload:
        if phase == "real":
            return self._weeks[number]
        if phase == "sampled":
            made = sampled(self.log, self.jobs, self._rng(phase, number))
        else:
            made = self._mimic.generate(self.jobs, self._rng(phase, number))
        return replace(made, name=f"{self.log.name}-{phase}-{number + 1}")

    def _rng(self, phase: str, number: int) -> np.random.Generator:
        """Return the generator of one set, a child of the seed that nobody gets by spawning."""
        key = (*self.seed.spawn_key, zlib.crc32(phase.encode()), number)
        return np.random.default_rng(np.random.SeedSequence(self.seed.entropy, spawn_key=key))

    @cached_property
    def _weeks(self) -> list[Workload]:
        return weeks(self.log)

    @cached_property
    def _mimic(self) -> Mimic:
        return Mimic(self.log)


def three_phases(
    log: Workload,
    rng: np.random.Generator,
    *,
    sampled: int = 9,
    synthetic: int = 82,
    jobs: int = 7840,
    order: Sequence[str] = PHASES,
) -> JobSets:
    """Return the job sets of DRAS's training; the defaults are the paper's for Theta, whose log has 9 weeks.

    A set depends on the log, on `jobs`, on the seed of `rng`, on its phase and on its number in it: not on
    the order, nor on how many others there are. So a training that goes on later gets the same sets again.

    Parameters
    ----------
    log : Workload
        The part of a log to learn from: not what is tested on. Submitted at two different times at least.
    rng : numpy.random.Generator
        Only its seed counts, not what was drawn from it before; it is left as it is.
    sampled, synthetic : int
        How many sets; real ones are as many as the log has weeks.
    jobs : int
        How many jobs a sampled or synthetic set has (inferred from the paper's 720 000 jobs in all).
    order : sequence of str
        Which phases, each at most once.

    Raises
    ------
    UsageError
        A phase is unknown or named twice, a number of sets is below 0, or there would be no set at all.
    WorkloadError
        `jobs` is below 1, or all jobs of the log are submitted at one instant.

    Examples
    --------
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=500)
    >>> sets = three_phases(log, np.random.default_rng(2), sampled=2, synthetic=3, jobs=100)
    >>> [(made.phase, made.number, len(made.workload)) for made in sets[1:4]]
    [('sampled', 1, 100), ('real', 0, 500), ('synthetic', 0, 100)]
    """
    _check_order(order)
    if jobs < 1:
        raise WorkloadError(f"three_phases: jobs needs 1 or more, found {jobs}")
    mean_gap(log)  # refuses what nothing can be made of, before a training has begun
    counts = {"sampled": sampled, "real": len(weeks(log)), "synthetic": synthetic}
    for phase in order:
        if counts[phase] < 0:
            raise UsageError(f"three_phases: {phase} must be 0 or more, found {counts[phase]}")
    places = tuple((phase, number) for phase in order for number in range(counts[phase]))
    if not places:
        raise UsageError("three_phases: at least one job set is needed, found none")
    return JobSets(log, jobs, _seed_of(rng), places)


def _check_order(order: Sequence[str]) -> None:
    for phase in order:
        if phase not in PHASES:
            raise UsageError(f"three_phases: phases are {', '.join(PHASES)}, found {phase!r}")
        if list(order).count(phase) > 1:
            raise UsageError(f"three_phases: {phase!r} is named twice in the order")


def _seed_of(rng: np.random.Generator) -> np.random.SeedSequence:
    seed = rng.bit_generator.seed_seq
    if not isinstance(seed, np.random.SeedSequence):
        raise UsageError("three_phases: a generator that was made of a seed is needed")
    return seed
