"""Schedulers under textbook semantics: heuristics, and the same pipelines with open seats."""

from __future__ import annotations

from collections.abc import Mapping

from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import EASY, F1, SJF
from hpcsimkit.policies.dirlab import MAX_INTERVAL, MAX_REJECTIONS
from hpcsimkit.policies.predictions import LastTwo, ShortestPredicted

__all__ = [
    "ORDERS",
    "SLOTS",
    "backfilling",
    "base",
    "both_seats",
    "chance_backfilling",
    "chance_inspecting",
    "easy",
    "easy_plus_plus",
    "inspecting",
]

ORDERS: Mapping[str, type[Order]] = {"sjf": SJF, "f1": F1}
"""Orders of the queue of the baseline heuristics."""

SLOTS = 32
"""Maximum number of candidates in a backfiller's observation."""


def base(order: str) -> Pipeline:
    """Return EASY with shortest-first candidates behind an order: the best heuristic of its class."""
    return Pipeline(ORDERS[order](), backfiller=EASY(SJF()))


def easy(order: str) -> Pipeline:
    """Return textbook EASY, which tries candidates in the order of the queue."""
    return Pipeline(ORDERS[order](), backfiller=EASY())


def easy_plus_plus() -> Pipeline:
    """Return EASY++: first come, first served, with predicted run times (Tsafrir et al., 2007)."""
    return Pipeline(backfiller=EASY(candidates=ShortestPredicted()), estimates=LastTwo())


def inspecting(order: str) -> Pipeline:
    """Return the heuristic with an open seat for an inspector, which may hold the job about to start."""
    pipeline = base(order)
    pipeline.inspector = External()
    return _asked_again(pipeline)


def backfilling(order: str) -> Pipeline:
    """Return the heuristic with an open seat for a backfiller, which picks an EASY candidate or none."""
    return backfilling_seat(ORDERS[order](), "guarded", semantics="textbook", decline=True, slots=SLOTS)


def both_seats(order: str) -> Pipeline:
    """Return the heuristic with both seats open."""
    pipeline = backfilling(order)
    pipeline.inspector = External()
    return _asked_again(pipeline)


def chance_inspecting(order: str) -> Pipeline:
    """Return the heuristic with a random inspector, which holds half of all jobs."""
    pipeline = inspecting(order)
    pipeline.inspector = RandomAgent(AcceptReject())
    return pipeline


def chance_backfilling(order: str) -> Pipeline:
    """Return the heuristic with a random backfiller, which takes any candidate or declines."""
    pipeline = backfilling(order)
    pipeline.backfiller = RandomAgent(Slots(SLOTS, decline=True), EASY(), decline=True)
    return pipeline


def _asked_again(pipeline: Pipeline) -> Pipeline:
    pipeline.max_interval, pipeline.max_rejections = MAX_INTERVAL, MAX_REJECTIONS
    return pipeline
