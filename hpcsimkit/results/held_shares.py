"""Shares of the wait by the reason for which gates held jobs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.results.result import Result

__all__ = ["held_shares", "total_wait"]


def held_shares(result: Result, jobs: NDArray[np.bool_] | None = None) -> dict[str, float]:
    """Return the share of the wait of jobs by the reason for which gates held them; without any, nothing.

    The wait is that of all attempts of the jobs that ran. The rest of it was spent in the queue.

    Parameters
    ----------
    result : Result
        The result of a run.
    jobs : array of bool, shape (jobs,), optional
        Mask of the jobs that count; by default all.
    """
    if result.held is None:
        return {}
    counted = result.finished if jobs is None else result.finished & jobs
    waited = total_wait(result, counted)
    seconds = {
        reason: int(result.held.seconds({reason}, len(result))[counted].sum())
        for reason in result.held.reasons
    }
    return {reason: held / waited for reason, held in seconds.items() if held}


def total_wait(result: Result, jobs: NDArray[np.bool_]) -> float:
    """Return the wait of all attempts of some jobs that ran [s]."""
    each = result.by_attempt
    rows = slice(None) if result.attempts is None else result.attempts.job
    return float((each.start_time - each.submit_time)[jobs[rows]].sum())
