"""The logs, with requested times as users gave them, cut into jobs to learn from and test sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.reproductions.logs import Log, each_once
from hpcsimkit.reproductions.sequences import SequenceSet, starts_apart
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import read_swf

__all__ = ["FULL", "JOBS", "QUICK", "Scale", "Trace", "Traces"]

JOBS = 256
"""Of a sequence, learned from or tested on."""

LEAST_JOBS = 5 * JOBS + 1
"""So that there is a sequence to learn from."""

TRAINED_SHARE = 0.2
"""Of a log's jobs, the first ones."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"kth-sp2": "KTH-SP2",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin-1",
    r"lublin[-_]?(2|256_new2)(\.|$)": "Lublin-2",
}
"""What logs are called in papers, by how the names of their files begin."""


@dataclass(frozen=True)
class Scale:
    """How much is done.

    Parameters
    ----------
    sequences : int
        On which everybody meets, of each log; fewer where no more lie side by side.
    inspector_steps : int
        Decisions that an inspector learns from.
    backfiller_steps : mapping of str to int
        And a backfiller takes while it evolves, by order; none for F1, behind which there is hardly anything
        to choose: a few times a sequence.
    together_sequences : int
        Sequences that two who learn together play.
    orders : tuple of str
        Whose jobs are inspected, and backfilled behind; the first one's by pairs too.
    """

    sequences: int = 100
    inspector_steps: int = 1_000_000
    backfiller_steps: Mapping[str, int] = field(default_factory=lambda: {"sjf": 300_000})
    together_sequences: int = 1_000
    orders: tuple[str, ...] = ("sjf", "f1")


FULL = Scale()
QUICK = Scale(
    sequences=20,
    inspector_steps=150_000,
    backfiller_steps={"sjf": 30_000},
    together_sequences=300,
    orders=("sjf",),
)


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
        Where the choice of sequences comes from.

    Examples
    --------
    >>> files = "CTC-SP2-1996-3.1-cln.swf.gz", "lublin-2.swf", "mine.swf"
    >>> [Trace(Path(name), FULL, 0).name for name in files]
    ['CTC-SP2', 'Lublin-2', 'mine']
    """

    NAMES = NAMES

    scale: Scale
    seed: int

    @cached_property
    def log(self) -> Workload:
        """As it is, but for jobs that the machine is too small for."""
        log = read_swf(self.path)
        if log.machine_size is not None:
            log = log.fitting(log.machine_size)
        return self.long_enough(log, LEAST_JOBS)

    @property
    def times_are_known(self) -> bool:
        """Users have requested just what jobs took: the log has no estimates of its own."""
        return bool((self.log.requested_time == self.log.run_time).all())

    @cached_property
    def part(self) -> Workload:
        """The jobs that agents learn from."""
        return self.log.first(int(TRAINED_SHARE * len(self.log)))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the jobs that agents learn from [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def rest(self) -> SequenceSet:
        """Sequences of jobs that nobody has learned from, no job in two of them."""
        log, first = self.log, len(self.part)
        starts = starts_apart(first, len(log), jobs=JOBS, count=self.scale.sequences, seed=self.seed)
        return SequenceSet(self.name, tuple(Scenario(log.first(JOBS, start)) for start in starts))


@dataclass(frozen=True)
class Traces:
    """All logs; see :class:`Trace`."""

    paths: Sequence[Path]
    scale: Scale
    seed: int

    @cached_property
    def all(self) -> Sequence[Trace]:
        """The logs in the order given."""
        return each_once([Trace(path, self.scale, self.seed) for path in self.paths])

    def lines(self) -> Iterator[str]:
        """Say what there is."""
        for trace in self.all:
            yield (
                f"{trace.name}: {grouped(len(trace.log))} jobs, {_skipped(trace.log)}"
                f"the first {grouped(len(trace.part))} to learn from; "
                f"{trace.rest.words(self.scale.sequences)} of the rest to be tested on"
                f"{'; requested times are run times' * trace.times_are_known}"
            )


def _skipped(log: Workload) -> str:
    """Say how many jobs are skipped for which reasons, but not in which lines of the file."""
    return "".join(
        f"{grouped(count)} skipped ({reason.partition(' (first')[0]}), "
        for reason, count in log.skipped.items()
    )
