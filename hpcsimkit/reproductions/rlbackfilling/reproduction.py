"""RLBackfilling's experiments, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.reproductions.contests import ContestReproduction
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import Field, field_of
from hpcsimkit.reproductions.rlbackfilling.contest import EASY_AR, Contest, contests
from hpcsimkit.reproductions.rlbackfilling.data import FULL, QUICK, Traces
from hpcsimkit.reproductions.rlbackfilling.learners import Learners
from hpcsimkit.reproductions.rlbackfilling.noise import Noise
from hpcsimkit.reproductions.rlbackfilling.report import RLBackfillingFindings

__all__ = ["RLBackfilling"]


class RLBackfilling(ContestReproduction[Contest]):
    """Backfilling agents trained on each log and tested on unseen jobs, and as published."""

    title = "RLBackfilling: an agent that selects jobs to backfill"
    logs_needed = (
        "logs in the Standard Workload Format: the paper's SDSC-SP2 and HPC2N are in the Parallel Workloads "
        "Archive, its Lublin logs (lublin_256 and lublin_256_new2) in "
        "https://github.com/DIR-LAB/deep-batch-scheduler; any others do too"
    )
    rates = {"training": 1_500.0, "runs": 20_000.0, "runs of agents": 8_000.0}  # noqa: RUF012

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def contests(self) -> list[Contest]:
        """Policies under test and their sequences, one comparison per set."""
        return list(contests(Learners(self.traces)))

    @cached_property
    def noise(self) -> Noise:
        """Runs of figure 1."""
        return Noise(self.traces.first)

    def prepare(self) -> Iterator[str]:
        """Read the logs and draw the sequences; yield lines on the planned work."""
        yield from self.traces.lines()
        yield self.words()

    def further_runs(self) -> Iterator[Task]:
        """Yield the runs of figure 1."""
        yield from self.noise.meetings.values()

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on all sequences, beside the rows without knowledge of run times."""
        found = []
        for each in self.contests:
            rows = {row: task for row, task in each.meetings.items() if not row.endswith(EASY_AR)}
            part = "as published" if each.protocol == "published" else "unseen jobs"
            found.append(field_of(f"{each.trace.name}, {part}", each.sequences, each.trace.seed, rows))
        return found

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw curves, boxes and lines."""
        return RLBackfillingFindings(self, store).conclusion(pictures)
