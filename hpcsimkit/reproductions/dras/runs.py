"""Runs of policies on a whole part of a log: rewards, waits and the schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import Contestant, Meeting, with_agent
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.result import Result

__all__ = [
    "IN_FULL_SIZE",
    "MEASURED",
    "REWARD",
    "Earnings",
    "Method",
    "Run",
    "earned",
    "in_full_size",
    "keep",
    "kept",
    "seated",
]

REWARD = "reward"

MEASURED = (
    "mean_wait_time",
    "max_wait_time",
    "mean_response_time",
    "mean_slowdown",
    "utilisation",
    *(f"{mode}_{what}_share" for mode in ("backfilled", "ready", "reserved") for what in ("job", "area")),
)
"""Measures of each run, of :data:`~hpcsimkit.results.metrics.METRICS`."""

RESULT = "result.npz"

IN_FULL_SIZE, LARGE_NETWORK = " in full size", 2000
"""Suffix of task types with large networks, and the width from which a first layer counts as large."""


def in_full_size(kind: str, learner: Learner) -> str:
    """Return the type of a task, with the suffix if the network is for thousands of nodes."""
    settings: Any = learner.settings
    return f"{kind}{IN_FULL_SIZE}" if max(settings.hidden, default=0) >= LARGE_NETWORK else kind


class Earnings(Observer):
    """Observer that accumulates the reward of a policy, job by job as they are chosen.

    Parameters
    ----------
    reward : Reward
        Reward, itself an observer that is called before this one.
    reserves : bool
        Whether a job counts as chosen when it gets a reservation, if it does, or else when it starts.

    Examples
    --------
    Only one of two jobs fits: it starts, the other gets a reservation and waits for 9 s.

    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.agents.spaces.rewards import Capacity
    >>> from hpcsimkit.kernel.decision import External
    >>> columns = {"submit_time": [0, 0], "run_time": [9, 4], "nodes": [1, 1]}
    >>> w, reward = Workload(columns, machine_size=1), Capacity(reserved=True)
    >>> from hpcsimkit import Pipeline
    >>> from hpcsimkit.policies import EASY
    >>> earnings = Earnings(reward, reserves=True)
    >>> _ = Simulation(w, Pipeline(backfiller=EASY()), observers=[reward, earnings]).run()
    >>> earnings.total, earnings.choices
    (-0.5, 2)
    """

    def __init__(self, reward: Reward, *, reserves: bool) -> None:
        self.reward = reward
        self.reserves = reserves

    def on_begin(self, system: System) -> None:
        """Reset the totals."""
        self.total, self.choices = 0.0, 0
        self._reserved = set[int]()

    def on_block(self, job: Job, system: System) -> None:
        """Count a job that gets a reservation."""
        if self.reserves and job.index not in self._reserved:
            self._reserved.add(job.index)
            self._count(system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Count a job that starts without a reservation."""
        if job.index not in self._reserved:
            self._count(system)

    def on_finish(self, system: System) -> None:
        """Add the remaining reward."""
        self.total += self.reward.take(system)

    def _count(self, system: System) -> None:
        self.total += self.reward.take(system)
        self.choices += 1


def earned(scenario: Scenario, policy: Policy, reward: Reward, *, reserves: bool) -> tuple[float, Result]:
    """Run a policy, and return its total reward and the schedule."""
    earnings = Earnings(reward, reserves=reserves)
    result = scenario.simulation(policy, [reward, earnings]).run()
    return earnings.total, result


def seated(policy: Policy, agent: Agent) -> Policy:
    """Return a policy with an agent on its open seat."""
    if isinstance(policy, TwoLevel):
        return TwoLevel(agent, policy.window, policy.order)
    return with_agent(policy, agent)


@dataclass(frozen=True)
class Method(Contestant):
    """A policy under test on a log.

    Parameters
    ----------
    family : str
        Name in the tables; agents with several seeds share it.
    reserves : bool
        Whether jobs that do not fit get reservations.
    """

    family: str = ""
    reserves: bool = False

    def scheduler(self, store: Path) -> Policy:
        """Return the policy; agents are loaded from the folder of all tasks."""
        if self.learner is None:
            return self.policy
        agent = trained_agent(self.learner, store / self.learner.name, sample=self.sample)
        return seated(self.policy, agent)


@dataclass(frozen=True)
class Run(Meeting):
    """A run of a policy on a part of a log; the schedule is saved in the task's folder.

    Parameters
    ----------
    reward : Reward, optional
        Reward to measure.
    """

    contestant: Method
    reward: Reward | None = None

    @property
    def kind(self) -> str:
        """Type of the task: agents are slower than other policies, and slower still with large networks."""
        learner = self.contestant.learner
        return super().kind if learner is None else in_full_size(super().kind, learner)

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        return (*MEASURED, REWARD)

    def inputs(self) -> Any:
        """Return the inputs of the task: policy, jobs and reward."""
        return {**super().inputs(), "reward": self.reward, "reserves": self.contestant.reserves}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, and save the schedule."""
        assert self.reward is not None
        scenario = replace(self.sequences.scenarios[0], seed=self.seed)
        policy, reserves = self.contestant.scheduler(folder.parent), self.contestant.reserves
        total, result = earned(scenario, policy, self.reward, reserves=reserves)
        tell(self.size)
        return keep(result, folder, total)


def keep(result: Result, folder: Path, total: float) -> dict[str, list[float]]:
    """Write a schedule to the folder of its task, and return its measures."""
    result.save(folder / RESULT)
    measured = {name: [float(value)] for name, value in evaluate(result, names=MEASURED).items()}
    return {**measured, REWARD: [total]}


def kept(store: Store, task: Task) -> Result:
    """Return the saved schedule of a task."""
    return Result.load(store.folder(task) / RESULT)
