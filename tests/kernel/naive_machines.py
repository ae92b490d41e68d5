"""Deliberately naive simulators of machines: plain Python, everything recomputed, straight from the rules.

Slow on purpose and free of the kit's code: what they agree on with the kit is not a shared mistake. All place
first fit. They return start times and what each job was given, in the order of the jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from hpcsimkit.cluster.machines import Machines
from tests.kernel.machine_cases import Given, covers
from tests.kernel.machine_helpers import Asked, meets_counts, satisfies, split_constraint
from tests.kernel.naive import _clock

Free = list[tuple[int, ...]]
NOTHING = (-1,) * 3
"""Of a machine that must not be used, less than nothing is free."""


def plus(free: Free, given: Given, sign: int = 1) -> Free:
    left = list(free)
    for machine, amounts in given.items():
        left[machine] = tuple(a + sign * b for a, b in zip(left[machine], amounts, strict=True))
    return left


def minus(free: Free, given: Given) -> Free:
    return plus(free, given, -1)


def least(one: Free, other: Free) -> Free:
    return [tuple(map(min, a, b)) for a, b in zip(one, other, strict=True)]


def totals_of(rows) -> list[int]:
    return [sum(column) for column in zip(*rows, strict=True)]


class Shut(NamedTuple):
    """A time in which machines are shut to all jobs but some, by number."""

    begin: int
    end: int
    machines: tuple[int, ...]
    open_to: tuple[int, ...] = ()


class Job:
    """What a job asks for, as tuples."""

    def __init__(self, asked: Asked, resources: tuple[str, ...], number: int = -1) -> None:
        self.number = number
        self.amounts = tuple(asked.amounts[name] for name in resources)
        self.estimate: int = asked.requested
        self.submit, self.run = asked.submit, asked.run
        self.everywhere, self.conditions = split_constraint(asked.constraint)
        self.exclusive = asked.exclusive
        self.spread = asked.spread and any(self.amounts)  # nothing is on one machine
        self.nodes = 1 if asked.spread else asked.nodes
        self.takes_any = self.spread and not asked.exclusive and not self.everywhere


class Site:
    """Machines, and the one question about them: where does a job go, first fit?"""

    def __init__(self, cluster: Machines, windows: Sequence[Shut] = ()) -> None:
        self.empty: Free = [tuple(row) for row in cluster.capacity.tolist()]
        self.features = cluster.features
        self.windows = windows

    def open(self, job: Job, begin: int, free: Free) -> Free:
        """What of it is left to a job that runs from an instant on, beside the windows?"""
        left = list(free)
        for window in self.windows:
            if (
                window.begin < begin + job.estimate
                and begin < window.end
                and job.number not in window.open_to
            ):
                for machine in window.machines:
                    left[machine] = NOTHING
        return left

    def may_use(self, job: Job, number: int, free: Free) -> bool:
        if not satisfies(self.features[number], job.everywhere) or free[number] == NOTHING:
            return False
        if job.exclusive and free[number] != self.empty[number]:
            return False
        return job.spread or covers(free[number], job.amounts)

    def place(self, job: Job, free: Free) -> Given | None:
        order = [number for number in range(len(free)) if self.may_use(job, number, free)]
        given: Given = {}
        if job.spread:
            missing = job.amounts
            for number in order:
                part = tuple(map(min, missing, free[number]))
                if any(part):
                    given[number] = part
                    missing = tuple(a - b for a, b in zip(missing, part, strict=True))
            if any(missing):
                return None
        else:
            chosen = next((some for some in combinations(order, job.nodes) if self.counts(job, some)), None)
            if chosen is None:
                return None
            given = dict.fromkeys(chosen, job.amounts)
        return {number: self.empty[number] for number in given} if job.exclusive else given

    def counts(self, job: Job, machines: tuple[int, ...]) -> bool:
        return meets_counts(machines, job.conditions, self.features)

    def free(self, given: list[Given]) -> Free:
        free = self.empty
        for each in given:
            free = minus(free, each)
        return free


def easy(cluster: Machines, asked: list[Asked], key=lambda job: job.submit, backfill: bool = True):
    """EASY in the order of `key`; without `backfill`, strictly in that order."""
    site, jobs = Site(cluster), [Job(each, cluster.resources) for each in asked]
    given: list[Given] = [{} for _ in jobs]

    def schedule(now, waiting, ended, arrived, starts, running):
        queue = sorted(waiting, key=lambda j: key(jobs[j]))  # ties: order of arrival
        free = site.free([given[j] for j in running])
        expected = [(max(starts[j] + jobs[j].estimate, now + 1), given[j]) for j in running]
        started = []

        def start(j, found):
            nonlocal free
            given[j] = found
            free = minus(free, found)
            started.append(j)

        while queue and (found := site.place(jobs[queue[0]], free)) is not None:
            expected.append((now + jobs[queue[0]].estimate, found))
            start(queue.pop(0), found)
        if not queue or not backfill:
            return started
        head = jobs[queue.pop(0)]

        def free_at(at):
            level = free
            for end, found in expected:
                level = plus(level, found) if end <= at else level
            return level

        shadow = min(at for at, _ in expected if site.place(head, free_at(at)) is not None)
        later = free_at(shadow)
        for j in queue:
            ends_in_time = now + jobs[j].estimate <= shadow
            found = site.place(jobs[j], free) if ends_in_time else beside(site, head, jobs[j], free, later)
            if found is not None:
                start(j, found)
                if not ends_in_time:
                    later = minus(later, found)
                    assert site.place(head, later) is not None, "the head lost its last place"
        return started

    return _clock([(job.submit, job.run) for job in jobs], schedule), given


def beside(site: Site, head: Job, job: Job, free: Free, later: Free) -> Given | None:
    """Where does a job go that is still there when the head is to start? The head must fit beside it."""
    if head.takes_any and not job.exclusive:
        found = site.place(job, free)
        return found if found is not None and site.place(head, minus(later, found)) is not None else None
    if head.takes_any and not job.spread:  # whole machines, each so small that the head could lose n like it
        small = [spared(site, head, job, number, later) for number in range(len(free))]
        found = site.place(job, [there if fine else NOTHING for there, fine in zip(free, small, strict=True)])
        if found is not None:
            return found
    if head.spread or job.spread:  # a sufficient rule: the head keeps its first places
        return site.place(job, least(free, minus(later, site.place(head, later))))
    # Of the machines that could host a part of the head and could not beside the job, it may use those only
    # that the head can do without.
    hosts = [number for number in range(len(free)) if site.may_use(head, number, later)]
    usable = [number for number in range(len(free)) if site.may_use(job, number, free)]
    critical = []
    for number in usable:
        taken = {number: site.empty[number] if job.exclusive else job.amounts}
        if number in hosts and not site.may_use(head, number, minus(later, taken)):
            critical.append(number)
    words = set(job.conditions)
    critical.sort(key=lambda number: -sum(satisfies(site.features[number], word) for word in words))
    lost: list[int] = []
    for number in critical:
        left = [host for host in hosts if host not in (*lost, number)]
        if any(site.counts(head, some) for some in combinations(left, head.nodes)):
            lost.append(number)
    usable = [number for number in usable if number not in critical or number in lost]
    return site.place(job, [there if n in usable else NOTHING for n, there in enumerate(free)])


def spared(site: Site, head: Job, job: Job, number: int, later: Free) -> bool:
    """Would the totals suffice for the head beside as many machines like this one as the job takes?"""
    there = totals_of(later)
    taken = [job.nodes * amount for amount in site.empty[number]]
    return all(a - b >= c for a, b, c in zip(there, taken, head.amounts, strict=True) if c)


class Plan:
    """Who has what when: begin, end, what on which machines, and how much in all."""

    def __init__(self, site: Site, on_machines: bool) -> None:
        self.site = site
        self.on_machines = on_machines
        self.entries: list[tuple[int, int, Given, list[int]]] = []

    def enter(self, begin: int, end: int, given: Given, totals=None) -> None:
        self.entries.append((begin, end, given, totals or totals_of(given.values())))

    def instants(self, job: Job, at: int) -> list[int]:
        return [at, *(begin for begin, *_ in self.entries if at < begin < at + job.estimate)]

    def throughout(self, job: Job, at: int) -> Free:
        """What is free on each machine throughout [at, at + estimate)?"""
        level = self.site.empty
        for t in self.instants(job, at):
            level = least(level, self.site.free([given for b, e, given, _ in self.entries if b <= t < e]))
        return self.site.open(job, at, level)

    def enough(self, job: Job, at: int) -> bool:
        if self.on_machines:
            return self.site.place(job, self.throughout(job, at)) is not None
        for t in self.instants(job, at):
            there = totals_of(self.site.empty)
            for b, e, _, taken in self.entries:
                if b <= t < e:
                    there = [x - y for x, y in zip(there, taken, strict=True)]
            if not covers(there, job.amounts):
                return False
        return True

    def earliest(self, job: Job, now: int) -> int:
        ends = {end for _, end, *_ in self.entries} | {window.end for window in self.site.windows}
        instants = sorted({now, *(end for end in ends if end > now)})
        return next(at for at in instants if self.enough(job, at))

    def holds(self, job: Job, at: int) -> Given:
        """What would a reservation hold?"""
        found = self.site.place(job, self.throughout(job, at)) if self.on_machines else {}
        assert found is not None
        return found

    def where(self, job: Job, now: int, free: Free) -> Given | None:
        """Where does a job go that may start now?"""
        return self.site.place(job, least(free, self.throughout(job, now)) if self.on_machines else free)


def reservations(
    cluster: Machines,
    asked: list[Asked],
    count: int | None,
    key=lambda job: job.submit,
    windows: Sequence[Shut] = (),
):
    """So many reservations (None: one each), planned from scratch at every pass."""
    site = Site(cluster, windows)
    jobs = [Job(each, cluster.resources, number) for number, each in enumerate(asked)]
    given: list[Given] = [{} for _ in jobs]

    def schedule(now, waiting, ended, arrived, starts, running):
        queue = sorted(waiting, key=lambda j: key(jobs[j]))
        started = []

        def free():
            return site.free([given[j] for j in [*running, *started]])

        def open_to(job):
            return site.open(job, now, free())

        while queue and (found := site.place(jobs[queue[0]], open_to(jobs[queue[0]]))) is not None:
            started.append(queue[0])
            given[queue.pop(0)] = found
        plan = Plan(site, bool(windows) or any(not jobs[j].takes_any for j in queue))
        for j in running:
            plan.enter(0, max(starts[j] + jobs[j].estimate, now + 1), given[j])
        for j in started:
            plan.enter(0, now + jobs[j].estimate, given[j])
        reserved = 0
        for j in queue if count != 0 else ():
            at = plan.earliest(jobs[j], now)
            if at == now:
                given[j] = plan.where(jobs[j], now, free())
                started.append(j)
                plan.enter(now, now + jobs[j].estimate, given[j])
            elif reserved != count:
                reserved += 1
                plan.enter(at, at + jobs[j].estimate, plan.holds(jobs[j], at), list(jobs[j].amounts))
        return started

    return _clock([(job.submit, job.run) for job in jobs], schedule, edges=edges(windows)), given


def edges(windows: Sequence[Shut]) -> list[int]:
    """When do windows begin or end?"""
    return sorted({at for each in windows for at in (each.begin, each.end)})


def conservative(
    cluster: Machines, asked: list[Asked], key=lambda job: job.submit, windows: Sequence[Shut] = ()
):
    """Conservative with compression; returns starts, given, first promises, and passes beside jobs that exceed.

    A reservation holds machines, first fit among what is free throughout; but totals only as long as all jobs
    that hold reservations take any machines in any mix. If that has changed when a job ends or arrives, all are
    put at their earliest holes, in the order of their starts; and so they are while a job exceeds its estimate,
    and in the first pass after. Beside windows, all hold machines.
    """
    site = Site(cluster, windows)
    jobs = [Job(each, cluster.resources, number) for number, each in enumerate(asked)]
    given: list[Given] = [{} for _ in jobs]
    promises: list[int | None] = [None] * len(jobs)
    planned: dict[int, int] = {}  # planned start of every waiting job
    held: dict[int, Given] = {}  # what its reservation holds: machines, or nothing while only totals count
    busy: dict[int, int] = {}  # when running jobs are expected to end
    on_machines, exceeded = bool(windows), False
    soonest = 0  # before which no running job is expected to end
    exceeding = 0  # passes beside jobs that exceed their estimates
    next_start: list[int] = []  # of a reservation, after the last pass

    def without(j: int) -> Plan:
        """The plan of running jobs and of all reservations but for one."""
        plan = Plan(site, on_machines)
        for i, end in busy.items():
            plan.enter(0, max(end, soonest), given[i])
        for i, begin in planned.items():
            if i != j:
                plan.enter(begin, begin + jobs[i].estimate, held[i], list(jobs[i].amounts))
        return plan

    def put(j, at):
        held[j] = without(j).holds(jobs[j], at)
        planned[j] = at

    def hold_what_is_needed(by, now, anew=False):
        nonlocal on_machines
        wanted = bool(windows) or any(not jobs[j].takes_any for j in by)
        if wanted != on_machines or anew:
            on_machines = wanted
            before = dict(planned)
            planned.clear()
            for j in sorted(before, key=lambda j: (before[j], j)):
                put(j, without(j).earliest(jobs[j], now))
                assert anew or planned[j] <= before[j]

    def schedule(now, waiting, ended, arrived, starts, running):
        nonlocal soonest, exceeded, exceeding
        for j in ended:
            del busy[j]
        next_start.clear()
        if not waiting:
            return []
        queue = sorted(waiting, key=lambda j: key(jobs[j]))
        soonest = now + 1
        exceeds = any(end <= now for end in busy.values())
        anew, exceeded = exceeds or exceeded, exceeds
        exceeding += exceeds
        if ended or anew:
            hold_what_is_needed(planned, now, anew)
        for j in [j for j in queue if j in planned] if ended and not anew else []:
            at = without(j).earliest(jobs[j], now)
            if at < planned[j]:
                put(j, at)
        for j in arrived:
            hold_what_is_needed([*planned, j], now)
            promises[j] = without(j).earliest(jobs[j], now)
            put(j, promises[j])
        started = [j for j in queue if planned[j] <= now]
        for j in started:
            given[j] = without(j).where(jobs[j], now, site.free([given[i] for i in busy]))
            del planned[j]
            busy[j] = now + jobs[j].estimate
        next_start.extend(sorted(at for at in planned.values() if at > now + exceeds)[:1])
        return started

    times = [(job.submit, job.run) for job in jobs]
    return _clock(times, schedule, lambda: list(next_start), edges(windows)), given, promises, exceeding
