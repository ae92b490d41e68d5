"""Validation: a simulated schedule against the one that the log records.

A scheduler acts at intervals, and on record even a job that finds a free machine waits some seconds. Waits
are therefore compared with a tolerance: differences up to it are none.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.timeline import Steps, Sweep
from hpcsimkit.jobs.workload import SCALED
from hpcsimkit.results.breakdown import GROUPS, By, classes_of
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas

__all__ = ["GRADES", "TOLERANCE", "Mark", "Validation", "check_recorded", "ks_distance", "worst"]

NEAR = 600
"""Error of a start time [s] up to which a job starts as recorded."""

TOLERANCE = 60
"""Difference of two waits [s] up to which they are equal, if the interval of the scheduler is not known."""

LONGEST = 0.99
"""Quantile to which longer waits are cut for a mean: a job that was held for days decides no grade."""

GRADES = ("good", "fair", "poor")
"""Grades, the best first."""

WAYS: tuple[By, ...] = ("partition", "qos", "size", "hour")
TOP = 10

Floats = NDArray[np.float64]


def check_recorded(result: Result) -> None:
    """Raise a UsageError if a result cannot be validated: no recorded waits, or other submission times."""
    workload = result.workload
    if not ((workload.recorded_wait_time >= 0) & result.finished).any():
        raise UsageError(f"{workload.name}: recorded waits are needed, found none")
    if any(step.startswith(SCALED) for step in workload.provenance):
        raise UsageError(f"{workload.name}: recorded waits are not those of a scaled load")
    if not np.array_equal(result.submit_time, workload.submit_time):
        raise UsageError(f"{workload.name}: recorded waits are not those of submissions with dependencies")


class Mark(NamedTuple):
    """Measure of the agreement, and its thresholds.

    Parameters
    ----------
    part : str
        ``"starts"``, ``"waits"`` or ``"use"``.
    measure : str
        Description of the measure.
    value : float
        Value.
    good, fair : float
        Thresholds of the grades, which themselves still count. The larger value is better if `good` is above
        `fair`.
    """

    part: str
    measure: str
    value: float
    good: float
    fair: float

    @property
    def grade(self) -> str:
        """Grade of this measure alone.

        >>> Mark("waits", "KS distance", 0.1, good=0.1, fair=0.25).grade
        'good'
        >>> Mark("starts", "share near", 0.69, good=0.9, fair=0.7).grade
        'poor'
        """
        sign = 1 if self.good > self.fair else -1
        reached = (sign * self.value >= sign * least for least in (self.good, self.fair))
        return next((grade for grade, met in zip(GRADES, reached, strict=False) if met), GRADES[-1])


def worst(marks: Iterable[Mark]) -> str:
    """Return the worst grade of some marks."""
    return max((mark.grade for mark in marks), key=GRADES.index)


@dataclass(frozen=True, eq=False)
class Validation:
    """Comparison of a simulated schedule with the recorded one, for the jobs with a recorded wait that ran.

    Parameters
    ----------
    result : Result
        Result of a simulation.
    tolerance : float
        Difference of two waits [s] up to which they are equal, 0 or more: the interval of the recorded
        scheduler, such as Slurm's ``bf_interval``. Default: 60.
    begin : int, optional
        Time of the first compared submission [s of the log's clock]; by default all jobs are compared.

    Raises
    ------
    UsageError
        The log has no recorded waits, or they do not belong to the submission times.

    Examples
    --------
    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> columns = {"submit_time": [0, 1], "run_time": [900, 9], "nodes": [4, 4]}
    >>> w = Workload({**columns, "recorded_wait_time": [0, 1799]}, machine_size=4)
    >>> found = Validation(Simulation(w, Pipeline()).run())
    >>> found.error.tolist(), found.summary["within 10 min"]
    ([0.0, -900.0], 0.5)
    >>> {mark.measure: (round(mark.value, 2), mark.grade) for mark in found.marks}["KS distance of the waits"]
    (0.5, 'poor')
    >>> found.grade
    'poor'
    """

    result: Result
    tolerance: float = TOLERANCE
    begin: int | None = None

    def __post_init__(self) -> None:
        check_recorded(self.result)

    @cached_property
    def jobs(self) -> NDArray[np.bool_]:
        """Whether each job is compared, bool, shape (jobs,)."""
        compared = self.result.finished & (self.result.workload.recorded_wait_time >= 0)
        return compared if self.begin is None else compared & (self.result.submit_time >= self.begin)

    @cached_property
    def recorded(self) -> Floats:
        """Recorded waits of the compared jobs [s], float64."""
        return self.result.workload.recorded_wait_time[self.jobs].astype(float)

    @cached_property
    def simulated(self) -> Floats:
        """Simulated waits of the compared jobs [s], float64."""
        return self.result.wait_time[self.jobs]

    @property
    def error(self) -> Floats:
        """Simulated minus recorded start time of the compared jobs [s], float64."""
        return self.simulated - self.recorded

    @cached_property
    def summary(self) -> dict[str, float]:
        """Median and 90 % quantile of the absolute error of start times [s], and share of jobs near."""
        size = np.abs(self.error)
        return {
            "median [s]": float(np.median(size)),
            "90 % [s]": float(np.quantile(size, 0.9)),
            "within 10 min": float(np.mean(size <= NEAR)),
        }

    @cached_property
    def table(self) -> pandas.DataFrame:
        """Waits of all jobs and by partition, QOS, size and hour of submission, a row for each group.

        Columns: ``by, group, jobs``, ``recorded, simulated`` (mean waits [s]), ``ratio`` (of the simulated to
        the recorded mean; NaN if that is 0), ``wasserstein`` (distance of the distributions [s]), ``ks``
        (:func:`ks_distance` with the tolerance, 0 to 1). At most ten partitions and ten QOS have a
        row of their own.
        """
        import pandas

        rows = [("all", "all jobs", *self._compared(np.ones(len(self.error), dtype=bool)))]
        for by in WAYS:
            number, label = classes_of(self.result, by, TOP if by in GROUPS else None)
            number = number[self.jobs]
            known = np.unique(number)
            if len(known) > 1:
                rows += [(by, label(int(each)), *self._compared(number == each)) for each in known]
        names = ["by", "group", "jobs", "recorded", "simulated", "ratio", "wasserstein", "ks"]
        return pandas.DataFrame(rows, columns=names)

    def _compared(self, rows: NDArray[np.bool_]) -> tuple[int, float, float, float, float, float]:
        """Return the number of jobs, both means, their ratio, the Wasserstein and the KS distance."""
        from scipy.stats import wasserstein_distance

        recorded, simulated = self.recorded[rows], self.simulated[rows]
        first, second = float(recorded.mean()), float(simulated.mean())
        ratio = second / first if first else np.nan
        ks = ks_distance(recorded, simulated, self.tolerance)
        return len(recorded), first, second, ratio, float(wasserstein_distance(recorded, simulated)), ks

    @property
    def marks(self) -> list[Mark]:
        """Measures of the three parts of the agreement: starts of jobs, waits, and use of the machine."""
        waits = self.table.iloc[0]
        near = max(NEAR, self.tolerance)
        started = float(np.mean(np.abs(self.error) <= near))
        factor = _factor(_mean(self.recorded), _mean(self.simulated), self.tolerance)
        return [
            Mark("starts", f"jobs started within {near / 60:g} min of the record", started, 0.9, 0.7),
            Mark("waits", "KS distance of the waits", float(waits.ks), 0.1, 0.25),
            Mark("waits", "factor between the mean waits, cut at 99 %", factor, 1.25, 2.0),
            Mark("use", "part of the use at other times", self.moved_use, 0.05, 0.15),
        ]

    @property
    def grades(self) -> dict[str, str]:
        """Grade of each part, the worst one of its measures."""
        marks = self.marks
        parts = dict.fromkeys(mark.part for mark in marks)
        return {part: worst(mark for mark in marks if mark.part == part) for part in parts}

    @property
    def grade(self) -> str:
        """Grade of the agreement, one of `GRADES`: the worst one of its parts."""
        return worst(self.marks)

    @property
    def moved_use(self) -> float:
        """Part of the busy node-seconds on record that the simulation has at other times, 0 to 1."""
        recorded, simulated = self.timelines.values()
        time = np.union1d(recorded.time, simulated.time)
        busy = []
        for steps in (recorded, simulated):
            place = np.searchsorted(steps.time, time, side="right") - 1
            busy.append(np.where(place >= 0, steps.busy[place], 0)[:-1].astype(float))
        length = np.diff(time).astype(float)
        used = float(busy[0] @ length)
        return float(np.abs(busy[0] - busy[1]) @ length) / 2 / used if used else 0.0

    @cached_property
    def timelines(self) -> dict[str, Steps]:
        """Waiting jobs and busy nodes over time of the compared jobs: recorded, and simulated."""
        result, rows = self.result, self.jobs
        submit, amount = result.submit_time[rows], result.amount[rows]
        run_time = result.end_time[rows] - result.start_time[rows]
        starts = {
            "recorded": submit + result.workload.recorded_wait_time[rows],
            "simulated": result.start_time[rows],
        }
        return {
            name: Sweep.of(submit, start, start + run_time, amount).steps for name, start in starts.items()
        }


def ks_distance(one: Floats, other: Floats, tolerance: float = 0.0) -> float:
    """Return the Kolmogorov-Smirnov distance of two samples, up to shifts by no more than a tolerance.

    It is the largest part of one sample below a value that exceeds the part of the other one below that
    value plus the tolerance; 0 if values in the same places of both sorted samples differ by at most the
    tolerance. Without a tolerance, it is the usual distance: the largest difference of the distribution
    functions.

    Parameters
    ----------
    one, other : array of float64
        Samples, not empty.
    tolerance : float
        Shift that does not count, in the unit of the samples. Default: 0.

    Examples
    --------
    >>> one, other = np.array([0.0, 0.0, 0.0, 900.0]), np.array([1.0, 4.0, 80.0, 900.0])
    >>> ks_distance(one, other), ks_distance(one, other, 60), ks_distance(one, other, 80)
    (0.75, 0.25, 0.0)
    """
    one, other = np.sort(one), np.sort(other)
    return max(_excess(one, other, tolerance), _excess(other, one, tolerance), 0.0)


def _excess(one: Floats, other: Floats, shift: float) -> float:
    """Return by how much the distribution function of a sample exceeds that of a shifted other one."""
    below = np.searchsorted(one, one, side="right") / len(one)
    return float((below - np.searchsorted(other, one + shift, side="right") / len(other)).max())


def _mean(waits: Floats) -> float:
    """Return the mean of waits, of which none counts for more than the `LONGEST` quantile of all."""
    return float(np.minimum(waits, np.quantile(waits, LONGEST)).mean())


def _factor(recorded: float, simulated: float, tolerance: float) -> float:
    """Return the factor between two means, 1 or more; means are equal if they differ by the tolerance."""
    if abs(recorded - simulated) <= tolerance:
        return 1.0
    least, most = sorted((recorded, simulated))
    return most / least if least else float("inf")
