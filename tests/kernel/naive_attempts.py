"""A naive simulator of stopped jobs, second by second, written from the page of semantics; free of the kit's code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Row = tuple[int, int, int, int]
"""Submission, run time, requested time, nodes."""


class Outage(NamedTuple):
    """Beginning, end, nodes, position in [0, 1], and whether jobs end first."""

    start: int
    end: int
    nodes: int
    position: float = 1.0
    drain: bool = False


class Rules(NamedTuple):
    """What stopped jobs keep, and when they return."""

    anew: bool = False
    delay: int = 0
    limit: int | None = None
    checkpoint: int | None = None
    checkpoint_cost: int = 0
    cost: int = 0


@dataclass(eq=False)
class Job:
    """A job and its current attempt."""

    number: int
    submit: int
    run: int
    asked: int
    nodes: int
    tier: int
    arrived: int = 0
    started: int = -1
    done: int = 0
    saved: int = 0
    """Work done, and work safe from failures."""
    failures: int = 0
    pause: int = 0
    """Seconds of the attempt left without work: of a restart or a checkpoint."""
    since: int = 0
    """Work since the last checkpoint."""
    back: int = -1
    attempts: list[tuple[int, int]] = field(default_factory=list)


class NaiveAttempts:
    """FCFS or SJF, with or without EASY and preemption by tiers, on counted nodes that fail."""

    def __init__(
        self,
        rows: Sequence[Row],
        size: int,
        outages: Sequence[Outage],
        rules: Rules,
        *,
        sjf: bool = False,
        easy: bool = False,
        tiers: Sequence[int] | None = None,
        mode: str = "requeue",
        grace: int = 0,
    ) -> None:
        self.jobs = [Job(j, *row, tier=0 if tiers is None else tiers[j]) for j, row in enumerate(rows)]
        self.size, self.rules, self.sjf, self.easy, self.preempts = size, rules, sjf, easy, tiers is not None
        self.outages = sorted(outages, key=lambda each: each.start)
        self.down: list[tuple[int, int]] = []  # until, nodes
        self.owed: list[list[int]] = []  # until, nodes
        self.waiting: list[Job] = []
        self.running: list[Job] = []
        self.stopped: list[Job] = []
        self.suspended: list[Job] = []
        self.mode, self.grace = mode, grace
        self.graces: dict[int, int] = {}
        self.wakes: set[int] = set()
        self.over = 0
        self.clock = 0

    # --- state -------------------------------------------------------------------------------------

    @property
    def free(self) -> int:
        return self.size - sum(job.nodes for job in self.running) - sum(nodes for _, nodes in self.down)

    def extra(self, work: int, again: bool) -> int:
        """Seconds of an attempt without work."""
        every = self.rules.checkpoint
        writes = 0 if every is None else max((work + every - 1) // every - 1, 0)
        return (self.rules.cost if again else 0) + writes * self.rules.checkpoint_cost

    def estimate(self, job: Job) -> int:
        work = max(job.asked - job.saved, 1)
        return work + self.extra(work, bool(job.attempts))

    def enqueue(self, job: Job) -> None:
        self.clock += 1
        job.arrived = self.clock
        self.waiting.append(job)

    # --- verbs -------------------------------------------------------------------------------------

    def start(self, job: Job, now: int) -> None:
        self.waiting.remove(job)
        self.running.append(job)
        job.started, job.done, job.since = now, job.saved, 0
        job.expected = now + self.estimate(job)  # type: ignore[attr-defined]
        job.pause = self.rules.cost if job.attempts else 0

    def stop(self, job: Job, now: int, failed: bool) -> None:
        self.running.remove(job)
        job.attempts.append((job.started, now))
        if not failed and not self.rules.anew:
            job.saved = job.done
        if failed:
            job.failures += 1
            if self.rules.limit is not None and job.failures > self.rules.limit:
                self.over += 1
                return
        if self.rules.delay:
            job.back = now + self.rules.delay
            self.stopped.append(job)
        else:
            self.enqueue(job)

    def preempt(self, job: Job, now: int) -> None:
        if self.mode == "requeue":
            self.stop(job, now, failed=False)
            return
        self.running.remove(job)
        job.attempts.append((job.started, now))
        if self.mode == "cancel":
            self.over += 1
        else:
            job.left = max(job.expected - now, 1)  # type: ignore[attr-defined]
            self.suspended.append(job)

    def resume(self, now: int, least: int) -> None:
        for job in sorted(self.suspended, key=lambda job: -job.tier):
            if job.tier >= least and job.nodes <= self.free:
                self.suspended.remove(job)
                self.running.append(job)
                job.started, job.expected = now, now + job.left  # type: ignore[attr-defined]

    def complete(self, job: Job, now: int) -> bool:
        if job.done < job.run or job.pause:
            return False
        self.running.remove(job)
        job.attempts.append((job.started, now))
        self.over += 1
        return True

    def work(self) -> None:
        """One second of all running jobs."""
        for job in self.running:
            if job.pause:
                job.pause -= 1
                if not job.pause and job.since == self.rules.checkpoint:
                    job.saved, job.since = job.done, 0
                continue
            job.done += 1
            job.since += 1
            if job.since == self.rules.checkpoint and job.done < job.run:
                job.pause = self.rules.checkpoint_cost
                if not job.pause:
                    job.saved, job.since = job.done, 0

    # --- instants ----------------------------------------------------------------------------------

    def simulate(self) -> list[list[tuple[int, int]]]:
        """Return start and end of each attempt of each job."""
        now, again, steps = 0, False, 0
        while self.over < len(self.jobs):
            steps += 1
            assert steps < 20_000, "some job never ends"
            change = self.instant(now, again)
            if change and (self.waiting or self.mode == "suspend"):
                self.do_pass(now)
                self.drain(now)
            again = any(job.run == job.done and not job.pause for job in self.running)
            if not again:
                self.work()
                now += 1
        return [job.attempts for job in self.jobs]

    def instant(self, now: int, again: bool) -> bool:
        change = bool([job for job in list(self.running) if self.complete(job, now)])
        self.drain(now)
        if again:
            return change
        back = [each for each in self.down if each[0] == now]
        self.down = [each for each in self.down if each[0] != now]
        self.drain(now)
        for outage in self.outages:
            if outage.start == now:
                self.fail(outage, now)
                change = True
        for job in sorted(self.jobs, key=lambda job: (job.submit, job.number)):
            if job.submit == now:
                self.enqueue(job)
                change = True
        for job in [job for job in self.stopped if job.back == now]:  # those that stopped first return first
            self.stopped.remove(job)
            job.back = -1
            self.enqueue(job)
            change = True
        return change or bool(back) or now in self.wakes

    def fail(self, outage: Outage, now: int) -> None:
        if outage.drain:
            self.owed.append([outage.end, outage.nodes])
        else:
            names: list[Job | None] = []
            for job in sorted(self.running, key=lambda job: (job.started, job.number)):
                names += [job] * job.nodes
            names += [None] * self.free
            count = min(outage.nodes, len(names))
            first = min(int(outage.position * len(names)), len(names) - count)
            for job in dict.fromkeys(names[first : first + count]):
                if job is not None:
                    self.stop(job, now, failed=True)
            self.owed.append([outage.end, count])
        self.drain(now)

    def drain(self, now: int) -> None:
        for owed in self.owed:
            if owed[0] > now:
                taken = min(owed[1], self.free)
                owed[1] -= taken
                if taken:
                    self.down.append((owed[0], taken))
        self.owed = [owed for owed in self.owed if owed[1] and owed[0] > now]

    # --- passes ------------------------------------------------------------------------------------

    def key(self, job: Job) -> tuple[int, int]:
        return (job.asked if self.sjf else job.submit, job.arrived)

    def do_pass(self, now: int) -> None:
        self.resume(now, max((job.tier for job in self.waiting), default=-1))
        self.start_jobs(now)
        self.resume(now, -1)
        highest = max((job.tier for job in self.waiting), default=-1)
        self.graces = {number: at for number, at in self.graces.items() if self.jobs[number].tier < highest}

    def start_jobs(self, now: int) -> None:
        while self.waiting:
            head = min(self.waiting, key=self.key)
            if head.nodes > self.free and not (self.preempts and self.make_room(head, now)):
                break
            self.start(head, now)
        if not self.waiting or not self.easy:
            return
        releases = [(max(job.expected, now + 1), job.nodes) for job in self.running]  # type: ignore[attr-defined]
        releases += self.down
        shadow = min(
            at for at, _ in releases if self.free + sum(n for each, n in releases if each <= at) >= head.nodes
        )
        extra = self.free + sum(n for each, n in releases if each <= shadow) - head.nodes
        for job in sorted(self.waiting, key=self.key):
            if job is head or job not in self.waiting or job.nodes > self.free:
                continue
            if now + self.estimate(job) <= shadow:
                self.start(job, now)
            elif job.nodes <= extra:
                extra -= job.nodes
                self.start(job, now)

    def make_room(self, head: Job, now: int) -> bool:
        lower = sorted(
            (job for job in self.running if job.tier < head.tier and job.number not in self.graces),
            key=lambda job: (job.tier, -job.started, job.number),
        )
        mine = [number for number in self.graces if self.jobs[number].tier < head.tier]
        mine_running = [self.jobs[number] for number in mine if self.jobs[number] in self.running]
        coming = self.free + sum(job.nodes for job in mine_running)
        if coming >= head.nodes:
            if not all(self.graces[job.number] <= now for job in mine_running):
                return False
            for job in mine_running:
                self.preempt(job, now)
            return True
        chosen: list[Job] = []
        for job in lower:
            if coming + sum(each.nodes for each in chosen) < head.nodes:
                chosen.append(job)
        if coming + sum(each.nodes for each in chosen) < head.nodes:
            return False
        for job in chosen[:-1]:
            if coming + sum(each.nodes for each in chosen) - job.nodes >= head.nodes:
                chosen.remove(job)
        for job in chosen:
            if self.grace:
                self.graces[job.number] = now + self.grace
                self.wakes.add(now + self.grace)
            else:
                self.preempt(job, now)
        return not self.grace
