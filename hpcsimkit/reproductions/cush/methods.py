"""Policies under test: heuristics with each allocation, the best allocation, CuSH, cross-entropy agents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.masks import QueueSlots
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Placement, Policy
from hpcsimkit.policies import (
    EASY,
    FCFS,
    SJF,
    BreadthFirst,
    Conservative,
    DepthFirst,
    DominantShare,
    FCFSShortest,
    SuitsKind,
    XFactor,
)
from hpcsimkit.reproductions.cush.learners import FARTHER, SelectorsLearner
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.sequences import Contestant

__all__ = [
    "ADDED",
    "ALLOCATIONS",
    "BEST_ALLOCATION",
    "CUSH",
    "EVOLVED",
    "EVOLVED_IN_SIGHT",
    "EVOLVED_ON_ALL",
    "FRESH",
    "HEURISTICS",
    "IN_SIGHT",
    "LEARNED",
    "OUTSIDE",
    "RAND",
    "SELECTORS",
    "TAUGHT",
    "TRAINED",
    "Method",
    "ShortSighted",
    "evolved",
    "heuristics",
    "outsiders",
    "row",
    "trained",
]

CUSH, FRESH, TAUGHT = "CuSH", f"CuSH (fresh job sets, T = {FARTHER})", f"CuSH (taught, T = {FARTHER})"
TRAINED = (CUSH, FRESH, TAUGHT)
"""Groups of agents with CuSH's two networks.

They are trained as published; on new job sets in each epoch, with a longer horizon; and with the longer
horizon by imitation of a cross-entropy agent.
"""

EVOLVED, EVOLVED_IN_SIGHT = "Evolved (best allocation)", "Evolved (best allocation, in sight)"
EVOLVED_ON_ALL = "Evolved (best allocation, whole queue)"
LEARNED = (*TRAINED, EVOLVED, EVOLVED_IN_SIGHT, EVOLVED_ON_ALL)
"""Groups of all agents; beyond CuSH's networks, the cross-entropy agents that the paper lacks.

One knows the requested times, one has CuSH's horizon, and one selects among all waiting jobs instead of five.
"""

RAND = "Rand"

SELECTORS: Mapping[str, Callable[[CushProblem], object]] = {
    "FCFS": lambda problem: FCFSShortest(),
    "SJF": lambda problem: SJF(),
    "DRF": lambda problem: DominantShare(),
    RAND: lambda problem: RandomAgent(QueueSlots(problem.slots)),
}
"""Job selectors; ties go to the job that was submitted first. Rand samples anew at each decision."""

ALLOCATIONS: Mapping[str, Placement] = {"DF": DepthFirst(), "BF": BreadthFirst()}


def row(selector: str, allocation: str) -> str:
    """Return the name of a heuristic's row.

    >>> row("SJF", "BF")
    'SJF BF'
    """
    return f"{selector} {allocation}"


HEURISTICS = tuple(row(selector, allocation) for selector in SELECTORS for allocation in ALLOCATIONS)
"""Heuristic rows of the paper."""

BEST_ALLOCATION = "SJF (best allocation)"
"""Row that shows the value of a perfect policy selector alone."""

IN_SIGHT = "SJF (best allocation, in sight)"
"""Row of the same with CuSH's horizon: all longer jobs are alike."""


def _easy(order: Order, placement: Placement, window: int | None = None) -> Pipeline:
    """Return EASY behind an order of the oldest jobs; it backfills from the whole queue."""
    return Pipeline(order, placement=placement, backfiller=EASY(order), window=window, max_interval=1)


def _greedy(problem: CushProblem, window: int | None) -> Pipeline:
    """Return SJF with the best allocation, selecting among more jobs than CuSH observes."""
    pipeline = problem.pipeline(SJF(), SuitsKind())
    pipeline.window = window
    return pipeline


