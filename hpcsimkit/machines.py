"""Machines that differ and are shared: named resources on each, placed and counted one by one."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.allocation import Allocation, MachineLevel, with_all
from hpcsimkit.cluster import Candidates, Cluster, Room
from hpcsimkit.columns import AMOUNT_LIMIT
from hpcsimkit.errors import UsageError
from hpcsimkit.job import Job, Request
from hpcsimkit.jobqueue import DEEP, JobQueue
from hpcsimkit.machine_room import MachineRoom
from hpcsimkit.need import Mask, Need, Places, Shape, amounts_text
from hpcsimkit.need_table import NeedTable
from hpcsimkit.units import resource_amount
from hpcsimkit.workload import Workload

if TYPE_CHECKING:
    from hpcsimkit.system import System

__all__ = ["RESOURCES", "Machines"]

RESOURCES = ("cpus", "gpus", "memory")
"""The usual resources, in the usual order; others follow in the order in which they are named."""


@dataclass(frozen=True, eq=False)
class Machines(Cluster):
    """Machines with named resources; several jobs share a machine, a job may span several.

    Parameters
    ----------
    names : sequence of str
        Of the machines, each once.
    resources : sequence of str
        Of what they have. The first is the yardstick of utilisation, and what a job of a log that knows
        only processors takes of ``cpus``, wherever they are.
    amounts : array of int64, shape (machines, resources)
        How much of each, >= 0; memory in bytes.
    features : sequence of collections of str, optional
        What constraints may ask for: features, partitions; by default none.

    Raises
    ------
    UsageError
        There is no machine or no resource, a name is used twice, or an amount is not a whole number >= 0.

    Examples
    --------
    >>> cluster = Machines.of(2, cpus=32, memory="128 GB") + Machines.of(1, "gpu", cpus=16, gpus=4)
    >>> cluster
    Machines(3: 80 cpus, 4 gpus, 256 GB memory)
    >>> cluster.names, cluster.resources
    (('node1', 'node2', 'gpu1'), ('cpus', 'gpus', 'memory'))
    >>> request = Request(("cpus", "gpus"), (8, 1))
    >>> job = Job(index=0, id=1, submit_time=0, run_time=5, requested_time=5, nodes=1, request=request)
    >>> cluster.place(job, cluster.capacity).machines
    (2,)
    """

    names: Sequence[str]
    resources: Sequence[str]
    amounts: ArrayLike
    features: Sequence[Collection[str]] = ()
    needs: NeedTable = field(init=False, repr=False)
    _numbers: dict[tuple[int, Request | None], int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        names, resources = _each_once("machine", self.names), _each_once("resource", self.resources)
        features = tuple(map(_features, self.features)) or (frozenset(),) * len(names)
        if len(features) != len(names):
            raise UsageError(f"{len(names)} machines need as many sets of features, found {len(features)}")
        amounts = _whole_amounts(self.amounts, names, resources)
        checked = {"names": names, "resources": resources, "amounts": amounts, "features": features}
        self.__dict__.update(checked, needs=NeedTable(*amounts.shape))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.capacity.setflags(write=False)  # a copy of an array forgets that

    # --- making them ---------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, count: int, name: str = "node", *, features: Collection[str] = (), **amounts: Any
    ) -> Machines:
        """Return equal machines.

        Parameters
        ----------
        count : int
            How many, >= 1.
        name : str
            Their names begin with it: ``node1``, ``node2`` ...
        features : collection of str
            What constraints may ask for.
        **amounts : int or str
            ``cpus=32, gpus=4, memory="128 GB"``: memory with its unit, of all else a number.
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise UsageError(f"machines need a count of at least 1, found {count!r}")
        if not isinstance(name, str):
            raise UsageError(f"machines need a name of letters, found {name!r}")
        if not amounts:
            raise UsageError("machines need at least one resource, such as cpus=32")
        ranked = {key: amounts[key] for key in (*RESOURCES, *amounts) if key in amounts}
        row = [resource_amount(key, value) for key, value in ranked.items()]
        names = [f"{name}{number}" for number in range(1, count + 1)]
        return cls(names, list(ranked), [row] * count, [features] * count)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Machines:
        """Read machines from a CSV table or a TOML file; see :mod:`~hpcsimkit.machine_files`."""
        from hpcsimkit.machine_files import read_machines

        return read_machines(path)

    def __add__(self, other: Machines) -> Machines:
        """Return all machines of both, the others last; names already used are numbered on."""
        if not isinstance(other, Machines):
            return NotImplemented
        both = (*self.resources, *other.resources)
        resources = [key for key in dict.fromkeys((*RESOURCES, *both)) if key in both]
        amounts = [
            np.column_stack([part.amount(key) for key in resources]) for part in (self, other)
        ]  # fmt: skip
        names = [*self.names, *_unused(other.names, set(self.names))]
        return Machines(names, resources, np.vstack(amounts), [*self.features, *other.features])

    def amount(self, resource: str) -> NDArray[np.int64]:
        """Return how much of a resource each machine has, int64, shape (machines,); 0 of what none has."""
        if resource not in self.resources:
            return np.zeros(len(self), dtype=np.int64)
        return self.capacity[:, list(self.resources).index(resource)]

    def __len__(self) -> int:
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Machines) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return (self.names, self.resources, self.capacity.tobytes(), self.features)

    def __repr__(self) -> str:
        return f"Machines({len(self)}: {amounts_text(self.resources, self.totals)})"

    @property
    def summary(self) -> str:
        """How many machines there are, and what they have in all, in words."""
        machines = "1 machine" if len(self) == 1 else f"{len(self)} machines"
        return f"{machines} ({amounts_text(self.resources, self.totals)})"

    # --- the questions of a cluster ------------------------------------------------------------------

    @property
    def capacity(self) -> MachineLevel:
        """What the empty machines have, int64, shape (machines, resources)."""
        return self.amounts  # type: ignore[return-value]

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """All there is of each resource."""
        return tuple(self.capacity.sum(axis=0).tolist())

    @property
    def size(self) -> int:
        """All there is of the first resource."""
        return self.totals[0]

    @property
    def unit(self) -> str:
        """The first resource."""
        return self.resources[0]

    def need(self, job: Job) -> Need:
        """Return what a job needs of these machines; jobs that need the same share one object."""
        return self.needs.needs[self.size_of(job)]

    def size_of(self, job: Job) -> int:
        """Return the number by which these machines know a job's :meth:`need`."""
        key = (job.nodes, job.request)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = self.needs.add(self._worked_out(*key))
        return number

    @cached_property
    def _shape(self) -> Shape:
        return Shape(tuple(self.resources), self.capacity, np.maximum(self.capacity.max(axis=0), 1))

    def _worked_out(self, nodes: int, request: Request | None) -> Need:
        if request is None:
            unit = "cpus" if "cpus" in self.resources else self.unit
            request = Request((unit,), (nodes,), spread=True)
        amounts = [request.amount(resource) for resource in self.resources]
        there = dict(zip(self.resources, self.totals, strict=True))
        asked = zip(request.resources, request.amounts, strict=True)
        lacking = {name: amount for name, amount in asked if amount and not there.get(name)}
        wanted = {word.strip() for word in request.constraint.split("&")} - {""}
        allowed = np.array([*map(wanted.issubset, self.features)], dtype=np.bool_) if wanted else None
        return Need(
            self._shape, amounts, nodes=nodes, spread=request.spread, exclusive=request.exclusive,
            allowed=allowed, lacking=lacking, constraint=request.constraint,
        )  # fmt: skip

    def fits(self, job: Job, level: MachineLevel) -> bool:
        """Tell whether a job fits a level."""
        return self.need(job).fits(level)

    def fit_each(self, jobs: Sequence[Job], level: MachineLevel) -> Sequence[bool]:
        """Tell of each job whether it fits a level."""
        supply = level.sum(axis=0).tolist()
        needs = map(self.need, jobs)
        return [need.within(supply) if need.by_totals else need.fits(level) for need in needs]

    def place(self, job: Job, level: MachineLevel) -> Allocation | None:
        """Return an allocation on the first machines that can take the job, by number, or None."""
        return self.need(job).take(level, self.usable(job, level))

    def usable(self, job: Job, level: MachineLevel) -> Places:
        """Return the numbers of the machines that can be one of a job's, ascending."""
        return np.flatnonzero(self.need(job).usable(level))

    def holds(self, job: Job, allocation: Any, level: MachineLevel) -> bool:
        """Tell whether the allocation gives the job what it asked for and lies within the level."""
        return isinstance(allocation, Allocation) and self.need(job).met_by(allocation, level)

    def common(self, level: MachineLevel, other: MachineLevel) -> MachineLevel:
        """Return what is free in both levels."""
        return np.minimum(level, other)

    def main_amount(self, job: Job, allocation: Allocation) -> int:
        """Return how much of the first resource an allocation takes."""
        return allocation.totals[0]

    def asked(self, job: Job) -> int:
        """Return how much of the first resource a job asks for in all."""
        return self.need(job).totals()[0]

    def share(self, level: MachineLevel) -> float:
        """Return what share of the first resource is in a level."""
        return float(level[:, 0].sum()) / self.size

    def shortage(self, job: Job, level: MachineLevel) -> str:
        """Say what a job needs and what there is of it."""
        need = self.need(job)
        return f"needs {need.text()}; {need.found(level)}"

    def misfits(self, workload: Workload) -> Mask:
        """Tell which jobs do not fit the empty machines."""
        numbers = [self.size_of(job) for job in workload.jobs]
        kinds = np.array(sorted(set(numbers)), dtype=np.int64)
        too_large = set(kinds[~self.needs.fit(kinds, self.capacity)].tolist())
        return np.array([number in too_large for number in numbers], dtype=np.bool_)

    def earliest(
        self, job: Job, level: MachineLevel, releases: Iterable[tuple[int, int, Allocation]], soonest: int
    ) -> tuple[int, MachineLevel]:
        """Walk the releases until the job fits; see :meth:`Cluster.earliest`."""
        watch = self.need(job).watch(level)
        shadow_time, released = soonest, []
        walk = iter(releases)
        for end, _, allocation in walk:
            released.append(allocation)
            if watch.add(allocation):
                shadow_time = max(end, soonest)
                break
        for end, _, allocation in walk:
            if end > shadow_time:
                break
            released.append(allocation)
        return shadow_time, with_all(level, released)

    # --- backfilling -----------------------------------------------------------------------------------

    def room(self, head: Job, free: MachineLevel, window: float, later: MachineLevel) -> MachineRoom:
        """Return what jobs behind `head` may use now: it must still fit somewhere when its time comes."""
        return MachineRoom(free, window, later, later, self.need(head))

    def within(self, job: Job, estimate: int, room: Room) -> MachineLevel | None:
        """Return the level within which the job may be placed now, None if there is no room for it."""
        need = self.need(job)
        free: MachineLevel | None = room.free
        if estimate > room.window:
            assert isinstance(room, MachineRoom)
            free = room.sparing(need)
        return free if free is not None and need.fits(free) else None

    def take(self, job: Job, estimate: int, room: Room, allocation: Allocation) -> None:
        """Count what a job that has just been started uses up."""
        room.free = room.free - allocation
        if estimate > room.window and isinstance(room, MachineRoom):
            room.later = room.later - allocation

    def fitting(self, queue: JobQueue, level: MachineLevel) -> Candidates:
        """Return (job, number of its need, estimate) of the queued jobs that fit, in policy order."""
        if len(queue.jobs) < DEEP and queue.stored_in_order:
            numbers = sorted(set(queue.sizes))
            fits = self.needs.fit(np.array(numbers, dtype=np.int64), level).tolist()
            if True not in fits:
                return []
            fitting = {number for number, enough in zip(numbers, fits, strict=True) if enough}
            waiting = zip(queue.jobs, queue.sizes, queue.estimates, strict=True)
            return [candidate for candidate in waiting if candidate[1] in fitting]
        rows, sizes, estimates = queue.table
        kinds = np.flatnonzero(np.bincount(sizes))
        enough = np.zeros(len(self.needs), dtype=np.bool_)
        enough[kinds] = self.needs.fit(kinds, level)
        chosen = queue.ranked(np.flatnonzero(enough[sizes]))
        found = zip(rows[chosen].tolist(), sizes[chosen].tolist(), estimates[chosen].tolist(), strict=True)
        return [(queue.job(row), size, estimate) for row, size, estimate in found]

    def admissible(self, candidates: Candidates, system: System, room: Room) -> Iterable[Job]:
        """Return those candidates there is room for; see :meth:`Cluster.admissible`."""
        first = self._next(candidates, 0, room, {})
        return self._admissible(candidates, first, system, room) if first < len(candidates) else ()

    def _next(self, candidates: Candidates, first: int, room: Room, full: dict[Any, bool]) -> int:
        """Return the position of the first candidate from `first` on that there is room for.

        `full` remembers for which needs, of short or long jobs, there was none.
        """
        for position in range(first, len(candidates)):
            job, number, estimate = candidates[position]
            kind = (number, estimate > room.window)
            if kind not in full:
                if self.within(job, estimate, room) is not None:
                    return position
                full[kind] = True
        return len(candidates)

    def _admissible(self, candidates: Candidates, first: int, system: System, room: Room) -> Iterator[Job]:
        full: dict[Any, bool] = {}  # room only shrinks
        while first < len(candidates):
            job, _, estimate = candidates[first]
            yield job
            if job not in system.queue:
                self.take(job, estimate, room, system.running.allocation(job))
            first = self._next(candidates, first + 1, room, full)


