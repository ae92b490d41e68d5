"""Logs like a log: as many jobs as one wants, that come, and are as large and as long, as those of a log.

The synthetic jobs that DRAS learns from (Fan et al., "DRAS: Deep Reinforcement Learning for Cluster
Scheduling in High Performance Computing", IEEE TPDS 2022, sections 3.3 and 5.3). The paper's figure 4 shows
what of a log they keep; what made them is not published. The model here is a substitute that keeps the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from hpcsimkit.columns import TIME_LIMIT, Column
from hpcsimkit.errors import WorkloadError
from hpcsimkit.workload import Workload
from hpcsimkit.workloads.local_time import local_time
from hpcsimkit.workloads.weekly_arrivals import HOUR, HOURS, WEEK, WeeklyArrivals

__all__ = ["Mimic", "new_jobs", "size_class"]

OF_ONE_JOB = ("id", "preceding", "think_time", "recorded_wait_time")
"""Columns of a log that say nothing of other jobs like it."""

OF_THE_SIZE = ("nodes", "spread", "exclusive", "constraint", "requested_memory")
"""Columns that belong to how much a job asks for; so do the resources."""

CLOCK_AND_SOURCE = ("UnixStartTime", "TimeZone", "TimeZoneString", "Acknowledge")
"""Header lines that still hold for jobs made after a log."""


@dataclass(frozen=True, eq=False)
class Mimic:
    """A generator of jobs like those of a log.

    - *Arrivals* are a Poisson process whose rate is the log's mean rate, times a factor of the weekday, times
      one of the hour of the day: see :class:`~hpcsimkit.workloads.weekly_arrivals.WeeklyArrivals`. The log's
      bursts are not kept, nor its busy and quiet months.
    - *Sizes* are drawn from those of the log, with replacement.
    - *Run and requested time* come together from one job of the log of about the same size: 1, 2, 3 to 4, 5
      to 8, ... nodes. So the accuracy of estimates is kept, and how sizes and times go together. Users,
      queues and the like are that job's as well.

    Of jobs that ask for resources, the size is how much of the first one they ask for in all, and "about the
    same" also means of the same resources. Dependencies between jobs are not kept. The offered load is the
    log's up to a few per cent, as sizes and times of exactly one size are mixed with those near it.

    Parameters
    ----------
    log : Workload
        What to be like; jobs are submitted at two different times at least. If its header does not say what
        its clock means (``UnixStartTime``, ``TimeZone``), "weekdays" are days of weeks that begin at second 0
        of the log's clock; a start without a time zone is taken for UTC.

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
        """When jobs come.

        Raises
        ------
        WorkloadError
            The log has no two jobs submitted at different times.
        """
        return WeeklyArrivals.of(self.log)

    def generate(self, jobs: int, rng: np.random.Generator, *, begin: int | None = None) -> Workload:
        """Return `jobs` jobs, sorted by submission, for the same machine.

        Parameters
        ----------
        jobs : int
            How many, at least 1.
        rng : numpy.random.Generator
            Source of all randomness: equal generators, equal workloads.
        begin : int or None
            Hour of the week after whose beginning the first job comes, 0 (Monday at 0:00) to 167; None draws
            one. It is the first such hour that does not begin before the log's first submission, so weekdays
            and hours of the jobs are those of the log's own clock.

        Raises
        ------
        WorkloadError
            `jobs` or `begin` is out of range, the jobs last longer than `TIME_LIMIT`, or the log has no two
            jobs submitted at different times.
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
        """Return when the week begins whose hour `hour` is the next after the log's first submission [s]."""
        offset = local_time(self.log).offset
        first = int(self.log.submit_time.min()) + offset
        return first + (hour * HOUR - first) % WEEK - hour * HOUR - offset

    @cached_property
    def _groups(self) -> Column:
        """The group of jobs like it that each row of the log belongs to."""
        asked = [self.log.column(resource) > 0 for resource in self.log.resources]
        table = np.column_stack([size_class(self.log), *asked])
        return np.unique(table, axis=0, return_inverse=True)[1].ravel()

    def _draw(self, jobs: int, rng: np.random.Generator) -> tuple[Column, Column]:
        """Return rows of the log to take sizes from, and rows of the same groups to take times from."""
        size_from = rng.integers(len(self.log), size=jobs)
        group, members = self._groups[size_from], np.bincount(self._groups)
        by_group = np.argsort(self._groups, kind="stable")
        begins = np.cumsum(members) - members
        return size_from, by_group[begins[group] + rng.integers(members[group])]


def size_class(log: Workload) -> Column:
    """Return the class of each job by its size, int64: those of 1, 2, 3 to 4, 5 to 8, ... are 0, 1, 2, 3, ...

    >>> size_class(Workload({"submit_time": [0] * 4, "run_time": [1] * 4, "nodes": [1, 2, 4, 5]})).tolist()
    [0, 1, 2, 3]
    """
    return np.frexp(log.size - 0.5)[1].astype(np.int64)


def new_jobs(log: Workload, columns: Mapping[str, ArrayLike], word: str, step: str) -> Workload:
    """Return jobs that were made of those of a log: under new numbers, and without what is no more true.

    Left out are dependencies and recorded waits, counts of what was skipped or repaired in the log, and all
    of its header but the clock and whom to thank.

    Parameters
    ----------
    log : Workload
        Where they come from.
    columns : mapping of str to array of int64, shape (jobs,)
        Of the new jobs.
    word : str
        What follows the log's name in theirs.
    step : str
        For the provenance.
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
