"""Logs, split into training jobs and test sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from hpcsimkit.reproductions.logs import Logs
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.split_logs import PublishedLog

__all__ = ["FULL", "QUICK", "Scale", "Trace", "Traces"]

PUBLISHED_SEED = 1
PUBLISHED_SLICE = 10_000
"""Number of training jobs in the published code, from the start of the log."""

NAMES = {
    r"sdsc-sp2": "SDSC-SP2",
    r"ctc-sp2": "CTC-SP2",
    r"hpc2n": "HPC2N",
    r"lublin[-_]?(1|256)(\.|$)": "Lublin",
}
"""Names of logs in the paper, by patterns that match the beginning of the file name."""


@dataclass(frozen=True)
class Scale:
    """Size preset of the experiment.

    Parameters
    ----------
    sequences : int
        Number of test sequences of each set; fewer if the log has no more non-overlapping ones.
    steps : int
        Number of decisions used to train a published agent of the tables.
    prompt_steps : int
        Number of decisions used to train an agent with the dense reward.
    study_steps : int
        Number of decisions used to train an agent of the paper's figures 5 to 12; 0 omits these figures.
    orders : tuple of str
        Base schedulers.
    whole : bool
        Whether to include the training and test of the published code.
    """

    sequences: int = 50
    steps: int = 2_000_000
    prompt_steps: int = 1_500_000
    study_steps: int = 400_000
    orders: tuple[str, ...] = ("sjf", "f1")
    whole: bool = True


FULL = Scale()
QUICK = Scale(sequences=20, steps=500_000, prompt_steps=500_000, study_steps=0, orders=("sjf",), whole=False)


class Trace(PublishedLog):
    """A log.

    Examples
    --------
    >>> [Trace(Path(name), FULL, 0).name for name in ("HPC2N-2002-2.2-cln.swf.gz", "lublin-1.swf", "KTH.swf")]
    ['HPC2N', 'Lublin', 'KTH']
    """

    NAMES, CODE, JOBS, LEAST_JOBS = NAMES, "schedinspector", 256, 5 * 256
    scale: Scale

    @cached_property
    def whole(self) -> SequenceSet:
        """Sequences of the published test."""
        return self.drawn("whole", PUBLISHED_SEED, self.scale.sequences)


class Traces(Logs[Trace]):
    """All logs."""

    scale: Scale

    def log_of(self, path: Path) -> Trace:
        """Return the log of a file."""
        return Trace(path, self.scale, self.seed)
