"""Simulations on machines that the compiled simulator takes: their state, and their placements at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines as Cluster
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.request import Need
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.attempts import events_of_attempts
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies.backfill.backfilling import Reservations
from hpcsimkit.policies.backfill.conservative import Conservative
from hpcsimkit.policies.placing.placements import BestFit, FirstFit, WorstFit
from hpcsimkit.policies.portfolio.guarded import Remembered
from hpcsimkit.policies.predictions import Noisy
from hpcsimkit.results.placements import Placements

if TYPE_CHECKING:
    from hpcsimkit.compiled.machine_profile import MachineProfile
    from hpcsimkit.compiled.machines import Machines
    from hpcsimkit.compiled.needs import Levels

PLACEMENTS = (type(None), FirstFit, BestFit, WorstFit)
"""Classes of placements; their codes are those of :mod:`~hpcsimkit.compiled.placing`."""

MOST_PARTS, MOST_PLANNED_PARTS = 2**28, 2**25
"""Maximum number of parts of all allocations together, for which space is set aside.

With reservations, each part takes five times as much.
"""

Integers = NDArray[np.int64]


def obstacles(workload: Workload, cluster: Cluster, policy: Pipeline) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run a pipeline on machines, though on nodes."""
    needs, numbers = needs_of(workload, cluster)
    if any(need.quotas for need in needs):
        yield "it knows no constraints with counts"
    if most_parts(needs, numbers).sum() > (MOST_PLANNED_PARTS if _plans(policy) else MOST_PARTS):
        yield "its jobs may use too many machines"
    if _last_reserved_end(workload, policy) >= 2.0 ** (61 - len(workload).bit_length()):
        yield "its jobs take too long"


def allocations_of(begun: Begun, workload: Workload, cluster: Cluster) -> list[Allocation] | None:
    """Return the allocations of the running jobs of a begun run, or None if they do not fit.

    Mirrors ``resume``: those that are not given are the choice of the cluster.
    """
    free, found = cluster.capacity, list[Allocation]()
    for row in begun.started:
        job, allocation = workload.jobs[row], begun.allocations.get(row)
        if allocation is None:
            allocation = cluster.place(job, free)
        elif not cluster.holds(job, allocation, free):
            return None
        if allocation is None:
            return None
        found.append(allocation)
        free = free - allocation
    return found


def _plans(policy: Pipeline) -> bool:
    """Return whether there are reservations of several jobs."""
    return isinstance(policy.backfiller, Conservative | Reservations)


def _last_reserved_end(workload: Workload, policy: Pipeline) -> float:
    """Return an instant after all expected ends and, if all jobs have reservations, after their ends [s]."""
    if not len(workload):
        return 0.0
    longest = np.maximum(workload.requested_time, workload.run_time).astype(float)
    if isinstance(policy.estimates, Noisy):
        longest = np.maximum(longest, workload.run_time * (1 + policy.estimates.noise))
    elif isinstance(policy.estimates, Remembered):
        longest = np.maximum(longest, policy.estimates.estimates)
    planned = longest.sum() if _plans(policy) else TIME_LIMIT
    return float(workload.submit_time.max()) + workload.run_time.sum(dtype=float) + planned + TIME_LIMIT


def placement_code(policy: Pipeline) -> int:
    """Return the code of the placement of a pipeline."""
    from hpcsimkit.compiled import placing

    codes: dict[type, int] = {BestFit: placing.BEST_FIT, WorstFit: placing.WORST_FIT}
    return int(codes.get(type(policy.placement), placing.FIRST_FIT))


def machines_of(workload: Workload, cluster: Cluster, gone: int = 0) -> Machines:
    """Return the state of empty machines; see :func:`~hpcsimkit.compiled.machines.new_machines`."""
    from hpcsimkit.compiled.machines import new_machines

    needs, numbers = needs_of(workload, cluster)
    return new_machines(_levels(needs, cluster), numbers, int(most_parts(needs, numbers).sum()), gone)


def profile_of(
    workload: Workload, cluster: Cluster, machines: Machines, gone: int, tests: bool = False
) -> MachineProfile:
    """Return the profile of empty machines; `gone` as in :func:`machines_of`, and whether there are tests."""
    from hpcsimkit.compiled.machine_profile import new_machine_profile

    needs, numbers = needs_of(workload, cluster)
    most = most_parts(needs, numbers)
    parts, with_totals = [most, np.ones(gone, dtype=np.int64)], any(need.spread for need in needs)
    if not tests:
        return new_machine_profile(machines, np.concatenate(parts), with_totals)
    parts += [np.array([len(cluster) + 1]), most]
    return new_machine_profile(machines, np.concatenate(parts), with_totals, everything=len(most) + gone)


