"""What jobs run on, as a capacity algebra: levels that allocations are added to and subtracted from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import DEEP, JobQueue
from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    from hpcsimkit.system import System

__all__ = ["Allocation", "Cluster", "Level", "Nodes", "Room", "as_cluster"]

Level = Any
"""How much is free: an ``int`` on counted nodes; clusters of machines use integer matrices."""

Allocation = Any
"""What a job occupies, of the same kind as a level: ``level - allocation`` and ``level + allocation``."""

Candidates = list[Any] | NDArray[np.int64]
"""Queued jobs that fit a level, in a form of the cluster's own; ``len`` tells how many."""


@dataclass(slots=True)
class Room:
    """What jobs behind a blocked one may use now without delaying it.

    Parameters
    ----------
    free : Level
        Free now.
    window : float
        A job expected to run no longer than this [s] may use all of it.
    spare : Level
        A longer one only what lies within this: left over once the reserved job has started.
    """

    free: Level
    window: float
    spare: Level


class Cluster(ABC):
    """Questions about capacity, asked by everything above: queues, reservations, plans.

    Levels and allocations are added and subtracted with ``+`` and ``-``, which leave them as they are; levels
    are compared by their content. A subclass says what a full level is and answers the abstract questions;
    the others have answers made of those, which a subclass may replace by faster or better ones. EASY and
    greedy backfilling are written once, above them all.
    """

    # --- what a subclass must answer -----------------------------------------------------------------

    @property
    @abstractmethod
    def capacity(self) -> Level:
        """The level of the empty cluster."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How large the whole cluster is, in its :attr:`unit`: the yardstick of utilisation."""

    @abstractmethod
    def place(self, job: Job, level: Level) -> Allocation | None:
        """Return an allocation for the job within the level, or None if there is none."""

    @abstractmethod
    def holds(self, job: Job, allocation: Allocation, level: Level) -> bool:
        """Tell whether the allocation gives the job what it asked for and lies within the level."""

    @abstractmethod
    def common(self, level: Level, other: Level) -> Level:
        """Return what is free in both levels."""

    @abstractmethod
    def main_amount(self, job: Job, allocation: Allocation) -> int:
        """Return how much of :attr:`size` an allocation of a job takes."""

    @abstractmethod
    def asked(self, job: Job) -> int:
        """Return how much of :attr:`size` a job asks for."""

    @abstractmethod
    def share(self, level: Level) -> float:
        """Return what share of :attr:`size` a level is."""

    @abstractmethod
    def shortage(self, job: Job, level: Level) -> str:
        """Say what a job needs and what a level has of it: ``needs 3 nodes; 2 are free``."""

    # --- what follows from that ----------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """What :attr:`size` counts."""
        return "nodes"

    def fits(self, job: Job, level: Level) -> bool:
        """Tell whether a job fits a level."""
        return self.place(job, level) is not None

    def fit_each(self, jobs: Sequence[Job], level: Level) -> Sequence[bool] | NDArray[np.bool_]:
        """Tell of each job whether it fits a level."""
        return [self.fits(job, level) for job in jobs]

    def misfits(self, workload: Workload) -> NDArray[np.bool_]:
        """Tell which jobs do not fit the empty cluster, bool, shape (jobs,)."""
        capacity = self.capacity
        return np.array([not self.fits(job, capacity) for job in workload.jobs], dtype=bool)

    def size_of(self, job: Job) -> int:
        """Return a number such that jobs with equal numbers need the same."""
        return job.nodes

    def earliest(
        self, job: Job, level: Level, releases: Iterable[tuple[int, int, Allocation]], soonest: int
    ) -> tuple[int, Level]:
        """Find when the job fits if running jobs end as expected.

        Parameters
        ----------
        job : Job
            It must not fit the level.
        level : Level
            What is free now.
        releases : iterable of (int, int, Allocation)
            Expected end [s], a tie-breaker, and what becomes free, by expected end.
        soonest : int
            Ends before this instant count as being at it [s]: running jobs past their estimate.

        Returns
        -------
        (int, Level)
            The earliest such instant [s] and the level then, with all ends of that instant counted.
        """
        shadow_time = soonest
        releases = iter(releases)
        for end, _, released in releases:
            level = level + released
            if self.fits(job, level):
                shadow_time = max(end, soonest)
                break
        for end, _, released in releases:
            if end > shadow_time:
                break
            level = level + released
        return shadow_time, level

    def room(self, head: Job, free: Level, window: float, later: Level) -> Room:
        """Return what jobs behind a blocked one may use now.

        Parameters
        ----------
        head : Job
            The blocked job.
        free : Level
            What is free now.
        window : float
            Time until it can start [s].
        later : Level
            What is free then.
        """
        return Room(free, window, later - self.place(head, later))

    def within(self, job: Job, estimate: int, room: Room) -> Level | None:
        """Return the level within which a job may be placed now, None if there is no room for it.

        Parameters
        ----------
        job : Job
            Any.
        estimate : int
            How long it is expected to run [s].
        room : Room
            What there is.
        """
        level = room.free if estimate <= room.window else self.common(room.free, room.spare)
        return level if self.fits(job, level) else None

    def admits(self, job: Job, estimate: int, room: Room) -> bool:
        """Tell whether there is room for one job that is expected to run `estimate` seconds."""
        return self.within(job, estimate, room) is not None

    def take(self, job: Job, estimate: int, room: Room, allocation: Allocation) -> None:
        """Let a job that has just been started use the room."""
        room.free = room.free - allocation
        if estimate > room.window:
            room.spare = room.spare - allocation

    def fitting(self, queue: JobQueue, level: Level) -> Candidates:
        """Return the queued jobs that fit the level, in policy order, for :meth:`admissible`."""
        return [job for job in queue if self.fits(job, level)]

    def admissible(self, candidates: Candidates, system: System, room: Room) -> Iterable[Job]:
        """Return those candidates there is room for; an empty tuple if it is plain that there are none.

        Whoever iterates may start a job before asking for the next one; the room shrinks accordingly.
        """
        for job in candidates:
            estimate = system.estimate(job)
            if self.admits(job, estimate, room):
                yield job
                if job not in system.queue:
                    self.take(job, estimate, room, system.running.allocation(job))


