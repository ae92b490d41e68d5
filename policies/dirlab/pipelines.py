"""Complete schedulers of the published simulators."""

from __future__ import annotations

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector, Order
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies.dirlab.backfilling import FittingCandidates, PublishedEASY
from hpcsimkit.policies.dirlab.orders import MEANT, ORDERS

__all__ = [
    "MAX_INTERVAL",
    "MAX_REJECTIONS",
    "learned_backfilling",
    "meant_order_of",
    "order_of",
    "published",
    "textbook",
]

MAX_INTERVAL = 600
"""Maximum time until SchedInspector decides again on a rejected job [s]."""

MAX_REJECTIONS = 72
"""Maximum number of rejections of a job in SchedInspector's tests (there is no limit in training)."""


def order_of(code: str, order: str) -> Order:
    """Return an order of one of the code bases.

    Raises
    ------
    UsageError
        If the code base is unknown or has no such order.
    """
    if order not in ORDERS.get(code, ()):
        known = ORDERS.get(code, ORDERS)
        raise UsageError(f"{code!r} with order {order!r} is not known; known are {', '.join(known)}")
    return ORDERS[code][order]()


def meant_order_of(code: str, order: str) -> Order:
    """Return an order of one of the code bases; WFP3 and UNICEF by the formula that their code misses.

    >>> meant_order_of("rlscheduler", "unicef"), meant_order_of("rlscheduler", "sjf")
    (CorrectedUNICEF(), SJF())
    """
    return MEANT[order]() if order in MEANT else order_of(code, order)


def published(
    code: str,
    order: str = "fcfs",
    *,
    backfilling: bool = False,
    candidates: Order | None = None,
    inspector: Inspector | External | None = None,
    max_rejections: int | None = MAX_REJECTIONS,
) -> Pipeline:
    """Return the scheduler of a code base, which commits to a selected job until it starts.

    Parameters
    ----------
    code : {"rlscheduler", "schedinspector", "rlbackfilling"}
        Name of the code base.
    order : str
        Name of one of its orders; see :data:`~hpcsimkit.policies.dirlab.orders.ORDERS`.
    backfilling : bool
        Whether its EASY backfilling is used. Default: False.
    candidates : Order, optional
        Order in which backfilling examines waiting jobs; by default the order of submission.
    inspector : Inspector or External, optional
        Inspector of selected jobs; by default there is none.
    max_rejections : int, optional
        Maximum number of times a job is held; None for no limit. Default: 72.

    Examples
    --------
    >>> published("schedinspector", "sjf", backfilling=True)  # doctest: +NORMALIZE_WHITESPACE
    Pipeline(order=SmallestSJF(), backfiller=PublishedEASY(), commit=True, max_interval=600,
             max_rejections=72)
    """
    easy = PublishedEASY(candidates, skips_after_start=code == "rlbackfilling")
    return Pipeline(
        order_of(code, order),
        inspector,
        backfiller=easy if backfilling else None,
        commit=True,
        max_interval=MAX_INTERVAL,
        max_rejections=max_rejections,
    )


def textbook(
    code: str, order: str, *, backfilling: bool = False, candidates: Order | None = None
) -> Pipeline:
    """Return the textbook's counterpart of :func:`published`, to be run with textbook semantics.

    WFP3 and UNICEF are as meant: their published code differs from the formula.

    Examples
    --------
    >>> textbook("rlscheduler", "wfp3", backfilling=True)
    Pipeline(order=WFP3(), backfiller=EASY())
    """
    return Pipeline(meant_order_of(code, order), backfiller=EASY(candidates) if backfilling else None)


def learned_backfilling(
    order: str = "fcfs", *, guarded: bool = False, relax: float = 0.0, slots: int = 128
) -> Pipeline:
    """Return the scheduler of RLBackfilling's environment, with an open seat for the backfiller.

    Unlike with its EASY backfilling, the head of the queue is selected again at every event. Parameters are
    those of :func:`published` and :class:`~hpcsimkit.policies.dirlab.backfilling.FittingCandidates`.
    Decisions with a single option are not passed to the agent (``skip`` of the environments).

    Examples
    --------
    >>> learned_backfilling("sjf", guarded=True)
    Pipeline(order=SJF(), backfiller=External(base=FittingCandidates(guarded=True)))
    """
    candidates = FittingCandidates(guarded=guarded, relax=relax, slots=slots)
    return Pipeline(order_of("rlbackfilling", order), backfiller=External(candidates))
