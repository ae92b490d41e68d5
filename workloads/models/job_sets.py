"""Job sets for training in three phases as in DRAS, from any log.

Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in High Performance Computing", IEEE
TPDS 2022, sections 3.3 and 5.3: an agent is trained first on *sampled* jobs of a log with a constant arrival
rate, then on the *real* weeks of the log, then on *synthetic* jobs of a statistical clone. Each set is an
episode.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, overload

import numpy as np

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.models.mimic import Mimic, new_jobs
from hpcsimkit.workloads.models.weekly_arrivals import WEEK, mean_gap

__all__ = ["PHASES", "JobSet", "JobSets", "sampled", "three_phases", "weeks"]

PHASES = ("sampled", "real", "synthetic")
"""The phases, in the order that the paper found best (its figure 5)."""


def sampled(log: Workload, jobs: int, rng: np.random.Generator) -> Workload:
    """Return jobs sampled at random from a log, with a constant arrival rate.

    Jobs are sampled without replacement, or with replacement if `jobs` exceeds the number of jobs in the log.
    Times between submissions are exponential with the log's mean; the first job arrives one such time after
    the log's first submission.

    Parameters
    ----------
    log : Workload
        Log with at least two different submission times.
    jobs : int
        Number of jobs, >= 1.
    rng : numpy.random.Generator
        Random number generator; equal generators give equal workloads.

    Raises
    ------
    WorkloadError
        If `jobs` is below 1, or all jobs of the log are submitted at one instant.

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
    """Return the jobs of each week of a log, without empty weeks.

    Weeks count from the first submission; the last one may be partial. Jobs keep their submit times and the
    order of the log.

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
        Training phase, one of `PHASES`.
    number : int
        Number of the set within its phase, from 0.
    workload : Workload
        The jobs.
    """

    phase: str
    number: int
    workload: Workload


@dataclass(frozen=True, eq=False)
class JobSets(Sequence[JobSet]):
    """Job sets in training order, each generated on access and not cached.

    Parameters
    ----------
    log : Workload
        Log from which the sets are generated.
    jobs : int
        Number of jobs in a sampled or synthetic set.
    seed : numpy.random.SeedSequence
        Random seed of all sets.
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
        """Return the random number generator of one set, from a child seed that spawning cannot produce."""
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
    """Return the job sets of DRAS's training; the defaults are the paper's for Theta, with a log of 9 weeks.

    A set depends on the log, on `jobs`, on the seed of `rng`, on its phase and on its number within the
    phase, but neither on the order of phases nor on the number of sets. So a resumed training gets the same
    sets.

    Parameters
    ----------
    log : Workload
        Training split of a log, with at least two different submission times.
    rng : numpy.random.Generator
        Random number generator; only its seed is used, and its state does not change.
    sampled, synthetic : int
        Number of sampled sets and number of synthetic sets, >= 0; there is one real set per week of the log.
    jobs : int
        Number of jobs in a sampled or synthetic set (inferred from the paper's total of 720 000 jobs).
    order : sequence of str
        Order of the phases, each at most once.

    Raises
    ------
    UsageError
        If a phase is unknown or repeated, a number of sets is below 0, or there is no set.
    WorkloadError
        If `jobs` is below 1, or all jobs of the log are submitted at one instant.

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
    mean_gap(log)  # rejects unusable logs before the training starts
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
