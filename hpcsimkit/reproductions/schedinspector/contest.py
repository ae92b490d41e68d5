"""Policies under test: inspectors, their base schedulers, and the baselines that the paper lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hpcsimkit.agents.spaces.masks import AcceptReject
from hpcsimkit.experiments.evaluation import RandomAgent
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import EASY, SJF, HoldUnfit
from hpcsimkit.policies.dirlab import published
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.schedinspector.data import Trace
from hpcsimkit.reproductions.schedinspector.learners import CODE, Learners, tested
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet

__all__ = [
    "BASE",
    "GREEDY",
    "INSPECTOR",
    "NOT_COMMITTED",
    "PROMPT",
    "PROMPT_GREEDY",
    "UNFIT",
    "Contest",
    "contests",
    "greedy",
    "of_log",
]

BASE, INSPECTOR, PROMPT = "base", "inspector", "prompt inspector"
NOT_COMMITTED, UNFIT, CHANCE = "base that does not commit", "reject iff it does not fit", "random inspector"
EASY_ROW, EASY_SJF = "textbook EASY", "textbook EASY, SJF candidates"


def greedy(row: str) -> str:
    """Return the row of an agent that takes the best action instead of sampling one."""
    return f"{row}, greedy"


def of_log(row: str, name: str) -> str:
    """Return the row of an agent that was trained on another log."""
    return f"{row} of {name}"


GREEDY, PROMPT_GREEDY = greedy(INSPECTOR), greedy(PROMPT)


class Contest(NamedTuple):
    """All policies under test on the same sequences.

    Parameters
    ----------
    trace : Trace
        Log of the sequences.
    order : str
        Order of the base scheduler.
    protocol : {"rest", "whole"}
        Test protocol: on jobs outside the training part, or as published.
    backfilling : bool
        Whether the base scheduler backfills.
    sequences : SequenceSet
        Test sequences.
    contestants : sequence of Contestant
        Policies under test.
    """

    trace: Trace
    order: str
    protocol: str
    backfilling: bool
    sequences: SequenceSet
    contestants: Sequence[Contestant]

    @property
    def base(self) -> str:
        """Name of the base scheduler."""
        return f"{self.order.upper()}{' with backfilling' * self.backfilling}"

    @property
    def about(self) -> str:
        """Log and base scheduler."""
        return f"{self.trace.name}, {self.base}"

    @property
    def label(self) -> str:
        """Name of a file on the comparison, without suffix."""
        return f"{self.protocol}-{self.trace.name}-{self.order}{'-bf' * self.backfilling}"

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of all policies, by row."""
        return {each.name: Meeting(each, self._set, self.trace.seed) for each in self.contestants}

    @property
    def _set(self) -> SequenceSet:
        words = f"{self.sequences.name}-{self.order}{'-bf' * self.backfilling}"
        return SequenceSet(words, self.sequences.scenarios)


def contests(learners: Learners) -> Iterator[Contest]:
    """Yield all comparisons."""
    for trace in learners.traces.all:
        for order in learners.scale.orders:
            for backfilling in (False, True):
                rows = [
                    *_untrained(order, backfilling=backfilling),
                    *_of_rest(learners, trace, order, backfilling),
                ]
                yield Contest(trace, order, "rest", backfilling, trace.rest, rows)
        if learners.scale.whole:
            rows = [*_untrained("sjf", backfilling=False), *_of_whole(learners, trace)]
            yield Contest(trace, "sjf", "whole", False, trace.whole, rows)


def _of_rest(learners: Learners, trace: Trace, order: str, backfilling: bool) -> Iterator[Contestant]:
    """Yield the agents not trained on these jobs; with backfilling, the dense-reward agent only."""
    for row in (PROMPT,) if backfilling else (INSPECTOR, PROMPT):
        prompt = row == PROMPT
        yield from _both(row, learners.own(trace, order, prompt=prompt, backfilling=backfilling))
        for other in learners.traces.all:
            if other is not trace and not backfilling:
                yield _elsewhere(row, other, learners.own(other, order, prompt=prompt), trace)


def _of_whole(learners: Learners, trace: Trace) -> Iterator[Contestant]:
    """Yield agents of the published protocol: trained on the first 10 000 jobs, tested on all."""
    first = learners.traces.first
    for row in (INSPECTOR, PROMPT):
        prompt = row == PROMPT
        yield from _both(row, learners.whole(trace, "sjf", prompt=prompt))
        if first is not trace:
            yield _elsewhere(row, first, learners.whole(first, "sjf", prompt=prompt), trace)


def _both(row: str, learner: Learner) -> Iterator[Contestant]:
    """Yield an agent twice: with sampled and with greedy actions."""
    yield Contestant(row, tested(learner), learner=learner)
    yield Contestant(greedy(row), tested(learner), learner=learner, sample=False)


def _elsewhere(row: str, other: Trace, learner: Learner, trace: Trace) -> Contestant:
    """Return the agent of another log; requested times are scaled by this log's longest run time."""
    changes = {"longest_time": trace.longest_time}
    return Contestant(of_log(row, other.name), tested(learner), learner=learner, changes=changes)


def _untrained(order: str, *, backfilling: bool) -> Iterator[Contestant]:
    """Yield the base scheduler and the untrained baselines, with the same knowledge of run times."""
    yield Contestant(BASE, published(CODE, order, backfilling=backfilling))
    unfit = published(CODE, order, backfilling=backfilling, inspector=HoldUnfit())
    chance = published(CODE, order, backfilling=backfilling, inspector=RandomAgent(AcceptReject()))
    yield Contestant(UNFIT, unfit)
    yield Contestant(CHANCE, chance)
    yield Contestant(NOT_COMMITTED, Pipeline(order_of(CODE, order)), rules="textbook")
    yield Contestant(EASY_ROW, Pipeline(order_of(CODE, order), backfiller=EASY()), rules="textbook")
    yield Contestant(EASY_SJF, Pipeline(order_of(CODE, order), backfiller=EASY(SJF())), rules="textbook")
