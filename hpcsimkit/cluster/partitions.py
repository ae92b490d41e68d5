"""Partitions: named views of a cluster, each with a queue of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Cluster, Nodes
from hpcsimkit.cluster.limited import NODES, limited
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import ScheduleError, UsageError, close_words
from hpcsimkit.io.units import resource_amount
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.views import views as shown
from hpcsimkit.jobs.workload import Workload

__all__ = ["COLUMNS", "Partition", "Partitions", "View"]

COLUMNS = ("partition", "queue", "qos")
"""Columns of a workload that may name the partitions of its jobs."""

NEAREST = {
    "ExclusiveUser": "whole machines (exclusive = true in a file of partitions)",
    "OverSubscribe": "as many times the CPUs in the file of machines",
}
"""What comes nearest to rules of sharing that are not simulated, by the beginning of the rule."""

MAY_NOT_RUN = "may not run in any of its partitions"
"""Reason for which no partition admits the jobs of some users, accounts and QOS."""


@dataclass(frozen=True)
class Partition:
    """A partition: a number of nodes of its own, or a set of machines; and its limits.

    Parameters
    ----------
    name : str
        Name, as in the log; without a comma, which separates the names of several partitions.
    nodes : int, optional
        Number of nodes of a partition of homogeneous nodes, >= 1.
    machines : collection of str, optional
        Names of the machines, which other partitions may share; by default all machines.
    priority : int
        Priority tier: at an instant, partitions with higher priorities are scheduled first. Default: 0.
    max_time : int, optional
        Largest requested time [s] of a job; by default unlimited.
    default_time : int, optional
        Requested time [s] of a job without one, at most `max_time`, which is the default.
    max_nodes : int, optional
        Largest number of nodes of a job; by default unlimited. It does not limit pooled requests.
    max_per_job : mapping of str to int or str, optional
        Largest amounts of resources of a job on all of its nodes, such as ``{"gpus": 4, "memory": "1 TB"}``,
        memory in bytes or with its unit; by default unlimited.
    max_per_node : mapping of str to int or str, optional
        Largest amounts of resources of a job on each of its nodes, as in `max_per_job`; they do not limit
        pooled requests.
    in_use : mapping of str to int or str, optional
        Largest amounts in use at once by the running jobs that have started here: of ``nodes`` and resources,
        such as ``{"nodes": 10, "gpus": 8}`` (``GrpTRES`` of Slurm's partition QOS), counted as in
        `max_per_job`; a pooled request counts no nodes. By default unlimited.
    billing : mapping of str to float, optional
        Weights of the resources of a job in its billing by the order ``slurm`` (``TRESBillingWeights``),
        >= 0, of memory per GiB, such as ``{"cpus": 1, "gpus": 16}``. By default the billing is its size.
    users, accounts, qos : collection of str, optional
        Names of the users, accounts (column ``group``) and QOS whose jobs may run here; by default all. A job
        of which the log does not record the name may run.
    denied_accounts, denied_qos : collection of str
        Names of accounts and QOS whose jobs may not run here. Default: none.
    order : Order, optional
        Order of the queue in place of that of the policy, which must be a pipeline. In a file, its name, such
        as ``"sjf"``.
    default : bool
        Whether jobs without a partition belong to this one. Default: False.
    exclusive : bool
        Whether jobs have whole machines here, which they share with no other job; see
        :meth:`Partitions.with_rules`. Default: False.
    shared : str, optional
        Rule of sharing machines that is not simulated, for remarks, such as ``"OverSubscribe=FORCE:4"``.

    Raises
    ------
    UsageError
        A parameter is invalid.
    """

    name: str
    nodes: int | None = None
    machines: Collection[str] | None = None
    priority: int = 0
    max_time: int | None = None
    default_time: int | None = None
    max_nodes: int | None = None
    max_per_job: Mapping[str, int | str] = field(default_factory=dict)
    max_per_node: Mapping[str, int | str] = field(default_factory=dict)
    in_use: Mapping[str, int | str] = field(default_factory=dict)
    billing: Mapping[str, float] = field(default_factory=dict)
    users: Collection[str] | None = None
    accounts: Collection[str] | None = None
    qos: Collection[str] | None = None
    denied_accounts: Collection[str] = ()
    denied_qos: Collection[str] = ()
    order: Any = None
    default: bool = False
    exclusive: bool = False
    shared: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or "," in self.name:
            raise UsageError(f"a partition needs a name without a comma, found {self.name!r}")
        for key in ("nodes", "max_time", "default_time", "max_nodes"):
            value = getattr(self, key)
            if value is not None and not (_is_whole(value) and 1 <= value <= TIME_LIMIT):
                raise self._invalid(key, "a whole number of at least 1", value)
        if None not in (self.max_time, self.default_time) and self.default_time > self.max_time:  # type: ignore[operator]
            raise self._invalid("default_time", f"at most max_time, {self.max_time} s", self.default_time)
        if not _is_whole(self.priority):
            raise self._invalid("priority", "a whole number", self.priority)
        for key in ("default", "exclusive"):
            if not isinstance(getattr(self, key), bool):
                raise self._invalid(key, "true or false", getattr(self, key))
        if not isinstance(self.shared, str | None):
            raise self._invalid("shared", "a text", self.shared)
        self._check_names()
        self._check_billing()
        for key in ("max_per_job", "max_per_node", "in_use"):
            object.__setattr__(self, key, self._amounts(key))

    def _check_billing(self) -> None:
        weights = self.billing.values() if isinstance(self.billing, Mapping) else [None]
        if not all(isinstance(each, int | float) and 0 <= each < float("inf") for each in weights):
            raise self._invalid("billing", "numbers of at least 0 by resource", self.billing)

    def _check_names(self) -> None:
        for key in ("machines", "users", "accounts", "qos", "denied_accounts", "denied_qos"):
            names = getattr(self, key)
            if names is None:
                continue
            if isinstance(names, str) or not isinstance(names, Collection) or not all(map(_is_name, names)):
                raise self._invalid(key, "a list of names", names)
            object.__setattr__(self, key, tuple(names))

    def _amounts(self, key: str) -> dict[str, int]:
        """Return largest amounts, memory in bytes."""
        given = getattr(self, key)
        if not isinstance(given, Mapping):
            raise self._invalid(key, "amounts by resource", given)
        try:
            return {
                name: int(each) if _is_whole(each) and each >= 0 else resource_amount(name, each)
                for name, each in given.items()
            }
        except UsageError as error:
            raise UsageError(f"partition {self.name!r}: {key}: {error}") from None

    def _invalid(self, key: str, needed: str, found: object) -> UsageError:
        return UsageError(f"partition {self.name!r}: {key} needs {needed}, found {found!r}")

    def admits(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs may run here and respect the limits of a job, bool, shape (jobs,)."""
        admitted = self.allows(workload)
        for _, beyond in self.beyond(workload):
            admitted &= ~beyond
        return admitted

    def beyond(self, workload: Workload) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield the limits of a job, each with the jobs that exceed it, bool, shape (jobs,)."""
        if self.max_time is not None:
            yield "max_time", workload.column("requested_time") > self.max_time
        pooled = workload.column("spread") == 1
        if self.max_nodes is not None:
            yield "max_nodes", ~pooled & (workload.column("nodes") > self.max_nodes)
        factor = np.where(pooled, 1, workload.column("nodes"))
        for name in workload.resources:
            amounts = workload.column(name)
            if name in self.max_per_job:
                yield f"max_per_job of {name}", amounts * factor.astype(float) > self.max_per_job[name]
            if name in self.max_per_node:
                yield f"max_per_node of {name}", ~pooled & (amounts > self.max_per_node[name])  # type: ignore[operator]

    def allows(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs are of users, accounts and QOS that may run here, bool, shape (jobs,)."""
        allowed = np.ones(len(workload), dtype=np.bool_)
        for column, names, denied in (
            ("user", self.users, ()),
            ("group", self.accounts, self.denied_accounts),
            ("qos", self.qos, self.denied_qos),
        ):
            if names is None and not denied:
                continue
            numbers, number_of = np.unique(workload.column(column), return_inverse=True)
            labels = [None if each < 0 else workload.label(column, each) for each in numbers.tolist()]
            may = [
                each is None or ((names is None or each in names) and each not in denied) for each in labels
            ]
            allowed &= np.array(may)[number_of]
        return allowed


@dataclass(frozen=True, eq=False)
class View:
    """The part of a cluster that a partition consists of, as a cluster of its own.

    Parameters
    ----------
    cluster : Nodes or Machines
        The nodes or machines of the partition.
    numbers : array of intp, shape (machines,), or None
        Number of each machine in the whole cluster, ascending; None with homogeneous nodes.
    total : int
        Number of machines of the whole cluster.
    """

    cluster: Nodes | Machines
    numbers: NDArray[np.intp] | None = None
    total: int = 0

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """Number of each machine of the whole cluster in this view, -1 if it is absent."""
        places = np.full(self.total, -1, dtype=np.intp)
        assert self.numbers is not None
        places[self.numbers] = np.arange(len(self.numbers))
        return places

    def shares_with(self, other: View) -> bool:
        """Return whether two views have a machine in common."""
        if self.numbers is None or other.numbers is None:
            return False
        return bool((other._places[self.numbers] >= 0).any())

    def to_whole(self, allocation: Any) -> Any:
        """Return an allocation of this view as one of the whole cluster."""
        if self.numbers is None:
            return allocation
        return Allocation(self.numbers[list(allocation.machines)], allocation.amounts, allocation.style)

    def part_of(self, allocation: Allocation) -> Allocation | None:
        """Return the part of an allocation of the whole cluster in this view, or None if it is empty."""
        places = self._places[list(allocation.machines)]
        here = places >= 0
        return Allocation(places[here], allocation.amounts[here], allocation.style) if here.any() else None


@dataclass(frozen=True)
class Partitions(Cluster[Any, Any]):
    """A cluster with partitions: the whole cluster, and a view of it for each partition.

    As a cluster, it is the whole of all nodes or machines; a run schedules each partition by itself, as the
    page of the simulation semantics says.

    Parameters
    ----------
    parts : sequence of Partition
        The partitions, at least one, with unique names: all with `nodes`, or none.
    machines : Machines, optional
        The machines; by default each partition has homogeneous nodes of its own.
    column : str
        Column of a workload, one of `COLUMNS`, with the partitions of its jobs; the label of a value may list
        several names, separated by commas. Default: ``"partition"``.
    closed : mapping of str to str
        States of partitions in which no job starts, by name, for messages. Default: none.
    notes : mapping of str to int
        Values of a file of partitions that could not be used, and how often. Default: none.

    Raises
    ------
    UsageError
        A partition has no nodes or machines, a name occurs twice, or a machine is unknown.

    Examples
    --------
    >>> cluster = Partitions([Partition("cpu", nodes=4), Partition("gpu", nodes=2)])
    >>> cluster
    Partitions(cpu: Nodes(count=4), gpu: Nodes(count=2))
    >>> columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [4, 1], "partition": [0, 1]}
    >>> w = Workload(columns, labels={"partition": ("cpu", "gpu,cpu")})
    >>> cluster.admitted(w).tolist()
    [[True, True], [False, True]]
    """

    parts: Sequence[Partition]
    machines: Machines | None = None
    column: str = "partition"
    closed: Mapping[str, str] = field(default_factory=dict, repr=False)
    notes: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)
    whole: Nodes | Machines = field(init=False, repr=False)
    views: tuple[View, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts or not all(isinstance(part, Partition) for part in parts):
            raise UsageError(f"partitions need a list of Partition, at least one, found {self.parts!r}")
        twice = [name for name, count in Counter(part.name for part in parts).items() if count > 1]
        if twice:
            raise UsageError(f"partition {twice[0]!r} is defined twice")
        if sum(part.default for part in parts) > 1:
            raise UsageError("only one partition may be the default")
        if self.column not in COLUMNS:
            raise UsageError(
                f"the column of partitions needs one of {', '.join(COLUMNS)}, found {self.column!r}"
            )
        views = tuple(_view(part, self.machines) for part in parts)
        whole = self.machines or Nodes(sum(part.nodes or 0 for part in parts))
        self.__dict__.update(parts=parts, views=views, whole=whole)

    def __repr__(self) -> str:
        each = zip(self.parts, self.views, strict=True)
        return f"Partitions({', '.join(f'{part.name}: {view.cluster!r}' for part, view in each)})"

    def _repr_html_(self) -> str:
        """Return the partitions with their limits as a table, for notebooks."""
        return str(shown().partitions_html(self))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the partitions."""
        return tuple(part.name for part in self.parts)

    @property
    def definition(self) -> str:
        """All partitions with their limits, and the column that names them, as text."""
        return f"{self.column}: {self.parts!r}"

    @property
    def _default(self) -> Partition | None:
        return next((part for part in self.parts if part.default), None)

    @property
    def default_times(self) -> dict[str, int]:
        """Requested time [s] of jobs without one, by the partitions that have such a time or a limit.

        With the empty name for jobs without a partition, if one is the default.

        Examples
        --------
        >>> short = Partition("short", nodes=4, max_time=3600, default_time=600, default=True)
        >>> Partitions([short, Partition("long", nodes=4, max_time=86400)]).default_times
        {'short': 600, 'long': 86400, '': 600}
        """
        times = {part.name: part.default_time or part.max_time for part in self.parts}
        times |= {} if (default := self._default) is None else {"": times[default.name]}
        return {name: seconds for name, seconds in times.items() if seconds is not None}

    @property
    def billing(self) -> dict[str, Mapping[str, float]]:
        """Weights of resources in the billing of jobs, by the partitions that have any."""
        return {part.name: part.billing for part in self.parts if part.billing}

    @property
    def is_whole(self) -> bool:
        """Whether there is only one partition, which consists of the whole cluster."""
        numbers = self.views[0].numbers
        alone = len(self.parts) == 1 and self.parts[0].order is None and not self.parts[0].in_use
        return alone and (numbers is None or len(numbers) == self.views[0].total)

    # --- the jobs of each partition --------------------------------------------------------------------

    def admitted(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs each partition admits, bool, shape (partitions, jobs).

        Raises
        ------
        ScheduleError
            A job names an unknown partition, or none although no partition is the default.
        """
        named = self._named(workload)
        each = zip(named, self.parts, self.views, strict=True)
        return np.array(
            [jobs & part.admits(workload) & ~view.cluster.misfits(workload) for jobs, part, view in each]
        )

    def reasons(self, workload: Workload) -> NDArray[Any]:
        """Return why no partition admits a job, text, shape (jobs,); empty if one does.

        Of several partitions in which a job may run, the first one that it exceeds is named.

        Examples
        --------
        >>> parts = Partitions([Partition("short", nodes=4, max_time=60, default=True)])
        >>> columns = {"submit_time": [0, 0, 0], "run_time": [9, 90, 9], "nodes": [1, 1, 5]}
        >>> parts.reasons(Workload(columns)).tolist()
        ['', "exceeds max_time of partition 'short'", "exceeds nodes of partition 'short'"]
        """
        missing = self.missing(workload)
        here = missing == ""
        there = np.asarray(here.nonzero()[0])
        reasons = missing.copy()
        reasons[there] = self._reasons(workload.select(there))
        return reasons

    def _reasons(self, workload: Workload) -> NDArray[Any]:
        """Return the reasons of jobs of partitions that exist."""
        reasons = np.full(len(workload), MAY_NOT_RUN, dtype=object)
        for jobs, part, view in zip(self._named(workload), self.parts, self.views, strict=True):
            within = "nodes" if part.machines is None else "machines"
            size = f"{within} or in_use" if part.in_use else within
            jobs = jobs & (reasons == MAY_NOT_RUN) & part.allows(workload)
            for limit, beyond in [*part.beyond(workload), (size, view.cluster.misfits(workload))]:
                reasons[jobs & beyond] = f"exceeds {limit} of partition {part.name!r}"
                jobs &= ~beyond
        reasons[self.admitted(workload).any(axis=0)] = ""
        return reasons

    def missing(self, workload: Workload) -> NDArray[Any]:
        """Return why jobs are of no partition, text, shape (jobs,); empty if they name one that exists."""
        values, value_of = np.unique(workload.column(self.column), return_inverse=True)
        texts = [workload.label(self.column, value) if value >= 0 else "" for value in values.tolist()]
        reasons = np.array([*(self._missing(text) for text in texts), ""], dtype=object)[:-1]
        return reasons[value_of]

    def _missing(self, text: str) -> str:
        if self._positions(text):
            return ""
        names = [name.strip() for name in text.split(",")]
        state = next((self.closed[name] for name in names if name in self.closed), None)
        if state is not None:
            return f"may not run: partition {text!r} is {state}"
        if not text:
            return "may not run: no partition named"
        close = close_words(names[0], self.names)
        return f"may not run: unknown partition {text!r}" + f"; nearest: {', '.join(close)}" * bool(close)

    def partly_unknown(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs name partitions that do not exist beside others, bool, shape (jobs,)."""
        values, value_of = np.unique(workload.column(self.column), return_inverse=True)
        texts = [workload.label(self.column, value) if value >= 0 else "" for value in values.tolist()]
        return np.array(
            [0 < len(self._positions(text)) < len(text.split(",")) for text in texts], dtype=bool
        )[value_of]

    def _named(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs name each partition, bool, shape (partitions, jobs)."""
        if unknown := self.unknown(workload):
            raise ScheduleError(unknown[1])
        values, value_of = np.unique(workload.column(self.column), return_inverse=True)
        named = np.zeros((len(self.parts), len(values)), dtype=np.bool_)
        for place, value in enumerate(values.tolist()):
            named[self._positions(workload.label(self.column, value) if value >= 0 else ""), place] = True
        return named[:, value_of]

    def unknown(self, workload: Workload) -> tuple[int, str] | None:
        """Return the first job of an unknown partition, or of none without a default: its row, and a message.

        Returns
        -------
        (int, str) or None
            None if all jobs name a partition that exists.
        """
        values, rows = np.unique(workload.column(self.column), return_index=True)
        for row, value in sorted(zip(rows.tolist(), values.tolist(), strict=True)):
            text = workload.label(self.column, value) if value >= 0 else ""
            if self._positions(text):
                continue
            name = text.split(",")[0].strip()
            close = close_words(name, self.names)
            found = f"partition {name!r}" if value >= 0 else "none"
            found += f", which is {self.closed[name]}" if name in self.closed else ""
            found += f"; nearest: {', '.join(close)}" * bool(close)
            job = workload.label("id", int(workload.column("id")[row]))
            return row, f"job {job} needs a partition: {', '.join(self.names)}; found {found}"
        return None

    def _positions(self, text: str) -> list[int]:
        """Return the numbers of the partitions in a text that exist."""
        if not text and self._default is not None:
            return [self.parts.index(self._default)]
        numbers = {part.name: number for number, part in enumerate(self.parts)}
        return [numbers[name] for name in map(str.strip, text.split(",")) if name in numbers]

    def with_rules(self, workload: Workload) -> Workload:
        """Return a workload in which jobs have whole machines where the rules of their partitions say so.

        Jobs of partitions with rules that are not simulated are counted in the notes, and so are jobs that
        may also run in a partition that shares its machines, and share them everywhere.

        Examples
        --------
        >>> from hpcsimkit import Machines
        >>> nodes = Machines.of(2, cpus=8)
        >>> parts = Partitions([Partition("a"), Partition("b", exclusive=True)], nodes)
        >>> columns = {"submit_time": [0, 0], "run_time": [9, 9], "nodes": [1, 1], "partition": [0, 1]}
        >>> w = Workload({**columns, "cpus": [1, 1]}, resources=("cpus",), labels={"partition": ("a", "b")})
        >>> parts.with_rules(w).column("exclusive").tolist()
        [-1, 1]
        """
        notes = {**workload.notes}
        named = self._named(workload) if any(part.exclusive or part.shared for part in self.parts) else None
        if named is None:
            return workload
        for part, jobs in zip(self.parts, named, strict=True):
            count = int(np.count_nonzero(jobs))
            if part.shared and count:
                nearest = NEAREST.get(part.shared.partition("=")[0], "whole machines")
                notes[f"{part.shared} of partition {part.name!r} not simulated; nearest: {nearest}"] = count
        alone = np.array([part.exclusive for part in self.parts], dtype=bool)
        somewhere = named[alone].any(axis=0)
        everywhere = somewhere & ~named[~alone].any(axis=0)
        if self.machines is None or not workload.resources or not somewhere.any():
            return replace(workload, notes=notes)
        if (somewhere & ~everywhere).any():
            text = "whole machines in some of their partitions only: shared in all"
            notes[text] = int(np.count_nonzero(somewhere & ~everywhere))
        exclusive = np.where(everywhere, 1, workload.column("exclusive"))
        return replace(workload, columns={**workload.columns, "exclusive": exclusive}, notes=notes)

    def misfits(self, workload: Workload) -> NDArray[np.bool_]:
        """Return which jobs no partition admits, bool, shape (jobs,)."""
        return np.asarray(~self.admitted(workload).any(axis=0), dtype=np.bool_)

    # --- the whole cluster -----------------------------------------------------------------------------

    @property
    def capacity(self) -> Any:
        """The capacity of the empty cluster."""
        return self.whole.capacity

    @property
    def size(self) -> int:
        """The size of the whole cluster."""
        return self.whole.size

    @property
    def unit(self) -> str:
        """The unit of the size."""
        return self.whole.unit

    def place(self, job: Job, level: Any) -> Any:
        """Return an allocation on the whole cluster."""
        return self.whole.place(job, level)

    def holds(self, job: Job, allocation: Any, level: Any) -> bool:
        """Return whether the allocation meets the job's request and lies within the level."""
        return self.whole.holds(job, allocation, level)

    def common(self, level: Any, other: Any) -> Any:
        """Return the capacity that is available in both levels."""
        return self.whole.common(level, other)

    def main_amount(self, job: Job, allocation: Any) -> int:
        """Return the part of the size that an allocation occupies."""
        return self.whole.main_amount(job, allocation)

    def asked(self, job: Job) -> int:
        """Return the part of the size that a job requests."""
        return self.whole.asked(job)

    def share(self, level: Any) -> float:
        """Return a level as a fraction of the size."""
        return self.whole.share(level)

    def shortage(self, job: Job, level: Any) -> str:
        """Return why no partition admits a job, with its demand and the supply of the cluster, in words."""
        if self.whole.fits(job, self.capacity):
            return f"fits none of its partitions: {_demand(job)}"
        return self.whole.shortage(job, level)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _demand(job: Job) -> str:
    return f"it needs {job.nodes} nodes for {job.requested_time} s, as far as their sizes and limits go"


def _is_name(name: object) -> bool:
    return isinstance(name, str)


def _view(part: Partition, machines: Machines | None) -> View:
    """Return the view of a partition."""
    if machines is None:
        if part.nodes is None or part.machines is not None:
            raise UsageError(
                f"partition {part.name!r} needs a number of nodes, found no machines to choose from"
            )
        return View(Nodes(min(part.nodes, _nodes_in_use(part))))
    if part.nodes is not None:
        raise UsageError(f"partition {part.name!r} needs names of machines, not a number of nodes")
    numbers = _numbers(part, machines)
    own = machines.subset(numbers)
    if part.in_use:
        try:
            own = limited(own, part.in_use)  # type: ignore[arg-type]  # memory is in bytes now
        except UsageError as error:
            raise UsageError(f"partition {part.name!r}: {error}") from None
    return View(own, np.array(numbers, dtype=np.intp), len(machines))


def _nodes_in_use(part: Partition) -> int:
    """Return the limit of the nodes of a partition of homogeneous nodes; without one, all."""
    assert part.nodes is not None
    for name, most in part.in_use.items():
        if name != NODES or not most:
            raise UsageError(
                f"partition {part.name!r}: in_use of homogeneous nodes needs at least 1 of nodes, "
                f"found {most} of {name}"
            )
    return int(part.in_use.get(NODES, part.nodes))


def _numbers(part: Partition, machines: Machines) -> list[int]:
    """Return the numbers of the machines of a partition, ascending."""
    if part.machines is None:
        return list(range(len(machines)))
    known = {name: number for number, name in enumerate(machines.names)}
    unknown: Iterable[str] = [name for name in part.machines if name not in known]
    for name in unknown:
        raise UsageError(
            f"partition {part.name!r}: unknown machine {name!r}; there are {_some(machines.names)}"
        )
    if not part.machines:
        raise UsageError(f"partition {part.name!r} needs at least one machine, found none")
    return sorted({known[name] for name in part.machines})


def _some(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:3])} ... {names[-1]}"
