"""The three parts of a log, in whole weeks: to learn from, to choose by, and to test."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

WEEK = 7 * 86_400
"""Length of a week [s]."""


class Periods(NamedTuple):
    """The beginnings of the three parts of a log [s of the log's clock].

    Parameters
    ----------
    learn : int
        First submission of the log: the beginning of the first week.
    choose : int
        Beginning of the part by which candidates are chosen.
    test : int
        Beginning of the part on which the chosen one is tested.

    Examples
    --------
    >>> submit = np.arange(7) * WEEK
    >>> jobs = Workload({"submit_time": submit, "run_time": submit * 0, "nodes": submit * 0 + 1})
    >>> [begin // WEEK for begin in Periods.of(jobs)]
    [0, 2, 4]
    """

    learn: int
    choose: int
    test: int

    @classmethod
    def of(cls, workload: Workload, choose: int | None = None, test: int | None = None) -> Periods:
        """Return the parts of a workload.

        `choose` and `test` are the numbers of the weeks, from 0, with which the second and the third part
        begin; by default one and two thirds of the whole weeks.
        """
        begin = int(workload.submit_time.min()) if len(workload) else 0
        weeks = workload.span // WEEK
        if weeks < 3:
            raise UsageError(f"{workload.name}: at least 3 weeks are needed to learn, found {weeks}")
        second = weeks // 3 if choose is None else choose
        third = 2 * weeks // 3 if test is None else test
        if not 0 < second < third <= weeks:
            raise UsageError(
                f"{workload.name}: --choose-from and --test-from need weeks in ascending order from 1 to "
                f"{weeks}, found {second} and {third}"
            )
        return cls(begin, begin + second * WEEK, begin + third * WEEK)

    def masks(self, workload: Workload) -> dict[str, NDArray[np.bool_]]:
        """Return which jobs are submitted in each part, ``learn``, ``choose`` and ``test``."""
        submit = workload.submit_time
        return {
            "learn": submit < self.choose,
            "choose": (submit >= self.choose) & (submit < self.test),
            "test": submit >= self.test,
        }
