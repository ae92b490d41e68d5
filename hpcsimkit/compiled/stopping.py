"""Pipelines whose jobs may be stopped: which are compiled, their state, and what they add to results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.failure_files import FailureLog
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.outages import Failures, Outage, Outages
from hpcsimkit.compiled import on_machines
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.failures import STREAM
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.orders import RandomOrder
from hpcsimkit.policies.predictions import LastTwo, ShortestPredicted
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.attempts import Downtime
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from hpcsimkit.compiled.machines import Machines as State
    from hpcsimkit.compiled.state import Jobs, Run
    from hpcsimkit.compiled.stops import MachineOutages, Preemption, Stops

OPTIONS = ("outages", "restart")
"""Options of a run by which jobs are stopped."""

SOURCES = (type(None), Outages, Failures, FailureLog)
"""Classes of outages that are compiled."""

CHUNK = 256
"""Number of outages that are drawn at first."""

SPACE = 2
"""Number of stops of each job, and of parts of each machine that are out of order at once, for which space is
set aside; more is added when it is needed."""

DIGITS = 52
"""Number of binary digits of a rank, which may be a floating-point number, too."""

MOST_JOBS = 2**20

Integers = NDArray[np.int64]


def stops_jobs(setup: Setup, policy: Pipeline) -> bool:
    """Return whether jobs may be stopped, or attempts may take longer than their work."""
    stages = policy.preemptor, policy.tester
    return stages != (None, None) or any(name in setup.given for name in OPTIONS)


def obstacles(setup: Setup, workload: Workload, cluster: AnyCluster, policy: Pipeline) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run a pipeline whose jobs may be stopped."""
    if isinstance(cluster, Machines):
        yield from _obstacles_on_machines(setup, policy)
    if type(setup.outages) not in SOURCES:
        yield f"it knows no outages {setup.outages!r}"
    if setup.begun is not None:
        yield "it knows no begun runs whose jobs may be stopped"
    candidates = getattr(policy.backfiller, "candidates", None)
    for part in (policy.queue_order, candidates, policy.estimates):
        if isinstance(part, RandomOrder | SlurmMultifactor | ShortestPredicted | LastTwo):
            yield f"it knows no {part!r} where jobs may be stopped"
    if len(workload) >= MOST_JOBS:
        yield "its jobs are too many to be stopped"


def _obstacles_on_machines(setup: Setup, policy: Pipeline) -> Iterator[str]:
    """Yield the reasons why the compiled simulator cannot run a pipeline whose jobs may be stopped there."""
    if policy.preemptor is not None:
        yield "it knows a preemptor on homogeneous nodes only"
    listed = setup.outages.listed if isinstance(setup.outages, Outages) else ()
    if max((outage.end for outage in listed), default=0) > TIME_LIMIT:
        yield "its outages end too late"


def obstacle_of_preemptor(preemptor: object) -> str | None:
    """Return the reason why a preemptor is not compiled, or None."""
    if preemptor is None:
        return None
    if type(preemptor) is not PreemptLowerTiers:
        return f"the preemptor {preemptor!r} is not compiled"
    if preemptor.mode == "suspend" or preemptor.grace_time:
        return f"it knows no suspensions and no grace, found {preemptor!r}"
    return None


class LackingSpaceError(Exception):
    """There is too little space for the stops of a pass."""


class OutagesToCome:
    """The outages of a run, of which more and more are drawn.

    Parameters
    ----------
    simulation : Simulation
        The parameters of the run.
    cluster : Nodes or Machines
        Its cluster, without a partition over all of it.
    """

    def __init__(self, simulation: Any, cluster: AnyCluster) -> None:
        setup, workload = simulation.setup, simulation.workload
        self.first = int(workload.submit_time.min()) if len(workload) else 0
        rng = np.random.default_rng([setup.seed, STREAM])
        listed = Outages(()) if setup.outages is None else setup.outages.on(workload, cluster)
        self._coming: Iterator[Outage] = listed.outages(cluster, self.first, rng)
        self._count, self._members = CHUNK, 0

    def next(self) -> tuple[Integers, NDArray[np.float64], Integers, bool]:
        """Return the next outages, their positions and their machines, and whether no others follow."""
        found = [outage for _, outage in zip(range(self._count), self._coming, strict=False)]
        over, self._count = len(found) < self._count, 2 * self._count
        columns, members = [], list[Any]()
        for each in found:
            size = len(each.machines) or each.nodes
            columns.append((each.start, each.end, size, each.drain, self._members + len(members)))
            members += each.machines
        self._members += len(members)
        outages = np.array(columns, dtype=np.int64).reshape(len(found), 5).T.copy()
        positions = np.array([each.position for each in found], dtype=np.float64)
        return outages, positions, np.array(members, dtype=np.int64), over


