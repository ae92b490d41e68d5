"""DRAS's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.dras.conclusions import Findings
from hpcsimkit.reproductions.dras.data import FULL, QUICK, Trace, Traces
from hpcsimkit.reproductions.dras.learners import Learners
from hpcsimkit.reproductions.dras.methods import Contest, contests
from hpcsimkit.reproductions.dras.operation import Operation
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.runs import IN_FULL_SIZE, in_full_size
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["DRAS"]

FULL_SIZE = "full"

IN_FULL = {"training": 15.0, "runs of agents": 80.0, "operation": 60.0}
"""Decisions/s with networks for thousands of nodes."""

IN_OPERATION = "dras-ppo"
"""Whose best agent keeps learning in operation, as in the paper."""


class DRAS(ContestReproduction[Contest]):
    """Four learners of one two-level network against rules, an optimiser, and one without reservations."""

    title = "DRAS: one network that starts, reserves and backfills"
    logs_needed = (
        "logs in the Standard Workload Format of more than three months: the paper's are not public; in "
        "their place Theta's of 2022 (ALCF-Theta-2022) and HPC2N of the Parallel Workloads Archive; any "
        "others do too"
    )
    rates = {  # noqa: RUF012
        "training": 700.0, "evolution": 5_000.0, "runs": 20_000.0, "runs of agents": 6_000.0,
        "operation": 2_000.0, "overhead": 40.0,
        **{f"{kind}{IN_FULL_SIZE}": rate for kind, rate in IN_FULL.items()},
    }  # fmt: skip
    flags = frozenset({FULL_SIZE})

    @cached_property
    def traces(self) -> Traces:
        """The logs."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed, FULL_SIZE in self.chosen)

    @cached_property
    def agents(self) -> Learners:
        """All agents that may be trained."""
        return Learners(self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Who meets on which parts of logs."""
        return list(contests(self.agents, self.traces.all))

    def prepare(self) -> Iterator[str]:
        """Read the logs and cut them; say what will be done."""
        yield from self.traces.lines()
        yield self.words()

    @cached_property
    def orders(self) -> dict[str, Learner]:
        """The agents of figure 5, on the first log."""
        return self.agents.in_orders(self.traces.all[0])

    def further_learners(self) -> Iterator[Learner]:
        """Yield those of figure 5."""
        yield from self.orders.values()

    def operations(self, trace: Trace) -> list[Operation]:
        """Return the best agent in operation on a log: as it is, and learning."""
        scale = trace.scale
        learners = tuple(self.agents.dras(trace, IN_OPERATION, number) for number in range(scale.seeds))
        return [
            Operation(learners, trace.test, self.seed, learns, scale.update_every) for learns in (False, True)
        ]

    @cached_property
    def overheads(self) -> list[Overhead]:
        """What is measured on machines as simulated, and in full size."""
        sizes = {nodes for trace in self.traces.all for nodes in (trace.nodes, trace.full_nodes)}
        scale = self.traces.scale
        return [Overhead(kind, size, scale.repeats) for size in sorted(sizes) for kind in scale.learners]

    def further_runs(self) -> Iterator[Task]:
        """Yield agents in operation."""
        for trace in self.traces.all:
            yield from self.operations(trace)

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, then runs, then what is measured by the clock."""
        trainings = [Training(learner, _kind(learner)) for learner in self.trained]
        return [trainings, list(self.runs()), self.overheads]

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables, targets and pictures."""
        findings = Findings(
            traces=self.traces, learners=self.trained, scores=self.scores(shelf), orders=self.orders,
            operations={trace.name: self.operations(trace) for trace in self.traces.all},
            overheads=self.overheads, quick=self.quick, shelf=shelf,
        )  # fmt: skip
        return findings.conclusion(self.title, pictures)


def _kind(learner: Learner) -> str:
    """Return the kind of a training: evolving, learning, or learning with a large network."""
    return "evolution" if learner.trainer == "cem" else in_full_size("training", learner)
