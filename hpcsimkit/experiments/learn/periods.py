"""The two parts of a log, in whole weeks: the past to choose on, and the future to test on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload

WEEK = 7 * 86_400
"""Length of a week [s]."""


class Periods(NamedTuple):
    """The beginnings of the two parts of a log [s of the log's clock].

    Parameters
    ----------
    past : int
        First submission of the log: the beginning of the first week.
    test : int
        Beginning of the part on which the chosen policies are tested.

    Examples
    --------
    >>> submit = np.arange(7) * WEEK
    >>> jobs = Workload({"submit_time": submit, "run_time": submit * 0, "nodes": submit * 0 + 1})
    >>> [begin // WEEK for begin in Periods.of(jobs)]
    [0, 4]
    """

    past: int
    test: int

    @classmethod
    def of(cls, workload: Workload, test: int | None = None) -> Periods:
        """Return the parts of a workload.

        `test` is the number of the week, from 0, with which the second part begins; by default two thirds of
        the whole weeks.
        """
        begin = int(workload.submit_time.min()) if len(workload) else 0
        weeks = workload.span // WEEK
        if weeks < 3:
            raise UsageError(f"{workload.name}: at least 3 weeks are needed to learn, found {weeks}")
        second = 2 * weeks // 3 if test is None else test
        if not 0 < second <= weeks:
            raise UsageError(f"{workload.name}: --test-from must be a week from 1 to {weeks}, found {second}")
        return cls(begin, begin + second * WEEK)

    def masks(self, workload: Workload) -> dict[str, NDArray[np.bool_]]:
        """Return which jobs are submitted in each part, ``past`` and ``test``."""
        later = workload.submit_time >= self.test
        return {"past": ~later, "test": later}
