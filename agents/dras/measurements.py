"""Measurements of DRAS's agents and their rivals: returns, choices of slots, and processor times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.settings import WINDOW, dras_environment, hidden_of
from hpcsimkit.agents.dras.trainer import DrasTrainer, Steps
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.results.result import Result

__all__ = [
    "ENTROPY",
    "LARGEST",
    "OFTEN",
    "SLOT_0",
    "STEPS",
    "Earnings",
    "Validation",
    "choices_of",
    "earned",
    "habits_of",
    "processor_times",
    "reserves",
]

Floats = NDArray[np.float64]

SLOT_0, OFTEN, LARGEST, ENTROPY = "slot 0", "taken most often", "largest probability", "entropy"
"""Keys of the choices of an agent.

They are the share of choices with slot 0 as the best action, the slot taken most often, and the means of the
largest probability and of the entropy as a share of that of a uniform choice.
"""

STEPS = 10
"""Number of decisions in an update: one for each scheduling instance."""


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


def choices_of(
    agent: Agent, policy: Policy, reward: Reward, scenario: Scenario, *, scores_are_logits: bool
) -> dict[str, float]:
    """Run an agent with greedy actions; return statistics of its decisions with a choice.

    They separate learning about jobs from learning about positions.

    Parameters
    ----------
    agent : Agent
        The agent.
    policy : Policy
        Policy with the open seat.
    reward : Reward
        Reward of the agent.
    scenario : Scenario
        Jobs to schedule.
    scores_are_logits : bool
        Whether scores are logits of probabilities; those of DRAS-DQL are values.
    """
    episode = Episode(scenario, policy, {agent.stage: Player(agent.encoder, agent.mask, reward)})
    observation = np.zeros(agent.encoder.shape, dtype=np.float32)
    valid = np.zeros(agent.mask.actions, dtype=np.bool_)
    slots: list[int] = []
    probabilities: list[Floats] = []
    while episode.decision is not None:
        episode.write(observation, valid)
        actions = np.flatnonzero(valid)
        scores = agent.network.scores_of(observation, actions).astype(np.float64)
        slots.append(int(actions[scores.argmax()]))
        if scores_are_logits:
            powers = np.exp(scores - scores.max())
            probabilities.append(powers / powers.sum())
        episode.answer(slots[-1])
    return {"choices": len(slots), **habits_of(np.array(slots, dtype=np.int64), probabilities)}


def habits_of(slots: NDArray[np.int64], probabilities: list[Floats]) -> dict[str, float]:
    """Return statistics of an agent's decisions with a choice.

    Parameters
    ----------
    slots : array of int, shape (decisions,)
        Slot taken in each decision.
    probabilities : list of array of float
        Probabilities of all actions of each decision; empty if the agent has none.

    Examples
    --------
    >>> even, sure = np.array([0.5, 0.5]), np.array([1.0, 0.0])
    >>> habits_of(np.array([0, 0, 2, 0]), [even, sure])
    {'slot 0': 0.75, 'taken most often': 0.0, 'largest probability': 0.75, 'entropy': 0.5}
    """
    found = {
        SLOT_0: float((slots == 0).mean()) if len(slots) else float("nan"),
        OFTEN: float(np.bincount(slots).argmax()) if len(slots) else float("nan"),
    }
    if probabilities:
        found[LARGEST] = float(np.mean([each.max() for each in probabilities]))
        found[ENTROPY] = float(np.mean([_entropy(each) / np.log(len(each)) for each in probabilities]))
    return found


def _entropy(probabilities: Floats) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())


def processor_times(algorithm: str, nodes: int, repeats: int) -> dict[str, float]:
    """Measure an algorithm with random weights, on observations of a full window (section 6.7).

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.
    nodes : int
        Number of nodes of the machine; the size of the network is in proportion.
    repeats : int
        Number of updates, from `STEPS` decisions each; ten times as many decisions are measured.

    Returns
    -------
    dict
        Number of ``weights``, and medians of the processor times of a ``decision`` and an ``update`` [s].
    """
    nobody = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=nodes)
    kind = trainer_named(algorithm)
    settings: Any = replace(settings_of(kind)(), hidden=hidden_of(nodes))
    trainer = kind(dras_environment(InTurn([nobody]), nodes, 86_400), settings)
    assert isinstance(trainer, DrasTrainer)
    trainer.begin()
    rng = np.random.default_rng(0)
    seen = rng.random((STEPS + 1, trainer.env.encoder.shape[0], 2), dtype=np.float32)
    steps = _steps(seen, rng)
    update = _median(lambda: trainer.learn(steps), repeats)
    network, actions = trainer.network(), np.arange(WINDOW)
    decision = _median(lambda: network.scores_of(seen[0], actions), 10 * repeats)
    weights = sum(values.size for values in network.tensors.values())
    return {"weights": weights, "decision": decision, "update": update}


def _steps(seen: NDArray[np.float32], rng: np.random.Generator) -> Steps:
    """Return ten decisions with full windows."""
    import torch

    rows = torch.from_numpy(seen)
    valid = torch.ones((len(rows), WINDOW), dtype=torch.bool)
    actions = torch.from_numpy(rng.integers(WINDOW, size=STEPS))
    rewards = torch.from_numpy(rng.random(STEPS, dtype=np.float32))
    return Steps(rows[:-1], valid[:-1], actions, rewards, rows[1:], valid[1:])


def _median(work: Callable[[], object], repeats: int) -> float:
    """Return the median processor time of a function [s], after one warm-up call."""
    work()
    found = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return float(np.median(found))
