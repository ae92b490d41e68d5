"""Backfilling baselines without training: published and textbook EASY, simple rules, random choice."""

from __future__ import annotations

from hpcsimkit.agents.rlbackfilling.seat import SLOTS
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order
from hpcsimkit.policies import EASY, WFP3
from hpcsimkit.policies.dirlab import FittingCandidates, published
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.policies.oracles import Actual, OracleSJF
from hpcsimkit.reproductions.rlbackfilling.data import CODE

__all__ = [
    "ShortestFitting",
    "actual_run_times",
    "by_chance",
    "published_easy",
    "shortest_fitting",
    "textbook_easy",
]


class ShortestFitting(Answering):
    """A backfiller that starts the candidate with the shortest requested time; ties go to the order."""

    def answer(self, decision: Decision) -> int:
        """Return the position of the candidate."""
        times = [job.requested_time for job in decision.options]
        return times.index(min(times))


def published_easy(order: str, candidates: Order | None = None) -> Pipeline:
    """Return EASY as published; by default it tries candidates in the order of submission."""
    return published(CODE, order, backfilling=True, candidates=candidates)


def actual_run_times(order: str) -> Pipeline:
    """Return EASY-AR as published: actual run times are known, to the order too.

    (With the run times known to backfilling alone, SJF has 5.47 on HPC2N and not the paper's 3.73.)
    """
    pipeline = published_easy(order)
    pipeline.estimates = Actual()
    if order == "sjf":
        pipeline.order = OracleSJF()
    return pipeline


def textbook_easy(order: str, candidates: Order | None = None) -> Pipeline:
    """Return textbook EASY, for textbook semantics; candidates come in the order of the queue by default."""
    return Pipeline(WFP3() if order == "wfp3" else order_of(CODE, order), backfiller=EASY(candidates))


def shortest_fitting(order: str, *, guarded: bool) -> Pipeline:
    """Return the agent's pipeline with a backfiller that always starts the shortest candidate."""
    return Pipeline(order_of(CODE, order), backfiller=ShortestFitting(FittingCandidates(guarded=guarded)))


def by_chance(order: str) -> Pipeline:
    """Return the agent's pipeline with an unguarded random backfiller."""
    seat = RandomAgent(Slots(SLOTS), FittingCandidates())
    return Pipeline(order_of(CODE, order), backfiller=seat)
