"""RLBackfilling's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rlbackfilling.conclusions import Findings
from hpcsimkit.reproductions.rlbackfilling.contest import Contest, contests
from hpcsimkit.reproductions.rlbackfilling.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.rlbackfilling.learners import Learners
from hpcsimkit.reproductions.rlbackfilling.noise import Noise
from hpcsimkit.reproductions.sequences import BSLD
from hpcsimkit.reproductions.tasks import Shelf, Task

__all__ = ["RLBackfilling"]


class RLBackfilling(ContestReproduction[Contest]):
    """Backfilling agents trained on each log and tested on what they have not seen, and as published."""

    title = "RLBackfilling: an agent that chooses what starts behind a blocked job"
    logs_needed = (
        "logs in the Standard Workload Format: the paper's SDSC-SP2 and HPC2N are in the Parallel Workloads "
        "Archive, its Lublin logs (lublin_256 and lublin_256_new2) in "
        "https://github.com/DIR-LAB/deep-batch-scheduler; any others do too"
    )
    rates = {"training": 1_500.0, "runs": 20_000.0, "runs of agents": 8_000.0}  # noqa: RUF012

    @cached_property
    def traces(self) -> Traces:
        """The logs."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Who meets on which sequences."""
        return list(contests(Learners(self.traces)))

    @cached_property
    def noise(self) -> Noise:
        """Figure 1."""
        return Noise(self.traces.first)

    def prepare(self) -> Iterator[str]:
        """Read the logs, cut sequences; say what will be done."""
        yield from self.traces.lines()
        yield self.words()

    def further_runs(self) -> Iterator[Task]:
        """Yield those of figure 1."""
        yield from self.noise.meetings.values()

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables, tests and targets; draw curves, boxes and lines."""
        noises = {
            place: float(np.mean(shelf.outcome(task)[BSLD])) for place, task in self.noise.meetings.items()
        }
        findings = Findings(self.traces, self.trained, self.scores(shelf), self.noise, noises, self.quick)
        return findings.conclusion(self.title, shelf, pictures)
