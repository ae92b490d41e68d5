"""Availability profiles on machines, with the available capacity of all steps in one array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.closures import Closure, Closures, without
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.profile import LevelProfile
from hpcsimkit.cluster.request import Mask, Need, Places
from hpcsimkit.jobs.job import Job

__all__ = ["MachineProfile", "TotalsProfile"]

Integers = NDArray[np.int64]

FEWEST = 64
"""Initial number of steps in the array."""

SOME = 8
"""Number of machines that are examined before all others."""


class MachineProfile(LevelProfile):
    """The available capacity of each machine as a step function of time: a fast profile for machines.

    Parameters
    ----------
    cluster : Machines
        The machines.
    now : int
        Start of the profile [s].
    level : array of int64, shape (machines, resources)
        Available capacity from then on.

    Examples
    --------
    >>> cluster = Machines.of(2, cpus=4)
    >>> profile = MachineProfile(cluster, 0, cluster.capacity)
    >>> profile.occupy(0, 10, Allocation([0], [[3]]))
    >>> from hpcsimkit.jobs.job import Request
    >>> request = Request(("cpus",), (2,))
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=2, request=request)
    >>> profile.earliest(job, 5, after=0)
    (10, Allocation([0, 1], [[2], [2]]))
    >>> profile.earliest(job._replace(nodes=1), 50, after=0)
    (0, Allocation([1], [[2]]))
    """

    cluster: Machines
    closures = Closures(())
    """Machines that are closed to some jobs for some time."""

    def __init__(self, cluster: Machines, now: int, level: MachineLevel) -> None:
        self.cluster = cluster
        machines, resources = level.shape
        # The steps in use are those at positions [first, last).
        self._first, self._last = 0, 1
        self._begins = np.empty(FEWEST, dtype=np.int64)
        self._table = np.empty((resources, FEWEST, machines), dtype=np.int64)
        self._begins[0] = now
        self._table[:, 0] = level.T

    # --- reading -------------------------------------------------------------------------------------

    @property
    def begin(self) -> int:
        """The start of the profile [s]."""
        return int(self._begins[self._first])

    def earliest(self, job: Job, duration: int, after: int) -> tuple[int, Allocation]:
        """Find the earliest feasible slot for a job; see :meth:`LevelProfile.earliest`."""
        need, first = self.cluster.need(job), max(self._position(after + 1) - 1, self._first)
        begins = np.maximum(self._begins[first : self._last], after)
        ends = begins.searchsorted(begins + duration)
        closed = self._closed_to(job, after)
        if self._in_parts(need):
            return self._earliest_in_parts(need, first, begins, ends, closed)
        machines = self._first_throughout(need, first, first + int(ends[0]), closed)
        if machines is not None:
            return int(begins[0]), self._first_of(need, machines)
        found = _first_hole(self._usable(need, first, self._last, closed), ends, need)
        assert found is not None, "the last step lasts for ever, and all is free in it"
        return int(begins[found[0]]), self._first_of(need, np.flatnonzero(found[1]))

    def earlier(
        self, job: Job, start: int, duration: int, allocation: Allocation, until: int
    ) -> tuple[int, Allocation]:
        """Find an earlier slot for a job that has a reservation; see :meth:`LevelProfile.earlier`."""
        need = self.cluster.need(job)
        first, present = self._first, self._position(start)
        if present == first:
            return start, allocation
        if self._in_parts(need):
            return super().earlier(job, start, duration, allocation, until)
        begins = self._begins[first : min(present, self._position(until))]
        last = self._position(begins[-1] + duration)
        usable = self._usable(need, first, last, self._closed_to(job, self.begin))
        usable[present - first :, self._numbers(allocation)] = True  # held by its own reservation
        ends = self._begins[first:last].searchsorted(begins + duration)
        found = _first_hole(usable, ends, need)
        if found is None:
            return start, allocation
        return int(begins[found[0]]), self._first_of(need, np.flatnonzero(found[1]))

    def fits(self, job: Job, duration: int) -> bool:
        """Return whether a job fits from the start of the profile for a duration [s]."""
        level = self._least(duration)
        if self.closures:
            level = without(level, self.closures.machines(job, self.begin, self.begin + duration))
        return self.cluster.fits(job, level)

    def _first_throughout(
        self, need: Need, first: int, last: int, closed: tuple[Closure, ...]
    ) -> Places | None:
        """Return machines that stay usable in all of the steps, or None if there may not be enough.

        Of the machines usable in the first step, only the first ones are examined: as a rule, they suffice.
        """
        if self._table.shape[2] <= need.nodes + SOME:
            return None
        machines = np.flatnonzero(self._usable(need, first, first + 1, closed))
        machines = machines[: need.nodes + SOME]
        if len(machines) >= need.nodes and not need.quotas:
            machines = machines[self._usable(need, first, last, closed, machines).all(axis=0)]
            if len(machines) >= need.nodes:
                return machines
        return None

    def _earliest_in_parts(
        self,
        need: Need,
        first: int,
        begins: Integers,
        ends: NDArray[np.intp],
        closed: tuple[Closure, ...],
    ) -> tuple[int, Allocation]:
        """Examine, one by one, the slots with enough available capacity in total."""
        table = self._table[:, first : self._last]
        if closed:
            table = table.copy()
            for steps, machines in self._closed_steps(closed, first, self._last):
                table[:, steps, machines] = 0
        enough = (table.sum(axis=2) >= need.amounts[:, None]).all(axis=0)
        for position in np.flatnonzero(_throughout(enough[:, None], ends).any(axis=1)).tolist():
            least = table[:, position : ends[position]].min(axis=1).T
            allocation = need.take(least, np.flatnonzero(need.usable(least)))
            if allocation is not None:
                return int(begins[position]), allocation
        raise AssertionError("the last step lasts for ever, and all is free in it")

    def _first_of(self, need: Need, usable: Places) -> Allocation:
        """Return an allocation on the first of the usable machines."""
        allocation = need.take(self.cluster.capacity, usable)
        assert allocation is not None
        return allocation

    def _least(self, duration: int) -> MachineLevel:
        return self._table[:, self._first : self._position(self.begin + duration)].min(axis=1).T

    def _position(self, at: int) -> int:
        """Return the position of the first step that begins at or after an instant."""
        return self._first + int(self._begins[self._first : self._last].searchsorted(at))

    def _closed_to(self, job: Job, after: int) -> tuple[Closure, ...]:
        """Return the closures that do not admit a job, as far as they are not over at a time [s]."""
        return tuple(self.closures.closed_to(job, after)) if self.closures else ()

    def _closed_steps(
        self, closed: tuple[Closure, ...], first: int, last: int
    ) -> Iterator[tuple[slice, Mask]]:
        """Yield which of the steps [first, last) lie in each closure, and its machines."""
        begins = self._begins[first:last]
        for each in closed:  # its beginning and end are steps, unless they lie before the profile
            yield slice(*begins.searchsorted((each.start, each.end))), each.machines

    def _usable(
        self,
        need: Need,
        first: int,
        last: int,
        closed: tuple[Closure, ...],
        machines: Places | slice = slice(None),
    ) -> Mask:
        """Return a mask of the machines that a job can use in each step, shape (steps, machines)."""
        table = self._table[:, first:last, machines]
        k, amount = need.asked[0]
        usable = table[k] >= amount
        for k, amount in need.asked[1:]:
            usable &= table[k] >= amount
        if need.exclusive:
            usable &= (table == need.shape.capacity[machines].T[:, None]).all(axis=0)
        if need.allowed is not None:
            usable &= need.allowed[machines]
        if closed:
            for steps, shut in self._closed_steps(closed, first, last):
                usable[steps] &= ~shut[machines]
        return usable

    def _in_parts(self, need: Need) -> bool:
        """Return whether a request is pooled, so that machines cannot be judged one by one."""
        return need.spread

    def _numbers(self, allocation: Allocation) -> slice | Places:
        """Return the machines of an allocation, as an index."""
        return allocation.numbers

    def _amounts(self, allocation: Allocation) -> Integers:
        """Return the amounts of an allocation on its machines, shape (resources, 1, machines)."""
        return allocation.amounts.T[:, None]

    # --- changing ------------------------------------------------------------------------------------

    def grow(self, at: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity from an instant [s] not before the last step."""
        self._see_to_room()
        if at != self._begins[self._last - 1]:
            self._begins[self._last] = at
            self._table[:, self._last] = self._table[:, self._last - 1]
            self._last += 1
        self._add(range(self._last - 1, self._last), allocation, 1)

    def close(self, closures: Closures) -> None:
        """Let machines be closed to some jobs for some time; the changes of the closures become steps."""
        self.closures = closures
        for time in closures.times:
            if time > self.begin:
                self._see_to_room()
                self._cut(time)

    def advance(self, now: int) -> None:
        """Drop the profile before now [s]."""
        self._first = max(self._position(now + 1) - 1, self._first)
        self._begins[self._first] = max(self._begins[self._first], now)

    def occupy(self, start: int, end: int, allocation: Allocation) -> None:
        """Subtract an allocation from the available capacity in [start, end) [s]."""
        steps = self._cut_out(start, end)
        self._add(steps, allocation, -1)
        self._join(steps.stop)
        self._join(steps.start)

    def release(self, start: int, end: int, allocation: Allocation) -> None:
        """Add an allocation to the available capacity in [start, end) [s]."""
        steps = self._cut_out(start, end)
        self._add(steps, allocation, 1)
        self._join(steps.stop)
        self._join(steps.start)

    def _add(self, steps: range, allocation: Allocation, sign: int) -> None:
        """Change the available capacity in some steps."""
        machines = self._numbers(allocation)
        self._table[:, steps.start : steps.stop, machines] += sign * self._amounts(allocation)

    # --- steps ---------------------------------------------------------------------------------------

    def _cut_out(self, start: int, end: int) -> range:
        self._see_to_room()
        return super()._cut_out(start, end)

    def _cut(self, at: int) -> int:
        position, last = self._position(at), self._last
        if position == last or self._begins[position] != at:
            self._begins[position + 1 : last + 1] = self._begins[position:last]
            self._table[:, position + 1 : last + 1] = self._table[:, position:last]
            self._begins[position] = at
            self._table[:, position] = self._table[:, position - 1]
            self._last += 1
        return position

    def _join(self, position: int) -> None:
        last, table = self._last, self._table
        if (
            self._first < position < last
            and (table[:, position] == table[:, position - 1]).all()
            and not (self.closures and int(self._begins[position]) in self.closures.edges)
        ):
            self._begins[position : last - 1] = self._begins[position + 1 : last]
            table[:, position : last - 1] = table[:, position + 1 : last]
            self._last -= 1

    def _see_to_room(self) -> None:
        """Ensure space for two more steps."""
        if self._last + 2 <= len(self._begins):
            return
        first, last = self._first, self._last
        begins, table = self._begins, self._table
        if last - first > len(begins) // 2:
            self._begins = np.empty(2 * len(begins), dtype=np.int64)
            self._table = np.empty((len(table), 2 * len(begins), table.shape[2]), dtype=np.int64)
        self._first, self._last = 0, last - first
        self._begins[: self._last] = begins[first:last]
        self._table[:, : self._last] = table[:, first:last]


