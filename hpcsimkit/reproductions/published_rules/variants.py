"""EASY rule by rule, used only in this comparison."""

from __future__ import annotations

from collections.abc import Iterator

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Backfiller, Order
from hpcsimkit.kernel.reservation import reserve
from hpcsimkit.kernel.system import System

__all__ = ["PartialEASY"]


class PartialEASY(Backfiller):
    """EASY backfilling without some of its rules; with all of them it is EASY.

    The reservation is made anew at every pass.

    Parameters
    ----------
    spare_nodes : bool
        Whether a job of any length may start on the extra nodes, which the blocked job leaves over.
    last_second : bool
        Whether a job may be expected to end at the shadow time itself, not only before it.
    candidates : Order, optional
        Order in which candidates are tried; by default that of the policy.

    Examples
    --------
    >>> PartialEASY(spare_nodes=False)
    PartialEASY(spare_nodes=False)
    """

    reserves = True

    def __init__(
        self, *, spare_nodes: bool = True, last_second: bool = True, candidates: Order | None = None
    ) -> None:
        self.spare_nodes = spare_nodes
        self.last_second = last_second
        self.candidates = candidates

    def reset(self, system: System) -> None:
        """Prepare the order of candidates."""
        if self.candidates is not None:
            self.candidates.reset(system)

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the queued jobs that fit and, by the rules in force, do not delay `head`."""
        cluster = system.cluster
        _, room = reserve(head, system)
        if not self.spare_nodes:
            room.spare = room.spare - room.spare
        if not self.last_second:
            room.window -= 1
        jobs = list(system.queue)
        for job in jobs if self.candidates is None else self.candidates.sort(jobs, system):
            estimate = system.estimate(job)
            if job is not head and cluster.admits(job, estimate, room):
                yield job
                if job not in system.queue:
                    cluster.take(job, estimate, room, system.running.allocation(job))
