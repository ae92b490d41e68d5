"""The reservation of the first blocked job, and EASY backfilling, which never delays it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpcsimkit.cluster.base import Candidates, Room
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.capacity import NO_CALENDAR
from hpcsimkit.kernel.expected import expected
from hpcsimkit.kernel.holes import Hole, HoleBesideHead, HoleInProfile
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.settling import SettlingBackfiller
from hpcsimkit.kernel.system import System

__all__ = ["EASY", "admissible", "reserve", "shadow_time"]


def reserve(job: Job, system: System) -> tuple[int, Room[Level]]:
    """Reserve the earliest feasible start for a job that does not fit now.

    Returns
    -------
    (int, Room)
        The shadow time [s] and the capacity for backfilling that does not delay the job.
    """
    now = system.now
    cluster = system.cluster
    shadow_time, level = cluster.earliest(job, system.free, system.releases, now + 1)
    return shadow_time, cluster.room(job, system.free, shadow_time - now, level)


def shadow_time(job: Job, system: System) -> int:
    """Return the earliest feasible start of a job that does not fit now [s]."""
    if system.calendar:
        return expected(system, on_machines=True).earliest(job, system.estimate(job), system.now)[0]
    return reserve(job, system)[0]


def admissible(candidates: Candidates, system: System, room: Room[Level]) -> Iterable[Job]:
    """Return the candidates that may be backfilled; an empty tuple if certainly none may be.

    A job may be started before the next one is requested; the capacity shrinks accordingly.

    Parameters
    ----------
    candidates : Candidates
        Queued jobs that fit, from :meth:`Cluster.fitting <hpcsimkit.cluster.base.Cluster.fitting>`.
    system : System
        State of the run.
    room : Room
        Capacity for backfilling; updated in place.
    """
    found = system.cluster.admissible(candidates, system.queue, room)
    return _each_taken(found, system, room) if found else ()


def _each_taken(found: Iterable[tuple[Job, int]], system: System, room: Room[Level]) -> Iterator[Job]:
    """Yield jobs, and deduct each job that has been started from the capacity."""
    for job, estimate in found:
        # Candidates were compared with the capacity that is free now.
        if system.calendar is not NO_CALENDAR and system.calendar and not system.fits(job):
            continue
        yield job
        if system.ledger.started(job.index):
            system.cluster.take(job, estimate, room, system.running.allocation(job))


class EASY(SettlingBackfiller):
    """EASY backfilling: only the first blocked job holds a reservation, which no job may delay.

    A later job starts now if it fits now and either ends by the shadow time or uses only extra nodes. On
    machines, a later job must leave enough for the blocked job on *any* machines, not on machines fixed in
    advance. The reservation is recomputed at every pass. (Lifka, JSSPP 1995; Mu'alem & Feitelson, TPDS 2001.)

    Parameters
    ----------
    candidates : Order, optional
        Order in which the candidates are tried, first fit; by default the policy order.

    Examples
    --------
    >>> EASY()
    EASY()
    """

    reserves = True

    def __init__(self, candidates: Order | None = None) -> None:
        self.candidates = candidates

    def reset(self, system: System) -> None:
        """Clear the reservation of the last pass."""
        if self.candidates is not None:
            self.candidates.reset(system)
            if self.candidates.dynamic and self.candidates is not system.order:
                system.queue.inform(self.candidates.arrive)
        self._head: Job | None = None
        self.settled = self.seen_pass = -1
        self._shadow_time = 0
        self._room: Room[Level] | None = None
        self._levels: dict[int, Level] = {}

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the queued jobs that fit and do not delay `head`, each checked in turn.

        If all jobs returned last time were started and a single arrival is the only event since, the
        reservation remains valid, and no other job has become admissible by the passage of time. (It does not
        remain valid while a job exceeds its estimate, because its expected end then moves with the clock.)
        """
        if system.calendar is not NO_CALENDAR and system.calendar:
            return self._fill_as_planned(head, system)
        if (
            system.version == self.settled  # no job has started or ended: free and releases are the same
            and system.passes == self.seen_pass + 1  # the last pass was seen: no other arrival was missed
            and head is self._head  # so its reservation is the same
            and len(system.newcomers) == 1
            and not system.running.overrun(system.now)  # else an expected end moves with the clock
        ):
            return self._newcomer(head, system)
        # Settled unless a job is yielded below: its start would change the room.
        self._head, self.seen_pass, self.settled = head, system.passes, system.version
        self._room = None
        candidates = system.cluster.fitting(system.queue, system.free)
        if not len(candidates):
            return ()
        self._shadow_time, self._room = reserve(head, system)
        jobs = admissible(candidates, system, self._room)
        if not jobs:
            return ()
        self.settled = -1
        if self.candidates is None:
            return jobs
        return self._tried_in_order(list(jobs), self.candidates, system, self._room)

    def level(self, job: Job, system: System) -> Level:
        """Return the capacity that the job may use without delaying the head."""
        if system.calendar:
            return self._levels[job.index]
        assert self._room is not None
        return system.cluster.within(job, system.estimate(job), self._room)

    def hole(self, head: Job, system: System) -> Hole:
        """Return the capacity that the reservation of the head leaves."""
        if system.calendar:
            profile = expected(system, on_machines=True)
            estimate = system.estimate(head)
            start, allocation = profile.earliest(head, estimate, system.now)
            profile.occupy(start, start + estimate, allocation)
            return HoleInProfile(system, profile, {})
        return HoleBesideHead(system, reserve(head, system)[1])

    def _fill_as_planned(self, head: Job, system: System) -> Iterator[Job]:
        """Yield jobs that fit beside the reservation of the head in a profile of the capacity over time.

        Capacity may fall again, so that the levels now and at the shadow time are not enough.
        """
        now = system.now
        profile = expected(system, on_machines=False)
        estimate = system.estimate(head)
        start, allocation = profile.earliest(head, estimate, now)
        profile.occupy(start, start + estimate, allocation)
        jobs = list(system.queue)
        for job in jobs if self.candidates is None else self.candidates.sort(jobs, system):
            estimate = system.estimate(job)
            if job is not head and profile.fits(job, estimate):
                self._levels[job.index] = profile.level(estimate, system.room_for(job))
                yield job
                if system.ledger.started(job.index):
                    profile.occupy(now, now + estimate, system.given(job.index))

    def _newcomer(self, head: Job, system: System) -> Iterable[Job]:
        """Return the job that has just arrived, if it may be backfilled."""
        newcomer = system.newcomers[0]
        self.seen_pass = system.passes
        if not system.fits(newcomer):
            return ()
        if self._room is None:
            self._shadow_time, self._room = reserve(head, system)
        self._room.window = self._shadow_time - system.now  # kept over passes, while the time to it shrinks
        if not system.cluster.admits(newcomer, system.estimate(newcomer), self._room):
            return ()
        self.settled = -1
        self._head = None  # the room does not account for this job: recompute it next time
        return (newcomer,)

    def _tried_in_order(
        self, jobs: list[Job], order: Order, system: System, room: Room[Level]
    ) -> Iterator[Job]:
        """Yield the candidates that may be backfilled, in an order that differs from the policy's."""
        estimated = ((job, system.estimate(job)) for job in order.sort(jobs, system))
        found = (each for each in estimated if system.cluster.admits(*each, room))
        return _each_taken(found, system, room)
