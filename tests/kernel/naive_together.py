"""A naive simulator of attempts, outages, windows, gates and preemption together, on any cluster.

Second by second, everything recomputed, written from the page of semantics and free of the kit's code.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.kernel.naive_gates import NEVER, Intervals
from tests.kernel.naive_state import (
    SHUT,
    Given,
    Job,
    Level,
    NaiveState,
    Outage,
    Part,
    enough,
    minus,
)


class Together(NaiveState):
    """FCFS or SJF, with or without EASY and preemption by tiers, on homogeneous nodes, machines or partitions."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.intervals = Intervals()
        self.rejected: set[int] = set()
        self.clock = self.passes = 0

    @property
    def whole(self) -> bool:
        """Whether there are no partitions, or one that is the whole cluster."""
        return len(self.parts) == 1 and len(self.parts[0].machines) == len(self.empty)

    @property
    def over(self) -> bool:
        return len(self.facts.over) == len(self.jobs)

    # --- jobs ----------------------------------------------------------------------------------------

    def want(self, part: Part) -> None:
        part.wanted |= bool(part.waiting) or (self.policy.preempts and self.policy.mode == "suspend")

    def touched(self, machines: Iterable[int]) -> None:
        for part in self.parts:
            if not set(machines).isdisjoint(part.machines):
                self.want(part)

    def start(self, job: Job, where: Given, part: Part) -> None:
        for each in self.parts:
            if job in each.waiting:
                each.waiting.remove(job)
                if each is not part:
                    self.want(each)
        job.expected = self.now + self.estimate(job)
        job.started, job.done, job.since, job.where = self.now, job.saved, 0, where
        job.pause = self.rules.cost if job.attempts else 0
        self.running.append(job)
        self.gates.leave(job.number)
        self.facts.started.setdefault(job.number, self.now)
        for other in {id(each): each for every in self.parts for each in every.waiting}.values():
            if self.reason(other):
                self.held.append(other)
                for each in self.parts:
                    if other in each.waiting:
                        each.waiting.remove(other)
                        each.left = True

    def end_attempt(self, job: Job) -> None:
        """Let a job leave its machines."""
        self.running.remove(job)
        job.attempts.append((job.started, self.now))
        job.places.append(tuple(sorted(job.where)))
        for part in self.parts:
            part.graces.pop(job.number, None)
        self.touched(job.where)

    def stop(self, job: Job, *, failed: bool) -> None:
        if job in self.suspended:
            self.suspended.remove(job)
            self.touched(job.where)
        else:
            self.end_attempt(job)
        if not failed and not self.rules.anew:
            job.saved = job.done
        job.failures += failed
        if failed and self.rules.limit is not None and job.failures > self.rules.limit:
            self.facts.over[job.number] = "ill"
        elif self.rules.delay:
            job.back = self.now + self.rules.delay
            self.delayed.append(job)
        else:
            self.ask(job)

    def preempt(self, job: Job) -> None:
        if self.policy.mode == "requeue":
            self.stop(job, failed=False)
            return
        job.left = max(job.expected - self.now, 1)
        self.end_attempt(job)
        if self.policy.mode == "cancel":
            self.facts.over[job.number] = "ill"
        else:
            self.suspended.append(job)

    def resume(self, least: int, part: Part) -> None:
        for job in sorted(self.suspended, key=lambda job: -job.tier):
            level = self.room(job, self.now, job.left, part, [job])
            if job.tier >= least and all(
                min(a - b for a, b in zip(level[n], given, strict=True)) >= 0
                for n, given in job.where.items()
            ):
                self.suspended.remove(job)
                self.running.append(job)
                job.started, job.expected = self.now, self.now + job.left

    def complete(self, job: Job) -> bool:
        return job.done >= job.run and not job.pause

    def work(self) -> None:
        """One second of all running jobs."""
        every = self.rules.checkpoint
        for job in self.running:
            if job.pause:
                job.pause -= 1
                if not job.pause and job.since == every:
                    job.saved, job.since = job.done, 0
                continue
            job.done += 1
            job.since += 1
            if job.since == every and job.done < job.run:
                job.pause = self.rules.checkpoint_cost
                if not job.pause:
                    job.saved, job.since = job.done, 0

    # --- gates ---------------------------------------------------------------------------------------

    def reason(self, job: Job) -> str:
        present = [each.number for each in [*self.running, *self.suspended]]
        return self.gates.reason(job.number, present, self.now)

    def may_change(self, job: Job) -> bool:
        return self.reason(job) in ("", NEVER) or self.gates.is_new(job.number, self.now)

    def ask(self, job: Job) -> None:
        """Let a job that is due join its queues, hold it, or reject it."""
        self.gates.take_turn(job.number, self.now)
        reason = self.reason(job)
        if reason == NEVER:
            self.rejected.add(job.number)
            self.facts.over[job.number] = "rejected"
            self.facts.started.setdefault(job.number, self.now)  # as good as started for those after it
        elif reason:
            self.held.append(job)
        else:
            self.clock += 1
            job.arrived = self.clock
            for number in job.partitions:
                self.parts[number].waiting.append(job)
                self.parts[number].wanted = True

    def join(self, coming: list[Job]) -> None:
        """Ask about those that are submitted now and those that may start now, in the order of the log."""
        while asked := min(
            [*coming, *filter(self.may_change, self.held)], key=lambda job: job.number, default=None
        ):
            (coming if asked in coming else self.held).remove(asked)
            self.ask(asked)

    # --- instants ------------------------------------------------------------------------------------

    def simulate(self) -> list[list[tuple[int, int]]]:
        """Return start and end of each attempt of each job."""
        again = False
        while not self.over:
            self.events(again)
            again = self.do_passes()
            if not again:
                self.intervals.note(self.now, {job.number: self.reason(job) for job in self.held})
                self.work()
                self.now += 1
                assert self.now < 5000, "stalled"
        self.intervals.note(self.now, {})
        return [job.attempts for job in self.jobs]

    def events(self, again: bool) -> None:
        """All that happens in an instant before its pass."""
        now = self.now
        for job in [job for job in self.running if self.complete(job)]:
            self.end_attempt(job)
            well = not self.gates.wishes[job.number].failed
            self.facts.over[job.number] = "well" if well else "ill"
        self.drain()
        if not again:
            for until, given in self.down:
                if until == now:
                    self.touched(given)
            self.down = [each for each in self.down if each[0] != now]
            self.owed = [each for each in self.owed if each[0].end > now]
            self.drain()
            for outage in self.outages:
                if outage.start == now:
                    self.fail(outage)
            self.turned = now
            self.drain()
            if self.calendar_changes():
                for part in self.parts:
                    self.want(part)
        self.join([job for job in self.jobs if job.submit == now and not again])
        for job in [job for job in self.delayed if job.back == now]:  # those that stopped first return first
            self.delayed.remove(job)
            self.ask(job)
        for part in self.parts:
            if now in part.wakes or part.left:
                self.want(part)
            part.wakes.discard(now)
            part.left = False

    def calendar_changes(self) -> bool:
        """Whether another number of nodes is gone than before, or a window on machines begins or ends."""
        if self.counted:
            return self.gone(self.now) != self.gone(self.now - 1)
        return any(self.now in (window.start, window.end) for window in self.windows)

    def fail(self, outage: Outage) -> None:
        """Stop the jobs on the nodes of an outage unless they drain, and take the nodes."""
        running = sorted(self.running, key=lambda job: (job.started, job.number))
        owed = outage.nodes
        if self.counted and not outage.drain:
            names: list[Job | None] = [job for job in running for _ in range(job.amounts[0])]
            names += [None] * self.level(self.now)[0][0]
            owed = min(outage.nodes, len(names))
            first = min(int(outage.position * len(names)), len(names) - owed)
            for job in dict.fromkeys(names[first : first + owed]):
                if job is not None:
                    self.stop(job, failed=True)
        elif not outage.drain:
            for job in [*self.suspended, *running]:
                if not set(outage.machines).isdisjoint(job.where):
                    self.stop(job, failed=True)
        self.owed.append((outage, owed))
        if self.whole:
            self.want(self.parts[0])
        self.drain()

    def drain(self) -> None:
        """Take what is free of the outages that are not complete; those that began first take first."""
        for number, (outage, owed) in enumerate(self.owed):
            free = self.level(self.now)
            if self.counted:
                taken = max(min(owed, free[0][0]), 0)
                self.owed[number] = outage, owed - taken
                given: Given = {0: (taken,)} if taken else {}
            else:
                given = {machine: free[machine] for machine in outage.machines if any(free[machine])}
            if given:
                self.down.append((outage.end, given))
                if not self.whole:  # else a pass takes place as outages begin
                    self.touched(given)

    def do_passes(self) -> bool:
        """Make the passes of this instant; return whether something happens before the next one."""
        while part := next((part for part in self.ranked if part.wanted), None):
            self.passes += 1
            self.do_pass(part)
            part.wanted = False
            if any(map(self.complete, self.running)) or any(map(self.may_change, self.held)):
                return True
            if any(each.left for each in self.parts):
                return True
            self.drain()
        return False

    # --- passes --------------------------------------------------------------------------------------

    def key(self, job: Job) -> tuple[int, int]:
        return (job.asked if self.policy.sjf else job.submit, job.arrived)

    def do_pass(self, part: Part) -> None:
        self.resume(max((job.tier for job in part.waiting), default=-1), part)
        self.start_jobs(part)
        self.resume(-1, part)
        highest = max((job.tier for job in part.waiting), default=-1)
        part.graces = {number: at for number, at in part.graces.items() if self.jobs[number].tier < highest}

    def start_jobs(self, part: Part) -> None:
        while part.waiting:
            head = min(part.waiting, key=self.key)
            where = self.place(head, self.now_for(head, part))
            if where is None and self.policy.preempts and self.make_room(head, part):
                where = self.place(head, self.now_for(head, part))
            if where is None:
                break
            self.start(head, where, part)
        if part.waiting and self.policy.easy:
            if any(
                self.counted or not set(w.machines).isdisjoint(part.machines)
                for w in self.windows
                if w.end > self.now
            ):
                self.backfill_beside_windows(head, part)
            else:
                self.backfill(head, part)

    def ends(self, part: Part) -> list[int]:
        """When is something expected to become free?"""
        found = {max(job.expected, self.now + 1) for job in self.running} | {until for until, _ in self.down}
        found |= {self.last_release() + job.left for job in self.suspended}
        return sorted(found | {window.end for window in self.windows if window.end > self.now})

    def backfill(self, head: Job, part: Part) -> None:
        def within(level: Level) -> Level:
            return [there if n in part.machines else SHUT for n, there in enumerate(level)]

        shadow = next(at for at in self.ends(part) if self.place(head, within(self.level(at))))
        later = within(self.level(shadow))
        for job in sorted(part.waiting, key=self.key):
            if job is head or job not in part.waiting:
                continue
            free = within(self.level(self.now))
            lasting = self.now + self.estimate(job) > shadow
            if lasting:
                hosts = [n for n, there in enumerate(later) if there != SHUT and enough(there, head.amounts)]
                usable = [n for n, there in enumerate(free) if there != SHUT and enough(there, job.amounts)]
                critical = [
                    n
                    for n in usable
                    if n in hosts and not enough(minus(later, {n: job.amounts})[n], head.amounts)
                ]
                spare = len(hosts) - head.nodes
                free = [SHUT if n in critical[spare:] else there for n, there in enumerate(free)]
            where = self.place(job, free)
            if where is not None:
                self.start(job, where, part)
                later = minus(later, where) if lasting else later

    def backfill_beside_windows(self, head: Job, part: Part) -> None:
        """Backfill beside a reservation of the head that holds machines throughout its slot."""
        seconds = self.estimate(head)
        found = ((at, self.place(head, self.room(head, at, seconds, part))) for at in self.ends(part))
        begin, where = next((at, where) for at, where in found if where is not None)
        reserved = begin, begin + seconds, where
        for job in sorted(part.waiting, key=self.key):
            if job is not head and job in part.waiting:
                where = self.place(job, self.room(job, self.now, self.estimate(job), part, (), reserved))
                if where is not None:
                    self.start(job, where, part)

    # --- preemption ----------------------------------------------------------------------------------

    def make_room(self, head: Job, part: Part) -> bool:
        """Stop jobs of lower tiers so that the head fits, or let them begin their grace; return whether it may."""
        grace = self.policy.grace

        def fits_without(jobs: Sequence[Job]) -> bool:
            return self.place(head, self.now_for(head, part, jobs)) is not None

        lower = [
            job
            for job in self.running
            if job.tier < head.tier and not set(job.where).isdisjoint(part.machines)
        ]
        mine = [job for job in lower if job.number in part.graces]
        if mine and fits_without(mine):
            due = all(part.graces[job.number] <= self.now for job in mine)
            for job in sorted(mine, key=lambda job: list(part.graces).index(job.number)) if due else ():
                self.preempt(job)
            return due
        chosen: list[Job] = []
        rest = [job for job in lower if job not in mine]
        for job in sorted(rest, key=lambda job: (job.tier, -job.started, job.number)):
            if not fits_without([*mine, *chosen]):
                chosen.append(job)
        if not fits_without([*mine, *chosen]):
            return False
        for job in chosen[:-1]:
            if fits_without([*mine, *(each for each in chosen if each is not job)]):
                chosen.remove(job)
        for job in chosen:
            if grace:
                part.graces[job.number] = self.now + grace
                part.wakes.add(self.now + grace)
            else:
                self.preempt(job)
        return not grace
