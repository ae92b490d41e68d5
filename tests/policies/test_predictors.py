"""Predictors of run times, by hand, and what they must not see."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from hpcsimkit import check_policy
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.workloads import random_workloads, with_other_ends
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Estimator, Order, Requested
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, Predicted, ShortestPredicted
from hpcsimkit.policies.predicting.boosting import Boosting
from hpcsimkit.policies.predicting.catalogue import PREDICTORS, predictor_named
from hpcsimkit.policies.predicting.features import FEATURES, Features
from hpcsimkit.policies.predicting.history import History, owner
from hpcsimkit.policies.predicting.mixture import Mixture
from hpcsimkit.policies.predicting.predicted import CORRECTIONS
from hpcsimkit.policies.predicting.predictor import Predictor
from hpcsimkit.policies.predicting.quality import Forecasts, Quality, quality_table
from hpcsimkit.policies.predicting.regression import NormalizedGradient, Regression
from hpcsimkit.policies.predicting.shares import REFRESH, Shares
from tests.kernel.helpers import Row, run, starts, workload


def job(requested: int = 100, nodes: int = 1, user: int = 7, **fields: int) -> Job:
    return Job(0, 1, 0, 1, requested, nodes, user, **fields)


def taught(predictor: Predictor, *ended: tuple[Job, int]) -> Predictor:
    """A predictor that needs no run, after some jobs."""
    predictor.reset(None)  # type: ignore[arg-type]
    for each, took in ended:
        predictor.observe(each, took)
    return predictor


# --- histories ---------------------------------------------------------------------------------------------


def test_history_by_hand() -> None:
    """The user's jobs took 20 s (weight 1/2) and 40 s (weight 1) of 100: 33.3 s, with the share 1.5 / 2.5.

    All users' shares, 0.2 and 0.4, give 30 s. Shrunk thrice: 32, 32.8, 33.12 s. The inverse is 1/30, that of
    all users 0.0375: 0.035, 0.034, 0.0336. The middles of the weights are at 1/6 and 2/3, so the quantile of
    25 % is 23.33 s, that of all users 20 s: 22, 22.8, 23.12 s.
    """
    history = taught(History(length=2, decay=0.5, shrinkage=1.0), (job(), 20), (job(), 40))
    found = history.predict(job())
    assert found.mean == pytest.approx(33.12)
    assert found.harmonic == pytest.approx(1 / 0.0336)
    assert found.quantiles[0] == pytest.approx(20)
    assert found.quantiles[2] == pytest.approx(23.12)
    assert found.quantiles[4] == pytest.approx(40)


def test_the_oldest_run_time_is_forgotten() -> None:
    ended = [(job(), took) for took in (90, 40, 40)]
    forgetful = taught(History(length=2, shrinkage=1e-9), *ended)
    assert forgetful.predict(job()).quantiles[-1] == pytest.approx(40)
    assert taught(History(length=3, shrinkage=1e-9), *ended).predict(job()).quantiles[-1] > 80


def test_a_history_of_one_job() -> None:
    history = taught(History(length=1, shrinkage=1e-9), (job(), 90), (job(), 40))
    assert history.predict(job()).mean == pytest.approx(40, rel=1e-3)


@pytest.mark.parametrize(
    ("asked", "mean"),
    [
        (job(100, 1), 10),  # the same user, request and nodes
        (job(100, 2), 20),  # the same user and request: 10 and 30 s
        (job(300, 1), 40),  # the same user: 10, 30 and 80 s
        (job(300, 1, user=8), 110 / 3),  # a new user: 10, 30 and 80 s of requests of 100, 100, 200 s
    ],
)
def test_the_most_particular_history_counts(asked: Job, mean: float) -> None:
    ended = [(job(100, 1), 10), (job(100, 3), 30), (job(200, 1), 80)]
    history = taught(History(decay=1.0, shrinkage=1e-9), *ended)
    if asked.user == 8:  # at 20 levels: seven of 0.1, six of 0.3, seven of 0.4
        mean = 300 * (7 * 0.1 + 6 * 0.3 + 7 * 0.4) / 20
    assert history.predict(asked).mean == pytest.approx(mean)


@pytest.mark.parametrize("field", ["group", "executable", "queue"])
def test_what_stands_in_for_an_unknown_user(field: str) -> None:
    one, two = (job(user=-1, **{field: value}) for value in (1, 2))
    history = taught(History(shrinkage=1e-9), (one, 20), (two, 60))
    assert [history.predict(each).mean for each in (one, two)] == pytest.approx([20, 60])


def test_the_request_stands_in_where_a_log_names_nobody() -> None:
    one, two = job(100, user=-1), job(50, user=-1)
    history = taught(History(shrinkage=1e-9), (one, 20), (two, 30))
    assert [history.predict(each).mean for each in (one, two)] == pytest.approx([20, 30])


def test_short_run_times_count_as_ten_seconds_in_harmonic_means() -> None:
    assert taught(History(shrinkage=1e-9), (job(), 1)).predict(job()).harmonic == pytest.approx(10)


def test_nothing_exceeds_the_requested_time() -> None:
    found = taught(History(), (job(100), 90)).predict(job(50))
    assert max(found.mean, found.harmonic, *found.quantiles) == 50


# --- the estimator -----------------------------------------------------------------------------------------

ROWS: list[Row] = [(0, 10, 100, 2), (10, 20, 100, 2), (40, 400, 1000, 1), (41, 10, 10, 2), (42, 13, 13, 1)]


def test_reservations_keep_the_requested_times_unless_asked() -> None:
    """Job 3 is predicted to end at 125, its request at 1040; the last job, predicted 148 s, fits the latter.

    There is no pass between 55 and 440 that would correct the prediction.
    """
    rows = [*ROWS, (43, 200, 984, 1)]
    jobs = workload(rows, 2, user=[1, 1, 1, -1, -1, -1])
    assert starts(jobs, "fcfs+easy+history") == starts(jobs, "fcfs+easy") == [0, 10, 40, 440, 42, 55]
    assert starts(jobs, "fcfs+easy+history(reservations=true)") == [0, 10, 40, 440, 42, 450]


def test_corrections_are_asked_for_with_reservations_only() -> None:
    assert not Predicted().corrects and Predicted(reservations=True).corrects
    assert Predicted().observes and not Predicted(reservations=True).requested


class Late(Order):
    """Asks for predictions at passes only."""

    def reset(self, system: System) -> None:
        self.system, self.seen = system, {}  # type: ignore[var-annotated]

    def scores(self, jobs: Any, now: int) -> Any:
        for row in jobs.index.tolist():
            mean = self.system.estimator.prediction(self.system.jobs[row]).mean
            self.seen.setdefault(row, set()).add(mean)
            assert len(self.seen[row]) == 1, "the prediction changed"
        return jobs.submit_time


def test_predictions_are_made_on_arrival() -> None:
    """Job 2 waits until job 1 of its user has ended after half of its request, and still is 100 s long."""
    seen: dict[int, float] = {}

    class AtStart(Observer):
        def on_start(self, job: Job, allocation: Any, system: System) -> None:
            seen[job.id] = system.estimator.prediction(job).mean

    jobs = workload([(0, 50, 100, 2), (1, 50, 100, 2), (60, 50, 100, 2)], 2, user=[1, 1, 1])
    run(jobs, Pipeline(order=Late(), estimates=Predicted()), observers=[AtStart()])
    assert seen == {1: 100, 2: 100, 3: 50}


def test_every_estimator_predicts() -> None:
    class Half(Estimator):
        def estimate(self, job: Job) -> int:
            return job.requested_time // 2

    assert Half().prediction(job()) == Prediction.certain(50)
    jobs = workload([(0, 9, 9, 1), (1, 5, 80, 1), (1, 30, 30, 1)], 1)
    assert starts(jobs, "shortest-predicted+actual") == [0, 9, 14]
    assert starts(jobs, "shortest-predicted") == [0, 39, 9]


@pytest.mark.parametrize(
    "name",
    [
        "history",
        "regression",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("mixture", "boosting(refit=100)")),
    ],
)
def test_policies_obey_the_rules(name: str) -> None:
    if "boosting" in name:
        pytest.importorskip("sklearn")
    assert check_policy(make(f"shortest-predicted+easy+{name}")).workloads == 8
    assert check_policy(Pipeline(backfiller=EASY(ShortestPredicted()), estimates=make(name).estimator))


# --- the past only -----------------------------------------------------------------------------------------


class Clairvoyant(Predictor):
    def predict(self, job: Job) -> Prediction:
        return Prediction.certain(job.run_time)


def past_only(predictor: Predictor, jobs: Workload) -> bool:
    """Whether predictions are the same if jobs that have not ended at some instants take other times."""
    forecasts = Forecasts({"it": predictor})
    result = run(jobs, "fcfs+easy", observers=[forecasts])
    before = dict(forecasts.predictions["it"])
    rng = np.random.default_rng(0)
    for at in np.quantile(jobs.submit_time, [0.3, 0.6, 0.9]).astype(int).tolist():
        changed, rows = with_other_ends(jobs, result, at, rng)
        assert len(rows)
        run(changed, "fcfs+easy", observers=[forecasts])
        known = np.flatnonzero(jobs.submit_time <= at).tolist()
        if any(forecasts.predictions["it"][row] != before[row] for row in known):
            return False
    return True


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "boosting" else name for name in PREDICTORS],
)
def test_predictions_do_not_depend_on_the_future(name: str) -> None:
    predictor = predictor_named(name)
    if isinstance(predictor, Boosting):
        pytest.importorskip("sklearn")
        predictor = Boosting(refit=100, iterations=3)
    jobs = random_workloads(np.random.default_rng(1), jobs=250)[4]
    assert past_only(predictor, jobs)
    assert not past_only(Clairvoyant(), jobs)


# --- regression --------------------------------------------------------------------------------------------


def test_features_by_hand() -> None:
    """User 1: ended jobs of 10 and 30 s on 2 and 4 nodes; one of 1 node runs since 50 s; it is now 60 s."""
    rows: list[Row] = [(0, 10, 99, 2), (10, 30, 99, 4), (50, 90, 99, 1), (60, 5, 80, 6)]
    found: list[dict[str, float]] = []

    class Watch(Observer):
        def on_begin(self, system: System) -> None:
            self.features = Features(system)

        def on_submit(self, job: Job, system: System) -> None:
            found.append(dict(zip(FEATURES, self.features.of(job).tolist(), strict=True)))

        def on_end(self, job: Job, system: System) -> None:
            self.features.observe(job, system.now - system.start_time(job))

    run(workload(rows, 8, user=[1, 1, 1, 1]), "fcfs", observers=[Watch()])
    last = [round(value, 3) for value in found[3].values()]
    assert last[:16] == [80, 30, 10, 80, 20, 40, 20, 6, 3, 2, 1, 1, 10, 10, 1, 20]
    day, week = 0.00436332, 0.000623331  # sines of one 1 440th and one 10 080th of a turn
    assert list(found[3].values())[16:] == pytest.approx(
        [1 - day**2 / 2, day, 1 - week**2 / 2, week], abs=1e-7
    )
    assert list(found[0].values())[:11] == [99, 99, 99, 99, 99, 99, 99, 2, 2, 1, 0]


def test_the_distribution_around_a_regression_is_that_of_its_ratios() -> None:
    """All weights are 0, so that the first job is predicted to take 1 s; it takes 3 times as long."""
    times = {"submit_time": [0, 9, 50], "run_time": [3, 20, 1], "requested_time": [10**6] * 3}
    jobs = Workload({**times, "nodes": [1] * 3, "user": [1] * 3}, machine_size=1)
    forecasts = Forecasts({"it": Regression(degree=1)})
    run(jobs, "fcfs", observers=[forecasts])
    first, second, third = (forecasts.predictions["it"][row] for row in range(3))
    assert (first.mean, set(first.quantiles)) == (1.0, {1.0})
    assert second.mean > 1.0
    assert second.quantiles == pytest.approx([3 * second.mean] * len(second.quantiles))
    ratios = sorted((3, 20 / second.mean))
    assert (third.quantiles[0], third.quantiles[-1]) == pytest.approx([each * third.mean for each in ratios])


def test_gradients_are_invariant_to_the_scale_of_an_input() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 3))
    outputs = []
    for factor in (1.0, 1000.0):
        model = NormalizedGradient(3, rate=0.5)
        scaled = rows * [1.0, factor, 1.0]
        for row in scaled:
            model.learn(row, lambda value, row=row: value - 1.0)  # type: ignore[misc]
        outputs.append([model.value(row) for row in scaled])
    assert outputs[0] == pytest.approx(outputs[1])


def test_two_steps_by_hand_as_an_input_grows() -> None:
    """Inputs 1 and 10, slopes -1 and -2, rate 1: the weight 1 of the first step is 0.1 at the new scale.

    The first step is 1 x 1 / (1 x sqrt(1)) = 1. The squares of the gradients are then 1 + 20^2 and the norm 2
    after two steps: 0.1 + 20 / (10 sqrt(401)).
    """
    model = NormalizedGradient(1, rate=1.0)
    model.learn(np.array([1.0]), lambda value: -1.0)
    assert model.value(np.array([1.0])) == pytest.approx(1)
    seen: list[float] = []
    model.learn(np.array([10.0]), lambda value: seen.append(value) or -2.0)  # type: ignore[func-returns-value]
    assert seen == pytest.approx([1]), "the output at the new scale is that at the old one"
    assert model.value(np.array([1.0])) == pytest.approx(0.1 + 2 / np.sqrt(401))


def test_gradients_approach_a_line() -> None:
    rng, model = np.random.default_rng(0), NormalizedGradient(2, rate=1.0)
    errors = []
    for steps in (300, 2_700, 27_000):
        for at in rng.uniform(0, 10, size=steps):
            inputs = np.array([1.0, at])
            model.learn(inputs, lambda value, at=at: value - (3 + 2 * at))  # type: ignore[misc]
        ends = [model.value(np.array([1.0, at])) for at in (0.0, 10.0)]
        errors.append(np.abs(np.subtract(ends, [3, 23])).max())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.1


# --- mixtures ----------------------------------------------------------------------------------------------


class Always(Predictor):
    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def predict(self, job: Job) -> Prediction:
        return Prediction.certain(self.seconds)


def test_a_mixture_trusts_what_was_right() -> None:
    """12 s: 10 s cost half of 2 s, 16 s half of 4 s; weights are 16 to 1."""
    mixture = taught(Mixture([Always(10.0), Always(16.0)]))
    assert isinstance(mixture, Mixture) and mixture.predict(job()).mean == 13
    mixture.observe(job(), 12)
    assert mixture.weights == pytest.approx([16 / 17, 1 / 17])
    found = mixture.predict(job())
    assert found.mean == found.quantiles[0] == pytest.approx((16 * 10 + 16) / 17)
    assert found.harmonic == pytest.approx(1 / ((16 / 10 + 1 / 16) / 17))


# --- boosting ----------------------------------------------------------------------------------------------


def boosted() -> Forecasts:
    """Jobs of one user and request: executable 1 takes 100 s, executable 2 1000 s; one after the other."""
    which = np.random.default_rng(0).integers(1, 3, 320)
    rows: list[Row] = [(place * 2000, int(10 * 10**each), 1500, 1) for place, each in enumerate(which)]
    forecasts = Forecasts({"boosting": Boosting(refit=100, iterations=40), "history": History()})
    jobs = workload(rows, 1, user=[1] * 320, executable=which.tolist())
    run(jobs, "fcfs", observers=[forecasts])
    return forecasts


def test_boosting_learns_what_histories_do_not_see() -> None:
    pytest.importorskip("sklearn")
    forecasts = boosted()
    found = forecasts.predictions["boosting"]
    assert [found[row] for row in range(100)] == [forecasts.predictions["history"][row] for row in range(100)]
    errors = [abs(found[row].mean / forecasts.took[row] - 1) for row in range(200, 320)]
    assert max(errors) < 0.05
    assert max(abs(found[row].quantiles[3] / forecasts.took[row] - 1) for row in range(200, 320)) < 0.05
    assert all(list(each.quantiles) == sorted(each.quantiles) for each in found.values())


class Told:
    """A model that always says the same."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, inputs: Any) -> list[float]:
        return [self.value]


