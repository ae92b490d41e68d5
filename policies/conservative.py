"""Conservative backfilling: every job has a reservation from the moment it arrives."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from hpcsimkit.job import Job
from hpcsimkit.policies.profile import Profile
from hpcsimkit.policy import Backfiller
from hpcsimkit.system import System

__all__ = ["Conservative"]


class Slot(NamedTuple):
    """A reservation: nodes in [start, start + estimate)."""

    start: int
    estimate: int
    nodes: int


class Conservative(Backfiller):
    """Conservative backfilling with compression: nobody is ever delayed by a job that came later.

    On arrival a job is put at the earliest hole of the plan of running jobs and reservations: its
    guarantee. When jobs end, and before those that arrive at that instant are placed, every waiting job is
    taken out and put back at the earliest hole, in policy order; that is never later than before. A
    reservation that falls due is a scheduling point of its own. (Mu'alem & Feitelson, TPDS 2001.)

    Guarantees hold as long as estimates are upper bounds and jobs start when they may. When a job outlives
    its estimate, is given a new one, is held or rejected, or passes happen only at intervals, the plan
    is made anew, in the order of the reservations so far. Each early end costs a look through all waiting
    jobs and the plan before them: with thousands waiting, minutes.
    """

    reserves = True
    plans = True

    def reset(self, system: System) -> None:
        """Begin with an empty plan."""
        self._profile = Profile(system.now, system.cluster.size)
        self._slots: dict[int, Slot] = {}
        self._due_times: list[tuple[int, int]] = []
        self._due: set[int] = set()
        self._seen_ends = self._seen_corrections = self._seen_rejections = 0
        self._moved = self._broken = False

    def plan(self, system: System) -> None:
        """Take in what has started, ended and arrived; find what is due."""
        now, profile = system.now, self._profile
        profile.advance(now)
        started = [row for row in self._due if system.starts[row] >= 0]
        for row in started:
            del self._slots[row]
        for row in system.rejected[self._seen_rejections :]:
            self._broken = self._slots.pop(row, None) is not None or self._broken
            self._due.discard(row)
        self._seen_rejections = len(system.rejected)
        overrun = system.running.overrun(now)
        held = len(started) < len(self._due)
        corrected = system.corrections != self._seen_corrections
        if overrun or self._broken or held or corrected or self._missed(now):
            self._make_anew(system)
        elif len(system.ended) != self._seen_ends:
            self._compress(system)
        self._seen_ends = len(system.ended)
        self._seen_corrections = system.corrections
        self._broken = overrun
        for job in system.newcomers:
            if job.index not in self._slots and job in system.queue:
                self._put(job.index, system.estimate(job), job.nodes, now)
        self._find_due(system, overrun)

    def due(self, job: Job, system: System) -> bool:
        """Tell whether the job's reservation has come and its nodes are free."""
        return job.index in self._due and system.fits(job)

    def fill(self, head: Job, system: System) -> Iterator[Job]:
        """Yield the jobs that are due, in policy order."""
        if self._due:
            for job in system.queue:
                if job.index in self._due and system.fits(job):
                    yield job

    # --- the plan --------------------------------------------------------------------------------------

    def _missed(self, now: int) -> bool:
        """Tell whether a reservation has passed without its job starting."""
        self._drop_stale()
        return bool(self._due_times) and self._due_times[0][0] < now

    def _drop_stale(self) -> None:
        """Drop due times of reservations that were moved or used."""
        due_times, slots = self._due_times, self._slots
        while due_times and (due_times[0][1] not in slots or slots[due_times[0][1]].start != due_times[0][0]):
            heappop(due_times)

    def _put(self, row: int, estimate: int, nodes: int, now: int) -> None:
        """Give a job the earliest hole."""
        start = self._profile.earliest(nodes, estimate, now)
        self._profile.occupy(start, start + estimate, nodes)
        self._slots[row] = Slot(start, estimate, nodes)
        heappush(self._due_times, (start, row))

    def _compress(self, system: System) -> None:
        """Let every waiting job move to an earlier hole, if jobs that ended early left any.

        Without new room there is nothing to gain, unless the last compression moved jobs: what those left
        behind may suit an earlier one of the queue, which had its turn before them.
        """
        now, profile = system.now, self._profile
        gained = self._moved
        for row in system.ended[self._seen_ends :]:
            expected_end = system.starts[row] + system.estimates[row]
            if expected_end > now:
                profile.occupy(now, expected_end, -system.jobs[row].nodes)
                gained = True
        if not gained:
            return
        self._moved = False
        for job in system.queue:
            slot = self._slots.get(job.index)
            if slot is not None:
                start = profile.earlier(slot.nodes, slot.estimate, slot.start)
                if start != slot.start:
                    self._move(job.index, slot, start)

    def _move(self, row: int, slot: Slot, start: int) -> None:
        """Take a job out of the plan and put it back at another time."""
        self._moved = True
        self._profile.occupy(slot.start, slot.start + slot.estimate, -slot.nodes)
        self._profile.occupy(start, start + slot.estimate, slot.nodes)
        self._slots[row] = slot._replace(start=start)
        heappush(self._due_times, (start, row))

    def _make_anew(self, system: System) -> None:
        """Plan running jobs by their expected ends, then waiting jobs in the order of their reservations."""
        now = system.now
        self._profile = Profile(now, system.cluster.size)
        for expected_end, row, _ in system.running.entries:
            self._profile.occupy(now, max(expected_end, now + 1), system.jobs[row].nodes)
        waiting = sorted(self._slots, key=lambda row: (self._slots[row].start, row))
        slots, self._slots, self._due_times = self._slots, {}, []
        for row in waiting:
            self._put(row, slots[row].estimate, slots[row].nodes, now)

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
