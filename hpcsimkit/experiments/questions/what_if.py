"""What if? The same jobs on a cluster and on a changed one, with the differences of their waits by group."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Cluster, Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.moves import MOVES, Move, moved
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.cluster.scontrol import expanded
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError, WorkloadError, nearest
from hpcsimkit.experiments.comparison.case import Asked, Case
from hpcsimkit.experiments.comparison.policy_run import RESULT
from hpcsimkit.experiments.console import grouped, number_text, plain_table
from hpcsimkit.experiments.questions.question import Answer, OfCases, ask
from hpcsimkit.io.units import memory_bytes
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.results.breakdown import By, classes_of
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import Mean, ratio_of_means
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.scheduler import SlurmScheduler
from hpcsimkit.workloads.readers.local_time import local_time

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Change", "ChangeQuestion", "WhatIf", "changed_cluster", "what_if"]

AnyCluster = Cluster[Any, Any]

LIMITS = ("in_use", "max_per_job", "max_per_node")
CHANGE = re.compile(
    rf"(?:(?P<partition>[^=]+?)\.)?(?P<key>(?:(?:{'|'.join(LIMITS)})\.)?\w+)"
    r"\s*(?P<sign>[-+]?)=\s*(?P<value>.+)"
)
SLURM = "slurm"
OF_SLURM = re.compile(rf"{SLURM}\.(?P<key>[^=]*?[^-+=\s])\s*=\s*(?P<value>.*)")
RESOURCES = ("nodes", "cpus", "gpus", "memory")
ALONE = re.compile(rf".*\.({'|'.join(MOVES)})\s*=?")
TIME = re.compile(r"(\d{1,9})([smhdw]?)")
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
WEEK = SECONDS["w"]

TIMES = ("max_time", "default_time")
NUMBERS = ("nodes", "max_nodes", "priority")
NAMES = ("order", "policy", *MOVES)
KEYS = (*NUMBERS, *TIMES, *NAMES, "machines")
EXAMPLES = (*KEYS, *(f"{limit}.gpus" for limit in LIMITS))

HEADINGS = ("mean wait", "jobs", "before [s]", "after [s]", "difference [s]", "95 % interval [s]")
WAYS: tuple[By, ...] = ("partition", "qos", "group", "user")
TOP = 10


class Change(NamedTuple):
    """A change of a cluster or of the policy.

    Parameters
    ----------
    partition : str
        Name of the partition; empty for a cluster without partitions, and for the policy; ``"slurm"`` for a
        value of Slurm's configuration.
    key : str
        Parameter to change: one of `KEYS`, or one of `LIMITS` with a resource, such as ``in_use.gpus``; of
        Slurm's configuration, its name there.
    sign : {"", "+", "-"}
        Whether the value replaces the present one, is added to it, or is subtracted from it.
    value : int or str
        Number, time [s], memory [bytes], list of machines such as ``n[1-4],big``, or name of an order, of a
        policy, or of another partition, for one of `MOVES`; see :class:`~hpcsimkit.cluster.moves.Move`.
    """

    partition: str
    key: str
    sign: str
    value: int | str

    @classmethod
    def of(cls, text: str) -> Change:
        """Read a change.

        Raises
        ------
        UsageError
            The text is no change.

        Examples
        --------
        >>> Change.of("gpu.nodes+=20"), Change.of("long.max_time=2d").value
        (Change(partition='gpu', key='nodes', sign='+', value=20), 172800)
        >>> Change.of("gpu.in_use.memory=1 TB")
        Change(partition='gpu', key='in_use.memory', sign='', value=1000000000000)
        >>> Change.of("debug.merged=cpu").move
        Move(partition='debug', kind='merged', other='cpu')
        >>> Change.of("gpu.node=3")
        Traceback (most recent call last):
        ...
        hpcsimkit.errors.UsageError: 'gpu.node=3': unknown key 'node'; nearest: nodes, order, max_nodes
        """
        of_slurm = OF_SLURM.fullmatch(text.strip())
        if of_slurm is not None and of_slurm["key"].rpartition(".")[2] not in (*KEYS, *RESOURCES):
            return cls(SLURM, of_slurm["key"], "", of_slurm["value"])
        found = CHANGE.fullmatch(text.strip())
        if found is None:
            if (alone := ALONE.fullmatch(text.strip())) is not None:
                raise UsageError(f"{text!r}: {alone[1]}=PARTITION is needed, found none")
            raise UsageError(f"a change such as gpu.nodes+=20 or long.max_time=2d is needed, found {text!r}")
        partition, key, sign, value = (found[name] or "" for name in ("partition", "key", "sign", "value"))
        if key not in KEYS and "." not in key:
            raise UsageError(f"{text!r}: unknown key {key!r}{nearest(key, EXAMPLES)}")
        if key == "machines":
            if not partition:
                raise UsageError(f"{text!r}: PARTITION.machines is needed")
            return cls(partition, key, sign, value.strip())
        if key in NAMES:
            return cls._named(text, partition, key, sign, value.strip())
        try:
            return cls(partition, key, sign, _amount(key, value.strip()))
        except UsageError as error:
            raise UsageError(f"{text!r}: {error}") from None

    @classmethod
    def _named(cls, text: str, partition: str, key: str, sign: str, name: str) -> Change:
        """Return the change of an order, of the policy, or of the partitions."""
        if sign:
            raise UsageError(f"{text!r}: a name after {key}= is needed, found {sign}=")
        if bool(partition) == (key == "policy"):
            needed = "policy=NAME; a partition has an order" if partition else f"PARTITION.{key}=NAME"
            raise UsageError(f"{text!r}: {needed} is needed")
        return cls(partition, key, sign, name)

    @property
    def of_slurm(self) -> bool:
        """Whether a value of Slurm's configuration is changed, not one of a partition of that name."""
        return self.partition == SLURM and self.key not in KEYS and self.key.partition(".")[0] not in LIMITS

    @property
    def move(self) -> Move | None:
        """What happens to the partition and its jobs; None for another change."""
        return Move(self.partition, self.key, str(self.value)) if self.key in MOVES else None

    def applied(self, present: int | None) -> int | str:
        """Return the new value."""
        if isinstance(self.value, str):
            return self.value
        if self.sign and present is None:
            raise UsageError(f"{self.partition}.{self.key} is unlimited: {self.sign}= needs a present value")
        return self.value if not self.sign else (present or 0) + int(f"{self.sign}1") * self.value


