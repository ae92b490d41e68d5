"""Scores worked out by hand, from specs of the papers; and schedules that only the right order gives."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Order
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import (
    EASY,
    F1,
    F2,
    F3,
    F4,
    FCFS,
    LAF,
    LCFS,
    LJF,
    SAF,
    SJF,
    SQF,
    SRF,
    UNICEF,
    WFP3,
    Greedy,
    LargestFirst,
    OracleSAF,
    OracleSJF,
    Pipeline,
    SlurmMultifactor,
    XFactor,
)  # fmt: skip
from hpcsimkit.policies.catalogue import CATALOGUE
from hpcsimkit.policies.dirlab.orders import PublishedF1, PublishedF2, RecordedMultifactor
from tests.kernel.helpers import starts, workload

JOB = Job(index=0, id=1, submit_time=1000, run_time=50, requested_time=100, nodes=4)


@pytest.mark.parametrize(
    ("order", "key"),
    [
        (FCFS(), 1000),
        (LCFS(), -1000),
        (SJF(), 100),
        (LJF(), -100),
        (SAF(), 400),
        (LAF(), -400),
        (SQF(), 4),
        (LargestFirst(), -4),
        (SRF(), 25),
        (F1(), 2 * 4 + 870 * 3),
        (F2(), 10 * 4 + 25_600 * 3),
        (F3(), 400 + 6_860_000 * 3),
        (F4(), 100 * 2 + 530_000 * 3),
        (OracleSJF(), 50),
        (OracleSAF(), 200),
    ],
    ids=repr,
)
def test_keys(order: Order, key: float) -> None:
    assert order.key(JOB) == pytest.approx(key)
    assert not order.dynamic


@pytest.mark.parametrize(("order", "key"), [(F1(), 8), (F2(), 40), (F3(), 400), (F4(), 200)], ids=repr)
@pytest.mark.parametrize("submit", [0, 1])
def test_f_orders_take_submission_at_0_as_1(order: Order, key: float, submit: int) -> None:
    assert order.key(JOB._replace(submit_time=submit)) == pytest.approx(key)


def test_published_f_orders_take_the_logarithm_of_0() -> None:
    """As 870 x -1 in F1, and as -infinity in the others."""
    first = JOB._replace(submit_time=0)
    assert PublishedF1().key(first) == pytest.approx(8 - 870)
    assert PublishedF2().key(first) == -math.inf
    assert PublishedF1().key(JOB) == F1().key(JOB)


@pytest.mark.parametrize(
    ("order", "scores"),
    [
        (WFP3(), [-64, -1, 0]),  # (100/50)^3 x 8, (10/10)^3 x 1, no wait
        (UNICEF(), [-100 / (3 * 50), -1, 0]),  # log2(8) = 3; one node counts as two: log2(2) = 1
        (XFactor(), [-3, -2, -1]),  # (100 + 50) / 50, (10 + 10) / 10, (0 + 7) / 7
    ],
    ids=repr,
)
def test_scores_at_100(order: Order, scores: list[float]) -> None:
    columns: Any = SimpleNamespace(
        submit_time=np.array([0, 90, 100]), requested_time=np.array([50, 10, 7]), size=np.array([8, 1, 2])
    )
    assert order.dynamic
    assert order.scores(columns, 100).tolist() == pytest.approx(scores)


@pytest.mark.parametrize("order", [WFP3, XFactor])
@pytest.mark.parametrize("jobs", [20, 200])
def test_formulas_of_one_job_and_of_columns_give_one_schedule(order: type[Order], jobs: int) -> None:
    """Bursts on a small cluster, whose queue is at times shorter and at times longer than `SHALLOW`."""

    class ByColumns(order):  # type: ignore[valid-type, misc]
        def scores(self, jobs: Any, now: int) -> Any:
            return self.formula(jobs, now)

    rng = np.random.default_rng(jobs)
    rows = [
        (int(at), int(run), int(run * over), int(nodes))
        for at, run, over, nodes in zip(
            np.sort(rng.integers(0, 4, jobs)) * 300, rng.integers(1, 60, jobs), rng.integers(1, 4, jobs),
            rng.integers(1, 9, jobs), strict=True,
        )
    ]  # fmt: skip
    log = workload(rows, 8)
    for backfiller in (None, EASY(), Greedy(), EASY(candidates=SJF())):
        one = starts(log, Pipeline(order=order(), backfiller=backfiller))
        assert one == starts(log, Pipeline(order=ByColumns(), backfiller=backfiller))
    assert not ByColumns().by_formula
    assert order().by_formula


def test_an_order_of_candidates_learns_of_all_jobs_on_arrival() -> None:
    """Also of the first, which starts at once, and of the second, which is never a candidate."""
    heard: list[tuple[int, int]] = []

    class Listening(Order):
        def reset(self, system: Any) -> None:
            self._system = system

        def arrive(self, job: Job) -> None:
            heard.append((self._system.now, job.index))

        def scores(self, jobs: Any, now: int) -> Any:
            return -jobs.submit_time

    log = workload([(0, 9, 9, 3), (1, 9, 9, 4), (2, 3, 3, 1), (2, 5, 5, 1)], 4)
    assert starts(log, Pipeline(backfiller=EASY(candidates=Listening()))) == [0, 9, 2, 18]
    assert heard == [(0, 0), (1, 1), (2, 2), (2, 3)]
    heard.clear()
    both = Listening()
    starts(log, Pipeline(order=both, backfiller=EASY(candidates=both)))
    assert [row for _, row in heard] == [0, 1, 2, 3]


@pytest.mark.parametrize("found", [float("nan"), "high", None])
def test_a_formula_must_give_a_number(found: Any) -> None:
    class Wrong(Order):
        def formula(self, job: Any, now: int) -> Any:
            return found

    with pytest.raises(ScheduleError, match=r"needs one score for each of 2 jobs"):
        starts(workload([(0, 9, 9, 4), (1, 9, 9, 4), (2, 9, 9, 4)], 4), Pipeline(order=Wrong()))


class Spying(SlurmMultifactor):
    """Writes down the priorities it gives."""

    seen: ClassVar[dict[int, dict[int, float]]] = {}

    def scores(self, jobs: Any, now: int) -> Any:
        scores = super().scores(jobs, now)
        self.seen[now] = dict(zip((jobs.index + 1).tolist(), (-scores).tolist(), strict=True))
        return scores


ROWS = [(0, 100, 200, 2), (0, 300, 400, 2), (10, 100, 100, 4), (20, 50, 50, 4)]
COLUMNS = {"user": [1, 2, 1, 2], "queue": [1, 1, 2, 1]}


def test_slurm_multifactor_by_hand() -> None:
    """Four nodes; at 100 job 1 ends, job 2 runs on; jobs 3 (user 1, queue 2) and 4 (user 2, queue 1) wait.

    Node-seconds of the log: 200 + 600 + 400 + 200 = 1400; user 1: 600, user 2: 800; queue 1: 1000, queue 2: 400,
    relative to the largest 1 and 0.4. Used at 100: 200 by each user, a half. Longest request 400 s.
    Job 3: age 90/100, fair share 2^-(1/2 / (3/7)), size 1, attribute 1 - 100/400, partition 0.4.
    Job 4: age 80/100, fair share 2^-(1/2 / (4/7)), size 1, attribute 1 - 50/400, partition 1.
    """
    Spying.seen.clear()
    order = Spying(
        age=1000,
        fair_share=2000,
        size=10,
        attribute=300,
        partition=500,
        max_age=100,
        shares="log",
        half_life=0,
    )
    starts(workload(ROWS, 4, **COLUMNS), Pipeline(order=order))
    third = 900 + 2000 * 2 ** (-7 / 6) + 10 + 225 + 200
    fourth = 800 + 2000 * 2 ** (-7 / 8) + 10 + 262.5 + 500
    assert Spying.seen[100] == pytest.approx({3: third, 4: fourth})


def test_slurm_by_default_has_equal_shares_and_full_age() -> None:
    """Each of two users and queues is entitled to a half; at 300 all of the age counts. Job 2 used 600 of 800.

    Job 3 (user 1, 200 of 800): 2^-(1/4 / 1/2); job 4 (user 2): 2^-(3/4 / 1/2); queues 1 and 1.
    """
    Spying.seen.clear()
    order = Spying(age=1, fair_share=1, attribute=1, partition=1, max_age=100, half_life=0)
    starts(workload(ROWS, 4, **COLUMNS), Pipeline(order=order))
    assert Spying.seen[300] == pytest.approx({3: 1 + 2**-0.5 + 0.75 + 1, 4: 1 + 2**-1.5 + 0.875 + 1})


def test_slurm_usage_decays() -> None:
    """At 300 jobs 1 (user 1, 2 nodes, 0 to 100) and 2 (user 2, 2 nodes, 0 to 300) have ended.

    With a half-life of 100 s, the usage of job 1 is worth 2 x (1/4 - 1/8), that of job 2 2 x (1 - 1/8), in
    units of 100 s / ln 2: an eighth and seven eighths. User 1 has three quarters of the shares.
    """
    Spying.seen.clear()
    weights = {"age": 0, "fair_share": 1, "attribute": 0, "partition": 0, "qos": 0}
    order = Spying(**weights, half_life=100, shares={"1": 3, "2": 1})
    starts(workload(ROWS, 4, **COLUMNS), Pipeline(order=order))
    assert Spying.seen[300] == pytest.approx({3: 2 ** (-1 / 8 / 0.75), 4: 2 ** (-7 / 8 / 0.25)})


def test_slurm_counts_users_from_their_first_submission() -> None:
    """Job 1 (user 2) starts at once, so that its priority is never asked for; a third belongs to each user.

    At 10, user 2 has used 10 node-seconds, user 3 has used 9.
    """
    Spying.seen.clear()
    rows = [(0, 10, 10, 1), (1, 10, 10, 1), (2, 10, 10, 4), (3, 10, 10, 4)]
    order = Spying(age=0, fair_share=1, attribute=0, partition=0, half_life=0)
    starts(workload(rows, 4, user=[2, 3, 3, 1]), Pipeline(order=order))
    assert Spying.seen[10] == pytest.approx({3: 2 ** (-9 / 19 * 3), 4: 1})


def test_slurm_charges_gpus() -> None:
    """Users 0 and 1 used 4 CPUs for 10 s each, and user 1 two GPUs; a GiB costs as much as a CPU."""
    from hpcsimkit import Machines, Simulation, Workload

    columns = {"submit_time": [0, 0, 1, 1], "run_time": [10] * 4, "nodes": [1] * 4, "user": [0, 1, 1, 0]}
    amounts = {"cpus": [4, 4, 8, 8], "gpus": [0, 2, 0, 0], "memory": [2**30] * 4}
    log = Workload({**columns, **amounts}, resources=("cpus", "gpus", "memory"))
    machine = Machines.of(1, cpus=8, gpus=2, memory="8 GB")

    def last(**parameters: Any) -> int:
        order = SlurmMultifactor(age=0, attribute=0, **parameters)
        return int(Simulation(log, Pipeline(order=order), machine).run().start_time.argmax())

    assert last() == 3  # in the order of submission
    assert last(billing={"cpus": 1, "gpus": 8, "memory": 1}) == 2
    with pytest.raises(UsageError, match=r"^slurm: billing needs resources of the log .*, found 'tpus'"):
        last(billing={"tpus": 1})


@pytest.mark.parametrize("usage", ["partition", "cluster"])
def test_slurm_charges_by_the_weights_of_the_partition(usage: str) -> None:
    """As above: GPUs cost as much as 8 CPUs in the partition in which a job starts, or nothing more."""
    from hpcsimkit import Machines, Simulation, Workload
    from hpcsimkit.cluster.partitions import Partition, Partitions

    columns = {"submit_time": [0, 0, 1, 1], "run_time": [10] * 4, "nodes": [1] * 4, "user": [0, 1, 1, 0]}
    amounts = {"cpus": [4, 4, 8, 8], "gpus": [0, 2, 0, 0], "partition": [1, 0, 0, 0]}
    labels = {"partition": ("gpu", "cpu,gpu")}
    log = Workload({**columns, **amounts}, resources=("cpus", "gpus"), labels=labels)
    machines = Machines.of(1, "a", cpus=8, gpus=2) + Machines.of(1, "b", cpus=4)

    def last(weights: dict[str, float], *, whole: bool = False, **parameters: Any) -> int:
        order = SlurmMultifactor(age=0, attribute=0, usage=usage, **parameters)
        gpu = Partition("gpu", machines=["a1"], billing=weights)
        parts = [gpu, Partition("cpu", machines=["b1"], billing={"gpus": 1}, priority=1)]
        cluster = Partitions(parts, machines)
        jobs = log
        if whole:
            jobs = Workload({**log.columns, "partition": [0] * 4}, resources=log.resources, labels=labels)
            cluster = Partitions([replace(gpu, machines=None)], machines.subset([0]))
        return int(Simulation(jobs, Pipeline(order=order), cluster).run().start_time.argmax())

    for whole in (False, True):
        assert last({"cpus": 1, "gpus": 8, "tpus": 3}, whole=whole) == 2
        assert last({}, whole=whole, billing={"cpus": 1, "gpus": 8}) == 2
    assert last({"cpus": 1}) == 2  # job 1 ran in `cpu`, where it costs nothing
    assert last({"cpus": 0, "gpus": 0}) == 3
    assert last({}, whole=True) == last({"cpus": 1}, whole=True) == 3


def test_slurm_shares_are_checked() -> None:
    with pytest.raises(UsageError, match="shares needs a number for '2', which jobs of the log have"):
        starts(workload(ROWS, 4, **COLUMNS), Pipeline(order=SlurmMultifactor(shares={"1": 1})))
    with pytest.raises(UsageError, match="'equal' or 'log', or numbers by name, found 'mine'"):
        starts(workload(ROWS, 4, **COLUMNS), Pipeline(order=SlurmMultifactor(shares="mine")))


def slurm_of_two_qos(**parameters: Any) -> dict[int, float]:
    """Return the priorities at 300, when jobs 3 (partition big, QOS high) and 4 (small, normal) wait."""
    from hpcsimkit import Workload

    submit, run, requested, nodes = zip(*ROWS, strict=True)
    columns = {"submit_time": submit, "run_time": run, "requested_time": requested, "nodes": nodes}
    owners = {"user": [1, 2, 1, 2], "queue": [0, 0, 1, 0], "qos": [0, 0, 1, 0]}
    labels = {"queue": ("small", "big"), "qos": ("normal", "high")}
    log = Workload({**columns, **owners}, machine_size=4, labels=labels)
    Spying.seen.clear()
    starts(log, Pipeline(order=Spying(age=0, fair_share=0, attribute=0, **parameters)))
    return Spying.seen[300]


@pytest.mark.parametrize(
    ("parameters", "third", "fourth"),
    [
        ({}, 1000, 1000),  # nothing is known of any partition (1) or QOS (0)
        ({"qos_priority": {"high": 10, "normal": 4}}, 1000 + 1000, 1000 + 400),
        ({"qos_priority": {"high": 10, "normal": 0, "low": 40}, "partition": 0}, 250, 0),  # nobody is low
        ({"partition_priority": {"big": 1, "small": 4}}, 250, 1000),
        ({"partition_priority": {"big": 0.5, "small": 0}, "qos": 5}, 500, 0),  # others would have 1
        ({"shares": "log"}, 400, 1000),  # big has 400 of 1400 node-seconds, small 1000
        ({"shares": "log", "partition_priority": {"big": 2, "small": 1}}, 1000, 500),
        ({"qos_priority": {"high": 0, "normal": 0}, "partition": 0}, 0, 0),
    ],
)
def test_priorities_of_partitions_and_qos(parameters: Any, third: float, fourth: float) -> None:
    assert slurm_of_two_qos(**parameters) == pytest.approx({3: third, 4: fourth})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"qos_priority": {"hihg": 2, "normal": 1}},
            "qos_priority needs a number for 'high', which jobs of the log have",
        ),
        (
            {"partition_priority": {}},
            "partition_priority needs a number for 'small', which jobs of the log have",
        ),
        ({"qos_priority": {"high": -1}}, "qos_priority of 'high' needs a number of at least 0, found -1"),
        ({"qos_priority": 7}, "qos_priority needs numbers by name, found 7"),
        ({"qos": -1}, "qos needs a number of at least 0, found -1"),
    ],
)
def test_priorities_that_make_no_sense(parameters: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^slurm: {message}$"):
        slurm_of_two_qos(**parameters)


def test_slurm_of_jobs_that_take_no_time_and_users_unknown() -> None:
    """No node-seconds at all: nothing to divide by, and still a schedule."""
    assert starts(workload([(0, 0, 1, 2)] * 3, 2), "slurm+easy") == [0, 0, 0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("wfp3", [0, 12, 10]),  # at 10: B (9/20)^3 x 1 = 0.09, C (8/2)^3 x 1 = 64
        ("unicef", [0, 12, 10]),  # B 9/20, C 8/2
        ("xfactor", [0, 12, 10]),  # B 29/20, C 10/2
        ("fcfs", [0, 10, 30]),
        ("lcfs", [0, 12, 10]),
        ("f1", [0, 10, 30]),  # B 1.3 + 0, C 0.3 + 870 x 0.301: older wins by far
    ],
)
def test_short_job_that_came_later(name: str, expected: list[int]) -> None:
    """One node: A until 10, then B (20 s, came at 1) or C (2 s, came at 2)."""
    assert starts(workload([(0, 10, 10, 1), (1, 20, 20, 1), (2, 2, 2, 1)], 1), name) == expected


def test_scores_change_as_jobs_wait() -> None:
    """XFactor, one node. At 10: B 1 + 9/20, C 1 + 1/4: B goes. Had A ended at 16: B 1 + 15/20, C 1 + 7/4: C."""
    assert starts(workload([(0, 10, 10, 1), (1, 20, 20, 1), (9, 4, 4, 1)], 1), "xfactor") == [0, 10, 30]
    assert starts(workload([(0, 16, 16, 1), (1, 20, 20, 1), (9, 4, 4, 1)], 1), "xfactor") == [0, 20, 16]


def test_on_machines_sizes_are_what_is_asked_for_of_the_first_resource() -> None:
    from hpcsimkit import Machines, Pipeline, Simulation, Workload
    from hpcsimkit.jobs.queue import JobColumns
    from hpcsimkit.policies import LAF, SAF, SQF, WFP3, LargestFirst

    columns = {
        "submit_time": [0, 0, 0], "run_time": [10, 10, 10], "nodes": [1, 4, 1], "cpus": [32, 2, 20],
        "spread": [0, 0, 1], "gpus": [0, 1, 0],
    }  # fmt: skip
    workload = Workload(columns, resources=("cpus", "gpus"))
    assert workload.size.tolist() == [job.size for job in workload.jobs] == [32, 8, 20]
    assert [job.area for job in workload.jobs] == [320, 80, 200]
    for order, expected in (
        (SQF(), [2, 3, 1]), (SAF(), [2, 3, 1]), (LargestFirst(), [1, 3, 2]), (LAF(), [1, 3, 2]),
    ):  # fmt: skip
        ranked = sorted(workload.jobs, key=order.key)
        assert [job.id for job in ranked] == expected
    simulation = Simulation(workload, Pipeline(order=WFP3()), Machines.of(4, cpus=40, gpus=2))
    simulation.run()
    assert JobColumns(simulation.system, np.array([2, 0])).size.tolist() == [20, 32]


ASKED = [(2, 4, 0), (1, 8, 0), (4, 8, 1), (3, 0, 0)]
"""Nodes, CPUs and `spread` of jobs that ask for 8, 8, 8 and 0 CPUs in all."""


@pytest.mark.parametrize(
    "order",
    [SAF(), LAF(), SQF(), LargestFirst(), SRF(), F1(), F2(), F3(), F4(), OracleSAF(), WFP3(), UNICEF(),
     SlurmMultifactor(size=1000)],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize(("nodes", "cpus", "spread"), ASKED)
def test_nodes_of_a_formula_are_processors_on_machines_too(
    order: Order, nodes: int, cpus: int, spread: int
) -> None:
    """A job of so many CPUs scores as a job of so many processors of the Standard Workload Format.

    What a reader of the SWF would never give, a job without any, scores 0 where a formula allows for it.
    """
    from hpcsimkit import Machines, Simulation, Workload

    processors = cpus if spread else nodes * cpus
    times = {"submit_time": [0, 50], "run_time": [100, 50], "requested_time": [100, 80], "user": [1, 2]}
    request = {"nodes": [1, nodes], "cpus": [8, cpus], "gpus": [0, 1], "spread": [0, spread]}
    log = Workload({**times, **request}, resources=("cpus", "gpus"))
    assert log.size.tolist() == [8, processors]
    found = score_at_90(Simulation(log, Pipeline(order=order), Machines.of(4, cpus=8, gpus=4)))
    by_hand = {
        "SAF": 80 * processors, "LAF": -80 * processors, "SQF": processors, "LargestFirst": -processors,
        "SRF": 80 / max(processors, 1), "F1": np.log10(80) * processors + 870 * np.log10(50),
        "F2": 80**0.5 * processors + 25_600 * np.log10(50), "F3": 80 * processors + 6_860_000 * np.log10(50),
        "F4": 80 * processors**0.5 + 530_000 * np.log10(50), "OracleSAF": 50 * processors,
        "WFP3": -((40 / 80) ** 3) * processors, "UNICEF": -40 / (np.log2(max(processors, 2)) * 80),
    }  # fmt: skip
    if processors:
        plain = Workload({**times, "nodes": [8, processors]}, machine_size=32)
        assert found == pytest.approx(score_at_90(Simulation(plain, Pipeline(order=order))))
    if type(order).__name__ in by_hand:
        assert found == pytest.approx(by_hand[type(order).__name__])


@pytest.mark.parametrize("seed", range(5))
def test_slurm_without_parameters_reads_no_run_times(seed: int) -> None:
    """The queue behind a job on all nodes, at the end of that job, is sorted alike for any run times."""
    from hpcsimkit import External, Simulation, Workload

    rng = np.random.default_rng(seed)
    columns = {
        "submit_time": np.arange(30), "requested_time": np.r_[900, rng.integers(300, 900, 29)],
        "nodes": np.r_[30, np.ones(29)], "user": rng.integers(0, 4, 30), "queue": rng.integers(0, 3, 30),
    }  # fmt: skip

    def queue_at_100(run_time: Any, **parameters: Any) -> list[int]:
        log = Workload({**columns, "run_time": run_time}, machine_size=30)
        simulation = Simulation(log, Pipeline(order=External(SlurmMultifactor(**parameters))))
        while (decision := simulation.next_decision()) is not None and decision.system.now < 100:
            simulation.answer(decision.default)
        assert decision is not None
        return [job.index for job in decision.options]

    one, other = (np.r_[100, rng.integers(1, 5000, 29)] for _ in range(2))
    assert len(queue_at_100(one)) == 29
    assert queue_at_100(one) == queue_at_100(other)
    assert queue_at_100(one, shares="log") != queue_at_100(other, shares="log")


def score_at_90(simulation: Any) -> float:
    """Return what the order of a simulation gives the second job at 90 s, while the first runs."""
    from hpcsimkit.jobs.queue import JobColumns

    simulation.run()
    system, order = simulation.system, simulation.system.order
    system.now = 90
    if not order.dynamic:
        return float(order.key(system.jobs[1]))
    return float(order.scores(JobColumns(system, np.array([1])), 90)[0])


@pytest.mark.parametrize("name", sorted(CATALOGUE["order"]))
def test_a_queue_without_jobs_can_be_read(name: str) -> None:
    """Observers read it when the last job has started; rewards do."""
    seen = []

    class Reads(Observer):
        def on_start(self, job: Job, allocation: Any, system: System) -> None:
            seen.append([*system.queue])
            assert system.queue.entries() == [] and system.queue.oldest(3) == []

    jobs = workload([(0, 5, 5, 1)], 2, user=[1])
    Simulation(jobs, Pipeline(make(name).order), observers=[Reads()]).run()
    assert seen == [[]]


def test_the_multifactor_priority_of_schedinspector_by_hand() -> None:
    """Half a day of the recorded wait counts as much as the whole machine: 0 + 750, 1000 + 0, 1000 + 750 of 4."""
    columns = {"submit_time": [0] * 3, "run_time": [1] * 3, "nodes": [1, 4, 1]}
    jobs = Workload({**columns, "recorded_wait_time": [0, 43_200, 43_200]}, machine_size=4)
    for header, size in (({}, 4), ({"MaxProcs": "8"}, 8)):
        order, system = (
            RecordedMultifactor(),
            SimpleNamespace(workload=replace(jobs, header=header), cluster=Nodes(4)),
        )
        order.reset(system)  # type: ignore[arg-type]
        keys = [order.key(job) for job in jobs.jobs]
        assert keys == [-1000 * (wait + 1 - nodes / size) for wait, nodes in ((0, 1), (1, 4), (1, 1))]
