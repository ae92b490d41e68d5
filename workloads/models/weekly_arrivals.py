"""Poisson arrivals with a rate that depends on the weekday and the hour of the day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Column, Workload
from hpcsimkit.workloads.readers.local_time import local_time

__all__ = ["HOURS", "WEEK", "WeeklyArrivals", "mean_gap", "weekly_counts"]

Numbers = NDArray[np.float64]

HOUR, DAY, WEEK = 3600, 86_400, 7 * 86_400
HOURS = 7 * 24
"""Number of hours of a week; the first starts on Monday at 0:00."""

ROUNDS = 50
"""Iterations of the alternating fit of both factors; most logs need fewer than ten."""


def mean_gap(log: Workload) -> float:
    """Return the mean time between submissions [s].

    Raises
    ------
    WorkloadError
        If all jobs are submitted at one instant.

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
    """Return the number of jobs submitted in each hour of the week, and the time observed in each hour.

    A log is assumed to last from its first submission to one mean interarrival time after its last.

    Parameters
    ----------
    log : Workload
        Log with at least two different submission times. Weekdays and hours are those of
        :func:`~hpcsimkit.workloads.readers.local_time.local_time`.

    Returns
    -------
    jobs : array of int64, shape (7, 24)
        Number of jobs submitted by weekday and hour.
    seconds : array of float64, shape (7, 24)
        Time of the log in that weekday and hour [s]; 0 for hours that a short log does not cover.

    Raises
    ------
    WorkloadError
        If all jobs are submitted at one instant.
    """
    gap = mean_gap(log)
    clock = log.submit_time + local_time(log).offset
    jobs = np.bincount(clock % WEEK // HOUR, minlength=HOURS)
    begin = int(clock.min()) % WEEK
    weeks, rest = divmod(log.span + gap, WEEK)
    hours = np.arange(2 * HOURS) * HOUR  # the rest may extend into a second week
    covered = np.minimum(hours + HOUR, begin + rest) - np.maximum(hours, begin)
    seconds = weeks * HOUR + np.maximum(covered, 0).reshape(2, HOURS).sum(axis=0)
    return jobs.reshape(7, 24), seconds.reshape(7, 24)


@dataclass(frozen=True, kw_only=True, eq=False)
class WeeklyArrivals:
    """A Poisson process with the rate ``rate * weekday[d] * hour[h]`` on weekday d in hour h.

    The rate is constant within an hour, and arrivals are independent, so there are no bursts.

    Parameters
    ----------
    rate : float
        Mean rate over the week [jobs/s].
    weekday : array of float64, shape (7,)
        Factor of each weekday relative to the mean rate, from Monday; mean 1.
    hour : array of float64, shape (24,)
        Factor of each hour of the day relative to the mean rate; mean 1.

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
        """Return the process fitted to a log, by approximate maximum likelihood.

        Each factor is the ratio of the observed to the expected number of jobs, both plus one, where the
        expected number follows from the rate, the other factor and the time observed in that weekday or hour.
        So a factor with few observations stays close to 1, and a factor without observations is 1.

        Raises
        ------
        WorkloadError
            If all jobs are submitted at one instant.
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
            Number of arrivals.
        rng : numpy.random.Generator
            Random number generator.
        begin : float
            The instant [s since a Monday at 0:00], >= 0.

        Returns
        -------
        array of float64, shape (jobs,)
            Arrival times, ascending [s since that Monday at 0:00].
        """
        hours = np.arange(HOURS + 1) * HOUR
        rates = self.rate * np.outer(self.weekday, self.hour).ravel()
        expected = np.concatenate(([0.0], np.cumsum(rates * HOUR)))  # cumulative number of jobs from Monday
        week, rest = divmod(begin, WEEK)
        passed = week * expected[-1] + np.interp(rest, hours, expected) + rng.exponential(size=jobs).cumsum()
        weeks, rests = np.divmod(passed, expected[-1])
        return weeks * WEEK + np.interp(rests, expected, hours)
