"""Why jobs wait, in the words of ``squeue``: what a pass of the main loop notes for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from hpcsimkit.cluster.allocation import MachineLevel
from hpcsimkit.jobs.job import Job
from hpcsimkit.slurm.plan import Places, Ticket

__all__ = ["CLOSED", "NONE", "PRIORITY", "RESOURCES", "reasons_of"]

NONE, PRIORITY, RESOURCES = "None", "Priority", "Resources"
CLOSED = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"


def reasons_of(
    tickets: Iterable[Ticket],
    places: Places,
    room_for: Callable[[Job], MachineLevel],
    held: Callable[[Ticket], str],
) -> dict[int, str]:
    """Return the reason of each waiting job, by its row.

    A job that a limit holds has the reason of the limit, and blocks nobody. The first job of a partition
    that lacks nodes waits for ``Resources`` or, if jobs of other partitions have closed all nodes of its
    own, for these; those behind it have ``Priority``. A job that would start has ``None``. Of a job in
    several partitions, Slurm keeps the last reason, but ``Priority`` replaces neither a limit nor itself.

    Parameters
    ----------
    tickets : iterable of Ticket
        The waiting jobs in order, each in all of its partitions.
    places : Places
        The machines.
    room_for : callable
        Function that returns what is free for a job.
    held : callable
        Function that returns the reason of the limit that holds a ticket; empty for none.
    """
    found: dict[int, str] = {}
    blocked: set[int] = set()
    open_machines = np.ones(len(places.machines), dtype=np.bool_)
    for ticket in tickets:
        (job, part), present = ticket, found.get(ticket.job.index, NONE)
        reason = held(ticket)
        if reason:
            found[job.index] = reason
        elif part in blocked:
            found[job.index] = PRIORITY if present in (NONE, RESOURCES, CLOSED) else present
        elif places.first(ticket, room_for(job), open_machines) is not None:
            found.setdefault(job.index, NONE)
        else:
            found[job.index] = RESOURCES if (open_machines & places.of[part]).any() else CLOSED
            blocked.add(part)
            open_machines &= ~places.of[part]
    return found
