"""Measurements of DRAS's agents and their baselines: returns, job by job as they are chosen, and waits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.settings import Objective, reward_of
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result

__all__ = ["Earnings", "Measured", "Validation", "earned", "longest_large_wait", "reserves"]

REWARD, RESERVES, LARGEST_WAIT = "reward", "reserves", "max_wait_time_of_largest"

METRICS = (
    "mean_wait_time",
    "max_wait_time",
    "mean_response_time",
    "mean_slowdown",
    "utilisation",
    *(f"{mode}_{what}_share" for mode in ("backfilled", "ready", "reserved") for what in ("job", "area")),
)
"""Metrics of each run, of :data:`~hpcsimkit.results.metrics.METRICS`."""

LARGE = 0.2
"""Share of the nodes from which a job counts as large."""


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

    >>> from hpcsimkit import Pipeline, Simulation, Workload
    >>> from hpcsimkit.agents.dras.settings import reward_of
    >>> from hpcsimkit.policies import EASY
    >>> columns = {"submit_time": [0, 0], "run_time": [9, 4], "nodes": [1, 1]}
    >>> w, reward = Workload(columns, machine_size=1), reward_of("capacity", reserved=True)
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


def reserves(policy: Policy) -> bool:
    """Return whether jobs that do not fit get reservations."""
    return isinstance(policy, TwoLevel) or getattr(policy, "backfiller", None) is not None


def earned(scenario: Scenario, policy: Policy, reward: Reward) -> tuple[float, Result]:
    """Run a policy, and return its total reward and the schedule."""
    earnings = Earnings(reward, reserves=reserves(policy))
    result = scenario.simulation(policy, [reward, earnings]).run()
    return earnings.total, result


@dataclass(frozen=True)
class Validation:
    """Validation of an agent: its return on known jobs with greedy actions.

    Parameters
    ----------
    scenario : Scenario
        Jobs of the validation.
    policy : Policy
        Policy with the open seat.
    reward : Reward
        Reward of the agent.
    """

    scenario: Scenario
    policy: Policy
    reward: Reward

    def __call__(self, agent: Agent) -> float:
        """Return the agent's return; larger is better."""
        return earned(self.scenario, with_agent(self.policy, agent), self.reward)[0]


@dataclass(frozen=True)
class Measured:
    """Measures of a run: metrics of its jobs, the reward of an objective, and the longest wait of large jobs.

    Parameters
    ----------
    objective : {"capability", "capacity", "waiting"}
        Objective of the reward.
    """

    objective: Objective = "capability"

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures."""
        return (*METRICS, REWARD, RESERVES, LARGEST_WAIT)

    def reward(self, policy: Policy) -> Reward:
        """Return the reward of a policy."""
        return reward_of(self.objective, reserved=reserves(policy))

    def __call__(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Simulate a policy, and return the measures by name."""
        total, result = earned(scenario, policy, self.reward(policy))
        further = {REWARD: total, RESERVES: float(reserves(policy)), LARGEST_WAIT: longest_large_wait(result)}
        return {**measure(result, names=METRICS), **further}


def longest_large_wait(result: Result) -> float:
    """Return the maximum wait of jobs on a fifth of the nodes or more [s]; NaN if there are none."""
    waits = result.wait_time[result.amount >= LARGE * result.size]
    return float(waits.max()) if len(waits) else float("nan")
