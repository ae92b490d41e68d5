"""What published rules do to published numbers, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.reproductions.published_rules.conclusions import Findings
from hpcsimkit.reproductions.published_rules.data import FULL, QUICK, Scale, Traces
from hpcsimkit.reproductions.published_rules.effects import Measured
from hpcsimkit.reproductions.published_rules.runs import Runs, all_runs
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["PublishedRules"]


class PublishedRules(Reproduction):
    """The published tests of three papers, by their rules, by the textbook's, and rule by rule."""

    title = "What the rules of published simulators do"
    logs_needed = (
        "logs in the Standard Workload Format: SDSC-SP2, CTC-SP2, HPC2N and KTH-SP2 are in the Parallel "
        "Workloads Archive, lublin_256 and lublin_256_new2 in https://github.com/DIR-LAB/SchedInspector "
        "and RLBackfilling"
    )
    rates = {"runs": 40_000.0}  # noqa: RUF012

    @cached_property
    def scale(self) -> Scale:
        """How much is done."""
        return QUICK if self.quick else FULL

    @cached_property
    def traces(self) -> Traces:
        """The logs."""
        return Traces(self.logs)

    @cached_property
    def runs(self) -> list[Runs]:
        """All that is simulated."""
        return list(all_runs(self.traces, self.scale))

    def prepare(self) -> Iterator[str]:
        """Read the logs; say what will be done."""
        yield from self.traces.lines()
        schedulers = sum(len(runs.schedulers) for runs in self.runs)
        yield f"{schedulers} schedulers on the sequences of published tests"

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the runs; none needs another."""
        return [self.runs]

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables and targets; draw pictures."""
        of_tests, of_seeds = {}, {}
        for runs in self.runs:
            values = {row: np.array(each, dtype=np.float64) for row, each in shelf.outcome(runs).items()}
            if runs.of_seeds:
                seeds = len(runs.trial.seeds)
                of_seeds[runs.cell] = {
                    row: each.reshape(seeds, -1).mean(axis=1) for row, each in values.items()
                }
            else:
                of_tests[runs.cell] = values
        whole = all(runs.trial.is_whole for runs in self.runs)
        measured = Measured(of_tests, of_seeds, whole)
        return Findings(self.traces, self.scale, measured, self.quick).conclusion(self.title, pictures)
