"""Whole schedulers of the published simulators."""

from __future__ import annotations

from hpcsimkit.decision import External
from hpcsimkit.errors import UsageError
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates, PublishedEASY
from hpcsimkit.policies.dirlab.orders import ORDERS
from hpcsimkit.policy import Inspector, Order

__all__ = ["MAX_INTERVAL", "MAX_REJECTIONS", "learned_backfilling", "order_of", "published"]

MAX_INTERVAL = 600
"""SchedInspector asks again about a rejected job after so many seconds at the latest [s]."""

MAX_REJECTIONS = 72
"""SchedInspector rejects a job so often at most (where it tests; where it trains there is no limit)."""


def order_of(code: str, order: str) -> Order:
    """Return an order as one of the code bases has it.

    Raises
    ------
    UsageError
        The code base is not known, or has no such order.
    """
    if order not in ORDERS.get(code, ()):
        known = ORDERS.get(code, ORDERS)
        raise UsageError(f"{code!r} with order {order!r} is not known; known are {', '.join(known)}")
    return ORDERS[code][order]()


def published(
    code: str,
    order: str = "fcfs",
    *,
    backfilling: bool = False,
    candidates: Order | None = None,
    inspector: Inspector | External | None = None,
    max_rejections: int | None = MAX_REJECTIONS,
) -> Pipeline:
    """Return the scheduler of a code base: it keeps to a selected job until that starts.

    Parameters
    ----------
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Whose.
    order : str
        One of its orders: see :data:`~hpcsimkit.policies.dirlab.orders.ORDERS`.
    backfilling : bool
        With its EASY backfilling.
    candidates : Order, optional
        In which order that looks at waiting jobs; by default as they were submitted.
    inspector : Inspector or External, optional
        Who inspects selected jobs.
    max_rejections : int, optional
        How often a job is held at most.

    Examples
    --------
    >>> published("schedinspector", "sjf", backfilling=True)  # doctest: +NORMALIZE_WHITESPACE
    Pipeline(order=SmallestSJF(), backfiller=PublishedEASY(), commit=True, max_interval=600,
             max_rejections=72)
    """
    easy = PublishedEASY(candidates, skips_after_start=code == "rlbackfilling")
    return Pipeline(
        order_of(code, order), inspector, backfiller=easy if backfilling else None, commit=True,
        max_interval=MAX_INTERVAL, max_rejections=max_rejections,
    )  # fmt: skip


def learned_backfilling(
    order: str = "fcfs", *, guarded: bool = False, relax: float = 0.0, slots: int = 128
) -> Pipeline:
    """Return RLBackfilling's environment: a base scheduler with the backfiller's seat open.

    Unlike in its EASY, the head is selected anew at every event. Parameters are those of
    :func:`published` and :class:`~hpcsimkit.policies.dirlab.backfilling.FittingCandidates`; a menu with a
    single option is not for the agent (``skip`` of the environments).

    Examples
    --------
    >>> learned_backfilling("sjf", guarded=True)
    Pipeline(order=SJF(), backfiller=External(base=FittingCandidates(guarded=True)))
    """
    candidates = FittingCandidates(guarded=guarded, relax=relax, slots=slots)
    return Pipeline(order_of("rlbackfilling", order), backfiller=External(candidates))
