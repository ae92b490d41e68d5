"""Allocations of all jobs of a finished run to machines, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster

__all__ = ["Placements"]

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Placements:
    """Allocations as a table with one row for each job and machine.

    Parameters
    ----------
    cluster : Machines
        The machines.
    jobs : int
        Number of jobs of the workload.
    job, machine : array of int64, shape (parts,)
        Rows of the jobs, ascending, and numbers of the machines.
    amounts : array of int64, shape (parts, resources)
        Amount of each resource that the job occupied on the machine.
    events : array of int64, optional
        Starts (rows) and ends (complements of rows) in chronological order.

    Examples
    --------
    >>> cluster = Machines.of(2, cpus=4)
    >>> placements = Placements.of(cluster, [Allocation([1], [[3]]), None, Allocation([0, 1], [[4], [1]])])
    >>> placements.job.tolist(), placements.machine.tolist(), placements.totals.tolist()
    ([0, 2, 2], [1, 0, 1], [[3], [0], [5]])
    >>> placements.words()
    ['node2', '', 'node1 node2']
    """

    cluster: Machines
    jobs: int
    job: Integers
    machine: Integers
    amounts: Integers
    events: Integers | None = None

    @classmethod
    def of(
        cls,
        cluster: AnyCluster,
        allocations: Sequence[Allocation | None] | None,
        events: Sequence[int] | Integers = (),
    ) -> Placements | None:
        """Return the table of allocations, one per job (None: never ran); None with homogeneous nodes."""
        if allocations is None or not isinstance(cluster, Machines):
            return None
        # Without a tuple for each job, since these would cause many collections of garbage.
        rows = [row for row, allocation in enumerate(allocations) if allocation is not None]
        given = [allocation for allocation in allocations if allocation is not None]
        parts = [len(allocation.machines) for allocation in given]
        machines = [machine for allocation in given for machine in allocation.machines]
        amounts = [allocation.amounts for allocation in given]
        none = np.zeros((0, len(cluster.resources)), dtype=np.int64)
        return cls(
            cluster,
            len(allocations),
            job=np.repeat(np.array(rows, dtype=np.int64), parts),
            machine=np.array(machines, dtype=np.int64),
            amounts=np.concatenate([none, *amounts]),
            events=np.array(events, dtype=np.int64) if len(events) else None,
        )

    @cached_property
    def totals(self) -> Integers:
        """Total amount of each resource per job, int64, shape (jobs, resources)."""
        totals = np.zeros((self.jobs, self.amounts.shape[1]), dtype=np.int64)
        np.add.at(totals, self.job, self.amounts)
        return totals

    @cached_property
    def machine_count(self) -> Integers:
        """Number of machines of each job, int64, shape (jobs,)."""
        return np.bincount(self.job, minlength=self.jobs)

    def allocation(self, row: int) -> Allocation:
        """Return the allocation of a job by its row; it is empty if the job never ran."""
        first, end = np.searchsorted(self.job, [row, row + 1])
        return Allocation(self.machine[first:end].tolist(), self.amounts[first:end])

    def words(self) -> list[str]:
        """Return the names of each job's machines, joined by blanks."""
        names = np.array(self.cluster.names, dtype=object)[self.machine].tolist()
        ends = np.cumsum(self.machine_count).tolist()
        return [" ".join(names[begin:end]) for begin, end in pairwise([0, *ends])]
