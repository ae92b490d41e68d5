"""Who schedules: DRAS's rivals, the four learners and Decima-PG, and rules that the paper does not have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from hpcsimkit.agents.dras.settings import WINDOW
from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.learning import Reward
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import EASY, SJF, LargestFirst, Optimization, RandomOrder
from hpcsimkit.policies.two_level import TwoLevel
from hpcsimkit.reproductions.dras.data import Trace
from hpcsimkit.reproductions.dras.learners import Learners
from hpcsimkit.reproductions.dras.runs import Method, Run
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = [
    "ADDED", "ADDED_AGENTS", "ADDED_RULES", "CHANCE", "DECIMA", "DRAS", "EVOLVED", "FAMILIES", "FCFS",
    "OPTIMIZATION", "RESERVING", "Contest", "contests", "family_of",
]  # fmt: skip

FCFS, OPTIMIZATION, BINPACKING, RANDOM = "FCFS/EASY", "Optimization", "BinPacking", "Random"
DECIMA = "Decima-PG"
SJF_EASY, CHANCE = "SJF/EASY", "Random, two levels"
SHORTEST, LARGEST = "Shortest, two levels", "Largest, two levels"
WAITING, EVOLVED = "DRAS-DQL, paid for short waits", "Evolved, two levels"
ADDED_RULES, ADDED_AGENTS = (SJF_EASY, CHANCE, SHORTEST, LARGEST), (WAITING, EVOLVED)
ADDED = (*ADDED_RULES, *ADDED_AGENTS)
"""Rows that the paper does not have."""


def family_of(algorithm: str) -> str:
    """Return what tables call a learner.

    >>> family_of("dras-ppo")
    'DRAS-PPO'
    """
    return algorithm.upper()


DRAS = tuple(map(family_of, ("dras-dql", "dras-pg", "dras-a2c", "dras-ppo")))
FAMILIES = (FCFS, OPTIMIZATION, BINPACKING, RANDOM, DECIMA, *DRAS)
"""Those of the paper."""

RESERVING = (FCFS, *DRAS, *ADDED)
"""Those with reservations and backfilling."""

Part = Literal["validation", "test"]


class Contest(NamedTuple):
    """Everybody on one part of a log.

    Parameters
    ----------
    trace : Trace
        Of which log.
    part : {"validation", "test"}
        Which part.
    contestants : sequence of Method
        Who schedules.
    rewards : tuple of Reward
        Of those who reserve, and of the others.
    """

    trace: Trace
    part: Part
    contestants: Sequence[Method]
    rewards: tuple[Reward, Reward]

    @property
    def sequences(self) -> SequenceSet:
        """The part, in one run."""
        return self.trace.validation if self.part == "validation" else self.trace.test

    @property
    def meetings(self) -> dict[str, Run]:
        """Runs of everybody, by row."""
        return {each.name: self._run(each) for each in self.contestants}

    def _run(self, who: Method) -> Run:
        reward = self.rewards[0 if who.reserves else 1]
        return Run(who, self.sequences, self.trace.seed, reward=reward)

    @property
    def families(self) -> dict[str, list[str]]:
        """Rows by what tables call them: agents of several seeds are one family."""
        found: dict[str, list[str]] = {}
        for each in self.contestants:
            found.setdefault(each.family, []).append(each.name)
        return found


def contests(learners: Learners, traces: Sequence[Trace]) -> Iterator[Contest]:
    """Yield all contests, two a log: rivals on the month to choose by, everybody on what is tested on."""
    for trace in traces:
        rewards = learners.dras(trace, trace.scale.learners[0]).reward, learners.decima(trace).reward
        rivals = list(_rivals(trace))
        yield Contest(trace, "validation", rivals, rewards)
        yield Contest(trace, "test", [*rivals, *_agents(learners, trace)], rewards)


def _rivals(trace: Trace) -> Iterator[Method]:
    by_chance = TwoLevel(RandomAgent(Slots(WINDOW)), WINDOW)
    yield _untrained(FCFS, Pipeline(backfiller=EASY()))
    yield _untrained(OPTIMIZATION, Optimization(trace.objective, window=WINDOW))
    yield _untrained(BINPACKING, Pipeline(LargestFirst(), fitting=True, window=WINDOW))
    yield _untrained(RANDOM, Pipeline(RandomOrder(), fitting=True, window=WINDOW))
    yield _untrained(SJF_EASY, Pipeline(SJF(), backfiller=EASY(SJF())))
    yield _untrained(CHANCE, by_chance)
    for name, order in ((SHORTEST, SJF()), (LARGEST, LargestFirst())):
        yield _untrained(name, Pipeline(order, backfiller=EASY(order), commit=True, window=WINDOW))


def _agents(learners: Learners, trace: Trace) -> Iterator[Method]:
    scale = trace.scale
    for number in range(scale.decima_seeds):
        yield _agent(DECIMA, learners.decima(trace, number), number)
    for algorithm in scale.learners:
        for number in range(scale.seeds):
            yield _agent(family_of(algorithm), learners.dras(trace, algorithm, number), number)
    for number in range(scale.waiting_seeds):
        yield _agent(WAITING, learners.waiting(trace, number), number)
    for number in range(scale.evolved_seeds):
        yield _agent(EVOLVED, learners.evolved(trace, number), number)


def _untrained(name: str, policy: object) -> Method:
    assert isinstance(policy, Pipeline | TwoLevel | Optimization)
    return Method(name, policy, "textbook", family=name, reserves=name in RESERVING)


def _agent(family: str, learner: Learner, number: int) -> Method:
    return Method(
        f"{family} {number + 1}", learner.policy, "textbook", learner, sample=False, family=family,
        reserves=family in RESERVING,
    )  # fmt: skip
