"""The state of a naive simulator of all features together: jobs, machines, and what is free when.

Homogeneous nodes are one machine on which each job asks for its nodes, and a cluster without partitions is a single
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.kernel.naive_gates import Facts, Gates, Wishes

Level = list[tuple[int, ...]]
Given = dict[int, tuple[int, ...]]
SHUT = (-1, -1)

NOTHING: tuple[int, int, Given] = (0, 0, {})
"""No reservation."""


class Rules(NamedTuple):
    """What stopped jobs keep, and when they return."""

    anew: bool = False
    delay: int = 0
    limit: int | None = None
    checkpoint: int | None = None
    checkpoint_cost: int = 0
    cost: int = 0


class Outage(NamedTuple):
    """Beginning, end, machines (or nodes from a position on), and whether jobs end first."""

    start: int
    end: int
    machines: tuple[int, ...] = (0,)
    nodes: int = 0
    position: float = 1.0
    drain: bool = False


class Window(NamedTuple):
    """Beginning, end, machines (or a number of nodes), and the jobs for which it is reserved."""

    start: int
    end: int
    machines: tuple[int, ...] = (0,)
    nodes: int = 0
    open_to: tuple[int, ...] = ()


class Rank(NamedTuple):
    """The rules of the policy."""

    sjf: bool = False
    easy: bool = False
    preempts: bool = False
    mode: str = "requeue"
    grace: int = 0


@dataclass(eq=False)
class Job:
    """What a job asks for on each of its machines and in which partitions, and its current attempt."""

    number: int
    submit: int
    run: int
    asked: int
    nodes: int
    tier: int
    amounts: tuple[int, ...]
    partitions: tuple[int, ...] = (0,)
    arrived: int = 0
    where: Given = field(default_factory=dict)
    started: int = -1
    expected: int = 0
    left: int = 0
    """Time from a suspension to the expected end."""
    done: int = 0
    saved: int = 0
    """Work done, and work safe from failures."""
    since: int = 0
    """Work since the last checkpoint."""
    pause: int = 0
    """Seconds of the attempt left without work: of a restart or a checkpoint."""
    failures: int = 0
    back: int = -1
    attempts: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)
    """Machines of each attempt."""


@dataclass(eq=False)
class Part:
    """A partition with the memory of its copy of the policy."""

    machines: tuple[int, ...]
    priority: int = 0
    waiting: list[Job] = field(default_factory=list)
    wanted: bool = False
    left: bool = False
    """Whether a job has left the queue in a pass, so that another one follows."""
    graces: dict[int, int] = field(default_factory=dict)
    wakes: set[int] = field(default_factory=set)


def plus(level: Level, given: Given, sign: int = 1) -> Level:
    found = list(level)
    for machine, amounts in given.items():
        found[machine] = tuple(a + sign * b for a, b in zip(found[machine], amounts, strict=True))
    return found


def minus(level: Level, given: Given) -> Level:
    return plus(level, given, -1)


def enough(there: tuple[int, ...], asked: tuple[int, ...]) -> bool:
    return all(a >= b for a, b in zip(there, asked, strict=True))


class NaiveState:
    """The jobs of a run and its machines, what is free and what will be."""

    def __init__(
        self,
        jobs: Sequence[Job],
        empty: Level,
        parts: Sequence[Part],
        rules: Rules,
        policy: Rank,
        wishes: Sequence[Wishes],
        pools: Mapping[str, int],
        outages: Sequence[Outage] = (),
        windows: Sequence[Window] = (),
        *,
        counted: bool = False,
    ) -> None:
        self.jobs, self.empty, self.parts = list(jobs), list(empty), list(parts)
        self.rules, self.policy, self.counted = rules, policy, counted
        self.ranked = sorted(self.parts, key=lambda part: -part.priority)
        self.windows = windows
        for_all = [w for w in windows if not counted and not w.open_to]
        planned = [Outage(w.start, w.end, w.machines, drain=True) for w in for_all]
        self.outages = sorted([*outages, *planned], key=lambda each: each.start)  # planned ones come last
        self.owed: list[tuple[Outage, int]] = []
        self.down: list[tuple[int, Given]] = []
        self.running: list[Job] = []
        self.suspended: list[Job] = []
        self.delayed: list[Job] = []
        self.held: list[Job] = []
        self.facts = Facts([job.submit for job in self.jobs])
        self.gates = Gates(wishes, pools, self.facts)
        self.now = 0
        self.turned = 0
        """Until when the calendar has been followed: its changes come after outages, but not at the beginning."""

    # --- capacity ------------------------------------------------------------------------------------

    def gone(self, at: int) -> Given:
        """Homogeneous nodes that are gone."""
        return {0: (sum(w.nodes for w in self.windows if w.start <= at < w.end),)} if self.counted else {}

    def level(self, at: int, without: Sequence[Job] = ()) -> Level:
        """What is free now, or as expected at a later time if no job starts, and some are stopped or go on."""
        level = list(self.empty)
        for job in self.running:
            if job in without:
                level = minus(level, self.memory(job) if self.policy.mode == "suspend" else {})
            elif at == self.now or max(job.expected, self.now + 1) > at:
                level = minus(level, job.where)
        for until, given in self.down:
            if at == self.now or until > at:
                level = minus(level, given)
        for job in self.suspended:
            lasts = at == self.now or at < self.last_release() + job.left
            if lasts and job not in without:
                level = minus(level, self.memory(job))
        return minus(level, self.gone(self.turned if at == self.now else at))

    def memory(self, job: Job) -> Given:
        return {} if self.counted else {number: (0, amounts[1]) for number, amounts in job.where.items()}

    def last_release(self) -> int:
        """When is everything expected to be free but the memory of suspended jobs?"""
        running = [job.expected for job in self.running]
        return max([self.now + 1, *running, *(until for until, _ in self.down)])

    def closed(self, job: Job, begin: int, end: int) -> set[int]:
        """Machines with a window within a time that is not for the job."""
        if self.counted:
            return set()
        meets = [w for w in self.windows if w.start < end and begin < w.end and job.number not in w.open_to]
        return {number for window in meets for number in window.machines}

    def room(
        self,
        job: Job,
        begin: int,
        seconds: int,
        part: Part,
        without: Sequence[Job] = (),
        reserved: tuple[int, int, Given] = NOTHING,
    ) -> Level:
        """What a job may use of a partition from an instant on for as long as it is expected to take.

        Some jobs are to be stopped, or to go on; a reservation (begin, end, what) is kept.
        """
        end = begin + seconds
        changes = {begin} | {w.start for w in self.windows if self.counted and begin < w.start < end}
        changes |= {reserved[0]} if begin < reserved[0] < end else set()
        levels = []
        for at in changes:
            level = self.level(at, without)
            levels.append(minus(level, reserved[2]) if reserved[0] <= at < reserved[1] else level)
        least: Level = [
            tuple(map(min, *rows)) if len(rows) > 1 else rows[0] for rows in zip(*levels, strict=True)
        ]
        shut = self.closed(job, begin, end)
        return [there if n in part.machines and n not in shut else SHUT for n, there in enumerate(least)]

    def now_for(self, job: Job, part: Part, without: Sequence[Job] = ()) -> Level:
        return self.room(job, self.now, self.estimate(job), part, without)

    def place(self, job: Job, level: Level) -> Given | None:
        able = [number for number, there in enumerate(level) if there != SHUT and enough(there, job.amounts)]
        return dict.fromkeys(able[: job.nodes], job.amounts) if len(able) >= job.nodes else None

    def extra(self, work: int, again: bool) -> int:
        """Seconds of an attempt without work."""
        every = self.rules.checkpoint
        writes = 0 if every is None else max((work + every - 1) // every - 1, 0)
        return (self.rules.cost if again else 0) + writes * self.rules.checkpoint_cost

    def estimate(self, job: Job) -> int:
        work = max(job.asked - job.saved, 1)
        return work + self.extra(work, bool(job.attempts))