def _amount(key: str, text: str) -> int:
    """Return a number, a time [s], or an amount of memory [bytes]."""
    if key.endswith(".memory"):
        return memory_bytes(text)
    value = TIME.fullmatch(text)
    if value is None or (value[2] and key not in TIMES):
        needed = "a time such as 36h or 2d" if key in TIMES else "a whole number"
        raise UsageError(f"{needed} is needed, found {text!r}")
    return int(value[1]) * SECONDS[value[2]]


def changed_cluster(cluster: AnyCluster, changes: Sequence[Change]) -> AnyCluster:
    """Return a cluster with changes, one after the other; a change of the policy leaves it as it is.

    Additional machines of a partition equal its last one; as many of its last machines are removed, from all
    partitions that share them. With the largest time of a partition, its default time is lowered. Partitions
    are added, split, merged and removed as :class:`~hpcsimkit.cluster.moves.Move` says.

    Raises
    ------
    UsageError
        A partition is unknown, or what is left is no cluster.

    Examples
    --------
    >>> cluster = Partitions([Partition("cpu", nodes=4), Partition("gpu", nodes=2)])
    >>> changed_cluster(cluster, [Change.of("gpu.nodes+=20"), Change.of("cpu.nodes=3")])
    Partitions(cpu: Nodes(count=3), gpu: Nodes(count=22))
    """
    for change in changes:
        cluster = cluster if change.key == "policy" or change.of_slurm else _changed(cluster, change)
    return cluster


