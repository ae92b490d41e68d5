"""Predictions that follow what is known by now. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Job, Simulation, check_policy, make
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, Aged, GuardedWait, History, Live, Pipeline, Predictor, Weighted
from hpcsimkit.workloads import default_workload
from tests.compiled.test_equality import workloads
from tests.kernel.helpers import Row, run, workload


class Seen(Observer):
    """The prediction of one job at each event."""

    def __init__(self, row: int) -> None:
        self.row = row
        self.means: list[tuple[int, float]] = []

    def note(self, job: Job, system: System) -> None:
        watched = system.jobs[self.row]
        if watched in system.queue:
            self.means.append((system.now, round(system.estimator.prediction(watched).mean, 3)))

    on_submit = on_end = note

    def on_start(self, job: Job, allocation: object, system: System) -> None:
        self.note(job, system)


class MeanOfEnded(Predictor):
    """The mean of what has ended, and of what runs."""

    def reset(self, system: System) -> None:
        self.ended: list[int] = []

    def observe(self, job: Job, took: int) -> None:
        self.ended.append(took)

    def predict(self, job: Job) -> Prediction:
        return self.predict_beside(job, ())

    def predict_beside(self, job: Job, running: object) -> Prediction:
        took = [*self.ended, *(elapsed for _, elapsed in running)]  # type: ignore[attr-defined]
        return Prediction.certain(sum(took) / len(took) if took else float(job.requested_time))


def test_ends_and_running_jobs_of_the_user_count() -> None:
    """User 1 runs from 0 to 100 s; its second job is predicted when asked for: once a minute, and at the end."""
    rows: list[Row] = [(0, 100, 900, 2), (1, 50, 900, 2), (2, 9, 900, 2)]
    rows += [(at, 0, 1, 1) for at in (30, 89, 90, 110)]
    seen = Seen(2)
    jobs = workload(rows, 2, user=[1, 3, 1, 2, 2, 2, 2])
    run(jobs, Pipeline(FCFS(), estimates=Live(MeanOfEnded())), observers=[seen])
    means = dict(seen.means)
    assert [means[at] for at in (2, 30, 89, 90, 110)] == [2.0, 30.0, 30.0, 90.0, 100.0]


def test_the_prediction_on_arrival_remains_without_events_of_the_user() -> None:
    rows: list[Row] = [(0, 100, 900, 2), (1, 50, 900, 2), *((at, 0, 1, 1) for at in (30, 70))]
    seen = Seen(1)
    run(
        workload(rows, 2, user=[1, 2, 3, 3]),
        Pipeline(FCFS(), estimates=Live(MeanOfEnded())),
        observers=[seen],
    )
    assert {mean for _, mean in seen.means[:-1]} == {900.0}


def test_a_history_counts_what_runs_longer_than_predicted() -> None:
    """With one ended job of 10 s and half of the weight for everyone's: 40 s of running weigh as much as 10 s."""
    job = Job(0, 1, 0, run_time=5, requested_time=100, nodes=1, user=7)
    history = History(decay=1.0)
    history.reset(None)  # type: ignore[arg-type]
    history.observe(job, 10)
    alone = history.predict(job).mean
    assert history.predict_beside(job, [(job, 9)]).mean == alone  # not longer than the 10 s
    once = history.predict_beside(job, [(job, 40)])
    other = History(decay=1.0)
    other.reset(None)  # type: ignore[arg-type]
    for took in (10, 40):
        other.observe(job, took)
    other._everyone = history._everyone
    assert once.mean == pytest.approx(other.predict(job).mean)
    assert history.predict(job).mean == alone  # nothing was learned


@given(st.integers(0, 2**32))
def test_predictions_of_a_users_jobs_are_those_of_each(seed: int) -> None:
    """Also of requests without a history, for which what runs counts by the prediction for everyone."""
    numbers = np.random.default_rng(seed)

    def drawn(row: int) -> Job:
        requested, nodes = int(numbers.choice([30, 100, 400])), int(numbers.integers(1, 3))
        return Job(row, row, 0, run_time=5, requested_time=requested, nodes=nodes, user=7)

    history = History()
    history.reset(None)  # type: ignore[arg-type]
    for row in range(numbers.integers(0, 12)):
        history.observe(drawn(row)._replace(user=int(numbers.choice([7, 8]))), int(numbers.integers(1, 90)))
    running = [(drawn(row), int(numbers.integers(0, 300))) for row in range(numbers.integers(0, 4))]
    jobs = [drawn(row) for row in range(8)]
    assert history.predict_each(jobs, running) == [history.predict_beside(job, running) for job in jobs]


