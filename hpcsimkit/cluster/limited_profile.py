"""Availability profiles of machines of which the jobs of a partition may use only so much at once."""

from __future__ import annotations

import numpy as np

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.limited import Granted, LimitedLevel, LimitedMachines, leaving, left_of
from hpcsimkit.cluster.machine_profile import MachineProfile
from hpcsimkit.cluster.profile import LevelProfile
from hpcsimkit.jobs.job import Job

__all__ = ["LimitedProfile"]


class LimitedProfile(LevelProfile):
    """The profile of the machines beside that of the amounts which the limits leave.

    A slot must be feasible in both. Where the limits leave enough, it is therefore the slot on machines
    without limits.

    Parameters
    ----------
    cluster : LimitedMachines
        The machines with their limits.
    machines : MachineProfile
        The profile of the same machines without limits.
    level : LimitedLevel
        Available capacity from the start of this profile on, with the amounts that the limits leave.

    Examples
    --------
    >>> from hpcsimkit.cluster.limited import limited
    >>> from hpcsimkit.cluster.machines import Machines
    >>> cluster = limited(Machines.of(2, cpus=4), {"cpus": 5})
    >>> machines = MachineProfile(cluster.unlimited, 0, cluster.capacity)
    >>> profile = LimitedProfile(cluster, machines, cluster.capacity)
    >>> from hpcsimkit.jobs.job import Request
    >>> job = Job(0, 1, 0, 10, 10, nodes=1, request=Request(("cpus",), (3,)))
    >>> start, allocation = profile.earliest(job, 10, after=0)
    >>> profile.occupy(start, start + 10, allocation)
    >>> profile.earliest(job, 10, after=0)
    (10, Allocation([0], [[3]]))
    """

    cluster: LimitedMachines

    def __init__(self, cluster: LimitedMachines, machines: MachineProfile, level: LimitedLevel) -> None:
        self.cluster = cluster
        self._machines = machines
        self._limits = LevelProfile(cluster.amounts_in_use, machines.begin, left_of(level))

    # --- reading -------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The start of the profile [s]."""
        return self._machines.begin

    def level(self, duration: int, free: LimitedLevel, own: Allocation | None = None) -> LimitedLevel:
        """Return the capacity that a job may use from now for a duration; see :meth:`LevelProfile.level`."""
        level = self._machines.level(duration, free, own)
        charge = own.charge if isinstance(own, Granted) else None
        return leaving(level, self._limits.level(duration, left_of(free), charge))

    def fits(self, job: Job, duration: int) -> bool:
        """Return whether a job fits from the start of the profile for a duration [s]."""
        return self._limits.fits(job, duration) and self._machines.fits(job, duration)

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, Allocation]:
        """Find the earliest slot that is feasible in both profiles; see :meth:`LevelProfile.earliest`."""
        while True:
            start, allocation = self._machines.earliest(job, duration, after)
            after, charge = self._limits.earliest(job, duration, start)
            if after == start:
                return start, Granted(allocation, np.asarray(charge))

    # --- changing ------------------------------------------------------------------------------------

    def grow(self, at: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity from an instant [s] not before the last step."""
        self._machines.grow(at, allocation)
        if isinstance(allocation, Granted):
            self._limits.grow(at, allocation.charge)

    def close(self, closures: Closures) -> None:
        """Let machines be closed to some jobs for some time."""
        self._machines.close(closures)

    def advance(self, now: int) -> None:
        """Drop the profiles before now [s]."""
        self._machines.advance(now)
        self._limits.advance(now)

    def occupy(self, start: int, end: int, allocation: Allocation) -> None:
        """Subtract an allocation from the available capacity in [start, end) [s]."""
        self._machines.occupy(start, end, allocation)
        if isinstance(allocation, Granted):
            self._limits.occupy(start, end, allocation.charge)

    def release(self, start: int, end: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity in [start, end) [s]."""
        self._machines.release(start, end, allocation)
        if isinstance(allocation, Granted):
            self._limits.release(start, end, allocation.charge)

    def replace(self, start: int, end: int, planned: Allocation, actual: Allocation) -> bool:
        """Replace a planned by an actual allocation of the same job; return whether they differ."""
        return self._machines.replace(start, end, planned, actual)
