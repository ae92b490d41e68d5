"""DRAS's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.dras.behaviour import BEHAVING
from hpcsimkit.reproductions.dras.data import FULL, QUICK, Trace, Traces
from hpcsimkit.reproductions.dras.habits import Habits
from hpcsimkit.reproductions.dras.learners import Learners
from hpcsimkit.reproductions.dras.methods import DRAWING, Contest, contests, family_of, fields
from hpcsimkit.reproductions.dras.operation import Operation
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.report import DRASFindings
from hpcsimkit.reproductions.dras.runs import IN_FULL_SIZE, in_full_size
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import RIVALS, Field

__all__ = ["DRAS"]

FULL_SIZE = "full"
BEHAVIOUR = "behaviour"
"""Flag that restricts the experiment to the use of slots by the four learners."""

IN_FULL = {"training": 15.0, "runs of agents": 80.0, "operation": 60.0}
"""Rates with networks for thousands of nodes [decisions/s]."""

IN_OPERATION = "dras-ppo"
"""Learner of the agent that continues to learn in operation, as in the paper."""


class DRAS(ContestReproduction[Contest]):
    """Four learners of one two-level network against rules, an optimiser and a one-level agent."""

    title = "DRAS: one network that starts, reserves and backfills"
    logs_needed = (
        "logs in the Standard Workload Format of more than three months: the paper's are not public; in "
        "their place Theta's of 2022 (ALCF-Theta-2022) and HPC2N of the Parallel Workloads Archive; any "
        "others do too"
    )
    rates = {  # noqa: RUF012
        "training": 700.0,
        "evolution": 5_000.0,
        "runs": 20_000.0,
        "runs of agents": 6_000.0,
        "operation": 2_000.0,
        "overhead": 40.0,
        **{f"{kind}{IN_FULL_SIZE}": rate for kind, rate in IN_FULL.items()},
    }
    flags = frozenset({FULL_SIZE, BEHAVIOUR, RIVALS})

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed, FULL_SIZE in self.chosen)

    @cached_property
    def agents(self) -> Learners:
        """All agents that may be trained."""
        return Learners(self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Policies under test and their parts of the logs."""
        found = list(contests(self.agents, self.traces.all))
        return [each.only(BEHAVING) for each in found] if self._behaviour_alone else found

    @property
    def _behaviour_alone(self) -> bool:
        return BEHAVIOUR in self.chosen

    def prepare(self) -> Iterator[str]:
        """Read and split the logs; yield lines on the planned work."""
        yield from self.traces.lines()
        yield self.words()

    @cached_property
    def orders(self) -> dict[str, Learner]:
        """Learners of figure 5, on the first log."""
        return self.agents.in_orders(self.traces.all[0])

    def further_learners(self) -> Iterator[Learner]:
        """Yield the learners of figure 5."""
        if not self._behaviour_alone:
            yield from self.orders.values()

    def operations(self, trace: Trace) -> list[Operation]:
        """Return the tasks of the best agent in operation on a log: without and with learning."""
        scale = trace.scale
        learners = tuple(self.agents.dras(trace, IN_OPERATION, number) for number in range(scale.seeds))
        return [
            Operation(learners, trace.test, self.seed, learns, scale.update_every) for learns in (False, True)
        ]

    @cached_property
    def overheads(self) -> list[Overhead]:
        """Tasks of processor times, for the simulated and the full size."""
        sizes = {nodes for trace in self.traces.all for nodes in (trace.nodes, trace.full_nodes)}
        scale = self.traces.scale
        return [Overhead(kind, size, scale.repeats) for size in sorted(sizes) for kind in scale.learners]

    def further_runs(self) -> Iterator[Task]:
        """Yield the tasks on the use of slots, and on agents in operation."""
        for of_family in self.habits.values():
            for tasks in of_family.values():
                yield from tasks
        for trace in () if self._behaviour_alone else self.traces.all:
            yield from self.operations(trace)

    @cached_property
    def habits(self) -> dict[str, dict[str, list[Habits]]]:
        """Tasks on the use of slots on the validation month, by log and learner."""
        return {
            trace.name: {
                family_of(algorithm): [
                    Habits(
                        self.agents.dras(trace, algorithm, number),
                        trace.validation,
                        family_of(algorithm) in DRAWING,
                    )
                    for number in range(trace.scale.seeds)
                ]
                for algorithm in trace.scale.learners
            }
            for trace in self.traces.all
        }

    def fields(self) -> list[Field]:
        """Return the heuristics that the paper leaves out, on the test part of each log."""
        return [] if self._behaviour_alone else fields(self.contests)

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, then runs, then measurements of processor time."""
        trainings = [Training(learner, _kind(learner)) for learner in self.trained]
        return [trainings, list(self.runs()), [] if self._behaviour_alone else self.overheads]

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, targets and figures, or only those on the use of slots."""
        findings = DRASFindings(self, store)
        return findings.behaviour_alone() if self._behaviour_alone else findings.conclusion(pictures)


def _kind(learner: Learner) -> str:
    """Return the type of a training: cross-entropy, learning, or learning with a large network."""
    return "evolution" if learner.trainer == "cem" else in_full_size("training", learner)
