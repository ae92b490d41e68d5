"""The order with a fallback: when it changes, what its reviews know, and what they do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from hpcsimkit import Machines, Pipeline, Simulation, check_policy, make
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.workloads import random_workloads
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.policy import FCFS, Order
from hpcsimkit.policies import EASY, SJF, XFactor
from hpcsimkit.policies.portfolio import guarded
from hpcsimkit.policies.portfolio.guarded import WEEK, Guarded
from hpcsimkit.policies.portfolio.trial import Trial
from hpcsimkit.workloads import read_swf
from tests.kernel.helpers import Row, workload

WRONG = range(4, 8)
"""Batches in which requests mislead."""


def batches(count: int = 12, wrong: range = WRONG) -> Workload:
    """A batch every 1000 s on one node: 100 s, then requests of 50 and 10 s, which are right or the wrong way round."""
    rows: list[Row] = []
    for batch in range(count):
        begin, (first, second) = 1000 * batch, (10, 50) if batch in wrong else (50, 10)
        rows += [(begin, 100, 100, 1), (begin + 1, first, 50, 1), (begin + 2, second, 10, 1)]
    return workload(rows, 1)


def small(**options: Any) -> Guarded:
    """A guard that looks back 1000 s, every 1000 s."""
    return Guarded(**{"order": SJF(), "weeks": 1000 / WEEK, "every": 1000, **options})


def simulated(order: Order, jobs: Workload, cluster: Any = None, **options: Any) -> tuple[list[int], Any]:
    """Return the start times, and the changes of the order."""
    simulation = Simulation(jobs, Pipeline(order, backfiller=EASY(), **options), cluster)
    starts = simulation.run().start_time.tolist()
    return starts, getattr(simulation.system.order, "followed", None)


# --- changes by hand ---------------------------------------------------------------------------------------


def test_leaves_the_order_while_it_is_worse() -> None:
    """Reviews are when the first job of a batch has to wait: that of batch 5 sees batch 4, that of batch 9 batch 8."""
    jobs = batches()
    starts, followed = simulated(small(), jobs)
    assert followed == [(5001, "fallback"), (9001, "order")]
    by_order, by_fallback = (simulated(order, jobs)[0] for order in (SJF(), FCFS()))
    at = slice(3 * 5, 3 * 9)
    assert starts == by_order[: at.start] + by_fallback[at] + by_order[at.stop :]
    assert starts != by_order


def test_stays_within_the_margin() -> None:
    """Slowdowns of a wrong batch are 2.96 and 15.9 by the order, 10.9 and 3.16 by the fallback.

    With the two jobs of the next batch until the review, 1 each, the means are 5.215 and 4.015: 23 % lower.
    """
    assert simulated(small(margin=0.22), batches())[1][0] == (5001, "fallback")
    assert simulated(small(margin=0.24), batches())[1] == []


def test_waits_count_until_now() -> None:
    """Jobs of 100 and 10 s wait for one that ends at 50 s; until 120 s one of them has not started."""
    jobs = workload([(0, 50, 50, 1), (1, 100, 100, 1), (2, 10, 10, 1)], 1)
    trial = Trial(jobs, Begun(5, {0: 0}), Nodes(1), np.array([1, 2]), Pipeline(), until=120)
    assert trial.mean(FCFS(), "wait") == (49 + 118) / 2
    assert trial.mean(SJF(), "wait") == (59 + 48) / 2
    assert trial.mean(FCFS(), "bounded_slowdown") == (149 / 100 + 128 / 10) / 2
    assert trial._replace(until=None).mean(FCFS(), "wait") == (49 + 148) / 2


def test_no_review_before_the_weeks_are_over() -> None:
    jobs = batches(wrong=range(12))
    assert simulated(small(), jobs)[1] == [(1001, "fallback")]
    assert simulated(small(weeks=2500 / WEEK), jobs)[1] == [(3001, "fallback")]
    assert simulated(small(weeks=2), jobs)[1] == []


# --- what reviews know -------------------------------------------------------------------------------------

CHECKED = Guarded(SJF(), XFactor(), weeks=30 / WEEK, every=15, margin=0.0)


def causal() -> bool:
    """Whether the review at 600 s ignores how long the job will take that it lets go first at 1000 s.

    FCFS has let it wait behind one of 900 s. By its request of 10 s, SJF would have been better, and is
    followed. If it were known that it takes 10 000 s, FCFS would have been the better one until then.
    """

    def starts(run_time: int) -> list[int]:
        rows: list[Row] = [(0, 100, 100, 1), (1, 900, 900, 1), (2, 20, 20, 1), (3, run_time, 10, 1)]
        jobs = workload([*rows, (600, 20, 20, 1)], 1)
        return simulated(Guarded(FCFS(), SJF(), weeks=500 / WEEK, every=500), jobs)[0]

    assert starts(10) == [0, 100, 1010, 1000, 1030]
    return starts(10_000) == [0, 100, 11_000, 1000, 11_020]


def test_reviews_do_not_depend_on_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same check sees a review that reads run times of jobs that have not ended."""
    assert causal()

    def clairvoyant(self: Any, rows: list[int], begun: Begun) -> Iterator[int]:
        yield from (self._system.jobs[row].run_time for row in rows)

    monkeypatch.setattr(guarded._Memory, "_run_times", clairvoyant)
    assert not causal()


