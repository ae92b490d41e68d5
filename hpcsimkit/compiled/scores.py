"""Time-dependent scores of waiting jobs, by the formulas of :mod:`hpcsimkit.policies.orders`."""

from __future__ import annotations

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.state import Jobs, Numbers

BY_RANK, BY_KEY, BY_ESTIMATE, WFP3, UNICEF, XFACTOR = range(6)
"""Codes of orders: that of the queue, keys, estimates, and formulas."""


@machine_code
def score(jobs: Jobs, estimate: int, order: int, row: int, now: int, weight: Numbers) -> float:
    """Return the score of a job; mirrors ``Order.key`` or ``Order.scores``.

    `weight` is the job's key, its size (WFP3) or the denominator of the formula (UNICEF), by row.
    """
    if order == BY_KEY:
        return float(weight[row])
    if order == BY_ESTIMATE:
        return float(estimate)
    wait, requested = now - jobs.submit_time[row], jobs.requested_time[row]
    if order == WFP3:
        ratio = wait / requested
        return float(-(ratio * ratio * ratio) * weight[row])
    if order == UNICEF:
        return float(-wait / weight[row])
    return float(-(wait + requested) / requested)
