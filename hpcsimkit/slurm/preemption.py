"""Preemption by QOS or partition: the running jobs that are stopped for one that lacks nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System
from hpcsimkit.slurm.plan import Places, Ticket

__all__ = ["victims"]

Mask = NDArray[np.bool_]


def victims(
    ticket: Ticket, places: Places, system: System, among: Mask, may_stop: Callable[[Job], bool]
) -> list[Job]:
    """Return the running jobs to stop so that a job fits; empty if it must wait.

    The job takes the first machines that suffice without the jobs that may be stopped. On each of them, these
    are stopped from the first one that started on, until there is room.

    Parameters
    ----------
    ticket : Ticket
        The job and its partition.
    places : Places
        The machines.
    system : System
        The state of the cluster.
    among : array of bool, shape (machines,)
        The machines that the job may use.
    may_stop : callable
        Whether a running job may be stopped for this one.
    """
    candidates = [job for job in system.running if may_stop(job)]
    given = {job.index: system.running.allocation(job) for job in candidates}
    level = _with(system.room_for(ticket.job), [*given.values()])
    allocation = places.first(ticket, level, among) if candidates else None
    if allocation is None:
        return []
    level = system.room_for(ticket.job)
    stopped: list[Job] = []
    by_start = sorted(candidates, key=lambda job: (system.start_time(job), job.index))
    for machine, amounts in zip(allocation.machines, allocation.amounts, strict=True):
        for job in by_start:
            if (level[machine] >= amounts).all():
                break
            if job not in stopped and machine in given[job.index].machines:
                stopped.append(job)
                level = level + given[job.index]
    return stopped


def _with(level: MachineLevel, allocations: list[Allocation]) -> MachineLevel:
    for allocation in allocations:
        level = level + allocation
    return level
