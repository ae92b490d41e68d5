"""Statistical clones of a log: synthetic jobs with the arrivals, sizes and run times of a log.

DRAS is trained on such jobs (Fan et al., "DRAS: Deep Reinforcement Learning for Cluster Scheduling in High
Performance Computing", IEEE TPDS 2022, sections 3.3 and 5.3). The paper's figure 4 shows the statistics of a
log that they preserve; the generator is not published. The model here is a substitute that preserves the same
statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.columns import TIME_LIMIT, Column
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.models.weekly_arrivals import HOUR, HOURS, WEEK, WeeklyArrivals
from hpcsimkit.workloads.readers.local_time import CLOCK_KEYS, local_time

__all__ = ["Mimic", "new_jobs", "size_class"]

OF_ONE_JOB = ("id", "preceding", "think_time", "recorded_wait_time")
"""Columns that are specific to one job of the log."""

OF_THE_SIZE = ("nodes", "spread", "exclusive", "constraint", "requested_memory")
"""Columns that are part of a job's request, in addition to the resources."""

CLOCK_AND_SOURCE = (*CLOCK_KEYS, "Acknowledge")
"""Header keys that also apply to synthetic jobs."""


@dataclass(frozen=True, eq=False)
class Mimic:
    """Generator of a statistical clone of a log.

    - *Arrivals* are a Poisson process with the log's mean rate times a factor for the weekday and a factor
      for the hour of the day: see :class:`~hpcsimkit.workloads.models.weekly_arrivals.WeeklyArrivals`. Bursts
      and differences between months are not preserved.
    - *Sizes* are sampled from those of the log, with replacement.
    - *Run and requested times* are sampled jointly from the jobs of the log in the same size class: 1, 2, 3
      to 4, 5 to 8, ... nodes. This preserves the accuracy of estimates and the correlation of sizes and
      times. Users, queues and the like are copied from the same job.

    For jobs with resources, the size is the total request of the first resource, and a size class only
    contains jobs that request the same resources. Dependencies between jobs are not preserved. The offered
    load differs from the log's by a few per cent, since sizes and times are combined across a size class.

    Parameters
    ----------
    log : Workload
        Log to clone, with at least two different submission times. Without ``UnixStartTime`` in its header,
        weeks start at second 0 of the log's clock; without ``TimeZone``, the clock is assumed to be UTC.

    Examples
    --------
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=500)
    >>> w = Mimic(log).generate(2000, np.random.default_rng(2))
    >>> len(w), w.machine_size, set(w.nodes.tolist()) <= set(log.nodes.tolist())
    (2000, 256, True)
    >>> pairs = set(zip(log.run_time.tolist(), log.requested_time.tolist()))
    >>> set(zip(w.run_time.tolist(), w.requested_time.tolist())) <= pairs
    True
    """

    log: Workload

    @cached_property
    def arrivals(self) -> WeeklyArrivals:
        """The arrival process.

        Raises
        ------
        WorkloadError
            If the log has no two jobs submitted at different times.
        """
        return WeeklyArrivals.of(self.log)

    def generate(self, jobs: int, rng: np.random.Generator, *, begin: int | None = None) -> Workload:
        """Return `jobs` jobs, sorted by submission time, for the same machine.

        Parameters
        ----------
        jobs : int
            Number of jobs, >= 1.
        rng : numpy.random.Generator
            Random number generator; equal generators give equal workloads.
        begin : int or None
            Hour of the week at which the arrivals start, 0 (Monday at 0:00) to 167; by default sampled
            uniformly. Arrivals start at the first such hour not before the log's first submission, so
            weekdays and hours of the jobs are those of the log's clock.

        Raises
        ------
        WorkloadError
            If `jobs` or `begin` is out of range, the last submission is after `TIME_LIMIT`, or the log has no
            two jobs submitted at different times.
        """
        if jobs < 1:
            raise WorkloadError(f"Mimic: jobs needs 1 or more, found {jobs}")
        if begin is not None and not 0 <= begin < HOURS:
            raise WorkloadError(f"Mimic: begin needs an hour of the week, 0 to {HOURS - 1}, found {begin}")
        hour = int(rng.integers(HOURS)) if begin is None else begin
        submit = np.floor(self._monday(hour) + self.arrivals.draw(jobs, rng, hour * HOUR))
        if submit.max() > TIME_LIMIT:
            raise WorkloadError(
                f"{self.log.name}: the last of {jobs} jobs like its own comes after {TIME_LIMIT} s"
            )
        size_from, times_from = self._draw(jobs, rng)
        of_the_size = (*OF_THE_SIZE, *self.log.resources)
        columns = {
            name: self.log.column(name)[size_from if name in of_the_size else times_from]
            for name in self.log.columns
        }
        step = f"mimic of {self.log.name}: {jobs} jobs from hour {hour} of the week on"
        return new_jobs(self.log, {**columns, "submit_time": submit.astype(np.int64)}, "mimic", step)

    def _monday(self, hour: int) -> int:
        """Return the start of the week with the first hour `hour` after the log's first submission [s]."""
        offset = local_time(self.log).offset
        first = int(self.log.submit_time.min()) + offset
        return first + (hour * HOUR - first) % WEEK - hour * HOUR - offset

    @cached_property
    def _groups(self) -> Column:
        """The group of similar jobs to which each row of the log belongs."""
        asked = [self.log.column(resource) > 0 for resource in self.log.resources]
        table = np.column_stack([size_class(self.log), *asked])
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    def _draw(self, jobs: int, rng: np.random.Generator) -> tuple[Column, Column]:
        """Return rows of the log as sources of sizes, and rows of the same groups as sources of times."""
        size_from = rng.integers(len(self.log), size=jobs)
        group, members = self._groups[size_from], np.bincount(self._groups)
        by_group = np.argsort(self._groups, kind="stable")
        begins = np.cumsum(members) - members
        return size_from, by_group[begins[group] + rng.integers(members[group])]


def size_class(log: Workload) -> Column:
    """Return the size class of each job, int64: sizes 1, 2, 3 to 4, 5 to 8, ... have classes 0, 1, 2, 3, ...

    >>> size_class(Workload({"submit_time": [0] * 4, "run_time": [1] * 4, "nodes": [1, 2, 4, 5]})).tolist()
    [0, 1, 2, 3]
    """
    return np.frexp(log.size - 0.5)[1].astype(np.int64)


def new_jobs(log: Workload, columns: Mapping[str, ArrayLike], word: str, step: str) -> Workload:
    """Return a workload of new jobs derived from a log, with new job numbers.

    Dependencies, recorded waits, the counts of skipped and repaired jobs, and all header lines except those
    on the clock and the acknowledgement are dropped, since they no longer apply.

    Parameters
    ----------
    log : Workload
        Log from which the jobs are derived.
    columns : mapping of str to array of int64, shape (jobs,)
        Columns of the new jobs.
    word : str
        Suffix appended to the name of the log.
    step : str
        Entry for the provenance.
    """
    return replace(
        log,
        columns={name: values for name, values in columns.items() if name not in OF_ONE_JOB},
        name=f"{log.name}-{word}",
        header={key: value for key, value in log.header.items() if key in CLOCK_AND_SOURCE},
        skipped={},
        notes={},
        provenance=(*log.provenance, step),
        labels={column: names for column, names in log.labels.items() if column not in OF_ONE_JOB},
    )
