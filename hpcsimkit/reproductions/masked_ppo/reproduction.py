"""The masked-PPO scheduler's experiment, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from hpcsimkit.engine.store import Store
from hpcsimkit.reproductions.contests import TrainedAndRun
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.contest import Playing, contestants, fields
from hpcsimkit.reproductions.masked_ppo.data import FULL, QUICK, Beocat
from hpcsimkit.reproductions.masked_ppo.findings import MaskedPPOFindings
from hpcsimkit.reproductions.masked_ppo.learners import Family, families
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.rivals import Field

__all__ = ["MaskedPPO"]


class MaskedPPO(TrainedAndRun):
    """Twenty agents for each of two metrics, trained on constructed sets, tested on days of the log."""

    title = "Masked PPO: job and machine chosen at once"
    logs_needed = (
        "logs of Beocat, one or more months, as job tables (JobName, ReqMem, ReqCPUs, ReqGPUs, ReqDuration, "
        "ActualDuration, Submit); the paper's come from https://github.com/shutchison/HPC_Scheduling_with_RL"
    )
    rates = {"training": 2500.0, "playing": 10_000.0, "heuristics": 10_000.0}  # noqa: RUF012

    @cached_property
    def beocat(self) -> Beocat:
        """Logs, and the samples drawn from them."""
        return Beocat(self.logs, QUICK if self.quick else FULL, self.seed)

    @cached_property
    def families(self) -> list[Family]:
        """Agents to be trained."""
        return families(self.beocat)

    @cached_property
    def plays(self) -> list[Playing]:
        """Runs of all policies on all days."""
        return [Playing(each, self.beocat.all_days) for each in contestants(self.beocat, self.families)]

    def prepare(self) -> Iterator[str]:
        """Read the logs, draw days and training sets; yield lines on the planned work."""
        yield from self.beocat.lines()
        for family in self.families:
            counts = (f"{len(learners)} for {metric}" for metric, learners in family.learners.items())
            steps = next(iter(family.learners.values()))[0].settings.total_timesteps
            yield f"  agents {family.name}: {' and '.join(counts)}, {steps} decisions each; {family.about}"

    def learners(self) -> Iterator[Learner]:
        """Yield the learners of all groups."""
        for family in self.families:
            for learners in family.learners.values():
                yield from learners

    def runs(self) -> list[Playing]:
        """Return the runs of all policies."""
        return self.plays

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on the test days and on the unseen days."""
        return fields(self.beocat, self.plays)

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return tables, significance tests and targets; draw training curves and box plots."""
        return MaskedPPOFindings(self, store).conclusion(pictures)
