"""Parts of SchedInspector alone: rejected jobs (figure 13), and decisions thrown away in training."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.schedinspector.settings import RATIO
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.evaluation.explanation import HEADINGS, Explanation, explained
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.npz import arrays_in, write_arrays
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.dirlab import MAX_REJECTIONS
from hpcsimkit.reports.answers import draw_explanation
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.findings import PaperFindings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DECISIONS = "decisions.npz"


@part
@dataclass(frozen=True)
class Explaining(Task):
    """A run of an inspector over a whole log; observations and actions are saved in the task's folder."""

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
        return (self.learner.name,)

    def inputs(self) -> Any:
        return {"learner": self.learner, "log": self.log}

    def run(self, folder: Path, tell: Tell) -> Any:
        agent = trained_agent(self.learner, folder.parent / self.learner.name, sample=True)
        tested: Any = copy.copy(self.learner.policy)
        tested.max_rejections = MAX_REJECTIONS
        found = explained(with_agent(tested, agent), Scenario(self.log, Setup(event_order=DirlabOrder())))
        write_arrays(folder / DECISIONS, seen=found.seen.astype(np.float32), rejected=found.rejected)
        return {"names": list(found.names)}


class OwnFindings(PaperFindings):
    """Measurements of inspectors and their baselines, and the observations of one of them."""

    @cached_property
    def explanation(self) -> Explanation:
        task = self.plan.tasks["explaining"]
        file = self.store.folder(task) / DECISIONS
        kept = arrays_in(read_bytes(file, Format.TASK_ARRAYS), file)
        return Explanation(self.store.outcome(task)["names"], kept["seen"].astype(float), kept["rejected"])

    def explanation_table(self) -> Table:
        """Return the medians and distances of the features that an inspector observes."""
        return Table(HEADINGS, self.explanation.rows())

    def values(self) -> dict[str, Any]:
        return {**super().values(), "ratio": RATIO}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        yield "figure-13", draw_explanation(self.explanation)
        yield from super().figures()
