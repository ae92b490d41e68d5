"""Schedulers by the textbook's rules: heuristics, and the same with seats left open."""

from __future__ import annotations

from collections.abc import Mapping

from hpcsimkit.agents.masks import AcceptReject, Slots
from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.decision import External
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.policies.predictions import LastTwo, ShortestPredicted
from hpcsimkit.policy import Order

__all__ = [
    "ORDERS", "SLOTS", "backfilling", "base", "both_seats", "chance_backfilling", "chance_inspecting", "easy",
    "easy_plus_plus", "inspecting",
]  # fmt: skip

ORDERS: Mapping[str, type[Order]] = {"sjf": SJF, "f1": F1}
"""Of the heuristics that are to be beaten."""

SLOTS = 32
"""Candidates that a backfiller sees at most."""


def base(order: str) -> Pipeline:
    """Return EASY that tries short jobs first, behind jobs in an order: the best heuristic of its class."""
    return Pipeline(ORDERS[order](), backfiller=EASY(SJF()))


def easy(order: str) -> Pipeline:
    """Return the textbook's EASY, which tries jobs in their order."""
    return Pipeline(ORDERS[order](), backfiller=EASY())


def easy_plus_plus() -> Pipeline:
    """Return EASY++: first come, first served, and predicted run times (Tsafrir et al., 2007)."""
    return Pipeline(backfiller=EASY(candidates=ShortestPredicted()), estimates=LastTwo())


def inspecting(order: str) -> Pipeline:
    """Return the heuristic, with a seat for who may hold the job that is to start."""
    pipeline = base(order)
    pipeline.inspector = External()
    return _asked_again(pipeline)


def backfilling(order: str) -> Pipeline:
    """Return the heuristic, with a seat for who chooses among what EASY admits, or declines."""
    return backfilling_seat(ORDERS[order](), "guarded", semantics="textbook", decline=True, slots=SLOTS)


def both_seats(order: str) -> Pipeline:
    """Return it with both."""
    pipeline = backfilling(order)
    pipeline.inspector = External()
    return _asked_again(pipeline)


def chance_inspecting(order: str) -> Pipeline:
    """Return who sits on the inspector's seat, and holds half of all jobs."""
    pipeline = inspecting(order)
    pipeline.inspector = RandomAgent(AcceptReject())
    return pipeline


def chance_backfilling(order: str) -> Pipeline:
    """Return who sits on the backfiller's seat, and takes any job or none."""
    pipeline = backfilling(order)
    pipeline.backfiller = RandomAgent(Slots(SLOTS, decline=True), EASY(), decline=True)
    return pipeline


def _asked_again(pipeline: Pipeline) -> Pipeline:
    pipeline.max_interval, pipeline.max_rejections = MAX_INTERVAL, MAX_REJECTIONS
    return pipeline
