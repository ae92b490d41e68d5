"""Logs, scaled and split by months: two for training, one for validation, the rest for tests."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.agents.dras.settings import LEARNERS, Objective
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reproductions.logs import Log, Logs
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.workloads import read_swf, scaled, three_phases
from hpcsimkit.workloads.models.job_sets import PHASES

__all__ = ["DAY", "FULL", "MONTH", "ORDERS", "QUICK", "Scale", "Trace", "Traces"]

DAY = 86_400
MONTH = 30.4 * DAY
"""Approximate twelfth of a year [s]; months are counted from the first submission."""

LEARNED, VALIDATED = 2, 1
"""Numbers of months for training and for validation."""

FOREVER = 1e6
"""Upper bound on the length of a log [months]."""

NAMES = {r"alcf-theta-2022": "Theta-2022", r"alcf-theta-2023": "Theta-2023", r"hpc2n": "HPC2N"}
"""Names of logs in tables, by patterns that match the beginning of the file name."""

THETA = "Theta"
DIVISOR = 10
"""Divisor of the sizes of Theta's jobs and machine, unless full size is requested."""

CAPACITY = ("HPC2N",)
"""Logs of machines with many small jobs, with the reward of equation 2; all others use equation 1."""

ORDERS = {
    "sampled, real, synthetic": PHASES,
    "real only": ("real",),
    "real, sampled, synthetic": ("real", "sampled", "synthetic"),
    "synthetic, sampled, real": ("synthetic", "sampled", "real"),
}
"""Orders of DRAS-PG's job sets in figure 5; the first one is that of all other agents."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    sampled, synthetic : int
        Number of job sets of these phases; real ones are the weeks of the training months.
    jobs : int
        Number of jobs of a sampled or synthetic set.
    learners : tuple of str
        Selection of the four learners.
    seeds : int
        Number of agents of each learner.
    decima_seeds : int
        Number of Decima-PG agents.
    waiting_seeds, evolved_seeds : int
        Number of additional agents: DRAS-DQL with a reward for short waits, and cross-entropy agents.
    evolved_steps : int
        Number of decisions used to train an agent with the cross-entropy method.
    orders : tuple of str
        Keys of `ORDERS` for figure 5, on the first log; an empty tuple omits the figure.
    update_every : int
        Number of scheduling instances between updates of the agent that continues to learn in operation.
    repeats : int
        Number of updates measured for the overhead.
    """

    sampled: int = 9
    synthetic: int = 20
    jobs: int = 2000
    learners: tuple[str, ...] = LEARNERS
    seeds: int = 3
    decima_seeds: int = 3
    waiting_seeds: int = 3
    evolved_seeds: int = 3
    evolved_steps: int = 1_000_000
    orders: tuple[str, ...] = tuple(ORDERS)
    update_every: int = 200
    repeats: int = 10


FULL = Scale()
QUICK = Scale(
    sampled=3,
    synthetic=6,
    jobs=1000,
    learners=("dras-pg", "dras-ppo"),
    seeds=1,
    decima_seeds=0,
    waiting_seeds=0,
    evolved_seeds=1,
    evolved_steps=100_000,
    orders=(),
    repeats=3,
)


