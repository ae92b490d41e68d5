"""Misuse that would otherwise run for ever, or fail somewhere far away."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

import numpy as np
import pytest

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.errors import PolicyError, ScheduleError, StalledError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Estimator, Inspector, Order, Policy
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import FCFS, Conservative, LastTwo, RandomOrder

ONE_JOB = Workload({"submit_time": [5], "run_time": [3], "nodes": [1]}, machine_size=2)


def test_a_policy_that_only_asks_to_be_woken_is_stalled() -> None:
    class Sleepy(Policy):
        def schedule(self, system: System) -> None:
            system.wake(system.now + 1)

    with pytest.raises(StalledError, match=r"stalled at t=\d+ s: 1 jobs wait"):
        Simulation(ONE_JOB, Sleepy()).run()


def test_a_policy_may_wait_for_a_time_of_day() -> None:
    class Noon(Policy):
        def schedule(self, system: System) -> None:
            if system.now < 43_200:
                system.wake(min(system.now + 600, 43_200))
            else:
                system.start(system.queue.first())

    assert Simulation(ONE_JOB, Noon()).run().start_time.tolist() == [43_200]


def test_only_decisions_may_be_yielded() -> None:
    class Chatty(Policy):
        def schedule(self, system: System) -> Any:
            yield 17

    with pytest.raises(PolicyError, match="may yield decisions only, found 17"):
        Simulation(ONE_JOB, Chatty()).run()


def test_an_order_that_a_policy_brings_along_is_reset() -> None:
    class FirstOfARandomQueue(Policy):
        @property
        def queue_order(self) -> Order:
            return RandomOrder()

        def schedule(self, system: System) -> None:
            system.start(system.queue.first())

    assert Simulation(ONE_JOB, FirstOfARandomQueue()).run().start_time.tolist() == [5]


def test_an_observer_that_fails_at_the_end_is_one_line() -> None:
    class Fails(Observer):
        def on_finish(self, system: System) -> None:
            raise RuntimeError("disk\non fire")

    with pytest.raises(PolicyError, match=r"RuntimeError: disk on fire \(.*test_misuse\.py:\d+\)"):
        Simulation(ONE_JOB, Pipeline(), observers=[Fails()]).run()


@pytest.mark.parametrize("name", ["easy-k(0)", "easy-k(-1)", "easy-k(x)", "easy-noise(-1)", "easy-noise(x)"])
def test_numbers_out_of_range(name: str) -> None:
    with pytest.raises(UsageError, match=r"found (0|-1|'x')"):
        Simulation(ONE_JOB, make(name)).run()


def test_spaces_between_parts() -> None:
    assert make("sjf + easy++") == make("sjf+easy++")


def test_what_is_no_workload() -> None:
    with pytest.raises(UsageError, match="workload needs a Workload, found None"):
        Simulation(None, Pipeline())  # type: ignore[arg-type]


def test_numbers_of_numpy_are_numbers_of_nodes() -> None:
    assert Nodes(np.int64(4)) == Nodes(4)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="found True"):
        Nodes(True)


@pytest.mark.parametrize("name", ["slurm(max_age=0)", "slurm(age=-5)", "slurm(shares=mine)"])
def test_parameters_of_slurm(name: str) -> None:
    with pytest.raises(UsageError, match=r"slurm: .* needs .*, found"):
        Simulation(ONE_JOB, make(name)).run()


def test_a_copy_of_a_job_asks_for_what_the_job_asked_for() -> None:
    class Cheats(Policy):
        def schedule(self, system: System) -> None:
            for job in system.queue:
                system.start(job._replace(nodes=1, run_time=1))

    three = Workload({"submit_time": [0, 0], "run_time": [9, 9], "nodes": [2, 2]}, machine_size=3)
    with pytest.raises(ScheduleError, match="needs 2 nodes; 1 are free"):
        Simulation(three, Cheats()).run()


def test_estimates_are_whole_seconds() -> None:
    class Stretched(Estimator):
        def estimate(self, job: Job) -> int:
            return job.requested_time * 1.3  # type: ignore[return-value]

    with pytest.raises(
        ScheduleError, match=r"Stretched\(\) for job 1 .* whole number of seconds.*found 3\.9"
    ):
        Simulation(ONE_JOB, Pipeline(estimates=Stretched())).run()


@pytest.mark.parametrize("backfiller", [None, EASY(), Conservative()])
def test_an_inspector_may_reject_for_good(backfiller: Any) -> None:
    """B is rejected when it is its turn; A and C run as if it had never come."""

    class RejectsTheSecond(Inspector):
        def accept(self, job: Job, system: System) -> bool:
            if job.id == 2:
                system.reject(job)
            return job.id != 2

    jobs = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [2, 2, 2]}, machine_size=2)
    result = Simulation(jobs, Pipeline(inspector=RejectsTheSecond(), backfiller=backfiller)).run()
    assert result.start_time.tolist() == [0, -1, 9]


def test_a_run_that_failed_stays_failed() -> None:
    class FailsOnce(Policy):
        failed: ClassVar[list[int]] = []

        def schedule(self, system: System) -> None:
            if not self.failed:
                self.failed.append(1)
                raise ValueError("once")
            system.start(system.queue.first())

    simulation = Simulation(ONE_JOB, FailsOnce())
    for again in (simulation.run, simulation.run, simulation.result):
        with pytest.raises(PolicyError, match="ValueError: once"):
            again()


def test_wakes_asked_for_long_before_are_no_stall() -> None:
    class Anxious(Policy):
        def schedule(self, system: System) -> None:
            for second in range(1, 12_000):
                system.wake(system.now + second)
            system.start(system.queue.first())

    assert Simulation(ONE_JOB, Anxious()).run().start_time.tolist() == [5]


def test_garbage_is_collected_between_decisions() -> None:
    """Cyclic objects made by whoever answers, an agent say, must not pile up."""

    class Cycle:
        def __init__(self) -> None:
            self.me = self

    columns = {"submit_time": range(3000), "run_time": [1] * 3000, "nodes": [1] * 3000}
    simulation = Simulation(Workload(columns, machine_size=2), Pipeline(order=External()))
    alive: weakref.WeakSet[Cycle] = weakref.WeakSet()
    while simulation.next_decision() is not None:
        alive.add(Cycle())
        simulation.answer_position(0)
    assert len(alive) < 2500


def test_parameters_that_are_arrays_are_told_apart() -> None:
    class Weighted(Order):
        def __init__(self, weights: Any = None) -> None:
            self.weights = weights

        def key(self, job: Job) -> float:
            return float(self.weights[job.index])

    one, other = np.zeros(2000), np.zeros(2000)
    other[1000] = 1.0
    assert Weighted(one) == Weighted(one.copy()) != Weighted(other)
    assert repr(Weighted()).endswith("Weighted()")
    assert Simulation(ONE_JOB, Pipeline(order=Weighted(one))).run().start_time.tolist() == [5]


def test_two_newcomers_in_a_row_are_held_against_the_same_shadow_time() -> None:
    """B is reserved [10, 15); C (20 s) may not start at 2, nor D (7 s) at 5, two seconds too long by then.

    ::

        ..........BBBBB
        AAAAAAAAAABBBBBDDDDDDD
        AAAAAAAAAABBBBBCCCCCCCCCCCCCCCCCCCC
        AAAAAAAAAABBBBB
    """
    rows = [(0, 10, 3), (1, 5, 4), (2, 20, 1), (5, 7, 1)]
    submit, run, nodes = zip(*rows, strict=True)
    jobs = Workload({"submit_time": submit, "run_time": run, "nodes": nodes}, machine_size=4)
    assert Simulation(jobs, make("fcfs+easy")).run().start_time.tolist() == [0, 10, 15, 15]


def test_all_estimates_outlived_at_one_instant_are_corrected() -> None:
    """Two jobs have outlived the 5 s predicted for each: 5 + 60 s is next for both."""
    estimator = LastTwo()
    jobs = Workload.from_jobs([Job(0, 1, 0, 90, 100, 1), Job(0, 2, 0, 90, 100, 1)], machine_size=2)
    system = System(jobs, Nodes(2), FCFS(), estimator, seed=0)
    estimator.reset(system)
    estimator._predictions = {0: Prediction.certain(5), 1: Prediction.certain(5)}
    for job in jobs.jobs:
        system.submit(job)
        system.start(job)
    system.now = 6
    system.correct_estimates()
    assert [entry[0] for entry in system.running.entries] == [65, 65]


def test_corrections_of_a_long_job() -> None:
    """1 minute, and then 1, 5, 15, 30 minutes and an hour more: 2, 7, 22, 52, 112 minutes."""
    estimator, job = LastTwo(), Job(0, 1, 0, 9_000, 100_000, 1)
    estimator._predictions = {0: Prediction.certain(60)}
    found = [estimator.correct(job, 60 * minutes) // 60 for minutes in (1, 2, 7, 22, 52)]
    assert found == [2, 7, 22, 52, 112]


def test_an_order_with_a_misspelt_method_is_no_order() -> None:
    class Misspelt(Order):
        def score(self, jobs: Any, now: int) -> Any:
            return jobs.nodes

    with pytest.raises(UsageError, match=r"Misspelt needs a method key\(job\), formula\(job, now\) or sc"):
        Simulation(ONE_JOB, Pipeline(order=Misspelt()))
