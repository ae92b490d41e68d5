"""The reservation of the first blocked job, and EASY, which lets nothing delay it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpcsimkit.cluster import Level, Room
from hpcsimkit.job import Job
from hpcsimkit.policy import Backfiller, Order
from hpcsimkit.system import System

__all__ = ["EASY", "reserve"]


def reserve(job: Job, system: System) -> tuple[int, Room]:
    """Reserve for a job that does not fit the earliest instant at which it will.

    Returns
    -------
    (int, Room)
        The shadow time [s] and what other jobs may use now without delaying it.
    """
    now = system.now
    cluster = system.cluster
    shadow_time, level = cluster.earliest(job, system.free, system.running.entries, now + 1)
    return shadow_time, cluster.room(job, system.free, shadow_time - now, level)


class EASY(Backfiller):
    """EASY backfilling: the first blocked job holds the only reservation, nothing may delay it.

    A later job starts now if it fits now and either ends by the shadow time or uses only nodes that are
    left over then; on machines, only what leaves enough for the blocked job *somewhere*, not on machines
    chosen now. The reservation is made anew at every pass. (Lifka, JSSPP 1995; Mu'alem & Feitelson,
    TPDS 2001.)

    Parameters
    ----------
    candidates : Order, optional
        In which order candidates are tried, first fit; by default in policy order.

    Examples
    --------
    >>> EASY()
    EASY()
    """

    reserves = True
    settles = True

    def __init__(self, candidates: Order | None = None) -> None:
        self.candidates = candidates

    def reset(self, system: System) -> None:
        """Forget the reservation of the last pass."""
        if self.candidates is not None:
            self.candidates.reset(system)
        self._head: Job | None = None
        self.settled = self.seen_pass = -1
        self._shadow_time = 0
        self._room: Room | None = None

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the queued jobs that fit and do not delay `head`, each judged when its turn comes.

        Where a single arrival is all that happened since every job returned was started, the
        reservation stands and, time having only passed, no other job has become admissible. (It does not
        stand while a job outlives its estimate: its expected end moves with the clock.)
        """
        if (
            system.version == self.settled
            and system.passes == self.seen_pass + 1
            and head is self._head
            and len(system.newcomers) == 1
            and not system.running.overrun(system.now)
        ):
            return self._newcomer(head, system)
        self._head, self.seen_pass, self.settled = head, system.passes, system.version
        self._room = None
        candidates = system.cluster.fitting(system.queue, system.free)
        if not len(candidates):
            return ()
        self._shadow_time, self._room = reserve(head, system)
        jobs = system.cluster.admissible(candidates, system, self._room)
        if not jobs:
            return ()
        self.settled = -1
        if self.candidates is None:
            return jobs
        return self._tried_in_order(list(jobs), self.candidates, system, self._room)

    def level(self, job: Job, system: System) -> Level:
        """Return what the job may use without delaying the head."""
        assert self._room is not None
        return system.cluster.within(job, system.estimate(job), self._room)

    def _newcomer(self, head: Job, system: System) -> Iterable[Job]:
        """Return the job that has just arrived, if there is room for it."""
        newcomer = system.newcomers[0]
        self.seen_pass = system.passes
        if not system.fits(newcomer):
            return ()
        if self._room is None:
            self._shadow_time, self._room = reserve(head, system)
        self._room.window = self._shadow_time - system.now
        if not system.cluster.admits(newcomer, system.estimate(newcomer), self._room):
            return ()
        self.settled = -1
        self._head = None  # the room does not know of this one: next time, look again at everybody
        return (newcomer,)

    def _tried_in_order(self, jobs: list[Job], order: Order, system: System, room: Room) -> Iterator[Job]:
        """Yield candidates in an order of their own, as long as there is room for them."""
        cluster = system.cluster
        for job in order.sort(jobs, system):
            estimate = system.estimate(job)
            if cluster.admits(job, estimate, room):
                yield job
                if job not in system.queue:
                    cluster.take(job, estimate, room, system.running.allocation(job))
