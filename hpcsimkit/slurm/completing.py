"""Machines on which killed jobs are being ended, and that no other job gets until then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["Completing"]

Mask = NDArray[np.bool_]


class Completing:
    """Until when the machines of killed jobs take no other job, as Slurm's nodes in the state COMPLETING.

    Parameters
    ----------
    machines : int
        Number of machines.
    seconds : int
        Time from the end of a killed job until its machines take others [s]; 0 for none.

    Examples
    --------
    >>> completing = Completing(3, seconds=30)
    >>> completing.start(7, [0, 2])
    >>> completing.kill(7, now=100)
    >>> every = np.ones(3, dtype=bool)
    >>> completing.ready(every, 129), completing.ready(every, 130), completing.ends_after(100)
    (array([False,  True, False]), array([ True,  True,  True]), [130])
    """

    def __init__(self, machines: int, seconds: int) -> None:
        self._seconds = seconds
        self._until = np.zeros(machines, dtype=np.int64)
        self._machines: dict[int, list[int]] = {}
        self._stopping: dict[int, int] = {}  # time until which each job waits for those that it stopped

    def start(self, row: int, machines: Iterable[int]) -> None:
        """Enter the machines of a job."""
        if self._seconds:
            self._machines[row] = list(machines)

    def kill(self, row: int, now: int) -> None:
        """Enter that a job was killed."""
        if self._seconds:
            self._until[self._machines[row]] = now + self._seconds

    def stop_others(self, row: int, now: int) -> None:
        """Enter that a job has stopped others, whose machines it will use."""
        if self._seconds:
            self._stopping[row] = now + self._seconds

    def waits_for_others(self, row: int, now: int) -> bool:
        """Return whether a job waits for the machines of those that it has stopped."""
        return self._stopping.get(row, 0) > now

    def ready(self, machines: Mask, now: int) -> Mask:
        """Return those of some machines that take jobs."""
        return machines & (self._until <= now) if self._seconds else machines

    def waits_on(self, machines: Sequence[int], now: int) -> bool:
        """Return whether some machine takes no job yet."""
        return bool(self._seconds) and bool((self._until[list(machines)] > now).any())

    def ends(self, now: int) -> bool:
        """Return whether a machine takes jobs again from now on."""
        return bool(self._seconds) and bool((self._until == now).any())

    def ends_after(self, now: int) -> list[int]:
        """Return when the next machine takes jobs again [s], if one does not."""
        later = self._until[self._until > now] if self._seconds else ()
        return [int(min(later))] if len(later) else []
