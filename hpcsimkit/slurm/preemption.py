"""Preemption by QOS or partition: the running jobs that are stopped for one that lacks nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.system import System
from hpcsimkit.slurm.plan import Places, Ticket

__all__ = ["victims"]

Mask = NDArray[np.bool_]
Candidates = list[tuple[Job, Allocation]]

REORDERINGS = 1
"""How often the candidates are put in another order (``preempt_reorder_count``)."""


def victims(
    ticket: Ticket, places: Places, system: System, sets: Iterable[Mask], candidates: Sequence[Job]
) -> list[Job]:
    """Return the running jobs to stop so that a job fits; empty if it must wait.

    The machines are tried set by set, each with those before it. Candidates are thought to be gone one after
    the other, until the job fits. Then they are put in another order, and all begins anew: the last one comes
    first, and those with more of the machines that were found follow it. In the end, those that are on the
    machines, and were needed, are stopped.

    Parameters
    ----------
    ticket : Ticket
        The job and its partition.
    places : Places
        The machines.
    system : System
        The state of the cluster.
    sets : iterable of array of bool, shape (machines,)
        The machines that the job may use, by weight.
    candidates : sequence of Job
        The running jobs that may be stopped, those to be stopped rather in front.
    """
    each = [(job, system.running.allocation(job)) for job in candidates]
    level, need = system.room_for(ticket.job), places.need(ticket).nodes
    machines: Mask = np.zeros(len(places.machines), dtype=np.bool_)
    for added in sets:
        machines = machines | added
        if machines.sum() >= need and (found := _needed(ticket, places, level, machines, each)):
            return found
    return []


def _needed(
    ticket: Ticket, places: Places, level: MachineLevel, machines: Mask, candidates: Candidates
) -> list[Job]:
    """Return those of the candidates, which are put in another order, without which a job fits."""
    passes = 0
    while True:
        last, found = _without_some(ticket, places, level, machines, candidates)
        if found is None:
            return []
        chosen, passes = {*found.machines}, passes + 1
        if passes > REORDERINGS + 1 or len(candidates) <= passes:
            return [job for job, given in candidates[: last + 1] if chosen & {*given.machines}]
        before = sorted(candidates[:last], key=lambda each: -len(chosen & {*each[1].machines}))
        candidates[: last + 1] = [candidates[last], *before]


def _without_some(
    ticket: Ticket, places: Places, level: MachineLevel, machines: Mask, candidates: Candidates
) -> tuple[int, Allocation | None]:
    """Return the candidate without which, and all before it, a job first fits, and where it does, if ever."""
    for place, (_, given) in enumerate(candidates):
        if machines[list(given.machines)].any():
            level = level + given
            found = places.first(ticket, level, machines)
            if found is not None:
                return place, found
    return len(candidates), None
