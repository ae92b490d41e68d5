"""Holes: the capacity that is free now, and for how long it may be used without a delay of reservations."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Protocol

from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.cluster.profile import LevelProfile
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System

__all__ = ["Hole", "HoleBesideHead", "HoleInProfile", "longest"]


class Hole(Protocol):
    """The capacity that reservations leave from now on."""

    def level(self, job: Job, seconds: int) -> Level | None:
        """Return the capacity in which a job may be placed now for some time [s]; None if it may not run."""

    def take(self, job: Job, seconds: int) -> None:
        """Deduct a job that has just started for some time [s]."""


def longest(hole: Hole, job: Job, limit: int) -> int:
    """Return the longest time for which a job may run now in a hole [s], at most a limit; 0 for none."""
    return bisect_left(range(1, limit + 1), True, key=lambda seconds: hole.level(job, seconds) is None)


class HoleBesideHead:
    """The capacity that the reservation of the head leaves.

    Parameters
    ----------
    system : System
        The state of the run.
    room : Room
        The capacity for jobs behind the head, from :func:`~hpcsimkit.kernel.reservation.reserve`.
    """

    def __init__(self, system: System, room: Room[Level]) -> None:
        self._system, self._room = system, room

    def level(self, job: Job, seconds: int) -> Level | None:
        """Return the capacity in which a job may be placed now for some time [s]; None if it may not run."""
        return self._system.cluster.within(job, seconds, self._room)

    def take(self, job: Job, seconds: int) -> None:
        """Deduct a job that has just started for some time [s]."""
        system = self._system
        system.cluster.take(job, seconds, self._room, system.running.allocation(job))


class HoleInProfile:
    """The capacity that the reservations of a profile leave.

    Parameters
    ----------
    system : System
        The state of the run.
    profile : LevelProfile
        The free capacity over time, without that of reservations; it begins now.
    reserved : mapping of int to int
        Starts of the reservations [s] by row: the job itself must be back by then.
    """

    def __init__(self, system: System, profile: LevelProfile, reserved: Mapping[int, int]) -> None:
        self._system, self._profile, self._reserved = system, profile, reserved

    def level(self, job: Job, seconds: int) -> Level | None:
        """Return the capacity in which a job may be placed now for some time [s]; None if it may not run."""
        system = self._system
        back = system.now + seconds + system.restart.delay
        if back > self._reserved.get(job.index, back) or not self._profile.fits(job, seconds):
            return None
        return self._profile.level(seconds, system.room_for(job, seconds=seconds))

    def take(self, job: Job, seconds: int) -> None:
        """Deduct a job that has just started for some time [s]."""
        system = self._system
        self._profile.occupy(system.now, system.now + seconds, system.given(job.index))
