"""The logs, scaled and cut by months: two to learn from, one to choose by, the rest to be tested on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.agents.dras.settings import LEARNERS, Objective
from hpcsimkit.campaigns.console import grouped
from hpcsimkit.errors import UsageError
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import read_swf, scaled, three_phases
from hpcsimkit.workloads.job_sets import PHASES

__all__ = ["DAY", "FULL", "MONTH", "ORDERS", "QUICK", "Scale", "Trace", "Traces"]

DAY = 86_400
MONTH = 30.4 * DAY
"""A twelfth of a year, about [s]: months are counted from the first submission."""

LEARNED, VALIDATED = 2, 1
"""Months to learn from, and to choose the best agent by."""

FOREVER = 1e6
"""Months: no log is so long."""

NAMES = {r"alcf-theta-2022": "Theta-2022", r"alcf-theta-2023": "Theta-2023", r"hpc2n": "HPC2N"}
"""What tables call logs, by how the names of their files begin."""

THETA = "Theta"
DIVISOR = 10
"""Of the sizes of Theta's jobs and machine, unless it is asked for in full size."""

CAPACITY = ("HPC2N",)
"""Logs of machines that run many small jobs: paid by equation 2. All others are paid by equation 1."""

ORDERS = {
    "sampled, real, synthetic": PHASES,
    "real only": ("real",),
    "real, sampled, synthetic": ("real", "sampled", "synthetic"),
    "synthetic, sampled, real": ("synthetic", "sampled", "real"),
}
"""In which order DRAS-PG gets its job sets in figure 5; the first one is that of all other agents."""


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Parameters
    ----------
    sampled, synthetic : int
        Job sets of these phases; real ones are the weeks of the months to learn from.
    jobs : int
        Of a sampled or synthetic set.
    learners : tuple of str
        Which of the four.
    seeds : int
        Agents of each.
    decima_seeds : int
        Agents of Decima-PG.
    waiting_seeds, evolved_seeds : int
        Agents that the paper does not have: DRAS-DQL paid for short waits, and those that evolve.
    evolved_steps : int
        Decisions that an agent takes while it evolves.
    orders : tuple of str
        Of `ORDERS`, on the first log: figure 5; none for no figure.
    update_every : int
        Scheduling instances between updates of the agent that keeps learning in operation.
    repeats : int
        Updates that are measured for the overhead.
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
    sampled=3, synthetic=6, jobs=1000, learners=("dras-pg", "dras-ppo"), seeds=1, decima_seeds=0,
    waiting_seeds=0, evolved_seeds=1, evolved_steps=100_000, orders=(), repeats=3,
)  # fmt: skip


@dataclass(frozen=True)
class Trace(Log):
    """A log.

    Parameters
    ----------
    path : Path
        Its file.
    scale : Scale
        How much is done.
    seed : int
        Where the job sets come from.
    full_size : bool
        Theta is not made smaller.

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
        """It is of the machine that the paper's targets are about."""
        return self.name.startswith(THETA)

    @property
    def objective(self) -> Objective:
        """What is paid: equation 1, or 2 for machines that run many small jobs."""
        return "capacity" if self.name in CAPACITY else "capability"

    @property
    def divisor(self) -> int:
        """By what sizes are divided, and rounded up."""
        return DIVISOR if self.is_theta and not self.full_size else 1

    @cached_property
    def original(self) -> Workload:
        """In full size: but for jobs that the machine is too small for, each killed at its request."""
        log = read_swf(self.path)
        if log.machine_size is None:
            raise UsageError(f"{self.path}: the header does not say how large the machine is (MaxNodes)")
        return log.fitting(log.machine_size).killed_at_limit

    @cached_property
    def log(self) -> Workload:
        """As it is simulated."""
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
        """Of the machine that is simulated."""
        return int(self.log.machine_size or 0)

    @property
    def full_nodes(self) -> int:
        """Of the machine of the log."""
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
        """The jobs of the first two months: those to learn from."""
        return self._part(0, LEARNED, "to learn from")

    @cached_property
    def validation(self) -> SequenceSet:
        """The third month, in one run: the best agent is chosen by it."""
        part = self._part(LEARNED, LEARNED + VALIDATED, "to choose by")
        return SequenceSet(f"{self.name}-validation", (Scenario(part),))

    @cached_property
    def known(self) -> Scenario:
        """All that comes before the test in one run, in which it shows who starves."""
        return Scenario(self._part(0, LEARNED + VALIDATED, "before the test"))

    @cached_property
    def test(self) -> SequenceSet:
        """All that is left, in one run."""
        part = self._part(LEARNED + VALIDATED, FOREVER, "to be tested on")
        return SequenceSet(f"{self.name}-test", (Scenario(part),))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the jobs to learn from [s]."""
        return int(self.learned.requested_time.max())

    @cached_property
    def job_sets(self) -> dict[str, list[Workload]]:
        """What agents learn from, by phase: the same sets for all agents of the log."""
        scale = self.scale
        sets = three_phases(
            self.learned, np.random.default_rng(self.seed), sampled=scale.sampled,
            synthetic=scale.synthetic, jobs=scale.jobs,
        )  # fmt: skip
        return {phase: [each.workload for each in sets if each.phase == phase] for phase in PHASES}

    @property
    def decisions(self) -> int:
        """To learn from: each job of each set is chosen once."""
        return sum(len(jobs) for sets in self.job_sets.values() for jobs in sets)

    def line(self) -> str:
        """Say what there is."""
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
class Traces:
    """All logs; see :class:`Trace`."""

    paths: Sequence[Path]
    scale: Scale
    seed: int
    full_size: bool = False

    @cached_property
    def all(self) -> Sequence[Trace]:
        """The logs in the order given."""
        return each_once([Trace(path, self.scale, self.seed, self.full_size) for path in self.paths])

    def lines(self) -> Iterator[str]:
        """Say what there is."""
        for trace in self.all:
            yield trace.line()
