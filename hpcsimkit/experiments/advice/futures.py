"""Futures: runs that begin with the jobs that run and wait at a time, with drawn run times and arrivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.closures import Closures
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.advice.arrivals import DAY, PastArrivals
from hpcsimkit.experiments.advice.live import OPEN
from hpcsimkit.experiments.advice.run_times import PastRunTimes
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.jobs.job import UNKNOWN, Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun, begun_of
from hpcsimkit.kernel.job_gates import BeginTimes
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.policy import Estimator, Order, Policy
from hpcsimkit.kernel.simulators import taking
from hpcsimkit.kernel.stage import Hearing
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.reasons import ARRAY_LIMIT, AT_ONCE
from hpcsimkit.slurm.rules import Rules
from hpcsimkit.slurm.scheduler import SlurmScheduler

if TYPE_CHECKING:
    from hpcsimkit.compiled.slurm_futures import Coming, SlurmFutures, SlurmMoment

__all__ = ["Futures", "Moment", "with_request"]

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Columns = Mapping[str, Any]
FairShares = Mapping[tuple[str, str], float]

MARGIN = 600
"""Time beyond the longest wait as requested for which jobs are drawn at least [s]."""

MEMORY = 60 * DAY
"""Time for which ended jobs stay in the past of a policy that has a memory [s]."""

NO_ARRIVALS = np.zeros((2, 0), dtype=np.int64)
"""Rows and times of no jobs that arrive."""


@dataclass(frozen=True)
class Moment:
    """The jobs of a log at a time.

    Parameters
    ----------
    at : int
        The time [s]; the events and starts of this instant are over.
    past, running, waiting : array of int64
        Rows of the jobs whose ended attempts are in the policy's memory, that run, and that wait.
    attempts : array of int64
        Rows of these ended attempts, and of the present ones of the jobs that run.
    """

    at: int
    past: Integers
    running: Integers
    waiting: Integers
    attempts: Integers

    @property
    def active(self) -> Integers:
        """Rows of the jobs that run or wait."""
        return np.concatenate([self.running, self.waiting])


class _Ready(NamedTuple):
    """What all futures of a time have in common: the state, also compiled, and the starts as requested."""

    begun: Begun
    prepared: SlurmMoment | None
    as_requested: Integers


class Futures:
    """What may happen from a time on.

    Parameters
    ----------
    case : Case
        Jobs, policy and options of the run.
    result : Result
        The run of all jobs of the log, from which the state at any time is taken.
    request : mapping, optional
        Columns of a further job, which is submitted at the time in question. Default: none.
    recorded : bool
        Whether the result is the schedule on record, in which more may be in use than the cluster has.
        Default: False.
    live_at : int, optional
        Time of a live queue [s], at which its jobs with a begin time ahead are known. Default: no such jobs.
    """

    def __init__(
        self,
        case: Case,
        result: Result,
        request: Columns | None = None,
        *,
        recorded: bool = False,
        live_at: int | None = None,
    ) -> None:
        self.case, self.result, self.request, self.recorded = case, result, request, recorded
        self._live_at = live_at
        self._each, self._attempts = result.by_attempt, result.attempts
        self._job = np.arange(len(result)) if self._attempts is None else self._attempts.job
        self._jobs = result.workload if request is None else with_request(result.workload, request)
        self._last: dict[int, _Ready] = {}

    @cached_property
    def _run_times(self) -> PastRunTimes:
        extra = len(self._jobs) - len(self.result)
        return PastRunTimes(self._jobs, np.append(self.result.end_time, [UNKNOWN] * extra))

    @cached_property
    def _arrivals(self) -> PastArrivals:
        return PastArrivals(self.result.workload)

    @cached_property
    def _policy(self) -> Policy:
        """The policy in the futures: that of Slurm makes its plans faster, and is compiled."""
        policy = self.case.policy
        if not isinstance(policy, SlurmScheduler):
            return policy
        profile = policy.profile.without_grace
        clocks = replace(profile.clocks, end_groups=False, completing=0)
        return SlurmScheduler(replace(profile, clocks=clocks))

    @cached_property
    def _slurm(self) -> SlurmFutures | None:
        """The jobs of the log for compiled futures of Slurm as configured; None for any others."""
        policy, cluster = self._policy, self.case.cluster
        if type(policy) is not SlurmScheduler or not isinstance(cluster, Partitions):
            return None
        setup = replace(self.case.setup, begin_at=None, simulator="auto")
        if taking(Scenario(self._jobs, setup).simulation(policy)) is None:
            return None
        from hpcsimkit.compiled.slurm_futures import SlurmFutures

        return SlurmFutures(policy.profile, cluster, self._jobs, setup.restart)

    @cached_property
    def _remembers(self) -> bool:
        """Whether the policy decides by what it has seen."""
        return any(map(_remembers, parts(self.case.policy)))

    @cached_property
    def _is_remembered(self) -> Mask:
        """A mask of the attempts that the policy remembers once they are over.

        They are the last ones of the jobs: what learns from run times is not to learn from those that were
        stopped. With Slurm's usage, to which all of them add, they are all.
        """
        if isinstance(self.case.policy, SlurmScheduler):
            return np.ones(len(self._each), dtype=bool)
        return (np.diff(self._job, append=-1) != 0) & self._remembers

    @cached_property
    def _is_again(self) -> Mask:
        """A mask of the attempts for which jobs that were stopped have joined Slurm's queue anew."""
        return (np.diff(self._job, prepend=-1) == 0) & isinstance(self.case.policy, SlurmScheduler)

    def moment(self, at: int) -> Moment:
        """Return the jobs at a time; the further job waits."""
        result, each = self.result, self._each
        begun = (each.start_time >= 0) & (each.start_time <= at)
        present = np.flatnonzero(begun & (each.end_time > at))
        waits = result.end_time > at
        if at != self._live_at:
            waits &= result.submit_time <= at
        waits[self._job[present]] = False
        waiting = np.flatnonzero(waits)
        if self.request is not None:
            waiting = np.append(waiting, len(result))
        over = (each.end_time <= at) & (each.end_time > at - MEMORY)
        past = np.flatnonzero(begun & over & self._is_remembered)
        return Moment(at, self._job[past], self._job[present], waiting, np.concatenate([past, present]))

    def next_start(self, moment: Moment) -> Integers:
        """Return when the waiting jobs start in the run of the log [s]; -1 for a request, and if unknown."""
        following = self._following(moment)
        return np.where(following < 0, -1, self._each.start_time[following])

    def _following(self, moment: Moment) -> Integers:
        """Return the next attempts of the waiting jobs in the run of the log; -1 for none."""
        later = np.flatnonzero((self._each.start_time > moment.at) & (self._each.start_time < OPEN))
        found = np.full(len(self._jobs), -1, dtype=np.int64)
        order = later[np.argsort(-self._each.start_time[later], kind="stable")]
        found[self._job[order]] = order  # the first one is written last
        return found[moment.waiting]

    def as_requested(self, moment: Moment) -> Integers:
        """Return the starts of the waiting jobs if all jobs run as requested, and none comes [s]."""
        return self._ready(moment).as_requested

    def reasons(self, moment: Moment, fair_shares: FairShares | None = None) -> list[str]:
        """Return why the waiting jobs wait, as Slurm says it; empty without Slurm's configuration.

        Parameters
        ----------
        moment : Moment
            The jobs at a time.
        fair_shares : mapping of (str, str) to float, optional
            Fair shares by account and user, as ``sshare`` prints them; by default those of the jobs of the
            log.
        """
        policy = self.case.policy
        if not isinstance(policy, SlurmScheduler):
            return [""] * len(moment.waiting)
        since = int(self._jobs.submit_time[moment.waiting].min(initial=moment.at))
        last = len(moment.past) + len(moment.active)
        limited = last - len(moment.waiting) + np.flatnonzero(self._limited_before(moment))
        asked = _Asked(policy.profile, moment.at, fair_shares or {}, since, limited.tolist())
        rows, times = NO_ARRIVALS
        held = self._run(moment, self._ready(moment).begun, self._longest(moment), rows, times, asked).held
        told: dict[int, str] = {}
        if held is not None:
            then = (held.start <= moment.at) & (held.end >= moment.at)
            pairs = [*zip(held.job[then].tolist(), held.reason[then].tolist(), strict=True)]
            told = dict(reversed(pairs))  # the first reason: the end of the run is of no interest
        told |= asked.told
        ahead = self._jobs.submit_time[moment.waiting] > moment.at
        first = last - len(moment.waiting)
        told |= dict.fromkeys((first + np.flatnonzero(ahead)).tolist(), BeginTimes.reason)
        found = [told.get(row, "") for row in range(first, last)]
        return found if "array_job" not in self._jobs.columns else self._of_arrays(moment.waiting, found)

    def _limited_before(self, moment: Moment) -> Mask:
        """Return a mask of the waiting jobs that the limit of an array has held: Slurm keeps this reason.

        On record, such a task is eligible later than it was submitted.
        """
        limited = self._jobs.column("array_limit") >= 0
        found = limited & (self._jobs.column("recorded_held_time") > AT_ONCE)
        held = self.result.held
        if held is not None:
            found[held.job[(held.reason == ARRAY_LIMIT) & (held.start < moment.at)]] = True
        return found[moment.waiting]

    def _of_arrays(self, waiting: Integers, found: list[str]) -> list[str]:
        """Return reasons in which the tasks of an array, one record of Slurm, have that of the first one."""
        arrays = self._jobs.column("array_job")[waiting].tolist()
        first = {
            array: reason
            for array, reason in reversed([*zip(arrays, found, strict=True)])
            if array >= 0 and reason != ARRAY_LIMIT
        }
        return [first.get(array, reason) for array, reason in zip(arrays, found, strict=True)]

    def draw(self, moment: Moment, futures: int, rng: np.random.Generator) -> Iterator[Integers]:
        """Yield the start times of the waiting jobs in futures [s], each of shape (waiting jobs,)."""
        at, (begun, prepared, as_requested) = moment.at, self._ready(moment)
        ran = self._done(moment) + self._elapsed(moment)
        run_times = self._run_times.draw(moment.active, ran, at, futures, rng)
        longest = int(as_requested.max(initial=at)) - at
        horizon = longest + min(longest + MARGIN, DAY)  # jobs that come may delay what waits
        reach = longest // 2
        for run_time in run_times:
            rows, submit_time = self._arrivals.draw(at, horizon, rng)
            if prepared is not None:
                found = prepared.starts(*self._coming(moment, run_time, rows, submit_time))
                if found is not None:
                    yield found
                    continue
            # Jobs that come when all others have started change nothing: most futures do without them.
            near = submit_time <= at + reach
            starts = self._starts(moment, begun, run_time, rows[near], submit_time[near])
            if starts.max(initial=at) > at + reach:
                starts = self._starts(moment, begun, run_time, rows, submit_time)
            reach = int(1.25 * (starts.max(initial=at) - at))
            yield starts

    def _ready(self, moment: Moment) -> _Ready:
        """Return what all futures of a time have in common; that of the last time is kept."""
        if moment.at not in self._last:
            begun = self._begun(moment)
            prepared = self._prepared(moment, begun)
            longest, found = self._longest(moment), None
            if prepared is not None:
                found = prepared.starts(*self._coming(moment, longest, *NO_ARRIVALS))
            if found is None:
                found = self._starts(moment, begun, longest, *NO_ARRIVALS)
            self._last = {moment.at: _Ready(begun, prepared, found)}
        return self._last[moment.at]

    def _prepared(self, moment: Moment, begun: Begun) -> SlurmMoment | None:
        """Return the state at a time for compiled futures of Slurm as configured; None for any others."""
        if self._slurm is None or self._done(moment).any():
            return None
        known = np.concatenate([moment.past, moment.active])
        jobs = self._again(moment, self._longest(moment), *NO_ARRIVALS)
        if self.case.setup.walltime == "kill":
            jobs = jobs.killed_at_limit
        return self._slurm.moment(jobs, known, begun, len(moment.waiting))

    def _coming(
        self, moment: Moment, run_time: Integers, rows: Integers, submit_time: Integers
    ) -> tuple[Integers, Coming]:
        """Return the run times of the active jobs in one future, and the arrivals; see :meth:`_run`."""
        from hpcsimkit.compiled.slurm_futures import Coming

        jobs = self._jobs
        run_times, requested_time = jobs.run_time.copy(), jobs.requested_time[rows]
        run_times[moment.active] = run_time  # see _again
        later = run_times[rows]
        if self.case.setup.walltime == "kill":
            run_time = np.minimum(run_time, jobs.requested_time[moment.active])
            later = np.minimum(later, requested_time)
        return run_time, Coming(rows, submit_time, later, requested_time)

    def _longest(self, moment: Moment) -> Integers:
        """Return the run times of the active jobs if they run as long as requested [s]."""
        least = self._done(moment) + self._elapsed(moment) + 1
        return np.maximum(self._jobs.requested_time[moment.active], least)

    def _elapsed(self, moment: Moment) -> Integers:
        """Return how long the active jobs have run since their present start [s]."""
        waited = np.zeros(len(moment.waiting), dtype=np.int64)
        present = moment.attempts[len(moment.past) :]
        return np.concatenate([moment.at - self._each.start_time[present], waited])

    def _done(self, moment: Moment) -> Integers:
        """Return the work of the active jobs that they keep from earlier attempts [s]."""
        done = np.zeros(len(self._jobs), dtype=np.int64)
        if self._attempts is not None and self.case.setup.restart.preempted == "continue":
            over = self._attempts.end_time <= moment.at
            np.add.at(done, self._job[over], self._attempts.work[over])
        return done[moment.active]

    def _begun(self, moment: Moment) -> Begun:
        """Return the state at a time, by rows of the run of a future."""
        begun = begun_of(self._each, moment.at, moment.attempts)
        return replace(begun, before="log") if self.recorded else begun

    def _starts(
        self, moment: Moment, begun: Begun, run_time: Integers, rows: Integers, submit_time: Integers
    ) -> Integers:
        """Return the start times of the waiting jobs in one future; see :meth:`_run`."""
        result = self._run(moment, begun, run_time, rows, submit_time, self._policy)
        last = len(moment.past) + len(moment.active)
        return result.start_time[last - len(moment.waiting) : last]

    def _run(
        self,
        moment: Moment,
        begun: Begun,
        run_time: Integers,
        rows: Integers,
        submit_time: Integers,
        policy: Policy,
    ) -> Result:
        """Return the run of one future: past jobs, active ones of which the last ones wait, and arrivals.

        Parameters
        ----------
        run_time : array of int64, shape (active jobs,)
            Run times of the active jobs [s], with what they have done.
        rows, submit_time : array of int64, shape (arrivals,)
            Rows of the past jobs that arrive again, and their submission times [s].
        """
        jobs = self._again(moment, run_time, rows, submit_time)
        setup = replace(self.case.setup, begun=begun, begin_at=None, simulator="auto")
        return Scenario(jobs, setup).simulation(policy, name=self.case.name).run()

    def _again(self, moment: Moment, run_time: Integers, rows: Integers, submit_time: Integers) -> Workload:
        """Return the jobs of one future; those of the past run for as long as their attempts did.

        A job that was stopped for good, or went on after a stop, did not run for its whole run time then. In
        Slurm, one that waits again does so since it joined the queue again, as if it was submitted then.
        """
        known, done = np.concatenate([moment.past, moment.active]), self._done(moment)
        jobs = _again(self._jobs, known, rows, submit_time, run_time, done)
        ran, last = jobs.run_time.copy(), moment.attempts[: len(moment.past)]
        ran[: len(last)] = self._each.end_time[last] - self._each.start_time[last]
        joined = jobs.submit_time.copy()
        joined[: len(known)] = self._joined(moment, joined[: len(known)])
        return replace(jobs, columns={**jobs.columns, "run_time": ran, "submit_time": joined})

    def _joined(self, moment: Moment, submit_time: Integers) -> Integers:
        """Return when the known jobs joined the queue: when they were submitted, or came back."""
        if self._attempts is None:
            return submit_time
        attempt = np.concatenate([moment.attempts, self._following(moment)])
        again = (attempt >= 0) & self._is_again[attempt]
        return np.where(again, self._attempts.submit_time[attempt], submit_time)


