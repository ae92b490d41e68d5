"""Gates asked naively, and conservative backfilling with them; from the page of semantics, free of the kit's code.

The gates are asked about every job anew whenever something happens, from the facts of the run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop
from itertools import pairwise
from typing import NamedTuple

from tests.kernel.naive_conservative import NaiveConservative, Row, first_come

NEVER = "DependencyNeverSatisfied"


class Term(NamedTuple):
    """Kind, the other job, and seconds after its start."""

    kind: str
    other: int = -1
    delay: int = 0


class Wishes(NamedTuple):
    """What the gates read of a job."""

    terms: tuple[Term, ...] = ()
    any_of: bool = False
    begin: int = -1
    hold: int = -1
    array: int = -1
    limit: int = -1
    licenses: Mapping[str, int] = {}
    name: int = 0
    failed: bool = False


@dataclass
class Facts:
    """What has happened to the jobs."""

    submits: Sequence[int]
    started: dict[int, int] = field(default_factory=dict)
    over: dict[int, str] = field(default_factory=dict)
    """How each job that is over ended: well, ill or rejected."""


class Gates:
    """All gates: the first reason why a job may not start now."""

    def __init__(self, wishes: Sequence[Wishes], pools: Mapping[str, int], facts: Facts) -> None:
        self.wishes, self.pools, self.facts = wishes, pools, facts
        self.turns: dict[int, list[int]] = {}
        """Jobs of each array in the order in which they were due, without those that have started."""

    def is_new(self, j: int, now: int) -> bool:
        """Whether a job has to queue for its turn in its array from now on."""
        wish = self.wishes[j]
        return wish.limit >= 0 and j not in self.turns.get(wish.array, []) and not self.early(j, now)

    def take_turn(self, j: int, now: int) -> None:
        if self.is_new(j, now):
            self.turns.setdefault(self.wishes[j].array, []).append(j)

    def leave(self, j: int) -> None:
        if j in (turns := self.turns.get(self.wishes[j].array, [])):
            turns.remove(j)

    def reason(self, j: int, running: Collection[int], now: int) -> str:
        wish = self.wishes[j]
        early = self.early(j, now)
        if early:
            return early
        if wish.limit >= 0:
            turns = self.turns.get(wish.array, [])
            place = turns.index(j) if j in turns else len(turns)
            if place + sum(self.wishes[i].array == wish.array for i in running) >= wish.limit:
                return "JobArrayTaskLimit"
        for name, number in wish.licenses.items():
            taken = sum(self.wishes[i].licenses.get(name, 0) for i in running)
            if self.pools[name] - taken < number:
                return "Licenses"
        return ""

    def early(self, j: int, now: int) -> str:
        """The reason of a gate before those of arrays and licences."""
        wish = self.wishes[j]
        found = [self.term(j, term, now) for term in wish.terms]
        if found:
            if wish.any_of:
                met = True if True in found else False if all(each is False for each in found) else None
            else:
                met = False if False in found else None if None in found else True
            if met is not True:
                return NEVER if met is False else "Dependency"
        if now < wish.begin:
            return "BeginTime"
        if now < wish.hold:
            return "JobHeldUser"
        return ""

    def term(self, j: int, term: Term, now: int) -> bool | None:
        """Whether a condition is met; None if that is open."""
        facts = self.facts
        end = facts.over.get(term.other)
        if term.kind == "singleton":
            order = sorted(range(len(self.wishes)), key=lambda i: (facts.submits[i], i))
            before = order[: order.index(j)]
            return all(i in facts.over for i in before if self.wishes[i].name == self.wishes[j].name) or None
        if term.kind == "after":
            since = facts.started.get(term.other)
            return (since is not None and now >= since + term.delay) or None
        if end is None:
            return None
        return term.kind == "afterany" or (end == "well") == (term.kind == "afterok")


class Intervals:
    """The intervals in which jobs are held, noted instant by instant."""

    def __init__(self) -> None:
        self.noted: dict[int, list[tuple[int, str]]] = {}

    def note(self, now: int, reasons: Mapping[int, str]) -> None:
        for j in {*self.noted, *reasons}:
            mine = self.noted.setdefault(j, [])
            if mine and mine[-1][0] == now:
                mine.pop()
            mine.append((now, reasons.get(j, "")))

    def listed(self) -> dict[int, list[tuple[int, int, str]]]:
        """Beginning, end and reason of each interval of each job."""
        found: dict[int, list[tuple[int, int, str]]] = {}
        for j, noted in self.noted.items():
            merged = [each for k, each in enumerate(noted) if not k or noted[k - 1][1] != each[1]]
            spans = [(at, until, reason) for (at, reason), (until, _) in pairwise(merged) if reason]
            if spans:
                found[j] = spans
        return found


class NaiveGatedConservative(NaiveConservative):
    """Conservative backfilling with gates: a plan is made anew when a job with a reservation has left."""

    def __init__(
        self, jobs: Sequence[Row], size: int, wishes: Sequence[Wishes], pools: Mapping[str, int]
    ) -> None:
        super().__init__(jobs, size, first_come)
        self.facts = Facts([job[0] for job in jobs])
        self.gates = Gates(wishes, pools, self.facts)
        self.held: list[int] = []
        self.arrived: dict[int, int] = {}
        self.clock = 0
        self.left = self.lost = False
        times = {at for wish in wishes for at in (wish.begin, wish.hold)}
        self.times = times
        self.rejected: set[int] = set()

    def delays(self) -> set[int]:
        terms = {term for wish in self.gates.wishes for term in wish.terms if term.kind == "after"}
        return {
            self.facts.started[term.other] + term.delay for term in terms if term.other in self.facts.started
        }

    def run(self) -> object:  # type: ignore[override]
        coming = self.coming
        while coming or self.waiting or self.running or self.held:
            instants = [self.ends[0][0]] if self.ends else []
            instants += [self.jobs[coming[-1]][0]] if coming else []
            instants += [self.next_start] if self.next_start is not None else []
            instants += [at for at in {*self.times, *self.delays()} if at > self.now]
            now = self.now = min(instants)
            again = True
            planned = self.next_start == now
            while again:
                self.next_start = None if planned else self.next_start
                while self.ends and self.ends[0][0] == now:
                    j = heappop(self.ends)[1]
                    self.running.remove(j)
                    self.facts.over[j] = "ill" if self.gates.wishes[j].failed else "well"
                    self.some_ended = planned = True
                submitted = []
                while coming and self.jobs[coming[-1]][0] == now:
                    submitted.append(coming.pop())
                planned |= self.join(now, submitted) or self.left
                self.left = False
                if self.waiting and planned:
                    self.do_pass(now)
                planned = False
                again = self.left or (bool(self.ends) and self.ends[0][0] == now) or bool(self.open(now))
        return self.schedule

    def reason(self, j: int, now: int) -> str:
        return self.gates.reason(j, self.running, now)

    def open(self, now: int) -> list[int]:
        return [j for j in self.held if self.reason(j, now) in ("", NEVER) or self.gates.is_new(j, now)]

    def join(self, now: int, coming: list[int]) -> bool:
        joined = False
        while True:
            asked = min([*coming, *self.open(now)], default=None)
            if asked is None:
                return joined
            (coming if asked in coming else self.held).remove(asked)
            self.gates.take_turn(asked, now)
            reason = self.reason(asked, now)
            if reason == NEVER:
                self.rejected.add(asked)
                self.facts.over[asked] = "rejected"
                self.facts.started.setdefault(asked, now)
            elif reason:
                self.held.append(asked)
            else:
                self.clock += 1
                self.arrived[asked] = self.clock
                self.waiting.append(asked)
                joined = True

    def do_pass(self, now: int) -> None:
        self.schedule.passes.append(now)
        self.waiting.sort(key=lambda j: (self.jobs[j][0], self.arrived[j]))
        late = [j for j in self.running if self.schedule.starts[j] + self.estimates[j] <= now]
        self.exceeds = bool(late)
        self.update_plan(now, self.lost)
        self.exceeded, self.some_ended, self.last_pass, self.lost = self.exceeds, False, now, False
        self.start_jobs(now)
        soonest = now + self.exceeds
        self.next_start = min((at for at in self.reserved.values() if at > soonest), default=None)

    def update_plan(self, now: int, corrected: bool) -> None:
        late = any(at < now or at <= self.last_pass for at in self.reserved.values())
        new = sorted((j for j in self.waiting if j not in self.reserved), key=self.arrived.__getitem__)
        profile = None
        if self.exceeds or self.exceeded or corrected or late:
            anew, self.reserved = sorted(self.reserved, key=lambda j: (self.reserved[j], j)), {}
            profile = self.profile(now)
            for j in anew:
                self.reserve(j, profile)
        elif self.some_ended or new:
            profile = self.profile(now)
            for j in self.waiting if self.some_ended else ():
                if j in self.reserved:
                    self.move(j, profile)
        for j in new:
            assert profile is not None or anew is not None
            self.reserve(j, profile)  # type: ignore[arg-type]

    def start_jobs(self, now: int) -> None:
        due = {j for j, at in self.reserved.items() if at <= now}
        while self.waiting and self.waiting[0] in due:
            self.start(self.waiting[0], now, "")
        for j in list(self.waiting):
            if j in due and j in self.waiting:
                self.start(j, now, "")

    def start(self, j: int, now: int, mode: str) -> None:
        super().start(j, now, mode)
        self.gates.leave(j)
        self.facts.started.setdefault(j, now)
        for other in list(self.waiting):
            if self.reason(other, now):
                self.waiting.remove(other)
                self.held.append(other)
                self.left = True
                self.lost |= self.reserved.pop(other, None) is not None
