"""Who meets on the days: heuristics, chance, and the trained agents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masks import JobMachine
from hpcsimkit.campaigns.evaluation import RandomAgent
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import FCFS, SJF, BestFitBinPacking, OracleSJF
from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.policies.placements import BestFit, FirstFit
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.masked_ppo.data import Beocat, Days
from hpcsimkit.reproductions.masked_ppo.family import Family, ForDay, row_of
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.resource_metrics import resource_utilisation, snapshot_utilisation
from hpcsimkit.result import Result
from hpcsimkit.simulation import Simulation

__all__ = ["BASELINES", "CONTROLS", "Contestant", "Playing", "contestants"]

VERSION = 1
"""Of what is measured of a run."""

QUEUE_DEPTHS = (10, 60, 100)

BASELINES: dict[str, Policy] = {
    "Oracle SJF": Pipeline(order=OracleSJF(), placement=FirstFit(), fitting=True),
    "SJF": Pipeline(order=SJF(), placement=FirstFit(), fitting=True),
    "BFBP": BestFitBinPacking(),
    "FCFS": Pipeline(order=FCFS(), placement=FirstFit()),
}
"""The paper's four, as its code has them."""

CONTROLS: dict[str, Policy] = {
    "SJF + best fit": Pipeline(order=SJF(), placement=BestFit(), fitting=True),
    **{
        f"random, K = {depth}": Dispatch(RandomAgent(JobMachine(depth, len(NINE_MACHINES))), slots=depth)
        for depth in QUEUE_DEPTHS
    },
}
"""What the paper lacks: best fit for SJF, and any valid action, drawn by chance."""


@dataclass(frozen=True)
class Contestant:
    """Who schedules the days.

    Parameters
    ----------
    name : str
        Unique, and fit to be the name of a folder.
    row : str
        The row of the tables; several contestants may be of one.
    policy : Policy, optional
        What schedules; or
    learner : Learner, optional
        whose agent does,
    sample : bool
        which draws its actions or takes the best.
    seeds : tuple of int
        Of its runs on each day.
    for_day : callable, optional
        What it knows on a day.
    """

    name: str
    row: str
    policy: Policy | None = None
    learner: Learner | None = None
    sample: bool = False
    seeds: tuple[int, ...] = (0,)
    for_day: ForDay | None = None

    def scheduler(self, shelf: Path) -> Policy:
        """Return who schedules; agents are found in the folder of all tasks."""
        if self.learner is None:
            assert self.policy is not None
            return self.policy
        seat = self.learner.policy
        assert isinstance(seat, Dispatch)
        taken = copy(seat)
        taken.seat = trained_agent(self.learner, shelf / self.learner.name, sample=self.sample)
        return taken


@dataclass(frozen=True)
class Playing(Task):
    """All runs of a contestant; the outcome is a row a run: day, seed, and what was measured.

    Parameters
    ----------
    contestant : Contestant
        Who schedules.
    days : mapping of date to Workload
        What.
    """

    contestant: Contestant
    days: Days

    @property
    def name(self) -> str:
        """That of the contestant."""
        return f"days-{self.contestant.name}"

    @property
    def kind(self) -> str:
        """Heuristics are faster than who is asked for each job."""
        return "heuristics" if self.contestant.policy in BASELINES.values() else "playing"

    @property
    def size(self) -> int:
        """A decision a job."""
        return sum(map(len, self.days.values())) * len(self.contestant.seeds)

    def inputs(self) -> Any:
        """Return who, and on what."""
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
        """Simulate."""
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
    """Return the mean wait [min], the paper's utilisation, and the one by time and capacity [%]."""
    begin, end = int(result.submit_time.min()), int(np.max(result.end_time))
    used = [resource_utilisation(result, name, begin, end) for name in NINE_MACHINES.resources]
    by_snapshots = snapshot_utilisation(result, begin, end)
    return float(result.wait_time.mean()) / 60, 100 * by_snapshots, 100 * float(np.mean(used))


def contestants(beocat: Beocat, families: Sequence[Family]) -> Iterator[Contestant]:
    """Yield all who meet on the days."""
    for name, policy in BASELINES.items():
        yield Contestant(_file_name(name), name, policy)
    for name, policy in CONTROLS.items():
        by_chance = isinstance(policy, Dispatch)
        seeds = range(beocat.seed, beocat.seed + beocat.scale.random_seeds) if by_chance else (0,)
        yield Contestant(_file_name(name), name, policy, seeds=tuple(seeds))
    for family in families:
        for name, policy in family.controls.items():
            yield Contestant(_file_name(name), name, policy, for_day=family.for_day)
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


def _file_name(row: str) -> str:
    """Return the row's name without what folders had better not hold.

    >>> _file_name("random, K = 10"), _file_name("SJF + best fit")
    ('random-k-10', 'sjf-best-fit')
    """
    return "-".join("".join(each if each.isalnum() else " " for each in row.lower()).split())