class _Asked(SlurmScheduler):
    """Slurm as configured, which says why jobs wait at a time, and then rejects all, so that the run ends.

    With a calendar, it follows the reasons from an earlier time on, as jobs keep some of them. Those that the
    limit of an array has held are given.
    """

    def __init__(
        self, profile: Rules, at: int, fair_shares: FairShares, since: int, limited: Sequence[int]
    ) -> None:
        super().__init__(profile)
        self.at, self.fair_shares, self.since, self.limited = at, fair_shares, since, limited
        self.told: dict[int, str] = {}
        self._asked = False

    def __deepcopy__(self, memo: object) -> _Asked:
        return self  # what it tells is asked for outside of the run

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Follow the reasons of the jobs that are left."""
        super().on_start(job, allocation, system)
        self._follow(system)

    def on_submit(self, job: Job, system: System) -> None:
        """Follow the reasons of the jobs that wait."""
        super().on_submit(job, system)
        if self._follows(system) and (lack := self.reason_at_submission(job, system)):
            self.told[job.index] = lack
        self._follow(system)

    def _follows(self, system: System) -> bool:
        return isinstance(system.calendar, Closures) and self.since <= system.now < self.at

    def _follow(self, system: System) -> None:
        if self._follows(system):
            self.told = self.reasons(system, {}, self.told, settled=False)

    def schedule(self, system: System) -> None:
        """Tell the reasons of the main loop."""
        if system.now == self.at and not self._asked:
            before = self.told | dict.fromkeys(self.limited, ARRAY_LIMIT)
            self.told = self.reasons(system, self.fair_shares, before, settled=True)
            self._asked = True
        for job in list(system.queue):
            system.reject(job)


def _remembers(part: object) -> bool:
    """Return whether a part of a policy hears of jobs that come and end."""
    hears = isinstance(part, Hearing) and any(
        getattr(type(part), name) is not getattr(Hearing, name)
        for name in ("on_submit", "on_start", "on_end", "on_stop")
    )
    arrives = isinstance(part, Order) and type(part).arrive is not Order.arrive
    return hears or arrives or (isinstance(part, Estimator) and part.observes)


def _again(
    workload: Workload,
    known: Integers,
    rows: Integers,
    submit_time: Integers,
    run_time: Integers,
    done: Integers,
) -> Workload:
    """Return known jobs, the last ones with the rest of other run times, and jobs that arrive again."""
    which = np.concatenate([known, rows])
    once_more = np.ones(len(which), dtype=bool)  # earlier attempts of jobs, and jobs that arrive again
    once_more[len(known) - 1 - np.unique(known[::-1], return_index=True)[1]] = False
    columns = {name: workload.column(name)[which] for name in workload.columns}
    active = slice(len(known) - len(run_time), len(known))
    columns["run_time"][active] = run_time - done
    known_times = workload.run_time.copy()
    # A copy of a job that has not ended takes as long as the job itself: nothing else is known of it.
    known_times[known[active]] = run_time
    columns["run_time"][len(known) :] = known_times[rows]
    if done.any():
        columns["requested_time"][active] = np.maximum(columns["requested_time"][active] - done, 1)
    columns["submit_time"][len(known) :] = submit_time
    later = submit_time - workload.submit_time[rows]
    for name in ("begin_time", "hold_until"):
        if name in columns:
            part = columns[name][len(known) :]
            part[part >= 0] += later[part >= 0]
    if "id" in columns:
        first = int(workload.id.max(initial=0)) + 1
        columns["id"][once_more] = np.arange(first, first + once_more.sum())
    for name in ("preceding", "dependency", "array_job", "array_limit"):
        if name in columns:
            columns[name][once_more] = UNKNOWN
    labels = {name: texts for name, texts in workload.labels.items() if name != "id"}
    return replace(workload, columns=columns, labels=labels, lines=None)


def with_request(workload: Workload, request: Columns) -> Workload:
    """Return a workload with a further job, the last one."""
    columns = {
        name: np.append(workload.column(name), request.get(name, UNKNOWN)) for name in workload.columns
    }
    return replace(workload, columns=columns, lines=None)
