"""When jobs come: a Poisson process whose rate follows the weekday and the hour of the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.workload import Column, Workload
from hpcsimkit.workloads.local_time import local_time

__all__ = ["HOURS", "WEEK", "WeeklyArrivals", "mean_gap", "weekly_counts"]

Numbers = NDArray[np.float64]

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400
HOURS = 7 * 24
"""Hours of a week; the first one begins on Monday at 0:00."""

ROUNDS = 50
"""In which both factors are made to agree; most logs need less than ten."""


def mean_gap(log: Workload) -> float:
    """Return the mean time between submissions [s].

    Raises
    ------
    WorkloadError
        All jobs, or the only one, are submitted at one instant: there is no such time.

    Examples
    --------
    >>> mean_gap(Workload({"submit_time": [5, 9, 25], "run_time": [1, 1, 1], "nodes": [1, 1, 1]}))
    10.0
    """
    if not log.span:
        raise WorkloadError(
            f"{log.name}: submissions at different times are needed to tell how often jobs come, "
            f"found {len(log)} job{'s' * (len(log) != 1)} at one instant"
        )
    return log.span / (len(log) - 1)


def weekly_counts(log: Workload) -> tuple[Column, Numbers]:
    """Return how many jobs were submitted in each hour of the week, and for how long it was looked at.

    A log is taken to last from its first submission to one mean time between submissions after its last.

    Parameters
    ----------
    log : Workload
        Submitted at two different times at least. Weekdays and hours are those of
        :func:`~hpcsimkit.workloads.local_time.local_time`.

    Returns
    -------
    jobs : array of int64, shape (7, 24)
        Submitted on each weekday in each hour.
    seconds : array of float64, shape (7, 24)
        What of the log's time fell into that hour [s]; 0 for hours that a short log never saw.

    Raises
    ------
    WorkloadError
        See :func:`mean_gap`.
    """
    gap = mean_gap(log)
    clock = log.submit_time + local_time(log).offset
    jobs = np.bincount(clock % WEEK // HOUR, minlength=HOURS)
    begin = int(clock.min()) % WEEK
    weeks, rest = divmod(log.span + gap, WEEK)
    hours = np.arange(2 * HOURS) * HOUR  # the rest may go on into a second week
    covered = np.minimum(hours + HOUR, begin + rest) - np.maximum(hours, begin)
    seconds = weeks * HOUR + np.maximum(covered, 0).reshape(2, HOURS).sum(axis=0)
    return jobs.reshape(7, 24), seconds.reshape(7, 24)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeeklyArrivals:
    """A Poisson process with the rate ``rate * weekday[d] * hour[h]`` on weekday d in hour h.

    Within an hour the rate is constant, and arrivals do not depend on each other: jobs that users submit in
    bursts come one by one.

    Parameters
    ----------
    rate : float
        Mean over the week [jobs/s].
    weekday : array of float64, shape (7,)
        How many times the mean come on each weekday; Monday first, mean 1.
    hour : array of float64, shape (24,)
        How many times the mean come in each hour of the day, mean 1.

    Examples
    --------
    >>> even = WeeklyArrivals(rate=0.01, weekday=np.ones(7), hour=np.ones(24))
    >>> int(even.draw(1000, np.random.default_rng(1))[-1])
    100839
    """

    rate: float
    weekday: Numbers
    hour: Numbers

    @classmethod
    def of(cls, log: Workload) -> Self:
        """Return the process of a log: of all of this form, about the one that makes it most likely.

        Each factor is what was counted over what is expected from the rate and the other factor in the time
        that the log saw of that weekday or hour, both plus one: so a factor of which a short log saw little
        stays near 1, and one of which it saw nothing is 1.

        Raises
        ------
        WorkloadError
            See :func:`mean_gap`.
        """
        jobs, seconds = weekly_counts(log)
        rate = jobs.sum() / seconds.sum()
        weekday, hour = np.ones(7), np.ones(24)
        for _ in range(ROUNDS):
            weekday = (jobs.sum(axis=1) + 1) / (rate * (seconds @ hour) + 1)
            hour = (jobs.sum(axis=0) + 1) / (rate * (weekday @ seconds) + 1)
        means = weekday.mean(), hour.mean()
        return cls(rate=float(rate * means[0] * means[1]), weekday=weekday / means[0], hour=hour / means[1])

    def draw(self, jobs: int, rng: np.random.Generator, begin: float = 0.0) -> Numbers:
        """Return the next `jobs` arrivals after an instant.

        Parameters
        ----------
        jobs : int
            How many.
        rng : numpy.random.Generator
            Source of all randomness.
        begin : float
            The instant [s since a Monday at 0:00], at least 0.

        Returns
        -------
        array of float64, shape (jobs,)
            Ascending [s since that Monday at 0:00].
        """
        hours = np.arange(HOURS + 1) * HOUR
        rates = self.rate * np.outer(self.weekday, self.hour).ravel()
        expected = np.concatenate(([0.0], np.cumsum(rates * HOUR)))  # jobs, from Monday on
        week, rest = divmod(begin, WEEK)
        passed = week * expected[-1] + np.interp(rest, hours, expected) + rng.exponential(size=jobs).cumsum()
        weeks, rests = np.divmod(passed, expected[-1])
        return weeks * WEEK + np.interp(rests, expected, hours)
