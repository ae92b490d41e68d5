"""The best agent of a type in operation: as trained, or with continued learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.trainer import DrasTrainer
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.reproductions.dras.runs import earned, in_full_size, keep, seated
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.results.result import Result

__all__ = ["Operation", "best_of"]


def best_of(learners: Sequence[Learner], store: Path) -> Learner:
    """Return the learner with the highest validation reward; `store` is the folder of all tasks."""

    def earned_by(learner: Learner) -> float:
        about = trained_agent(learner, store / learner.name, sample=False).about or {}
        return float(about["validation"])

    return max(learners, key=earned_by)


@dataclass(frozen=True)
class Operation(Task):
    """A run of the best of some trained agents on the test part, with sampled actions.

    Parameters
    ----------
    learners : tuple of Learner
        Candidates; the best is chosen by its reward on the validation month.
    sequences : SequenceSet
        Jobs to schedule, in one run.
    seed : int
        Random seed.
    learns : bool
        Whether the agent continues to learn.
    update_every : int
        Number of scheduling instances between two updates.
    """

    learners: tuple[Learner, ...]
    sequences: SequenceSet
    seed: int
    learns: bool
    update_every: int

    @property
    def name(self) -> str:
        """Name of the task: part of the log, and learning or drawing."""
        return f"operation-{self.sequences.name}-{'learning' if self.learns else 'drawing'}"

    @property
    def kind(self) -> str:
        """Type of the task, which depends on the size of the network."""
        return in_full_size("operation", self.learners[0])

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return self.sequences.jobs

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return tuple(learner.name for learner in self.learners)

    def inputs(self) -> Any:
        """Return the inputs of the task: learners, jobs and update interval."""
        return {
            "learners": self.learners,
            "scenarios": self.sequences.scenarios,
            "seed": self.seed,
            "learns": self.learns,
            "update_every": self.update_every,
        }

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, and save the schedule."""
        learner = best_of(self.learners, folder.parent)
        agent = trained_agent(learner, folder.parent / learner.name, sample=True)
        scenario = replace(self.sequences.scenarios[0], seed=self.seed)
        if self.learns:
            total, result = self._learning(learner, agent, scenario)
        else:
            policy = seated(learner.policy, agent)
            total, result = earned(scenario, policy, learner.reward, reserves=True)
        tell(self.size)
        return {"agent": learner.name, **keep(result, folder, total)}

    def _learning(self, learner: Learner, agent: Agent, scenario: Scenario) -> tuple[float, Result]:
        """Run the simulation with continued learning, from a new state of the optimiser."""
        env = SchedulingEnv(
            learner.episodes,
            learner.policy,
            learner.encoder,
            learner.mask,
            learner.reward,
            stage=learner.stage,
            skip=learner.skip,
        )
        trainer = trainer_named(learner.trainer)(env, learner.settings, seed=self.seed)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin(agent)
        episode, _ = trainer.play(scenario, self.update_every)
        return trainer.earned, episode.result()
