"""One seat that selects a job and its machine in one decision, among all feasible pairs."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.ledger import State
from hpcsimkit.kernel.pipeline import ask
from hpcsimkit.kernel.policy import FCFS, Order, Policy
from hpcsimkit.kernel.system import System

__all__ = ["Dispatch", "Pair", "PairDecision"]

Pair = tuple[Job, int]
"""A job and the number of a machine that can start it now."""


class Pairs(Sequence[Pair]):
    """Feasible pairs of jobs and machines, by job, then by machine number; created on access."""

    def __init__(self, jobs: Sequence[Job], rows: NDArray[np.int64], valid: NDArray[np.bool_]) -> None:
        self._jobs = jobs
        self._rows = rows
        self._codes = valid.ravel().nonzero()[0]
        self._machines = valid.shape[1]

    def __len__(self) -> int:
        return len(self._codes)

    @overload
    def __getitem__(self, position: int) -> Pair: ...
    @overload
    def __getitem__(self, position: slice) -> list[Pair]: ...
    def __getitem__(self, position: int | slice) -> Pair | list[Pair]:
        if isinstance(position, slice):
            return [self[each] for each in range(*position.indices(len(self)))]
        slot, machine = divmod(int(self._codes[position]), self._machines)
        return self._jobs[self._rows[slot]], machine


class PairDecision(Decision):
    """Decision on the next job to start and its machine.

    Attributes
    ----------
    rows : array of int64, shape (jobs,)
        Rows of the first waiting jobs that fit at least one machine, in policy order.
    numbers : array of int64, shape (jobs,)
        The cluster's numbers for the resource demands of these jobs.
    valid : array of bool, shape (jobs, machines)
        Mask of the machines on which each job can start now.
    waiting_and_fitting : int
        Number of waiting jobs that fit at least one machine.
    """

    __slots__ = ("numbers", "valid", "waiting_and_fitting")

    def __init__(
        self,
        system: System,
        rows: NDArray[np.int64],
        numbers: NDArray[np.int64],
        valid: NDArray[np.bool_],
        waiting_and_fitting: int,
    ) -> None:
        pairs = partial(Pairs, system.jobs, rows, valid)
        super().__init__("dispatch", system, None, pairs, lambda: pairs()[0], rows)
        self.numbers = numbers
        self.valid = valid
        self.waiting_and_fitting = waiting_and_fitting

    @property
    def jobs(self) -> list[Job]:
        """The jobs of these rows."""
        jobs = self.system.jobs
        return [jobs[row] for row in self.rows.tolist()]


class Usable:
    """The machines on which each job of a run fits, updated incrementally as available capacity changes.

    Attributes
    ----------
    kinds : array of int64, shape (jobs of the run,)
        The number of each job's distinct resource demand; jobs with equal demands share a number.
    numbers : array of int64, shape (kinds,)
        The cluster's number for each demand.
    machines : array of bool, shape (machines, kinds)
        Mask of the machines with enough available capacity for each demand; read-only.
    """

    def __init__(self, cluster: Machines, jobs: Sequence[Job]) -> None:
        numbers, self.kinds = np.unique([cluster.size_of(job) for job in jobs], return_inverse=True)
        self.numbers = numbers
        self._amounts = list(np.ascontiguousarray(cluster.needs.amounts[numbers].T))
        requested = [job.requested_time for job in jobs]
        self._requests = np.unique(np.column_stack([self.kinds, requested]), axis=0, return_inverse=True)[1]
        self._level = cluster.capacity
        self._ever = np.ascontiguousarray(cluster.needs.usable(numbers, self._level).T)
        most = [amounts.max(initial=0, where=ever) for ever in self._ever for amounts in self._amounts]
        self._most = np.reshape(most, self._level.shape).tolist()
        self.machines = self._ever.copy()

    def offer(
        self, rows: NDArray[np.int64], slots: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the rows and numbers of demands of the first jobs, and the machines on which each fits."""
        rows = rows[:slots]
        kinds = self.kinds.take(rows)
        return rows, self.numbers.take(kinds), self.machines.take(kinds, axis=1).T.copy()

    def some(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the positions in `rows` of the jobs that fit any machine, ascending."""
        anywhere: NDArray[np.bool_] = np.logical_or.reduce(self.machines)
        return anywhere.take(self.kinds.take(rows)).nonzero()[0]

    def first_of_each(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the positions in `rows` of the first job with each distinct request, ascending."""
        return np.sort(np.unique(self._requests.ravel()[rows], return_index=True)[1])

    def update(self, level: MachineLevel) -> None:
        """Update the masks of the machines with changed available capacity."""
        if level is self._level:
            return
        for machine in set((level != self._level).nonzero()[0].tolist()):
            enough = self.machines[machine]
            enough[:] = self._ever[machine]
            there = zip(self._amounts, level[machine].tolist(), self._most[machine], strict=True)
            for amounts, free, most in there:
                if free < most:  # otherwise it has enough for all of them
                    enough &= amounts <= free
        self._level = level


class Dispatch(Policy):
    """Policy that asks a seat for pairs of a job and its machine until no waiting job fits any machine.

    Each job runs on one machine. The options are the feasible pairs of the first `slots` waiting jobs that
    fit at least one machine; jobs that do not fit take up no slot, however early they arrived. (Scheduling as
    in the published code of the masked-PPO scheduler.)

    Parameters
    ----------
    seat : External
        The seat that selects the pairs.
    slots : int
        Maximum number of jobs offered, >= 1.
    order : Order, optional
        The order in which jobs fill the slots; by default first come, first served.
    distinct : bool
        Whether only the first of several jobs with equal resource demands and requested times is offered, so
        that a hundred equal jobs do not fill the slots. Default: False.

    Examples
    --------
    >>> Dispatch(External(), slots=10)
    Dispatch(seat=External(), slots=10)
    """

    selects_machines = True
    heeds_calendar = False

    def __init__(
        self, seat: External, slots: int, order: Order | None = None, *, distinct: bool = False
    ) -> None:
        self.seat = seat
        self.slots = slots
        self.order = order
        self.distinct = distinct

    @property
    def queue_order(self) -> Order:
        """The order in which jobs are offered."""
        return self.order if self.order is not None else FCFS()

    def check(self) -> None:
        """Check the seat and the number of slots."""
        if not isinstance(self.seat, External):
            raise UsageError(f"the seat of a dispatch needs an External, found {self.seat!r}")
        if not (isinstance(self.slots, int) and self.slots >= 1):
            raise UsageError(f"slots needs a whole number of at least 1, found {self.slots!r}")

    def reset(self, system: System) -> None:
        """Check that each job needs exactly one machine."""
        cluster = system.cluster
        if not isinstance(cluster, Machines):
            raise UsageError(f"{self!r} needs machines, found {cluster!r}")
        for job in system.jobs:
            need = cluster.need(job)
            if need.spread or need.exclusive or need.nodes > 1:
                raise UsageError(
                    f"a dispatch needs jobs that share one machine each; job {job.id} asks for {need.text()}"
                )
        self._usable = Usable(cluster, system.jobs)
        self.seat.reset(system)

    def schedule(self, system: System) -> Generator[Decision, Any, None]:
        """Ask the seat for pairs until no waiting job fits any machine."""
        queue, cluster, usable = system.queue, system.cluster, self._usable
        assert isinstance(cluster, Machines)
        usable.update(system.free)
        waiting = queue.table[0]
        rows = waiting.take(queue.ranked(usable.some(waiting)))
        while len(rows):
            offered = rows[usable.first_of_each(rows)] if self.distinct else rows
            decision = PairDecision(system, *usable.offer(offered, self.slots), len(rows))
            job, machine = yield from ask(self.seat, decision)
            system.start(job, Allocation([machine], cluster.need(job).amounts[None]))
            usable.update(system.free)
            # Capacity has only shrunk: no other job fits now. The start may have closed a gate for some.
            rows = rows[np.frombuffer(system.ledger.state, dtype=np.uint8)[rows] == State.WAITING]
            rows = rows.take(usable.some(rows))
