"""Jobs that are stopped and come back, and nodes that fail. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Failures, Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.observers import Observer, Timeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.restart import Restart, daly, young
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, LCFS, Pipeline
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result
from tests.kernel.helpers import Row, run, starts, workload

TEN_MINUTES = workload([(0, 600, 600, 1)], 1)


def attempts(result: Result) -> list[list[tuple[int, int]]]:
    """Start and end of each attempt of each job."""
    each = result.by_attempt
    of_job: list[list[tuple[int, int]]] = [[] for _ in range(len(result))]
    rows = range(len(result)) if result.attempts is None else result.attempts.job.tolist()
    for row, start, end in zip(rows, each.start_time.tolist(), each.end_time.tolist(), strict=True):
        of_job[row].append((start, end))
    return of_job


# --- by hand ---------------------------------------------------------------------------------------------


def test_a_job_begins_anew_after_a_failure() -> None:
    """10 min of work, an outage at 5 min for 5 min: it ends at 20 min; with a second one at 17 min, at 32 min."""
    once, twice = Outage(300, 600), Outage(1020, 1320)
    assert run(TEN_MINUTES, "fcfs", outages=Outages([once])).end_time.tolist() == [20 * 60]
    result = run(TEN_MINUTES, "fcfs", outages=Outages([once, twice]))
    assert attempts(result) == [[(0, 300), (600, 1020), (1320, 1920)]]
    assert result.attempts is not None
    assert result.attempts.lost.tolist() == [300, 420, 0]
    assert result.attempts.outcome.tolist() == [Outcome.FAILED, Outcome.FAILED, Outcome.COMPLETED]


def test_a_job_continues_from_its_last_checkpoint() -> None:
    """A checkpoint every 60 s for 1 s: by 300 s, four are written, and 240 s of work are safe.

    The other 360 s take 5 checkpoints more.
    """
    rules = Restart(checkpoint=60, checkpoint_cost=1, cost=7)
    result = run(TEN_MINUTES, "fcfs", outages=Outages([Outage(300, 600)]), restart=rules)
    assert attempts(result) == [[(0, 300), (600, 600 + 7 + 360 + 5)]]
    assert result.attempts is not None
    assert result.attempts.work.tolist() == [240, 360]
    assert result.attempts.lost.tolist() == [56, 0]
    assert result.attempts.overhead.tolist() == [4, 12]


def test_a_job_without_failures_writes_its_checkpoints() -> None:
    result = run(TEN_MINUTES, "fcfs", restart=Restart(checkpoint=60, checkpoint_cost=1))
    assert result.end_time.tolist() == [609]
    assert measure(result, names=["overhead_area_share"]) == {"overhead_area_share": pytest.approx(9 / 609)}


def test_an_outage_of_several_machines_by_a_policy() -> None:
    """At 2 s, the policy takes two of three machines for 10 s; a job of three machines starts at 12 s."""

    class Takes(Policy):
        def schedule(self, system: System) -> None:
            if system.now == 2:
                system.take(Allocation([0, 1], [[1], [1]]), until=12)
            for job in system.queue:
                if system.fits(job):
                    system.start(job)

    result = Simulation(workload([(0, 1, 1, 1), (2, 5, 5, 3)], 3), Takes(), Machines.of(3, cpus=1)).run()
    assert result.start_time.tolist() == [0, 12]
    assert result.downtime is not None
    assert result.downtime.machine.tolist() == [0, 1]
    assert result.downtime.end.tolist() == [12, 12]


def test_a_failed_job_returns_after_a_delay_to_its_place() -> None:
    """It failed at 5 s and returns at 15 s, when it is the first in the queue again."""
    jobs = workload([(0, 10, 10, 2), (1, 10, 10, 2), (2, 10, 10, 2)], 2)
    result = run(jobs, "fcfs", outages=Outages([Outage(5, 6)]), restart=Restart(delay=10))
    assert attempts(result) == [[(0, 5), (16, 26)], [(6, 16)], [(26, 36)]]
    assert result.wait_time.tolist() == [0, 5, 24]
    assert result.by_attempt.submit_time.tolist() == [0, 15, 1, 2]


def test_a_job_is_given_up_after_too_many_failures() -> None:
    outages = Outages([Outage(5, 6), Outage(10, 11)])
    result = run(workload([(0, 20, 20, 1)], 1), "fcfs", outages=outages, restart=Restart(limit=1))
    assert attempts(result) == [[(0, 5), (6, 10)]]
    assert result.killed.tolist() == [True]
    assert result.finished.tolist() == [True]


def test_a_stopped_job_that_is_rejected_is_given_up() -> None:
    """It keeps its attempt and its nodes; observers are told that it has ended, as with a limit of failures."""

    class RejectsWhatReturns(Policy):
        def schedule(self, system: System) -> None:
            for job in list(system.queue):
                if system.ledger.again(job.index):
                    system.reject(job)
                elif system.fits(job):
                    system.start(job)

    told, timeline = Told(), Timeline()
    outages = Outages([Outage(5, 6)])
    jobs = workload([(0, 20, 20, 1), (1, 3, 3, 1)], 1)
    simulation = Simulation(jobs, RejectsWhatReturns(), outages=outages, observers=[told, timeline])
    result = simulation.run()
    assert attempts(result) == [[(0, 5)], [(6, 9)]]
    assert result.killed.tolist() == [True, False]
    assert result.finished.tolist() == [True, True]
    assert told.ended == [0, 1]
    assert timeline.steps.time.tolist() == [0, 1, 5, 6, 9]
    assert timeline.steps.busy.tolist() == [1, 1, 0, 1, 0]
    assert timeline.steps.waiting.tolist() == [0, 1, 1, 0, 0]


class Told(Observer):
    """What a run tells of ends and rejections."""

    def __init__(self) -> None:
        self.ended: list[int] = []

    def on_end(self, job: Job, system: System) -> None:
        self.ended.append(job.index)

    def on_reject(self, job: Job, system: System) -> None:
        raise AssertionError("no job is rejected")


def test_idle_nodes_fail_before_busy_ones_and_the_youngest_job_before_others() -> None:
    """Jobs of two nodes each run on four of six nodes: two failures hit none, the third hits the second job."""
    jobs = workload([(0, 20, 20, 2), (1, 20, 20, 2)], 6)
    spared = run(jobs, "fcfs", outages=Outages([Outage(5, 50, nodes=2)]))
    assert spared.attempts is None
    hit = run(jobs, "fcfs", outages=Outages([Outage(5, 50, nodes=3)]))
    assert attempts(hit) == [[(0, 20)], [(1, 5), (20, 40)]]
    first = run(jobs, "fcfs", outages=Outages([Outage(5, 50, nodes=3, position=0)]))
    assert attempts(first) == [[(0, 5), (5, 25)], [(1, 5), (25, 45)]]


def test_the_end_of_an_outage_is_a_release_for_easy() -> None:
    """Two of four nodes are out until 50 s, when the head starts; a job of 50 s would delay it."""
    jobs = workload([(1, 5, 5, 4), (2, 50, 50, 2), (3, 45, 45, 2)], 4)
    assert starts(jobs, "fcfs+easy", outages=Outages([Outage(0, 50, nodes=2)])) == [50, 55, 3]
    assert starts(jobs, "fcfs+conservative", outages=Outages([Outage(0, 50, nodes=2)])) == [50, 55, 3]


def test_nodes_drain_as_jobs_end() -> None:
    """Of two nodes that drain from 5 s to 40 s, the idle one goes at once, the other at 20 s."""
    jobs = workload([(0, 20, 20, 1), (6, 5, 5, 1), (7, 5, 5, 2)], 2)
    result = run(jobs, "fcfs", outages=Outages([Outage(5, 40, nodes=2, drain=True)]))
    assert attempts(result) == [[(0, 20)], [(40, 45)], [(45, 50)]]
    assert result.downtime is not None
    assert result.downtime.start.tolist() == [5, 20]


def test_machines_drain_as_their_jobs_end() -> None:
    """Both drain from 5 s on, the first until 60 s and the second until 40 s: the third job starts on the second."""
    columns = {"submit_time": [0, 0, 6], "run_time": [30, 20, 5], "nodes": [1, 1, 1], "cpus": [4, 4, 4]}
    outages = Outages([Outage(5, 60, machines=(0,), drain=True), Outage(5, 40, machines=(1,), drain=True)])
    result = Simulation(
        Workload(columns, resources=("cpus",)), make("fcfs"), Machines.of(2, cpus=4), outages=outages
    ).run()
    assert result.start_time.tolist() == [0, 0, 40]
    assert result.downtime is not None
    assert result.downtime.start.tolist() == [20, 30]


def test_jobs_on_a_failing_machine_are_stopped() -> None:
    columns = {"submit_time": [0, 0, 1], "run_time": [20, 20, 5], "nodes": [1, 1, 1], "cpus": [2, 4, 2]}
    jobs = Workload(columns, resources=("cpus",))
    cluster = Machines.of(2, cpus=4)
    outages = Outages([Outage(5, 15, machines=("node1",)), Outage(9, 30, machines=(0,))])
    result = Simulation(jobs, make("fcfs"), cluster, outages=outages).run()
    assert attempts(result) == [[(0, 5), (20, 40)], [(0, 20)], [(1, 5), (20, 25)]]
    assert result.downtime is not None
    assert sorted(zip(result.downtime.start.tolist(), result.downtime.end.tolist(), strict=True)) == [
        (5, 15),
        (15, 30),
    ]


def test_metrics_count_all_attempts() -> None:
    """On one node: 300 s lost, 300 s down, 600 s of useful work in 1 200 s."""
    result = run(TEN_MINUTES, "fcfs", outages=Outages([Outage(300, 600)]))
    names = ["restarts", "lost_area_share", "overhead_area_share", "down_area_share", "utilisation"]
    expected = {
        "restarts": 1,
        "lost_area_share": 0.25,
        "overhead_area_share": 0,
        "down_area_share": 0.25,
        "utilisation": 0.75,
    }
    assert measure(result, names=names) == expected
    assert result.run_time.tolist() == [900]
    assert result.slowdown.tolist() == [2]


def test_a_timeline_counts_stopped_jobs_as_waiting() -> None:
    timeline = Timeline()
    result = run(TEN_MINUTES, "fcfs", outages=Outages([Outage(300, 600)]), observers=[timeline])
    assert timeline.steps.time.tolist() == result.timeline().time.tolist() == [0, 300, 600, 1200]
    assert timeline.steps.busy.tolist() == result.timeline().busy.tolist() == [1, 0, 1, 0]


def test_the_estimate_of_a_preempted_job_is_what_is_left_of_it() -> None:
    """At 8 s, the last job has the nodes until 13 s; what is left of the first takes 4 s, and fits before the head."""
    rows = [(0, 10, 10, 1), (5, 3, 3, 4), (6, 2, 2, 4), (7, 5, 5, 3)]
    policy = Pipeline(LCFS(), backfiller=EASY(), preemptor=PreemptLowerTiers())
    result = run(workload(rows, 4, queue=[0, 0, 1, 0]), policy)
    assert attempts(result) == [[(0, 6), (8, 12)], [(13, 16)], [(6, 8)], [(8, 13)]]


def test_nodes_that_return_from_an_outage_go_out_of_order_in_another() -> None:
    """One node is busy until 30 s; the other returns at 10 s, when it is taken by the outage that drains."""
    outages = Outages([Outage(5, 10), Outage(8, 40, drain=True)])
    assert starts(workload([(0, 30, 30, 1), (9, 5, 5, 1)], 2), "fcfs", outages=outages) == [0, 30]


@pytest.mark.parametrize("mode", ["requeue", "cancel"])
def test_nodes_that_a_preemptor_frees_go_out_of_order(mode: Any) -> None:
    """The outage drains both nodes; at 10 s, one of them goes to the second job and the other out of order."""
    policy = Pipeline(FCFS(), preemptor=PreemptLowerTiers(mode=mode))
    jobs = workload([(0, 100, 100, 2), (10, 20, 20, 1)], 2, queue=[0, 1])
    result = run(jobs, policy, outages=Outages([Outage(5, 50, 2, drain=True)]))
    assert result.downtime is not None
    assert result.downtime.start.tolist() == [10, 30]


def test_outages_come_before_the_calendar_within_an_instant() -> None:
    """The outage takes the two idle nodes; the window, on the nodes of the job that exceeds its estimate, comes late."""
    jobs = workload([(0, 30, 5, 2)], 4)
    calendar = Calendar([Window(10, 20, 2)])
    result = run(jobs, "fcfs", outages=Outages([Outage(10, 20, 2)]), calendar=calendar)
    assert result.attempts is None


def test_jobs_of_a_machine_fail_in_the_order_of_their_starts() -> None:
    """Both return to the queue at 5 s; the first one gets the other machine, although its estimate is longer."""
    columns = {"submit_time": [0, 0], "run_time": [30, 30], "requested_time": [40, 30], "cpus": [1, 1]}
    jobs = Workload({**columns, "nodes": [1, 1]}, resources=("cpus",))
    cluster = Machines(["a", "b"], ("cpus",), [[2], [1]])
    result = Simulation(jobs, make("fcfs"), cluster, outages=Outages([Outage(5, 50, machines=("a",))])).run()
    assert attempts(result) == [[(0, 5), (5, 35)], [(0, 5), (35, 65)]]


def test_what_the_calendar_returns_drains_at_once() -> None:
    """At 10 s, the window ends and the outage takes its nodes until 30 s."""
    outages = Outages([Outage(5, 30, 2, drain=True)])
    calendar = Calendar([Window(0, 10, 2)])
    assert starts(workload([(6, 3, 3, 1)], 2), "fcfs", outages=outages, calendar=calendar) == [30]


@pytest.mark.parametrize(("taken", "start"), [(8, 6), (11, 19)])
def test_reservations_expect_the_memory_of_suspended_jobs(taken: int, start: int) -> None:
    """From 6 s, the third job waits for the memory that the first one keeps: until 16 s, when 9 s of it have run.

    The last job starts if it ends before.
    """
    columns = {
        "submit_time": [0, 1, 2, 3],
        "run_time": [10, 5, 4, taken],
        "nodes": [1] * 4,
        "cpus": [1, 2, 2, 1],
        "memory": [2, 0, 1, 0],
        "queue": [0, 1, 1, 0],
    }
    policy = Pipeline(FCFS(), backfiller=EASY(), preemptor=PreemptLowerTiers(mode="suspend"))
    cluster = Machines(["a"], ("cpus", "memory"), [[2, 2]])
    result = Simulation(Workload(columns, resources=("cpus", "memory")), policy, cluster).run()
    assert attempts(result) == [[(0, 1), (6, 15)], [(1, 6)], [(15, 19)], [(start, start + taken)]]


# --- random situations -------------------------------------------------------------------------------------


class Situation(NamedTuple):
    """A small crowded workload on a few nodes with outages, and the rules of restarts."""

    rows: list[Row]
    size: int
    outages: list[Outage]
    restart: Restart

    @property
    def on_machines(self) -> Outages | None:
        """The outages on the first machines of as many."""
        each = [Outage(o.start, o.end, machines=tuple(range(o.nodes)), drain=o.drain) for o in self.outages]
        return Outages(each) if each else None


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    """Draw a small crowded workload with outages and rules of restarts."""
    size = draw(st.integers(1, 6))
    rows = []
    for _ in range(draw(st.integers(1, 11))):
        taken = draw(st.integers(0, 25))
        asked = max(1, int(taken * draw(st.sampled_from([1, 1, 1.5, 3, 0.5]))))
        rows.append((draw(st.integers(0, 40)), taken, asked, draw(st.integers(1, size))))
    listed: list[Outage] = []
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, 80))
        nodes, drain = draw(st.integers(1, size)), draw(st.sampled_from([False, False, True]))
        drawn = Outage(start, start + draw(st.integers(1, 25)), nodes, drain=drain)
        at_once = [sum(o.nodes for o in [*listed, drawn] if o.start <= at < o.end) for at in range(110)]
        if max(at_once) <= size:
            listed.append(drawn)
    every = draw(st.sampled_from([None, None, 1, 3, 7]))
    restart = Restart(
        preempted=draw(st.sampled_from(["continue", "anew"])),
        delay=draw(st.sampled_from([0, 0, 3])),
        limit=draw(st.sampled_from([None, None, None, 0, 1])),
        checkpoint=every,
        checkpoint_cost=0 if every is None else draw(st.integers(0, 3)),
        cost=draw(st.sampled_from([0, 0, 2])),
    )
    return Situation(rows, size, listed, restart)


# --- degenerate cases ----------------------------------------------------------------------------------------

POLICIES = ("fcfs", "fcfs+easy", "sjf+easy", "wfp3+easy-k(count=3)", "fcfs+conservative", "oracle-srtf")


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_that_are_never_there_do_not_count(policy: str) -> None:
    """20 of 100 nodes down throughout: the 80-node cluster, start for start."""
    rng = np.random.default_rng(3)
    rows = [
        (int(at), int(taken), int(taken * factor) + 1, int(nodes))
        for at, taken, factor, nodes in zip(
            np.sort(rng.integers(0, 2000, 150)),
            rng.integers(1, 300, 150),
            rng.choice([1, 2, 0.5], 150),
            rng.integers(1, 80, 150),
            strict=True,
        )
    ]
    down = Outages([Outage(-1, 10**9, nodes=20)])
    small = run(workload(rows, 80), policy)
    large = run(workload(rows, 100), policy, outages=down)
    assert attempts(large) == attempts(small)


@given(drawn=situations(), policy=st.sampled_from(POLICIES))
def test_node_seconds_are_conserved_on_machines(drawn: Situation, policy: str) -> None:
    """Capacity is verified at the end of each run; work, lost work and overhead fill the time of all attempts."""
    rows, size, _, restart = drawn
    jobs = workload(rows, size)
    options: dict[str, Any] = {"outages": drawn.on_machines, "restart": restart}
    result = Simulation(jobs, make(policy), Machines.of(size, cpus=1), **options).run()
    if result.attempts is not None:
        each = result.attempts
        assert (each.overhead >= 0).all()
        gone = result.killed & (np.bincount(each.job, each.work, len(rows)) < jobs.run_time)
        assert (np.bincount(each.job, each.work, len(rows))[~gone] == jobs.run_time[~gone]).all()
        assert (each.start_time >= each.submit_time).all()


@given(drawn=situations())
def test_partitions_share_failing_machines(drawn: Situation) -> None:
    """Two partitions over the same machines: no job runs on one that is down, as each run verifies."""
    rows, size, _, _ = drawn
    whole = Machines.of(size, cpus=1)
    parts = [Partition("a", machines=whole.names), Partition("b", machines=whole.names[: max(size - 1, 1)])]
    small = [(at, taken, asked, min(nodes, max(size - 1, 1))) for at, taken, asked, nodes in rows]
    jobs = workload(small, size, partition=[row % 3 for row in range(len(rows))])
    jobs = replace(jobs, labels={"partition": ("a", "b", "a,b")})
    result = Simulation(jobs, make("fcfs+easy"), Partitions(parts, whole), outages=drawn.on_machines).run()
    assert (result.end_time >= 0).all()


def test_random_failures_do_not_depend_on_the_policy() -> None:
    jobs = workload([(5 * k, 60, 60, 1 + k % 4) for k in range(60)], 6)
    failures = Failures(mtbf=400, repair=30, law="weibull", shape=0.7, rack=2)
    first, second = (run(jobs, policy, outages=failures, seed=4) for policy in ("fcfs", "sjf+easy"))
    assert first.downtime is not None and second.downtime is not None
    both = min(len(first.downtime.start), len(second.downtime.start))
    assert both > 3
    assert first.downtime.start[:both].tolist() == second.downtime.start[:both].tolist()
    other = run(jobs, "fcfs", outages=failures, seed=5)
    assert other.downtime is not None
    assert other.downtime.start[:3].tolist() != first.downtime.start[:3].tolist()


def test_failures_have_their_mean_times() -> None:
    source = Failures(mtbf=1000, repair=100, law="lognormal", shape=1.2).outages(
        Machines.of(50, cpus=1), 0, np.random.default_rng(1)
    )
    found = [next(source) for _ in range(5000)]
    assert np.mean([each.end - each.start for each in found]) == pytest.approx(100, rel=0.05)
    assert len(found) / found[-1].start == pytest.approx(50 / 1100, rel=0.05)


def test_intervals_of_checkpoints() -> None:
    assert (young(60, 86400), daly(60, 86400), daly(10, 4)) == (3220, 3180, 4)
    assert (daly(1, 0.51), daly(10, 0.2), young(1e-3, 1e-3)) == (1, 1, 1), "a second at least"


# --- bad input ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outages": Outages([Outage(5, 5)])}, "it must end after it begins"),
        ({"outages": Outages([Outage(5, 9, nodes=9)])}, "nodes needs a number from 1 to 4, found 9"),
        (
            {"outages": Outages([Outage(5, 9, 3), Outage(8, 9, 3)])},
            "at 8 s: 6 nodes are out of order at once, of 4",
        ),
        (
            {"outages": Outages([Outage(5, 9, machines=("x",))])},
            "the cluster has homogeneous nodes, found machine 'x'",
        ),
        ({"outages": [Outage(5, 9)]}, "outages needs an OutageSource"),
        ({"restart": None}, "restart needs a Restart, found None"),
        ({"outages": Failures(mtbf=0, repair=5)}, "mtbf needs a positive number, found 0"),
        ({"outages": Failures("20d", 5)}, "mtbf needs a positive number, found '20d'"),  # type: ignore[arg-type]
        ({"restart": Restart(delay=-1)}, "delay needs a whole number, at least 0, found -1"),
        ({"restart": Restart(checkpoint_cost=5)}, "checkpoint_cost=5 needs a checkpoint interval"),
        ({"restart": Restart("later")}, "preempted needs 'continue' or 'anew'"),  # type: ignore[arg-type]
        ({"outages": Outages([]), "event_order": DirlabOrder()}, "know no outages"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        run(workload([(0, 5, 5, 1)], 4), "fcfs", **options)


def test_an_unknown_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="has no machine 'node9'"):
        Simulation(
            workload([(0, 5, 5, 1)], 4),
            make("fcfs"),
            Machines.of(4, cpus=1),
            outages=Outages([Outage(5, 9, machines=("node9",))]),
        ).run()


def test_only_running_jobs_are_stopped() -> None:
    class Wrong(Policy):
        def schedule(self, system: System) -> None:
            system.stop(system.queue.first())

    with pytest.raises(ScheduleError, match=r"job 1 at t=0 s cannot be stopped: it must be running here"):
        run(workload([(0, 5, 5, 1)], 4), Wrong())


def test_only_free_capacity_is_taken() -> None:
    class Wrong(Policy):
        def schedule(self, system: System) -> None:
            system.take(5, until=9)  # type: ignore[arg-type]

    with pytest.raises(ScheduleError, match="cannot be taken at t=0 s: it is not free"):
        run(workload([(0, 5, 5, 1)], 4), Wrong())


@pytest.mark.parametrize("cluster", [None, Machines.of(4, cpus=1)])
def test_a_saved_result_has_its_attempts(cluster: Machines | None, tmp_path: Path) -> None:
    machines = () if cluster is None else (0, 1, 2, 3)
    outages = Outages([Outage(5, 9, nodes=4, machines=machines)])
    jobs = workload([(0, 10, 10, 3), (1, 10, 10, 1)], 4)
    result = Simulation(jobs, make("fcfs"), cluster, outages=outages).run()
    result.save(tmp_path / "result.npz")
    loaded = Result.load(tmp_path / "result.npz")
    assert attempts(loaded) == attempts(result) == [[(0, 5), (9, 19)], [(1, 5), (9, 19)]]
    assert loaded.downtime is not None
    assert (loaded.downtime.start.min(), loaded.downtime.end.max()) == (5, 9)
    names = ["lost_area_share", "down_area_share", "utilisation", "cpus_utilisation"]
    assert measure(loaded, names=names) == pytest.approx(measure(result, names=names), nan_ok=True)
    assert loaded.hash == result.hash
