"""Backfilling with one, several or no reservations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpcsimkit.cluster.base import Nodes, Room
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.expected import expected, needs_machines
from hpcsimkit.kernel.holes import Hole, HoleInProfile
from hpcsimkit.kernel.policy import Backfiller
from hpcsimkit.kernel.reservation import EASY, admissible
from hpcsimkit.kernel.settling import SettlingBackfiller
from hpcsimkit.kernel.system import System

__all__ = ["EASY", "Greedy", "Reservations"]


class Greedy(SettlingBackfiller):
    """Greedy backfilling: every queued job that fits starts, in policy order, so large jobs may starve."""

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the queued jobs that fit; each job is checked when the iterator reaches it."""
        return _fitting(system)


class Reservations(Backfiller):
    """EASY with any number of reservations, replanned from scratch at every scheduling pass.

    In policy order, the first `count` jobs that cannot start now get a reservation at their earliest feasible
    slot in the availability profile; all other jobs may start now if that delays no reservation. With
    ``count=1`` this is :class:`~hpcsimkit.kernel.reservation.EASY`. With ``count=None``, every waiting job
    gets a reservation: this is conservative backfilling *by replanning*, which, unlike
    :class:`~hpcsimkit.policies.Conservative`, does not guarantee the start times of earlier plans.

    On machines, each reservation holds the first machines that are free throughout its slot. As long as all
    waiting jobs have pooled requests, reservations hold totals instead of machines.

    Parameters
    ----------
    count : int or None
        Maximum number of reservations, >= 1; None for one per waiting job.
    """

    reserves = True

    def __init__(self, count: int | None = 2) -> None:
        self.count = count

    def reset(self, system: System) -> None:
        """Check the number of reservations and discard all plans."""
        if self.count is not None and not (isinstance(self.count, int) and self.count >= 1):
            raise UsageError(
                f"reservations need a whole number of at least 1, or none for all, found {self.count!r}"
            )
        self._levels: dict[int, Level] = {}
        # A planned reservation would hold specific machines; EASY only requires that the job fits somewhere.
        self._easy = EASY() if self.count == 1 and not isinstance(system.cluster, Nodes) else None
        if self._easy is not None:
            self._easy.reset(system)

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the queued jobs that can start now without delaying a reservation, in policy order."""
        return self._planned(head, system) if self._easy is None else self._easy.fill(head, system)

    def _planned(self, head: Job, system: System) -> Iterator[Job]:
        now = system.now
        profile = expected(system, any(needs_machines(job, system) for job in system.queue))
        self._levels.clear()
        self._profile, self._starts = profile, dict[int, int]()
        reserved = self._starts
        for job in (head, *(job for job in system.queue if job is not head)):
            if len(reserved) == self.count:
                break
            estimate = system.estimate(job)
            start, allocation = profile.earliest(job, estimate, now)
            if start > now:
                reserved[job.index] = start
                profile.occupy(start, start + estimate, allocation)
                continue
            self._levels[job.index] = profile.level(estimate, system.room_for(job))
            yield job
            if system.ledger.started(job.index):
                profile.occupy(now, now + estimate, system.given(job.index))
        else:
            return
        for job in _fitting(system):
            estimate = system.estimate(job)
            if job.index not in reserved and profile.fits(job, estimate):
                self._levels[job.index] = profile.level(estimate, system.room_for(job))
                yield job
                if system.ledger.started(job.index):
                    profile.occupy(now, now + estimate, system.given(job.index))

    def hole(self, head: Job, system: System) -> Hole:
        """Return the capacity that the reservations of the pass leave."""
        if self._easy is not None:
            return self._easy.hole(head, system)
        return HoleInProfile(system, self._profile, self._starts)

    def level(self, job: Job, system: System) -> Level:
        """Return the capacity that the job may use without delaying a reservation."""
        return self._levels[job.index] if self._easy is None else self._easy.level(job, system)


def _fitting(system: System) -> Iterable[Job]:
    """Return the queued jobs that fit; each job is checked when the iterator reaches it."""
    room = Room(system.free, float("inf"), system.free)
    return admissible(system.cluster.fitting(system.queue, system.free), system, room)