@dataclass(frozen=True)
class Trace(Log):
    """A log.

    Parameters
    ----------
    path : Path
        File of the log.
    scale : Scale
        Size preset of the experiment.
    seed : int
        Random seed for the job sets.
    full_size : bool
        Whether to keep Theta's full size.

    Examples
    --------
    >>> files = "ALCF-Theta-2022.swf.gz", "HPC2N-2002-2.2-cln.swf.gz", "mine.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['Theta-2022', 'HPC2N', 'mine']
    """

    NAMES = NAMES

    scale: Scale
    seed: int
    full_size: bool = False

    @property
    def is_theta(self) -> bool:
        """Whether the log is of Theta, the machine of the paper's targets."""
        return self.name.startswith(THETA)

    @property
    def objective(self) -> Objective:
        """Reward: equation 1, or equation 2 for machines with many small jobs."""
        return "capacity" if self.name in CAPACITY else "capability"

    @property
    def divisor(self) -> int:
        """Divisor of sizes, which are rounded up."""
        return DIVISOR if self.is_theta and not self.full_size else 1

    @cached_property
    def original(self) -> Workload:
        """Log in full size, without jobs larger than the machine; jobs are killed at their requested time."""
        log = read_swf(self.path)
        if log.machine_size is None:
            raise UsageError(f"{self.path}: the header does not say how large the machine is (MaxNodes)")
        return log.fitting(log.machine_size).killed_at_limit

    @cached_property
    def log(self) -> Workload:
        """Log as simulated."""
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
        """Number of nodes of the simulated machine."""
        return int(self.log.machine_size or 0)

    @property
    def full_nodes(self) -> int:
        """Number of nodes of the log's machine."""
        return int(self.original.machine_size or 0)

    def _part(self, begin: float, end: float, name: str) -> Workload:
        """Return the jobs submitted in some months, counted from the first submission."""
        first = int(self.log.submit_time.min())
        part = self.log.window(first + round(begin * MONTH), first + round(end * MONTH))
        if len(part) < 2 or part.span == 0:
            raise UsageError(f"{self.path}: there is nothing to be scheduled in the months {name}")
        return part

    @cached_property
    def learned(self) -> Workload:
        """Training jobs: those of the first two months."""
        return self._part(0, LEARNED, "to learn from")

    @cached_property
    def validation(self) -> SequenceSet:
        """Validation month, the third, in one run; the best agent is chosen by it."""
        part = self._part(LEARNED, LEARNED + VALIDATED, "to choose by")
        return SequenceSet(f"{self.name}-validation", (Scenario(part),))

    @cached_property
    def known(self) -> Scenario:
        """All jobs before the test part in one run, in which starvation becomes visible."""
        return Scenario(self._part(0, LEARNED + VALIDATED, "before the test"))

    @cached_property
    def test(self) -> SequenceSet:
        """Test part: all remaining jobs, in one run."""
        part = self._part(LEARNED + VALIDATED, FOREVER, "to be tested on")
        return SequenceSet(f"{self.name}-test", (Scenario(part),))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.learned.requested_time.max())

    @cached_property
    def job_sets(self) -> dict[str, list[Workload]]:
        """Training job sets by phase, the same for all agents of the log."""
        scale = self.scale
        sets = three_phases(
            self.learned,
            np.random.default_rng(self.seed),
            sampled=scale.sampled,
            synthetic=scale.synthetic,
            jobs=scale.jobs,
        )
        return {phase: [each.workload for each in sets if each.phase == phase] for phase in PHASES}

    @property
    def decisions(self) -> int:
        """Number of training decisions: each job of each set is chosen once."""
        return sum(len(jobs) for sets in self.job_sets.values() for jobs in sets)

    def line(self) -> str:
        """Return a line on the log and its split."""
        smaller = f" (sizes / {self.divisor}, rounded up)" if self.divisor > 1 else ""
        parts = [self.learned, *(each.scenarios[0].workload for each in (self.validation, self.test))]
        words = [
            f"{grouped(len(part))} {what} (offered load {part.offered_load():.2f})"
            for part, what in zip(parts, ("to learn from", "to choose by", "to be tested on"), strict=True)
        ]
        equation = 1 if self.objective == "capability" else 2
        return (
            f"{self.name}: jobs on {grouped(self.nodes)} nodes{smaller}, equation {equation}: "
            f"{', '.join(words)}"
        )


@dataclass(frozen=True)
class Traces(Logs[Trace]):
    """All logs.

    Parameters
    ----------
    full_size : bool
        Whether to keep Theta's full size.
    """

    full_size: bool = False

    def log_of(self, path: Path) -> Trace:
        """Return the log of a file."""
        return Trace(path, self.scale, self.seed, self.full_size)
