"""Conservative backfilling: every job gets a reservation on arrival."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.expected import expected, needs_machines
from hpcsimkit.kernel.holes import Hole, HoleInProfile
from hpcsimkit.kernel.policy import Backfiller
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["Conservative"]


class Slot(NamedTuple):
    """A reservation: an allocation in [start, start + estimate)."""

    start: int
    estimate: int
    allocation: Allocation


class Conservative(Backfiller):
    """Conservative backfilling with compression: no job is ever delayed by a job that arrived later.

    On arrival, a job is reserved the earliest feasible slot in the availability profile of running jobs and
    existing reservations; the start of the slot is its guaranteed start time. When jobs end, and before jobs
    that arrive at that instant are planned, each waiting job is removed and reinserted at its earliest
    feasible slot, in policy order; the new slot is never later than the old one. The start of a reservation
    triggers a scheduling pass. (Mu'alem & Feitelson, TPDS 2001.)

    On machines, a reservation holds the first machines that are free throughout its slot; at its start, the
    job may be placed on any machines where it delays no other reservation. As long as all waiting jobs have
    pooled requests, reservations hold only totals, as on homogeneous nodes. If this changes when a job ends
    or arrives, the plan is rebuilt, and no reservation moves to a later time.

    The guarantees hold as long as estimates are upper bounds and jobs start as soon as they are allowed to.
    When a job exceeds its estimate, gets a new estimate, is held or rejected, or when passes occur only at
    intervals, the plan is rebuilt in the order of the current reservations. Each early end requires a search
    through all waiting jobs and the profile before their slots, which takes minutes with thousands of waiting
    jobs.
    """

    reserves = True
    plans = True

    def reset(self, system: System) -> None:
        """Start with an empty plan."""
        self._on_machines = False
        self._profile = expected(system, self._on_machines)
        self._slots: dict[int, Slot] = {}
        self._need_machines: set[int] = set()
        self._due_times: list[tuple[int, int]] = []
        self._due: set[int] = set()
        self._asked: set[int] = set()  # rows for which `level` was called since the last start
        self._seen_ends = self._seen_corrections = self._seen_rejections = self._seen_stops = 0
        self._seen_version = -1
        self._vacated = 0
        self._broken = self._overrun = False

    def plan(self, system: System) -> None:
        """Update the plan with starts, ends and arrivals, and find the reservations that are due."""
        now = system.now
        self._take_in_starts(system, self._due)
        self._profile.advance(now)
        if len(system.rejected) != self._seen_rejections:
            self._take_in_rejections(system)
        if len(system.ledger.stopped) != self._seen_stops:
            self._take_in_stops(system)
        ended = len(system.ended) != self._seen_ends
        if ended:
            self._take_in_tests(system)
        # The kept plan holds as long as every expected end is where it was when the plan was made. Otherwise,
        # or if a job that was due did not start, slots may overlap with jobs that run now.
        overrun = system.running.overrun(now)
        held = bool(self._due)
        corrected = system.corrections != self._seen_corrections
        other = ended and self._slots and self._wants_another_profile
        if overrun or self._broken or held or corrected or other or self._missed(now):
            self._make_anew(system)
        elif ended:
            self._compress(system)
        self._seen_ends = len(system.ended)
        self._seen_corrections = system.corrections
        self._broken = self._overrun = overrun  # next time, the ends of this pass's overruns are others again
        for job in system.newcomers:
            if system.ledger.waits(job.index):
                self._reserve_on_arrival(job, system)
        self._find_due(now)

    def due(self, job: Job, system: System) -> bool:
        """Return whether the job's reservation is due and its resource demand is available."""
        return job.index in self._due and system.cluster.fits(job, self.level(job, system))

    def level(self, job: Job, system: System) -> Level:
        """Return the capacity for a job that is due: all that is free and not reserved for other jobs."""
        if system.version != self._seen_version:
            self._take_in_starts(system, self._asked)
        self._asked.add(job.index)
        slot = self._slots[job.index]
        return self._profile.level(slot.estimate, system.room_for(job), slot.allocation)

    def next_pass(self, system: System) -> int | None:
        """Return the start of the first reservation that lies ahead [s], or None.

        While a job exceeds its estimate, its expected end of "one second from now" is no time to wait for: a
        reservation that starts then waits for this job, or for another that ends by then or exceeds its
        estimate as well.
        """
        self._take_in_rejections(system)
        if self._overrun:
            soonest = system.now + 1
            return min((slot.start for slot in self._slots.values() if slot.start > soonest), default=None)
        self._drop_stale()
        return self._due_times[0][0] if self._due_times else None

    def hole(self, head: Job, system: System) -> Hole:
        """Return the capacity that the reservations leave; a test ends before that of its job begins."""
        if system.version != self._seen_version:
            self._take_in_starts(system, self._asked)
        return HoleInProfile(system, self._profile, {row: slot.start for row, slot in self._slots.items()})

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the jobs that are due, in policy order."""
        if self._due:
            for job in system.queue:
                if self.due(job, system):
                    yield job

    # --- the plan --------------------------------------------------------------------------------------

    def _take_in_starts(self, system: System, due: set[int]) -> None:
        """In the profile, replace the planned by the actual allocation of each due job that has started.

        During a pass, only a job for which a level was asked since the last start can have started.
        """
        self._seen_version = system.version
        started = [row for row in due if system.ledger.started(row)]
        self._asked.clear()
        for row in started:
            start, estimate, planned = self._slots[row]
            if self._profile.replace(start, start + estimate, planned, system.given(row)):
                self._vacated = max(self._vacated, start + estimate)
            self._forget(row)

    def _take_in_rejections(self, system: System) -> None:
        """Remove the jobs that have left the queue without a start; a plan that counted on them is void."""
        for row in system.rejected[self._seen_rejections :]:
            self._broken = row in self._slots or self._broken
            self._forget(row)
        self._seen_rejections = len(system.rejected)

    def _take_in_stops(self, system: System) -> None:
        """Remove the jobs that were stopped before the pass after their start: they return as new ones.

        A job whose test is over keeps the reservation that it had before.
        """
        for attempt in system.ledger.stopped[self._seen_stops :]:
            if attempt.outcome != Outcome.TESTED:
                self._broken = attempt.job in self._slots or self._broken
                self._forget(attempt.job)
        self._seen_stops = len(system.ledger.stopped)

    def _take_in_tests(self, system: System) -> None:
        """Remove the reservations of jobs that have ended in their tests."""
        for row in system.ended[self._seen_ends :]:
            if row in self._slots:
                self._release(row)

    def _release(self, row: int) -> None:
        """Remove a reservation that is not needed any more."""
        start, estimate, allocation = self._slots[row]
        end = start + estimate
        self._profile.release(max(start, self._profile.begin), end, allocation)
        self._vacated = max(self._vacated, end)
        self._forget(row)

    def _forget(self, row: int) -> None:
        """Remove a job that is no longer waiting."""
        self._slots.pop(row, None)
        self._due.discard(row)
        self._need_machines.discard(row)

    def _missed(self, now: int) -> bool:
        """Return whether a reservation has passed without its job starting."""
        self._drop_stale()
        return bool(self._due_times) and self._due_times[0][0] < now

    def _drop_stale(self) -> None:
        """Drop due times of reservations that were moved or used."""
        due_times, slots = self._due_times, self._slots
        while due_times and (due_times[0][1] not in slots or slots[due_times[0][1]].start != due_times[0][0]):
            heappop(due_times)

    def _reserve_on_arrival(self, job: Job, system: System) -> None:
        """Reserve the earliest feasible slot for a job that has arrived.

        A job that returns from its test keeps its reservation, unless its estimate has changed.
        """
        kept = self._slots.get(job.index)
        if kept is not None:
            if kept.estimate == system.estimate(job):
                return
            self._release(job.index)
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
        """Move each waiting job to an earlier feasible slot if an early end has freed one.

        A job can move only to a slot that begins before the end of an interval in which capacity became
        free: by an early end, or because a job moved. The interval vacated by a job that moved may fit a job
        that precedes it in the queue, which the next compression examines.
        """
        now, until, self._vacated = system.now, self._vacated, 0
        for row in system.ended[self._seen_ends :]:
            expected_end = system.ledger.expected_end_of(row)
            if expected_end > now:
                self._profile.release(now, expected_end, system.given(row))
                until = max(until, expected_end)
        if until <= now:
            return
        profile, slots = self._profile, self._slots
        for job in system.queue:
            slot = slots.get(job.index)
            if slot is not None:
                start, allocation = profile.earlier(job, *slot, until)
                if start != slot.start:
                    end = slot.start + slot.estimate
                    profile.release(slot.start, end, slot.allocation)
                    self._put(job.index, Slot(start, slot.estimate, allocation))
                    until, self._vacated = max(until, end), max(self._vacated, end)

    @property
    def _wants_another_profile(self) -> bool:
        """Whether the profile holds totals although some job needs machines, or vice versa."""
        return self._on_machines != bool(self._need_machines)

    def _make_anew(self, system: System) -> None:
        """Plan running jobs by their expected ends, then waiting jobs in the order of their reservations.

        The switch from totals to machines moves no reservation to a later time: in this order, a job with a
        pooled request can use the machines on which the jobs planned before it do not run.
        """
        self._on_machines = bool(self._need_machines)
        self._profile = expected(system, self._on_machines)
        slots, self._slots, self._due_times = self._slots, {}, []
        for row in sorted(slots, key=lambda row: (slots[row].start, row)):
            estimate, job = slots[row].estimate, system.jobs[row]
            after = system.now
            if job in system.running:  # in its test
                after = system.running.expected_end(job) + system.restart.delay
            start, allocation = self._profile.earliest(job, estimate, after)
            self._put(row, Slot(start, estimate, allocation))

    def _find_due(self, now: int) -> None:
        """Collect the reservations that are due now."""
        self._drop_stale()
        self._due = set()
        while self._due_times and self._due_times[0][0] <= now:
            self._due.add(heappop(self._due_times)[1])
            self._drop_stale()
