"""Queueing theory's arrivals, and bursts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import burst, poisson


def first_come_first_served_wait(workload: Workload) -> float:
    """Return the mean wait on one server, by Lindley's recursion."""
    wait, total = 0, 0
    gaps = np.diff(workload.submit_time).tolist()
    for gap, service in zip(gaps, workload.run_time.tolist(), strict=False):
        wait = max(0, wait + service - gap)
        total += wait
    return total / len(workload)


@pytest.mark.parametrize("variation", [0.0, 1.0, 4.0])
def test_poisson_has_the_moments_asked_for(variation: float) -> None:
    jobs = 100_000
    w = poisson(jobs, np.random.default_rng(1), servers=4, load=0.7, mean_service=50_000, variation=variation)
    gaps = np.diff(w.submit_time)
    assert gaps.mean() == pytest.approx(50_000 / (4 * 0.7), rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.02)
    assert w.run_time.mean() == pytest.approx(50_000, rel=4 * math.sqrt(variation / jobs) + 1e-9)
    assert w.run_time.var() / w.run_time.mean() ** 2 == pytest.approx(variation, rel=0.1)
    assert w.offered_load() == pytest.approx(0.7, rel=0.03)


@pytest.mark.parametrize("variation", [0.0, 1.0])
def test_wait_agrees_with_pollaczek_and_khinchine(variation: float) -> None:
    w = poisson(300_000, np.random.default_rng(2), load=0.5, mean_service=10_000, variation=variation)
    assert first_come_first_served_wait(w) == pytest.approx((1 + variation) / 2 * 10_000, rel=0.05)


def test_burst() -> None:
    w = burst(20_000, np.random.default_rng(3), machine_size=64, max_run_time=1000)
    assert set(w.submit_time.tolist()) == {0}
    assert set(w.nodes.tolist()) == set(range(1, 65))
    assert (w.run_time.min(), w.run_time.max()) == (1, 1000)
    assert (w.requested_time >= w.run_time).all()
    # uniform on a logarithmic scale: as many of 1 to 7 nodes as of 8 to 64, of log(8) / log(65) and the rest
    assert np.mean(w.nodes < 8) == pytest.approx(math.log(8) / math.log(65), abs=0.02)


@pytest.mark.parametrize("make", [burst, poisson])
def test_same_seed_same_workload(make: type) -> None:
    first, second, other = (make(100, np.random.default_rng(seed)).hash for seed in (1, 1, 2))
    assert first == second != other


def test_parameters_out_of_range() -> None:
    rng = np.random.default_rng(1)
    for options in (
        {"servers": 0},
        {"load": 0},
        {"mean_service": -1},
        {"variation": -1},
        {"load": float("nan")},
    ):
        with pytest.raises(WorkloadError, match="poisson needs"):
            poisson(10, rng, **options)
    for options in ({"machine_size": 0}, {"max_run_time": 0}):
        with pytest.raises(WorkloadError, match="burst needs"):
            burst(10, rng, **options)
    with pytest.raises(WorkloadError, match="burst needs"):
        burst(0, rng)
