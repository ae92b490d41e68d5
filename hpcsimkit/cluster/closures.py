"""Windows of a calendar on machines: the machines that a job may not use, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.calendar import Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload

__all__ = ["Closure", "Closures"]

Mask = NDArray[np.bool_]


class Closure(NamedTuple):
    """Machines that only some jobs may use for some time.

    Attributes
    ----------
    start, end : int
        Beginning and end [s].
    machines : array of bool, shape (machines,)
        Whether each machine is closed.
    admits : array of bool, shape (jobs,)
        Whether each job may use them all the same.
    """

    start: int
    end: int
    machines: Mask
    admits: Mask


class Closures:
    """The closures of a cluster of machines in one run, as far as they are not over.

    Parameters
    ----------
    closures : iterable of Closure
        The closures, by their beginning.

    Attributes
    ----------
    times : list of int
        Times at which a closure begins or ends [s].
    edges : frozenset of int
        The same times.

    Examples
    --------
    >>> w = Workload({"submit_time": [0, 0], "run_time": [8, 8], "nodes": [1, 1], "user": [1, 2]})
    >>> closures = Closures.of([Window(5, 9, machines=("node2",), users=(2,))], Machines.of(2, cpus=1), w)
    >>> [closures.machines(job, 0, 6) for job in w.jobs]
    [array([False,  True]), None]
    """

    def __init__(self, closures: Iterable[Closure]) -> None:
        self._closures = list(closures)
        self.edges = frozenset(time for each in self._closures for time in (each.start, each.end))
        self.times = sorted(self.edges)

    @classmethod
    def of(cls, windows: Iterable[Window], cluster: Machines, workload: Workload) -> Closures:
        """Return the closures of windows on a cluster.

        Raises
        ------
        UsageError
            A window names no machines, or one that does not exist.
        """
        found = []
        for window in sorted(windows, key=lambda each: each.start):
            who = f"window from {window.start} to {window.end} s"
            if not window.machines:
                raise UsageError(f"{who}: the machines of {cluster!r} must be named")
            closed = np.zeros(len(cluster), dtype=np.bool_)
            for machine in window.machines:
                found_here = cluster.matching(machine)
                if not found_here:
                    raise UsageError(f"{who}: {cluster!r} has no machine {machine!r}")
                closed[found_here] = True
            found.append(Closure(window.start, window.end, closed, window.admits(workload)))
        return cls(found)

    def __bool__(self) -> bool:
        return bool(self._closures)

    def on(self, numbers: NDArray[np.intp]) -> Closures:
        """Return the closures of some of the machines, by number."""
        parts = (each._replace(machines=each.machines[numbers]) for each in self._closures)
        return Closures(each for each in parts if each.machines.any())

    def forget(self, now: int) -> None:
        """Drop the closures that are over."""
        self._closures = [each for each in self._closures if each.end > now]

    def closed_to(self, job: Job, start: int, end: float = float("inf")) -> Iterator[Closure]:
        """Yield the closures within an interval [s] that do not admit a job."""
        row = job.index
        for each in self._closures:
            if each.start >= end:
                break
            if each.end > start and not each.admits[row]:
                yield each

    def machines(self, job: Job, start: int, end: int) -> Mask | None:
        """Return the machines closed to a job at any time of an interval [s], or None if there are none."""
        found = [each.machines for each in self.closed_to(job, start, end)]
        return np.logical_or.reduce(found) if found else None

    def level_for(
        self,
        job: Job,
        level: MachineLevel,
        now: int,
        end: int,
        releases: Iterable[tuple[int, int, Allocation]],
    ) -> MachineLevel:
        """Return the free capacity that a job may use until its expected end.

        See :meth:`Calendar.level_for <hpcsimkit.cluster.calendar.Calendar.level_for>`.
        """
        return without(level, self.machines(job, now, end))


def without(level: MachineLevel, closed: Mask | None) -> MachineLevel:
    """Return a level without the machines that are closed.

    >>> without(np.array([[4], [2]]), np.array([False, True])).tolist()
    [[4], [0]]
    """
    if closed is None:
        return level
    left = level.copy("K")
    left[closed] = 0
    return left
