"""Why jobs wait, in the words of ``squeue``: what a pass of the main loop notes for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import MachineLevel
from hpcsimkit.cluster.hostlists import hostlist_of
from hpcsimkit.jobs.job import Job
from hpcsimkit.slurm.plan import Places, Ticket

__all__ = [
    "ARRAY_LIMIT",
    "CLOSED",
    "NONE",
    "PRIORITY",
    "RESERVED",
    "RESOURCES",
    "UNAVAILABLE",
    "lack_of",
    "reasons_of",
]

Mask = NDArray[np.bool_]

NONE, PRIORITY, RESOURCES = "None", "Priority", "Resources"
CLOSED = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"

ARRAY_LIMIT = "JobArrayTaskLimit"
"""Reason of the tasks of an array that its limit holds."""

NOT_AVAILABLE = "ReqNodeNotAvail, "
AT_ONCE = 10
"""Time from the submission of a job within which Slurm makes it eligible if nothing holds it [s]."""

KEPT = (NOT_AVAILABLE, ARRAY_LIMIT)
"""Beginnings of the reasons that a job keeps behind the first one of its partition."""

UNAVAILABLE, RESERVED = f"{NOT_AVAILABLE}UnavailableNodes:", f"{NOT_AVAILABLE}May be reserved for other job"


def lack_of(
    ticket: Ticket,
    places: Places,
    open_machines: Mask,
    free: MachineLevel,
    shut: Mask | None,
    ready: Mask | None = None,
) -> str:
    """Return why a job that does not fit lacks nodes: the reasons above.

    Parameters
    ----------
    ticket : Ticket
        The job, in one of its partitions.
    places : Places
        The machines.
    open_machines : array of bool, shape (machines,)
        Whether each machine is open to the jobs of this partition.
    free : array of int64, shape (machines, resources)
        Free amounts now.
    shut : array of bool, shape (machines,), optional
        Whether each machine is reserved for others at some time until the limit of the job; none by default.
    ready : array of bool, shape (machines,), optional
        Whether each machine takes jobs, and waits for the end of none that was killed; all by default.
    """
    need, own = places.need(ticket), places.of[ticket.part]
    if need.nodes > (open_machines & own).sum():
        return CLOSED
    there = open_machines & own if shut is None else open_machines & own & ~shut
    idle = np.where(there[:, None], places.capacity, 0)
    taken = need.exclusive and (free != places.capacity)[there].any()
    completing = ready is not None and not ready[there].all()
    if need.fits(idle) or taken or completing:
        return RESOURCES
    closed = np.flatnonzero(own & ~open_machines).tolist()
    return UNAVAILABLE + hostlist_of(places.machines.names[each] for each in closed) if closed else RESERVED


def reasons_of(
    tickets: Iterable[Ticket],
    places: Places,
    room_for: Callable[[Job], MachineLevel],
    held: Callable[[Ticket], tuple[str, bool]],
    lack: Callable[[Ticket, Mask], str],
    record: Callable[[Job], int],
    seen: Callable[[Job], bool],
    before: Mapping[int, str],
) -> dict[int, str]:
    """Return the reason of each waiting job, by its row.

    A job that a limit holds has the reason of the limit, and blocks nobody. The first job of a partition
    that lacks nodes waits for ``Resources`` or, if jobs of other partitions have closed nodes of its own, for
    these; those behind it have ``Priority``. A new job that would start has ``None``. Of a job in
    several partitions, Slurm keeps the last reason, but ``Priority`` replaces neither a limit, that of an
    array among them, nor itself, nor that nodes are not available.

    Parameters
    ----------
    tickets : iterable of Ticket
        The waiting jobs in order, each in all of its partitions.
    places : Places
        The machines.
    room_for : callable
        Function that returns what is free for a job.
    held : callable
        Function that returns the reason of the limit that holds a ticket, empty for none, and whether it is
        one of resources.
    lack : callable
        Function that returns why a ticket lacks nodes, of those that are open; see :func:`lack_of`.
    record : callable
        Function that returns the record of a job: the tasks of an array have one, and the reason of its first
        task that does not start.
    seen : callable
        Function that returns whether a main loop has looked at a job. One that waits all the same, though it
        seems to fit, lacks nodes for Slurm: those on which stopped jobs are being ended, for example.
    before : mapping of int to str
        Reasons of the jobs until then, by row.
    """
    found: dict[int, str] = {}
    first: dict[tuple[int, int], str] = {}  # reasons of records in partitions
    blocked: set[int] = set()
    open_machines = np.ones(len(places.machines), dtype=np.bool_)
    for ticket in tickets:
        (job, part), present = ticket, found.get(ticket.job.index, NONE)
        key = record(job), part
        if first.get(key, NONE) != NONE:
            found[job.index] = first[key]
            continue
        reason, of_resources = held(ticket)
        few = places.need(ticket).nodes > (open_machines & places.of[part]).sum()
        if reason and not (of_resources and few and part not in blocked):
            found[job.index] = reason
        elif part in blocked:
            known = before.get(job.index, NONE) if present == NONE else present
            keeps = present not in (NONE, RESOURCES, CLOSED) or known.startswith(KEPT)
            found[job.index] = known if keeps else PRIORITY
        elif not few and places.first(ticket, room_for(job), open_machines) is not None and not seen(job):
            found.setdefault(job.index, NONE)
        else:
            found[job.index] = lack(ticket, open_machines)
            if not found[job.index].startswith(NOT_AVAILABLE):
                blocked.add(part)
                open_machines &= ~places.of[part]
        first[key] = found[job.index]
    return found