@dataclass(frozen=True)
class Nodes(Cluster):
    """Identical nodes that are only counted: a job takes ``job.nodes`` of them, whichever they are.

    Parameters
    ----------
    count : int
        How many there are, >= 1.

    Examples
    --------
    >>> cluster = Nodes(4)
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=3)
    >>> cluster.place(job, cluster.capacity), cluster.place(job, 2)
    (3, None)
    >>> cluster.earliest(job, 1, [(10, 0, 1), (20, 1, 1), (20, 2, 1)], soonest=1)
    (20, 4)
    """

    count: int

    def __post_init__(self) -> None:
        whole = isinstance(self.count, int | np.integer) and not isinstance(self.count, bool)
        if not whole or self.count < 1:
            raise UsageError(f"a cluster needs a whole number of nodes of at least 1, found {self.count!r}")
        object.__setattr__(self, "count", int(self.count))

    @property
    def capacity(self) -> int:
        """All nodes."""
        return self.count

    @property
    def size(self) -> int:
        """All nodes."""
        return self.count

    def place(self, job: Job, level: int) -> int | None:
        """Return ``job.nodes`` if so many are free, else None."""
        nodes = job.nodes
        return nodes if nodes <= level else None

    def holds(self, job: Job, allocation: int, level: int) -> bool:
        """Tell whether the allocation is the job's nodes and so many are free."""
        return allocation == job.nodes and allocation <= level

    def common(self, level: int, other: int) -> int:
        """Return the smaller number."""
        return min(level, other)

    def main_amount(self, job: Job, allocation: int) -> int:
        """Return the nodes."""
        return allocation

    def asked(self, job: Job) -> int:
        """Return the job's nodes."""
        return job.nodes

    def share(self, level: int) -> float:
        """Return the share of the nodes."""
        return level / self.count

    def shortage(self, job: Job, level: int) -> str:
        """Say how many nodes a job needs, and how many there are."""
        found = f"the cluster has {level}" if job.nodes > self.count else f"{level} are free"
        return f"needs {job.nodes} nodes; {found}"

    def fits(self, job: Job, level: int) -> bool:
        """Tell whether so many nodes are free."""
        return job.nodes <= level

    def fit_each(self, jobs: Sequence[Job], level: int) -> Sequence[bool]:
        """Tell of each job whether so many nodes are free."""
        return [job.nodes <= level for job in jobs]

    def room(self, head: Job, free: int, window: float, later: int) -> Room:
        """Return the room: spare are the nodes that the head leaves."""
        return Room(free, window, later - head.nodes)

    def earliest(
        self, job: Job, level: int, releases: Iterable[tuple[int, int, int]], soonest: int
    ) -> tuple[int, int]:
        """Walk the releases until the job fits; see :meth:`Cluster.earliest`."""
        nodes = job.nodes
        shadow_time = soonest
        releases = iter(releases)
        for end, _, released in releases:
            level += released
            if level >= nodes:
                shadow_time = max(end, soonest)
                break
        for end, _, released in releases:
            if end > shadow_time:
                break
            level += released
        return shadow_time, level

    def misfits(self, workload: Workload) -> NDArray[np.bool_]:
        """Tell which jobs need more nodes than there are."""
        return workload.column("nodes") > self.count

    def admits(self, job: Job, estimate: int, room: Room) -> bool:
        """Tell whether the nodes are free and the job ends in time or keeps to the spare ones."""
        return job.nodes <= room.free and (estimate <= room.window or job.nodes <= room.spare)

    def fitting(self, queue: JobQueue, level: int) -> Candidates:
        """Return ``(job, nodes, estimate)`` of a short queue; of a long one, rows (index, nodes, estimate).

        A queue in an order of its own is treated as a long one.
        """
        if len(queue.jobs) < DEEP and queue.stored_in_order:
            waiting = zip(queue.jobs, queue.sizes, queue.estimates)  # noqa: B905 - the hottest loop
            return [candidate for candidate in waiting if candidate[1] <= level]
        table = queue.table
        return table[:, queue.ranked(np.flatnonzero(table[1] <= level))].T

    def admissible(self, candidates: Candidates, system: System, room: Room) -> Iterable[Job]:
        """Return those candidates there is room for; see :meth:`Cluster.admissible`."""
        if isinstance(candidates, np.ndarray):
            return self._admissible_many(candidates, system, room)
        window, spare = room.window, room.spare
        some = [candidate for candidate in candidates if candidate[2] <= window or candidate[1] <= spare]
        return self._admissible_few(some, system, room) if some else ()

    def _admissible_few(
        self, candidates: list[tuple[Job, int, int]], system: System, room: Room
    ) -> Iterator[Job]:
        for job, _, estimate in candidates:
            if self.admits(job, estimate, room):
                yield job
                if job not in system.queue:
                    self.take(job, estimate, room, job.nodes)

    def _admissible_many(self, candidates: NDArray[np.int64], system: System, room: Room) -> Iterator[Job]:
        """Look through all candidates at once in numpy, and again after each start."""
        candidates = candidates[_room_for(candidates, room)]
        while len(candidates):
            row, _, estimate = candidates[0].tolist()
            candidates = candidates[1:]
            job = system.jobs[row]
            yield job
            if job not in system.queue:
                self.take(job, estimate, room, job.nodes)
                candidates = candidates[_room_for(candidates, room)]