@pytest.mark.parametrize(("inverse", "harmonic"), [(1 / 40, 40), (0.0, 100), (5.0, 10)])
def test_what_trees_say_becomes_a_prediction(inverse: float, harmonic: float) -> None:
    """A mean of 50 s; the harmonic mean is at most the request, and at least 10 s; quantiles are sorted."""
    pytest.importorskip("sklearn")
    boosting = Boosting()
    boosting.reset(System(workload([(0, 5, 100, 1)], 1), Nodes(1), FCFS(), Requested(), 0))
    boosting._models = [Told(50.0), Told(inverse), Told(np.log1p(60)), Told(np.log1p(30))]
    found = boosting.predict(job())
    assert found.mean == pytest.approx(50)
    assert found.harmonic == pytest.approx(harmonic)
    assert found.quantiles == pytest.approx((30, 60))


def test_shares_are_brought_to_the_present_now_and_then() -> None:
    """After as many jobs with half of their requests as before with all of them, the mean is between both."""
    shares = Shares()
    for share in (1.0, 0.5):
        for _ in range(REFRESH):
            shares.add(share)
    assert shares.times(100)[0] == pytest.approx(75)
    shares.add(0.5)
    known = shares.times(100)
    for _ in range(REFRESH - 2):
        shares.add(0.5)
        assert shares.times(100) is known
    shares.add(0.5)
    assert shares.times(100)[0] < 70


