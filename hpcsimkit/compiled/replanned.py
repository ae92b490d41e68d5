"""Runs of preemptive schedulers that plan anew at every event: which are compiled, and their results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.compiled import loading, on_machines
from hpcsimkit.compiled.known_parameters import unknown_parameters
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.preempting.replanning import LAS, SRTF, Gittins, SmallestPreemptive
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from hpcsimkit.compiled.replanning import Rules, State

SCHEDULERS: tuple[type[Policy], ...] = (SRTF, SmallestPreemptive, LAS, Gittins)
"""Classes of policies that are compiled."""

OPTIONS = ("restart",)
"""Options of a run that are known besides those of a pipeline."""

SPACE = 4
"""Number of stops of each job for which space is set aside; more is added when it is needed."""

EXACT = 2**53
"""Whole numbers up to this one are equal as floating-point numbers."""


def obstacles(setup: Setup, workload: Workload, cluster: AnyCluster, policy: Policy) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run one of the :data:`SCHEDULERS`."""
    yield from unknown_parameters(policy)
    if setup.begun is not None:
        yield f"it knows no begun runs of {type(policy).__name__}"
    if isinstance(cluster, Machines):
        yield from on_machines.obstacles(workload, cluster, Pipeline())
    if len(workload) and _largest(workload, policy) >= EXACT:
        yield "its jobs are too large"
    elif len(workload) and _furthest(workload, policy) >= TIME_LIMIT:
        yield f"times of {policy!r} are too large"


def _largest(workload: Workload, policy: Policy) -> float:
    """Return a number that the service of a job, and of all of them, does not exceed."""
    service = workload.run_time.astype(float) * np.maximum(workload.size, 1)
    return float(service.sum() if isinstance(policy, Gittins) else service.max())


def _furthest(workload: Workload, policy: Policy) -> float:
    """Return the longest time for which a pass is planned ahead [s]."""
    if isinstance(policy, Gittins):
        return float(max(policy.interval, policy.quantum))
    if isinstance(policy, LAS):
        return max(float(policy.thresholds[-1]), float(workload.run_time.max()) * policy.promote)
    return 0.0


def run(simulation: Any, cluster: AnyCluster, kind: str) -> Result:
    """Run a simulation of one of the :data:`SCHEDULERS` that has no obstacle."""
    simulate = loading.load(kind)
    from hpcsimkit.compiled.attempts import STOPPED, new_attempts, restart_rules, table_of
    from hpcsimkit.compiled.attempts import with_space as with_more_stops
    from hpcsimkit.compiled.machines import with_space
    from hpcsimkit.compiled.replanning import PASSES, Columns
    from hpcsimkit.compiled.state import contiguous

    began = time.perf_counter()
    logged, setup, policy = simulation.workload, simulation.setup, simulation.policy
    workload = logged.killed_at_limit if setup.walltime == "kill" else logged
    nodes = cluster.size
    jobs = Columns(
        submit_time=contiguous(workload.column("submit_time")),
        run_time=contiguous(workload.column("run_time")),
        nodes=contiguous(workload.column("nodes")),
        size=contiguous(workload.size),
        arrival_order=workload.arrival_order.astype(np.int64),
    )
    at_once = nodes if isinstance(cluster, Nodes) else len(workload)
    state = _new_state(jobs.submit_time, at_once, policy)
    attempts = new_attempts(jobs.submit_time, SPACE * len(workload) + at_once)
    machines, places = None, None
    if isinstance(cluster, Machines):
        machines = on_machines.machines_of(logged, cluster)
        places = np.empty((2, attempts.log.shape[1]), dtype=np.int64)
    parts = 0 if machines is None else len(machines.parts)
    rules, restart = _rules(policy, nodes, parts), restart_rules(setup.restart)
    while not simulate(jobs, rules, restart, state, attempts, machines, places):
        attempts = with_more_stops(attempts)
        if machines is not None and places is not None:
            machines, places = with_space(machines), np.concatenate([places, np.empty_like(places)], axis=1)
    killed = logged.column("run_time") > workload.column("run_time")
    mode = np.full(len(workload), Mode.READY, dtype=np.uint8)
    last: dict[str, NDArray[Any]] = {"start_time": state.start_time, "end_time": state.end_time, "mode": mode}
    every = np.ones(len(workload), dtype=np.bool_)
    table = table_of(attempts, setup.restart, workload, last, killed, every)
    if table is not None and machines is not None and places is not None:
        stops = attempts.counters[STOPPED]
        stopped = attempts.log[0, :stops], places[:, :stops]
        placements = on_machines.placements_of_attempts(cluster, machines, *stopped, np.flatnonzero(every))
        table = replace(table, placements=placements)
    return Result(
        workload=workload,
        policy=simulation.name,
        size=nodes,
        submit_time=workload.column("submit_time"),
        start_time=state.start_time if table is None else table.start_time[table.number == 1],
        end_time=state.end_time,
        mode=mode,
        killed=killed,
        seed=setup.seed,
        options=simulation.options,
        seconds=time.perf_counter() - began,
        passes=int(state.counters[PASSES]),
        placements=None if machines is None else on_machines.placements_of(cluster, machines, len(workload)),
        simulator="compiled",
        attempts=table,
    )


def _rules(policy: Any, nodes: int, parts: int) -> Rules:
    """Return a scheduler as numbers."""
    from hpcsimkit.compiled.replanning import AREA, ATTAINED, GITTINS, REMAINING, SIZE, Rules

    kinds = {SRTF: REMAINING, SmallestPreemptive: SIZE, LAS: ATTAINED, Gittins: GITTINS}
    return Rules(
        kind=AREA if isinstance(policy, SRTF) and policy.area else kinds[type(policy)],
        nodes=nodes,
        by_area=int(getattr(policy, "by", "area") == "area"),
        promote=float(getattr(policy, "promote", 0)),
        published=int(getattr(policy, "demotion", "published") == "published"),
        quantum=getattr(policy, "quantum", 1),
        interval=getattr(policy, "interval", 1),
        least=getattr(policy, "least", 1),
        parts=parts,
    )


def _new_state(submit_time: NDArray[np.int64], at_once: int, policy: Any) -> State:
    """Return the state before the first event."""
    from hpcsimkit.compiled.listing import new_listing
    from hpcsimkit.compiled.replanning import PLACE, PLANNED, SEEN_AT, State
    from hpcsimkit.compiled.state import NO_LIMIT

    jobs = len(submit_time)
    served = np.zeros((4, jobs), dtype=np.int64)
    served[PLACE] = -1
    counters = np.zeros(9, dtype=np.int64)
    counters[PLANNED], counters[SEEN_AT] = NO_LIMIT, submit_time.min(initial=0)
    return State(
        state=np.zeros(jobs, dtype=np.uint8),
        start_time=np.full(jobs, -1, dtype=np.int64),
        end_time=np.full(jobs, -1, dtype=np.int64),
        ends=np.empty((3, min(jobs, at_once) + 1), dtype=np.int64),
        listing=new_listing(jobs),
        served=served,
        thresholds=np.array(getattr(policy, "thresholds", (0,)), dtype=np.int64),
        past=np.zeros(jobs),
        sums=np.zeros(jobs + 1),
        counters=counters,
    )
