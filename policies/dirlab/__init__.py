"""Policies of the simulators behind RLScheduler, SchedInspector and RLBackfilling, for comparison.

With ``semantics="dirlab"`` (:mod:`hpcsimkit.kernel.event_order`) and the log reader of these simulators
(:mod:`hpcsimkit.workloads.dirlab`), schedules match theirs to the second.
"""

from hpcsimkit.policies.dirlab.backfilling import (
    FittingCandidates,
    PartialEASY,
    PublishedEASY,
    ShortestFitting,
)
from hpcsimkit.policies.dirlab.orders import ORDERS
from hpcsimkit.policies.dirlab.pipelines import (
    MAX_INTERVAL,
    MAX_REJECTIONS,
    learned_backfilling,
    meant_order_of,
    order_of,
    published,
    textbook,
)

__all__ = [
    "MAX_INTERVAL",
    "MAX_REJECTIONS",
    "ORDERS",
    "FittingCandidates",
    "PartialEASY",
    "PublishedEASY",
    "ShortestFitting",
    "learned_backfilling",
    "meant_order_of",
    "order_of",
    "published",
    "textbook",
]
