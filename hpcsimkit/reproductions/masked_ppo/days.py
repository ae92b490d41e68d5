"""Samples from the logs: training sets, test days, and further unseen days."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import WorkloadError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF, BestFit
from hpcsimkit.reproductions.plans.logs import Logs
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads.readers.beocat import days, training_set
from hpcsimkit.workloads.readers.cells import clock_of
from hpcsimkit.workloads.readers.job_table import read_job_table

__all__ = ["BASELINE", "Beocat", "Days", "in_queue_order"]

TIMEZONE = "America/Chicago"
TOO_LARGE = "fit none of the nine machines"
MANY = 10**9

BASELINE, BUSY = Pipeline(order=SJF(), placement=BestFit(), fitting=True), 3600
"""Baseline of the improved agents, and the minimum mean wait under it of a busy training day [s]."""

Days = Mapping[date, Workload]


def in_queue_order(workload: Workload) -> Workload:
    """Return the jobs in the order in which the published code queues them.

    The published code pops them from a binary heap keyed by submission, then requested time. Ties come out in
    the heap's order, which matters: two jobs in three share their submission time.
    >>> w = Workload({"submit_time": [5, 5], "run_time": [1, 1], "nodes": [1, 1], "requested_time": [9, 4]})
    >>> in_queue_order(w).requested_time.tolist()
    [4, 9]
    """
    heap: list[_Queued] = []
    for row, key in enumerate(
        zip(workload.submit_time.tolist(), workload.requested_time.tolist(), strict=True)
    ):
        heapq.heappush(heap, _Queued(key, row))
    rows = [heapq.heappop(heap).row for _ in range(len(workload))]
    return workload.select(rows, "by submission, then requested time, as from a heap")


class _Queued(NamedTuple):
    """A job in a heap, compared by its key only."""

    key: tuple[int, int]
    row: int

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return self.key < other[0]


def _runnable(workload: Workload) -> Workload:
    """Return the jobs that fit some machine, in queue order."""
    queued = in_queue_order(workload)  # all jobs: without the others, the heap would break ties differently
    return queued.without(NINE_MACHINES.misfits(queued), TOO_LARGE)


class Beocat(Logs):
    """Months of Beocat in any order, and the samples drawn from them, which are its only test data."""

    name = "Beocat"

    @property
    def all(self) -> list[Beocat]:
        """The months together."""
        return [self]

    def _month(self, path: Path) -> Workload:
        log = read_job_table(path)
        if not len(log) or log.submit_time.min() < datetime(2000, 1, 1).timestamp():
            raise WorkloadError(f"{path}: jobs with Unix time as submit time are needed: a log of Beocat")
        return log

    @property
    def first_seed(self) -> int:
        """Random seed of an agent with the number 0."""
        return 1000 * self.seed

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the plan."""
        return {"log": self}

    @cached_property
    def months(self) -> list[Workload]:
        """Logs, the earliest first."""
        return sorted(map(self._month, self.paths), key=lambda log: int(log.submit_time.min()))

    @cached_property
    def log(self) -> Workload:
        """All jobs, by submission."""
        first, *others = self.months
        return replace(first.merge(*others), name="beocat")

    @cached_property
    def cut(self) -> date:
        """First day without training jobs: the first of the last log, or of a single log's last third."""
        begins = [int(month.submit_time.min()) for month in self.months]
        first, last = begins[0], int(self.log.submit_time.max())
        moment = begins[-1] if len(begins) > 1 else first + 2 * (last - first) // 3
        return datetime.fromtimestamp(moment, clock_of(TIMEZONE)).date()

    @cached_property
    def test_days(self) -> Days:
        """Days with about a thousand jobs, as in the paper.

        Raises
        ------
        WorkloadError
            If there are fewer than two.
        """
        scale = self.scale
        found = {day: _runnable(jobs) for day, jobs in days(self.log, scale.low, scale.high, TIMEZONE)}
        if len(found) < 2:
            raise WorkloadError(
                f"{', '.join(file.name for file in self.paths)}: at least 2 days with {scale.low} to "
                f"{scale.high} jobs are needed, found {len(found)}"
            )
        return found

    @cached_property
    def unseen_days(self) -> Days:
        """All days from the cut on with enough jobs; days with too many jobs are randomly subsampled."""
        scale = self.scale
        since = {day: jobs for day, jobs in days(self.log, scale.least, MANY, TIMEZONE) if day >= self.cut}
        return {
            day: self._thinned(jobs, np.random.default_rng([self.seed, day.toordinal()]))
            for day, jobs in since.items()
        }

    @cached_property
    def training_days(self) -> list[Workload]:
        """Training days with enough jobs; days with too many jobs are subsampled several times."""
        scale, found = self.scale, []
        for day, jobs in days(self.training_part, scale.least, MANY, TIMEZONE):
            copies = scale.copies if len(jobs) > scale.high else 1
            for number in range(copies):
                found.append(self._thinned(jobs, np.random.default_rng([self.seed, day.toordinal(), number])))
        return found

    @cached_property
    def busy_days(self) -> list[Workload]:
        """Training days with a long mean wait under the baseline, or all of them."""
        days = self.training_days
        waits = [Simulation(day, BASELINE, NINE_MACHINES).run().wait_time.mean() for day in days]
        return [day for day, wait in zip(days, waits, strict=True) if wait >= BUSY] or days

    @property
    def has_training_days(self) -> bool:
        """Whether there are training days."""
        return bool(self.training_days)

    def _thinned(self, jobs: Workload, rng: np.random.Generator) -> Workload:
        scale = self.scale
        if len(jobs) <= scale.high:
            return _runnable(jobs)
        rows = rng.choice(len(jobs), int(rng.integers(scale.low, scale.high + 1)), replace=False)
        return _runnable(jobs.select(np.sort(rows), f"{len(rows)} of {len(jobs)} jobs, by chance"))

    @cached_property
    def all_days(self) -> Days:
        """Test days and unseen days; a day in both sets has the same jobs in both."""
        return {**self.test_days, **self.unseen_days}

    @cached_property
    def sequences(self) -> SequenceSet:
        """All days as sequences."""
        return SequenceSet("days", tuple(Scenario(jobs, NINE_MACHINES) for jobs in self.all_days.values()))

    @cached_property
    def training_part(self) -> Workload:
        """Jobs available for training: submitted before the cut, and not on a test day."""
        zone = clock_of(TIMEZONE)
        midnight = int(datetime.combine(self.cut, time(), zone).timestamp())
        submitted = self.log.submit_time
        kept = (submitted < midnight) & ~NINE_MACHINES.misfits(self.log)
        for jobs in self.test_days.values():
            kept &= ~np.isin(self.log.id, jobs.id)
        return self.log.select(kept, f"submitted before {self.cut}, without the days of the test")

    @cached_property
    def training_sets(self) -> list[Workload]:
        """Training sets of large jobs and GPU jobs, all submitted at once."""
        scale, sets = self.scale, []
        for number in scale.sets:
            rng = np.random.default_rng([self.seed, number])
            drawn = training_set(
                self.training_part, rng, large_jobs=scale.large_jobs, gpu_jobs=scale.gpu_jobs
            )
            sets.append(replace(in_queue_order(drawn), name=f"set {number}"))
        return sets

    def lines(self) -> Iterator[str]:
        """Yield lines on the data."""
        dropped = int(NINE_MACHINES.misfits(self.log).sum())
        yield f"beocat: {grouped(len(self.log))} jobs of {len(self.paths)} logs on {NINE_MACHINES.summary}"
        yield f"  {grouped(dropped)} jobs left out: {TOO_LARGE}"
        for month in self.months:
            for reason, count in month.skipped.items():
                yield f"  {month.name}: {grouped(count)} rows left out: {reason}"
        test, unseen = self.test_days, self.unseen_days
        yield f"  {len(test)} days of the test ({self.scale.low} to {self.scale.high} jobs)"
        yield f"  {len(unseen)} unseen days from {self.cut} on, thinned to as many jobs"
