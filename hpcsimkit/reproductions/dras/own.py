"""Parts of DRAS alone: logs split by months, and the pace of large networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.agents.dras.measurements import LARGE
from hpcsimkit.agents.dras.settings import TRAINED, Objective
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.figures import DAY
from hpcsimkit.reports.likeness import draw_likeness
from hpcsimkit.reproductions.learners import Learner, Training
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.sequences import Meeting, SequenceSet
from hpcsimkit.workloads import read_swf, scaled, three_phases
from hpcsimkit.workloads.models.job_sets import PHASES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGE_NETWORK = 2000
"""Width from which a network counts as one for thousands of nodes."""

MONTH = 30.4 * DAY
"""Approximate twelfth of a year [s]; months are counted from the first submission."""

LEARNED, VALIDATED, FOREVER = 2, 1, 1e6
"""Numbers of months for training and for validation, and upper bound on the length of a log."""

DIVISOR = 10
"""Divisor of the sizes of Theta's jobs and machine, unless full size is requested."""

# --- logs and agents ------------------------------------------------------------------------------------


@part
class MonthlyLog(PaperLog):
    """A log split by months: two for training, one for validation, the rest for tests.

    The sizes of Theta's jobs are divided, unless the size preset has `full`.
    """

    @property
    def is_theta(self) -> bool:
        """Whether the log is of Theta, the machine of the paper's targets."""
        return self.name.startswith("Theta")

    @property
    def objective(self) -> Objective:
        """Reward: equation 1, or equation 2 for machines with many small jobs."""
        return "capacity" if self.name == "HPC2N" else "capability"

    @property
    def divisor(self) -> int:
        """Divisor of sizes, which are rounded up."""
        return DIVISOR if self.is_theta and not self.scale.full else 1

    @cached_property
    def original(self) -> Workload:
        """Log in full size, without jobs larger than the machine; jobs are killed at their requested time."""
        log = read_swf(self.path)
        if log.machine_size is None:
            raise UsageError(f"{self.path}: the header does not say how large the machine is (MaxNodes)")
        return log.fitting(log.machine_size).killed_at_limit

    @cached_property
    def log(self) -> Workload:
        log = scaled(self.original, self.divisor) if self.divisor > 1 else self.original
        needed = (LEARNED + VALIDATED) * MONTH
        if len(log) < 2 or log.span <= needed:
            found = log.span / DAY if len(log) else 0.0
            raise UsageError(
                f"{self.path}: jobs of more than {needed / DAY:g} days are needed (2 months to learn from, "
                f"1 to choose by, the rest to be tested on), found {found:.1f} days"
            )
        return log

    @property
    def nodes(self) -> int:
        return int(self.log.machine_size or 0)

    def _part(self, begin: float, end: float, name: str) -> Workload:
        """Return the jobs submitted in some months, counted from the first submission."""
        first = int(self.log.submit_time.min())
        part = self.log.window(first + round(begin * MONTH), first + round(end * MONTH))
        if len(part) < 2 or part.span == 0:
            raise UsageError(f"{self.path}: there is nothing to be scheduled in the months {name}")
        return part

    @cached_property
    def part(self) -> Workload:
        """Training jobs: those of the first two months."""
        return self._part(0, LEARNED, "to learn from")

    @cached_property
    def month(self) -> Scenario:
        """Validation month, the third, in one run; the best agent is chosen by it."""
        return Scenario(self._part(LEARNED, LEARNED + VALIDATED, "to choose by"))

    @cached_property
    def known(self) -> Scenario:
        """All jobs before the test part in one run, in which starvation becomes visible."""
        return Scenario(self._part(0, LEARNED + VALIDATED, "before the test"))

    @cached_property
    def validation(self) -> SequenceSet:
        return SequenceSet(f"{self.name}-validation", (self.month,))

    @cached_property
    def test(self) -> SequenceSet:
        """Test part: all remaining jobs, in one run."""
        part = self._part(LEARNED + VALIDATED, FOREVER, "to be tested on")
        return SequenceSet(f"{self.name}-test", (Scenario(part),))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def job_sets(self) -> dict[str, list[Workload]]:
        """Training job sets by phase, the same for all agents of the log."""
        scale, rng = self.scale, np.random.default_rng(self.seed)
        sets = three_phases(self.part, rng, sampled=scale.sampled, synthetic=scale.synthetic, jobs=scale.jobs)
        return {phase: [each.workload for each in sets if each.phase == phase] for phase in PHASES}

    @property
    def decisions(self) -> int:
        """Number of training decisions: each job of each set is chosen once."""
        return sum(len(jobs) for sets in self.job_sets.values() for jobs in sets)

    @property
    def reward_scale(self) -> float:
        """Scale factor that makes rewards about 1; in equation 2 they are 1 / requested times."""
        if self.objective == "capability":
            return 1.0
        return 1.0 / float(np.mean(1.0 / np.maximum(self.part.requested_time, 1)))

    def line(self) -> str:
        smaller = f" (sizes / {self.divisor}, rounded up)" if self.divisor > 1 else ""
        parts = [self.part, *(each.scenarios[0].workload for each in (self.validation, self.test))]
        words = [
            f"{grouped(len(part))} {what} (offered load {part.offered_load():.2f})"
            for part, what in zip(parts, ("to learn from", "to choose by", "to be tested on"), strict=True)
        ]
        equation = 1 if self.objective == "capability" else 2
        return (
            f"{self.name}: jobs on {grouped(self.nodes)} nodes{smaller}, equation {equation}: "
            f"{', '.join(words)}"
        )


@part
def episodes(log: MonthlyLog, phases: Sequence[str]) -> InTurn:
    """Return the job sets of some phases, in this order."""
    return InTurn([jobs for phase in phases for jobs in log.job_sets[phase]])


# --- runs -------------------------------------------------------------------------------------------------


def in_full_size(kind: str, learner: Learner) -> str:
    """Return the type of a task, with a suffix if the network is for thousands of nodes."""
    settings: Any = learner.settings
    return f"{kind}{' in full size' * (max(settings.hidden, default=0) >= LARGE_NETWORK)}"


@part
class Run(Meeting):
    """Runs of a policy: agents are slower than other policies, and slower still with large networks."""

    @property
    def kind(self) -> str:
        """Type of the task."""
        learner = self.contestant.learner
        return super().kind if learner is None else in_full_size(super().kind, learner)


# --- reproduction -----------------------------------------------------------------------------------------


class OwnReproduction(PaperReproduction):
    """Four learners of one two-level network against rules, an optimiser and a one-level agent."""

    def _training(self, learner: Learner) -> Training:
        return Training(learner, in_full_size(super()._training(learner).kind, learner))


class OwnFindings(PaperFindings):
    """Measurements of DRAS and its baselines, and pictures of the synthetic jobs."""

    def values(self) -> dict[str, Any]:
        return {**super().values(), "trained": TRAINED, "large": LARGE}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        yield from super().figures()
        for log in self.plan.traces.all if self.plan.side_study is None else ():
            if sets := log.job_sets["synthetic"]:
                yield f"{log.name}-synthetic", draw_likeness(log.part, sets[0])
