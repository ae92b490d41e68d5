"""A journal of events, from which Python tells observers what happened between two decisions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hpcsimkit.compiled.compilation import machine_code
from hpcsimkit.compiled.state import Integers

SUBMITTED, STARTED, ENDED = range(3)
KINDS = (SUBMITTED, STARTED, ENDED)
"""Kinds of events."""

ENTRIES = 0
"""Position of the number of entries in :attr:`Journal.counters`."""


class Journal(NamedTuple):
    """Events of a run in their order.

    Attributes
    ----------
    events : array of int64, shape (3, 3 * jobs)
        Kind, row of the job and time [s] of each event; every job is submitted, starts and ends once.
    counters : array of int64
        Number of events, at the position named above.
    """

    events: Integers
    counters: Integers


def new_journal(jobs: int) -> Journal:
    """Return an empty journal of a run of at most `jobs` jobs."""
    return Journal(np.empty((3, 3 * jobs), dtype=np.int64), np.zeros(1, dtype=np.int64))


@machine_code
def enter_in(journal: Journal, kind: int, row: int, now: int) -> None:
    """Add an event."""
    place = journal.counters[ENTRIES]
    journal.events[0, place], journal.events[1, place], journal.events[2, place] = kind, row, now
    journal.counters[ENTRIES] = place + 1
