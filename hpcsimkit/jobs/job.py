"""One job: its immutable request."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["UNKNOWN", "Job", "Request"]

UNKNOWN = -1
"""Value of unknown fields in the Standard Workload Format."""


class Request(NamedTuple):
    """Resource request of a job on machines, besides its number of nodes.

    Parameters
    ----------
    resources : tuple of str
        Names of the requested resources: ``("cpus", "gpus", "memory")``.
    amounts : tuple of int
        Amount of each resource, >= 0, memory in bytes: per node, or in total if `spread`.
    spread : bool
        Whether the request is pooled: the amounts are totals over any number of machines in any mix.
        Otherwise the job needs ``job.nodes`` different machines, each with all of the amounts. Default:
        False.
    exclusive : bool
        Whether the job does not share its machines with other jobs. Default: False.
    constraint : str
        Features (or partitions) that the machines must have, joined by ``&`` or ``|``; with counts
        (``a*2&b*4``), that so many of them must have. Default: none.

    Examples
    --------
    >>> Request(("cpus", "gpus"), (8, 1)).amount("gpus"), Request(("cpus",), (8,)).amount("gpus")
    (1, 0)
    """

    resources: tuple[str, ...]
    amounts: tuple[int, ...]
    spread: bool = False
    exclusive: bool = False
    constraint: str = ""

    def amount(self, resource: str) -> int:
        """Return the requested amount of a resource; 0 if it is not named."""
        return self.amounts[self.resources.index(resource)] if resource in self.resources else 0


class Job(NamedTuple):
    """A job with the fields of the Standard Workload Format (SWF).

    A job is shared by any number of simulations; its fate (start, end, mode) is stored in the run, never
    here. It is a named tuple because, of all immutable records in Python, this is the fastest to create, and
    the garbage collector stops tracking it, which matters with a million jobs.

    Parameters
    ----------
    index : int
        Row of the job in its :class:`~hpcsimkit.jobs.workload.Workload` (0, 1, ...).
    id : int
        Job number of the log (SWF field 1).
    submit_time : int
        Submission time [s of the log's clock] (field 2).
    run_time : int
        Actual run time [s], >= 0 (field 4). Only oracle policies may read it before the job ends.
    requested_time : int
        Estimate of the user, used as the wall-clock limit [s], >= 1 (field 9).
    nodes : int
        Number of processors or nodes, >= 1 (fields 8 or 5).
    user, group, executable, queue, partition : int
        Identifiers of the log, -1 where unknown (fields 12 to 16).
    preceding : int
        Number of the preceding job, which must end first; -1 for none (field 17).
    think_time : int
        Think time: time from the end of the preceding job to this submission [s], -1 if unknown (field 18).
    request : Request or None
        Resource request on machines. If None, as in logs with node counts only, the job requests that many
        CPUs.
    kind : int
        Job type, -1 if unknown, as used by locality models (its name is in ``workload.labels["kind"]``).

    Examples
    --------
    >>> job = Job(index=0, id=7, submit_time=0, run_time=50, requested_time=60, nodes=4)
    >>> job.nodes, job.area
    (4, 240)
    """

    index: int  # type: ignore[assignment]  # shadows tuple.index, which is not needed here
    id: int
    submit_time: int
    run_time: int
    requested_time: int
    nodes: int
    user: int = UNKNOWN
    group: int = UNKNOWN
    executable: int = UNKNOWN
    queue: int = UNKNOWN
    partition: int = UNKNOWN
    preceding: int = UNKNOWN
    think_time: int = UNKNOWN
    request: Request | None = None
    kind: int = UNKNOWN

    @property
    def size(self) -> int:
        """The size of the job for orders: its nodes, or its total request of the log's first resource."""
        request = self.request
        if request is None:
            return self.nodes
        return request.amounts[0] if request.spread else request.amounts[0] * self.nodes

    @property
    def area(self) -> int:
        """Requested time times :attr:`size`: node-seconds, or CPU-seconds."""
        return self.requested_time * self.size