def test_predictions_of_several_users_at_an_instant_are_those_of_each() -> None:
    """What runs of one user says nothing about the jobs of another."""
    asked = []

    class OneByOne(Live):
        def revisions(self, rows: Any) -> Any:
            due = rows[self._due[rows] <= self._system.now]
            asked.append(len({self._system.jobs[row].user for row in due.tolist()}))
            for row in due.tolist():
                self.prediction(self._system.jobs[row])
            return self._revision[rows]

    log = default_workload(np.random.default_rng(1), nodes=64, jobs=300, load=1.1)
    log = replace(log, columns={**log.columns, "user": np.arange(300) % 5})
    together, alone = (
        Simulation(log, Pipeline(Aged(mean=1), backfiller=EASY(), estimates=each)).run()
        for each in (Live(), OneByOne())
    )
    assert together.start_time.tolist() == alone.start_time.tolist()
    assert sum(users > 1 for users in asked) > 20


def test_jobs_of_another_request_count_only_as_the_users() -> None:
    job = Job(0, 1, 0, run_time=5, requested_time=100, nodes=1, user=7)
    history = History()
    history.reset(None)  # type: ignore[arg-type]
    for _ in range(5):
        history.observe(job, 10)
    same = history.predict_beside(job, [(job, 90)]).mean
    other = history.predict_beside(job, [(job._replace(requested_time=200), 90)]).mean
    assert history.predict(job).mean < other < same


def test_a_stopped_test_says_that_the_job_is_longer() -> None:
    """It ran for 10 s in its test: twice that, as nothing longer is predicted."""
    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (3, 300, 500, 1), (20, 0, 1, 1)]
    seen = Seen(2)

    class Short(Predictor):
        def predict(self, job: Job) -> Prediction:
            return Prediction.certain(8.0)

    policy = make("fcfs+easy+tests(seconds=10)")
    policy.estimates = Live(Short())  # type: ignore[attr-defined]
    run(workload(rows, 4, user=[1, 2, 3, 4]), policy, observers=[seen])
    means = dict(seen.means)
    assert means[20] == 20.0


def test_beyond_is_a_conditional_distribution() -> None:
    prediction = Prediction(90.0, 30.0, (5.0, 10.0, 30.0, 80.0, 120.0, 150.0, 200.0))
    assert prediction.beyond(0).quantiles == prediction.quantiles
    assert prediction.beyond(119).mean == pytest.approx((0.2 * 120 + 0.1 * 150 + 0.075 * 200) / 0.375)
    assert prediction.beyond(150) == (200.0, 200.0, (200.0,) * 7)
    assert prediction.beyond(200).mean == 400.0


def test_aged_follows_live_predictions() -> None:
    """At 90 s, both jobs have waited 80 s; user 1's is predicted at 600 s until its first job ends after 1 s."""
    rows: list[Row] = [(0, 100, 100, 2), (10, 50, 600, 2), (10, 50, 500, 2), (11, 1, 600, 1)]
    jobs = workload(rows, 3, user=[9, 1, 2, 1])
    order = Pipeline(Aged(mean=1.0), backfiller=EASY(), estimates=Live(MeanOfOwn()))
    assert run(jobs, order).start_time.tolist()[1:3] == [100, 150]
    fixed = Pipeline(Aged(mean=1.0), backfiller=EASY(), estimates=make("history").estimates)  # type: ignore[attr-defined]
    fixed.estimates.predictor = MeanOfOwn()
    assert run(jobs, fixed).start_time.tolist()[1:3] == [150, 100]


class MeanOfOwn(Predictor):
    """The user's last run time, else the requested time."""

    def reset(self, system: System) -> None:
        self.last: dict[int, int] = {}

    def observe(self, job: Job, took: int) -> None:
        self.last[job.user] = took

    def predict(self, job: Job) -> Prediction:
        return Prediction.certain(float(self.last.get(job.user, job.requested_time)))


@given(workloads())
def test_nothing_changes_for_predictors_that_learn_nothing(jobs: object) -> None:
    class AsRequested(Predictor):
        def predict(self, job: Job) -> Prediction:
            return Prediction.certain(float(job.requested_time))

    live = Pipeline(Aged(mean=1.0), backfiller=EASY(), estimates=Live(AsRequested()))
    found, expected = (run(jobs, policy) for policy in (live, "aged(requested=1)+easy"))  # type: ignore[arg-type]
    np.testing.assert_array_equal(found.start_time, expected.start_time)


def test_the_recipe_by_name() -> None:
    assert make("predicted-aging") == Pipeline(
        GuardedWait(Aged(mean=1.0), 30.0), backfiller=EASY(Weighted(mean=1.0)), estimates=Live(History())
    )
    assert make("predicted-aging(times=5)+tests(60)").order.times == 5  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["predicted-aging", "predicted-aging+tests(seconds=5)", "unicef+easy+tests"])
def test_they_are_correct_policies(name: str) -> None:
    check_policy(make(name))


def test_live_predictions_serve_no_reservations() -> None:
    estimates = Live()
    estimates.reservations = True
    with pytest.raises(UsageError, match="serve orders, not reservations"):
        run(workload([(0, 1, 1, 1)], 1), Pipeline(estimates=estimates))
