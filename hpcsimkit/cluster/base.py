"""Cluster resources as a capacity algebra: allocations are added to and subtracted from levels."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import DEEP, JobQueue
from hpcsimkit.jobs.workload import Workload

__all__ = ["AllocationT", "Candidates", "Cluster", "LevelT", "Nodes", "Room", "as_cluster"]

LevelT = TypeVar("LevelT")
"""Type of available capacity."""

AllocationT = TypeVar("AllocationT")
"""Type of the resources that a job occupies."""

Candidates = list[tuple[Job, int, int]] | NDArray[np.intp]
"""Queued jobs that fit a level: (job, size, estimate) in policy order, or positions in the queue's table."""


@dataclass(slots=True)
class Room(Generic[LevelT]):
    """Capacity for backfilling: jobs behind a blocked job may use it now without delaying that job.

    Parameters
    ----------
    free : LevelT
        Capacity that is free now.
    window : float
        Time until the shadow time [s]. A job with an estimate of at most this may use all free capacity.
    spare : LevelT
        Extra nodes: capacity left over once the blocked job has started, available to longer jobs.

    Examples
    --------
    >>> room = Room(free=3, window=60.0, spare=1)
    >>> room.free, room.spare
    (3, 1)
    """

    free: LevelT
    window: float
    spare: LevelT


