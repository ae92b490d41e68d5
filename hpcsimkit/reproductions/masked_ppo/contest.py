"""Policies under test on the days: heuristics, random agents, trained agents, the kit's heuristics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.evaluation import RandomAgent
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import (
    EASY,
    FCFS,
    SAF,
    SJF,
    SRF,
    UNICEF,
    WFP3,
    BestFit,
    BestFitBinPacking,
    Conservative,
    OracleSJF,
    XFactor,
)
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.placing.placements import FirstFit
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.masked_ppo.data import Beocat, Days
from hpcsimkit.reproductions.masked_ppo.learners import BASELINE, Family, ForDay, row_of
from hpcsimkit.reproductions.masked_ppo.scores import WAIT
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.results.resource_metrics import resource_utilisation, snapshot_utilisation
from hpcsimkit.results.result import Result

__all__ = ["BASELINES", "CONTROLS", "RULES", "Contestant", "Playing", "contestants", "fields", "file_name"]


VERSION = 1
"""Version of the measurements of a run."""

QUEUE_DEPTHS = (10, 60, 100)

BASELINES: dict[str, Policy] = {
    "Oracle SJF": Pipeline(order=OracleSJF(), placement=FirstFit(), fitting=True),
    "SJF": Pipeline(order=SJF(), placement=FirstFit(), fitting=True),
    "BFBP": BestFitBinPacking(),
    "FCFS": Pipeline(order=FCFS(), placement=FirstFit()),
}
"""The paper's four baselines, as in its code."""

CONTROLS: dict[str, Policy] = {
    "SJF + best fit": BASELINE,
    **{
        f"random, K = {depth}": Dispatch(RandomAgent(JobMachine(depth, len(NINE_MACHINES))), slots=depth)
        for depth in QUEUE_DEPTHS
    },
}
"""Baselines that the paper lacks: SJF with best fit, and a random choice of valid actions."""

ORACLE = "Oracle SJF"
"""Row excluded from the baselines, as it knows actual run times."""

ORDERS = (SJF, SAF, SRF, XFactor, UNICEF, WFP3)

RULES: Mapping[str, Pipeline] = {
    **{
        f"{order.__name__}/EASY + best fit": Pipeline(order(), placement=BestFit(), backfiller=EASY())
        for order in ORDERS
    },
    **{
        f"{order.__name__} + best fit": Pipeline(order(), placement=BestFit(), fitting=True)
        for order in ORDERS
        if order is not SJF
    },
    "FCFS/EASY(SJF) + best fit": Pipeline(placement=BestFit(), backfiller=EASY(SJF())),
    "SJF/conservative + best fit": Pipeline(SJF(), placement=BestFit(), backfiller=Conservative()),
}
"""Heuristics beyond the paper's and the page's; those without EASY use greedy list scheduling."""


@dataclass(frozen=True)
class Contestant:
    """A policy under test on the days.

    Parameters
    ----------
    name : str
        Unique name, valid as a folder name.
    row : str
        Row of the tables; several policies under test may share one.
    policy : Policy, optional
        Scheduling policy, if there is no learner.
    learner : Learner, optional
        Learner of the agent, if there is no policy.
    sample : bool
        Whether the agent samples its actions or takes the best.
    seeds : tuple of int
        Random seeds of its runs on each day.
    for_day : callable, optional
        Function that restricts the scheduler's knowledge on a day; see
        ``ForDay`` of the module ``family``.
    """

    name: str
    row: str
    policy: Policy | None = None
    learner: Learner | None = None
    sample: bool = False
    seeds: tuple[int, ...] = (0,)
    for_day: ForDay | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return () if self.learner is None else (self.learner.name,)

    def scheduler(self, store: Path) -> Policy:
        """Return the policy; agents are loaded from the folder of all tasks."""
        if self.learner is None:
            assert self.policy is not None
            return self.policy
        seat = self.learner.policy
        assert isinstance(seat, Dispatch)
        taken = copy(seat)
        taken.seat = trained_agent(self.learner, store / self.learner.name, sample=self.sample)
        return taken


