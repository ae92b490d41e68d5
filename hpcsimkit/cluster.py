"""What jobs run on, as a capacity algebra: levels that allocations are added to and subtracted from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.job import Job
from hpcsimkit.jobqueue import DEEP, JobQueue
from hpcsimkit.workload import Workload

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

    Levels and allocations are added and subtracted with ``+`` and ``-``. A subclass says what a full level
    is and answers the questions below; EASY and greedy backfilling are written once, above it.
    """

    @property
    @abstractmethod
    def capacity(self) -> Level:
        """The level of the empty cluster."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Nodes in the whole cluster, the yardstick of utilisation."""

    @abstractmethod
    def place(self, job: Job, level: Level) -> Allocation | None:
        """Return an allocation for the job within the level, or None if there is none."""

    @abstractmethod
    def holds(self, job: Job, allocation: Allocation, level: Level) -> bool:
        """Tell whether the allocation gives the job what it asked for and lies within the level."""

    @abstractmethod
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

    @abstractmethod
    def admits(self, job: Job, estimate: int, room: Room) -> bool:
        """Tell whether there is room for one job that is expected to run `estimate` seconds."""

    @abstractmethod
    def take(self, job: Job, estimate: int, room: Room) -> None:
        """Let a job that has just been started use the room."""

    @abstractmethod
    def fitting(self, queue: JobQueue, level: Level) -> Candidates:
        """Return the queued jobs that fit the level, in policy order, for :meth:`admissible`."""

    @abstractmethod
    def admissible(self, candidates: Candidates, queue: JobQueue, room: Room) -> Iterable[Job]:
        """Return those candidates there is room for; an empty tuple if it is plain that there are none.

        Whoever iterates may start a job before asking for the next one; the room shrinks accordingly.
        """


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

    def admits(self, job: Job, estimate: int, room: Room) -> bool:
        """Tell whether the nodes are free and the job ends in time or keeps to the spare ones."""
        return job.nodes <= room.free and (estimate <= room.window or job.nodes <= room.spare)

    def take(self, job: Job, estimate: int, room: Room) -> None:
        """Take the nodes from the free ones, and from the spare ones if the job may last too long."""
        room.free = room.free - job.nodes  # not in place: it may be the system's own level
        if estimate > room.window:
            room.spare = room.spare - job.nodes

    def fitting(self, queue: JobQueue, level: int) -> Candidates:
        """Return ``(job, nodes, estimate)`` of a short queue; of a long one, rows (index, nodes, estimate).

        A queue in an order of its own is treated as a long one.
        """
        if len(queue.jobs) < DEEP and queue.stored_in_order:
            waiting = zip(queue.jobs, queue.nodes, queue.estimates)  # noqa: B905 - the hottest loop
            return [candidate for candidate in waiting if candidate[1] <= level]
        table = queue.table
        return table[:, queue.ranked(np.flatnonzero(table[1] <= level))].T

    def admissible(self, candidates: Candidates, queue: JobQueue, room: Room) -> Iterable[Job]:
        """Return those candidates there is room for; see :meth:`Cluster.admissible`."""
        if isinstance(candidates, np.ndarray):
            return self._admissible_many(candidates, queue, room)
        window, spare = room.window, room.spare
        some = [candidate for candidate in candidates if candidate[2] <= window or candidate[1] <= spare]
        return self._admissible_few(some, queue, room) if some else ()

    def _admissible_few(
        self, candidates: list[tuple[Job, int, int]], queue: JobQueue, room: Room
    ) -> Iterator[Job]:
        for job, _, estimate in candidates:
            if self.admits(job, estimate, room):
                yield job
                if job not in queue:
                    self.take(job, estimate, room)

    def _admissible_many(self, candidates: NDArray[np.int64], queue: JobQueue, room: Room) -> Iterator[Job]:
        """Look through all candidates at once in numpy, and again after each start."""
        candidates = candidates[_room_for(candidates, room)]
        while len(candidates):
            row, _, estimate = candidates[0].tolist()
            candidates = candidates[1:]
            job = queue.job(row)
            yield job
            if job not in queue:
                self.take(job, estimate, room)
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
        A job does not fit the empty cluster.

    Examples
    --------
    >>> as_cluster(8, Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}))
    Nodes(count=8)
    """
    if cluster is None and workload.machine_size is None:
        raise UsageError(f"{workload.name}: the log names no machine size; say how many nodes there are")
    if not isinstance(cluster, Cluster):
        cluster = Nodes(workload.machine_size if cluster is None else cluster)  # type: ignore[arg-type]
    job = workload.jobs[int(workload.nodes.argmax())] if len(workload) else None
    if job is not None and cluster.place(job, cluster.capacity) is None:
        raise ScheduleError(f"job {job.id} needs {job.nodes} nodes; the cluster has {cluster.capacity}")
    return cluster
