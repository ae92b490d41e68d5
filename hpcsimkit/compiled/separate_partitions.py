"""Partitions that have neither machines nor jobs in common: each is compiled as a run of its own.

In :class:`~hpcsimkit.kernel.partitioned.PartitionedRun` the partitions share the clock, the record of jobs,
the machines that lie in several of them, and the jobs that may start in several. Each has a policy, a queue
and a stream of random numbers of its own. So without common machines and jobs, what happens in one partition
decides nothing in the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions, View
from hpcsimkit.kernel.attempts import events_of_attempts
from hpcsimkit.kernel.partitioned import policy_in
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.run import RunParameters
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies.backfill.testing import HoleTests
from hpcsimkit.policies.portfolio.guarded import Remembered
from hpcsimkit.policies.predicting.bounded import KeyColumn
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.attempts import COLUMNS, Attempts, Outcome
from hpcsimkit.results.placements import Placements
from hpcsimkit.results.result import Result

OPTIONS = ("cluster", "seed", "walltime", "event_order", "restart", "simulator")
"""Options of a run that mean the same for each partition by itself."""

OF_ALL = (KeyColumn, Remembered, SlurmMultifactor)
"""Classes of stages that depend on the whole log: on its rows, or on all of its users."""

OF_JOBS = ("submit_time", "start_time", "end_time", "mode", "killed")
"""Columns of a result that are those of the partitions, put together."""

Integers = NDArray[np.int64]


class PartRun(NamedTuple):
    """The run of one partition.

    Parameters
    ----------
    partition : str
        Name of the partition.
    view : View
        Its part of the cluster.
    rows : array of int64, shape (jobs,)
        Rows of its jobs in the whole log.
    simulation : Simulation
        The parameters of a run on its nodes or machines only.
    """

    partition: str
    view: View
    rows: Integers
    simulation: Simulation


def obstacles(simulation: RunParameters, partitions: Partitions) -> Iterator[str]:
    """Yield the reasons why the partitions of a run are no runs of their own."""
    if not len(simulation.workload):
        yield "it knows no log without jobs over several partitions"
    for name, value in simulation.setup.given.items():
        if name not in OPTIONS:
            found = f", found {value!r}" if isinstance(value, int | str) else ""
            yield f"it knows no {name} over several partitions{found}"
    for observer in simulation.observers:
        if observer.needs_events:
            yield f"{type(observer).__name__} observes events"
    yield from _obstacles_of_cluster(partitions)
    yield from _obstacles_of_policy(simulation.policy, [part.order for part in partitions.parts])
    if (partitions.admitted(simulation.workload).sum(axis=0) > 1).any():
        yield "it knows no jobs that may start in several partitions"


def _obstacles_of_cluster(partitions: Partitions) -> Iterator[str]:
    for part in partitions.parts:
        if part.in_use:
            yield f"it knows no limits of the amounts in use, found some in {part.name!r}"
    for part, view in zip(partitions.parts, partitions.views, strict=True):
        if not view.cluster.size:
            yield f"it knows no partitions without {view.cluster.unit}, found {part.name!r}"
    views = zip(partitions.names, partitions.views, strict=True)
    for (one, view), (other, another) in combinations(views, 2):
        if view.shares_with(another):
            yield f"it knows no machines in several partitions, found some in {one!r} and {other!r}"


def _obstacles_of_policy(policy: Policy, orders: Sequence[Any]) -> Iterator[str]:
    if not isinstance(policy, Pipeline):
        return
    for stage in (*orders, policy.order, policy.estimates, getattr(policy.backfiller, "candidates", None)):
        if isinstance(stage, OF_ALL):
            yield f"it knows no {type(stage).__name__} over several partitions"
    if isinstance(policy.tester, HoleTests) and policy.tester.draws:
        yield f"it draws no users over several partitions, found {policy.tester!r}"


def runs_of(simulation: RunParameters, partitions: Partitions) -> list[PartRun]:
    """Return the runs of the partitions that have jobs."""
    found, jobs = [], simulation.workload
    each = zip(partitions.parts, partitions.views, partitions.admitted(jobs), strict=True)
    for part, view, admitted in each:
        rows = np.flatnonzero(admitted)
        if len(rows):
            policy = policy_in(part, simulation.policy)
            setup = replace(simulation.setup, cluster=view.cluster)
            of_part = Simulation(jobs.select(rows), policy, setup=setup)
            found.append(PartRun(part.name, view, rows, of_part))
    return found


def run(simulation: Any, partitions: Partitions, result_of: Callable[[Simulation], Result]) -> Result:
    """Run all partitions, one after the other, and return the result of the whole cluster.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    partitions : Partitions
        Its cluster.
    result_of : callable
        Returns the result of a simulation.
    """
    began, logged = time.perf_counter(), simulation.workload
    runs = runs_of(simulation, partitions)
    results = [result_of(each.simulation) for each in runs]
    order = np.argsort(np.concatenate([each.rows for each in runs]))
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in results])[order] for name in OF_JOBS
    }
    names = np.concatenate([np.full(len(each.rows), each.partition) for each in runs])
    result = Result(
        workload=logged.killed_at_limit if simulation.setup.walltime == "kill" else logged,
        policy=simulation.name,
        size=partitions.size,
        **columns,
        seed=simulation.setup.seed,
        options=simulation.options,
        passes=sum(each.passes for each in results),
        started_in=names[order],
        simulator="compiled",
        attempts=_attempts(runs, results, partitions.machines),
    )
    rows, tables = [each.rows for each in runs], [each.placements for each in results]
    placements = _placements(runs, rows, tables, partial(_times, result), partitions.machines)
    return replace(result, placements=placements, seconds=time.perf_counter() - began)


def _times(result: Result, events: Integers) -> Integers:
    """Return the times of starts (rows of jobs) and ends (complements of rows) of jobs [s]."""
    if result.attempts is None:
        return _times_of(result, events)
    return _times_of(result.attempts, events_of_attempts(events, result.attempts.job))


def _times_of(table: Result | Attempts, events: Integers) -> Integers:
    """Return the times of starts (rows of a table) and ends (complements of rows) [s]."""
    return np.where(events >= 0, table.start_time[events], table.end_time[~events])


def _attempts(
    runs: Sequence[PartRun], results: Sequence[Result], machines: Machines | None
) -> Attempts | None:
    """Return the attempts of the jobs of all partitions; None if each job ran once."""
    if all(each.attempts is None for each in results):
        return None
    tables = [each.attempts or _only_attempts(each) for each in results]
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(each, name) for each in tables]) for name in COLUMNS
    }
    columns["job"] = np.concatenate([part.rows[each.job] for part, each in zip(runs, tables, strict=True)])
    order = np.argsort(columns["job"], kind="stable")  # those of a job remain in order
    names = np.concatenate(
        [np.full(len(each), part.partition) for part, each in zip(runs, tables, strict=True)]
    )
    found = Attempts(**{name: column[order] for name, column in columns.items()}, partition=names[order])
    position = np.empty_like(order)
    position[order] = np.arange(len(order))
    rows = np.split(position, np.cumsum([len(each) for each in tables])[:-1])
    given = [each.placements for each in tables]
    return replace(found, placements=_placements(runs, rows, given, partial(_times_of, found), machines))


def _only_attempts(result: Result) -> Attempts:
    """Return the attempts of jobs each of which ran once, for as long as its work takes."""
    run_time = result.workload.column("run_time")
    return Attempts(
        job=np.arange(len(result)),
        submit_time=result.submit_time,
        start_time=result.start_time,
        end_time=result.end_time,
        mode=result.mode,
        outcome=np.where(result.killed, int(Outcome.LIMIT), int(Outcome.COMPLETED)).astype(np.uint8),
        work=run_time,
        lost=np.zeros_like(run_time),
        placements=result.placements,
    )


def _placements(
    runs: Sequence[PartRun],
    rows: Sequence[Integers],
    tables: Sequence[Placements | None],
    times: Callable[[Integers], Integers],
    machines: Machines | None,
) -> Placements | None:
    """Return the placements of all partitions as one table; None with homogeneous nodes.

    Events are in the order of time; at an instant, those of a partition remain in their order.

    Parameters
    ----------
    runs : sequence of PartRun
        The runs of the partitions.
    rows : sequence of array of int64
        Row in the whole table of each row of the tables of the partitions.
    tables : sequence of Placements
        The placements of the partitions.
    times : callable
        Returns the times of events [s].
    machines : Machines or None
        All machines.
    """
    if machines is None:
        return None
    jobs, numbers, amounts, events = [], [], [], []
    for part, row, table in zip(runs, rows, tables, strict=True):
        assert table is not None
        assert table.events is not None
        assert part.view.numbers is not None
        jobs.append(row[table.job])
        numbers.append(part.view.numbers[table.machine])
        amounts.append(table.amounts)
        of_jobs = row[np.where(table.events >= 0, table.events, ~table.events)]
        events.append(np.where(table.events >= 0, of_jobs, ~of_jobs))
    job, event = np.concatenate(jobs), np.concatenate(events)
    order = np.argsort(job, kind="stable")
    return Placements(
        machines,
        sum(map(len, rows)),
        job=job[order],
        machine=np.concatenate(numbers)[order],
        amounts=np.concatenate(amounts)[order],
        events=event[np.argsort(times(event), kind="stable")],
    )
