"""Who backfills without having learned anything: published and textbook EASY, simple rules, chance."""

from __future__ import annotations

from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.rlbackfilling.seat import SLOTS
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.decision import Answering, Decision
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import EASY, WFP3
from hpcsimkit.policies.dirlab import FittingCandidates, published
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.policies.oracles import Actual, OracleSJF
from hpcsimkit.policy import Order
from hpcsimkit.reproductions.rlbackfilling.data import CODE

__all__ = [
    "ShortestFitting", "actual_run_times", "by_chance", "published_easy", "shortest_fitting", "textbook_easy",
]  # fmt: skip


class ShortestFitting(Answering):
    """Backfills the candidate with the shortest requested time; of several, the first of the order."""

    def answer(self, decision: Decision) -> int:
        """Return its position."""
        times = [job.requested_time for job in decision.options]
        return times.index(min(times))


def published_easy(order: str, candidates: Order | None = None) -> Pipeline:
    """Return what the paper calls EASY; by default it looks at waiting jobs as they were submitted."""
    return published(CODE, order, backfilling=True, candidates=candidates)


def actual_run_times(order: str) -> Pipeline:
    """Return what the paper calls EASY-AR: actual run times are known, to the order too.

    (With the run times known to backfilling alone, SJF has 5.47 on HPC2N and not the paper's 3.73.)
    """
    pipeline = published_easy(order)
    pipeline.estimates = Actual()
    if order == "sjf":
        pipeline.order = OracleSJF()
    return pipeline


def textbook_easy(order: str, candidates: Order | None = None) -> Pipeline:
    """Return EASY by the textbook, for its rules; candidates come in the order of jobs by default."""
    return Pipeline(WFP3() if order == "wfp3" else order_of(CODE, order), backfiller=EASY(candidates))


def shortest_fitting(order: str, *, guarded: bool) -> Pipeline:
    """Return who sits on the agent's seat, by the agent's rules, and always takes the shortest job."""
    return Pipeline(order_of(CODE, order), backfiller=ShortestFitting(FittingCandidates(guarded=guarded)))


def by_chance(order: str) -> Pipeline:
    """Return who sits on the agent's seat, unguarded, and takes any job."""
    seat = RandomAgent(Slots(SLOTS), FittingCandidates())
    return Pipeline(order_of(CODE, order), backfiller=seat)
