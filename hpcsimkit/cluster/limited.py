"""Machines of which the jobs of a partition may use only so much at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel, with_all
from hpcsimkit.cluster.base import Room
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.request import Mask, Need, Places
from hpcsimkit.cluster.room import MachineRoom
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload

__all__ = ["NODES", "Granted", "LimitedLevel", "LimitedMachines", "leaving", "left_of", "limited"]

NODES = "nodes"
"""Name of the limit of the number of nodes."""

Amounts = NDArray[np.int64]


class Granted(Allocation):
    """An allocation that counts towards the limits; the allocations of other partitions do not.

    Parameters
    ----------
    allocation : Allocation
        The allocation.
    charge : array of int64, shape (limits,)
        The amounts that count.
    """

    def __init__(self, allocation: Allocation, charge: Amounts) -> None:
        super().__init__(allocation.machines, allocation.amounts, allocation.style)
        self.charge = charge


class LimitedLevel(np.ndarray[Any, np.dtype[np.int64]]):
    """A level of machines with the amounts that the limits leave, int64, shape (limits,)."""

    left: Amounts

    def __array_finalize__(self, source: Any) -> None:
        self.left = getattr(source, "left", None)  # type: ignore[assignment]  # of a plain array

    def __sub__(self, other: Any) -> Any:
        if not isinstance(other, Allocation):
            return super().__sub__(other)
        level = other.__rsub__(self)
        return leaving(level, self.left - other.charge) if isinstance(other, Granted) else level

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, Allocation):
            return super().__add__(other)
        level = other.__radd__(self)
        return leaving(level, self.left + other.charge) if isinstance(other, Granted) else level


def left_of(level: MachineLevel) -> Amounts:
    """Return the amounts that the limits leave in a level of limited machines, shape (limits,)."""
    assert isinstance(level, LimitedLevel)
    return level.left


def leaving(level: MachineLevel, left: Amounts) -> LimitedLevel:
    """Return a level of machines with the amounts that the limits leave."""
    limited_level = level.view(LimitedLevel)
    limited_level.left = left
    return limited_level


class AmountsInUse:
    """The limits without the machines: levels are the amounts left, int64, shape (limits,).

    Parameters
    ----------
    cluster : LimitedMachines
        The machines with their limits.
    """

    def __init__(self, cluster: LimitedMachines) -> None:
        self._cluster = cluster

    def fits(self, job: Job, level: Amounts) -> bool:
        """Return whether the limits leave enough for a job."""
        return bool((self._cluster.charge(job) <= level).all())

    def place(self, job: Job, level: Amounts) -> Amounts:
        """Return the amounts of a job that count."""
        return self._cluster.charge(job)

    def common(self, level: Amounts, other: Amounts) -> Amounts:
        """Return the amounts that are left in both levels."""
        return np.minimum(level, other)

    def equal(self, level: Amounts, other: Amounts) -> bool:
        """Return whether the same amounts are left."""
        return np.array_equal(level, other)


@dataclass(frozen=True, eq=False)
class LimitedMachines(Machines):
    """Machines of which jobs may use only so much at once.

    The amounts that count are those that a job requests: its nodes, none for a pooled request, and its totals
    of each resource.

    Parameters
    ----------
    limits : mapping of str to int
        Largest amounts in use: of ``nodes``, or of resources of the machines.

    Raises
    ------
    UsageError
        A limit names neither nodes nor a resource of the machines.

    Examples
    --------
    >>> cluster = limited(Machines.of(4, cpus=8), {"cpus": 10})
    >>> from hpcsimkit.jobs.job import Request
    >>> job = Job(0, 1, 0, 5, 5, nodes=1, request=Request(("cpus",), (6,)))
    >>> free = cluster.capacity - cluster.place(job, cluster.capacity)
    >>> cluster.fits(job, free), free.left.tolist(), cluster.shortage(job, free)
    (False, [4], 'needs a machine with 6 cpus; the partition may use 4 more cpus at once')
    """

    limited: ClassVar[bool] = True

    limits: Mapping[str, int] = field(default_factory=dict)
    _charges: dict[Need, Amounts] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in self.limits:
            if name != NODES and name not in self.resources:
                there = ", ".join((NODES, *self.resources))
                raise UsageError(f"in_use needs amounts of {there}, found {name!r}")

    @property
    def capacity(self) -> MachineLevel:
        """Resources of the empty machines, and the limits."""
        return leaving(super().capacity, self._most)

    @cached_property
    def unlimited(self) -> Machines:
        """The same machines without limits."""
        return Machines(self.names, self.resources, super().capacity, self.features)

    @cached_property
    def amounts_in_use(self) -> AmountsInUse:
        """The limits without the machines."""
        return AmountsInUse(self)

    def charge(self, job: Job) -> Amounts:
        """Return the amounts of a job that count, shape (limits,)."""
        return self._charge(self.need(job))

    @property
    def _most(self) -> Amounts:
        return np.array(list(self.limits.values()), dtype=np.int64)

    def _charge(self, need: Need) -> Amounts:
        """Return the amounts of a job that count."""
        charge = self._charges.get(need)
        if charge is None:
            totals = dict(zip(self.resources, need.totals(), strict=True))
            totals[NODES] = 0 if need.pooled else need.nodes
            charge = self._charges[need] = np.array([totals[name] for name in self.limits], dtype=np.int64)
        return charge

    def _allows(self, need: Need, left: Amounts) -> bool:
        return bool((self._charge(need) <= left).all())

    def granted(self, job: Job, allocation: Allocation) -> Allocation:
        """Return an allocation that counts towards the limits."""
        return Granted(allocation, self._charge(self.need(job)))

    # --- capacity queries ----------------------------------------------------------------------------

    def allows(self, job: Job, level: MachineLevel) -> bool:
        """Return whether the limits leave enough for a job."""
        return self._allows(self.need(job), left_of(level))

    def fits(self, job: Job, level: MachineLevel) -> bool:
        """Return whether a job fits a level and the limits."""
        return self.allows(job, level) and super().fits(job, level)

    def fit_each(self, jobs: Sequence[Job], level: MachineLevel) -> Sequence[bool]:
        """Return for each job whether it fits a level and the limits."""
        return [self.fits(job, level) for job in jobs]

    def place(self, job: Job, level: MachineLevel) -> Allocation | None:
        """Return an allocation on the first machines on which the job fits, or None."""
        if not self.allows(job, level):
            return None
        allocation = super().place(job, level)
        return None if allocation is None else self.granted(job, allocation)

    def usable(self, job: Job, level: MachineLevel) -> Places:
        """Return the machines that can contribute to the job; none beyond the limits."""
        usable = super().usable(job, level)
        return usable if self.allows(job, level) else usable[:0]

    def holds(self, job: Job, allocation: Allocation, level: MachineLevel) -> bool:
        """Return whether the allocation meets the job's request and lies within the level and the limits."""
        return self.allows(job, level) and super().holds(job, allocation, level)

    def common(self, level: MachineLevel, other: MachineLevel) -> MachineLevel:
        """Return the capacity that is available in both levels."""
        return leaving(super().common(level, other), np.minimum(left_of(level), left_of(other)))

    def equal(self, level: MachineLevel, other: MachineLevel) -> bool:
        """Return whether two levels are the same capacity and leave the same amounts."""
        return super().equal(level, other) and np.array_equal(left_of(level), left_of(other))

    def shortage(self, job: Job, level: MachineLevel) -> str:
        """Return the demand of a job and the supply of a level or of the limits in words."""
        need = self.need(job)
        missing = self._charge(need) > left_of(level)
        if not missing.any():
            return super().shortage(job, level)
        place = int(np.argmax(missing))
        left = f"{max(int(left_of(level)[place]), 0)} more {list(self.limits)[place]} at once"
        return f"needs {need.text()}; the partition may use {left}"

    def misfits(self, workload: Workload) -> Mask:
        """Return which jobs do not fit the empty machines or the limits."""
        most = self._most
        beyond = [not self._allows(self.need(job), most) for job in workload.jobs]
        return super().misfits(workload) | np.array(beyond, dtype=np.bool_)

    def earliest(
        self, job: Job, level: MachineLevel, releases: Iterable[tuple[int, int, Allocation]], soonest: int
    ) -> tuple[int, MachineLevel]:
        """Walk the releases until the job fits; see :meth:`Cluster.earliest`."""
        releases = list(releases)
        need, left, shadow_time = self.need(job), left_of(level), soonest
        if not super().fits(job, level):
            shadow_time, _ = super().earliest(job, level, releases, soonest)
        for end, _, allocation in releases:
            if self._allows(need, left):
                break
            if isinstance(allocation, Granted):
                left = left + allocation.charge
                shadow_time = max(shadow_time, end)
        released = [allocation for end, _, allocation in releases if end <= shadow_time]
        charges = (each.charge for each in released if isinstance(each, Granted))
        return shadow_time, leaving(with_all(level, released), sum(charges, left_of(level)))

    # --- backfilling ---------------------------------------------------------------------------------

    def within(self, job: Job, estimate: int, room: Room[MachineLevel]) -> MachineLevel | None:
        """Return the level within which the job may be placed now, or None if it may not be backfilled."""
        left = left_of(room.free)
        if estimate > room.window:
            assert isinstance(room, MachineRoom)
            left = np.minimum(left, left_of(room.later) - self._charge(room.head))
        if not self._allows(self.need(job), left):
            return None
        level = super().within(job, estimate, room)
        return None if level is None else leaving(level, left)

    def _fitting_needs(self, numbers: Collection[int], level: MachineLevel) -> set[int]:
        """Return the numbers of the needs that fit a level and the limits, among some."""
        needs, left = self.needs.needs, left_of(level)
        return {each for each in super()._fitting_needs(numbers, level) if self._allows(needs[each], left)}


def limited(machines: Machines, limits: Mapping[str, int]) -> LimitedMachines:
    """Return machines of which jobs may use only so much at once."""
    return LimitedMachines(
        machines.names, machines.resources, machines.capacity, machines.features, limits=limits
    )
