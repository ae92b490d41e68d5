"""Heterogeneous, shared machines: named resources on each machine, placed and counted individually."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.cluster import files as machine_files
from hpcsimkit.cluster.allocation import Allocation, MachineLevel, with_all
from hpcsimkit.cluster.base import Candidates, Cluster, Room
from hpcsimkit.cluster.request import Conditions, Count, Mask, Need, Places, Shape, amounts_text
from hpcsimkit.cluster.request_table import GROWING, NeedTable
from hpcsimkit.cluster.room import MachineRoom
from hpcsimkit.errors import UsageError
from hpcsimkit.io.units import ranked_resources, resource_amount, total_of
from hpcsimkit.jobs.columns import AMOUNT_LIMIT
from hpcsimkit.jobs.constraint import SIGNS, counted, satisfied
from hpcsimkit.jobs.job import Job, Request
from hpcsimkit.jobs.queue import DEEP, JobQueue
from hpcsimkit.jobs.views import views
from hpcsimkit.jobs.workload import Workload

__all__ = ["Machines"]


@dataclass(frozen=True, eq=False)
class Machines(Cluster[MachineLevel, Allocation]):
    """Machines with named resources; several jobs may share a machine, and a job may span several.

    Parameters
    ----------
    names : sequence of str
        Unique names of the machines.
    resources : sequence of str
        Names of the resources. Models of a resource, such as ``gpus:a100``, are resources beside it; ``gpus``
        counts all of them. The first is the reference of utilisation. A job of a log that contains
        processor counts only takes ``cpus``, or the first resource if there are none, on any machines.
    amounts : array of int64, shape (machines, resources)
        Amount of each resource on each machine, >= 0; memory in bytes.
    features : sequence of collections of str, optional
        Features of each machine, to which constraints refer, such as partitions; by default none.
    notes : mapping of str to int
        Values of a file of machines that could not be used, and how often. Default: none.

    Raises
    ------
    UsageError
        There is no machine or no resource, a name occurs twice, an amount is not a whole number >= 0, or a
        machine has more of the models of a resource than of the resource.

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
    notes: Mapping[str, int] = field(default_factory=dict, kw_only=True, repr=False)
    needs: NeedTable = field(init=False, repr=False)
    _known: dict[tuple[int, Request | None], tuple[int, Need]] = field(
        default_factory=dict, init=False, repr=False
    )
    _too_large: Mask = field(init=False, repr=False)
    """Whether each of the known needs exceeds the empty machines, as far as it was asked for."""

    def __post_init__(self) -> None:
        names, resources = _each_once("machine", self.names), _each_once("resource", self.resources)
        features = tuple(map(_features, self.features)) or (frozenset(),) * len(names)
        if len(features) != len(names):
            raise UsageError(f"{len(names)} machines need as many sets of features, found {len(features)}")
        resources, amounts = _with_totals(names, resources, _whole_amounts(self.amounts, names, resources))
        checked = {"names": names, "resources": resources, "amounts": amounts, "features": features}
        self.__dict__.update(checked, needs=NeedTable(*amounts.shape), _too_large=np.zeros(0, dtype=np.bool_))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        np.asarray(self.amounts).setflags(write=False)  # the flag is lost when an array is copied

    # --- constructors --------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, count: int, name: str = "node", *, features: Collection[str] = (), **amounts: Any
    ) -> Machines:
        """Return identical machines.

        Parameters
        ----------
        count : int
            Number of machines, >= 1.
        name : str
            Prefix of the machine names: ``node1``, ``node2`` ... Default: ``"node"``.
        features : collection of str
            Features to which constraints refer; by default none.
        **amounts : int or str
            Amount of each resource per machine: ``cpus=32, gpus=4, memory="128 GB"``; memory with its unit,
            all else as a number.
        """
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise UsageError(f"machines need a count of at least 1, found {count!r}")
        if not isinstance(name, str):
            raise UsageError(f"machines need a name of letters, found {name!r}")
        if not amounts:
            raise UsageError("machines need at least one resource, such as cpus=32")
        ranked = {key: amounts[key] for key in ranked_resources(amounts)}
        row = [resource_amount(key, value) for key, value in ranked.items()]
        names = [f"{name}{number}" for number in range(1, count + 1)]
        return cls(names, list(ranked), [row] * count, [features] * count)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Machines:
        """Read machines from a table, a TOML file or Slurm's list; see :mod:`~hpcsimkit.cluster.files`."""
        return machine_files.read_machines(path, cls)

    @classmethod
    def of_tables(cls, tables: Sequence[Mapping[str, Any]]) -> Machines:
        """Return the machines of all tables ``[[machines]]`` of an experiment file.

        Raises
        ------
        UsageError
            A table is invalid.
        WorkloadError
            There are more machines than :mod:`hpcsimkit.io.budget` allows.

        Examples
        --------
        >>> Machines.of_tables([{"count": 4, "name": "gpu", "cpus": 64, "gpus": 4, "memory": "512 GB"}])
        Machines(4: 256 cpus, 16 gpus, 2.048 TB memory)
        """
        return machine_files.machines_of_tables(tables, cls)

    def __add__(self, other: Machines) -> Machines:
        """Return the machines of both operands; duplicate names are renumbered."""
        if not isinstance(other, Machines):
            return NotImplemented
        return Machines.joined([self, other])

    @classmethod
    def joined(cls, parts: Sequence[Machines]) -> Machines:
        """Return all machines of several clusters, in their order; duplicate names are renumbered.

        Parameters
        ----------
        parts : sequence of Machines
            The clusters, at least one.

        Examples
        --------
        >>> Machines.joined([Machines.of(1, cpus=4), Machines.of(2, cpus=8, gpus=1)]).names
        ('node1', 'node2', 'node3')
        """
        resources = ranked_resources(key for part in parts for key in part.resources)
        amounts = [np.column_stack([part.amount(key) for key in resources]) for part in parts]
        names = list(_unused(name for part in parts for name in part.names))
        return cls(names, resources, np.vstack(amounts), [words for part in parts for words in part.features])

    def subset(self, numbers: Sequence[int]) -> Machines:
        """Return some of the machines, by number; all resources are kept."""
        names = [self.names[number] for number in numbers]
        features = [self.features[number] for number in numbers]
        return Machines(names, self.resources, self.capacity[list(numbers)], features)

    def amount(self, resource: str) -> NDArray[np.int64]:
        """Return the amount of a resource on each machine, int64, shape (machines,); 0 if none has it."""
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

    def _repr_html_(self) -> str:
        """Return the kinds of machines as a table, for notebooks."""
        return str(views().machines_html(self))

    @cached_property
    def numbers(self) -> Mapping[str | int, int]:
        """The number of each machine, by its name and by the number itself."""
        numbers: dict[str | int, int] = {number: number for number in range(len(self))}
        return numbers | {name: number for number, name in enumerate(self.names)}

    def matching(self, name: str | int) -> list[int]:
        """Return the number of a machine, or those of all whose names match ``*`` and ``?``; maybe none."""
        if name in self.numbers or not isinstance(name, str):
            return [self.numbers[name]] if name in self.numbers else []
        return [number for number, each in enumerate(self.names) if fnmatchcase(each, name)]

    @property
    def summary(self) -> str:
        """Number of machines and their total resources, in words."""
        machines = "1 machine" if len(self) == 1 else f"{len(self)} machines"
        return f"{machines} ({amounts_text(self.resources, self.totals)})"

    # --- capacity queries ----------------------------------------------------------------------------

    @property
    def capacity(self) -> MachineLevel:
        """Resources of the empty machines, int64, shape (machines, resources)."""
        return self.amounts  # type: ignore[return-value]

    @cached_property
    def totals(self) -> tuple[int, ...]:
        """The total amount of each resource."""
        return tuple(self.capacity.sum(axis=0).tolist())

    @property
    def size(self) -> int:
        """The total amount of the first resource."""
        return self.totals[0]

    @property
    def unit(self) -> str:
        """The name of the first resource."""
        return self.resources[0]

    def need(self, job: Job) -> Need:
        """Return the resource demand of a job on these machines; jobs with equal demands share one object."""
        return (self._known.get((job.nodes, job.request)) or self._added(job))[1]

    def size_of(self, job: Job) -> int:
        """Return the number of a job's :meth:`need` in the table of these machines."""
        return (self._known.get((job.nodes, job.request)) or self._added(job))[0]

    def sizes_of(self, workload: Workload) -> Places:
        """Return the number of the :meth:`need` of each job of a workload, intp, shape (jobs,)."""
        sizes = np.array([self.size_of(job) for job in workload.first_alike], dtype=np.intp)
        return sizes[workload.alike]

    def _added(self, job: Job) -> tuple[int, Need]:
        """Return the number and the resource demand of a job that is the first one to have it."""
        key = job.nodes, job.request
        with GROWING:
            if key not in self._known:
                need = self._worked_out(*key)
                self._known[key] = self.needs.add(need), need
        return self._known[key]

    @cached_property
    def _shape(self) -> Shape:
        capacity = self.capacity
        kinds = np.count_nonzero(capacity, axis=1)
        return Shape(
            tuple(self.resources),
            capacity,
            largest=np.maximum(capacity.max(axis=0), 1),
            divisors=np.maximum(capacity, 1).astype(np.float64),
            kinds=np.maximum(kinds, 1).astype(np.float64),
            bare=np.flatnonzero(kinds == 0),
            numbers=np.arange(len(self)),
        )

    def _worked_out(self, nodes: int, request: Request | None) -> Need:
        if request is None:
            unit = "cpus" if "cpus" in self.resources else self.unit
            request = Request((unit,), (nodes,), spread=True)
        asked = _asked_totals(request)
        there = dict(zip(self.resources, self.totals, strict=True))
        features = [self._feature_of(name) for name, amount in asked.items() if amount and name not in there]
        lacking = {
            name: amount
            for name, amount in asked.items()
            if amount and not there.get(name) and self._feature_of(name) is None
        }
        return Need(
            self._shape,
            [asked.get(resource, 0) for resource in self.resources],
            nodes=nodes,
            spread=request.spread,
            exclusive=request.exclusive,
            conditions=self._conditions(nodes, request, filter(None, features)),
            lacking=lacking,
        )

    def _feature_of(self, resource: str) -> str | None:
        """Return the feature that stands for a model which is no resource here; None if it is needed as one.

        An empty text stands for any machine: on machines of which no model is known, all have the same.
        """
        total = total_of(resource)
        if not total or resource in self.resources or total not in self.resources:
            return None
        model = resource.removeprefix(f"{total}:")
        words = (word for each in self.features for word in each if word.lower() == model)
        named = any(total_of(each) == total for each in self.resources)
        return next(words, None if named else "")

    def _conditions(self, nodes: int, request: Request, features: Iterable[str]) -> Conditions:
        """Return the constraint for all nodes of a job, which includes further features, and the counts."""
        everywhere, counts = counted(request.constraint)
        for feature in features:
            everywhere = f"{feature}&({everywhere})" if everywhere else feature
        if counts and request.spread:
            raise UsageError(f"a pooled request has no nodes to count, found {request.constraint!r}")
        if sum(number for _, number in counts) > nodes:
            raise UsageError(f"counts of at most {nodes} nodes in all needed, found {request.constraint!r}")
        of_all = (condition for condition, number in counts if number == nodes)
        everywhere = "&".join(filter(None, (everywhere, *of_all)))
        fewer = [Count(each, self._satisfying(each), number) for each, number in counts if number < nodes]
        return Conditions(everywhere, self._satisfying(everywhere) if everywhere.strip("& ") else None, fewer)

    def _satisfying(self, constraint: str) -> Mask:
        return np.array([satisfied(constraint, each) for each in self.features])

    def fits(self, job: Job, level: MachineLevel) -> bool:
        """Return whether a job fits a level."""
        return self.need(job).fits(level)

    def fit_each(self, jobs: Sequence[Job], level: MachineLevel) -> Sequence[bool]:
        """Return for each job whether it fits a level."""
        supply, known, fits = np.add.reduce(level).tolist(), self._known, []
        for job in jobs:  # without a call of `need`, which would take a third of the time
            _, need = known.get((job.nodes, job.request)) or self._added(job)
            fits.append(need.within(supply) if need.by_totals else need.fits(level))
        return fits

    def place(self, job: Job, level: MachineLevel) -> Allocation | None:
        """Return an allocation on the first machines on which the job fits, by number, or None."""
        return self.need(job).take(level, self.usable(job, level))

    def usable(self, job: Job, level: MachineLevel) -> Places:
        """Return the numbers of the machines that can contribute to the job, ascending."""
        return np.flatnonzero(self.need(job).usable(level))

    def holds(self, job: Job, allocation: Any, level: MachineLevel) -> bool:
        """Return whether the allocation meets the job's request and lies within the level."""
        return isinstance(allocation, Allocation) and self.need(job).met_by(allocation, level)

    def common(self, level: MachineLevel, other: MachineLevel) -> MachineLevel:
        """Return the capacity that is available in both levels."""
        return np.minimum(level, other)

    def main_amount(self, job: Job, allocation: Allocation) -> int:
        """Return the amount of the first resource that an allocation occupies."""
        return allocation.totals[0]

    def asked(self, job: Job) -> int:
        """Return the total amount of the first resource that a job requests."""
        return self.need(job).totals()[0]

    def share(self, level: MachineLevel) -> float:
        """Return the fraction of the first resource that a level contains."""
        return float(level[:, 0].sum()) / self.size

    def shortage(self, job: Job, level: MachineLevel) -> str:
        """Return the demand of a job and the supply of a level in words."""
        need = self.need(job)
        if need.empty:
            return f"asks for nothing; on machines it needs an amount above 0 of {', '.join(self.resources)}"
        return f"needs {need.text()}; {need.found(level)}"

    def misfits(self, workload: Workload) -> Mask:
        """Return which jobs do not fit the empty machines."""
        numbers = self.sizes_of(workload)
        with GROWING:
            new = np.arange(len(self._too_large), len(self.needs))
            if len(new):
                of_new = ~self.needs.fit(new, self.capacity)
                self.__dict__["_too_large"] = np.concatenate([self._too_large, of_new])
        return self._too_large[numbers]

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
        """Return the capacity for backfilling behind `head`, which must still fit at its shadow time."""
        return MachineRoom(free, window, later, later, self.need(head))

    def within(self, job: Job, estimate: int, room: Room[MachineLevel]) -> MachineLevel | None:
        """Return the level within which the job may be placed now, or None if it may not be backfilled."""
        need = self.need(job)
        if estimate > room.window:
            assert isinstance(room, MachineRoom)
            return room.beyond(need)
        return room.free if need.fits(room.free) else None

    def take(self, job: Job, estimate: int, room: Room[MachineLevel], allocation: Allocation) -> None:
        """Deduct a job that has just been started from the capacity for backfilling."""
        if isinstance(room, MachineRoom):
            room.take(allocation, beyond=estimate > room.window)
        else:  # behind a job without a reservation
            room.free = room.free - allocation

    def fitting(self, queue: JobQueue, level: MachineLevel) -> Candidates:
        """Return (job, number of need, estimate) of a short queue; of a long one, positions in its table."""
        if len(queue.jobs) < DEEP and queue.stored_in_order:
            fitting = self._fitting_needs(set(queue.sizes), level)
            if not fitting:
                return []
            waiting = zip(queue.jobs, queue.sizes, queue.estimates, strict=True)
            return [candidate for candidate in waiting if candidate[1] in fitting]
        sizes = queue.table[1]
        enough = np.zeros(len(self.needs), dtype=np.bool_)
        enough[list(self._fitting_needs(np.bincount(sizes).nonzero()[0].tolist(), level))] = True
        return queue.ranked(enough[sizes].nonzero()[0])

    def _fitting_needs(self, numbers: Collection[int], level: MachineLevel) -> set[int]:
        """Return the numbers of the needs that fit a level, among some."""
        return self.needs.fitting(numbers, level)

    def admissible(
        self, candidates: Candidates, queue: JobQueue, room: Room[MachineLevel]
    ) -> Iterable[tuple[Job, int]]:
        """Return the candidates that may be backfilled; see :meth:`Cluster.admissible`."""
        if isinstance(candidates, np.ndarray):
            found = self._from_first(queue.table.take(candidates, axis=1), queue, room)
            return self._admissible_many(found, queue, room) if found.size else ()
        first = self._next(candidates, 0, room, {})
        return self._admissible(candidates, first, room) if first < len(candidates) else ()

    def _from_first(
        self, candidates: NDArray[np.int64], queue: JobQueue, room: Room[MachineLevel]
    ) -> NDArray[np.int64]:
        """Return the columns of the queue's table from the first candidate on that may be backfilled.

        Others with a need, of short or long jobs, for which no capacity is left are removed, too.
        """
        while candidates.size:
            row, number, estimate = candidates[:, 0].tolist()
            if self.within(queue.job(row), estimate, room) is not None:
                break
            _, numbers, estimates = candidates
            alike = (numbers == number) & ((estimates > room.window) == (estimate > room.window))
            candidates = candidates[:, ~alike]
        return candidates

    def _admissible_many(
        self, candidates: NDArray[np.int64], queue: JobQueue, room: Room[MachineLevel]
    ) -> Iterator[tuple[Job, int]]:
        while candidates.size:
            row, _, estimate = candidates[:, 0].tolist()
            yield queue.job(row), estimate
            candidates = self._from_first(candidates[:, 1:], queue, room)

    def _next(
        self, candidates: Candidates, first: int, room: Room[MachineLevel], full: dict[tuple[int, bool], bool]
    ) -> int:
        """Return the position of the first candidate from `first` on that may be backfilled.

        `full` caches the needs, of short or long jobs, for which no capacity is left.
        """
        for position in range(first, len(candidates)):
            job, number, estimate = candidates[position]
            kind = (number, estimate > room.window)
            if kind not in full:
                if self.within(job, estimate, room) is not None:
                    return position
                full[kind] = True
        return len(candidates)

    def _admissible(
        self, candidates: Candidates, first: int, room: Room[MachineLevel]
    ) -> Iterator[tuple[Job, int]]:
        full: dict[tuple[int, bool], bool] = {}  # the capacity only shrinks
        while first < len(candidates):
            job, _, estimate = candidates[first]
            yield job, estimate
            first = self._next(candidates, first + 1, room, full)


