"""How the simulators behind RLScheduler, SchedInspector and RLBackfilling schedule, to compare with them.

With ``semantics="dirlab"`` (:mod:`hpcsimkit.semantics`) and logs read as they read them
(:mod:`hpcsimkit.workloads.dirlab`) schedules are theirs, to the second.
"""

from hpcsimkit.policies.dirlab.backfilling import FittingCandidates, PublishedEASY
from hpcsimkit.policies.dirlab.orders import ORDERS
from hpcsimkit.policies.dirlab.pipelines import MAX_INTERVAL, MAX_REJECTIONS, learned_backfilling, published

__all__ = [
    "MAX_INTERVAL",
    "MAX_REJECTIONS",
    "ORDERS",
    "FittingCandidates",
    "PublishedEASY",
    "learned_backfilling",
    "published",
]
