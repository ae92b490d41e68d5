"""Who schedules: heuristics with each allocation, the best allocation, CuSH, and an agent that evolved."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.masks import QueueSlots
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.job import Job
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import SJF, BreadthFirst, DepthFirst, DominantShare, FCFSShortest, SuitsKind
from hpcsimkit.policy import Order, Placement, Policy
from hpcsimkit.reproductions.cush.learners import FARTHER, SelectorsLearner
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.sequences import Contestant

__all__ = [
    "ADDED", "ALLOCATIONS", "BEST_ALLOCATION", "CUSH", "EVOLVED", "EVOLVED_IN_SIGHT", "FRESH", "HEURISTICS",
    "IN_SIGHT", "LEARNED", "RAND", "SELECTORS", "TAUGHT", "TRAINED", "Method", "ShortSighted", "evolved",
    "heuristics", "row", "trained",
]  # fmt: skip

CUSH, FRESH, TAUGHT = "CuSH", f"CuSH (fresh job sets, T = {FARTHER})", f"CuSH (taught, T = {FARTHER})"
TRAINED = (CUSH, FRESH, TAUGHT)
"""Families of CuSH's two networks: as published; on other job sets in each epoch, and seeing farther; the
latter, but taught by an agent that has evolved.
"""

EVOLVED, EVOLVED_IN_SIGHT = "Evolved (best allocation)", "Evolved (best allocation, in sight)"
LEARNED = (*TRAINED, EVOLVED, EVOLVED_IN_SIGHT)
"""And of agents that are not the paper's: one that knows what was requested, one that sees as far as CuSH."""

RAND = "Rand"

SELECTORS: Mapping[str, Callable[[CushProblem], object]] = {
    "FCFS": lambda problem: FCFSShortest(),
    "SJF": lambda problem: SJF(),
    "DRF": lambda problem: DominantShare(),
    RAND: lambda problem: RandomAgent(QueueSlots(problem.slots)),
}
"""Who selects jobs: of equals the one that came first. Rand draws anew at each decision."""

ALLOCATIONS: Mapping[str, Placement] = {"DF": DepthFirst(), "BF": BreadthFirst()}


def row(selector: str, allocation: str) -> str:
    """Return the name of a heuristic's row.

    >>> row("SJF", "BF")
    'SJF BF'
    """
    return f"{selector} {allocation}"


HEURISTICS = tuple(row(selector, allocation) for selector in SELECTORS for allocation in ALLOCATIONS)
"""The paper's rows."""

BEST_ALLOCATION = "SJF (best allocation)"
"""What a perfect policy selector alone is worth."""

IN_SIGHT = "SJF (best allocation, in sight)"
"""The same for who sees no further than CuSH: jobs that take longer are all alike."""

ADDED = (BEST_ALLOCATION, IN_SIGHT, *LEARNED[1:])
"""Rows that the paper does not have."""


class ShortSighted(Order):
    """Shortest requested time first, as far as it can be seen.

    Parameters
    ----------
    horizon : int
        Jobs that take longer than so many seconds are all alike.

    Examples
    --------
    >>> jobs = [Job(0, 1, 0, run_time=9, requested_time=time, nodes=1) for time in (3, 6, 20)]
    >>> [ShortSighted(horizon=5).key(job) for job in jobs]
    [3, 5, 5]
    """

    def __init__(self, *, horizon: int) -> None:
        self.horizon = horizon

    def key(self, job: Job) -> int:
        """Return what is seen of the requested time [s]."""
        return min(job.requested_time, self.horizon)


@dataclass(frozen=True)
class Method(Contestant):
    """Who schedules job sets.

    Parameters
    ----------
    family : str
        What tables call it; agents of several seeds are of one family.
    selectors : SelectorsLearner, optional
        Whose two agents take the two open seats.
    by_chance : bool
        It draws what it does.
    """

    family: str = ""
    selectors: SelectorsLearner | None = None
    by_chance: bool = False

    def scheduler(self, shelf: Path) -> Policy:
        """Return who schedules; agents are found in the folder of all tasks."""
        learner = self.selectors
        if learner is None:
            return super().scheduler(shelf)
        return learner.problem.pipeline(**learner.agents(shelf / learner.name, sample=self.sample))


def heuristics(problem: CushProblem) -> Iterator[Method]:
    """Yield the paper's eight rows, and SJF with the best allocation, for who sees all and who does not."""
    for selector, order in SELECTORS.items():
        for allocation, placement in ALLOCATIONS.items():
            name = row(selector, allocation)
            yield _untrained(name, problem.pipeline(order(problem), placement), by_chance=selector == RAND)
    yield _untrained(BEST_ALLOCATION, problem.pipeline(SJF(), SuitsKind()))
    yield _untrained(IN_SIGHT, problem.pipeline(ShortSighted(horizon=problem.horizon), SuitsKind()))


def _untrained(name: str, policy: Pipeline, *, by_chance: bool = False) -> Method:
    return Method(name, policy, "textbook", sample=False, family=name, by_chance=by_chance)


def trained(family: str, learners: Sequence[SelectorsLearner]) -> Iterator[Method]:
    """Yield CuSH's agents, each taking the best action, and drawing."""
    for learner in learners:
        number = learner.name.rpartition("-")[2]
        for sample in (False, True):
            name = f"{family} {number}{', drawn' * sample}"
            yield Method(
                name, learner.problem.pipeline(), "textbook", sample=sample, family=family,
                selectors=learner, by_chance=sample,
            )  # fmt: skip


def evolved(family: str, learners: Sequence[Learner]) -> Iterator[Method]:
    """Yield agents that have evolved, taking the best action, as they always do."""
    for number, learner in enumerate(learners, start=1):
        yield Method(f"{family} {number}", learner.policy, "textbook", learner, sample=False, family=family)