def rows_down(cluster: AnyCluster, space: int) -> int:
    """Return how many times nodes, or parts of machines, can be out of order at once.

    Of a machine, all that is free goes out of order at once, and the rest as it becomes free.
    """
    return (1 + space) * len(cluster) if isinstance(cluster, Machines) else int(cluster.size)


def prepare(
    jobs: Jobs,
    run: Run,
    simulation: Any,
    cluster: AnyCluster,
    space: int,
    groups: Integers,
    first: int,
) -> tuple[Jobs, Run, Stops]:
    """Return jobs, state and stops before the first event.

    Parameters
    ----------
    jobs, run : Jobs, Run
        Those of a run without stops.
    simulation : Simulation
        The parameters of the run.
    cluster : Nodes or Machines
        Its cluster, without a partition over all of it.
    space : int
        Number of stops of each job for which space is set aside.
    groups : array of int64, shape (jobs,)
        Rank of each job by its keys; equal for jobs with equal keys.
    first : int
        Instant before which there are no outages [s].
    """
    from hpcsimkit.compiled.attempts import new_attempts, restart_rules
    from hpcsimkit.compiled.stops import FIRST, NEXT, UNUSED, Stops

    setup, rows = simulation.setup, rows_down(cluster, space)
    count, restart = len(jobs.submit_time), setup.restart
    at_once = rows + (count if isinstance(cluster, Machines) else 0)
    work, asked = jobs.run_time.copy(), run.estimate.copy()
    by_attempt = jobs._replace(
        run_time=_lasting(work, setup), nodes=np.concatenate([jobs.nodes, np.zeros(rows, dtype=np.int64)])
    )
    counters = np.zeros(14, dtype=np.int64)
    counters[UNUSED], counters[FIRST], counters[NEXT] = rows, first, 0
    attempts = new_attempts(jobs.submit_time, space * count + at_once)
    stops = Stops(
        restart_rules(restart),
        attempts,
        _preemption_of(simulation, at_once),
        _outages_on(cluster, simulation.workload, attempts.log.shape[1], 4 * rows),
        work=work,
        asked=asked,
        failures=np.zeros(count, dtype=np.int64),
        given_up=np.zeros(count, dtype=np.uint8),
        group=groups << (DIGITS - count.bit_length()),
        outages=np.empty((5, 0), dtype=np.int64),
        position=np.empty(0),
        incomplete=np.empty((2, at_once + 1), dtype=np.int64),
        by_start=np.empty(at_once + 1, dtype=np.int64),
        listed=np.zeros(count, dtype=np.uint8),
        down=np.empty((3, 4 * rows), dtype=np.int64),
        unused=np.arange(count, count + rows),
        rejoined=np.empty(count, dtype=np.int64),
        counters=counters,
    )
    run = run._replace(
        estimate=_lasting(asked, setup),
        ends=np.empty((3, at_once + 1), dtype=np.int64),
        expected=np.empty((2, at_once + 1), dtype=np.int64),
    )
    return by_attempt, run, stops


def _outages_on(cluster: AnyCluster, workload: Workload, stops: int, space: int) -> MachineOutages:
    """Return the state of outages of machines, with space for stopped attempts and for outages."""
    from hpcsimkit.compiled.stops import MachineOutages

    machines = isinstance(cluster, Machines)
    parts = 0
    if isinstance(cluster, Machines):
        parts = int(on_machines.most_parts(*on_machines.needs_of(workload, cluster)).sum())
    shape = cluster.capacity.shape if isinstance(cluster, Machines) else (0, 0)
    return MachineOutages(
        members=np.empty(0, dtype=np.int64),
        begun=np.empty((4, machines * space), dtype=np.int64),
        gone=np.zeros(shape, dtype=np.int64),
        hit=np.zeros(shape[0], dtype=np.uint8),
        found=np.empty(machines * len(workload), dtype=np.int64),
        amounts=np.empty((shape[1], machines * space), dtype=np.int64),
        places=np.empty((2, machines * stops), dtype=np.int64),
        parts=np.array([parts]),
    )