def needs_of(workload: Workload, cluster: Cluster) -> tuple[list[Need], Integers]:
    """Return the distinct needs of a workload, and the number of the need of each job among them."""
    distinct, numbers = np.unique(cluster.sizes_of(workload), return_inverse=True)
    return [cluster.needs.needs[number] for number in distinct.tolist()], numbers


def _levels(needs: Sequence[Need], cluster: Cluster) -> Levels:
    """Return the empty machines and all needs as arrays; the first mask is that without a constraint."""
    from hpcsimkit.compiled import needs as columns

    masks, number_of = [np.ones(len(cluster), dtype=np.uint8)], dict[bytes, int]()
    table = table_of_needs(needs, len(cluster.resources))
    for row, need in zip(table, needs, strict=True):
        mask = 0
        if need.allowed is not None:
            mask = number_of.setdefault(need.allowed.tobytes(), len(masks))
            if mask == len(masks):
                masks.append(need.allowed.astype(np.uint8))
        row[columns.MASK] = mask
    levels = np.zeros((5, *cluster.capacity.shape), dtype=np.int64)
    levels[columns.EMPTY] = levels[columns.NOW] = cluster.capacity
    return columns.Levels(levels, table, np.stack(masks), np.zeros(len(cluster.resources), dtype=np.int64))


def table_of_needs(needs: Sequence[Need], resources: int) -> Integers:
    """Return needs as rows, see :class:`~hpcsimkit.compiled.needs.Levels`; all without a mask."""
    from hpcsimkit.compiled import needs as columns

    table = np.zeros((len(needs), columns.AMOUNTS + resources), dtype=np.int64)
    for row, need in zip(table, needs, strict=True):
        row[columns.NODES], row[columns.AMOUNTS :] = need.nodes, need.amounts
        row[columns.SPREAD], row[columns.EXCLUSIVE] = need.spread, need.exclusive
        row[columns.BY_TOTALS] = need.by_totals
    return table


def most_parts(needs: Sequence[Need], numbers: Integers) -> Integers:
    """Return the maximum number of parts of the allocation of each job."""
    most = [
        min(len(need.shape.capacity), sum(need.amounts.tolist())) if need.spread else need.nodes
        for need in needs
    ]
    return np.array(most, dtype=np.int64)[numbers]


def placements_of(cluster: AnyCluster, machines: Machines, jobs: int) -> Placements:
    """Return the last allocations of a number of jobs at the end of a run; mirrors ``Placements.of``."""
    from hpcsimkit.compiled.machines import COUNT, EVENTS, FIRST

    first, count = machines.jobs[FIRST, :jobs], machines.jobs[COUNT, :jobs]
    return placements_in(cluster, machines.parts, first, count, machines.events[: machines.counters[EVENTS]])


def placements_of_attempts(
    cluster: AnyCluster, machines: Machines, stopped: Integers, places: Integers, last: Integers
) -> Placements:
    """Return the allocations of all attempts at the end of a run; mirrors ``attempts_of``.

    Parameters
    ----------
    cluster : Machines
        The cluster.
    machines : Machines
        Its state.
    stopped : array of int64, shape (stops,)
        Rows of the jobs of the attempts that were stopped.
    places : array of int64, shape (2, stops)
        First part and number of parts of each of these.
    last : array of int64
        Rows of the jobs that have ended.
    """
    from hpcsimkit.compiled.machines import COUNT, EVENTS, FIRST

    rows = np.concatenate([stopped, last])
    order = np.argsort(rows, kind="stable")
    first, count = (
        np.concatenate([places[place], machines.jobs[row, last]])[order]
        for place, row in enumerate((FIRST, COUNT))
    )
    events = events_of_attempts(machines.events[: machines.counters[EVENTS]], rows[order])
    return placements_in(cluster, machines.parts, first, count, events)


def placements_in(
    cluster: AnyCluster, all_parts: Integers, first: Integers, count: Integers, events: Integers
) -> Placements:
    """Return a table of allocations: from a list of parts, some from the first one on for each."""
    assert isinstance(cluster, Cluster)
    before = np.cumsum(count) - count
    parts = all_parts[np.arange(count.sum()) - np.repeat(before - first, count)]
    return Placements(
        cluster,
        len(count),
        job=np.repeat(np.arange(len(count)), count),
        machine=parts[:, 0],
        amounts=parts[:, 1:],
        events=events if len(events) else None,
    )
