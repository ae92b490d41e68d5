"""Effects of published semantics on published numbers, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.published_rules.data import FULL, QUICK, Scale, Traces, Trial
from hpcsimkit.reproductions.published_rules.published_numbers import READ_ME_ORDERS
from hpcsimkit.reproductions.published_rules.report import PublishedRulesFindings
from hpcsimkit.reproductions.published_rules.runs import Runs, all_runs
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.rivals import Field, field_of
from hpcsimkit.reproductions.sequences import SequenceSet

__all__ = ["PublishedRules"]


class PublishedRules(Reproduction):
    """Published tests of three papers under published and textbook semantics, and rule by rule."""

    title = "Effects of the rules of published simulators"
    logs_needed = (
        "logs in the Standard Workload Format: SDSC-SP2, CTC-SP2, HPC2N and KTH-SP2 are in the Parallel "
        "Workloads Archive, lublin_256 and lublin_256_new2 in https://github.com/DIR-LAB/SchedInspector "
        "and RLBackfilling"
    )
    rates = {"runs": 40_000.0}  # noqa: RUF012

    @cached_property
    def scale(self) -> Scale:
        """Size preset of the experiment."""
        return QUICK if self.quick else FULL

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs)

    @cached_property
    def runs(self) -> list[Runs]:
        """All simulations."""
        return list(all_runs(self.traces, self.scale))

    def prepare(self) -> Iterator[str]:
        """Read the logs; yield lines on the planned work."""
        yield from self.traces.lines()
        schedulers = sum(len(runs.schedulers) for runs in self.runs)
        yield f"{schedulers} schedulers on the sequences of published tests"

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the runs, which are independent of each other."""
        return [self.runs]

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on RLScheduler's tests, beside those of its read-me."""
        found = []
        for trace in self.traces.all:
            trial = Trial.published(trace, "rlscheduler", self.scale)
            sequences = SequenceSet(f"rlscheduler-{trace.name}", tuple(trial.scenarios()))
            name = f"{trace.name}, RLScheduler's test with backfilling, by the textbook"
            everyone = field_of(name, sequences, trial.seeds[0], {})
            own = {f"{order.upper()}/EASY" for order in READ_ME_ORDERS}
            known = {row: tasks for row, tasks in everyone.rules.items() if row in own}
            rules = {row: tasks for row, tasks in everyone.rules.items() if row not in own}
            found.append(replace(everyone, known=known, rules=rules))
        return found

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables and targets; draw figures."""
        return PublishedRulesFindings(self, store).conclusion(pictures)
