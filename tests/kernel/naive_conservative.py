"""Conservative backfilling on homogeneous nodes, written from the page of the semantics and free of the kit's code.

Plain lists; the profile is made from scratch in each pass. It takes minutes for logs of tens of thousands of jobs.
A job is a tuple ``(submit, run, estimate, nodes)``; a run time above the estimate exceeds it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import accumulate

Row = tuple[int, int, int, int]


def first_come(job: Row, now: int) -> float:
    """Return the score of FCFS."""
    return 0


def wfp3(job: Row, now: int) -> float:
    """Return the score of WFP3."""
    submit, _, estimate, nodes = job
    return -(((now - submit) / estimate) ** 3) * nodes


def shortest_first(job: Row, now: int) -> float:
    """Return the score of SJF."""
    return job[2]


SCORES = {"fcfs": first_come, "sjf": shortest_first, "wfp3": wfp3}
"""Orders by name: smaller scores come first, at ties the earlier arrival."""


class Profile:
    """The nodes that are free from each of some instants on, if all goes as planned.

    Parameters
    ----------
    now : int
        The first instant [s].
    free : int
        Nodes that are free if nothing is planned.
    planned : sequence of (int, int, int)
        What is planned: begin [s], end [s] and nodes.
    """

    def __init__(self, now: int, free: int, planned: Sequence[tuple[int, int, int]]) -> None:
        change = {now: free}
        for begin, end, nodes in planned:
            begin = max(begin, now)
            change[begin] = change.get(begin, 0) - nodes
            change[end] = change.get(end, 0) + nodes
        self.times = sorted(change)
        self.free = list(accumulate(change[at] for at in self.times))

    def take(self, begin: int, end: int, nodes: int) -> None:
        """Plan some nodes in [begin, end), or take them back if their number is negative."""
        for at in (begin, end):
            place = bisect_left(self.times, at)
            if place == len(self.times) or self.times[place] != at:
                self.times.insert(place, at)
                self.free.insert(place, self.free[place - 1])
        for place in range(bisect_left(self.times, begin), bisect_left(self.times, end)):
            self.free[place] -= nodes

    def earliest(self, nodes: int, seconds: int) -> int:
        """Return the first instant from which on so many nodes are free for so long."""
        begin = None
        for at, free in zip(self.times, self.free, strict=True):
            if begin is not None and at >= begin + seconds:
                break
            if free < nodes:
                begin = None
            elif begin is None:
                begin = at
        assert begin is not None
        return begin


@dataclass
class Schedule:
    """What happened: start times and modes by job, instants of passes, and questions to the inspector."""

    starts: list[int]
    modes: list[str]
    passes: list[int] = field(default_factory=list)
    asked: list[tuple[int, int]] = field(default_factory=list)
    exceeded: int = 0
    """Number of passes while a job exceeded its estimate."""


class NaiveConservative:
    """One run.

    Parameters
    ----------
    jobs : sequence of Row
        The jobs; they arrive in this order, if at the same instant.
    size : int
        Number of nodes.
    score : callable
        The order: smaller scores come first, at ties the earlier arrival.
    holds : callable, optional
        Whether the inspector holds a job at some instant, if any jobs run or are to come.
    interval : int, optional
        Seconds after a hold at which there is a pass.
    period : int
        Passes are at multiples of it only.
    windows : sequence of (int, int, int)
        Windows of the calendar: begin [s], end [s], and the nodes that are gone.
    correct : callable, optional
        Returns another estimate for a job that reaches its own at a pass, from the job and the time it has run.
    """

    def __init__(
        self,
        jobs: Sequence[Row],
        size: int,
        score: Callable[[Row, int], float] = first_come,
        holds: Callable[[int, int], bool] | None = None,
        interval: int | None = None,
        period: int = 1,
        correct: Callable[[Row, int], int] | None = None,
        windows: Sequence[tuple[int, int, int]] = (),
    ) -> None:
        self.jobs, self.size, self.score = jobs, size, score
        self.holds, self.interval, self.period = holds, interval, period
        self.correct, self.windows = correct, windows
        self.edges = sorted({at for begin, end, _ in windows for at in (begin, end)})
        self.estimates = [estimate for _, _, estimate, _ in jobs]
        self.coming = sorted(range(len(jobs)), key=lambda j: jobs[j][0])[::-1]
        self.waiting: list[int] = []
        self.running: set[int] = set()
        self.reserved: dict[int, int] = {}  # start of each waiting job's reservation
        self.blocked: set[int] = set()  # jobs that were ever the first that did not start
        self.ends: list[tuple[int, int]] = []
        self.wakes: list[int] = []
        self.next_start: int | None = None
        self.last_pass = -1
        self.now = min((job[0] for job in jobs), default=0) - 1
        self.some_ended = self.exceeds = self.exceeded = False
        self.schedule = Schedule([-1] * len(jobs), [""] * len(jobs))

    def run(self) -> Schedule:
        """Go from event to event: all ends of an instant, all submissions, then a pass if jobs wait."""
        coming = self.coming
        while coming or self.waiting or self.running:
            instants = [self.ends[0][0]] if self.ends else []
            instants += [self.jobs[coming[-1]][0]] if coming else []
            instants += self.wakes[:1]
            instants += [self.next_start] if self.next_start is not None else []
            instants += [at for at in self.edges if at > self.now][:1]
            now = self.now = min(instants)
            while self.wakes and self.wakes[0] == now:
                heappop(self.wakes)
            if self.next_start == now:
                self.next_start = None
            while self.ends and self.ends[0][0] == now:
                self.running.remove(heappop(self.ends)[1])
                self.some_ended = True
            while coming and self.jobs[coming[-1]][0] == now:
                self.waiting.append(coming.pop())
            if self.waiting and now % self.period == 0:
                self.do_pass(now)
            elif self.waiting:
                heappush(self.wakes, now + -now % self.period)
        return self.schedule

    def expected_end(self, j: int, now: int) -> int:
        """Return when a running job is expected to end: always one second from now, if it exceeds its estimate."""
        return max(self.schedule.starts[j] + self.estimates[j], now + 1)

    def do_pass(self, now: int) -> None:
        """Update the plan, start what may start, and say when the next reservation starts."""
        self.schedule.passes.append(now)
        self.waiting.sort(key=lambda j: (self.score(self.jobs[j], now), self.jobs[j][0], j))
        late = [j for j in self.running if self.schedule.starts[j] + self.estimates[j] <= now]
        for j in late if self.correct is not None else ():
            self.estimates[j] = self.correct(self.jobs[j], now - self.schedule.starts[j])
        corrected = self.correct is not None and bool(late)
        self.exceeds = self.correct is None and bool(late)
        self.schedule.exceeded += self.exceeds
        self.update_plan(now, corrected)
        self.exceeded, self.some_ended, self.last_pass = self.exceeds, False, now
        self.start_jobs(now)
        soonest = now + self.exceeds  # one second from now is no time to wait for
        self.next_start = min((at for at in self.reserved.values() if at > soonest), default=None)

    def update_plan(self, now: int, corrected: bool) -> None:
        """Make the plan anew, or move reservations to earlier slots; then reserve slots for new jobs."""
        late = any(at < now or at <= self.last_pass for at in self.reserved.values())
        new = sorted((j for j in self.waiting if j not in self.reserved), key=lambda j: (self.jobs[j][0], j))
        if self.exceeds or self.exceeded or corrected or late:
            anew, self.reserved = sorted(self.reserved, key=lambda j: (self.reserved[j], j)), {}
            profile = self.profile(now)
            for j in anew:
                self.reserve(j, profile)
        else:
            profile = self.profile(now) if self.some_ended or new else None
            for j in self.waiting if self.some_ended else ():
                if j in self.reserved:
                    self.move(j, profile)
        for j in new:
            self.reserve(j, profile)

    def profile(self, now: int) -> Profile:
        """Return the profile of running jobs and reservations."""
        jobs = self.jobs
        running = [(now, self.expected_end(j, now), jobs[j][3]) for j in self.running]
        reserved = [(at, at + jobs[j][2], jobs[j][3]) for j, at in self.reserved.items()]
        gone = [window for window in self.windows if window[1] > now]
        return Profile(now, self.size, running + reserved + gone)

    def reserve(self, j: int, profile: Profile) -> None:
        """Reserve the earliest feasible slot."""
        _, _, estimate, nodes = self.jobs[j]
        at = self.reserved[j] = profile.earliest(nodes, estimate)
        profile.take(at, at + estimate, nodes)

    def move(self, j: int, profile: Profile) -> None:
        """Move a reservation to an earlier slot, if there is one."""
        _, _, estimate, nodes = self.jobs[j]
        before = self.reserved[j]
        profile.take(before, before + estimate, -nodes)
        self.reserve(j, profile)
        assert self.reserved[j] <= before

    def start_jobs(self, now: int) -> None:
        """Start jobs from the head of the order; behind the first that may not start yet, all that may."""
        queue = list(self.waiting)
        while queue:
            j = queue[0]
            if self.holds is not None:
                self.schedule.asked.append((now, j))
                if self.holds(j, now) and (self.running or self.coming):
                    if self.interval is not None:
                        heappush(self.wakes, now + self.interval)
                    return
            if self.reserved[j] > now:
                break
            self.start(queue.pop(0), now, "reserved" if j in self.blocked else "ready")
        if queue:
            self.blocked.add(queue[0])
        for j in queue:
            if self.reserved[j] <= now:
                self.start(j, now, "backfilled")

    def start(self, j: int, now: int, mode: str) -> None:
        """Start a job whose reservation is due."""
        self.schedule.starts[j], self.schedule.modes[j] = now, mode
        self.waiting.remove(j)
        self.running.add(j)
        del self.reserved[j]
        heappush(self.ends, (now + self.jobs[j][1], j))
        used = sum(self.jobs[i][3] for i in self.running)
        assert used <= self.size, "reservations that are due fit"
