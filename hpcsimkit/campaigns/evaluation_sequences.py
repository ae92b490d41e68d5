"""Where the sequences of an evaluation begin: no job is in two of them as long as the log has room."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["beginnings", "places", "share_in_several"]


def places(length: int, jobs: int) -> int:
    """Return how many sequences of so many jobs lie side by side in a log."""
    return length // jobs


def beginnings(length: int, jobs: int, sequences: int, rng: np.random.Generator) -> list[int]:
    """Draw where sequences begin; the first ones are the same, however many there are.

    As many as have room lie side by side, in random order; all others lie anywhere.

    Parameters
    ----------
    length : int
        Jobs of the log, at least `jobs`.
    jobs, sequences : int
        Jobs of a sequence, and how many sequences there are.
    rng : numpy.random.Generator
        Where the chance comes from.

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
    """Return the share of the jobs of all sequences that are in more than one of them.

    >>> share_in_several([0, 4, 6], 4)  # jobs 6 and 7 of ten
    0.2
    """
    times = np.zeros(max(firsts) + jobs, dtype=np.int64)
    for first in firsts:
        times[first : first + jobs] += 1
    return float(np.count_nonzero(times > 1) / np.count_nonzero(times))
