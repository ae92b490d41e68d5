"""Simulations that the compiled simulator takes, and their runs."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled import (
    beside_windows,
    gating,
    later_submissions,
    loading,
    on_machines,
    replanned,
    separate_partitions,
    slurm_runs,
    stopping,
    testing,
)
from hpcsimkit.compiled.known_parameters import unknown_parameters
from hpcsimkit.compiled.orders import KEYS, dense_ranks, keys_of
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.event_order import DirlabOrder, EventOrder, TextbookOrder
from hpcsimkit.kernel.numbered_nodes import NumberedNodes
from hpcsimkit.kernel.past import has_past
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy, Requested
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.run import RunParameters
from hpcsimkit.policies import orders
from hpcsimkit.policies.backfill.backfilling import Greedy, Reservations
from hpcsimkit.policies.backfill.conservative import Conservative
from hpcsimkit.policies.dirlab.backfilling import PublishedEASY
from hpcsimkit.policies.oracles import Actual
from hpcsimkit.policies.portfolio.guarded import Remembered
from hpcsimkit.policies.predicting.bounded import KeyColumn
from hpcsimkit.policies.predicting.predicted import CORRECTIONS
from hpcsimkit.policies.predictions import LastTwo, Noisy, ShortestPredicted
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from hpcsimkit.cluster.allocation import Allocation
    from hpcsimkit.compiled.gates import Gates
    from hpcsimkit.compiled.machine_profile import MachineProfile
    from hpcsimkit.compiled.machines import Machines as AnyMachines
    from hpcsimkit.compiled.queue import Queue
    from hpcsimkit.compiled.state import Jobs, Rules, Tests
    from hpcsimkit.compiled.windows import Windows

FORMULAS = (orders.WFP3, orders.UNICEF, orders.XFactor)
CONSTANT, VARYING = (type(None), *KEYS, KeyColumn), (*FORMULAS, SlurmMultifactor)
KNOWN: dict[type[EventOrder], dict[str, tuple[type, ...]]] = {
    TextbookOrder: {
        "order": (orders.RandomOrder, *VARYING, *CONSTANT),
        "backfiller": (type(None), EASY, Greedy, Reservations, Conservative),
        "estimates": (type(None), Requested, Actual, Noisy, LastTwo, Remembered),
        "order of candidates": (ShortestPredicted, *VARYING, *CONSTANT),
        "placement": on_machines.PLACEMENTS,
        "tester": testing.TESTERS,
    },
    DirlabOrder: {
        "order": CONSTANT,
        "backfiller": (type(None), PublishedEASY),
        "estimates": (type(None), Requested, Actual),
        "order of candidates": CONSTANT,
        "placement": (type(None),),
        "tester": (type(None),),
    },
}
"""Classes of the stages of a pipeline, by the rules for the order of events."""

WHOLE: tuple[Any, ...] = (replanned, slurm_runs)
"""Modules of policies that are no pipelines, each with its classes, options, obstacles and runs."""

KNOWN_OPTIONS = ("cluster", "seed", "walltime", "event_order", "begun", "simulator")
"""Options of a run that this simulator has; any other one is refused by name, also one added later."""

Integers = NDArray[np.int64]


class Parameters(RunParameters, Protocol):
    """The parameters of a simulation that this module reads."""

    name: str

    @property
    def options(self) -> dict[str, Any]:
        """The options that determine the schedule besides workload, cluster, policy and seed."""
        ...


def takes(simulation: Parameters) -> bool:
    """Return whether the compiled simulator is to run a simulation.

    With ``simulator="auto"`` it takes those that it can run once SimPy would take longer than its loading,
    see :func:`~hpcsimkit.compiled.loading.counted`, for the jobs of all runs of this process with the same
    kind of policy. (Policies that try orders make thousands of short runs, and so do the baselines of a
    training.)

    A compiled run that is demanded and impossible is an error that says why.
    """
    if simulation.setup.simulator == "auto":
        if obstacle(simulation) is not None:
            return False
        counted = {kind: loading.counted(kind, jobs) for kind, jobs in _jobs_by_kind(simulation).items()}
        return all(jobs >= loading.least_jobs(kind) for kind, jobs in counted.items())
    found = obstacle(simulation)
    if found is not None:
        raise UsageError(f"the compiled simulator cannot run this: {found}")
    return True


@contextmanager
def announced(simulations: Iterable[Parameters]) -> Iterator[None]:
    """Announce simulations that follow in this process: all together may be worth compiling, or not."""
    jobs: Counter[str] = Counter()
    if find_spec("numba") is not None:
        for each in simulations:
            rules, asked = type(each.setup.event_order), each.setup.simulator
            if asked != "auto" or rules not in KNOWN or obstacle_of_policy(each.policy, rules) is not None:
                continue
            if _separate(each) is None or obstacle(each) is None:
                for kind, count in _jobs_by_kind(each).items():
                    jobs[kind] += count + loading.BESIDE_JOBS
    loading.ANNOUNCED.update(jobs)
    try:
        yield
    finally:
        loading.ANNOUNCED.subtract(jobs)


def is_ready(simulation: Parameters) -> bool:
    """Return whether a simulation has been compiled before, and is long enough for it by itself."""
    if simulation.setup.simulator == "simpy" or obstacle(simulation) is not None:
        return False
    jobs_by_kind = _jobs_by_kind(simulation).items()
    return all(loading.is_compiled(kind) and jobs >= loading.least_jobs(kind) for kind, jobs in jobs_by_kind)


def slowness(simulation: Parameters) -> int:
    """Return about how many times as long as the quickest ones a simulation without an obstacle takes."""
    return max(map(loading.slowness, _jobs_by_kind(simulation)))


def _jobs_by_kind(simulation: Parameters) -> Counter[str]:
    """Return the number of jobs in a simulation without an obstacle, by the kinds of its runs."""
    partitions, jobs = _separate(simulation), Counter[str]()
    if partitions is None:
        return Counter({_kind(_parts(simulation)): len(simulation.workload)})
    for part in separate_partitions.runs_of(simulation, partitions):
        jobs[_kind(_parts(part.simulation))] += len(part.rows)
    return jobs


def obstacle(simulation: Parameters) -> str | None:
    """Return the first reason why the compiled simulator cannot run a simulation, or None."""
    partitions = _separate(simulation)
    if partitions is not None:
        return _obstacle_of_partitions(simulation, partitions)
    return next(_obstacles(simulation), None)


def _obstacle_of_partitions(simulation: Parameters, partitions: Partitions) -> str | None:
    """Return the first reason why the compiled simulator cannot run each partition by itself, or None."""
    found = next(separate_partitions.obstacles(simulation, partitions), None)
    runs = separate_partitions.runs_of(simulation, partitions) if found is None else []
    each = ((part.partition, obstacle(part.simulation)) for part in runs)
    return found or next((f"{why} (partition {name!r})" for name, why in each if why), None)


def _obstacles(simulation: Parameters) -> Iterator[str]:
    cluster, rules = _cluster(simulation), type(simulation.setup.event_order)
    if rules not in KNOWN:
        yield f"it knows no order of events {simulation.setup.event_order.name!r}"
        return
    whole = _whole_of(simulation.policy)
    if whole is not slurm_runs:
        yield from _obstacles_of_cluster(cluster, rules)
    further = (
        ("calendar", "gates", "dependencies", "licenses", *stopping.OPTIONS)
        if whole is None
        else whole.OPTIONS
    )
    yield from obstacles_of_options(simulation, (*KNOWN_OPTIONS, *further))
    for observer in simulation.observers:
        if observer.needs_events:
            yield f"{type(observer).__name__} observes events"
    if whole is not None:
        yield from whole.obstacles(simulation.setup, simulation.workload, cluster, simulation.policy)
        return
    yield from obstacles_of_policy(simulation.policy, rules)
    if isinstance(simulation.policy, Pipeline):
        if isinstance(cluster, Machines):
            yield from on_machines.obstacles(simulation.workload, cluster, simulation.policy)
        yield from gating.obstacles(simulation, cluster, _stops_jobs(simulation))
        yield from _obstacles_of_billing(simulation.policy, simulation.cluster)
        if simulation.setup.calendar:
            yield from beside_windows.obstacles(cluster, _stops_jobs(simulation))
        if _stops_jobs(simulation):
            yield from stopping.obstacles(simulation.setup, simulation.workload, cluster, simulation.policy)
            yield from testing.obstacles(simulation.setup, simulation.policy)
    yield from _obstacles_of_begun(simulation, simulation.setup.begun)


def obstacles_of_options(simulation: Parameters, known: Collection[str] = KNOWN_OPTIONS) -> Iterator[str]:
    """Yield the reasons other than cluster, policy and observers why a simulation cannot be compiled."""
    for name, value in simulation.setup.given.items():
        if name not in known:
            yield f"it knows no {name}, found {value!r}"
    yield from _too_large(simulation)
    if find_spec("numba") is None:
        yield "numba is not installed (pip install 'hpcsimkit[fast]')"


def _separate(simulation: Parameters) -> Partitions | None:
    """Return the partitions of a run, each of which has a policy of its own; None without several."""
    cluster = _cluster(simulation)
    if not isinstance(cluster, Partitions) or _whole_of(simulation.policy) is slurm_runs:
        return None
    return cluster


def _obstacles_of_cluster(cluster: AnyCluster, rules: type[EventOrder]) -> Iterator[str]:
    if isinstance(cluster, NumberedNodes):
        yield "it knows no homogeneous nodes that are reserved for users or accounts"
    elif type(cluster) not in (Nodes, Machines):
        yield f"it knows no {type(cluster).__name__}"
    elif rules is DirlabOrder and type(cluster) is not Nodes:
        yield "with the rules of published simulators, it knows homogeneous nodes only"


def _obstacles_of_billing(policy: Pipeline, cluster: AnyCluster) -> Iterator[str]:
    """Yield the reason why usage by the weights of a partition over the whole cluster is not compiled."""
    of_usage = SlurmMultifactor in (type(policy.queue_order), type(candidates_of(policy)))
    if of_usage and isinstance(cluster, Partitions) and cluster.billing:
        yield "it knows no billing of partitions"


def _obstacles_of_begun(simulation: Parameters, begun: Begun | None) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot begin with running jobs."""
    if begun is None:
        return
    if type(begun) is not Begun:
        yield f"it knows no {type(begun).__name__}"
        return
    kill = simulation.setup.walltime == "kill"
    workload = simulation.workload.killed_at_limit if kill else simulation.workload
    if has_past(begun, workload, simulation.setup, simulation.cluster, simulation.policy):
        yield "it knows no past of a begun run"
        return
    cluster = _whole(simulation.cluster)
    if isinstance(cluster, Machines):
        fit = on_machines.allocations_of(begun, simulation.workload, cluster) is not None
    else:
        nodes = simulation.workload.column("nodes")
        fit = all(nodes[row] == allocation for row, allocation in begun.allocations.items())
        fit = fit and nodes[list(begun.started)].sum() <= cluster.size
    if not fit:
        yield "the running jobs do not fit"


