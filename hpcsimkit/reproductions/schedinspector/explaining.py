"""What the inspector of a log rejects, as a task: figure 13."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.campaigns.explanation import Explanation, explained
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.schedinspector.learners import tested
from hpcsimkit.reproductions.sequences import with_agent
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload

__all__ = ["Explaining"]

DECISIONS = "decisions.npz"


@dataclass(frozen=True)
class Explaining(Task):
    """A run of an inspector over a whole log; what it saw and did stays in the folder.

    Parameters
    ----------
    learner : Learner
        Whose agent inspects, drawing its actions.
    log : Workload
        As the published code reads it.
    """

    learner: Learner
    log: Workload

    @property
    def name(self) -> str:
        """That of the learner, and what is done."""
        return f"explained-{self.learner.name}"

    @property
    def kind(self) -> str:
        """It goes as fast as runs of agents."""
        return "runs of agents"

    @property
    def size(self) -> int:
        """A decision a job."""
        return len(self.log)

    def inputs(self) -> Any:
        """Return who, and on what."""
        return {"learner": self.learner, "log": self.log}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        agent = trained_agent(self.learner, folder.parent / self.learner.name, sample=True)
        found = explained(with_agent(tested(self.learner), agent), Scenario(self.log, semantics="dirlab"))
        np.savez_compressed(folder / DECISIONS, seen=found.seen.astype(np.float32), rejected=found.rejected)
        return {"names": list(found.names)}

    def explanation(self, folder: Path, outcome: Any) -> Explanation:
        """Return what is kept of it."""
        with np.load(folder / DECISIONS) as kept:
            return Explanation(outcome["names"], kept["seen"].astype(np.float64), kept["rejected"])