def crowds(cluster: Any = None) -> list[Workload]:
    return random_workloads(np.random.default_rng(3), jobs=25, cluster=cluster)


def test_is_a_correct_policy() -> None:
    check_policy(Pipeline(CHECKED, backfiller=EASY()), workloads=crowds()[4:7])


def test_run_times_of_a_review_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 600 s: running, expected to end at 900 s; running longer than its request; ended; three that wait."""
    trials: list[Trial] = []
    simulate = Trial.mean
    monkeypatch.setattr(Trial, "mean", lambda self, *given: trials.append(self) or simulate(self, *given))
    rows: list[Row] = [
        (0, 2000, 900, 1),
        (1, 2000, 20, 1),
        (2, 30, 60, 1),
        (3, 5, 70, 4),
        (600, 5, 33, 4),
        (600, 5, 1, 4),
    ]
    simulated(Guarded(SJF(), weeks=500 / WEEK, every=500), workload(rows, 4))
    assert trials[0].workload.run_time.tolist() == [900, 600, 30, 70, 33, 1]
    assert trials[0].begun.started == {0: 0, 1: 1, 2: 2}
    assert trials[0].judged.tolist() == [3, 4, 5]


def test_a_job_that_ended_at_once_at_time_0_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs of 0 s wait for their first pass at 0 s, which is a review; the next one knows their run time."""
    trials: list[Trial] = []
    simulate = Trial.mean
    monkeypatch.setattr(Trial, "mean", lambda self, *given: trials.append(self) or simulate(self, *given))
    rows: list[Row] = [(0, 0, 50, 1), (0, 700, 700, 1), (600, 5, 33, 2)]
    simulated(Guarded(SJF(), weeks=500 / WEEK, every=500), workload(rows, 2))
    assert trials[0].workload.run_time.tolist() == [0, 700, 33]


class BySeen(Order):
    """Shortest predicted first; writes down the predictions of each job, in the run and in simulations of it."""

    seen: ClassVar[dict[int, set[float]]] = {}

    def reset(self, system: Any) -> None:
        self.prediction = system.estimator.prediction

    def key(self, job: Job) -> float:
        mean = self.prediction(job).mean
        self.seen.setdefault(job.id, set()).add(mean)
        return mean


def test_simulations_predict_what_the_run_predicted() -> None:
    jobs = batches()
    BySeen.seen.clear()
    estimates = make("history").estimator
    jobs = Workload({**jobs.columns, "user": [1] * len(jobs)}, machine_size=1)
    simulated(small(order=BySeen()), jobs, estimates=estimates)
    assert {len(means) for means in BySeen.seen.values()} == {1}
    assert sorted(BySeen.seen) == jobs.id.tolist()[1:], "those that started at once are in simulations, too"
    assert len(set.union(*BySeen.seen.values())) > 9, "they changed as jobs ended"