class Cluster(ABC, Generic[LevelT, AllocationT]):
    """Capacity queries used by all higher layers: queues, reservations, plans.

    Levels and allocations are added and subtracted with ``+`` and ``-``, which do not modify their operands;
    levels are compared by content. A subclass defines the capacity and implements the abstract methods; the
    other methods have default implementations based on these, which a subclass may override with faster or
    better ones. EASY and greedy backfilling are implemented once, on top of all clusters.
    """

    limited: ClassVar[bool] = False
    """Whether limits of the amounts in use may refuse a job that fits the machines."""

    # --- abstract methods ----------------------------------------------------------------------------

    @property
    @abstractmethod
    def capacity(self) -> LevelT:
        """The capacity of the empty cluster."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The size of the whole cluster in its :attr:`unit`, the reference of utilisation."""

    @abstractmethod
    def place(self, job: Job, level: LevelT) -> AllocationT | None:
        """Return an allocation for the job within the level, or None if there is none."""

    @abstractmethod
    def holds(self, job: Job, allocation: AllocationT, level: LevelT) -> bool:
        """Return whether the allocation meets the job's request and lies within the level."""

    @abstractmethod
    def common(self, level: LevelT, other: LevelT) -> LevelT:
        """Return the capacity that is available in both levels."""

    @abstractmethod
    def main_amount(self, job: Job, allocation: AllocationT) -> int:
        """Return the part of :attr:`size` that an allocation of a job occupies."""

    @abstractmethod
    def asked(self, job: Job) -> int:
        """Return the part of :attr:`size` that a job requests."""

    @abstractmethod
    def share(self, level: LevelT) -> float:
        """Return a level as a fraction of :attr:`size`."""

    @abstractmethod
    def shortage(self, job: Job, level: LevelT) -> str:
        """Return the demand of a job and the supply of a level in words: ``needs 3 nodes; 2 are free``."""

    # --- default implementations ---------------------------------------------------------------------

    @property
    def unit(self) -> str:
        """The unit of :attr:`size`."""
        return "nodes"

    def granted(self, job: Job, allocation: AllocationT) -> AllocationT:
        """Return an allocation that :meth:`holds` accepts as the one to subtract at the start of the job."""
        return allocation

    def equal(self, level: LevelT, other: LevelT) -> bool:
        """Return whether two levels are the same capacity."""
        return np.array_equal(level, other)  # type: ignore[arg-type]

    def fits(self, job: Job, level: LevelT) -> bool:
        """Return whether a job fits a level."""
        return self.place(job, level) is not None

    def fit_each(self, jobs: Sequence[Job], level: LevelT) -> Sequence[bool] | NDArray[np.bool_]:
        """Return for each job whether it fits a level."""
        return [self.fits(job, level) for job in jobs]

    def misfits(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs do not fit the empty cluster, bool, shape (jobs,)."""
        capacity = self.capacity
        return np.array([not self.fits(job, capacity) for job in workload.jobs], dtype=bool)

    def size_of(self, job: Job) -> int:
        """Return a number that is equal for jobs with equal resource demands."""
        return job.nodes

    def earliest(
        self, job: Job, level: LevelT, releases: Iterable[tuple[int, int, AllocationT]], soonest: int
    ) -> tuple[int, LevelT]:
        """Return the earliest time at which the job fits if running jobs end as expected.

        Parameters
        ----------
        job : Job
            A job that does not fit the level.
        level : LevelT
            Capacity that is free now.
        releases : iterable of (int, int, AllocationT)
            Expected end [s], tie-breaker and released allocation, by expected end.
        soonest : int
            Lower bound of the release times [s]: earlier expected ends, of jobs that exceed their estimates,
            count as this time.

        Returns
        -------
        (int, LevelT)
            The shadow time [s] and the available capacity then, with all ends at that instant included.
        """
        shadow_time = soonest
        releases = iter(releases)
        for end, _, released in releases:
            level = operator.add(level, released)
            if self.fits(job, level):
                shadow_time = max(end, soonest)
                break
        for end, _, released in releases:
            if end > shadow_time:
                break
            level = operator.add(level, released)
        return shadow_time, level

    def room(self, head: Job, free: LevelT, window: float, later: LevelT) -> Room[LevelT]:
        """Return the capacity for backfilling behind a blocked job.

        Parameters
        ----------
        head : Job
            The blocked job.
        free : LevelT
            Capacity that is free now.
        window : float
            Time until the shadow time [s].
        later : LevelT
            Capacity that is free at the shadow time.
        """
        allocation = self.place(head, later)
        assert allocation is not None  # the head fits by the shadow time
        return Room(free, window, operator.sub(later, allocation))

    def within(self, job: Job, estimate: int, room: Room[LevelT]) -> LevelT | None:
        """Return the level within which a job may be placed now, or None if it may not be backfilled.

        Parameters
        ----------
        job : Job
            The job to place.
        estimate : int
            Run-time estimate of the job [s].
        room : Room
            Capacity for backfilling.
        """
        level = room.free if estimate <= room.window else self.common(room.free, room.spare)
        return level if self.fits(job, level) else None

    def admits(self, job: Job, estimate: int, room: Room[LevelT]) -> bool:
        """Return whether a job with a run-time estimate of `estimate` seconds may be backfilled."""
        return self.within(job, estimate, room) is not None

    def take(self, job: Job, estimate: int, room: Room[LevelT], allocation: AllocationT) -> None:
        """Deduct a job that has just been started from the capacity for backfilling."""
        room.free = operator.sub(room.free, allocation)
        if estimate > room.window:
            room.spare = operator.sub(room.spare, allocation)

    def fitting(self, queue: JobQueue, level: LevelT) -> Candidates:
        """Return the queued jobs that fit the level, in policy order, for :meth:`admissible`."""
        return [candidate for candidate in queue.entries() if self.fits(candidate[0], level)]

    def admissible(
        self, candidates: Candidates, queue: JobQueue, room: Room[LevelT]
    ) -> Iterable[tuple[Job, int]]:
        """Return ``(job, estimate)`` of the candidates that may be backfilled, each checked in turn.

        The capacity may shrink meanwhile (:meth:`take`). An empty tuple is returned if certainly no candidate
        may be backfilled.
        """
        return ((job, estimate) for job, _, estimate in candidates if self.admits(job, estimate, room))


@dataclass(frozen=True)
class Nodes(Cluster[int, int]):
    """Counted (homogeneous) nodes: a job takes ``job.nodes`` of them, without node identities.

    Parameters
    ----------
    count : int
        Number of nodes, >= 1.

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
        """Return ``job.nodes`` if that many nodes are free, else None."""
        nodes = job.nodes
        return nodes if nodes <= level else None

    def holds(self, job: Job, allocation: int, level: int) -> bool:
        """Return whether the allocation equals ``job.nodes`` and does not exceed the level."""
        return allocation == job.nodes and allocation <= level

    def common(self, level: int, other: int) -> int:
        """Return the smaller number of nodes."""
        return min(level, other)

    def main_amount(self, job: Job, allocation: int) -> int:
        """Return the number of allocated nodes."""
        return allocation

    def asked(self, job: Job) -> int:
        """Return the number of nodes that the job requests."""
        return job.nodes

    def share(self, level: int) -> float:
        """Return a number of nodes as a fraction of the cluster."""
        return level / self.count

    def shortage(self, job: Job, level: int) -> str:
        """Return the demand of a job and the number of available nodes in words."""
        found = f"the cluster has {level}" if job.nodes > self.count else f"{level} are free"
        return f"needs {job.nodes} nodes; {found}"

    def fits(self, job: Job, level: int) -> bool:
        """Return whether enough nodes are free."""
        return job.nodes <= level

    def fit_each(self, jobs: Sequence[Job], level: int) -> Sequence[bool]:
        """Return for each job whether enough nodes are free."""
        return [job.nodes <= level for job in jobs]

    def room(self, head: Job, free: int, window: float, later: int) -> Room[int]:
        """Return the capacity for backfilling; the extra nodes are those that the head leaves."""
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
        """Return which jobs need more nodes than the cluster has."""
        return workload.column("nodes") > self.count

    def admits(self, job: Job, estimate: int, room: Room[int]) -> bool:
        """Return whether the job fits now and ends by the shadow time or uses only extra nodes."""
        return job.nodes <= room.free and (estimate <= room.window or job.nodes <= room.spare)

    def fitting(self, queue: JobQueue, level: int) -> Candidates:
        """Return ``(job, nodes, estimate)`` of a short queue; of a long one, positions in its table."""
        if len(queue.jobs) < DEEP:
            waiting: Iterable[tuple[Job, int, int]]
            if queue.stored_in_order:
                waiting = zip(queue.jobs, queue.sizes, queue.estimates)  # noqa: B905 - the hottest loop
            elif len(queue.jobs) > 1 and min(queue.sizes) > level:  # the order is not needed again
                return []
            else:  # also of a single job: an order that keeps a state sees each pass in which a job waits
                waiting = queue.entries()
            return [candidate for candidate in waiting if candidate[1] <= level]
        return (queue.table[1] <= level).nonzero()[0]

    def admissible(
        self, candidates: Candidates, queue: JobQueue, room: Room[int]
    ) -> Iterable[tuple[Job, int]]:
        """Return the candidates that may be backfilled; see :meth:`Cluster.admissible`."""
        if isinstance(candidates, np.ndarray):
            return self._admissible_many(candidates, queue, room)
        window, spare = room.window, room.spare
        some = [candidate for candidate in candidates if candidate[2] <= window or candidate[1] <= spare]
        return super().admissible(some, queue, room) if some else ()

    def _admissible_many(
        self, positions: NDArray[np.intp], queue: JobQueue, room: Room[int]
    ) -> Iterator[tuple[Job, int]]:
        """Filter all candidates at once in numpy, and again whenever the capacity has shrunk."""
        table = queue.table
        chosen = queue.ranked(positions[_with_room(table[1:].take(positions, axis=1), room)])
        candidates = table.take(chosen, axis=1)
        while candidates.size:
            row, _, estimate = candidates[:, 0].tolist()
            candidates, free = candidates[:, 1:], room.free
            yield queue.job(row), estimate
            if room.free != free:
                candidates = candidates.take(_with_room(candidates[1:], room), axis=1)


def _with_room(candidates: NDArray[np.int64], room: Room[int]) -> NDArray[np.intp]:
    """Return the positions of the jobs that may be backfilled, given their nodes and estimates."""
    nodes, estimates = candidates
    admitted = (nodes <= room.free) & ((estimates <= room.window) | (nodes <= room.spare))
    return admitted.nonzero()[0]


def as_cluster(cluster: Cluster[Any, Any] | int | None, workload: Workload) -> Cluster[Any, Any]:
    """Return a cluster for a number of nodes, or for the machine size of the workload.

    Raises
    ------
    UsageError
        The number of nodes is unknown or invalid.
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
