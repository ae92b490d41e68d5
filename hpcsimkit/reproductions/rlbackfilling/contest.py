"""Policies under test on each set of sequences: agents, the paper's baselines, and further ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from hpcsimkit.policies import SJF
from hpcsimkit.reproductions.draws import Draws
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.rlbackfilling.data import AS_PUBLISHED, WAYS_AS_PUBLISHED, Trace, Way
from hpcsimkit.reproductions.rlbackfilling.learners import Learners
from hpcsimkit.reproductions.rlbackfilling.rivals import (
    actual_run_times,
    by_chance,
    published_easy,
    shortest_fitting,
    textbook_easy,
)
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet

__all__ = [
    "ALSO",
    "CHANCE",
    "EASY_AR",
    "EASY_SJF",
    "GUARDED_SHORTEST",
    "PUBLISHED_EASY",
    "PUBLISHED_SJF",
    "TEXTBOOK_EASY",
    "UNGUARDED_SHORTEST",
    "Contest",
    "Protocol",
    "agent_row",
    "contests",
    "of_log",
    "row",
]

Protocol = Literal["published", "rest"]

PUBLISHED_EASY, PUBLISHED_SJF = "published EASY", "published EASY, SJF candidates"
EASY_AR = "published EASY-AR"
TEXTBOOK_EASY, EASY_SJF = "textbook EASY", "textbook EASY, SJF candidates"
UNGUARDED_SHORTEST, GUARDED_SHORTEST = "shortest fitting first, unguarded", "shortest fitting first, guarded"
CHANCE = "random agent, unguarded"

ALSO = (
    *(f"{order} + {PUBLISHED_EASY}" for order in ("FCFS", "SJF", "WFP3", "F1")),
    f"SJF + {EASY_SJF}",
    f"F1 + {EASY_SJF}",
)
"""Rows shown beside those of any base scheduler: the paper's columns, and the best baselines."""


def row(order: str, backfiller: str) -> str:
    """Return the name of a row.

    >>> row("fcfs", PUBLISHED_EASY)
    'FCFS + published EASY'
    """
    return f"{order.upper()} + {backfiller}"


def agent_row(way: Way, *, greedy: bool = False) -> str:
    """Return the label of an agent, with sampled or greedy actions.

    >>> agent_row(Way("guarded"), greedy=True), agent_row(Way("unguarded", evolved=True), greedy=True)
    ('agent, guarded, greedy', 'agent, unguarded, evolved')
    """
    return f"agent, {way}{', greedy' * (greedy and not way.evolved)}"


def of_log(name: str) -> str:
    """Return the label of an agent that was trained on another log."""
    return f"agent of {name}"


class Contest(NamedTuple):
    """All policies under test on the same sequences.

    Parameters
    ----------
    trace : Trace
        Log of the sequences.
    protocol : {"published", "rest"}
        Protocol: training and test as published, or test on jobs outside the training part.
    sequences : SequenceSet
        Test sequences.
    contestants : sequence of Contestant
        Policies under test.
    """

    trace: Trace
    protocol: Protocol
    sequences: SequenceSet
    contestants: Sequence[Contestant]

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of all policies, by row."""
        return {each.name: self._meeting(each) for each in self.contestants}

    def _meeting(self, who: Contestant) -> Meeting:
        draws = self.trace.scale.draws if _draws(who) else 1
        return Draws(who, self.sequences, self.trace.seed, promises=True, draws=draws)

    def rows(self, order: str) -> list[str]:
        """Return the rows of a base scheduler, and those shown beside all."""
        names = [each.name for each in self.contestants]
        own = [name for name in names if name.startswith(f"{order.upper()} + ")]
        return own + [name for name in ALSO if name in names and name not in own]


def _draws(who: Contestant) -> bool:
    """Return whether a policy is stochastic."""
    return who.name.endswith(CHANCE) if who.learner is None else who.sample


def contests(learners: Learners) -> Iterator[Contest]:
    """Yield all comparisons."""
    traces = learners.traces
    for trace in traces.of_the_paper if traces.scale.published else ():
        rows = [*_untrained(trace, traces.scale.orders), *_published_agents(learners, trace)]
        yield Contest(trace, "published", trace.published, rows)
    for trace in traces.all:
        rows = [*_untrained(trace, traces.scale.orders), *_agents(learners, trace)]
        yield Contest(trace, "rest", trace.rest, rows)


def _published_agents(learners: Learners, trace: Trace) -> Iterator[Contestant]:
    """Yield the agents that were trained as published, including those of other logs."""
    traces = learners.traces
    for order in traces.scale.orders:
        for way in WAYS_AS_PUBLISHED:
            yield from _both(learners.published(trace, order, way), order, way)
        for other in traces.of_the_paper:
            if other is not trace:
                yield _visitor(learners.published(other, order, AS_PUBLISHED), order, other, trace)


def _agents(learners: Learners, trace: Trace) -> Iterator[Contestant]:
    """Yield the agents trained on a log's first fifth by each protocol, including those of other logs."""
    traces, ways = learners.traces, learners.traces.scale.ways
    for order in traces.scale.orders:
        for way in ways:
            yield from _both(learners.own(trace, order, way), order, way)
        for other in traces.all:
            if other is not trace:
                yield _visitor(learners.own(other, order, ways[0]), order, other, trace)


def _both(learner: Learner, order: str, way: Way) -> Iterator[Contestant]:
    """Yield an agent with sampled actions, as in the published code, and with greedy actions."""
    for greedy in way.greedy:
        name = row(order, agent_row(way, greedy=greedy))
        yield Contestant(name, learner.policy, learner=learner, sample=not greedy)


def _visitor(learner: Learner, order: str, of: Trace, here: Trace) -> Contestant:
    """Return the agent of another log; requested times are scaled by this log's longest run time."""
    changes = {"longest_time": here.longest_time}
    return Contestant(row(order, of_log(of.name)), learner.policy, learner=learner, changes=changes)


def _untrained(trace: Trace, orders: Sequence[str]) -> Iterator[Contestant]:
    """Yield the baselines without training."""
    for order in dict.fromkeys([*orders, "fcfs", "sjf", "wfp3", "f1"]):
        yield Contestant(row(order, PUBLISHED_EASY), published_easy(order))
        if order in orders:
            yield Contestant(row(order, PUBLISHED_SJF), published_easy(order, SJF()))
            if not trace.times_are_known:
                yield Contestant(row(order, EASY_AR), actual_run_times(order))
            yield Contestant(row(order, TEXTBOOK_EASY), textbook_easy(order), rules="textbook")
        if order in (*orders, "sjf", "f1"):
            yield Contestant(row(order, EASY_SJF), textbook_easy(order, SJF()), rules="textbook")
        if order in orders:
            yield Contestant(row(order, UNGUARDED_SHORTEST), shortest_fitting(order, guarded=False))
            yield Contestant(row(order, GUARDED_SHORTEST), shortest_fitting(order, guarded=True))
            yield Contestant(row(order, CHANCE), by_chance(order))
