"""A second Slurm, one second after the other, from the section "Slurm's scheduling" of the simulation semantics.

It shares no code with the scheduler: nodes are lists, the plan is a list of what occupies them when.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Part:
    """A partition: its nodes by number, tier, and part of the priority."""

    nodes: list[int]
    tier: int
    value: int


@dataclass
class Work:
    """A job; its rank is that of QOS and partition without age."""

    number: int
    at: int
    run: int
    limit: int
    nodes: int
    cpus: int
    parts: list[int]
    value: int
    user: str
    most: int  # running jobs of the user with this limit
    start: int = -1
    end: int = -1
    where: list[int] = field(default_factory=list)


@dataclass
class Naive:
    """The scheduler of small clusters; all times in seconds from the first submission."""

    cpus: list[int]
    parts: list[Part]
    jobs: list[Work]
    age: int
    period: int
    bf_interval: int
    resolution: int
    depth: int
    tested: int
    window: int
    pause: int = 3
    whole: int = 60
    equal: dict[tuple[int, int, int], tuple[int, int]] = field(default_factory=dict)

    def run(self, horizon: int) -> list[int]:
        begin = min(job.at for job in self.jobs)
        main_at, changed, unseen, unplanned = -10, True, True, True
        computed = begin
        for now in range(begin, horizon):
            for job in self.jobs:
                if job.end == now or job.at == now:
                    changed = unseen = unplanned = True
            if now > begin and (now - begin) % self.period == 0:
                computed, unseen, unplanned = now, True, True
            if not any(job.at <= now and job.start < 0 for job in self.jobs):
                continue
            regular = unseen and (now - begin) % self.whole == 0
            if regular or (changed and now - main_at >= self.pause):
                main_at, changed = now, False
                unseen, started = self._main(now, computed, 10**6 if regular else self.depth)
                unplanned |= started
            if unplanned and (now - begin) % self.bf_interval == 0:
                unplanned = self._backfill(now, computed)
        return [job.start for job in self.jobs]

    def _free(self, now: int) -> list[int]:
        free = list(self.cpus)
        for job in self.jobs:
            if job.start >= 0 and job.end > now:
                for node in job.where:
                    free[node] -= job.cpus
        return free

    def _order(self, now: int, computed: int) -> list[tuple[Work, int]]:
        def rank(pair: tuple[Work, int]) -> tuple[int, int, int, int]:
            job, part = pair
            age = max(computed - job.at, 0)
            priority = int(self.age * min(age / 1000, 1.0) + job.value + self.parts[part].value)
            return -self.parts[part].tier, -max(priority, 1), job.number, part

        waiting = [job for job in self.jobs if job.at <= now and job.start < 0]
        return sorted(((job, part) for job in waiting for part in job.parts), key=rank)

    def _held(self, job: Work, now: int) -> bool:
        running = [
            other
            for other in self.jobs
            if other.start >= 0 and other.end > now and other.user == job.user and other.most
        ]
        return bool(job.most) and len(running) >= job.most

    @property
    def _by_start(self) -> list[Work]:
        return sorted((job for job in self.jobs if job.start >= 0), key=lambda job: job.start)

    def _start(self, job: Work, now: int, where: list[int]) -> None:
        job.start, job.end, job.where = now, now + min(job.run, job.limit), where

    def _main(self, now: int, computed: int, depth: int) -> tuple[bool, bool]:
        blocked: set[int] = set()
        closed: set[int] = set()
        seen, started = 0, False
        for job, part in self._order(now, computed):
            if job.start >= 0:
                continue
            if seen == depth + 1:
                return True, started
            seen += 1
            if part in blocked or self._held(job, now):
                continue
            free = self._free(now)
            fitting = [
                node for node in self.parts[part].nodes if node not in closed and free[node] >= job.cpus
            ]
            if len(fitting) >= job.nodes:
                self._start(job, now, fitting[: job.nodes])
                started = True
            elif not self._lacks_open_nodes(job, part, closed):
                blocked.add(part)
                closed |= set(self.parts[part].nodes)
        return False, started

    def _lacks_open_nodes(self, job: Work, part: int, closed: set[int]) -> bool:
        """Return whether enough nodes are open, but too few of them are large enough."""
        left = [node for node in self.parts[part].nodes if node not in closed]
        return len(left) >= job.nodes and sum(self.cpus[node] >= job.cpus for node in left) < job.nodes

    def _backfill(self, now: int, computed: int) -> bool:
        taken = [  # first and last second, nodes, CPUs
            (now, max(job.start + job.limit, now + 1), job.where, job.cpus)
            for job in self.jobs
            if job.start >= 0 and job.end > now
        ]
        tested, started = 0, False
        planned: list[tuple[int, int, list[int]]] = []
        self.equal = {}
        for job, part in self._order(now, computed):
            if job.start >= 0 or self._held(job, now):
                continue
            if tested == self.tested:
                break
            tested += 1
            for begin in sorted({now, *(end for _, end, _, _ in taken)}):
                end = begin + job.limit
                fitting = [
                    node
                    for node in self.parts[part].nodes
                    if self._least(node, begin, end, taken) >= job.cpus
                ]
                if len(fitting) >= job.nodes:
                    break
            where = fitting[: job.nodes]
            if begin > now:
                begin, where = self._in_groups(job, part, begin, where, job.limit, now, planned)
            if begin - now > self.window:
                continue
            if begin == now:
                self._start(job, now, where)
                started = True
                taken.append((begin, end, where, job.cpus))
            else:  # whole nodes, between multiples of the resolution
                first, last = (
                    each // self.resolution * self.resolution for each in (begin, begin + job.limit)
                )
                whole = max(self.cpus[node] for node in where)
                if last > max(first, now):
                    taken.append((max(first, now), last, where, whole))
                    planned.append((max(first, now), last, where))
        return started

    def _in_groups(
        self,
        job: Work,
        part: int,
        begin: int,
        where: list[int],
        length: int,
        now: int,
        planned: list[tuple[int, int, list[int]]],
    ) -> tuple[int, list[int]]:
        """When and where the plan lets a job begin that has no place before a time."""
        request = part, job.nodes, job.cpus
        known, before = self.equal.get(request, (length, begin))
        found = self._from(
            job, part, max(begin, before) if known == length else begin, where, length, now, planned
        )
        self.equal[request] = length, found[0]
        return found

    def _from(self, job, part, begin, where, length, now, planned):  # type: ignore[no-untyped-def]
        at, edges = begin, {time for first, last, _ in planned for time in (first, last)}
        while True:
            later = min((time for time in edges if time > at), default=10**9)
            free = [node for node in self.parts[part].nodes if not _taken(planned, node, at, at + length)]
            ready, chosen = self._when_ready(job, free, now)
            if chosen and ready <= at:
                return at, chosen
            if chosen and ready <= later:
                if not any(_taken(planned, node, ready, ready + length) for node in chosen):
                    return ready, chosen
                at = ready
            elif later == 10**9:
                return begin, where
            else:
                at = later

    def _when_ready(self, job: Work, nodes: list[int], now: int) -> tuple[int, list[int]]:
        """When nodes suffice if the running jobs end in groups, and which."""
        there = [
            (other.start + other.limit, order, other)
            for order, other in enumerate(self._by_start)
            if other.end > now and set(other.where) & set(nodes)
        ]
        ends = sorted(there, key=lambda each: each[:2])
        free, gone, window = self._free(now), 0, 30
        while True:
            chosen = [node for node in nodes if free[node] >= job.cpus][: job.nodes]
            if len(chosen) == job.nodes:
                return (ends[gone - 1][0] if gone else now), chosen
            if gone == len(ends):
                return now, []
            origin = ends[0][0] - ends[0][0] % 30 + 30
            while True:
                for node in ends[gone][2].where:
                    free[node] += ends[gone][2].cpus
                gone += 1
                if gone == len(ends) or ends[gone][0] > origin + window:
                    break
            window *= 2
            while gone < len(ends) and ends[gone][0] > origin + window:
                window *= 2

    def _least(self, node: int, begin: int, end: int, taken: list[tuple[int, int, list[int], int]]) -> int:
        here = [each for each in taken if node in each[2] and each[0] < end and each[1] > begin]
        instants = {begin, *(max(first, begin) for first, _, _, _ in here)}
        return min(
            self.cpus[node] - sum(cpus for first, last, _, cpus in here if first <= at < last)
            for at in instants
        )


def _taken(planned: list[tuple[int, int, list[int]]], node: int, begin: int, end: int) -> bool:
    """Whether a node is another job's between two times."""
    return any(node in where and first < end and last > begin for first, last, where in planned)
