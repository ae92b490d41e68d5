"""Slurm as configured: many futures of one moment, which have jobs, configuration and past in common.

A future consists of the jobs of a log up to the moment, and of jobs of the log that arrive again. What the
jobs of the log ask for is computed once, the past is repeated once for each moment, and a future is over when
all jobs that wait at the moment have started. Users that the tree of associations lacks are those of the
whole log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled import loading, slurm_runs
from hpcsimkit.compiled import slurm_arrays as arrays
from hpcsimkit.compiled import slurm_state as state
from hpcsimkit.compiled import slurm_stopping as stopping
from hpcsimkit.compiled.needs import NOW
from hpcsimkit.compiled.slurm_loop import LACKS_SPACE, OVER, PAUSED
from hpcsimkit.compiled.slurm_past import past_of
from hpcsimkit.compiled.state import Integers
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Rules

__all__ = ["Coming", "SlurmFutures", "SlurmMoment"]

PartsT = TypeVar("PartsT", state.Run, state.Limits)


class Coming(NamedTuple):
    """Jobs of a future.

    Attributes
    ----------
    rows : array of int64, shape (jobs,)
        Their rows in the log.
    submit_time, run_time, requested_time : array of int64, shape (jobs,)
        Their times [s].
    """

    rows: Integers
    submit_time: Integers
    run_time: Integers
    requested_time: Integers


class SlurmFutures:
    """The jobs of a log under a configuration.

    Parameters
    ----------
    profile : Rules
        The configuration.
    partitions : Partitions
        The partitions.
    workload : Workload
        The jobs.
    restart : Restart
        Rules of jobs that are stopped, which begin anew.
    """

    def __init__(self, profile: Rules, partitions: Partitions, workload: Workload, restart: Restart) -> None:
        self.profile, self.partitions, self.restart = profile, partitions, restart
        self.requests = Requests(profile, partitions, workload)
        tickets = arrays.tickets_of(self.requests)
        self.places = arrays.places_of(workload, partitions, tickets)
        classes, first = arrays.classes_of(self.requests, tickets)
        self.limits = arrays.limits_of(profile, self.requests, tickets, first)[0]
        self.factors = arrays.factors_of(profile.priority, self.requests)
        self.jobs = arrays.jobs_of(self.requests, tickets, workload, self.places.need, classes)
        self.preemption, kind = None, loading.SLURM
        if slurm_runs.stops_jobs(profile, workload, partitions):
            kind = f"{kind}-{loading.STOPS}"
            alone = np.arange(len(workload))  # jobs of futures are no tasks of arrays
            self.preemption = stopping.preemption_of(profile, self.requests, tickets, self.jobs, alone)
        self.simulate = loading.load(kind)

    def moment(self, jobs: Workload, rows: Integers, begun: Begun, waiting: int) -> SlurmMoment | None:
        """Return the state at a time; None if the past is not possible.

        Parameters
        ----------
        jobs : Workload
            The jobs up to then, the last ones waiting. The run times of those that have not ended do not
            matter.
        rows : array of int64, shape (jobs,)
            Their rows in the log.
        begun : Begun
            The starts up to then.
        waiting : int
            Number of jobs that wait.
        """
        times = (jobs.column(name).astype(np.int64) for name in Coming._fields[1:])
        moment = SlurmMoment(self, Coming(rows, *times), waiting)
        return moment if moment.replay(begun, jobs) else None


class SlurmMoment:
    """The state at a time, when the past is over and the policy has not made its first pass.

    Parameters
    ----------
    futures : SlurmFutures
        The jobs of the log.
    known : Coming
        The jobs up to then, the last ones waiting.
    waiting : int
        Number of jobs that wait.
    """

    def __init__(self, futures: SlurmFutures, known: Coming, waiting: int) -> None:
        self._futures, self._known, self._waiting = futures, known, waiting
        self._clocks = self._clocks_from(known)
        numbers = futures.requests.numbers[known.rows]
        self._in_order = np.argsort(numbers, kind="stable").astype(np.int64)

    def replay(self, begun: Begun, jobs: Workload) -> bool:
        """Repeat the past; return whether that is possible."""
        futures, rows = self._futures, self._known.rows
        made, tickets, which = self._select(self._known)
        past = past_of(begun, jobs, futures.partitions, tickets)
        if past is None:
            return False
        self._past = past
        self._nodes = arrays.nodes_of(futures.places, futures.partitions, self._steps(which))
        self._limits = _limits_of(futures.limits, rows)
        run, stops = self._new(made, rows, which)
        run.counters[[state.ACTING, state.PAUSES]] = 0, 1
        code, self._run, self._stops = self._go_on(made, self._limits, run, stops)
        self._free = self._nodes.levels.levels[NOW].copy()
        return code == PAUSED

    def starts(self, run_time: Integers, coming: Coming) -> Integers | None:
        """Return when the waiting jobs start in a future [s], -1 for never; None if the run fails.

        Parameters
        ----------
        run_time : array of int64, shape (active jobs,)
            Run times of the last jobs up to the moment, those that have not ended [s].
        coming : Coming
            Jobs that arrive after the moment, in the order of submission.
        """
        known = len(self._known.rows)
        ran = self._known._replace(
            run_time=np.concatenate([self._known.run_time[: known - len(run_time)], run_time])
        )
        whole = Coming(*map(np.concatenate, zip(ran, coming, strict=True)))
        if not self._run.counters[state.ARRIVED]:
            self._clocks = self._clocks_from(whole)  # the first job of all may be one that arrives
        jobs, _, which = self._select(whole)
        steps = self._steps(which)
        if steps > len(self._nodes.steps):
            self._nodes = arrays.nodes_of(self._futures.places, self._futures.partitions, steps)
        self._nodes.levels.levels[NOW] = self._free
        self._nodes.counters[state.CHANGES] += 1
        self._nodes.changed_at[:] = self._nodes.counters[state.CHANGES]
        self._nodes.counters[state.NEW_PLANNED] = 0  # the last plan is that of another run
        new, stops = self._new(jobs, whole.rows, which)
        run = self._at_moment(new)
        _end_anew(run, jobs)
        if stops is not None:
            assert self._stops is not None
            stops = stopping.continued(self._stops, stops)
        asked = self._waiting, known - self._waiting, known
        run.counters[[state.ASKED, state.FIRST_ASKED, state.LAST_ASKED]] = asked
        limits = _continued(self._limits, _limits_of(self._futures.limits, whole.rows))
        code, run, stops = self._go_on(jobs, limits, run, stops)
        found = run.start_time if stops is None else stops.first_start
        return found[known - self._waiting : known] if code == OVER else None

    def _clocks_from(self, coming: Coming) -> state.Clocks:
        """Return the clocks of a run of some jobs, which begins with the first of them."""
        return arrays.clocks_of(self._futures.profile, int(coming.submit_time.min()))

    def _at_moment(self, new: state.Run) -> state.Run:
        """Return the state of a future at the moment; it is a new one if no job was submitted by then."""
        known = self._run
        if known.counters[state.ARRIVED]:
            return _continued(known, new)
        paused = [state.ACTING, state.PAUSES]
        new.counters[paused] = known.counters[paused]
        return new

    def _select(self, coming: Coming) -> tuple[state.Jobs, arrays.Tickets, Integers]:
        """Return some jobs of the log with other times, their tickets, and the numbers of these in the log.

        Jobs that arrive have higher numbers than those up to the moment, in the order in which they arrive.
        """
        log, rows = self._futures.jobs, coming.rows
        in_order = np.concatenate([self._in_order, np.arange(len(self._in_order), len(rows))])
        count = log.tickets[rows]
        first = np.empty(len(rows), dtype=np.int64)
        first[in_order] = np.cumsum(count[in_order]) - count[in_order]
        row = np.repeat(in_order, count[in_order])
        which = log.first_ticket[rows[row]] + np.arange(len(row)) - first[row]
        made = log._replace(
            submit_time=_fixed(coming.submit_time),
            run_time=_fixed(coming.run_time),
            requested_time=_fixed(coming.requested_time),
            arrival_order=np.argsort(coming.submit_time, kind="stable").astype(np.int64),
            first_ticket=first,
            tickets=count,
            row=row,
            **{name: getattr(log, name)[rows] for name in ("user", "place", "factor", "nodes")},
            **{name: getattr(log, name)[which] for name in ("part", "need", "class_", "standing", "billing")},
        )
        return made, arrays.Tickets(row, made.part, first, count), which

    def _steps(self, which: Integers) -> int:
        """Return the maximum number of steps of a plan of some tickets."""
        places, machines = self._futures.places, self._futures.partitions.machines
        assert machines is not None
        places = places._replace(most=places.most[which])
        return arrays.steps_of(places, len(machines), self._clocks.bf_max_job_test)

    def _new(self, jobs: state.Jobs, rows: Integers, which: Integers) -> tuple[state.Run, state.Stops | None]:
        """Return the state before the first event, and that of stops if there are any."""
        futures = self._futures
        tree, rules = futures.requests.associations, futures.profile.priority
        most = futures.places.most[which]
        run = arrays.new_run(self._clocks, jobs, tree, rules, most, self._nodes)
        if futures.preemption is None:
            return run, None
        preemption = stopping.of_some(futures.preemption, rows, len(which))
        return stopping.with_stops(preemption, futures.restart, jobs, most, run)

    def _go_on(
        self, jobs: state.Jobs, limits: state.Limits, run: state.Run, stops: state.Stops | None
    ) -> tuple[int, state.Run, state.Stops | None]:
        """Simulate; return what the simulation says, and the state."""
        futures, nodes, past = self._futures, self._nodes, self._past
        while True:
            code = futures.simulate(self._clocks, futures.factors, jobs, limits, nodes, past, run, stops)
            if code != LACKS_SPACE:
                return code, run, stops
            run, stops = stopping.with_space(run, stops)


def _fixed(values: Integers) -> Integers:
    """Return values as those of a workload are, for which the simulator has been compiled: read-only."""
    fixed = values.view()
    fixed.flags.writeable = False
    return fixed


def _limits_of(log: state.Limits, rows: Integers) -> state.Limits:
    """Return the limits of some jobs of the log, none of which runs."""
    return log._replace(
        asked=np.take(log.asked, rows, axis=1),
        has=np.zeros((len(log.source), len(rows))),
        **{
            name: getattr(log, name).copy()
            for name in ("running", "minutes", "jobs", "counted_at", "changed_at")
        },
    )


def _continued(begun: PartsT, whole: PartsT) -> PartsT:
    """Return a new state with more jobs in which the first ones have the values of another one."""
    pairs = cast("Iterator[tuple[NDArray[Any], NDArray[Any]]]", zip(begun, whole, strict=True))
    for known, values in pairs:
        part = tuple(slice(min(pair)) for pair in zip(known.shape, values.shape, strict=True))
        values[part] = known[part]
    return whole


def _end_anew(run: state.Run, jobs: state.Jobs) -> None:
    """Let the running jobs end after their run times."""
    ends = run.ends[:, : run.counters[state.RUNNING]]
    ends[0] = run.start_time[ends[2]] + jobs.run_time[ends[2]]
    ends[:] = ends[:, np.lexsort(ends[1::-1])]  # sorted by ends and numbers, it is a heap
