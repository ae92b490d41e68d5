"""One seat that takes a job and its machine at once, among all pairs that fit."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.allocation import Allocation, MachineLevel
from hpcsimkit.decision import Decision, External
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import ask
from hpcsimkit.policy import FCFS, Order, Policy
from hpcsimkit.system import System

__all__ = ["Dispatch", "Pair", "PairDecision"]

Pair = tuple[Job, int]
"""A job and the number of a machine that can start it now."""


class Pairs(Sequence[Pair]):
    """The pairs that fit: job after job, for each its machines by number; made when read."""

    def __init__(self, jobs: Sequence[Job], valid: NDArray[np.bool_]) -> None:
        self._jobs = jobs
        self._codes = np.flatnonzero(valid)
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
        return self._jobs[slot], machine


class PairDecision(Decision):
    """Which job starts on which machine?

    Attributes
    ----------
    jobs : list of Job
        The first waiting jobs that fit some machine, in policy order.
    numbers : array of int64, shape (jobs,)
        By which the cluster knows their needs.
    valid : array of bool, shape (jobs, machines)
        Which machines can start which of them now.
    waiting_and_fitting : int
        How many waiting jobs fit some machine.
    """

    __slots__ = ("jobs", "numbers", "valid", "waiting_and_fitting")

    def __init__(self, system: System, slots: int, usable: Usable, *, distinct: bool = False) -> None:
        super().__init__("dispatch", system, None, self._pairs, self._first)
        queue = system.queue
        rows, sizes, _ = queue.table
        positions = queue.ranked(usable.counts[usable.kinds[rows]].nonzero()[0])
        self.waiting_and_fitting = len(positions)
        if distinct:
            positions = positions[usable.first_of_each(rows[positions])]
        first = positions[:slots]
        self.numbers, rows = sizes[first], rows[first]
        self.jobs = [system.jobs[row] for row in rows.tolist()]
        self.valid = usable.machines[usable.kinds[rows]]

    def _pairs(self) -> Pairs:
        return Pairs(self.jobs, self.valid)

    def _first(self) -> Pair:
        return self._pairs()[0]


class Usable:
    """Which machines have enough for each job of a run, brought up to date where levels have changed.

    Attributes
    ----------
    kinds : array of int64, shape (jobs of the run,)
        Jobs of one kind need the same.
    machines : array of bool, shape (kinds, machines)
        Which machines have enough; to be read only.
    counts : array of int64, shape (kinds,)
        How many have.
    """

    def __init__(self, cluster: Machines, jobs: Sequence[Job]) -> None:
        numbers, self.kinds = np.unique([cluster.size_of(job) for job in jobs], return_inverse=True)
        self._amounts = np.ascontiguousarray(cluster.needs.amounts[numbers].T)
        requested = [job.requested_time for job in jobs]
        self._requests = np.unique(np.column_stack([self.kinds, requested]), axis=0, return_inverse=True)[1]
        self._level = cluster.capacity
        self._ever = cluster.needs.usable(numbers, self._level)
        self.machines = self._ever.copy()
        self.counts = np.count_nonzero(self.machines, axis=1)

    def first_of_each(self, rows: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the places of jobs, given by rows, of which none before asks for the same; in order."""
        return np.sort(np.unique(self._requests.ravel()[rows], return_index=True)[1])

    def update(self, level: MachineLevel) -> None:
        """Look again at the machines of which another amount is free."""
        if level is self._level:
            return
        for machine in (level != self._level).any(axis=1).nonzero()[0].tolist():
            enough = self._ever[:, machine]
            for amounts, free in zip(self._amounts, level[machine].tolist(), strict=True):
                enough = enough & (amounts <= free)
            self.counts += enough
            self.counts -= self.machines[:, machine]
            self.machines[:, machine] = enough
        self._level = level


class Dispatch(Policy):
    """Asks a seat for a job and its machine, again and again, until no waiting job fits any machine.

    Jobs need one machine each. The seat is offered the pairs of the first `slots` waiting jobs that fit
    somewhere; others, however early they came, are not shown. (Scheduling as in the masked-PPO scheduler's
    published code.)

    Parameters
    ----------
    seat : External
        Who is asked.
    slots : int
        So many jobs are offered at most, >= 1.
    order : Order, optional
        Which jobs come first; by default those that came first.
    distinct : bool
        Of jobs that ask for the same, and for the same time, only the first is offered: a slot stands for a
        kind of request, and a hundred equal jobs do not fill the slots.

    Examples
    --------
    >>> Dispatch(External(), slots=10)
    Dispatch(seat=External(), slots=10)
    """

    def __init__(
        self, seat: External, slots: int, order: Order | None = None, *, distinct: bool = False
    ) -> None:  # fmt: skip
        self.seat = seat
        self.slots = slots
        self.order = order
        self.distinct = distinct

    @property
    def queue_order(self) -> Order:
        """The order in which jobs are offered."""
        return self.order if self.order is not None else FCFS()

    def check(self) -> None:
        """See that there is a seat, and a slot."""
        if not isinstance(self.seat, External):
            raise UsageError(f"the seat of a dispatch needs an External, found {self.seat!r}")
        if not (isinstance(self.slots, int) and self.slots >= 1):
            raise UsageError(f"slots needs a whole number of at least 1, found {self.slots!r}")

    def reset(self, system: System) -> None:
        """See that the jobs need one machine each."""
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
        """Ask for pairs until no waiting job fits any machine."""
        cluster = system.cluster
        assert isinstance(cluster, Machines)
        while len(system.queue):
            self._usable.update(system.free)
            decision = PairDecision(system, self.slots, self._usable, distinct=self.distinct)
            if not decision.jobs:
                return
            job, machine = yield from ask(self.seat, decision)
            system.start(job, Allocation([machine], cluster.need(job).amounts[None]))
