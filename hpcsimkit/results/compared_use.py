"""What compared jobs ask for, and what is in use over time in the recorded and in the simulated schedule."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.jobs.timeline import Curve
from hpcsimkit.results.recorded_nodes import RecordedNodes
from hpcsimkit.results.validation import Validation

__all__ = ["ComparedUse"]

NEARLY_ALL = 0.95
"""Share of the jobs with machines on record from which on each machine is looked at."""

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ComparedUse:
    """What the jobs of a validation ask for and use, by totals of the nodes or machines that they share.

    Parameters
    ----------
    validation : Validation
        The comparison of the schedules.
    cluster : Cluster, optional
        The cluster of the simulation, whose partitions limit what may be in use; by default only the size of
        the cluster is known.
    """

    validation: Validation
    cluster: AnyCluster | None = None

    @cached_property
    def submit(self) -> Integers:
        """Submission times of the compared jobs [s]."""
        return self.validation.result.submit_time[self.validation.jobs]

    @cached_property
    def starts(self) -> dict[str, Integers]:
        """Recorded and simulated start times [s]."""
        return {
            "recorded": self.submit + self.validation.recorded.astype(np.int64),
            "simulated": self.submit + self.validation.simulated.astype(np.int64),
        }

    @cached_property
    def _recorded_nodes(self) -> RecordedNodes | None:
        """The machines of the compared jobs on record, if the log has any."""
        result, jobs = self.validation.result, self.validation.jobs
        if result.placements is None or "node_list" not in result.workload.columns:
            return None
        start, end = (np.full(len(jobs), -1) for _ in range(2))
        start[jobs] = self.starts["recorded"]
        end[jobs] = start[jobs] + (result.end_time - result.start_time)[jobs]
        return RecordedNodes(result.workload, result.placements.cluster, start, end, result.downtime)

    @cached_property
    def known_nodes(self) -> float:
        """Share of the compared jobs whose machines are on record."""
        nodes = self._recorded_nodes
        return 0.0 if nodes is None else float(nodes.known[self.validation.jobs].mean())

    @property
    def nodes(self) -> RecordedNodes | None:
        """The machines of the compared jobs on record, if they are known of nearly all."""
        return self._recorded_nodes if self.known_nodes >= NEARLY_ALL else None

    @cached_property
    def groups(self) -> list[tuple[Mask, list[int]]]:
        """Jobs of the partitions that share machines, and the amounts of the machines."""
        result, jobs = self.validation.result, self.validation.jobs
        cluster = self.cluster
        if not isinstance(cluster, Partitions) or result.started_in is None:
            machines = cluster if isinstance(cluster, Machines) and self.resources else None
            amounts = [result.size] if machines is None else _totals(machines, self.resources)
            return [(np.ones(len(self.submit), dtype=bool), amounts)]
        started_in = result.started_in[jobs]
        groups = []
        for places in _connected(cluster):
            names = [cluster.names[place] for place in places]
            if cluster.machines is None:
                amounts = [sum(cluster.views[place].cluster.size for place in places)]
            else:
                numbers = np.unique(np.concatenate([cluster.views[place].numbers for place in places]))
                part = cluster.machines.subset(numbers.tolist())
                amounts = _totals(part, self.resources) if self.resources else [part.size]
            groups.append((np.isin(started_in, names), amounts))
        return groups

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """Resources that are compared; none for homogeneous nodes."""
        result = self.validation.result
        if result.placements is None:
            return ()
        return tuple(
            name for name in result.workload.resources if name in result.placements.cluster.resources
        )

    @cached_property
    def asked(self) -> NDArray[np.float64]:
        """Total amounts that each job asks for, float64, shape (jobs, resources)."""
        result, jobs = self.validation.result, self.validation.jobs
        workload = result.workload
        if not self.resources:
            return result.amount[jobs, None].astype(float)
        factor = np.where(workload.column("spread") == 1, 1, workload.column("nodes"))
        return np.column_stack([workload.column(name) * factor.astype(float) for name in self.resources])[
            jobs
        ]

    def in_use(self, which: str, group: Mask, *, or_down: bool = False) -> list[Curve]:
        """Return the amount of each resource that the jobs of a group use over time, or that is down."""
        result, jobs = self.validation.result, self.validation.jobs
        start = self.starts[which][group]
        end = start + (result.end_time - result.start_time)[jobs][group]
        asked, down = self.asked[group], result.downtime
        if or_down and down is not None and len(self.groups) == 1:
            start, end = np.concatenate([start, down.start]), np.concatenate([end, down.end])
            asked = np.concatenate([asked, down.amounts[:, self._columns]])
        times = np.concatenate([start, end])
        return [Curve.of_changes(times, np.concatenate([amount, -amount])) for amount in asked.T]

    @property
    def _columns(self) -> list[int]:
        """Columns of the amounts of outages for the resources that are compared."""
        placements = self.validation.result.placements
        known = () if placements is None else placements.cluster.resources
        return [known.index(name) for name in self.resources] or [0]


def _totals(machines: Machines, resources: tuple[str, ...]) -> list[int]:
    there = dict(zip(machines.resources, machines.totals, strict=True))
    return [there[name] for name in resources]


def _connected(cluster: Partitions) -> list[list[int]]:
    """Return the numbers of the partitions, in groups that share machines directly or by others."""
    groups: list[list[int]] = []
    for place, view in enumerate(cluster.views):
        joined = [group for group in groups if any(view.shares_with(cluster.views[other]) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([*(other for group in joined for other in group), place])
    return groups
