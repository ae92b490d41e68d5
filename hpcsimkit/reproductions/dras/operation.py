"""The best agent of a kind in operation: as it was trained, or learning from what it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.dras.trainer import DrasTrainer
from hpcsimkit.agents.trainers_catalogue import trainer_named
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.reproductions.dras.runs import earned, in_full_size, keep, seated
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.result import Result
from hpcsimkit.scenario import Scenario

__all__ = ["Operation", "best_of"]


def best_of(learners: Sequence[Learner], shelf: Path) -> Learner:
    """Return who earned most on the month to choose by; `shelf` has the folders of all tasks."""

    def earned_by(learner: Learner) -> float:
        about = trained_agent(learner, shelf / learner.name, sample=False).about or {}
        return float(about["validation"])

    return max(learners, key=earned_by)


@dataclass(frozen=True)
class Operation(Task):
    """The best of some agents, trained before, schedules what is tested on; it draws its actions.

    Parameters
    ----------
    learners : tuple of Learner
        One of which is the best by what it earned on the month to choose by.
    sequences : SequenceSet
        What is scheduled, in one run.
    seed : int
        Where the chance comes from.
    learns : bool
        It goes on learning.
    update_every : int
        Scheduling instances from one update to the next.
    """

    learners: tuple[Learner, ...]
    sequences: SequenceSet
    seed: int
    learns: bool
    update_every: int

    @property
    def name(self) -> str:
        """What is scheduled, and how."""
        return f"operation-{self.sequences.name}-{'learning' if self.learns else 'drawing'}"

    @property
    def kind(self) -> str:
        """By the size of the network."""
        return in_full_size("operation", self.learners[0])

    @property
    def size(self) -> int:
        """A decision a job."""
        return self.sequences.jobs

    def inputs(self) -> Any:
        """Return who, on what, and how often it learns."""
        return {
            "learners": self.learners, "scenarios": self.sequences.scenarios, "seed": self.seed,
            "learns": self.learns, "update_every": self.update_every,
        }  # fmt: skip

    def run(self, folder: Path, tell: Tell) -> Any:
        """Schedule."""
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
        """Go on from what was learned, with an optimiser that begins anew."""
        env = SchedulingEnv(
            learner.episodes, learner.policy, learner.encoder, learner.mask, learner.reward,
            stage=learner.stage, skip=learner.skip,
        )  # fmt: skip
        trainer = trainer_named(learner.trainer)(env, learner.settings, seed=self.seed)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin(agent)
        episode, _ = trainer.play(scenario, self.update_every)
        return trainer.earned, episode.result()