@dataclass(frozen=True)
class Playing(Task):
    """All runs of a policy under test; the outcome has a row per run: day, seed and measurements.

    Parameters
    ----------
    contestant : Contestant
        Policy under test.
    days : mapping of date to Workload
        Jobs of each day.
    """

    contestant: Contestant
    days: Days

    @property
    def name(self) -> str:
        """Name of the task: that of the policy under test, with a prefix."""
        return f"days-{self.contestant.name}"

    @property
    def kind(self) -> str:
        """Type of the task: heuristics are faster than agents, which decide job by job."""
        return "heuristics" if self.contestant.policy in BASELINES.values() else "playing"

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return sum(map(len, self.days.values())) * len(self.contestant.seeds)

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return self.contestant.requires

    def inputs(self) -> Any:
        """Return the inputs of the task: policy and days."""
        contestant = self.contestant
        who = contestant.policy if contestant.learner is None else (contestant.learner, contestant.sample)
        knows = {} if contestant.for_day is None else {"for_day": contestant.for_day}
        return {
            **knows,
            "who": who,
            "seeds": contestant.seeds,
            "days": self.days,
            "on": NINE_MACHINES,
            "version": VERSION,
        }

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulations."""
        policy, done, rows = self.contestant.scheduler(folder.parent), 0, []
        for_day = self.contestant.for_day
        for day, jobs in self.days.items():
            scheduler = policy if for_day is None else for_day(policy, jobs)  # type: ignore[arg-type]
            for seed in self.contestant.seeds:
                result = Simulation(jobs, scheduler, NINE_MACHINES, seed=seed).run()
                rows.append([str(day), seed, *measured(result)])
                done += len(jobs)
                tell(done)
        return rows


def measured(result: Result) -> tuple[float, float, float]:
    """Return mean wait [min], the paper's utilisation [%], and that by time and capacity [%]."""
    begin, end = int(result.submit_time.min()), int(np.max(result.end_time))
    used = [resource_utilisation(result, name, begin, end) for name in NINE_MACHINES.resources]
    by_snapshots = snapshot_utilisation(result, begin, end)
    return float(result.wait_time.mean()) / 60, 100 * by_snapshots, 100 * float(np.mean(used))


def contestants(beocat: Beocat, families: Sequence[Family]) -> Iterator[Contestant]:
    """Yield all policies under test."""
    for name, policy in BASELINES.items():
        yield Contestant(file_name(name), name, policy)
    for name, policy in CONTROLS.items():
        by_chance = isinstance(policy, Dispatch)
        seeds = range(beocat.seed, beocat.seed + beocat.scale.random_seeds) if by_chance else (0,)
        yield Contestant(file_name(name), name, policy, seeds=tuple(seeds))
    for family in families:
        for name, policy in family.controls.items():
            yield Contestant(file_name(name), name, policy, for_day=family.for_day)
        for metric, learners in family.learners.items():
            for learner in learners:
                for sample in family.samples:
                    name = f"{learner.name}-{'sampled' if sample else 'greedy'}"
                    row = row_of(family.name, metric, sample=sample)
                    yield Contestant(
                        name,
                        row,
                        learner=learner,
                        sample=sample,
                        seeds=(learner.seed,),
                        for_day=family.for_day,
                    )


def file_name(row: str) -> str:
    """Return the row's name without characters that are unsuitable in folder names.

    >>> file_name("random, K = 10"), file_name("SJF + best fit")
    ('random-k-10', 'sjf-best-fit')
    """
    return "-".join("".join(each if each.isalnum() else " " for each in row.lower()).split())


def fields(beocat: Beocat, plays: Sequence[Playing]) -> list[Field]:
    """Return a field for each set of days; all policies run on all days."""
    known = {row: [play] for row, play in _untrained(plays).items() if row != ORACLE}
    rules = {
        row: [Playing(Contestant(file_name(row), row, rule), beocat.all_days)] for row, rule in RULES.items()
    }
    learned: dict[str, list[Playing]] = {}
    for play in plays:
        if play.contestant.learner is not None:
            learned.setdefault(play.contestant.row, []).append(play)
    columns = {"mean wait [min]": (WAIT, 1.0)}
    sets = {"days of the test": beocat.test_days, "unseen days": beocat.unseen_days}
    return [
        Field(name, known, rules, learned, columns, partial(waits_on, frozenset(map(str, days))))
        for name, days in sets.items()
    ]


def _untrained(plays: Sequence[Playing]) -> dict[str, Playing]:
    return {play.contestant.row: play for play in plays if play.contestant.row in (*BASELINES, *CONTROLS)}


def waits_on(days: frozenset[str], outcome: Sequence[Sequence[Any]]) -> dict[str, list[float]]:
    """Return the mean waits on some days, averaged over runs.

    >>> waits_on(frozenset({"d2"}), [["d1", 0, 1.0], ["d2", 0, 4.0], ["d2", 1, 6.0]])
    {'wait': [5.0]}
    """
    runs: dict[str, list[float]] = {}
    for day, _, wait, *_ in outcome:
        if day in days:
            runs.setdefault(day, []).append(wait)
    return {WAIT: [float(np.mean(runs[day])) for day in sorted(runs)]}
