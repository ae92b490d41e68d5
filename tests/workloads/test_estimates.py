"""Modelled user estimates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import POPULAR_ESTIMATES, LublinModel, default_workload, with_estimates


def jobs(*run_times: int) -> Workload:
    return Workload(
        {"submit_time": [0] * len(run_times), "run_time": run_times, "nodes": [1] * len(run_times)}
    )


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50), st.integers(0, 2**32), st.floats(0, 1))
def test_estimates_are_round_upper_bounds(run_times: list[int], seed: int, at_maximum: float) -> None:
    before = jobs(*run_times)
    after = with_estimates(before, np.random.default_rng(seed), at_maximum=at_maximum)
    assert (after.requested_time >= after.run_time).all()
    round_values = {*POPULAR_ESTIMATES, -(-max(run_times) // 86_400) * 86_400}
    assert set(after.requested_time.tolist()) <= round_values
    for column in ("id", "submit_time", "run_time", "nodes"):
        assert after.column(column).tolist() == before.column(column).tolist()


@pytest.mark.parametrize(
    ("longest", "maximum"), [(0, 300), (300, 300), (301, 600), (172_800, 172_800), (172_801, 259_200)]
)
def test_the_maximum_is_the_smallest_round_value_that_serves_all(longest: int, maximum: int) -> None:
    w = with_estimates(jobs(longest, 0), np.random.default_rng(1), at_maximum=1)
    assert w.requested_time.tolist() == [maximum, maximum]


def test_a_maximum_of_ones_own() -> None:
    w = with_estimates(jobs(*[5000] * 1000), np.random.default_rng(1), maximum=5400, at_maximum=0)
    # 5400 is the only value allowed that is not below 5000
    assert set(w.requested_time.tolist()) == {5400}
    with pytest.raises(
        WorkloadError, match=r"5000 s or more needed \(the longest job\), found a maximum of 3600 s"
    ):
        with_estimates(jobs(5000), np.random.default_rng(1), maximum=3600)


def test_accuracy_is_about_uniform() -> None:
    # jobs of 10 minutes to 2 hours, with values up to 48 h: round values on both sides of nearly all wishes
    run_times = np.random.default_rng(1).integers(600, 7200, 50_000)
    w = with_estimates(jobs(*run_times.tolist(), 172_800), np.random.default_rng(2), at_maximum=0)
    accuracy = (w.run_time / w.requested_time)[:-1]
    shares = np.histogram(accuracy, 10, (0, 1))[0] / len(accuracy)
    assert shares.min() > 0.05
    assert shares.max() < 0.15
    assert accuracy.mean() == pytest.approx(0.5, abs=0.03)


def test_share_at_the_maximum() -> None:
    w = with_estimates(jobs(*[60] * 20_000, 86_400), np.random.default_rng(3), at_maximum=0.25)
    # a minute's job wants 24 h on its own only with an accuracy below 1/1440
    assert np.mean(w.requested_time == 86_400) == pytest.approx(0.25, abs=0.015)


def test_few_values_serve_most_jobs() -> None:
    w = with_estimates(LublinModel().generate(5000, np.random.default_rng(1)), np.random.default_rng(2))
    counts = np.sort(np.unique(w.requested_time, return_counts=True)[1])[::-1]
    assert counts[:20].sum() > 0.9 * len(w)


def test_notes_and_history() -> None:
    before = Workload(
        {"submit_time": [0], "run_time": [5], "nodes": [1], "user": [3]},
        machine_size=4, name="n",
        notes={"no estimate: run time taken": 1, "run time 0": 2}, provenance=("made",),
    )  # fmt: skip
    after = with_estimates(before, np.random.default_rng(1))
    assert dict(after.notes) == {"run time 0": 2, "estimate modelled": 1}
    assert after.provenance == ("made", "modelled estimates up to 300 s, 10% of the jobs at the maximum")
    assert (after.machine_size, after.name, after.user.tolist()) == (4, "n", [3])


def test_same_seed_same_estimates() -> None:
    w = jobs(*range(0, 5000, 7))
    first, second, other = (with_estimates(w, np.random.default_rng(seed)).hash for seed in (1, 1, 2))
    assert first == second != other


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        ({"popular": []}, "increasing values"),
        ({"popular": [60, 60]}, "increasing values"),
        ({"popular": [0, 60]}, "1 s or more"),
        ({"at_maximum": 1.5}, "share from 0 to 1, found 1.5"),
        ({"at_maximum": float("nan")}, "share from 0 to 1, found nan"),
    ],
)
def test_parameters_out_of_range(options: dict[str, object], needed: str) -> None:
    with pytest.raises(WorkloadError, match=needed):
        with_estimates(jobs(5), np.random.default_rng(1), **options)  # type: ignore[arg-type]


def test_default_workload() -> None:
    first, second = (default_workload(np.random.default_rng(1)) for _ in range(2))
    assert first.hash == second.hash
    assert (len(first), first.machine_size) == (5000, 256)
    assert first.offered_load() == pytest.approx(0.9, rel=1e-3)
    assert (first.requested_time >= first.run_time).all()
    assert len(np.unique(first.requested_time)) > 10