def _room_for(candidates: NDArray[np.int64], room: Room) -> NDArray[np.bool_]:
    """Tell for each row (index, nodes, estimate) whether there is room."""
    _, nodes, estimates = candidates.T
    return (nodes <= room.free) & ((estimates <= room.window) | (nodes <= room.spare))


def as_cluster(cluster: Cluster | int | None, workload: Workload) -> Cluster:
    """Return the cluster meant by a number of nodes, or by the machine that the workload names.

    Raises
    ------
    UsageError
        It is not known which, or the number makes no sense.
    ScheduleError
        A job does not fit the empty cluster; the first such job of the log is named.

    Examples
    --------
    >>> as_cluster(8, Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}))
    Nodes(count=8)
    """
    if cluster is None and workload.machine_size is None:
        raise UsageError(f"{workload.name}: the log names no machine size; say how many nodes there are")
    if not isinstance(cluster, Cluster):
        cluster = Nodes(workload.machine_size if cluster is None else cluster)  # type: ignore[arg-type]
    if cluster.size < 1:
        raise UsageError(f"{cluster!r} has no {cluster.unit}, by which utilisation is measured")
    larger = cluster.misfits(workload)
    if larger.any():
        job = workload.jobs[int(larger.argmax())]
        raise ScheduleError(f"job {job.id} {cluster.shortage(job, cluster.capacity)}")
    return cluster
