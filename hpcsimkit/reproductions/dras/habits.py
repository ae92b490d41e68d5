"""Slot choices of a trained agent and their entropy, to separate learning about jobs from positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.episode import Episode, Player
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = ["ENTROPY", "LARGEST", "OFTEN", "SLOT_0", "Habits", "habits_of"]

SLOT_0, OFTEN, LARGEST, ENTROPY = "slot 0", "taken most often", "largest probability", "entropy"
"""Keys of the measurements.

They are the share of choices with slot 0 as the best action, the slot taken most often, and the means of the
largest probability and of the entropy as a share of that of a uniform choice.
"""


def habits_of(slots: NDArray[np.int64], probabilities: list[NDArray[np.float64]]) -> dict[str, float]:
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


def _entropy(probabilities: NDArray[np.float64]) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(scores - scores.max())
    found: NDArray[np.float64] = powers / powers.sum()
    return found


@dataclass(frozen=True)
class Habits(Task):
    """A run of a trained agent with greedy actions on a part of a log, in which its choices are recorded.

    Parameters
    ----------
    learner : Learner
        Learner of the agent, trained before.
    sequences : SequenceSet
        Jobs to schedule, in one run.
    has_probabilities : bool
        Whether the agent's scores are logits of probabilities rather than values.
    """

    learner: Learner
    sequences: SequenceSet
    has_probabilities: bool

    @property
    def name(self) -> str:
        """Name of the task: part of the log and learner."""
        return f"habits-{self.sequences.name}-{self.learner.name}"

    @property
    def kind(self) -> str:
        """Type of the task: that of runs of agents, which have the same rate."""
        return "runs of agents"

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return self.sequences.jobs

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return (self.learner.name,)

    def inputs(self) -> Any:
        """Return the inputs of the task: learner and jobs."""
        return {"learner": self.learner, "scenarios": self.sequences.scenarios, "as": self.has_probabilities}

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
            if self.has_probabilities:
                probabilities.append(_softmax(scores))
            episode.answer(slots[-1])
        tell(self.size)
        return {"choices": len(slots), **habits_of(np.array(slots, dtype=np.int64), probabilities)}
