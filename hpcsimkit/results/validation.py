"""Validation: a simulated schedule against the one that the log records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.timeline import Steps, Sweep
from hpcsimkit.jobs.workload import SCALED
from hpcsimkit.results.breakdown import GROUPS, By, classes_of
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas

__all__ = ["GRADES", "Validation", "check_recorded"]

NEAR = 600
"""Error of a start time [s] up to which a job starts as recorded."""

GRADES: Mapping[str, tuple[float, float]] = {"good": (0.1, 1.25), "fair": (0.25, 2.0)}
"""Largest KS distance of the waits, and largest factor between their means, of each grade; else ``poor``."""

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


@dataclass(frozen=True, eq=False)
class Validation:
    """Comparison of a simulated schedule with the recorded one, for the jobs with a recorded wait that ran.

    Parameters
    ----------
    result : Result
        Result of a simulation.

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
    >>> found.grade
    'poor'
    """

    result: Result

    def __post_init__(self) -> None:
        check_recorded(self.result)

    @cached_property
    def jobs(self) -> NDArray[np.bool_]:
        """Whether each job is compared, bool, shape (jobs,)."""
        return self.result.finished & (self.result.workload.recorded_wait_time >= 0)

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
        (largest difference of the distribution functions, 0 to 1). At most ten partitions and ten QOS have a
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
        from scipy.stats import ks_2samp, wasserstein_distance

        recorded, simulated = self.recorded[rows], self.simulated[rows]
        first, second = float(recorded.mean()), float(simulated.mean())
        ratio = second / first if first else np.nan
        with np.errstate(all="ignore"):  # its p-value, which is not used, is undefined for few jobs
            ks = float(ks_2samp(recorded, simulated, method="asymp").statistic)
        return len(recorded), first, second, ratio, float(wasserstein_distance(recorded, simulated)), ks

    @property
    def grade(self) -> str:
        """Grade of the waits of all jobs: one of `GRADES`, or ``poor``."""
        everything = self.table.iloc[0]
        means = (everything.recorded, everything.simulated)
        factor = max(means) / min(means) if min(means) else (1.0 if max(means) == 0 else np.inf)
        for grade, (distance, most) in GRADES.items():
            if everything.ks <= distance and factor <= most:
                return grade
        return "poor"

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
