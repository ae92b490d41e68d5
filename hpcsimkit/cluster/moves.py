"""Partitions that are added, split, merged and removed, and the jobs that are thereby of other partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.jobs.workload import Workload

__all__ = ["MOVES", "Move", "moved"]

MOVES = ("added", "split", "merged", "removed")
"""What may happen to partitions, see :class:`Move`."""


class Move(NamedTuple):
    """What happens to a partition, and to the jobs.

    Parameters
    ----------
    partition : str
        Name of the partition.
    kind : {"added", "split", "merged", "removed"}
        ``added``: jobs of the other partition may start in this one as well. ``split``: jobs of the other
        one belong to this one instead. Both are so for those jobs only that this one admits, and it is made
        like the other one if it does not exist. ``removed``: all jobs of this partition belong to the other
        one, and this one is gone. ``merged``: the other one gets its machines or nodes as well.
    other : str
        Name of the other partition.
    """

    partition: str
    kind: str
    other: str

    @property
    def is_new(self) -> bool:
        """Whether the partition may be a new one."""
        return self.kind in ("added", "split")

    def on(self, cluster: Partitions) -> Partitions:
        """Return the partitions afterwards.

        Raises
        ------
        UsageError
            A partition is unknown, or both are the same.

        Examples
        --------
        >>> cluster = Partitions([Partition("cpu", nodes=4), Partition("debug", nodes=2)])
        >>> Move("debug", "merged", "cpu").on(cluster)
        Partitions(cpu: Nodes(count=6))
        >>> Move("short", "split", "cpu").on(cluster).names
        ('cpu', 'debug', 'short')
        """
        parts = {part.name: part for part in cluster.parts}
        for name in (self.other,) if self.is_new else (self.partition, self.other):
            if name not in parts:
                raise UsageError(f"unknown partition {name!r}{nearest(name, parts)}")
        if self.partition == self.other:
            raise UsageError(f"{self.partition}.{self.kind} needs another partition, found the same")
        if self.is_new:
            like = replace(parts[self.other], name=self.partition, default=False)
            return replace(
                cluster, parts=[*(parts | {self.partition: parts.get(self.partition, like)}).values()]
            )
        gone = parts.pop(self.partition)
        if self.kind == "merged":
            parts[self.other] = _with_nodes_of(parts[self.other], gone)
        if gone.default:
            parts[self.other] = replace(parts[self.other], default=True)
        return replace(cluster, parts=[*parts.values()])


def _with_nodes_of(part: Partition, other: Partition) -> Partition:
    """Return a partition with its nodes or machines and those of another one."""
    if part.nodes is not None:
        return replace(part, nodes=part.nodes + (other.nodes or 0))
    if part.machines is None or other.machines is None:
        return replace(part, machines=None)
    return replace(part, machines=[*dict.fromkeys([*part.machines, *other.machines])])


def moved(workload: Workload, before: Partitions, after: Partitions, moves: Sequence[Move]) -> Workload:
    """Return the jobs in their partitions after moves, one after the other.

    Jobs keep what they ask for, also what their former partition has given to them: a default time, and whole
    machines.

    Parameters
    ----------
    workload : Workload
        The jobs.
    before, after : Partitions
        Partitions before and after all changes. Which jobs a new partition admits depends on its limits then.
    moves : sequence of Move
        The moves.

    Raises
    ------
    UsageError
        A partition that got some jobs of another one does not exist afterwards.

    Examples
    --------
    >>> columns = {"submit_time": [0, 0], "run_time": [9, 90], "nodes": [1, 1], "partition": [0, 0]}
    >>> w = Workload(columns, labels={"partition": ("cpu",)})
    >>> before = Partitions([Partition("cpu", nodes=4)])
    >>> after = Partitions([Partition("cpu", nodes=3), Partition("short", nodes=1, max_time=60)])
    >>> new = moved(w, before, after, [Move("short", "split", "cpu")])
    >>> [new.label("partition", number) for number in new.partition.tolist()]
    ['short', 'cpu']
    """
    if not moves:
        return workload
    column = before.column
    values, text_of = np.unique(workload.column(column), return_inverse=True)
    default = next((part.name for part in before.parts if part.default), "")
    texts = [workload.label(column, value) if value >= 0 else default for value in values.tolist()]
    for move in moves:
        change = _change_of(move)
        new = [",".join(dict.fromkeys(change([each.strip() for each in text.split(",")]))) for text in texts]
        if not move.is_new:
            texts = new
            continue
        admitted = _admitted(move.partition, after, workload)
        text_of = np.where(admitted, text_of + len(texts), text_of)
        texts = [*texts, *new]
    names = [*dict.fromkeys(texts)]
    number_of = np.array([names.index(text) if text else -1 for text in texts], dtype=np.int64)
    labels = {**workload.labels, column: tuple(names)}
    columns = {**workload.columns, column: number_of[text_of]}
    return after.with_rules(replace(workload, columns=columns, labels=labels))


def _change_of(move: Move) -> Callable[[list[str]], list[str]]:
    """Return the function that changes the names of the partitions of a job."""
    partition, kind, other = move
    replaced = {
        "added": {other: [other, partition]},
        "split": {other: [partition]},
        "merged": {partition: [other]},
        "removed": {partition: [other]},
    }[kind]
    return lambda names: [new for name in names for new in replaced.get(name, [name])]


def _admitted(
    name: str, partitions: Partitions, workload: Workload
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which jobs a partition admits."""
    if name not in partitions.names:
        raise UsageError(f"partition {name!r} gets jobs, and is merged or removed after it")
    place = partitions.names.index(name)
    fits = ~partitions.views[place].cluster.misfits(workload)
    return np.asarray(partitions.parts[place].admits(workload) & fits, dtype=np.bool_)
