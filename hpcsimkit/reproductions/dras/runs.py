"""Runs of whoever schedules, on a whole part of a log: what they earn, how jobs wait, and the schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.job import Job
from hpcsimkit.learning import Reward
from hpcsimkit.metrics import evaluate
from hpcsimkit.observers import Observer
from hpcsimkit.policies.two_level import TwoLevel
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import Contestant, Meeting, with_agent
from hpcsimkit.reproductions.tasks import Shelf, Task, Tell
from hpcsimkit.result import Result
from hpcsimkit.scenario import Scenario
from hpcsimkit.system import System

__all__ = [
    "IN_FULL_SIZE", "MEASURED", "REWARD", "Earnings", "Method", "Run", "earned", "in_full_size", "keep",
    "kept", "seated",
]  # fmt: skip

REWARD = "reward"

MEASURED = (
    "mean_wait_time", "max_wait_time", "mean_response_time", "mean_slowdown", "utilisation",
    *(f"{mode}_{what}_share" for mode in ("backfilled", "ready", "reserved") for what in ("job", "area")),
)  # fmt: skip
"""What is measured of each run, of :data:`~hpcsimkit.metrics.METRICS`."""

RESULT = "result.npz"

IN_FULL_SIZE, LARGE_NETWORK = " in full size", 2000
"""How kinds of tasks end that are about large networks: those with so many numbers in their first layer."""


def in_full_size(kind: str, learner: Learner) -> str:
    """Return the kind of a task, or that of those that are about a network for thousands of nodes."""
    settings: Any = learner.settings
    return f"{kind}{IN_FULL_SIZE}" if max(settings.hidden, default=0) >= LARGE_NETWORK else kind


class Earnings(Observer):
    """Adds up what a reward pays, job by job as they are chosen, to whoever schedules.

    Parameters
    ----------
    reward : Reward
        An observer too, that is told before this one.
    reserves : bool
        A job is chosen when it gets a reservation, if it does, and else when it starts.

    Examples
    --------
    Of two jobs only one has room: it starts, the other has a reservation, and waits for 9 s.

    >>> from hpcsimkit import Simulation, Workload
    >>> from hpcsimkit.agents.rewards import Capacity
    >>> from hpcsimkit.decision import External
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
        """Nothing is earned yet."""
        self.total, self.choices = 0.0, 0
        self._reserved = set[int]()

    def on_block(self, job: Job, system: System) -> None:
        """Somebody got a reservation."""
        if self.reserves and job.index not in self._reserved:
            self._reserved.add(job.index)
            self._count(system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Somebody has started."""
        if job.index not in self._reserved:
            self._count(system)

    def on_finish(self, system: System) -> None:
        """Take what is left."""
        self.total += self.reward.take(system)

    def _count(self, system: System) -> None:
        self.total += self.reward.take(system)
        self.choices += 1


def earned(scenario: Scenario, policy: Policy, reward: Reward, *, reserves: bool) -> tuple[float, Result]:
    """Run a policy; returns what it earned in all, and the schedule."""
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
    """Who schedules a log.

    Parameters
    ----------
    family : str
        What tables call it; agents of several seeds are of one family.
    reserves : bool
        Jobs that do not fit get reservations.
    """

    family: str = ""
    reserves: bool = False

    def scheduler(self, shelf: Path) -> Policy:
        """Return who schedules; agents are found in the folder of all tasks."""
        if self.learner is None:
            return self.policy
        agent = trained_agent(self.learner, shelf / self.learner.name, sample=self.sample)
        return seated(self.policy, agent)


@dataclass(frozen=True)
class Run(Meeting):
    """A run of a method on a part of a log; the schedule stays in the folder.

    Parameters
    ----------
    reward : Reward, optional
        What is paid.
    """

    contestant: Method
    reward: Reward | None = None

    @property
    def kind(self) -> str:
        """Agents, and all others, who are faster; agents with large networks, who are slower."""
        learner = self.contestant.learner
        return super().kind if learner is None else in_full_size(super().kind, learner)

    @property
    def measures(self) -> tuple[str, ...]:
        """The keys of the outcome."""
        return (*MEASURED, REWARD)

    def inputs(self) -> Any:
        """Return who, on what, and what is paid."""
        return {**super().inputs(), "reward": self.reward, "reserves": self.contestant.reserves}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        assert self.reward is not None
        scenario = replace(self.sequences.scenarios[0], seed=self.seed)
        policy, reserves = self.contestant.scheduler(folder.parent), self.contestant.reserves
        total, result = earned(scenario, policy, self.reward, reserves=reserves)
        tell(self.size)
        return keep(result, folder, total)


def keep(result: Result, folder: Path, total: float) -> dict[str, list[float]]:
    """Write a schedule into the folder of its task; returns what is measured of it."""
    result.save(folder / RESULT)
    measured = {name: [float(value)] for name, value in evaluate(result, names=MEASURED).items()}
    return {**measured, REWARD: [total]}


def kept(shelf: Shelf, task: Task) -> Result:
    """Return the schedule that a task has left."""
    return Result.load(shelf.folder(task) / RESULT)
