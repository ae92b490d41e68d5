"""One job: what its user asked for, frozen."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["UNKNOWN", "Job", "Request"]

UNKNOWN = -1
"""What the Standard Workload Format writes where a value is not known."""


class Request(NamedTuple):
    """What a job asks of machines, beside its number of nodes; equal requests are one object in a workload.

    Parameters
    ----------
    resources : tuple of str
        Names of what is asked for: ``("cpus", "gpus", "memory")``.
    amounts : tuple of int
        How much of each, >= 0, memory in bytes: on each of the job's nodes, or in all if `spread`.
    spread : bool
        The amounts are totals that any number of machines may give in any mix. Otherwise the job needs
        ``job.nodes`` different machines, each with all of the amounts.
    exclusive : bool
        The job shares its machines with nobody.
    constraint : str
        Features (or partitions) that its machines must have, joined by ``&``; none if empty.

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
        """Return how much of a resource is asked for; 0 of one that is not named."""
        return self.amounts[self.resources.index(resource)] if resource in self.resources else 0


class Job(NamedTuple):
    """A request in the words of the Standard Workload Format (SWF).

    A job is shared by any number of simulations; what happens to it (start, end, mode) is written in the
    run, never here. It is a named tuple: of all immutable records Python has, the one made fastest, and
    one the garbage collector stops looking at, which matters with a million of them.

    Parameters
    ----------
    index : int
        Row of the job in its :class:`~hpcsimkit.workload.Workload` (0, 1, ...).
    id : int
        Job number of the log (SWF field 1).
    submit_time : int
        When the job joins the queue [s of the log's clock] (field 2).
    run_time : int
        How long it really runs [s], >= 0 (field 4). Only oracle policies may read it before the job ends.
    requested_time : int
        The user's estimate, the wall-clock limit [s], >= 1 (field 9).
    nodes : int
        Processors or nodes it occupies, >= 1 (fields 8 or 5).
    user, group, executable, queue, partition : int
        Identifiers of the log, -1 where unknown (fields 12 to 16).
    preceding : int
        Job number that must end first, -1 for none (field 17).
    think_time : int
        Time between that end and this submission [s], -1 where unknown (field 18).
    request : Request or None
        What it asks of machines. None in logs that count nodes only: on machines, that is so many CPUs.
    kind : int
        Kind of work, -1 where unknown: what locality models go by (``workload.labels["kind"]`` names it).

    Examples
    --------
    >>> job = Job(index=0, id=7, submit_time=0, run_time=50, requested_time=60, nodes=4)
    >>> job.nodes, job.area
    (4, 240)
    """

    index: int  # type: ignore[assignment]  # a tuple's own method of this name is of no use here
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
        """How large the job is, for orders: its nodes, or all it asks for of its log's first resource."""
        request = self.request
        if request is None:
            return self.nodes
        return request.amounts[0] if request.spread else request.amounts[0] * self.nodes

    @property
    def area(self) -> int:
        """Requested time times :attr:`size`: node-seconds, or CPU-seconds."""
        return self.requested_time * self.size