def _changed(cluster: AnyCluster, change: Change) -> AnyCluster:
    if not isinstance(cluster, Partitions):
        if change.partition or change.key != "nodes":
            raise UsageError(
                f"{change.key} of a partition needs --partitions FILE or --slurm FOLDER; without, change "
                "nodes or policy"
            )
        if isinstance(cluster, Machines):
            return _resized(cluster, range(len(cluster)), change)
        return Nodes(int(change.applied(cluster.size)))
    if (move := change.move) is not None:
        return move.on(cluster)
    names = cluster.names
    if change.partition not in names:
        raise UsageError(f"unknown partition {change.partition!r}{nearest(change.partition, names)}")
    place = names.index(change.partition)
    if change.key == "nodes" and cluster.machines is not None:
        return _with_machines(cluster, place, change)
    part = cluster.parts[place]
    limits, _, name = change.key.rpartition(".")
    present = getattr(part, limits) if limits else vars(part)
    value: Any
    if name == "machines":
        value = _machines(change, getattr(cluster.views[place].cluster, "names", ()))
    else:
        value = change.applied(present.get(name))
    changes = {limits: {**present, name: value}} if limits else {name: value}
    if name == "max_time" and part.default_time is not None:
        changes["default_time"] = min(part.default_time, value)
    new = replace(part, **changes)
    return replace(cluster, parts=[new if each is part else each for each in cluster.parts])


def _machines(change: Change, present: Sequence[str]) -> list[str]:
    """Return the names of the machines of a partition."""
    names = expanded(str(change.value))
    if change.sign != "-":
        return [*dict.fromkeys([*(present if change.sign else ()), *names])]
    if missing := [name for name in names if name not in present]:
        raise UsageError(f"partition {change.partition!r} has no machine {missing[0]!r}")
    return [name for name in present if name not in names]


def _resized(machines: Machines, numbers: Sequence[int], change: Change) -> Machines:
    """Return machines of which those with some numbers are more or fewer; the new ones are at the end."""
    more = int(change.applied(len(numbers))) - len(numbers)
    if more >= 0:
        like = machines.subset([numbers[-1]])
        name = f"{change.partition or 'node'}-new"
        amounts = [like.capacity[0].tolist()] * more
        new = Machines(
            [f"{name}{n}" for n in range(1, more + 1)], like.resources, amounts, [like.features[0]] * more
        )
        return Machines.joined([machines, new]) if more else machines
    if -more >= len(numbers):
        raise UsageError(f"{change.partition or 'the cluster'} needs at least one machine, found none left")
    gone = {*numbers[more:]}
    return machines.subset([number for number in range(len(machines)) if number not in gone])


def _with_machines(cluster: Partitions, place: int, change: Change) -> Partitions:
    """Return partitions with more or fewer machines in one of them."""
    assert cluster.machines is not None
    numbers = cluster.views[place].numbers
    assert numbers is not None
    machines = _resized(cluster.machines, numbers.tolist(), change)
    there, before = {*machines.names}, {*cluster.machines.names}
    new = [name for name in machines.names if name not in before]

    def resized(part: Partition) -> Partition:
        if part.machines is None:
            return part
        kept = [name for name in part.machines if name in there]
        return replace(part, machines=kept + (new if part is cluster.parts[place] else []))

    return replace(cluster, parts=[resized(part) for part in cluster.parts], machines=machines)