def test_the_published_corrections() -> None:
    """1, 5, 15 and 30 minutes, 1, 2, 5, 10, 20, 50 and 100 hours (Tsafrir et al.) [s]."""
    published = [60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000]
    assert published == CORRECTIONS


@pytest.mark.slow
def test_boosting_is_deterministic() -> None:
    pytest.importorskip("sklearn")
    assert boosted().predictions == boosted().predictions


def test_boosting_without_its_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(UsageError, match="boosting needs scikit-learn, which is not installed"):
        run(workload(ROWS, 2), "fcfs+easy+boosting")


# --- misuse ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predictor", "message"),
    [
        (History(length=0), "a history needs a length of at least 1, found 0"),
        (History(decay=0), "a history needs a decay above 0 and at most 1, found 0"),
        (History(shrinkage=0), "a history needs a shrinkage above 0, found 0"),
        (Regression(rate=0), "a regression needs a rate above 0, found 0"),
        (Regression(degree=3), "a regression needs the degree 1 or 2, found 3"),
        (Boosting(refit=1), "boosting needs a whole number of at least 100 for refit, found 1"),
        (
            Boosting(refit=200, window=100),
            "boosting needs a whole number of at least 200 for window, found 100",
        ),
        (Boosting(refit=100.0), "boosting needs a whole number of at least 100 for refit, found 100.0"),
        (Mixture([]), "a mixture needs at least one predictor and nothing else, found []"),
        (
            Mixture([History(), "x"]),
            "a mixture needs at least one predictor and nothing else, found [History(), 'x']",
        ),  # type: ignore[list-item]
        (Mixture(decay="x"), "a mixture needs a decay of at least 0 and below 1, found 'x'"),  # type: ignore[arg-type]
        (Mixture(decay=1), "a mixture needs a decay of at least 0 and below 1, found 1"),
        ("history", "predicted run times need a Predictor, found 'history'"),
    ],
)
def test_wrong_parameters_are_one_line(predictor: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        run(workload(ROWS, 2), Pipeline(estimates=Predicted(predictor)))
    assert str(caught.value) == message


def test_user_0_has_a_history_of_his_own() -> None:
    jobs = Workload(
        {
            "submit_time": [0, 1, 2],
            "run_time": [9, 9, 9],
            "nodes": [1] * 3,
            "user": [0, 0, -1],
            "group": [7, 8, 7],
        }
    )
    assert [owner(job) for job in jobs.jobs] == [0, 0, (7, -1, -1)]


# --- quality -----------------------------------------------------------------------------------------------


def test_measures_by_hand() -> None:
    """Two jobs of 10 and 50 s; 20 and 40 s predicted; quantiles of 30 s: 20 s too long, 20 s too short.

    The mean level is 0.5, so each costs 10 s.
    """
    found = Quality(np.array([20.0, 40.0]), np.full((2, 7), 30.0), np.array([10.0, 50.0])).measures
    assert found["pinball loss [s]"] == pytest.approx(10)
    assert found["calibration error"] == pytest.approx((0.45 + 0.4 + 0.25 + 0 + 0.25 + 0.4 + 0.45) / 7)
    assert found["predicted / actual work"] == 1
    assert found["predicted / actual, median"] == pytest.approx((2 + 0.8) / 2)


def test_a_table_by_class_of_users() -> None:
    rows: list[Row] = [(20 * place, 10, 20, 1) for place in range(24)]
    forecasts = Forecasts({"requested": predictor_named("requested"), "history": History()})
    jobs = workload(rows, 1, user=[1] * 12 + [2] * 11 + [-1])
    run(jobs, "fcfs", observers=[forecasts])
    table = quality_table(forecasts, jobs).set_index(["predictor", "users"])
    assert table.loc["requested"]["jobs"].to_dict() == {
        "all": 24,
        "heavy": 2,
        "light": 1,
        "new": 20,
        "unknown": 1,
    }
    assert set(table.loc["requested"]["mean absolute error [s]"]) == {10}
    assert table.loc[("history", "heavy"), "mean absolute error [s]"] == pytest.approx(0)
