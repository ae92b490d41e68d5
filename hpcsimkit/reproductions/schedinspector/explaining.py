"""Task of figure 13: the features of jobs that an inspector rejects."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.explanation import Explanation, explained
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.schedinspector.learners import tested
from hpcsimkit.reproductions.sequences import with_agent

__all__ = ["Explaining"]

DECISIONS = "decisions.npz"


@dataclass(frozen=True)
class Explaining(Task):
    """A run of an inspector over a whole log; observations and actions are saved in the task's folder.

    Parameters
    ----------
    learner : Learner
        Learner of the inspector, which samples its actions.
    log : Workload
        Log as read by the published code.
    """

    learner: Learner
    log: Workload

    @property
    def name(self) -> str:
        """Name of the task: that of the learner with a prefix."""
        return f"explained-{self.learner.name}"

    @property
    def kind(self) -> str:
        """Type of the task: that of runs of agents, which have the same rate."""
        return "runs of agents"

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return len(self.log)

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return (self.learner.name,)

    def inputs(self) -> Any:
        """Return the inputs of the task: learner and log."""
        return {"learner": self.learner, "log": self.log}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, and save the decisions."""
        agent = trained_agent(self.learner, folder.parent / self.learner.name, sample=True)
        found = explained(with_agent(tested(self.learner), agent), Scenario(self.log, semantics="dirlab"))
        content = io.BytesIO()
        np.savez_compressed(content, seen=found.seen.astype(np.float32), rejected=found.rejected)
        write_bytes(folder / DECISIONS, content.getvalue())
        return {"names": list(found.names)}

    def explanation(self, folder: Path, outcome: Any) -> Explanation:
        """Return the saved observations and rejections."""
        with np.load(folder / DECISIONS, allow_pickle=False) as kept:
            return Explanation(outcome["names"], kept["seen"].astype(np.float64), kept["rejected"])