@dataclass(frozen=True, eq=False, repr=False)
class WhatIf(Answer):
    """Differences of the waits of the same jobs between two runs.

    Parameters
    ----------
    before, after : Result
        Results of the runs on the cluster and on the changed one.
    rows_before, rows_after : array of int, shape (jobs of the run,)
        Number of each job of a run in the log. Jobs of only one run are not compared.
    jobs : int
        Number of jobs of the log.
    heading : str
        Title of the picture. Default: none.
    begin : int, optional
        Time of the first compared submission [s of the log's clock]; by default all jobs are compared.
    """

    stem = "what-if"
    names = ("what-if",)
    measured = ("mean_wait_before", "mean_wait_after", "mean_wait_difference")

    before: Result
    after: Result
    rows_before: NDArray[np.intp]
    rows_after: NDArray[np.intp]
    jobs: int
    heading: str = ""
    begin: int | None = None

    @cached_property
    def _both(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of the compared jobs in both runs."""
        first, second = (
            rows[result.finished & (result.submit_time >= (self.begin or 0))]
            for rows, result in ((self.rows_before, self.before), (self.rows_after, self.after))
        )
        common = np.intersect1d(first, second)
        return np.searchsorted(self.rows_before, common), np.searchsorted(self.rows_after, common)

    @cached_property
    def table(self) -> pandas.DataFrame:
        """Mean waits by group, a row for each.

        Columns: ``by, group, jobs``, ``before, after`` (mean waits [s]), ``difference`` of the means [s], and
        the ends ``low, high`` of its 95 % confidence interval, for which whole weeks of submission are
        resampled; NaN if the group has jobs of one week only. Groups are all jobs, and the partitions (in
        which jobs started before the change), QOS, accounts and users with the most work.
        """
        import pandas

        rows = list(self._rows())
        names = ["by", "group", "jobs", "before", "after", "difference", "low", "high"]
        return pandas.DataFrame(rows, columns=names)

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``what-if``."""
        return {"what-if": self.table}

    @property
    def measures(self) -> Mapping[str, float]:
        """Mean waits of all jobs before and after the change, and their difference [s]."""
        row = self.table.iloc[0]
        return dict(zip(self.measured, map(float, (row.before, row.after, row.difference)), strict=True))

    def figure(self) -> Figure:
        """Return a figure of the waiting jobs and the busy share over time, and of the differences."""
        from hpcsimkit.reports.what_if import draw_what_if

        return draw_what_if({"before": self.before, "after": self.after}, self.table, self.heading)

    def lines(self) -> Iterator[str]:
        """Yield the table, and how many jobs are not compared."""
        yield plain_table(HEADINGS, map(_cells, self.table.itertuples(index=False)))
        before, after = self.rows_before, self.rows_after
        for count, when in (
            (len(np.setdiff1d(before, after)), "only before the change"),
            (len(np.setdiff1d(after, before)), "only after the change"),
            (self.jobs - len(np.union1d(before, after)), "neither before nor after the change"),
        ):
            if count:
                yield f"{grouped(count)} job{'s' * (count != 1)} may run {when}: not compared"

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        here, there = self._both
        before, after = self.before.wait_time[here], self.after.wait_time[there]
        workload = self.before.workload
        week = ((workload.submit_time + local_time(workload).offset) // WEEK)[here]
        yield ("all", "all jobs", *_compared(before, after, week))
        for by in WAYS:
            number, label = classes_of(self.before, by, TOP)
            number = number[here]
            known = np.unique(number)
            for each in known if len(known) > 1 else ():
                chosen = number == each
                yield (by, label(int(each)), *_compared(before[chosen], after[chosen], week[chosen]))


def _compared(
    before: NDArray[Any], after: NDArray[Any], week: NDArray[Any]
) -> tuple[int, float, float, float, float, float]:
    """Return the number of jobs, both means, their difference and its interval by blocks of weeks."""
    _, block = np.unique(week, return_inverse=True)
    difference = np.bincount(block, weights=after - before).astype(np.float64)
    found: Mean = ratio_of_means(difference, np.bincount(block).astype(np.float64))
    return len(before), float(before.mean()), float(after.mean()), found.mean, found.low, found.high


def _cells(row: Any) -> list[str]:
    """Return a row of the table as text."""
    interval = "-" if row.low != row.low else f"{number_text(row.low)} to {number_text(row.high)}"
    name = row.group if row.by == "all" else f"{row.by} {row.group}"
    return [name, grouped(row.jobs), *map(number_text, (row.before, row.after, row.difference)), interval]


@dataclass(frozen=True, kw_only=True)
class ChangeQuestion(OfCases):
    """How do the waits of the same jobs differ on a changed cluster?

    Parameters
    ----------
    case : Case
        The case.
    changes : sequence of str
        Changes; see :meth:`Change.of`.
    """

    answers = WhatIf
    has_trace = False

    changes: Sequence[str]

    def __post_init__(self) -> None:
        if not self.changes:
            raise UsageError("at least one change is needed, such as gpu.nodes+=20")
        self.changed  # noqa: B018 - an invalid change is an error here

    @property
    def own(self) -> dict[str, Any]:
        """Settings of the question, in plain values."""
        return {"set": list(self.changes)}

    @cached_property
    def changed(self) -> Case:
        """The case after the changes."""
        return changed_case(self.case, self.changes)

    @property
    def cases(self) -> Mapping[str, Case]:
        """Cases before and after the change, each with the jobs that may run on its cluster."""
        return {
            "before": replace(self.case, jobs=self.case.jobs.select(_fitting(self.case))),
            "after": replace(self.changed, jobs=self.changed.jobs.select(_fitting(self.changed))),
        }

    def look(self, case: Case, folder: Path) -> None:
        """Simulate, and write the result."""
        case.run().save(folder / RESULT)

    def answer(self, store: Store) -> WhatIf:
        """Return the differences."""
        before, after = (Result.load(store.folder(task) / RESULT) for task in self.tasks)
        rows = [np.flatnonzero(_fitting(case)) for case in (self.case, self.changed)]
        heading = f"{self.case.name} on {self.case.jobs.name}: {', '.join(self.changes)}"
        return WhatIf(before, after, rows[0], rows[1], len(self.case.jobs), heading, self.case.begin)


def _fitting(case: Case) -> NDArray[np.bool_]:
    """Return whether each job may run on the cluster of a case.

    Raises
    ------
    WorkloadError
        No job may.
    """
    fitting: NDArray[np.bool_] = ~case.cluster.misfits(case.jobs)
    if not fitting.any():
        raise WorkloadError(f"{case.jobs.name}: no job may run on {case.cluster!r}")
    return fitting


def what_if(
    workload: Asked | Case,
    changes: Sequence[str],
    policy: str | Policy = "fcfs+easy",
    cluster: AnyCluster | int | None = None,
    *,
    engine: Engine | None = None,
    **options: Any,
) -> WhatIf:
    """Compare a cluster with a changed one.

    Parameters
    ----------
    workload, policy, cluster, **options
        As in :meth:`~hpcsimkit.experiments.comparison.case.Case.of`, or a case.
    changes : sequence of str
        Changes of the cluster, of the orders of partitions, or of the policy, one after the other; see
        :meth:`Change.of`.
    engine : Engine, optional
        Engine that executes both simulations; by default this process.

    Raises
    ------
    UsageError
        A name, an option or a change is invalid.
    WorkloadError
        No job may run on one of the clusters.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> columns = {"submit_time": [0, 0], "run_time": [100, 10], "nodes": [1, 1]}
    >>> jobs = Workload(columns, machine_size=1)
    >>> what_if(jobs, ["nodes+=1"]).table[["before", "after"]].values.tolist()
    [[50.0, 0.0]]
    """
    case = Case.of(workload, policy, cluster, every=True, **options)
    found: WhatIf = ask(ChangeQuestion(case=case, changes=changes), engine)
    return found


def changed_case(case: Case, changes: Sequence[str]) -> Case:
    """Return the case after changes.

    Raises
    ------
    UsageError
        A change is invalid.
    """
    asked = [Change.of(text) for text in changes]
    changed, jobs = changed_cluster(case.cluster, asked), case.jobs
    moves = [move for change in asked if (move := change.move) is not None]
    if isinstance(changed, Partitions):
        assert isinstance(case.cluster, Partitions)
        changed = case.source.with_orders(changed)
        jobs = moved(jobs, case.cluster, changed, moves)
    after = replace(case, jobs=jobs, options=replace(case.setup, cluster=changed))
    after = replace(after, given=_configured(case, asked, moves) or case.given)
    names = [str(change.value) for change in asked if change.key == "policy"]
    if not names:
        return after
    case.source.policy_named(names[-1])  # an unknown name is an error here
    return replace(after, name=names[-1], given=None)


def _configured(case: Case, changes: Sequence[Change], moves: Sequence[Move]) -> Policy | None:
    """Return the policy of a changed configuration of Slurm; None if it is not changed."""
    of_slurm = {change.key: str(change.value) for change in changes if change.of_slurm}
    new = {move.partition: move.other for move in moves if move.is_new}
    policy = case.policy
    profile = policy.profile if isinstance(policy, SlurmScheduler) else None
    if isinstance(profile, Slurm):
        return profile.changed(of_slurm, new).policy if of_slurm or new else None
    if of_slurm:
        raise UsageError(f"a change of slurm needs the policy as-configured (--slurm), found {case.name}")
    return None
