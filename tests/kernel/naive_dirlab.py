"""The published simulators once more, as slow and literal as their rules are written down.

Lists that are sorted again and again, one event after the other; nothing is taken from the kernel but jobs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpcsimkit.jobs.job import Job

Key = Callable[[Job], Any]
Rejects = Callable[[int, Job], bool]
"""Is the job of step so-and-so rejected?"""


class Machine:
    """Clock, queue and running jobs of one sequence."""

    def __init__(self, jobs: list[Job], nodes: int, following: int | None) -> None:
        self.jobs, self.free, self.following = jobs, nodes, following
        self.now = jobs[0].submit_time
        self.queue, self.arrived = [jobs[0]], 1
        self.running: list[Job] = []
        self.starts: dict[int, int] = {}

    def end(self, job: Job) -> int:
        return self.starts[job.index] + job.run_time

    def expected(self, job: Job) -> int:
        return self.starts[job.index] + job.requested_time

    @property
    def more(self) -> bool:
        return self.arrived < len(self.jobs)

    def fits(self, job: Job) -> bool:
        return job.nodes <= self.free

    def start(self, job: Job) -> None:
        assert self.fits(job)
        self.free -= job.nodes
        self.starts[job.index] = self.now
        self.running.append(job)
        self.queue.remove(job)

    def advance(self) -> None:
        """Let one thing happen; a submission comes before an end."""
        self.running.sort(key=self.end)
        if self.more and (
            not self.running or self.jobs[self.arrived].submit_time <= self.end(self.running[0])
        ):
            job = self.jobs[self.arrived]
            self.now = max(self.now, job.submit_time)
            self.arrived += 1
            self.queue.append(job)
            return
        job = self.running.pop(0)
        self.now = max(self.now, self.end(job))
        self.free += job.nodes

    def reservation(self, head: Job) -> int:
        self.running.sort(key=self.expected)
        free = self.free
        for job in self.running:
            free += job.nodes
            if free >= head.nodes:
                return self.expected(job)
        raise AssertionError

    def backfill(self, head: Job, before: float, skips: bool) -> None:
        self.queue.sort(key=lambda job: job.submit_time)
        for job in self.queue if skips else list(self.queue):
            if job is not head and self.now + job.requested_time < before and self.fits(job):
                self.start(job)

    def reject(self) -> None:
        """Let time pass after a rejection."""
        following = self.jobs[self.arrived].submit_time if self.more else self.following
        ends = [self.end(job) for job in self.running]
        if not self.more and not ends:
            return
        if self.now + 600 < min([*ends, *([following] if following is not None else [])]):
            self.now += 600
        else:
            self.advance()


def simulate(
    jobs: list[Job], nodes: int, key: Key, *, backfilling: bool, skips: bool = False, relax: float = 0.0,
    rejects: Rejects | None = None, following: int | None = None,
) -> tuple[list[int], int]:  # fmt: skip
    """Return when each job starts, and how many were inspected, counted with every rejection."""
    machine = Machine(jobs, nodes, following)
    held: dict[int, int] = {}
    steps = 0
    while True:
        while not machine.queue and machine.more:
            machine.advance()
        if not machine.queue:
            return [machine.starts[job.index] for job in jobs], steps
        machine.queue.sort(key=key)
        head = machine.queue[0]
        steps += 1
        if rejects and held.get(head.index, 0) < 72 and rejects(steps - 1, head):
            held[head.index] = held.get(head.index, 0) + 1
            machine.reject()
            continue
        if not machine.fits(head):
            shadow = machine.reservation(head)
            before = shadow + relax * (shadow - head.submit_time)
            while not machine.fits(head):
                if backfilling:
                    machine.backfill(head, before, skips)
                machine.advance()
        machine.start(head)
