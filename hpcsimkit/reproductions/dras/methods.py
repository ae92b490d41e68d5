"""Policies under test: DRAS's baselines, the four learners, Decima-PG, and rules that the paper lacks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

from hpcsimkit.agents.dras.settings import WINDOW
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import EASY, SJF, LargestFirst, Optimization, RandomOrder
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.dras.constant_slots import ConstantSlot
from hpcsimkit.reproductions.dras.data import Trace
from hpcsimkit.reproductions.dras.learners import Learners
from hpcsimkit.reproductions.dras.runs import REWARD, Method, Run
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.rivals import RULES, Field, parted
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = [
    "ADDED",
    "ADDED_AGENTS",
    "ADDED_RULES",
    "CHANCE",
    "DECIMA",
    "DRAS",
    "DRAWING",
    "EVOLVED",
    "FAMILIES",
    "FCFS",
    "OPTIMIZATION",
    "OUTSIDE",
    "RESERVING",
    "SLOTS",
    "Contest",
    "contests",
    "drawn",
    "family_of",
    "fields",
]

FCFS, OPTIMIZATION, BINPACKING, RANDOM = "FCFS/EASY", "Optimization", "BinPacking", "Random"
DECIMA = "Decima-PG"
SJF_EASY, CHANCE = "SJF/EASY", "Random, two levels"
SHORTEST, LARGEST = "Shortest, two levels", "Largest, two levels"
WAITING, EVOLVED = "DRAS-DQL, paid for short waits", "Evolved, two levels"
ADDED_RULES, ADDED_AGENTS = (SJF_EASY, CHANCE, SHORTEST, LARGEST), (WAITING, EVOLVED)

OUTSIDE = {name: rule for name, rule in RULES.items() if name not in (FCFS, SJF_EASY)}
"""Further heuristics of the kit."""


def slot_row(slot: int) -> str:
    """Return the row of a constant slot.

    >>> slot_row(3)
    'Slot 3, two levels'
    """
    return f"Slot {slot}, two levels"


SLOTS = {slot_row(slot): slot for slot in (1, 2, 4, 9, 24, 49)}
"""Rows of constant slots; slot 0 is FCFS/EASY."""


def family_of(algorithm: str) -> str:
    """Return the name of a learner in the tables.

    >>> family_of("dras-ppo")
    'DRAS-PPO'
    """
    return algorithm.upper()


def drawn(family: str) -> str:
    """Return the row of agents that sample their actions, as in training and in the paper.

    >>> drawn("DRAS-PG")
    'DRAS-PG, drawn'
    """
    return f"{family}, drawn"


DRAS = tuple(map(family_of, ("dras-dql", "dras-pg", "dras-a2c", "dras-ppo")))
DRAWING = DRAS[1:]
"""Learners with scores that are logits of probabilities; those of DRAS-DQL are values."""

ADDED = (*ADDED_RULES, *SLOTS, *OUTSIDE, *map(drawn, DRAWING), *ADDED_AGENTS)
"""Rows that the paper lacks."""

FAMILIES = (FCFS, OPTIMIZATION, BINPACKING, RANDOM, DECIMA, *DRAS)
"""Rows of the paper."""

RESERVING = (FCFS, *DRAS, *ADDED)
"""Rows with reservations and backfilling."""

Part = Literal["validation", "test"]


class Contest(NamedTuple):
    """All policies under test on one part of a log.

    Parameters
    ----------
    trace : Trace
        Log of the comparison.
    part : {"validation", "test"}
        Part of the log.
    contestants : sequence of Method
        Policies under test.
    rewards : tuple of Reward
        Rewards of policies with reservations, and of the others.
    """

    trace: Trace
    part: Part
    contestants: Sequence[Method]
    rewards: tuple[Reward, Reward]

    @property
    def sequences(self) -> SequenceSet:
        """Jobs of the part, in one run."""
        return self.trace.validation if self.part == "validation" else self.trace.test

    @property
    def meetings(self) -> dict[str, Run]:
        """Runs of all policies, by row."""
        return {each.name: self._run(each) for each in self.contestants}

    def _run(self, who: Method) -> Run:
        reward = self.rewards[0 if who.reserves else 1]
        return Run(who, self.sequences, self.trace.seed, reward=reward)

    def only(self, families: Collection[str]) -> Contest:
        """Return the comparison restricted to some policies."""
        return self._replace(contestants=[each for each in self.contestants if each.family in families])

    @property
    def families(self) -> dict[str, list[str]]:
        """Rows by name in the tables: agents with several seeds share a name."""
        found: dict[str, list[str]] = {}
        for each in self.contestants:
            found.setdefault(each.family, []).append(each.name)
        return found


def contests(learners: Learners, traces: Sequence[Trace]) -> Iterator[Contest]:
    """Yield two comparisons per log: baselines on the validation month, all policies on the test part."""
    for trace in traces:
        rewards = learners.dras(trace, trace.scale.learners[0]).reward, learners.decima(trace).reward
        rivals = list(_rivals(trace))
        yield Contest(trace, "validation", rivals, rewards)
        outside = [_untrained(name, rule) for name, rule in OUTSIDE.items()]
        yield Contest(trace, "test", [*rivals, *outside, *_agents(learners, trace)], rewards)


COLUMNS = {
    "mean wait [h]": ("mean_wait_time", 1 / HOUR),
    "maximum wait [d]": ("max_wait_time", 1 / DAY),
    "mean slowdown": ("mean_slowdown", 1.0),
    "reward": (REWARD, 1.0),
}


def fields(found: Sequence[Contest]) -> list[Field]:
    """Return the kit's further heuristics beside all other policies, on the test part of each log."""
    result = []
    for contest in found:
        if contest.part == "test":
            others, learned = parted(contest.meetings)
            rules = {row: tasks for row, tasks in others.items() if row in OUTSIDE}
            known = {row: tasks for row, tasks in others.items() if row not in OUTSIDE}
            result.append(Field(contest.trace.name, known, rules, learned, COLUMNS))
    return result


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
    for name, slot in SLOTS.items():
        yield _untrained(name, TwoLevel(ConstantSlot(slot), WINDOW))


def _agents(learners: Learners, trace: Trace) -> Iterator[Method]:
    scale = trace.scale
    for number in range(scale.decima_seeds):
        yield _agent(DECIMA, learners.decima(trace, number), number)
    for algorithm in scale.learners:
        for number in range(scale.seeds):
            yield _agent(family_of(algorithm), learners.dras(trace, algorithm, number), number)
        if family_of(algorithm) in DRAWING:
            for number in range(scale.seeds):
                learner = learners.dras(trace, algorithm, number)
                yield _agent(drawn(family_of(algorithm)), learner, number, sample=True)
    for number in range(scale.waiting_seeds):
        yield _agent(WAITING, learners.waiting(trace, number), number)
    for number in range(scale.evolved_seeds):
        yield _agent(EVOLVED, learners.evolved(trace, number), number)


def _untrained(name: str, policy: object) -> Method:
    assert isinstance(policy, Pipeline | TwoLevel | Optimization)
    return Method(name, policy, "textbook", family=name, reserves=name in RESERVING)


def _agent(family: str, learner: Learner, number: int, *, sample: bool = False) -> Method:
    return Method(
        f"{family} {number + 1}",
        learner.policy,
        "textbook",
        learner,
        sample=sample,
        family=family,
        reserves=family in RESERVING,
    )