OUTSIDE: Mapping[str, Callable[[CushProblem], Pipeline]] = {
    "SJF (best allocation, of ten jobs)": lambda problem: _greedy(problem, 10),
    "SJF (best allocation, whole queue)": lambda problem: _greedy(problem, None),
    "SJF + EASY DF (order of five)": lambda problem: _easy(SJF(), DepthFirst(), problem.slots),
    "SJF + EASY BF (order of five)": lambda problem: _easy(SJF(), BreadthFirst(), problem.slots),
    "SJF + EASY (best allocation, order of five)": lambda problem: _easy(SJF(), SuitsKind(), problem.slots),
    "SJF + EASY (best allocation)": lambda problem: _easy(SJF(), SuitsKind()),
    "XFactor + EASY (best allocation)": lambda problem: _easy(XFactor(), SuitsKind()),
    "FCFS + EASY (best allocation)": lambda problem: _easy(FCFS(), SuitsKind()),
    "SJF + conservative (best allocation)": lambda problem: Pipeline(
        SJF(), placement=SuitsKind(), backfiller=Conservative()
    ),
}
"""Heuristics of the kit that the paper lacks, with reservations or with more than five candidates."""

ADDED = (BEST_ALLOCATION, IN_SIGHT, *OUTSIDE, *LEARNED[1:])
"""Rows that the paper lacks."""


class ShortSighted(Order):
    """Shortest requested time first, up to a horizon.

    Parameters
    ----------
    horizon : int
        Maximum requested time that is distinguished [s]; all longer jobs are alike.

    Examples
    --------
    >>> jobs = [Job(0, 1, 0, run_time=9, requested_time=time, nodes=1) for time in (3, 6, 20)]
    >>> [ShortSighted(horizon=5).key(job) for job in jobs]
    [3, 5, 5]
    """

    def __init__(self, *, horizon: int) -> None:
        self.horizon = horizon

    def key(self, job: Job) -> int:
        """Return the requested time up to the horizon [s]."""
        return min(job.requested_time, self.horizon)


@dataclass(frozen=True)
class Method(Contestant):
    """A policy under test on job sets.

    Parameters
    ----------
    family : str
        Name in the tables; agents with several seeds share it.
    selectors : SelectorsLearner, optional
        Learner of the two agents on the two open seats.
    by_chance : bool
        Whether the policy is stochastic.
    """

    family: str = ""
    selectors: SelectorsLearner | None = None
    by_chance: bool = False

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return super().requires if self.selectors is None else (self.selectors.name,)

    def scheduler(self, store: Path) -> Policy:
        """Return the policy; agents are loaded from the folder of all tasks."""
        learner = self.selectors
        if learner is None:
            return super().scheduler(store)
        return learner.problem.pipeline(**learner.agents(store / learner.name, sample=self.sample))


def heuristics(problem: CushProblem) -> Iterator[Method]:
    """Yield the paper's eight rows, and SJF with the best allocation, with and without CuSH's horizon."""
    for selector, order in SELECTORS.items():
        for allocation, placement in ALLOCATIONS.items():
            name = row(selector, allocation)
            yield _untrained(name, problem.pipeline(order(problem), placement), by_chance=selector == RAND)
    yield _untrained(BEST_ALLOCATION, problem.pipeline(SJF(), SuitsKind()))
    yield _untrained(IN_SIGHT, problem.pipeline(ShortSighted(horizon=problem.horizon), SuitsKind()))


def outsiders(problem: CushProblem) -> Iterator[Method]:
    """Yield the heuristics of the kit that the paper lacks."""
    for name, made in OUTSIDE.items():
        yield _untrained(name, made(problem))


def _untrained(name: str, policy: Pipeline, *, by_chance: bool = False) -> Method:
    return Method(name, policy, "textbook", sample=False, family=name, by_chance=by_chance)


def trained(family: str, learners: Sequence[SelectorsLearner]) -> Iterator[Method]:
    """Yield CuSH's agents, each with greedy and with sampled actions."""
    for learner in learners:
        number = learner.name.rpartition("-")[2]
        for sample in (False, True):
            name = f"{family} {number}{', drawn' * sample}"
            yield Method(
                name,
                learner.problem.pipeline(),
                "textbook",
                sample=sample,
                family=family,
                selectors=learner,
                by_chance=sample,
            )


def evolved(family: str, learners: Sequence[Learner]) -> Iterator[Method]:
    """Yield cross-entropy agents, which are always greedy."""
    for number, learner in enumerate(learners, start=1):
        yield Method(f"{family} {number}", learner.policy, "textbook", learner, sample=False, family=family)
