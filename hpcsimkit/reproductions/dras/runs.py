"""Runs of policies on a part of a log: rewards, waits, schedules, choices of slots, and processor times."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.settings import WINDOW, Objective, dras_environment, hidden_of, reward_of
from hpcsimkit.agents.dras.trainer import DrasTrainer, Steps
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.two_level import TwoLevel
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import Meeting, with_agent
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.result import Result

__all__ = [
    "ENTROPY",
    "LARGEST",
    "MEASURED",
    "OFTEN",
    "REWARD",
    "SLOT_0",
    "ConstantSlot",
    "Earnings",
    "Habits",
    "Operation",
    "Overhead",
    "Run",
    "Validation",
    "best_of",
    "earned",
    "habits_of",
    "in_full_size",
    "kept",
    "reserves",
]

Floats = NDArray[np.float64]

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

RESULT, LARGE_NETWORK = "result.npz", 2000
"""File of a schedule, and width from which the first layer of a network counts as large."""

SLOT_0, OFTEN, LARGEST, ENTROPY = "slot 0", "taken most often", "largest probability", "entropy"
"""Keys of the choices of an agent.

They are the share of choices with slot 0 as the best action, the slot taken most often, and the means of the
largest probability and of the entropy as a share of that of a uniform choice.
"""

STEPS = 10
"""Number of decisions in an update: one for each scheduling instance."""


class ConstantSlot(Answering):
    """A policy that always picks the same slot of the window, or the last occupied one.

    It is the behaviour of an agent that has learned nothing about jobs.

    Parameters
    ----------
    slot : int
        Index of the slot, from 0, the job that has waited longest; slot 0 is equivalent to FCFS with EASY.

    Examples
    --------
    >>> from hpcsimkit import Simulation
    >>> w = Workload({"submit_time": [0, 0, 0], "run_time": [5, 5, 5], "nodes": [1] * 3}, machine_size=1)
    >>> Simulation(w, TwoLevel(ConstantSlot(slot=1))).run().start_time.tolist()
    [10, 0, 5]
    """

    def __init__(self, slot: int) -> None:
        super().__init__()
        self.slot = slot

    def answer(self, decision: Decision) -> int:
        """Return the slot, or the last one."""
        return min(self.slot, len(decision.options) - 1)


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

    >>> from hpcsimkit import Pipeline, Simulation
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


def in_full_size(kind: str, learner: Learner) -> str:
    """Return the type of a task, with a suffix if the network is for thousands of nodes."""
    settings: Any = learner.settings
    return f"{kind}{' in full size' * (max(settings.hidden, default=0) >= LARGE_NETWORK)}"


@dataclass(frozen=True)
class Run(Meeting):
    """A run of a policy on a part of a log; the schedule is saved in the task's folder.

    Parameters
    ----------
    objective : {"capability", "capacity"}
        Reward to measure.
    """

    objective: Objective = "capability"

    @property
    def reward(self) -> Reward:
        """Reward to measure."""
        return reward_of(self.objective, reserved=reserves(self.contestant.policy))

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
        return {**super().inputs(), "reward": self.reward}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, and save the schedule."""
        total, result = self.earned(replace(self.sequences.scenarios[0], seed=self.seed), folder.parent)
        result.save(folder / RESULT)
        tell(self.size)
        measured = {name: [float(value)] for name, value in evaluate(result, names=MEASURED).items()}
        return {**measured, REWARD: [total]}

    def earned(self, scenario: Scenario, store: Path) -> tuple[float, Result]:
        """Return the total reward and the schedule; `store` is the folder of all tasks."""
        return earned(scenario, self.contestant.scheduler(store), self.reward)


def kept(store: Store, task: Task) -> Result:
    """Return the saved schedule of a task."""
    return Result.load(store.folder(task) / RESULT)


def best_of(learners: Sequence[Learner], store: Path) -> Learner:
    """Return the learner with the highest validation reward; `store` is the folder of all tasks."""

    def earned_by(learner: Learner) -> float:
        about = trained_agent(learner, store / learner.name, sample=False).about or {}
        return float(about["validation"])

    return max(learners, key=earned_by)