def _each_once(what: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return names after checking that they are unique text."""
    if isinstance(words, str) or not all(isinstance(word, str) and word for word in words):
        raise UsageError(f"names of {what}s need to be text, found {words!r}")
    twice = [word for word, count in Counter(words).items() if count > 1]
    if twice:
        raise UsageError(f"{what} {twice[0]!r} is listed twice")
    return tuple(words)


def _features(words: Collection[str]) -> frozenset[str]:
    if isinstance(words, str) or not all(isinstance(word, str) and not SIGNS & {*word} for word in words):
        raise UsageError(
            f"features need to be a list of words without '&', '|', '*' and brackets, found {words!r}"
        )
    return frozenset(words)


def _asked_totals(request: Request) -> dict[str, int]:
    """Return the requested amounts, of a resource at least as much as of its models in all."""
    asked = dict(zip(request.resources, request.amounts, strict=True))
    for total in {total_of(name) for name in asked} - {""}:
        models = sum(amount for name, amount in asked.items() if total_of(name) == total)
        asked[total] = max(asked.get(total, 0), models)
    return asked


def _with_totals(
    names: Sequence[str], resources: tuple[str, ...], amounts: MachineLevel
) -> tuple[tuple[str, ...], MachineLevel]:
    """Return resources and amounts with the totals of all models, before the first model if there is none."""
    for total in dict.fromkeys(filter(None, map(total_of, resources))):
        models = [place for place, name in enumerate(resources) if total_of(name) == total]
        in_all = amounts[:, models].sum(axis=1)
        if total not in resources:
            first = models[0]
            resources = (*resources[:first], total, *resources[first:])
            amounts = np.asfortranarray(np.insert(amounts, first, in_all, axis=1))
            amounts.setflags(write=False)
            continue
        short = in_all > amounts[:, resources.index(total)]
        if short.any():
            row = int(np.argmax(short))
            found = amounts[row, resources.index(total)]
            raise UsageError(
                f"machine {names[row]!r} needs {in_all[row]} {total} for its models, found {found}"
            )
    return resources, amounts


def _whole_amounts(amounts: ArrayLike, names: Sequence[str], resources: Sequence[str]) -> MachineLevel:
    """Return amounts as a read-only array of whole numbers, stored by column for fast access."""
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


def _unused(names: Iterable[str]) -> Iterator[str]:
    """Yield names; a name already in use gets the next unused number."""
    used: set[str] = set()
    following: dict[str, int] = {}
    for name in names:
        stem = name.rstrip("0123456789")
        number = following.get(stem, 1)
        while name in used:
            name, number = f"{stem}{number}", number + 1
        following[stem] = number
        used.add(name)
        yield name