def _preemption_of(simulation: Any, nodes: int) -> Preemption:
    """Return the preemptor of a pipeline as numbers."""
    from hpcsimkit.compiled.stops import LEAST_LOST, OLDEST, SMALLEST, YOUNGEST, Preemption

    preemptor, jobs = simulation.policy.preemptor, simulation.workload
    if preemptor is None:
        none = np.empty(0, dtype=np.int64)
        return Preemption(0, 0, 0, 0, none, none, none, np.empty(0, dtype=np.uint8))
    tier = np.array(preemptor.tiers_in(jobs), dtype=np.int64)
    codes = {"youngest": YOUNGEST, "least_lost": LEAST_LOST, "smallest": SMALLEST}
    return Preemption(
        active=1,
        first=codes.get(preemptor.first, OLDEST),
        exempt_time=preemptor.exempt_time,
        cancels=int(preemptor.mode == "cancel"),
        tier=tier,
        size=jobs.size.astype(np.int64),
        chosen=np.empty(nodes + 1, dtype=np.int64),
        marked=np.zeros(len(jobs), dtype=np.uint8),
    )


def _lasting(work: Integers, setup: Setup) -> Integers:
    """Return the time that the first attempt of each job takes for its work [s]."""
    restart = setup.restart
    if restart.plain:
        return work.copy()
    times, number_of = np.unique(work, return_inverse=True)
    lasting = np.array([restart.duration(int(time), again=False) for time in times], dtype=np.int64)
    return lasting[number_of]


def supplied(
    stops: Stops, machines: State | None, needed: int, coming: OutagesToCome
) -> tuple[Stops, State | None]:
    """Return the same state with the outages, or the space, that a run needs to go on.

    Raises
    ------
    LackingSpaceError
        It cannot go on, as there was too little space.
    """
    from hpcsimkit.compiled.attempts import with_space
    from hpcsimkit.compiled.machines import with_space as with_more_parts
    from hpcsimkit.compiled.stops import FROM_THE_BEGINNING, MORE_DOWN, MORE_OUTAGES, MORE_PARTS

    outages = stops.on_machines
    if needed == FROM_THE_BEGINNING:
        raise LackingSpaceError
    if needed == MORE_PARTS and machines is not None:
        return stops, with_more_parts(machines)
    if needed == MORE_OUTAGES:
        return _with_outages(stops, coming), machines
    if needed == MORE_DOWN:
        twice = outages._replace(begun=_twice(outages.begun), amounts=_twice(outages.amounts))
        return stops._replace(down=_twice(stops.down), on_machines=twice), machines
    more = outages._replace(places=_twice(outages.places))
    return stops._replace(attempts=with_space(stops.attempts), on_machines=more), machines


def _with_outages(stops: Stops, coming: OutagesToCome) -> Stops:
    """Return the same state with the next outages."""
    from hpcsimkit.compiled.stops import EXHAUSTED, NEXT

    (found, position, members, over), begun = coming.next(), stops.counters[NEXT]
    stops.counters[NEXT], stops.counters[EXHAUSTED] = 0, over
    known = np.concatenate([stops.on_machines.members, members])  # outages under way need theirs
    return stops._replace(
        outages=np.concatenate([stops.outages[:, begun:], found], axis=1),
        position=np.concatenate([stops.position[begun:], position]),
        on_machines=stops.on_machines._replace(members=known),
    )


def _twice(columns: Integers) -> Integers:
    """Return columns with space for as many more."""
    return np.concatenate([columns, np.empty_like(columns)], axis=1)


def with_attempts(
    result: Result, stops: Stops, restart: Restart, cluster: AnyCluster, machines: State | None
) -> Result:
    """Return a result with the attempts of the jobs and the outages."""
    from hpcsimkit.compiled.attempts import STOPPED, table_of

    last = {name: getattr(result, name) for name in ("start_time", "end_time", "mode")}
    given_up = stops.given_up.astype(np.bool_)
    table = table_of(stops.attempts, restart, result.workload, last, result.killed, ~given_up)
    result = replace(result, downtime=_downtime_of(stops, machines))
    if table is None:
        return result
    placements = None
    if machines is not None:
        count, ended = stops.attempts.counters[STOPPED], np.flatnonzero(~given_up)
        stopped = stops.attempts.log[0, :count], stops.on_machines.places[:, :count]
        placements = on_machines.placements_of_attempts(cluster, machines, *stopped, ended)
    return replace(
        result,
        start_time=table.start_time[table.first],
        killed=result.killed | given_up,
        attempts=replace(table, placements=placements),
    )


def _downtime_of(stops: Stops, machines: State | None) -> Downtime | None:
    """Return the outages of a run as a table; None if there was none."""
    from hpcsimkit.compiled.stops import TAKEN

    count = stops.counters[TAKEN]
    start, end, where = (column.copy() for column in stops.down[:, :count])
    if not count:
        return None
    if machines is None:
        return Downtime(start, end, np.zeros(count, dtype=np.int64), where[:, None])
    return Downtime(start, end, where, stops.on_machines.amounts[:, :count].T.copy())