@dataclass(frozen=True)
class Operation(Run):
    """A run of the best of some trained agents on a part of a log, with sampled actions.

    Parameters
    ----------
    learners : tuple of Learner
        Candidates; the best is chosen by its validation reward.
    update_every : int
        Number of scheduling instances between two updates of the agent; 0 if it does not continue to learn.
    """

    learners: tuple[Learner, ...] = ()
    update_every: int = 0

    @property
    def kind(self) -> str:
        """Type of the task, which depends on the size of the network."""
        return in_full_size("operation", self.learners[0])

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return tuple(learner.name for learner in self.learners)

    def inputs(self) -> Any:
        """Return the inputs of the task: learners, jobs and update interval."""
        return {**super().inputs(), "learners": self.learners, "update_every": self.update_every}

    def earned(self, scenario: Scenario, store: Path) -> tuple[float, Result]:
        """Return the total reward and the schedule of the best agent."""
        learner = best_of(self.learners, store)
        agent = trained_agent(learner, store / learner.name, sample=True)
        if not self.update_every:
            return earned(scenario, with_agent(learner.policy, agent), learner.reward)
        parts = (learner.episodes, learner.policy, learner.encoder, learner.mask, learner.reward)
        env = SchedulingEnv(*parts, stage=learner.stage, skip=learner.skip)
        trainer = learner.trainer_class(env, learner.settings, seed=self.seed)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin(agent)  # with a new state of the optimiser
        episode, _ = trainer.play(scenario, self.update_every)
        return trainer.earned, episode.result()


@dataclass(frozen=True)
class Habits(Meeting):
    """A run of a trained agent with greedy actions on a part of a log, in which its choices are recorded.

    They separate learning about jobs from learning about positions.
    """

    @property
    def learner(self) -> Learner:
        """Learner of the agent."""
        assert self.contestant.learner is not None
        return self.contestant.learner

    @property
    def name(self) -> str:
        """Name of the task: part of the log and learner."""
        return f"habits-{self.sequences.name}-{self.learner.name}"

    def run(self, folder: Path, tell: Tell) -> Mapping[str, float]:
        """Run the simulation, and return the statistics."""
        learner, scenario = self.learner, self.sequences.scenarios[0]
        agent = trained_agent(learner, folder.parent / learner.name, sample=False)
        player = Player(agent.encoder, agent.mask, learner.reward)
        episode = Episode(scenario, learner.policy, {learner.stage: player})
        observation = np.zeros(agent.encoder.shape, dtype=np.float32)
        valid = np.zeros(agent.mask.actions, dtype=np.bool_)
        slots, probabilities = [], []
        while episode.decision is not None:
            episode.write(observation, valid)
            actions = np.flatnonzero(valid)
            scores = agent.network.scores_of(observation, actions).astype(np.float64)
            slots.append(int(actions[scores.argmax()]))
            if learner.trainer != "dras-dql":  # its scores are values, not logits of probabilities
                powers = np.exp(scores - scores.max())
                probabilities.append(powers / powers.sum())
            episode.answer(slots[-1])
        tell(self.size)
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


@dataclass(frozen=True)
class Overhead(Task):
    """Decisions and updates of a learner with random weights, on observations of a full window (section 6.7).

    Parameters
    ----------
    algorithm : str
        Name of the learner.
    nodes : int
        Number of nodes of the machine; the size of the network is in proportion.
    repeats : int
        Number of updates measured; ten times as many decisions are measured.
    """

    algorithm: str
    nodes: int
    repeats: int

    kind = "overhead"

    @property
    def name(self) -> str:
        """Name of the task: learner and number of nodes."""
        return f"overhead-{self.algorithm}-{self.nodes}"

    @property
    def size(self) -> int:
        """Number of decisions in all updates."""
        return self.repeats * STEPS

    def inputs(self) -> Any:
        """Return the inputs of the task."""
        return {"algorithm": self.algorithm, "nodes": self.nodes, "repeats": self.repeats, "steps": STEPS}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Return processor times [s] (medians) and the number of weights."""
        trainer, rng = self._trainer(), np.random.default_rng(0)
        rows = trainer.env.encoder.shape[0]
        seen = rng.random((STEPS + 1, rows, 2), dtype=np.float32)
        steps = _steps(seen, rng)
        update = _median(lambda: trainer.learn(steps), self.repeats)
        network, actions = trainer.network(), np.arange(WINDOW)
        decision = _median(lambda: network.scores_of(seen[0], actions), 10 * self.repeats)
        tell(self.size)
        weights = sum(values.size for values in network.tensors.values())
        return {"weights": weights, "decision": decision, "update": update}

    def _trainer(self) -> DrasTrainer:
        """Return an untrained learner."""
        nobody = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=self.nodes)
        env = dras_environment(InTurn([nobody]), self.nodes, 86_400)
        kind = trainer_named(self.algorithm)
        settings: Any = replace(settings_of(kind)(), hidden=hidden_of(self.nodes))
        trainer = kind(env, settings)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin()
        return trainer


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
