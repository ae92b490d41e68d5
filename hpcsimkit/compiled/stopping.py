"""Pipelines whose jobs may be stopped: which are compiled, their state, and what they add to results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.failure_files import FailureLog
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.cluster.outages import Failures, Outage, Outages
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
    from hpcsimkit.compiled.state import Jobs, Run
    from hpcsimkit.compiled.stops import Preemption, Stops

OPTIONS = ("outages", "restart")
"""Options of a run by which jobs are stopped."""

SOURCES = (type(None), Outages, Failures, FailureLog)
"""Classes of outages that are compiled."""

CHUNK = 256
"""Number of outages that are drawn at first."""

SPACE = 2
"""Number of stops of each job for which space is set aside; more is added when it is needed."""

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
    if type(cluster) is not Nodes:
        names = [name for name in OPTIONS if name in setup.given]
        names = names or ["a preemptor" if policy.tester is None else "tests"]
        yield f"it knows {' and '.join(names)} on homogeneous nodes only"
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
    nodes : int
        Number of nodes of its cluster.
    """

    def __init__(self, simulation: Any, nodes: int) -> None:
        setup, workload, cluster = simulation.setup, simulation.workload, Nodes(nodes)
        self.first = int(workload.submit_time.min()) if len(workload) else 0
        rng = np.random.default_rng([setup.seed, STREAM])
        listed = Outages(()) if setup.outages is None else setup.outages.on(workload, cluster)
        self._coming: Iterator[Outage] = listed.outages(cluster, self.first, rng)
        self._count = CHUNK

    def next(self) -> tuple[Integers, NDArray[np.float64], bool]:
        """Return the next outages and their positions, and whether no others follow."""
        found = [outage for _, outage in zip(range(self._count), self._coming, strict=False)]
        columns = [(each.start, each.end, each.nodes, each.drain) for each in found]
        over, self._count = len(found) < self._count, 2 * self._count
        outages = np.array(columns, dtype=np.int64).reshape(len(found), 4).T.copy()
        return outages, np.array([each.position for each in found], dtype=np.float64), over


def prepare(
    jobs: Jobs, run: Run, simulation: Any, space: int, groups: Integers, first: int
) -> tuple[Jobs, Run, Stops]:
    """Return jobs, state and stops before the first event.

    Parameters
    ----------
    jobs, run : Jobs, Run
        Those of a run without stops.
    simulation : Simulation
        The parameters of the run.
    space : int
        Number of stops of each job for which space is set aside.
    groups : array of int64, shape (jobs,)
        Rank of each job by its keys; equal for jobs with equal keys.
    first : int
        Instant before which there are no outages [s].
    """
    from hpcsimkit.compiled.attempts import new_attempts, restart_rules
    from hpcsimkit.compiled.stops import FIRST, NEXT, UNUSED, Stops

    setup, nodes = simulation.setup, simulation.cluster.size
    count, restart = len(jobs.submit_time), setup.restart
    work, asked = jobs.run_time.copy(), run.estimate.copy()
    by_attempt = jobs._replace(
        run_time=_lasting(work, setup), nodes=np.concatenate([jobs.nodes, np.zeros(nodes, dtype=np.int64)])
    )
    counters = np.zeros(13, dtype=np.int64)
    counters[UNUSED], counters[FIRST], counters[NEXT] = nodes, first, 0
    stops = Stops(
        restart_rules(restart),
        new_attempts(jobs.submit_time, space * count + nodes),
        _preemption_of(simulation, nodes),
        work=work,
        asked=asked,
        failures=np.zeros(count, dtype=np.int64),
        given_up=np.zeros(count, dtype=np.uint8),
        group=groups << (DIGITS - count.bit_length()),
        outages=np.empty((4, 0), dtype=np.int64),
        position=np.empty(0),
        incomplete=np.empty((2, nodes + 1), dtype=np.int64),
        by_start=np.empty(nodes + 1, dtype=np.int64),
        listed=np.zeros(count, dtype=np.uint8),
        down=np.empty((3, 4 * nodes), dtype=np.int64),
        unused=np.arange(count, count + nodes),
        rejoined=np.empty(count, dtype=np.int64),
        counters=counters,
    )
    run = run._replace(
        estimate=_lasting(asked, setup),
        ends=np.empty((3, nodes + 1), dtype=np.int64),
        expected=np.empty((2, nodes + 1), dtype=np.int64),
    )
    return by_attempt, run, stops


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


def supplied(stops: Stops, needed: int, coming: OutagesToCome) -> Stops:
    """Return the same state with the outages, or the space, that a run needs to go on.

    Raises
    ------
    LackingSpaceError
        It cannot go on, as a pass had too little space.
    """
    from hpcsimkit.compiled.attempts import with_space
    from hpcsimkit.compiled.stops import EXHAUSTED, FROM_THE_BEGINNING, MORE_DOWN, MORE_OUTAGES, NEXT

    if needed == FROM_THE_BEGINNING:
        raise LackingSpaceError
    if needed == MORE_OUTAGES:
        (outages, position, over), begun = coming.next(), stops.counters[NEXT]
        stops.counters[NEXT], stops.counters[EXHAUSTED] = 0, over
        return stops._replace(
            outages=np.concatenate([stops.outages[:, begun:], outages], axis=1),
            position=np.concatenate([stops.position[begun:], position]),
        )
    if needed == MORE_DOWN:
        return stops._replace(down=np.concatenate([stops.down, np.empty_like(stops.down)], axis=1))
    return stops._replace(attempts=with_space(stops.attempts))


def with_attempts(result: Result, stops: Stops, restart: Restart) -> Result:
    """Return a result with the attempts of the jobs and the outages."""
    from hpcsimkit.compiled.attempts import table_of

    last = {name: getattr(result, name) for name in ("start_time", "end_time", "mode")}
    given_up = stops.given_up.astype(np.bool_)
    table = table_of(stops.attempts, restart, result.workload, last, result.killed, ~given_up)
    if table is None:
        return replace(result, downtime=_downtime_of(stops))
    return replace(
        result,
        start_time=table.start_time[table.first],
        killed=result.killed | given_up,
        attempts=table,
        downtime=_downtime_of(stops),
    )


def _downtime_of(stops: Stops) -> Downtime | None:
    """Return the outages of a run as a table; None if there was none."""
    from hpcsimkit.compiled.stops import TAKEN

    start, end, nodes = stops.down[:, : stops.counters[TAKEN]]
    if not len(start):
        return None
    return Downtime(start.copy(), end.copy(), np.zeros(len(start), dtype=np.int64), nodes[:, None].copy())