class TotalsProfile(MachineProfile):
    """The total available capacity of the machines as a step function of time, for pooled requests.

    As long as only jobs with pooled requests hold reservations, the choice of machines does not affect
    feasibility, as on homogeneous nodes; so reservations hold totals instead of machines.

    Examples
    --------
    >>> cluster = Machines.of(2, cpus=1)
    >>> profile = TotalsProfile(cluster, 0, cluster.capacity)
    >>> profile.occupy(0, 5, Allocation([0], [[1]]))
    >>> profile.occupy(5, 9, Allocation([1], [[1]]))
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=9, nodes=1)
    >>> profile.earliest(job, 9, after=0)[0]
    0
    """

    def __init__(self, cluster: Machines, now: int, level: MachineLevel) -> None:
        super().__init__(cluster, now, level.sum(axis=0)[None])

    def level(self, duration: int, free: MachineLevel, own: Allocation | None = None) -> MachineLevel:
        """Return the free capacity: a job that fits the profile may use any machines."""
        return free

    def fits(self, job: Job, duration: int) -> bool:
        """Return whether a job fits from the start of the profile for a duration [s]."""
        least = self._least(duration)[0]
        return bool((least >= self.cluster.need(job).amounts).all())

    def replace(self, start: int, end: int, planned: Allocation, actual: Allocation) -> bool:
        """Do nothing, since the totals are the same."""
        return False

    def _first_of(self, need: Need, usable: Places) -> Allocation:
        return Allocation((0,), need.amounts[None])

    def _in_parts(self, need: Need) -> bool:
        return False

    def _numbers(self, allocation: Allocation) -> slice | Places:
        return slice(1)

    def _amounts(self, allocation: Allocation) -> Integers:
        return np.array(allocation.totals)[:, None, None]


