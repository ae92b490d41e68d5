"""Start indices of the sequences of an evaluation, which share no jobs if the log is long enough."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def places(length: int, jobs: int) -> int:
    """Return the maximum number of non-overlapping sequences in a log."""
    return length // jobs


def beginnings(length: int, jobs: int, sequences: int, rng: np.random.Generator) -> list[int]:
    """Sample the start indices of sequences; the first ones do not depend on the number of sequences.

    The first sequences, up to the maximum number, do not overlap and are in random order; all others start
    at random indices.

    Examples
    --------
    >>> sorted(beginnings(12, 4, 3, np.random.default_rng(0)))
    [0, 4, 8]
    """
    room = places(length, jobs)
    begin = int(rng.integers(length - room * jobs + 1))
    apart = begin + jobs * rng.permutation(room)
    anywhere = rng.integers(length - jobs + 1, size=max(0, sequences - room))
    return [*apart[:sequences].tolist(), *anywhere.tolist()]


def share_in_several(firsts: Sequence[int], jobs: int) -> float:
    """Return the share of the sampled jobs that are in more than one sequence.

    >>> share_in_several([0, 4, 6], 4)  # jobs 6 and 7 of ten
    0.2
    """
    times = np.zeros(max(firsts) + jobs, dtype=np.int64)
    for first in firsts:
        times[first : first + jobs] += 1
    return float(np.count_nonzero(times > 1) / np.count_nonzero(times))
