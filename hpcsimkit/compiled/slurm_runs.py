"""Runs of Slurm as configured: which are compiled, and their results."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled import loading
from hpcsimkit.compiled.known_parameters import unknown_parameters
from hpcsimkit.compiled.on_machines import MOST_PLANNED_PARTS, most_parts, needs_of, placements_in
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.results.held import HeldJobs
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.accounts import PARENT
from hpcsimkit.slurm.limits import OF_PAST
from hpcsimkit.slurm.queue import records_of
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Rules
from hpcsimkit.slurm.scheduler import SlurmScheduler

if TYPE_CHECKING:
    from hpcsimkit.compiled.slurm_state import Run

SCHEDULERS: tuple[type[Policy], ...] = (SlurmScheduler,)
"""Classes of policies that are compiled."""

OPTIONS = ("restart",)
"""Options of a run that are known besides those of a pipeline."""

LARGEST_PRIORITY = 2.0**39
"""A priority that no job exceeds, as the keys of the order hold no larger ones."""


def obstacles(setup: Setup, workload: Workload, cluster: Any, policy: Policy) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run Slurm as configured."""
    assert isinstance(policy, SlurmScheduler)
    yield from unknown_parameters(policy)
    if not isinstance(cluster, Partitions) or not isinstance(cluster.machines, Machines):
        yield "Slurm as configured needs partitions of machines"
        return
    if any(part.in_use or part.order is not None for part in cluster.parts):
        yield "a partition has in_use or an order of its own"
    if not setup.restart.plain:
        yield f"it knows no checkpoints of Slurm as configured, found {setup.restart!r}"
    anew = setup.restart.preempted == "anew" and not setup.restart.cost
    if not anew and preempts(policy.profile, workload, cluster):
        yield f"it knows jobs of Slurm as configured that begin anew once stopped, found {setup.restart!r}"
    if policy.profile.grants_grace and preempts(policy.profile, workload, cluster):
        yield "it knows no GraceTime of Slurm as configured"
    if any(each.shares == PARENT for each in policy.profile.associations.each):
        yield "it knows no Fairshare=parent"
    if policy.profile.limits and _counts_the_past(policy.profile):
        yield f"it knows no limits of what has been spent ({', '.join(OF_PAST)})"
    if _largest_priority(policy.profile, workload) >= LARGEST_PRIORITY:
        yield "its priorities are too large"
    yield from _obstacles_of_places(workload, cluster, policy.profile)


def parts_of(simulation: Any) -> tuple[str, ...]:
    """Return the parts of the kind of a run."""
    stops = stops_jobs(simulation.policy.profile, simulation.workload, simulation.cluster)
    return (loading.SLURM, loading.STOPS) if stops else (loading.SLURM,)


def stops_jobs(profile: Rules, workload: Workload, partitions: Partitions) -> bool:
    """Return whether jobs may be stopped for others, or machines are busy after the end of a killed job."""
    return bool(profile.clocks.completing) or preempts(profile, workload, partitions)


def preempts(profile: Rules, workload: Workload, partitions: Partitions) -> bool:
    """Return whether some jobs may be stopped for others."""
    if not profile.preempt:
        return False
    if profile.preempt == "partition_prio":
        return len({part.priority for part in partitions.parts}) > 1
    present = np.unique(workload.column("qos")).tolist()
    names = {workload.label("qos", value) for value in present if value >= 0}
    return any(names & {*profile.qos[name].preempts} for name in names & {*profile.qos})


def _counts_the_past(profile: Rules) -> bool:
    """Return whether a QOS or association limits what past jobs have spent."""
    of_qos = [each.limits for each in profile.qos.values()]
    limits = [*of_qos, *(each.limits for each in profile.associations.each)]
    return any(name in each for each in limits for name in OF_PAST)


def _largest_priority(profile: Rules, workload: Workload) -> float:
    """Return a number that no priority exceeds."""
    rules = profile.priority
    factors = max((*profile.factors.values(), 1))
    qos = max((each.priority for each in profile.qos.values()), default=1)
    tres = sum(rules.tres.values()) * (2.0**50 if "NO_NORMAL_TRES" in rules.flags else 1)
    of_size = max(float(workload.size.max(initial=1)), 1) if "SMALL_RELATIVE_TO_TIME" in rules.flags else 2
    return (
        rules.age
        + rules.fair_share
        + rules.size * of_size
        + rules.partition * factors
        + rules.qos * qos
        + tres
    )