def _first_hole(usable: Mask, ends: NDArray[np.intp], need: Need) -> tuple[int, Mask] | None:
    """Find the first step from which enough machines stay usable long enough; see :func:`_throughout`.

    Returns
    -------
    (int, array of bool, shape (machines,)) or None
        The step and a mask of these machines; None if there is no such step.
    """
    throughout = _throughout(usable, ends)
    enough = np.asarray(throughout.any(axis=1) if need.nodes == 1 else need.enough(throughout))
    step = int(enough.argmax())
    return (step, throughout[step]) if enough[step] else None


def _throughout(usable: Mask, ends: NDArray[np.intp]) -> Mask:
    """Return a mask of the machines that stay usable from each candidate step until its end step.

    Parameters
    ----------
    usable : array of bool, shape (steps, machines)
        Mask of the usable machines in each step.
    ends : array of int, shape (candidates,)
        End step, exclusive, for each of the first steps as the candidate start; after that step.

    Examples
    --------
    >>> usable = np.array([[True, False], [True, True], [False, True]])
    >>> _throughout(usable, np.array([2, 3])).tolist()
    [[True, False], [False, True]]
    """
    refused = np.add.accumulate(~usable, axis=0, dtype=np.int32)  # number of steps so far
    candidates = len(ends)
    return usable[:candidates] & (refused.take(ends - 1, axis=0) == refused[:candidates])