def _each_once(what: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return names that are text, each there once."""
    if isinstance(words, str) or not all(isinstance(word, str) and word for word in words):
        raise UsageError(f"names of {what}s need to be text, found {words!r}")
    twice = [word for word, count in Counter(words).items() if count > 1]
    if twice:
        raise UsageError(f"{what} {twice[0]!r} is listed twice")
    return tuple(words)


def _features(words: Collection[str]) -> frozenset[str]:
    if isinstance(words, str) or not all(isinstance(word, str) and "&" not in word for word in words):
        raise UsageError(f"features need to be a list of words without '&', found {words!r}")
    return frozenset(words)


def _whole_amounts(amounts: ArrayLike, names: Sequence[str], resources: Sequence[str]) -> MachineLevel:
    """Return amounts as a read-only array of whole numbers; its columns are what is read, one by one."""
    given, number = np.asarray(amounts, dtype=object), (int, float, np.integer)
    if not given.size or given.shape != (len(names), len(resources)):
        raise UsageError(
            f"machines need amounts of shape (machines, resources), at least one of each, found "
            f"{given.shape} for {len(names)} machines and {len(resources)} resources"
        )
    for name, row in zip(names, given.tolist(), strict=True):
        if not all(isinstance(each, number) and 0 <= each <= AMOUNT_LIMIT and each % 1 == 0 for each in row):
            raise UsageError(f"machine {name!r} needs whole amounts from 0 to {AMOUNT_LIMIT}, found {row}")
    whole = np.asfortranarray(given.astype(np.int64))
    if (whole.sum(axis=0, dtype=float) > 2**62).any():
        raise UsageError(f"machines need amounts of at most {2**62} in all, found {sum(given).tolist()}")
    whole.setflags(write=False)
    return whole


def _unused(names: Iterable[str], used: set[str]) -> Iterator[str]:
    """Yield names; one that is in use gets the next number that is not."""
    following: dict[str, int] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        number = following.get(stem, 1)
        while name in used:
            name, number = f"{stem}{number}", number + 1
        following[stem] = number
        used.add(name)
        yield name