def _obstacles_of_places(workload: Workload, partitions: Partitions, profile: Rules) -> Iterator[str]:
    assert partitions.machines is not None
    needs, numbers = needs_of(workload, partitions.machines)
    if any(need.quotas for need in needs):
        yield "it knows no constraints with counts"
    if any(not (need.spread or need.exclusive or need.amounts.any()) for need in needs):
        yield "some jobs ask for nothing"
    most = most_parts(needs, numbers)
    if most.sum(dtype=float) * (1 + 2 * len(partitions.parts)) > MOST_PLANNED_PARTS:
        yield "its jobs may use too many machines"


# --- runs --------------------------------------------------------------------------------------------------


def run(simulation: Any, cluster: Any, kind: str) -> Result:
    """Run a simulation of Slurm as configured that has no obstacle.

    A run that is not possible is left to the kernel, which says what is wrong.
    """
    simulate = loading.load(kind)
    from hpcsimkit.compiled import slurm_arrays as arrays
    from hpcsimkit.compiled import slurm_stopping as stopping
    from hpcsimkit.compiled.slurm_loop import LACKS_SPACE, STUCK
    from hpcsimkit.compiled.slurm_past import past_of
    from hpcsimkit.compiled.slurm_state import ACTING, EVENTS, LOGGED, PASSES
    from hpcsimkit.compiled.slurm_stopping import names_of

    began = time.perf_counter()
    setup, logged, profile = simulation.setup, simulation.workload, simulation.policy.profile
    workload = logged.killed_at_limit if setup.walltime == "kill" else logged
    requests, stops = Requests(profile, cluster, workload), None
    tickets = arrays.tickets_of(requests)
    places = arrays.places_of(workload, cluster, tickets)
    clocks = arrays.clocks_of(profile, int(workload.submit_time.min()) if len(workload) else 0)
    classes, first = arrays.classes_of(requests, tickets)
    limits, reasons = arrays.limits_of(profile, requests, tickets, first)
    steps = arrays.steps_of(places, len(cluster.machines), clocks.bf_max_job_test)
    nodes = arrays.nodes_of(places, cluster, steps)
    factors = arrays.factors_of(profile.priority, requests)
    jobs = arrays.jobs_of(requests, tickets, workload, places.need, classes)
    state = arrays.new_run(clocks, jobs, requests.associations, profile.priority, places.most, nodes)
    if loading.STOPS in kind.split("-"):
        rules = stopping.preemption_of(profile, requests, tickets, jobs, records_of(workload))
        state, stops = stopping.with_stops(rules, setup.restart, jobs, places.most, state)
    past = past_of(setup.begun, workload, cluster, tickets)
    if past is None:
        return _of_kernel(simulation)
    state.counters[ACTING] = setup.begun is None
    while (code := simulate(clocks, factors, jobs, limits, nodes, past, state, stops)) == LACKS_SPACE:
        state, stops = stopping.with_space(state, stops)
    if code == STUCK:
        return _of_kernel(simulation)
    started = state.start_time >= 0
    names = np.array(["", cluster.names[0]])[started.astype(np.int64)]
    result = Result(
        workload=workload,
        policy=simulation.name,
        size=cluster.size,
        submit_time=workload.column("submit_time"),
        start_time=state.start_time,
        end_time=np.where(started, state.start_time + jobs.run_time, -1),
        mode=state.mode,
        killed=logged.column("run_time") > workload.column("run_time"),
        seed=setup.seed,
        options=simulation.options,
        passes=int(state.counters[PASSES]),
        placements=placements_in(
            cluster.machines,
            state.parts,
            state.first,
            state.part_count,
            state.events[: state.counters[EVENTS]],
        ),
        started_in=names if cluster.is_whole else names_of(cluster, state.part),
        simulator="compiled",
        held=_held_jobs(state, reasons, LOGGED),
    )
    if stops is not None:
        result = stopping.with_attempts(result, setup.restart, cluster, state, stops)
    return replace(result, seconds=time.perf_counter() - began)


def _held_jobs(state: Run, reasons: list[str], logged: int) -> HeldJobs | None:
    """Return the intervals in which limits held jobs; None if there are none."""
    row, start, end, reason = state.log[:, : state.counters[logged]]
    if not len(row):
        return None
    order = np.argsort(row, kind="stable")
    names = [reasons[number] for number in reason[order].tolist()]
    return HeldJobs(row[order], start[order], end[order], np.array(names, dtype=np.str_))


def _of_kernel(simulation: Any) -> Result:
    """Return what the kernel makes of a simulation, as a rule an error that says what is wrong."""
    setup = replace(simulation.setup, simulator="simpy")
    return type(simulation)(simulation.workload, simulation.policy, name=simulation.name, setup=setup).run()
