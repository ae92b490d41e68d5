"""Who meets on which sequences: inspectors, their base schedulers, and the rivals that the paper lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpcsimkit.agents.masks import AcceptReject
from hpcsimkit.campaigns.evaluation import RandomAgent
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import EASY, SJF, HoldUnfit
from hpcsimkit.policies.dirlab import published
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.reproductions.schedinspector.data import Trace
from hpcsimkit.reproductions.schedinspector.learners import CODE, Learners, honest_base
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet

__all__ = ["BASE", "GREEDY", "INSPECTOR", "NOT_COMMITTED", "UNFIT", "Contest", "contests", "of_log"]

BASE, INSPECTOR, GREEDY = "base", "inspector", "inspector, greedy"
NOT_COMMITTED, UNFIT, CHANCE = "base that does not commit", "reject iff it does not fit", "random inspector"
EASY_ROW, EASY_SJF = "textbook EASY", "textbook EASY, SJF candidates"


class Contest(NamedTuple):
    """Everybody on the same sequences.

    Parameters
    ----------
    trace : Trace
        Of which log.
    order : str
        Of the base scheduler.
    protocol : {"rest", "whole", "honest"}
        Tested on jobs that nobody has learned from; as published; or so by the textbook's rules.
    backfilling : bool
        The base scheduler has it.
    sequences : SequenceSet
        On what they meet.
    contestants : sequence of Contestant
        Who meets.
    """

    trace: Trace
    order: str
    protocol: str
    backfilling: bool
    sequences: SequenceSet
    contestants: Sequence[Contestant]

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of everybody, by row."""
        return {each.name: Meeting(each, self._set, self.trace.seed) for each in self.contestants}

    @property
    def _set(self) -> SequenceSet:
        words = f"{self.sequences.name}-{self.order}{'-bf' * self.backfilling}"
        return SequenceSet(words, self.sequences.scenarios)


def of_log(name: str) -> str:
    """Return the row of an inspector that was trained on another log."""
    return f"inspector of {name}"


def contests(learners: Learners) -> Iterator[Contest]:
    """Yield all contests."""
    for trace in learners.traces.all:
        for order in learners.scale.orders:
            for backfilling in (False, True):
                rows = list(_published_rows(learners, trace, order, backfilling=backfilling))
                yield Contest(trace, order, "rest", backfilling, trace.rest, rows)
            if learners.scale.whole:
                rows = list(_whole_rows(learners, trace, order))
                yield Contest(trace, order, "whole", False, trace.whole, rows)
            rows = list(_honest_rows(learners, trace, order))
            yield Contest(trace, order, "honest", True, trace.honest_rest, rows)


def _published_rows(
    learners: Learners, trace: Trace, order: str, *, backfilling: bool
) -> Iterator[Contestant]:  # fmt: skip
    """Yield who meets by the published rules; nobody has learned from these jobs."""
    yield from _untrained(order, backfilling=backfilling)
    own = learners.own(trace, order, backfilling=backfilling)
    yield Contestant(INSPECTOR, own.policy, learner=own)
    yield Contestant(GREEDY, own.policy, learner=own, sample=False)
    if backfilling:
        return
    for other in learners.traces.all:
        if other is not trace:
            learner, changes = learners.own(other, order), {"longest_time": trace.longest_time}
            yield Contestant(of_log(other.name), learner.policy, learner=learner, changes=changes)


def _whole_rows(learners: Learners, trace: Trace, order: str) -> Iterator[Contestant]:
    """Yield who meets as published: trained on the first 10 000 jobs, tested on all."""
    yield from _untrained(order, backfilling=False)
    own, first = learners.whole(trace, order), learners.traces.first
    yield Contestant(INSPECTOR, own.policy, learner=own)
    yield Contestant(GREEDY, own.policy, learner=own, sample=False)
    if first is not trace:
        learner, changes = learners.whole(first, order), {"longest_time": trace.longest_time}
        yield Contestant(of_log(first.name), learner.policy, learner=learner, changes=changes)


def _untrained(order: str, *, backfilling: bool) -> Iterator[Contestant]:
    """Yield the base scheduler, and those who need no training, with the same knowledge."""
    yield Contestant(BASE, published(CODE, order, backfilling=backfilling))
    unfit = published(CODE, order, backfilling=backfilling, inspector=HoldUnfit())
    chance = published(CODE, order, backfilling=backfilling, inspector=RandomAgent(AcceptReject()))
    yield Contestant(UNFIT, unfit)
    yield Contestant(CHANCE, chance)
    yield Contestant(NOT_COMMITTED, Pipeline(order_of(CODE, order)), rules="textbook")
    yield Contestant(EASY_ROW, Pipeline(order_of(CODE, order), backfiller=EASY()), rules="textbook")
    yield Contestant(EASY_SJF, Pipeline(order_of(CODE, order), backfiller=EASY(SJF())), rules="textbook")


def _honest_rows(learners: Learners, trace: Trace, order: str) -> Iterator[Contestant]:
    """Yield who meets by the textbook's rules; the base is EASY with SJF candidates."""
    own = learners.honest(trace, order)
    yield Contestant(BASE, honest_base(order), rules="textbook")
    yield Contestant(UNFIT, honest_base(order, HoldUnfit()), rules="textbook")
    yield Contestant(CHANCE, honest_base(order, RandomAgent(AcceptReject())), rules="textbook")
    yield Contestant(EASY_ROW, Pipeline(order_of(CODE, order), backfiller=EASY()), rules="textbook")
    yield Contestant(INSPECTOR, own.policy, rules="textbook", learner=own)
    yield Contestant(GREEDY, own.policy, rules="textbook", learner=own, sample=False)
