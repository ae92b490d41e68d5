"""Who meets on which sequences: heuristics, agents alone and in pairs, and chance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hpcsimkit.policy import Policy
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
    """Return the row of an agent that takes the best action instead of drawing one."""
    return f"{name}, greedy"


RIVALS = tuple(row(order, "EASY-SJF") for order in ORDERS)
"""The heuristics; the better one of a log is to be beaten."""


@dataclass(frozen=True)
class Team(Contestant):
    """A pipeline with a trained agent on its open seat, and its partner, if it has one, on the other."""

    def scheduler(self, shelf: Path) -> Policy:
        """Return who schedules; agents are found in the folder of all tasks."""
        policy, learner = super().scheduler(shelf), self.learner
        if isinstance(learner, SeatLearner) and learner.partner is not None:
            return with_agent(policy, learner.partner_agent(shelf, sample=self.sample))
        return policy


class Contest(NamedTuple):
    """Everybody on the same sequences.

    Parameters
    ----------
    trace : Trace
        Of which log.
    sequences : SequenceSet
        On what they meet.
    contestants : sequence of Contestant
        Who meets.
    """

    trace: Trace
    sequences: SequenceSet
    contestants: Sequence[Contestant]

    @property
    def meetings(self) -> dict[str, Meeting]:
        """Runs of everybody, by row."""
        return {
            each.name: Meeting(each, self.sequences, self.trace.seed, promises=True)
            for each in self.contestants
        }

    @property
    def learned(self) -> list[str]:
        """Rows of trained agents."""
        return [each.name for each in self.contestants if each.learner is not None]


def contests(learners: Learners) -> Iterator[Contest]:
    """Yield all contests, one a log."""
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
    """Yield agents by order, each drawing its actions, and taking the best, as evolved ones always do."""
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
