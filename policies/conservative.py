"""Conservative backfilling: every job has a reservation from the moment it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from hpcsimkit.cluster import Allocation, Level
from hpcsimkit.job import Job
from hpcsimkit.policies.expected import expected, needs_machines
from hpcsimkit.policy import Backfiller
from hpcsimkit.system import System

__all__ = ["Conservative"]


class Slot(NamedTuple):
    """A reservation: an allocation in [start, start + estimate)."""

    start: int
    estimate: int
    allocation: Allocation


class Conservative(Backfiller):
    """Conservative backfilling with compression: nobody is ever delayed by a job that came later.

    On arrival a job is put at the earliest hole of the plan of running jobs and reservations: its
    guarantee. When jobs end, and before those that arrive at that instant are placed, every waiting job is
    taken out and put back at the earliest hole, in policy order; that is never later than before. A
    reservation that falls due is a scheduling point of its own. (Mu'alem & Feitelson, TPDS 2001.)

    On machines a reservation holds the first machines that are free all the time; when it is due, the job
    may be placed wherever it delays no other reservation. As long as all waiting jobs ask for totals that
    any machines may give, reservations hold totals only, as on counted nodes; if that has changed when a job
    ends or arrives, the plan is made anew, and nobody is later than before.

    Guarantees hold as long as estimates are upper bounds and jobs start when they may. When a job outlives
    its estimate, is given a new one, is held or rejected, or passes happen only at intervals, the plan
    is made anew, in the order of the reservations so far. Each early end costs a look through all waiting
    jobs and the plan before them: with thousands waiting, minutes.
    """

    reserves = True
    plans = True

    def reset(self, system: System) -> None:
        """Begin with an empty plan."""
        self._on_machines = False
        self._profile = expected(system, self._on_machines)
        self._slots: dict[int, Slot] = {}
        self._need_machines: set[int] = set()
        self._due_times: list[tuple[int, int]] = []
        self._due: set[int] = set()
        self._seen_ends = self._seen_corrections = self._seen_rejections = 0
        self._seen_version = -1
        self._moved = self._broken = False

    def plan(self, system: System) -> None:
        """Take in what has started, ended and arrived; find what is due."""
        now = system.now
        self._take_in_starts(system)
        self._profile.advance(now)
        for row in system.rejected[self._seen_rejections :]:
            self._broken = row in self._slots or self._broken
            self._forget(row)
        self._seen_rejections = len(system.rejected)
        overrun = system.running.overrun(now)
        held = bool(self._due)
        corrected = system.corrections != self._seen_corrections
        ended = len(system.ended) != self._seen_ends
        other = ended and self._slots and self._wants_another_profile
        if overrun or self._broken or held or corrected or other or self._missed(now):
            self._make_anew(system)
        elif ended:
            self._compress(system)
        self._seen_ends = len(system.ended)
        self._seen_corrections = system.corrections
        self._broken = overrun
        for job in system.newcomers:
            if job.index not in self._slots and job in system.queue:
                self._welcome(job, system)
        self._find_due(system, overrun)

    def due(self, job: Job, system: System) -> bool:
        """Tell whether the job's reservation has come and what it needs is free."""
        return job.index in self._due and system.cluster.fits(job, self.level(job, system))

    def level(self, job: Job, system: System) -> Level:
        """Return what a job that is due may use: all that is free and reserved for nobody else meanwhile."""
        if system.version != self._seen_version:
            self._take_in_starts(system)
        slot = self._slots[job.index]
        return self._profile.level(slot.estimate, system.free, slot.allocation)

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the jobs that are due, in policy order."""
        if self._due:
            for job in system.queue:
                if self.due(job, system):
                    yield job

    # --- the plan --------------------------------------------------------------------------------------

    def _take_in_starts(self, system: System) -> None:
        """Let the plan hold what jobs that were due have really been given."""
        self._seen_version = system.version
        for row in [row for row in self._due if system.starts[row] >= 0]:
            start, estimate, planned = self._slots[row]
            if self._profile.replace(start, start + estimate, planned, system.given(row)):
                self._moved = True
            self._forget(row)

    def _forget(self, row: int) -> None:
        """Forget a job that does not wait any more."""
        self._slots.pop(row, None)
        self._due.discard(row)
        self._need_machines.discard(row)

    def _missed(self, now: int) -> bool:
        """Tell whether a reservation has passed without its job starting."""
        self._drop_stale()
        return bool(self._due_times) and self._due_times[0][0] < now

    def _drop_stale(self) -> None:
        """Drop due times of reservations that were moved or used."""
        due_times, slots = self._due_times, self._slots
        while due_times and (due_times[0][1] not in slots or slots[due_times[0][1]].start != due_times[0][0]):
            heappop(due_times)

    def _welcome(self, job: Job, system: System) -> None:
        """Give a job that has arrived the earliest hole."""
        if needs_machines(job, system):
            self._need_machines.add(job.index)
        if self._wants_another_profile:
            self._make_anew(system)
        estimate = system.estimate(job)
        start, allocation = self._profile.earliest(job, estimate, system.now)
        self._put(job.index, Slot(start, estimate, allocation))

    def _put(self, row: int, slot: Slot) -> None:
        """Enter a reservation into the plan."""
        self._profile.occupy(slot.start, slot.start + slot.estimate, slot.allocation)
        self._slots[row] = slot
        heappush(self._due_times, (slot.start, row))

    def _compress(self, system: System) -> None:
        """Let every waiting job move to an earlier hole, if jobs that ended early left any.

        Without new room there is nothing to gain, unless the last compression moved jobs: what those left
        behind may suit an earlier one of the queue, which had its turn before them.
        """
        now = system.now
        gained = self._moved
        for row in system.ended[self._seen_ends :]:
            expected_end = system.starts[row] + system.estimates[row]
            if expected_end > now:
                self._profile.release(now, expected_end, system.given(row))
                gained = True
        if not gained:
            return
        self._moved = False
        profile, slots = self._profile, self._slots
        for job in system.queue:
            slot = slots.get(job.index)
            if slot is not None:
                start, allocation = profile.earlier(job, slot.estimate, slot.start, slot.allocation)
                if start != slot.start:
                    self._moved = True
                    profile.release(slot.start, slot.start + slot.estimate, slot.allocation)
                    self._put(job.index, Slot(start, slot.estimate, allocation))

    @property
    def _wants_another_profile(self) -> bool:
        """Whether reservations hold totals although some job needs machines, or the other way round."""
        return self._on_machines != bool(self._need_machines)

    def _make_anew(self, system: System) -> None:
        """Plan running jobs by their expected ends, then waiting jobs in the order of their reservations.

        Nobody is put later than before only because reservations hold machines from now on: in this order, a
        job that takes any machines in any mix can go where those before it do not run.
        """
        self._on_machines = bool(self._need_machines)
        self._profile = expected(system, self._on_machines)
        slots, self._slots, self._due_times = self._slots, {}, []
        for row in sorted(slots, key=lambda row: (slots[row].start, row)):
            estimate = slots[row].estimate
            start, allocation = self._profile.earliest(system.jobs[row], estimate, system.now)
            self._put(row, Slot(start, estimate, allocation))

    def _find_due(self, system: System, overrun: bool) -> None:
        """Collect what is due now, and ask to be woken for what comes next."""
        self._drop_stale()
        self._due = set()
        while self._due_times and self._due_times[0][0] <= system.now:
            self._due.add(heappop(self._due_times)[1])
            self._drop_stale()
        # While a job outlives its estimate, "one second from now" is no time to wait for.
        if self._due_times and self._due_times[0][0] > system.now + overrun:
            system.wake(self._due_times[0][0])
