"""Backfilling of RLScheduler, SchedInspector and RLBackfilling."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import attrgetter
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.policy import Backfiller, Order
from hpcsimkit.kernel.reservation import reserve
from hpcsimkit.kernel.settling import SettlingBackfiller
from hpcsimkit.kernel.system import System

__all__ = ["FittingCandidates", "PartialEASY", "PublishedEASY", "ShortestFitting", "reservation"]


def reservation(head: Job, system: System, relax: float = 0.0) -> float:
    """Return the deadline for the expected ends of jobs backfilled behind a blocked job [s].

    The deadline is the time at which the blocked job will fit according to the expected ends of running jobs,
    which are not corrected if they have passed, plus `relax` times its waiting time until then.

    It is read only: a policy that reserves also calls :meth:`Running.sort_ends
    <hpcsimkit.kernel.capacity.Running.sort_ends>`.
    """
    level, cluster = system.free, system.cluster
    for expected_end, _, allocation in system.running.entries:
        level = level + allocation
        if cluster.fits(head, level):
            return expected_end + relax * (expected_end - head.submit_time)
    raise AssertionError(f"job {head.id} does not fit the empty cluster")


class PublishedEASY(SettlingBackfiller):
    """EASY backfilling as implemented in RLScheduler, SchedInspector and RLBackfilling.

    Unlike in :class:`~hpcsimkit.kernel.reservation.EASY`, a job is started only if it is expected to end
    strictly before the reservation, even if it would use only extra nodes that the blocked job does not need.
    The reservation is computed once for each blocked job: when other jobs end early, it does not move, and
    jobs started after that may delay the blocked job. (RLScheduler, SC 2020; SchedInspector, HPDC 2022;
    RLBackfilling, PMBS 2023.)

    Parameters
    ----------
    candidates : Order, optional
        Order in which waiting jobs are examined; by default the order of submission.
    relax : float
        Permitted delay of the blocked job as a share of its waiting time, >= 0 (RLBackfilling).
    skips_after_start : bool
        Whether the job after a started one is skipped in the same pass (RLBackfilling, which removes jobs
        from the list over which it iterates).
    """

    reserves = True
    heeds_calendar = False

    def __init__(
        self, candidates: Order | None = None, *, relax: float = 0.0, skips_after_start: bool = False
    ) -> None:
        self.candidates = candidates
        self.relax = relax
        self.skips_after_start = skips_after_start

    def reset(self, system: System) -> None:
        """Check the parameters, and discard the reservation.

        Raises
        ------
        UsageError
            A parameter is invalid.
        """
        if not (isinstance(self.relax, int | float) and self.relax >= 0):
            raise UsageError(f"published-easy: relax needs a number, at least 0, found {self.relax!r}")
        candidates: Any = self.candidates
        if candidates is not None:
            if not isinstance(candidates, Order):
                raise UsageError(f"published-easy: candidates needs an order, found {candidates!r}")
            candidates.reset(system)
        self._head: Job | None = None
        self._before = 0.0
        self._list: list[Job] = []
        self._pass = 0
        self._left_out = False

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the queued jobs that fit and are expected to end before the reservation."""
        if head is not self._head:
            system.running.sort_ends()
            self._head, self._before = head, reservation(head, system, self.relax)
            self._list = list(system.queue)
        elif system.passes != self._pass:
            self._list += system.newcomers
        self._pass = system.passes
        self._left_out = False
        self._list = system.queue.among(self._list)
        fits, estimate, window = system.cluster.fits, system.estimate, self._before - system.now
        jobs = iter(self._in_order(system))
        for job in jobs:
            if estimate(job) < window and fits(job, system.free):
                yield job
                if self.skips_after_start and system.ledger.started(job.index):
                    self._left_out |= next(jobs, None) is not None

    def skip(self, system: System) -> bool:
        """Return whether no job can be started now; a job that was left out of the last pass may start."""
        if self._left_out or not super().skip(system):
            return False
        self._list += system.newcomers
        self._pass = system.passes
        return True

    def _in_order(self, system: System) -> list[Job]:
        """Return the waiting jobs, including the blocked job, in the order in which they are examined.

        Ties are broken by policy order at the time the blocked job was selected, with later arrivals last.
        """
        if self.candidates is None:
            return sorted(self._list, key=attrgetter("submit_time"))
        return self.candidates.sort(self._list, system)


class FittingCandidates(SettlingBackfiller):
    """The candidates of RLBackfilling's environment: all waiting jobs that fit, in policy order.

    Candidates may delay the blocked job. But if only one job fits, it is a candidate only if it does not
    delay the blocked job, as in :class:`PublishedEASY`, with a recomputed reservation.

    Parameters
    ----------
    guarded : bool
        Whether only jobs that are expected to end before the reservation are offered. Default: False.
    relax : float
        Permitted delay of the blocked job as a share of its waiting time, >= 0; see :class:`PublishedEASY`.
    slots : int
        Maximum number of candidates offered, in policy order.
    """

    reserves = True
    heeds_calendar = False

    def __init__(self, *, guarded: bool = False, relax: float = 0.0, slots: int = 128) -> None:
        self.guarded = guarded
        self.relax = relax
        self.slots = slots

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the candidates, recomputed after each start."""
        jobs = self._candidates(head, system)
        return self._one_by_one(jobs, head, system) if jobs else ()

    def _one_by_one(self, jobs: list[Job], head: Job, system: System) -> Iterator[Job]:
        while jobs:
            job = jobs.pop(0)
            yield job
            if system.ledger.started(job.index):
                jobs = self._candidates(head, system)

    def _candidates(self, head: Job, system: System) -> list[Job]:
        waiting = list(system.queue)  # includes the blocked job, which does not fit
        jobs = list(compress(waiting, system.cluster.fit_each(waiting, system.free)))
        if not jobs:
            return []
        system.running.sort_ends()
        before = reservation(head, system, self.relax)
        if self.guarded or len(jobs) == 1:
            jobs = [job for job in jobs if system.now + system.estimate(job) < before]
        return jobs[: self.slots]


class ShortestFitting(Answering):
    """A backfiller on the agent's seat that starts the candidate with the shortest requested time.

    Ties go to the order of candidates.

    Examples
    --------
    >>> ShortestFitting(FittingCandidates(guarded=True))
    ShortestFitting(base=FittingCandidates(guarded=True))
    """

    def answer(self, decision: Decision) -> int:
        """Return the position of the candidate."""
        times = [job.requested_time for job in decision.options]
        return times.index(min(times))


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
    heeds_calendar = False

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
                if system.ledger.started(job.index):
                    cluster.take(job, estimate, room, system.running.allocation(job))