@pytest.mark.parametrize("backfilling", ["none", "conservative", "easy-sjf"])
def test_reviews_use_the_backfilling_of_the_run(backfilling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    policies: list[Pipeline] = []
    simulate = Trial.mean
    monkeypatch.setattr(
        Trial, "mean", lambda self, *given: policies.append(self.policy) or simulate(self, *given)
    )
    name = f"guarded(sjf,weeks={1000 / WEEK},every=1000)+{backfilling}"
    Simulation(batches(), make(name)).run()
    assert len(policies) == 22
    assert {repr(policy.backfiller) for policy in policies} == {repr(make(name).backfiller)}


# --- other clusters and runs -------------------------------------------------------------------------------


def test_on_machines_partitions_and_in_begun_runs() -> None:
    jobs = batches()
    alone = simulated(small(), jobs)
    assert simulated(small(), jobs, Machines.of(1, cpus=1)) == alone
    machines = Machines.of(3, cpus=4, gpus=1)
    check_policy(Pipeline(CHECKED, backfiller=EASY()), workloads=crowds(machines)[1:3], cluster=machines)
    parts = Partitions([Partition("a", nodes=1, default=True), Partition("b", nodes=2)])
    assert simulated(small(), jobs, parts)[0] == alone[0]
    later = jobs.select(slice(9, None))
    begun = Simulation(later, Pipeline(small(), backfiller=EASY()), begun=Begun(3001, {0: 3000}))
    assert begun.run().start_time.tolist() == alone[0][9:]


@pytest.mark.parametrize("name", ["guarded", "looking-ahead"])
def test_a_job_on_machines_of_two_partitions_is_one_line(name: str) -> None:
    """Job 1 of `all` runs on both machines, one of which is that of `x`, where two jobs wait."""
    columns = {"submit_time": [0, 1, 2], "run_time": [9] * 3, "nodes": [2, 1, 1], "cpus": [4] * 3}
    jobs = Workload(
        {**columns, "partition": [1, 0, 0]}, labels={"partition": ("x", "all")}, resources=("cpus",)
    )
    parts = Partitions([Partition("x", machines=["x1"]), Partition("all")], Machines.of(2, "x", cpus=4))
    with pytest.raises(
        UsageError, match=f"{name}: job 1 of another partition runs on shared machines and on"
    ):
        Simulation(jobs, make(f"{name}+easy"), parts).run()


# --- names and misuse --------------------------------------------------------------------------------------


def test_by_name() -> None:
    found = make("guarded(bounded(scale=20, size=-0.5), fallback=xfactor, weeks=1)+easy").order
    assert repr(found) == "Guarded(order=Bounded(scale=20, size=-0.5), fallback=XFactor(), weeks=1)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("guarded(easy)", r"'guarded\(easy\)': an order is needed, found 'easy'"),
        ("guarded(fallback=sff)", r"'guarded\(fallback=sff\)': unknown policy 'sff'; nearest: srf"),
        ("guarded(bounded(sale=3))", r"got an unexpected keyword argument 'sale'; parameters: scale, bound"),
        ("guarded('os:system')", "'os:system' is code that is not the kit's own"),
        ("guarded(weeks=sjf())", r"weeks is no order, found 'sjf\(\)'"),
        ("guarded(weeks=f(2))", "parameters not understood"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make(name)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "sjf"}, "guarded: order needs an order, found 'sjf'"),
        ({"fallback": EASY()}, r"guarded: fallback needs an order, found EASY\(\)"),
        ({"weeks": 0}, "guarded: weeks needs a number above 0, found 0"),
        ({"every": 0.5}, "guarded: every needs a whole number of at least 1, found 0.5"),
        ({"margin": 1}, "guarded: margin needs a number of at least 0 and below 1, found 1"),
        ({"objective": "speed"}, "guarded: objective needs 'bounded_slowdown' or 'wait', found 'speed'"),
        ({"order": Guarded()}, "guarded: it needs to be the order of the queue"),
    ],
)
def test_wrong_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        simulated(Guarded(**options), batches(1))


# --- a real log --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_bad_order_is_left_on_a_log(shared: Path) -> None:
    """Largest area first is left at the first review, and FCFS is not."""
    jobs = read_swf(shared / "traces/KTH-SP2-1996-2.1-cln.swf.gz").fitting(100).first(4000)
    name = "guarded({},fallback={},weeks=1)+easy+history"
    bad = Simulation(jobs, make(name.format("laf", "fcfs")))
    worst, guard, fallback = (
        float(run.run().bounded_slowdown().mean())
        for run in (Simulation(jobs, make("laf+easy")), bad, Simulation(jobs, make("fcfs+easy")))
    )
    assert bad.system.order.followed[0][1] == "fallback"
    assert abs(guard - fallback) < abs(guard - worst)