def _too_large(simulation: Parameters) -> Iterator[str]:
    """Yield the reason why numbers of a workload would overflow or lose digits."""
    jobs = simulation.workload
    if not len(jobs):
        return
    area = int(max(jobs.run_time.max(), jobs.requested_time.max())) * int(jobs.size.max())
    if jobs.size.min() < 0 or area >= 2**62 or len(jobs) >= 2**25:
        yield "its jobs are too many, or too large"
    if isinstance(simulation.policy, Pipeline) and isinstance(simulation.policy.estimates, Noisy):
        noise = simulation.policy.estimates.noise
        if not (isinstance(noise, int | float) and 0 <= (1 + noise) * int(jobs.run_time.max()) < TIME_LIMIT):
            yield "its estimates are too large"


def obstacle_of_policy(policy: Policy, rules: type[EventOrder] = TextbookOrder) -> str | None:
    """Return the first reason why the compiled simulator cannot run a policy by some rules, or None."""
    return next(obstacles_of_policy(policy, rules), None)


def obstacles_of_policy(policy: Policy, rules: type[EventOrder]) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run a policy by some rules."""
    if _whole_of(policy) is not None:
        yield from unknown_parameters(policy)
        return
    if type(policy) is not Pipeline:
        yield f"{type(policy).__name__} is no plain pipeline"
        return
    if policy.inspector is not None:
        yield f"the pipeline has the inspector {policy.inspector!r}"
    yield from _unknown_options(policy, rules)
    for seat, known in KNOWN[rules].items():
        stage = candidates_of(policy) if seat == "order of candidates" else getattr(policy, seat)
        if type(stage) not in known or (isinstance(stage, Actual) and not stage.reservations):
            yield f"the {seat} {stage!r} is not compiled"
    preemptor = stopping.obstacle_of_preemptor(policy.preemptor)
    if preemptor is not None or (policy.preemptor is not None and rules is DirlabOrder):
        yield preemptor or f"with the rules of published simulators, it knows no {policy.preemptor!r}"
    if isinstance(policy.backfiller, Reservations) and _reservations(policy.backfiller) < 1:
        yield f"the number of reservations is {policy.backfiller.count!r}"
    yield from unknown_parameters(policy)


def _unknown_options(policy: Pipeline, rules: type[EventOrder]) -> Iterator[str]:
    if rules is DirlabOrder:
        if policy.fitting or policy.window:
            yield "the pipeline has 'fitting' or a window"
    elif policy.commit:
        yield "the pipeline commits to a job"
    elif policy.fitting and policy.window:
        yield "the pipeline has 'fitting' with a window"


def _whole_of(policy: Policy) -> Any:
    """Return the module that runs a policy which is no pipeline; None for all others."""
    kind: type = type(policy)
    return _whole_of_class(kind)


@cache
def _whole_of_class(kind: type) -> Any:
    """Return the module that runs the policies of a class."""
    return next((module for module in WHOLE if kind in module.SCHEDULERS), None)


def _cluster(simulation: Parameters) -> AnyCluster:
    """Return the cluster: without a partition over all of it, unless the policy schedules all partitions."""
    if _whole_of(simulation.policy) is slurm_runs:
        return simulation.cluster
    return _whole(simulation.cluster)


def _whole(cluster: AnyCluster) -> AnyCluster:
    """Return a cluster without a partition over all of it."""
    return cluster.whole if isinstance(cluster, Partitions) and cluster.is_whole else cluster


def candidates_of(policy: Pipeline) -> Any:
    """Return the order of the candidates of backfilling, or None for that of the policy."""
    backfiller = policy.backfiller
    if isinstance(backfiller, PublishedEASY):
        return backfiller.candidates or orders.FCFS()
    return backfiller.candidates if isinstance(backfiller, EASY) else None


def _by_dirlab(simulation: Parameters) -> bool:
    """Return whether events are in the order of the published simulators."""
    return type(simulation.setup.event_order) is DirlabOrder


# --- runs --------------------------------------------------------------------------------------------------


def run(simulation: Parameters) -> tuple[Result, NDArray[np.int32] | None]:
    """Run a simulation that has no :func:`obstacle`; return its result and the positions of its events."""
    whole, partitions = _whole_of(simulation.policy), _separate(simulation)
    if partitions is not None:
        return separate_partitions.run(simulation, partitions, lambda part: run(part)[0]), None
    if whole is not None:
        result = whole.run(simulation, _cluster(simulation), _kind(_parts(simulation)))
        return _with_partition(result, simulation) if whole is replanned else result, None
    space = stopping.SPACE
    while True:
        try:
            return _run_pipeline(simulation, space)
        except stopping.LackingSpaceError:
            space = 4 * space + 1


def _run_pipeline(simulation: Parameters, space: int) -> tuple[Result, NDArray[np.int32] | None]:
    """Run a simulation of a pipeline, with space for a number of stops of each job."""
    nodes, cluster = simulation.cluster.size, _whole(simulation.cluster)
    policy, parts = _pipeline(simulation), _parts(simulation)
    simulate = loading.load(_kind(parts))
    from hpcsimkit.compiled.begun import take_over
    from hpcsimkit.compiled.dirlab import new_published
    from hpcsimkit.compiled.plan import plan_anew
    from hpcsimkit.compiled.queue import new_queue
    from hpcsimkit.compiled.state import PASSES, new_run

    began = time.perf_counter()
    logged = simulation.workload
    workload = logged.killed_at_limit if simulation.setup.walltime == "kill" else logged
    streams = np.random.SeedSequence(simulation.setup.seed)
    jobs, rules = jobs_and_rules(simulation, workload, policy, nodes, streams)
    machines, allocations, profile = _machines(simulation, parts, space)
    at_once = nodes if machines is None else len(workload)
    order = jobs.arrival_order if simulation.setup.begun is None else workload.arrival_order
    state = new_run(jobs, estimates(workload, policy, streams, order, simulation.setup.begun), at_once)
    stops, coming, windows, gates = None, None, None, None
    if "stops" in parts:
        coming = stopping.OutagesToCome(simulation, cluster)
        groups = _groups(workload, policy)
        jobs, state, stops = stopping.prepare(jobs, state, simulation, cluster, space, groups, coming.first)
    tests = testing.tester_of(simulation, cluster, policy, workload, partial(_random, streams))
    if simulation.setup.begun is not None:
        take_over(simulation.setup.begun, jobs, state, machines, allocations)
    if "gates" in parts:
        jobs, gates = _with_gates(simulation, workload, policy, jobs, space)
    queue = new_queue(len(workload))
    if _by_dirlab(simulation):
        simulate(jobs, state, queue, new_published(policy, len(workload)))
    else:
        windows = beside_windows.windows_of(simulation, cluster, jobs, state) if "windows" in parts else None
        optional = _optional_parts(parts, policy, workload, jobs, nodes, profile, windows, tests)
        optional |= {"machines": machines, "stops": stops, "windows": windows, "gates": gates, "tests": tests}
        if "plan" in parts and simulation.setup.begun is not None:
            plan_anew(optional["plan"])
        taken = GATED_PARTS if gates is not None else PARTS
        while needed := simulate(jobs, rules, state, queue, *map(optional.get, taken)):
            if gates is not None:
                raise stopping.LackingSpaceError
            assert stops is not None and coming is not None
            stops, machines = stopping.supplied(stops, machines, needed, coming)
            optional |= {"stops": stops, "machines": machines}
    result = Result(
        workload=workload,
        policy=simulation.name,
        size=nodes,
        submit_time=workload.column("submit_time"),
        start_time=state.start_time,
        end_time=state.start_time + jobs.run_time,
        mode=state.mode,
        killed=logged.column("run_time") > workload.column("run_time"),
        seed=simulation.setup.seed,
        options=simulation.options,
        seconds=time.perf_counter() - began,
        passes=int(state.counters[PASSES]),
        placements=None if machines is None else on_machines.placements_of(cluster, machines, len(workload)),
        simulator="compiled",
    )
    result = _with_held(result, simulation, jobs, gates, queue)
    if windows is not None:
        result = beside_windows.with_downtime(result, windows)
    if stops is not None:
        result = stopping.with_attempts(result, stops, simulation.setup.restart, cluster, machines)
    result = _with_partition(result, simulation)
    return result, state.positions if machines is None and stops is None and gates is None else None


def _with_gates(
    simulation: Parameters, workload: Workload, policy: Pipeline, jobs: Jobs, space: int
) -> tuple[Jobs, Gates]:
    """Return the columns of a run with gates, and the state of the gates."""
    killed = simulation.workload.column("run_time") > workload.column("run_time")
    group = np.zeros(len(workload), dtype=np.int64)
    if not gating.follows_submissions(simulation.setup, policy):
        group = _groups(workload, policy)
    return gating.jobs_with(jobs), gating.gates_of(simulation.setup, workload, killed, group, space)


def _with_held(
    result: Result, simulation: Parameters, jobs: Jobs, gates: Gates | None, queue: Queue
) -> Result:
    """Return a result with the intervals in which gates held jobs."""
    from hpcsimkit.compiled.queue import WAITING

    if gates is not None:
        gating.check_end(simulation, gates, int(queue.counters[WAITING]))
        return gating.with_gates(result, jobs, gates)
    if simulation.setup.gates:
        return replace(result, held=later_submissions.held_jobs(simulation.setup, simulation.workload))
    return result


def _machines(
    simulation: Parameters, parts: tuple[str, ...], space: int
) -> tuple[AnyMachines | None, Sequence[Allocation], MachineProfile | None]:
    """Return the machines of a run, the allocations of its running jobs, and its profile, if any."""
    logged, cluster, begun = simulation.workload, _whole(simulation.cluster), simulation.setup.begun
    if not isinstance(cluster, Machines):
        return None, (), None
    gone = stopping.rows_down(cluster, space) if "stops" in parts else 0
    machines = on_machines.machines_of(logged, cluster, gone)
    allocations = None if begun is None else on_machines.allocations_of(begun, logged, cluster)
    planned = "profile" in parts or "plan" in parts
    profile = on_machines.profile_of(logged, cluster, machines, gone, "tests" in parts) if planned else None
    return machines, allocations or (), profile


PARTS = (
    "sizes",
    "listing",
    "gone",
    "shares",
    "machines",
    "histories",
    "profile",
    "plan",
    "candidate_shares",
    "stops",
    "windows",
    "tests",
)
"""The optional parts of the state, in the order in which the compiled function takes them."""

GATED_PARTS = ("listing", "gone", "profile", "plan", "windows", "gates")
"""Those of a run with gates, as its own compiled function takes them."""


def _parts(simulation: Parameters) -> tuple[str, ...]:
    """Return the optional parts of the state that a run needs; each combination is compiled on its own."""
    whole = _whole_of(simulation.policy)
    if whole is slurm_runs:
        return slurm_runs.parts_of(simulation)
    if whole is replanned:
        on_nodes = isinstance(_whole(simulation.cluster), Nodes)
        return (loading.REPLANNING,) if on_nodes else (loading.REPLANNING, "machines")
    policy, cluster = _pipeline(simulation), _whole(simulation.cluster)
    if _by_dirlab(simulation):
        return (loading.DIRLAB,)
    backfiller = policy.backfiller
    gone, machines = _is_scored(policy), isinstance(cluster, Machines)
    profile, plan = isinstance(backfiller, Reservations), isinstance(backfiller, Conservative)
    windows, gates = bool(simulation.setup.calendar), _is_gated(simulation)
    tests = policy.tester is not None
    plainly = windows or gates or (tests and not machines)
    needed = {
        "sizes": not (gone or machines or profile or plan or plainly),
        "listing": gone or machines or profile or plan or plainly or candidates_of(policy) is not None,
        "gone": gone or plainly,
        "shares": isinstance(policy.queue_order, SlurmMultifactor),
        "machines": machines,
        "histories": isinstance(policy.estimates, LastTwo),
        "profile": profile or (windows and isinstance(backfiller, EASY)),
        "plan": plan,
        "candidate_shares": isinstance(candidates_of(policy), SlurmMultifactor),
        "stops": _stops_jobs(simulation),
        "windows": windows,
        "tests": tests,
    }
    found = tuple(part for part in PARTS if needed[part])
    return (loading.GATES, *found) if gates else found


def _pipeline(simulation: Parameters) -> Pipeline:
    """Return the pipeline of a simulation, with EASY for a single reservation on machines.

    See :class:`~hpcsimkit.policies.backfill.backfilling.Reservations`.
    """
    policy, cluster = simulation.policy, _whole(simulation.cluster)
    assert isinstance(policy, Pipeline)
    if isinstance(cluster, Machines) and _reservations(policy.backfiller) == 1:
        policy = copy(policy)
        policy.backfiller = EASY()
    return policy


def _kind(parts: tuple[str, ...]) -> str:
    """Return the name of a combination of parts."""
    return "-".join(parts)


def _optional_parts(
    parts: tuple[str, ...],
    policy: Pipeline,
    workload: Workload,
    jobs: Jobs,
    nodes: int,
    profile: MachineProfile | None,
    windows: Windows | None,
    tests: Tests | None,
) -> dict[str, Any]:
    """Return the optional parts of the state by name, without the machines."""
    from hpcsimkit.compiled.fair_shares import new_shares
    from hpcsimkit.compiled.listing import new_listing
    from hpcsimkit.compiled.plan import new_plan
    from hpcsimkit.compiled.predictions import new_histories
    from hpcsimkit.compiled.profile import new_profile
    from hpcsimkit.compiled.queue import new_sizes

    count = len(workload)
    at_once = count + nodes if "stops" in parts else count  # nodes out of order run like jobs

    def planned() -> Any:
        if windows is not None:
            return beside_windows.profile_of(windows, count, nodes)
        return profile or new_profile(at_once, nodes)

    order: Any = policy.queue_order
    candidates: Any = candidates_of(policy)
    shares = new_shares(candidates, workload, nodes) if "candidate_shares" in parts else None
    make: dict[str, Callable[[], Any]] = {
        "sizes": lambda: new_sizes(count, nodes),
        "listing": lambda: new_listing(count, shares),
        "gone": lambda: np.empty(count, dtype=np.int64),
        "shares": lambda: new_shares(order, workload, nodes),
        "histories": lambda: new_histories(_users(jobs), count, CORRECTIONS),
        "profile": planned,
        "plan": lambda: new_plan(count, planned(), windows, tests),
        "candidate_shares": lambda: shares,
    }
    return {part: make[part]() for part in parts if part in make}


def _users(jobs: Jobs) -> int:
    """Return the number of known users."""
    return int(jobs.user.max(initial=-1)) + 1


def _is_scored(policy: Pipeline) -> bool:
    """Return whether the queue is in order of submission, and scores or a window decide which job is next."""
    return type(policy.queue_order) in VARYING or bool(policy.window)


def _with_partition(result: Result, simulation: Parameters) -> Result:
    """Return a result with the partition in which each job started, if there is one."""
    if not isinstance(simulation.cluster, Partitions):
        return result
    (name,), attempts = simulation.cluster.names, result.attempts
    if attempts is not None:
        attempts = replace(attempts, partition=np.full(len(attempts), name))
    return replace(result, started_in=np.full(len(result), name), attempts=attempts)


def _stops_jobs(simulation: Parameters) -> bool:
    """Return whether jobs of a pipeline may be stopped."""
    policy = simulation.policy
    return isinstance(policy, Pipeline) and stopping.stops_jobs(simulation.setup, policy)


def _is_gated(simulation: Parameters) -> bool:
    """Return whether a pipeline has gates whose answers depend on the course of the run."""
    return gating.decides(simulation.setup, simulation.workload)


def _groups(workload: Workload, policy: Pipeline) -> Integers:
    """Return the rank of each job by the keys of its order, if jobs with equal keys come as they join."""
    if _is_scored(policy):
        return np.zeros(len(workload), dtype=np.int64)
    return dense_ranks(keys_of(policy.queue_order, workload))


def jobs_and_rules(
    simulation: Parameters, workload: Workload, policy: Pipeline, nodes: int, streams: np.random.SeedSequence
) -> tuple[Jobs, Rules]:
    """Return the columns and the rules of a run."""
    from hpcsimkit.compiled.listing import BY_RANK
    from hpcsimkit.compiled.plan import NEVER
    from hpcsimkit.compiled.state import Jobs, Rules, contiguous

    begun = simulation.setup.begun
    if _by_dirlab(simulation):
        due, arrival_order = workload.column("submit_time"), np.arange(len(workload))
    else:
        due, arrival_order = later_submissions.joins(simulation.setup, workload)
    arrival = _inverse(arrival_order)
    order, candidates, scored = policy.queue_order, candidates_of(policy), _is_scored(policy)
    waiting = arrival_order if begun is None else _without(arrival_order, begun.started)
    keys = _keys(workload, order, waiting, streams)
    candidate_keys = _keys(workload, candidates, waiting, streams)
    columns = ("submit_time", "run_time", "requested_time", "nodes")
    submit_time, run_time, requested_time, nodes_asked = map(contiguous, map(workload.column, columns))
    jobs = Jobs(
        submit_time,
        run_time,
        requested_time,
        nodes_asked,
        user=_numbered(workload.user) if isinstance(policy.estimates, LastTwo) else contiguous(workload.user),
        arrival_order=waiting,
        due=contiguous(due),
        rank=arrival if scored else _inverse(np.lexsort((arrival, *keys[::-1]))),
        weight=np.stack(
            [
                _weights(workload, order, keys if scored else ()),
                _weights(workload, candidates, candidate_keys),
            ]
        ),
    )
    rules = Rules(
        nodes=nodes,
        begin=NEVER if begun is None else begun.at,
        order=_code(order),
        backfilling=_backfilling(policy),
        candidates=BY_RANK if candidates is None else _code(candidates),
        reservations=_reservations(policy.backfiller),
        window=policy.window or 0,
        placement=on_machines.placement_code(policy),
    )
    return jobs, rules


def _without(rows: Integers, others: Collection[int]) -> Integers:
    """Return a permutation of all rows without some of them."""
    kept = np.ones(len(rows), dtype=np.bool_)
    kept[list(others)] = False
    return rows[kept[rows]]


def _code(order: Any) -> int:
    """Return the code of an order."""
    from hpcsimkit.compiled import listing

    codes = {
        orders.WFP3: listing.WFP3,
        orders.UNICEF: listing.UNICEF,
        orders.XFactor: listing.XFACTOR,
        ShortestPredicted: listing.BY_ESTIMATE,
    }
    return codes.get(type(order), listing.BY_KEY)


def _backfilling(policy: Pipeline) -> int:
    """Return the code of the backfilling of a pipeline."""
    from hpcsimkit.compiled import state

    if policy.fitting:
        return state.FITTING
    found: dict[type, int] = {
        EASY: state.EASY,
        Greedy: state.GREEDY,
        Reservations: state.PLANNED,
        Conservative: state.PLANNED,
    }
    return found.get(type(policy.backfiller), state.NONE)


def _reservations(backfiller: Any) -> int:
    """Return the number of reservations that are made anew at each pass; 0 if there is no such number."""
    if not isinstance(backfiller, Reservations):
        return 0
    count, all_jobs = backfiller.count, 2**62
    if count is None:
        return all_jobs
    return min(count, all_jobs) if isinstance(count, int) else 0


def _keys(
    workload: Workload, order: Any, waiting: Integers, streams: np.random.SeedSequence
) -> tuple[NDArray[Any], ...]:
    """Return the keys of jobs by a constant order; none by others."""
    if order is None or type(order) in (*VARYING, ShortestPredicted):
        return ()
    if type(order) is orders.RandomOrder:
        return (_drawn(streams, waiting, len(workload)),)
    return keys_of(order, workload)


def _weights(workload: Workload, order: Any, keys: tuple[NDArray[Any], ...]) -> NDArray[np.float64]:
    """Return the keys of a constant order as ranks, or the factor of the formula of a time-dependent one."""
    if keys:
        return dense_ranks(keys).astype(np.float64)
    if isinstance(order, orders.WFP3):
        return workload.size.astype(np.float64)
    if isinstance(order, orders.UNICEF):
        weights: NDArray[np.float64] = np.log2(np.maximum(workload.size, 2)) * workload.requested_time
        return weights
    return np.zeros(len(workload))


def estimates(
    workload: Workload,
    policy: Pipeline,
    streams: np.random.SeedSequence,
    order: NDArray[Any],
    begun: Begun | None = None,
) -> Integers:
    """Return the estimates of all jobs [s], drawn in an order of rows; last-two predictions follow later."""
    estimator = policy.estimates
    if isinstance(estimator, Actual):
        return np.maximum(workload.column("run_time"), 1)
    if isinstance(estimator, Remembered):
        return estimator.estimates
    if isinstance(estimator, Noisy):
        asked = order
        if begun is not None:  # first those of the running jobs
            asked = np.concatenate([list(begun.started), _without(asked, begun.started)]).astype(np.int64)
        factors = 1 + estimator.noise * _drawn(streams, asked, len(workload))
        return np.maximum(np.rint(workload.column("run_time") * factors).astype(np.int64), 1)
    return workload.column("requested_time")


def _random(streams: np.random.SeedSequence) -> np.random.Generator:
    """Return the next generator of the run, as ``System.random`` does."""
    return np.random.default_rng(streams.spawn(1)[0])


def _drawn(streams: np.random.SeedSequence, rows: Integers, jobs: int) -> NDArray[np.float64]:
    """Return random numbers drawn for the jobs of some rows, one after the other; 0 for others."""
    numbers = np.zeros(jobs)
    numbers[rows] = _random(streams).random(len(rows))
    return numbers


def _numbered(user: Integers) -> Integers:
    """Return users as consecutive numbers from 0; -1 remains."""
    known = np.unique(user[user >= 0])
    return np.where(user >= 0, np.searchsorted(known, user), -1).astype(np.int64)


def _inverse(order: NDArray[np.intp]) -> Integers:
    """Return the position of each row in an order of all rows."""
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order))
    return position
