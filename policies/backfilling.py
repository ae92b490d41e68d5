"""Backfilling with one, several or no reservations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hpcsimkit.cluster import Level, Room
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.policies.expected import expected, needs_machines
from hpcsimkit.policy import Backfiller
from hpcsimkit.reservation import EASY
from hpcsimkit.system import System

__all__ = ["EASY", "Greedy", "Reservations"]


class Greedy(Backfiller):
    """Every queued job that fits starts, in policy order; nobody is protected, large jobs may starve."""

    settles = True

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the queued jobs that fit, each judged when its turn comes."""
        return _fitting(system)


class Reservations(Backfiller):
    """EASY with any number of reservations, planned anew from scratch at every pass.

    In policy order, jobs that do not fit the plan now get a reservation at their earliest hole, the first
    `count` of them; all others may start now if that delays no reservation. With ``count=1`` this is EASY;
    with ``count=None``, a reservation for everyone, it is conservative backfilling *by re-planning*, which
    unlike :class:`~hpcsimkit.policies.Conservative` does not keep what it once promised.

    On machines a reservation holds the first machines that are free all the time (EASY's only that there is
    some place); as long as all waiting jobs ask for totals that any machines may give, it holds totals.

    Parameters
    ----------
    count : int or None
        Reservations, >= 1; None for one each.
    """

    reserves = True

    def __init__(self, count: int | None = 2) -> None:
        self.count = count

    def reset(self, system: System) -> None:
        """See that the count makes sense."""
        if self.count is not None and not (isinstance(self.count, int) and self.count >= 1):
            raise UsageError(
                f"reservations need a whole number of at least 1, or none for all, found {self.count!r}"
            )
        self._levels: dict[int, Level] = {}

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield each queued job that can start now without delaying a reservation."""
        now = system.now
        profile = expected(system, any(needs_machines(job, system) for job in system.queue))
        self._levels.clear()
        reserved: set[int] = set()
        for job in (head, *(job for job in system.queue if job is not head)):
            if len(reserved) == self.count:
                break
            estimate = system.estimate(job)
            start, allocation = profile.earliest(job, estimate, now)
            if start > now:
                reserved.add(job.index)
                profile.occupy(start, start + estimate, allocation)
                continue
            self._levels[job.index] = profile.level(estimate, system.free)
            yield job
            if job not in system.queue:
                profile.occupy(now, now + estimate, system.given(job.index))
        else:
            return
        for job in _fitting(system):
            estimate = system.estimate(job)
            if job.index not in reserved and profile.fits(job, estimate):
                self._levels[job.index] = profile.level(estimate, system.free)
                yield job
                if job not in system.queue:
                    profile.occupy(now, now + estimate, system.given(job.index))

    def level(self, job: Job, system: System) -> Level:
        """Return what the job may use without delaying a reservation."""
        return self._levels[job.index]


def _fitting(system: System) -> Iterable[Job]:
    """Return the queued jobs that fit, each judged when its turn comes."""
    room = Room(system.free, float("inf"), system.free)
    return system.cluster.admissible(system.cluster.fitting(system.queue, system.free), system, room)
