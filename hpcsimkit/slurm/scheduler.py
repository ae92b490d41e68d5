"""The scheduler: one order over all partitions, a main loop and a backfill, each with a clock of its own.

See the section "Slurm's scheduling" of the simulation semantics.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.closures import Closures
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.slurm.accounts import loop_of
from hpcsimkit.slurm.completing import Completing
from hpcsimkit.slurm.limits import LimitBook
from hpcsimkit.slurm.plan import Places, Plan, Ticket
from hpcsimkit.slurm.preemption import victims
from hpcsimkit.slurm.queue import Waiting
from hpcsimkit.slurm.reasons import AT_ONCE, NOT_AVAILABLE, lack_of, reasons_of
from hpcsimkit.slurm.rules import Rules

__all__ = ["SlurmScheduler"]

WAITING = 1

PERIOD = 30
"""Time after which Slurm looks again for jobs whose grace times are over [s]."""

Mask = NDArray[np.bool_]


class SlurmScheduler(Policy):
    """Slurm as configured: priority, limits, main loop and backfill of a profile.

    Parameters
    ----------
    profile : Rules
        The configuration; the partitions are those of the run.
    """

    schedules_partitions = True

    def __init__(self, profile: Rules) -> None:
        self.profile = profile

    @property
    def acts_on_running(self) -> bool:  # type: ignore[override]
        """Whether passes take place while no job waits: grace times end then, too."""
        return self.profile.grants_grace

    def check(self) -> None:
        """Raise a UsageError if the profile is none."""
        if not isinstance(self.profile, Rules):
            raise UsageError(f"a profile read from Slurm's files is needed, found {self.profile!r}")
        if self.profile.preempt == "qos" and (loop := loop_of(self.profile.qos)):
            found = " that may stop ".join(loop)
            raise UsageError(f"QOS that do not stop each other are needed, found {found}")

    def reset(self, system: System) -> None:
        """Read the jobs of the run, and set the clocks."""
        partitions = system.partitions
        assert partitions is not None
        _check(partitions)
        profile = self.profile
        self._system, self._clocks = system, profile.clocks
        self._places = Places(partitions)
        self._waiting = Waiting(profile, partitions, system)
        half_life = profile.priority.half_life
        self._book = LimitBook(self._waiting.associations, half_life, safe=profile.safe)
        self._begin = system.now
        self._main_at: int | None = None  # time of the last main loop
        self._changed = self._unplanned = self._unseen = (
            True  # since the last main loop, backfill, full main loop
        )
        self._version = -1
        self._by_weight = self._places.by_weight(profile.node_weights)
        self._completing = Completing(len(self._places.machines), profile.clocks.completing)
        self._graces: dict[int, int] = {}  # when jobs that were chosen are stopped, by row

    # --- events ------------------------------------------------------------------------------------------

    def on_submit(self, job: Job, system: System) -> None:
        """Let the age of a job begin."""
        self._waiting.joined(job.index, system.now)
        self._change()

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Enter what a job uses."""
        self._completing.start(job.index, allocation.machines)
        ask = self._waiting.running(job, system.ledger.partition_of(job.index), allocation)
        self._waiting.start(ask, system.now)
        if self.profile.limits:
            self._book.start(ask, system.now)

    def on_end(self, job: Job, system: System) -> None:
        """Enter that a job uses nothing any more."""
        if system.ledger.started(job.index) and self._waiting.runs(job.index):
            self._leave(job, system)
            if system.now - system.start_time(job) >= job.requested_time:  # at its limit
                self._completing.kill(job.index, system.now)
        self._change()

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Enter that a job uses nothing any more."""
        self._leave(job, system)
        self._completing.kill(job.index, system.now)
        self._change()

    def _leave(self, job: Job, system: System) -> None:
        self._graces.pop(job.index, None)
        self._waiting.end(job.index, system.now)
        self._book.end(job.index, system.now)

    def _change(self) -> None:
        self._changed = self._unplanned = self._unseen = True

    # --- the two clocks ------------------------------------------------------------------------------------

    def schedule(self, system: System) -> None:
        """Run the loops that are due, and ask for a pass at the time of the next one."""
        now, clocks = system.now, self._clocks
        self._end_graces(system)
        if self.acts_on_running and not len(system.queue):
            system.wake(min(self._graces.values(), default=None), planned=True)
            return
        for job in system.newcomers:
            self._refuse_for_ever(job, system)
        if system.version != self._version or self._completing.ends(now):
            self._change()
        if self._waiting.calculate(now):
            self._unplanned = self._unseen = True
        regular = self._unseen and self._at_tick(now, clocks.sched_interval)
        if regular or (self._changed and not clocks.defer and now >= self._soonest):
            self._main_loop(system, whole=regular)
        if clocks.bf_interval and self._unplanned and self._at_tick(now, clocks.bf_interval):
            self._backfill(system)
        self._version = system.version
        following = self._next(now)
        if following is None:
            self._give_up(system)
        system.wake(following if len(system.queue) or self._graces else None, planned=True)

    def _give_up(self, system: System) -> None:
        """Reject the jobs that are held by what has been spent for good, when nothing else is to come."""
        for job in list(system.queue):
            parts = self._waiting.parts_of(job.index)
            if not any(self._may_start(Ticket(job, part), system) for part in parts):
                system.ledger.release(job.index, system.now, for_good=True)
                system.reject(job)

    @property
    def _soonest(self) -> int:
        """The time from which a main loop may follow the last one [s]."""
        return self._begin if self._main_at is None else self._main_at + self._clocks.sched_min_interval

    def _at_tick(self, now: int, interval: int) -> bool:
        return (now - self._begin) % interval == 0

    def _tick(self, now: int, interval: int) -> int:
        """Return the next time of a clock after now [s]."""
        return self._begin + ((now - self._begin) // interval + 1) * interval

    def _next(self, now: int) -> int | None:
        """Return the time of the next loop that can change anything [s]; None if none can."""
        clocks = self._clocks
        times = [*self._completing.ends_after(now), *self._graces.values()]
        if self._changed and not clocks.defer:
            times.append(max(self._soonest, now + 1))
        if self._unseen:
            times.append(self._tick(now, clocks.sched_interval))
        if self._unplanned and clocks.bf_interval:
            times.append(self._tick(now, clocks.bf_interval))
        if self._system.anything_ahead or self._book.recovers:
            times.append(self._waiting.next_calculation(now))
        return min(times, default=None)

    # --- the loops -------------------------------------------------------------------------------------

    def _main_loop(self, system: System, *, whole: bool) -> None:
        """Start jobs in order; one that lacks nodes closes its partition, and its nodes to all after it."""
        clocks = self._clocks
        most = 0 if whole or not clocks.default_queue_depth else clocks.default_queue_depth + 1
        seen: Counter[int] = Counter()
        looked_at = 0
        blocked: set[int] = set()
        free = np.ones(len(self._places.machines), dtype=np.bool_)
        self._main_at, self._changed, self._unseen = system.now, False, False
        self._book.recovers = False
        for ticket in self._in_order(system):
            part = ticket.part
            seen[part] += 1
            if clocks.partition_job_depth and seen[part] > clocks.partition_job_depth:
                self._unseen |= part not in blocked
                continue
            if most and looked_at >= most:
                self._unseen = True
                break
            looked_at += 1
            if part in blocked or not self._may_start(ticket, system):
                continue
            allocation = self._place_now(ticket, free, system)
            if allocation is not None:
                self._start(ticket, allocation, Mode.READY, system)
                continue
            if self._lack(ticket, free, system).startswith(NOT_AVAILABLE):
                continue
            blocked.add(part)
            free &= ~self._places.of[part]
            if len(blocked) == len(self._places.of):
                break

    def _lack(self, ticket: Ticket, among: Mask, system: System) -> str:
        """Return why a job lacks nodes, of those that are open; see :mod:`hpcsimkit.slurm.reasons`."""
        shut = None
        if isinstance(system.calendar, Closures):
            end = system.now + system.estimate(ticket.job)
            shut = system.calendar.machines(ticket.job, system.now, end)
        ready = self._completing.ready(np.ones_like(among), system.now)
        return lack_of(ticket, self._places, among, system.free, shut, ready)

    def _place_now(self, ticket: Ticket, among: Mask, system: System) -> Allocation | None:
        """Return the allocation with which a job starts now, once it has stopped others if need be."""
        ready = self._completing.ready(among, system.now)
        found = self._places.first(ticket, system.room_for(ticket.job), ready)
        if found is not None:
            return found
        found = self._preempt(ticket, ready, system)
        return found if found is None or self._is_ready(found, system) else None

    def _is_ready(self, allocation: Allocation, system: System) -> bool:
        """Return whether no machine of an allocation waits for the end of killed jobs."""
        return not self._completing.waits_on(allocation.machines, system.now)

    def _preempt(self, ticket: Ticket, among: Mask, system: System) -> Allocation | None:
        """Stop jobs for one that does not fit; return its allocation, or None if none are stopped."""
        waiting, completing = self._waiting, self._completing
        row, now = ticket.job.index, system.now
        if not waiting.stops_others(ticket) or completing.waits_for_others(row, now):
            return None
        sets = (among & each for each in self._by_weight)
        chosen = victims(ticket, self._places, system, sets, waiting.to_stop(ticket, system))
        stopped = [job for job in chosen if not self._has_grace(job, system)]
        for job in stopped:
            self._stop(job, system)
        if not stopped:
            return None
        completing.stop_others(row, now)
        return self._places.first(ticket, system.room_for(ticket.job), among)

    def _stop(self, job: Job, system: System) -> None:
        # Slurm counts the delay until a job waits again from the time on at which it has been ended.
        system.stop(job, requeue=self._waiting.requeues(job, system), delay=self._clocks.completing)

    def _has_grace(self, job: Job, system: System) -> bool:
        """Return whether a job that is to be stopped runs on first; if so, it is expected to end then."""
        row, now, ledger = job.index, system.now, system.ledger
        grace = self._waiting.grace_time(job, system)
        if grace and row not in self._graces:
            at_limit = ledger.starts[row] + job.requested_time
            # Slurm requeues a job that reaches its limit meanwhile, so that it is stopped before it does.
            self._graces[row] = min(self._tick(now + grace - 1, PERIOD), max(at_limit - 1, now + 1))
            ledger.estimates[row] = min(ledger.estimates[row], now + grace - ledger.starts[row])
            system.expect(job)
            self._unplanned = True
        return bool(grace)

    def _end_graces(self, system: System) -> None:
        """Stop the jobs that have run on for their grace times, also if no other waits for them any more."""
        for row in [row for row, until in self._graces.items() if until <= system.now]:
            self._stop(system.jobs[row], system)

    def _backfill(self, system: System) -> None:
        """Give jobs in order their first places in one plan of all partitions; start those that are due."""
        clocks, now = self._clocks, system.now
        self._unplanned = False
        plan: Plan | None = None
        limits = _Tested(self)
        started = 0
        for ticket in self._in_order(system):
            if not self._may_start(ticket, system) or limits.beyond(ticket):
                continue
            if limits.over:
                break
            if plan is None:
                plan = Plan(self._places, system, clocks.bf_resolution, groups=clocks.end_groups)
            length = system.estimate(ticket.job)
            start, allocation = self._planned_place(ticket, plan, length, system)
            if start - now > clocks.bf_window:
                continue
            if start > now:
                plan.reserve(start, start + length, allocation)
                continue
            self._start(ticket, allocation, Mode.BACKFILLED, system)
            started += 1
            plan.occupy(start, start + length, allocation)
            if clocks.bf_max_job_start and started >= clocks.bf_max_job_start:
                break

    def _planned_place(
        self, ticket: Ticket, plan: Plan, length: int, system: System
    ) -> tuple[int, Allocation]:
        """Return when and where a job has a place: now, too, if it may stop jobs on machines of no one.

        A job that waits for the machines of killed ones, which are free in the plan, has its place after now.
        """
        now = system.now
        start, allocation = plan.first_place(ticket, length, now)
        if start > now and self._waiting.stops_others(ticket):
            ready = self._completing.ready(~plan.taken(ticket, now, now + length), now)
            emptied = self._preempt(ticket, ready, system)
            if emptied is not None:
                start, allocation = now, emptied
        return start if start > now or self._is_ready(allocation, system) else now + 1, allocation

    def _in_order(self, system: System) -> Iterator[Ticket]:
        """Yield the waiting jobs by tier, priority and number; each in all of its partitions."""
        for row, part in self._waiting.in_order():
            if system.ledger.state[row] == WAITING:
                yield Ticket(system.jobs[row], part)

    def _start(self, ticket: Ticket, allocation: Allocation, mode: Mode, system: System) -> None:
        job, part = ticket
        self._unplanned = True
        system.ledger.explain(job.index, system.now, "")
        system.start(job, allocation, mode, partition=self._waiting.names[part])

    # --- limits ----------------------------------------------------------------------------------------

    def reasons(
        self,
        system: System,
        fair_shares: Mapping[tuple[str, str], float],
        before: Mapping[int, str],
        *,
        settled: bool,
    ) -> dict[int, str]:
        """Return why each job in the queue waits now, by its row; see :mod:`hpcsimkit.slurm.reasons`.

        Fair shares by account and user take the place of those of the run. The reasons until then are given.
        If all is `settled`, a main loop has looked at all jobs but those that have just come.
        """
        self._waiting.calculate(system.now, fair_shares)

        def held(ticket: Ticket) -> tuple[str, bool]:
            if not self.profile.limits:
                return "", False
            asks = self._waiting.asks(ticket)
            return self._book.reason(asks, system.now), not self._book.early_reason(asks, system.now)

        def lack(ticket: Ticket, among: Mask) -> str:
            return self._lack(ticket, among, system)

        tickets = self._in_order(system)

        def seen(job: Job) -> bool:
            return settled and job.submit_time < system.now - self._clocks.sched_min_interval

        record = self._waiting.record
        return reasons_of(tickets, self._places, system.room_for, held, lack, record, seen, before)

    def reason_at_submission(self, job: Job, system: System) -> str:
        """Return the lack of available nodes that Slurm notes for a job as it comes, before all others.

        It notes none for one that waits for a time or for other jobs first.
        """
        if system.workload.column("recorded_held_time")[job.index] > AT_ONCE:
            return ""
        among = np.ones(len(self._places.machines), dtype=np.bool_)
        for part in self._waiting.parts_of(job.index):
            ticket = Ticket(job, part)
            if self.profile.limits and self._book.reason(self._waiting.asks(ticket), system.now):
                continue
            if self._places.first(ticket, system.room_for(job), among) is None:
                lack = self._lack(ticket, among, system)
                if lack.startswith(NOT_AVAILABLE):
                    return lack
        return ""

    def _may_start(self, ticket: Ticket, system: System) -> bool:
        """Return whether no limit holds a job in a partition; one that does is its reason."""
        if not self.profile.limits:
            return True
        reason = self._book.reason(self._waiting.asks(ticket), system.now)
        system.ledger.explain(ticket.job.index, system.now, reason)
        return not reason

    def _refuse_for_ever(self, job: Job, system: System) -> None:
        """Reject a job that limits hold for ever in all of its partitions."""
        if not self.profile.limits or not system.ledger.waits(job.index):
            return
        parts = self._waiting.parts_of(job.index)
        reasons = [self._book.never(self._waiting.asks(Ticket(job, part))) for part in parts]
        if all(reasons):
            system.ledger.explain(job.index, system.now, reasons[0])
            system.ledger.release(job.index, system.now, for_good=True)
            system.reject(job)


class _Tested:
    """How many jobs a backfill has tested, and how many it may test."""

    def __init__(self, scheduler: SlurmScheduler) -> None:
        clocks = scheduler.profile.clocks
        self._waiting = scheduler._waiting
        self._most = clocks.bf_max_job_test
        self._limits = (
            clocks.bf_max_job_part,
            clocks.bf_max_job_user,
            clocks.bf_max_job_user_part,
            clocks.bf_max_job_assoc,
        )
        self._counts: list[Counter[Any]] = [Counter() for _ in self._limits]
        self._tested = 0
        self.over = False

    def beyond(self, ticket: Ticket) -> bool:
        """Count a job; return whether a limit of its partition, user or association passes it over."""
        ask = self._waiting.asks(ticket)
        keys = ticket.part, ask.user, (ask.user, ticket.part), ask.place
        for most, count, key in zip(self._limits, self._counts, keys, strict=True):
            if most and count[key] >= most:
                return True
        for count, key in zip(self._counts, keys, strict=True):
            count[key] += 1
        self._tested += 1
        self.over = bool(self._most) and self._tested > self._most
        return False


def _check(partitions: Any) -> None:
    """Raise a UsageError for what the profile has another rule for."""
    for part in partitions.parts:
        for name, given in (("in_use", bool(part.in_use)), ("order", part.order is not None)):
            if given:
                raise UsageError(
                    f"partition {part.name!r}: Slurm as configured has no {name}, but QOS and priorities"
                )
