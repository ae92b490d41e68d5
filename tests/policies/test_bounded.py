"""Orders by products of powers, and their bound: nobody is overtaken by a job submitted more than it later."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Simulation, Workload, check_policy, make
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.prediction import Prediction
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.policies import Bounded, KeyColumn, Predicted, Predictor, Weighted
from tests.compiled.test_equality import assert_equal_results, workloads

DAY = 86_400


class Known(Predictor):
    """A mean of 16 s and a harmonic mean of 4 s for every job."""

    def predict(self, job: Job) -> Prediction:
        return Prediction(16.0, 4.0, (16.0,) * 7)


def jobs_of(size: int) -> Workload:
    return Workload(
        {"submit_time": [0, 5], "run_time": [9, 9], "requested_time": [25, 100], "nodes": [4, 1]},
        machine_size=size,
    )


def keys_in_run(order: Weighted, jobs: Workload, known: bool = True) -> list[float]:
    """Return the keys that an order gives the jobs at the beginning of a run."""
    keys: list[float] = []

    class Recording(type(order)):  # type: ignore[misc]
        def key(self, job: Job) -> float:
            keys.append(super().key(job))
            return keys[-1]

    estimates = Predicted(Known()) if known else None
    Simulation(jobs, Pipeline(Recording(**vars(order)), estimates=estimates)).run()
    return keys


@pytest.mark.parametrize(
    ("order", "keys"),
    [
        (Weighted(), [1, 1]),
        (Weighted(requested=1), [25, 100]),
        (Weighted(requested=0.5, size=1), [20, 10]),
        (Weighted(mean=1), [16, 16]),
        (Weighted(mean=0.5, harmonic=-1, size=2), [16, 1]),
        (Bounded(scale=2, bound=100), [50, 105]),
        (Bounded(scale=0.5, bound=100, mean=1, requested=0), [8, 13]),
        (Bounded(scale=0), [0, 5]),
    ],
    ids=repr,
)
def test_keys_by_hand(order: Weighted, keys: list[float]) -> None:
    assert keys_in_run(order, jobs_of(4)) == pytest.approx(keys)


def test_without_a_predictor_the_request_is_the_prediction() -> None:
    assert keys_in_run(Weighted(mean=1), jobs_of(4), known=False) == [25, 100]


@given(workloads(), st.integers(0, 300), st.floats(0, 3), st.floats(-2, 2), st.floats(-2, 2))
def test_nobody_is_ever_behind_a_job_submitted_more_than_the_bound_later(
    jobs: Workload, bound: int, scale: float, mean: float, size: float
) -> None:
    order = Bounded(scale=scale, bound=bound, mean=mean, size=size)
    start = Simulation(jobs, Pipeline(order)).run().start_time
    for one in range(len(jobs)):
        for other in range(len(jobs)):
            if jobs.submit_time[other] > jobs.submit_time[one] + bound:
                assert start[one] <= start[other]


@given(workloads())
def test_limits_of_the_parameters_are_known_orders(jobs: Workload) -> None:
    for name, known in {
        "bounded(scale=0)+easy": "fcfs+easy",
        "bounded(bound=0)+easy": "fcfs+easy",
        "weighted(requested=1)+easy": "sjf+easy",
        "weighted(requested=1,size=1)+easy": "saf+easy",
        "fcfs+easy-weighted(requested=1)": "fcfs+easy-sjf",
        "fcfs+easy-weighted(mean=1)+last-two": "fcfs+easy++",
    }.items():
        found, expected = (Simulation(jobs, make(policy)).run() for policy in (name, known))
        np.testing.assert_array_equal(found.start_time, expected.start_time, err_msg=name)


@pytest.mark.parametrize(
    "name",
    [
        "bounded(scale=2,bound=100,mean=0.5,harmonic=0.5,requested=0)+easy-weighted(mean=1,size=0.5)+history",
        "weighted(mean=1,size=-1)+easy+history",
    ],
)
def test_the_orders_are_correct_policies(name: str) -> None:
    check_policy(make(name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bounded(bound=-1)", "bound of Bounded(bound=-1) needs a number of at least 0, found -1"),
        ("bounded(scale=many)", "scale of Bounded(scale='many') needs a number of at least 0, found 'many'"),
        ("weighted(size=6)", "size of Weighted(size=6) needs an exponent from -5 to 5, found 6"),
    ],
)
def test_wrong_parameters(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Simulation(jobs_of(4), make(name)).run()
    assert str(caught.value).endswith(message)


@pytest.mark.skipif(find_spec("numba") is None, reason="needs numba: install the extra [fast]")
@given(workloads(), st.integers(0, 2**32))
def test_given_keys_are_compiled(jobs: Workload, seed: int) -> None:
    keys, others = np.random.default_rng(seed).integers(0, 5, (2, len(jobs))).astype(np.float64)
    for policy in (
        Pipeline(KeyColumn(keys), backfiller=EASY()),
        Pipeline(KeyColumn(keys), backfiller=EASY(candidates=KeyColumn(others))),
    ):
        assert_equal_results(jobs, policy)
