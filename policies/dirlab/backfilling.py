"""Backfilling as RLScheduler, SchedInspector and RLBackfilling do it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from operator import attrgetter

from hpcsimkit.job import Job
from hpcsimkit.policy import Backfiller, Order
from hpcsimkit.system import System

__all__ = ["FittingCandidates", "PublishedEASY", "reservation"]


def reservation(head: Job, system: System, relax: float = 0.0) -> float:
    """Return before when a job must be expected to end so that it may be started behind a blocked one [s].

    That is when the blocked job will fit by the expected ends of running jobs, these taken as they are even
    where they have passed; and `relax` times its waiting time until then.
    """
    level, cluster = system.free, system.cluster
    for expected_end, _, allocation in system.running.by_expected_end():
        level = level + allocation
        if cluster.fits(head, level):
            return expected_end + relax * (expected_end - head.submit_time)
    raise AssertionError(f"job {head.id} does not fit the empty cluster")


class PublishedEASY(Backfiller):
    """What RLScheduler, SchedInspector and RLBackfilling call EASY backfilling.

    Unlike in :class:`~hpcsimkit.reservation.EASY`, a job is started only if it is expected to end before the
    reservation: not at the same second, and not on nodes that the blocked job leaves over. And the
    reservation is made once for each blocked job: when others end early it stays as it was, and jobs that are
    started then may delay the blocked one.

    Parameters
    ----------
    candidates : Order, optional
        In which order waiting jobs are looked at; by default as they were submitted.
    relax : float
        The blocked job may be delayed by this share of its waiting time, >= 0 (RLBackfilling).
    skips_after_start : bool
        The job after one that was started is not looked at in that pass (RLBackfilling, whose loop removes
        jobs from the list it goes through).
    """

    reserves = True

    def __init__(
        self, candidates: Order | None = None, *, relax: float = 0.0, skips_after_start: bool = False
    ) -> None:
        self.candidates = candidates
        self.relax = relax
        self.skips_after_start = skips_after_start

    def reset(self, system: System) -> None:
        """Forget the reservation."""
        if self.candidates is not None:
            self.candidates.reset(system)
        self._head: Job | None = None
        self._before = 0.0
        self._list: list[Job] = []
        self._pass = 0

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the queued jobs that fit and are expected to end before the reservation."""
        if head is not self._head:
            self._head, self._before = head, reservation(head, system, self.relax)
            self._list = list(system.queue)
        elif system.passes != self._pass:
            self._list += system.newcomers
        self._pass = system.passes
        self._list = system.queue.among(self._list)
        fits, estimate, window = system.cluster.fits, system.estimate, self._before - system.now
        jobs = iter(self._in_order(system))
        for job in jobs:
            if estimate(job) < window and fits(job, system.free):
                yield job
                if self.skips_after_start and job not in system.queue:
                    next(jobs, None)

    def _in_order(self, system: System) -> list[Job]:
        """Return the waiting jobs, the blocked one among them, in the order in which they are looked at.

        Ties go by the order of the policy when the blocked job was selected; who came later follows.
        """
        if self.candidates is None:
            return sorted(self._list, key=attrgetter("submit_time"))
        return self.candidates.sort(self._list, system)


class FittingCandidates(Backfiller):
    """What RLBackfilling's environment offers: all waiting jobs that fit, in the order of the policy.

    Nothing keeps them from delaying the blocked job. But where only one job fits, nobody is asked: it is
    started if that delays nobody, as in :class:`PublishedEASY`, the reservation made anew.

    Parameters
    ----------
    guarded : bool
        Only what is expected to end before the reservation is offered.
    relax : float
        As in :class:`PublishedEASY`.
    slots : int
        So many candidates are offered at most, the first ones of the order.
    """

    reserves = True

    def __init__(self, *, guarded: bool = False, relax: float = 0.0, slots: int = 128) -> None:
        self.guarded = guarded
        self.relax = relax
        self.slots = slots

    def fill(self, head: Job, system: System) -> Iterable[Job]:
        """Return the candidates; once one of them is started, those that are left then."""
        jobs = self._candidates(head, system)
        return self._one_by_one(jobs, head, system) if jobs else ()

    def _one_by_one(self, jobs: list[Job], head: Job, system: System) -> Iterator[Job]:
        while jobs:
            job = jobs.pop(0)
            yield job
            if job not in system.queue:
                jobs = self._candidates(head, system)

    def _candidates(self, head: Job, system: System) -> list[Job]:
        waiting = list(system.queue)  # the blocked one is among them, and does not fit
        jobs = list(compress(waiting, system.cluster.fit_each(waiting, system.free)))
        before = reservation(head, system, self.relax) if jobs else 0.0
        if self.guarded or len(jobs) == 1:
            jobs = [job for job in jobs if system.now + system.estimate(job) < before]
        return jobs[: self.slots]
