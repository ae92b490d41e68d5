"""Pipelines with gates: which are compiled, their state, and what they add to results."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.compiled.orders import BY_SUBMISSION
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AFTER_FAILED, AfterJobs
from hpcsimkit.kernel.gate import Dependencies, Gate
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, Licenses
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import orders
from hpcsimkit.policies.orders import RandomOrder
from hpcsimkit.policies.predictions import LastTwo, Noisy, ShortestPredicted
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from hpcsimkit.compiled.gates import Gates
    from hpcsimkit.compiled.state import Jobs

KNOWN: tuple[type[Gate], ...] = (Dependencies, AfterJobs, BeginTimes, Holds, ArrayLimits, Licenses)
"""Classes of gates that are compiled."""

AHEAD: tuple[type[Gate], ...] = (BeginTimes, Holds)
"""Those whose answers are known ahead, so that the jobs join the queue at known times."""

MOST_JOBS = 2**20

DIGITS = 52
"""Number of binary digits of a rank."""

Integers = NDArray[np.int64]


def gates_in(setup: Setup, workload: Workload) -> list[Gate]:
    """Return copies of the gates of a run, in their order, without those whose columns the workload lacks."""
    return [
        copy.copy(gate)
        for gate in setup.all_gates
        if not gate.columns or any(name in workload.columns for name in gate.columns)
    ]


def decides(setup: Setup, workload: Workload) -> bool:
    """Return whether answers of the gates depend on the course of the run."""
    return not all(isinstance(gate, AHEAD) for gate in gates_in(setup, workload))


def obstacles(simulation: Any, cluster: AnyCluster, stops: bool) -> Iterator[str]:
    """Yield the reasons why the gates of a pipeline, whose jobs may be stopped, are not compiled."""
    setup, workload, policy = simulation.setup, simulation.workload, simulation.policy
    gates = gates_in(setup, workload)
    kinds = [type(gate) for gate in gates]
    unknown = tuple(gate for gate in setup.gates if type(gate) not in KNOWN)
    if unknown or len(set(kinds)) < len(kinds):
        yield f"it knows no gates, found {unknown or tuple(gates)!r}"
    if not decides(setup, workload):
        return
    names = " and ".join(kind.__name__ for kind in kinds if kind not in AHEAD)
    if type(cluster) is not Nodes:
        yield f"it knows {names} on homogeneous nodes only"
    if stops:
        yield f"it knows no {names} where jobs may be stopped"
    candidates = getattr(policy.backfiller, "candidates", None)
    for part in (policy.queue_order, candidates, policy.estimates):
        if isinstance(part, RandomOrder | SlurmMultifactor | ShortestPredicted | LastTwo | Noisy):
            yield f"it knows no {part!r} with {names}"
    if Dependencies in kinds:
        yield from _obstacles_of_dependencies(kinds, policy.queue_order, candidates)
    if len(workload) >= MOST_JOBS:
        yield "its jobs are too many for gates"


def _obstacles_of_dependencies(
    kinds: Sequence[type[Gate]], order: object, candidates: object
) -> Iterator[str]:
    """Yield the reasons why jobs cannot be submitted after others: their keys are not known ahead.

    If nothing else holds them, they join the queue in the order of their submissions.
    """
    alone = len(kinds) == 1
    if AfterJobs in kinds:
        yield "it knows no Dependencies() beside AfterJobs()"
    if type(candidates) in BY_SUBMISSION:
        yield f"it knows no {candidates!r} with Dependencies()"
    if type(order) in BY_SUBMISSION and not (alone and type(order) is orders.FCFS):
        beside = "" if alone else " and other gates"
        yield f"it knows no {order!r} with Dependencies(){beside}"


def follows_submissions(setup: Setup, policy: Pipeline) -> bool:
    """Return whether the order of the queue is that of submissions which are not known ahead."""
    return setup.dependencies and type(policy.queue_order) is orders.FCFS


# --- the state ---------------------------------------------------------------------------------------------


def jobs_with(jobs: Jobs) -> Jobs:
    """Return the columns of a run in which times of submission may change."""
    return jobs._replace(submit_time=jobs.submit_time.copy())


class _Builder:
    """The arrays of the gates, filled gate by gate."""

    def __init__(self, workload: Workload, failing: NDArray[np.bool_]) -> None:
        from hpcsimkit.compiled import gates as rows

        count = len(workload)
        self.workload, self.rows = workload, rows
        self.jobs = np.zeros((24, count), dtype=np.int64)
        for row in (rows.LAST, rows.ASKED, rows.BEGIN, rows.HOLD, rows.CONDITION, rows.NAME, rows.SINGLETON):
            self.jobs[row] = -1
        self.jobs[rows.ARRAY] = self.jobs[rows.KIND] = -1
        failed = np.isin(workload.column("status"), AFTER_FAILED)
        self.jobs[rows.WELL] = ~(failed | failing)
        self.conditions: list[tuple[int, ...]] = []
        self.terms: list[tuple[int, ...]] = []
        self.members: list[int] = []
        self.names: list[tuple[int, ...]] = []
        self.arrays: list[tuple[int, ...]] = []
        self.kinds: list[tuple[int, ...]] = []
        self.wanted: list[list[int]] = []
        self.free: list[int] = []

    def add(self, gate: Gate) -> None:
        """Add a gate, after it has read the workload."""
        gate.reset(self.workload)
        if isinstance(gate, Dependencies):
            self._add_dependencies(gate)
        elif isinstance(gate, AfterJobs):
            self._add_conditions(gate)
        elif isinstance(gate, BeginTimes):
            place = self.rows.HOLD if isinstance(gate, Holds) else self.rows.BEGIN
            self.jobs[place] = self.workload.column(gate.columns[0])
        elif isinstance(gate, ArrayLimits):
            self._add_arrays()
        elif isinstance(gate, Licenses):
            self._add_licenses(gate)

    def _list(self, members: Iterable[int]) -> tuple[int, int]:
        """Add a list of jobs; return its beginning and end."""
        first = len(self.members)
        self.members += members
        return first, len(self.members)

    def _add_dependencies(self, gate: Dependencies) -> None:
        rows = self.rows
        self.jobs[rows.THINK] = self.workload.column("think_time")
        for row, followers in gate.successors.items():
            self.jobs[[rows.FIRST_FOLLOWER, rows.LAST_FOLLOWER], row] = self._list(followers)
            self.jobs[rows.STATE, followers] = rows.AWAITED

    def _add_conditions(self, gate: AfterJobs) -> None:
        rows, numbers = self.rows, dict[int, int]()
        for condition in gate.condition_of.values():
            if numbers.setdefault(id(condition), len(self.conditions)) == len(self.conditions):
                met = -1 if condition.met is None else int(condition.met)
                about = (condition.open, met, int(condition.any_of), condition.not_before)
                self.conditions.append((*about, *self._list(condition.rows)))
        for row, condition in gate.condition_of.items():
            self.jobs[rows.CONDITION, row] = numbers[id(condition)]
        kinds = {"after": rows.STARTED, "afterok": rows.OK, "afternotok": rows.NOT_OK, "afterany": rows.ANY}
        for row, asked in gate.asked_of.items():
            self.jobs[rows.FIRST_TERM, row] = len(self.terms)
            for term, condition in asked:
                self.terms.append((kinds[term.kind], term.delay, numbers[id(condition)]))
            self.jobs[rows.LAST_TERM, row] = len(self.terms)
        if gate.names.waiting:
            for number, same in enumerate(gate.names.rows_of.values()):
                self.jobs[rows.NAME, same] = number
                self.names.append(self._list(same))
        for row, condition in gate.names.waiting.items():
            self.jobs[rows.SINGLETON, row] = numbers[id(condition)]

    def _add_arrays(self) -> None:
        rows, array = self.rows, self.workload.column("array_job")
        limit = self.workload.column("array_limit")
        limited = limit >= 0
        self.jobs[rows.LIMITED] = limited
        for number, found in enumerate(np.unique(array[limited]).tolist()):
            first, _ = self._list(np.flatnonzero(limited & (array == found)).tolist())
            self.jobs[rows.ARRAY, array == found] = number
            self.arrays.append((first, first, int(limit[limited & (array == found)][0]), 0))

    def _add_licenses(self, gate: Licenses) -> None:
        asked, names = gate.asked(self.workload), list(gate.pools)
        self.free = list(gate.pools.values())
        rows_of: dict[tuple[int, ...], list[int]] = {}
        for row, wanted in asked.items():
            rows_of.setdefault(tuple(wanted.get(name, 0) for name in names), []).append(row)
        for number, (wants, same) in enumerate(rows_of.items()):
            first, _ = self._list(same)
            self.jobs[self.rows.KIND, same] = number
            self.wanted.append(list(wants))
            self.kinds.append((first, first))


def gates_of(
    setup: Setup, workload: Workload, killed: NDArray[np.bool_], group: Integers, space: int
) -> Gates:
    """Return the state of the gates before the first event.

    Parameters
    ----------
    setup : Setup
        The options of the run.
    workload : Workload
        Its jobs.
    killed : array of bool, shape (jobs,)
        Whether each is killed at its requested time.
    group : array of int64, shape (jobs,)
        Ranks of the jobs by their keys.
    space : int
        Number of intervals in which each job may be held, at least on average.
    """
    from hpcsimkit.compiled import gates as rows

    builder, count = _Builder(workload, killed), len(workload)
    for gate in gates_in(setup, workload):
        builder.add(gate)
    jobs = builder.jobs
    jobs[rows.GROUP] = group << (DIGITS - count.bit_length())
    due = workload.arrival_order[jobs[rows.STATE, workload.arrival_order] != rows.AWAITED]
    places = (space + 2) * count + 1
    asks = np.empty((3, places), dtype=np.int64)
    asks[:, : len(due)] = workload.column("submit_time")[due], due, due  # a sorted array is a heap
    jobs[rows.ASKED, due] = asks[0, : len(due)]
    counters = np.zeros(9, dtype=np.int64)
    counters[rows.ASKS] = len(due)
    return rows.Gates(
        jobs,
        _table(builder.conditions, 6),
        _table(builder.terms, 3),
        np.array(builder.members, dtype=np.int64),
        _table(builder.names, 2),
        _table(builder.arrays, 4),
        _table(builder.kinds, 2),
        np.array(builder.wanted, dtype=np.int64).reshape(len(builder.kinds), len(builder.free)),
        np.array(builder.free, dtype=np.int64),
        asks,
        log=np.empty((5, places), dtype=np.int64),
        changed=np.empty(count, dtype=np.int64),
        newcomers=np.empty(count, dtype=np.int64),
        counters=counters,
    )


def _table(columns: list[tuple[int, ...]], rows: int) -> Integers:
    """Return columns as a table of some rows."""
    return np.array(columns, dtype=np.int64).reshape(-1, rows).T.copy()


# --- results -----------------------------------------------------------------------------------------------


def with_gates(result: Result, jobs: Jobs, gates: Gates) -> Result:
    """Return a result with the intervals in which jobs were held, and without the rejected jobs."""
    from hpcsimkit.compiled.gates import LOGGED

    ran = result.start_time >= 0
    return replace(
        result,
        submit_time=jobs.submit_time,
        end_time=np.where(ran, result.end_time, -1),
        held=_held(gates.log[:, : gates.counters[LOGGED]]),
    )


def _held(log: Integers) -> HeldJobs | None:
    """Return the intervals of a log as a table; None if there are none."""
    from hpcsimkit.compiled.gates import NEVER, NONE

    names = [
        "",
        "Dependency",
        "DependencyNeverSatisfied",
        BeginTimes.reason,
        Holds.reason,
        "JobArrayTaskLimit",
    ]
    names.append("Licenses")
    assert names[NEVER] == "DependencyNeverSatisfied"
    kept = log[:, log[3] != NONE]
    if not kept.size:
        return None
    row, start, end, reason = (each.copy() for each in kept[:4, np.argsort(kept[0], kind="stable")])
    return HeldJobs(row, start, end, np.array([names[code] for code in reason.tolist()], dtype=np.str_))


def check_end(simulation: Any, gates: Gates, waiting: int) -> None:
    """Raise the kernel's error if jobs wait, or are held, although nothing is to come."""
    from hpcsimkit.compiled.gates import HELD_JOBS

    if waiting or gates.counters[HELD_JOBS]:
        setup = replace(simulation.setup, simulator="simpy")
        type(simulation)(simulation.workload, simulation.policy, name=simulation.name, setup=setup).run()
        raise UsageError("gates: jobs are held for ever")
