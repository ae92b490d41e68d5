"""Policies under test on each log: heuristics, agents alone and in pairs, and random agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet, with_agent
from hpcsimkit.reproductions.textbook_rules.data import Scale, Trace
from hpcsimkit.reproductions.textbook_rules.learners import Learners, SeatLearner
from hpcsimkit.reproductions.textbook_rules.seats import (
    ORDERS,
    base,
    chance_backfilling,
    chance_inspecting,
    easy,
    easy_plus_plus,
)

__all__ = ["EASY_PLUS_PLUS", "RIVALS", "Contest", "Team", "contests", "greedy", "row"]

EASY_PLUS_PLUS = "EASY++"


def row(order: str, what: str) -> str:
    """Return the name of a row.

    >>> row("sjf", "inspector")
    'SJF, inspector'
    """
    return f"{order.upper()}, {what}"


def greedy(name: str) -> str:
    """Return the row of an agent that takes the best action instead of sampling one."""
    return f"{name}, greedy"


RIVALS = tuple(row(order, "EASY-SJF") for order in ORDERS)
"""Baseline heuristics; agents are compared with the better one on each log."""


@dataclass(frozen=True)
class Team(Contestant):
    """A pipeline with a trained agent on its open seat, and its partner, if it has one, on the other seat."""

    def scheduler(self, store: Path) -> Policy:
        """Return the policy; agents are loaded from the folder of all tasks."""
        policy, learner = super().scheduler(store), self.learner
        if isinstance(learner, SeatLearner) and learner.partner is not None:
            return with_agent(policy, learner.partner_agent(store, sample=self.sample))
        return policy


class Contest(NamedTuple):
    """All policies under test on the same sequences of a log.

    Parameters
    ----------
    trace : Trace
        Log of the sequences.
    sequences : SequenceSet
        Test sequences.
    contestants : sequence of Contestant
        Policies under test.
    """

    trace: Trace
    sequences: SequenceSet
    contestants: Sequence[Contestant]

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of all policies, by row."""
        return {
            each.name: Meeting(each, self.sequences, self.trace.seed, promises=True)
            for each in self.contestants
        }

    @property
    def learned(self) -> list[str]:
        """Rows of trained agents."""
        return [each.name for each in self.contestants if each.learner is not None]


def contests(learners: Learners) -> Iterator[Contest]:
    """Yield the comparisons, one per log."""
    for trace in learners.traces.all:
        rows = [*_heuristics(), *_agents(learners, trace), *_chance(trace.scale)]
        yield Contest(trace, trace.rest, rows)


def _heuristics() -> Iterator[Contestant]:
    for order, name in zip(ORDERS, RIVALS, strict=True):
        yield _untrained(name, base(order))
    for order in ORDERS:
        yield _untrained(row(order, "EASY"), easy(order))
    yield _untrained(EASY_PLUS_PLUS, easy_plus_plus())


def _agents(learners: Learners, trace: Trace) -> Iterator[Contestant]:
    """Yield the agents of each order, sampling and greedy; cross-entropy agents are always greedy."""
    for order in trace.scale.orders:
        yield from _both_ways(row(order, "inspector"), learners.inspector(trace, order))
        if order in trace.scale.backfiller_steps:
            evolved = learners.backfiller(trace, order)
            yield Team(row(order, "backfiller"), evolved.policy, "textbook", evolved, sample=False)
    first = trace.scale.orders[0]
    yield from _both_ways(row(first, "both, in turn"), learners.in_turn(trace, first))
    yield from _both_ways(row(first, "both, together"), learners.together(trace, first))


def _both_ways(name: str, learner: SeatLearner) -> Iterator[Contestant]:
    yield Team(name, learner.policy, "textbook", learner)
    yield Team(greedy(name), learner.policy, "textbook", learner, sample=False)


def _chance(scale: Scale) -> Iterator[Contestant]:
    for order in scale.orders:
        yield _untrained(row(order, "random inspector"), chance_inspecting(order))
    for order in scale.backfiller_steps:
        yield _untrained(row(order, "random backfiller"), chance_backfilling(order))


def _untrained(name: str, policy: Policy) -> Contestant:
    return Contestant(name, policy, "textbook")
