"""The arrays of runs of Slurm as configured whose jobs may be stopped, and what these add to results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled import slurm_arrays as arrays
from hpcsimkit.compiled import slurm_state as state
from hpcsimkit.compiled.attempts import STOPPED, new_attempts, restart_rules, table_of
from hpcsimkit.compiled.attempts import with_space as with_more_stops
from hpcsimkit.compiled.on_machines import placements_in
from hpcsimkit.compiled.state import Integers
from hpcsimkit.kernel.attempts import events_of_attempts
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.queue import requeues
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Rules

SPACE = 1
"""Number of stops of each job for which space is set aside, besides those of one instant; more is added when
it is needed."""


def preemption_of(
    profile: Rules, requests: Requests, tickets: arrays.Tickets, jobs: state.Jobs, records: Integers
) -> state.Preemption:
    """Return which jobs may be stopped for others.

    Parameters
    ----------
    profile : Rules
        The configuration.
    requests : Requests
        The jobs.
    tickets : Tickets
        The tickets.
    jobs : Jobs
        The jobs as arrays.
    records : array of int64, shape (jobs,)
        The record of each job in Slurm's queue.
    """
    by_tier = profile.preempt == "partition_prio"
    each = {"" if qos is None else qos.name: qos for qos in requests.qos}
    number_of = {name: number for number, name in enumerate(each)}
    if by_tier:
        tiers = np.arange(int(jobs.tier.max()) + 1)
        may, rank = tiers[:, None] < tiers, -tiers
    else:
        stopped = [qos.preempts if qos is not None and profile.preempt else () for qos in each.values()]
        may = np.array([[name in names and bool(name) for name in each] for names in stopped])
        rank = np.array([0 if qos is None else qos.priority for qos in each.values()])
    weights = [profile.node_weights.get(name, 1) for name in profile.machines.names]
    pairs = records[tickets.row] * len(requests.names) + tickets.part
    return state.Preemption(
        by_tier=int(by_tier),
        accrues=int("ACCRUE_ALWAYS" in profile.priority.flags),
        completing=profile.clocks.completing,
        sets=len(set(weights)),
        may=may.astype(np.uint8),
        kind=np.array([number_of["" if qos is None else qos.name] for qos in requests.qos], dtype=np.int64),
        rank=rank.astype(np.int64),
        requeues=np.array(
            [[requeues(profile, qos, name) for name in requests.names] for qos in each.values()],
            dtype=np.uint8,
        ),
        protected=np.array([name in profile.protected for name in requests.names], dtype=np.uint8),
        set_of=np.unique(weights, return_inverse=True)[1].astype(np.int64),
        record=np.unique(pairs, return_inverse=True)[1].astype(np.int64),
    )


def with_stops(
    rules: state.Preemption, restart: Restart, jobs: state.Jobs, most: Integers, run: state.Run
) -> tuple[state.Run, state.Stops]:
    """Return the state before the first event, with space for jobs that are stopped.

    Parameters
    ----------
    rules : Preemption
        Rules by which jobs may be stopped.
    restart : Restart
        Rules of jobs that were stopped, which begin anew.
    jobs : Jobs
        The jobs.
    most : array of int64, shape (tickets,)
        Maximum number of parts of an allocation of each ticket.
    run : Run
        The state of a run without stops.
    """
    count, tickets = len(jobs.run_time), len(jobs.row)
    machines, columns = len(run.closed), run.parts.shape[1]
    at_once = count + 2 * tickets  # see lacks_space
    counters = np.zeros(state.STOP_COUNTERS, dtype=np.int64)
    counters[state.MOST_PARTS] = most.sum()
    stops = SPACE * count + at_once
    made = state.Stops(
        rules,
        restart_rules(restart),
        new_attempts(jobs.submit_time, stops),
        places=np.empty((3, stops), dtype=np.int64),
        first_start=np.full(count, -1, dtype=np.int64),
        given_up=np.full(count, -1, dtype=np.int64),
        present=np.zeros(len(rules.may), dtype=np.int64),
        until=np.zeros(machines, dtype=np.int64),
        waits=np.zeros(count, dtype=np.int64),
        shut=np.zeros(machines, dtype=np.uint8),
        candidates=np.empty(count, dtype=np.int64),
        overlap=np.empty(count, dtype=np.int64),
        marked=np.zeros(machines, dtype=np.uint8),
        chosen=np.empty((machines, columns), dtype=np.int64),
        rejoined=np.empty(count, dtype=np.int64),
        rank=np.empty(tickets, dtype=np.int64),
        follows=np.empty(tickets, dtype=np.int64),
        merged=np.empty(tickets, dtype=np.int64),
        last_of=np.empty(tickets, dtype=np.int64),
        listed_at=np.zeros(tickets, dtype=np.int64),
        wait=np.zeros(len(rules.may), dtype=np.uint8),
        counters=counters,
    )
    parts = len(run.parts) + 2 * int(most.sum())
    events = 2 * (count + stops)
    run = run._replace(parts=np.empty((parts, columns), np.int64), events=np.empty(events, np.int64))
    return run, made


def of_some(rules: state.Preemption, rows: Integers, tickets: int) -> state.Preemption:
    """Return the rules for some jobs of a log, each of which is a record of its own."""
    return rules._replace(kind=rules.kind[rows], record=np.arange(tickets))


def continued(begun: state.Stops, whole: state.Stops) -> state.Stops:
    """Return a new state with more jobs that goes on from another one, in which no job has been stopped."""
    whole.first_start[: len(begun.first_start)] = begun.first_start
    whole.present[:] = begun.present
    whole.until[:] = begun.until
    return whole


def with_space(run: state.Run, stops: state.Stops | None) -> tuple[state.Run, state.Stops | None]:
    """Return the same state with twice the space for what limits hold and for stops."""
    run = arrays.with_space(run)
    if stops is None:
        return run, None
    run = run._replace(
        parts=np.concatenate([run.parts, np.empty_like(run.parts)]),
        events=np.concatenate([run.events, np.empty_like(run.events)]),
    )
    places = np.concatenate([stops.places, np.empty_like(stops.places)], axis=1)
    return run, stops._replace(attempts=with_more_stops(stops.attempts), places=places)


def with_attempts(
    result: Result, restart: Restart, partitions: Partitions, run: state.Run, stops: state.Stops
) -> Result:
    """Return a result with the attempts of the jobs; mirrors ``Simulation._made``."""
    given_up = stops.given_up >= 0
    result = replace(
        result,
        end_time=np.where(given_up, stops.given_up, result.end_time),
        killed=result.killed | given_up,
    )
    count = int(stops.attempts.counters[STOPPED])
    ended = result.end_time >= 0
    if not count or not ended.any():
        return result
    last = {name: getattr(result, name) for name in ("start_time", "end_time", "mode")}
    ended &= ~given_up
    table = table_of(stops.attempts, restart, result.workload, last, result.killed & ~given_up, ended)
    assert table is not None
    rows = np.concatenate([stops.attempts.log[0, :count], np.flatnonzero(ended)])
    order = np.argsort(rows, kind="stable")
    each = np.stack([run.first, run.part_count, run.part])[:, ended]
    first, part_count, part = np.concatenate([stops.places[:, :count], each], axis=1)[:, order]
    events = events_of_attempts(run.events[: run.counters[state.EVENTS]], rows[order])
    start_time = result.start_time.copy()
    start_time[table.job[table.first]] = table.start_time[table.first]
    assert partitions.machines is not None
    return replace(
        result,
        start_time=start_time,
        attempts=replace(
            table,
            placements=placements_in(partitions.machines, run.parts, first, part_count, events),
            partition=names_of(partitions, part),
        ),
    )


def names_of(partitions: Partitions, part: Integers) -> NDArray[np.str_]:
    """Return the names of partitions by their numbers, empty for none (-1)."""
    return np.array(np.array(["", *partitions.names])[part + 1].tolist(), dtype=np.str_)
