"""The Lublin-Feitelson model against its published parameters, and against instances of it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import BATCH, INTERACTIVE, TYPED, UNTYPED, JobClass, LublinModel, read_swf
from hpcsimkit.workloads.models.lublin import DAY, _gaps, daily_weights

JOBS = 200_000


@pytest.fixture(scope="module")
def workload() -> Workload:
    return LublinModel(nodes=128).generate(JOBS, np.random.default_rng(1))


def within(found: float, expected: float, error: float, sigmas: float = 4) -> bool:
    """Return whether a sample mean is as near to its expectation as chance allows."""
    return abs(found - expected) < sigmas * error


def test_share_of_serial_jobs(workload: Workload) -> None:
    # 2^0.8 rounds to 2, so nothing but the serial jobs has one node
    assert within(np.mean(workload.nodes == 1), 0.244, math.sqrt(0.244 * 0.756 / JOBS))


def test_share_of_powers_of_two(workload: Workload) -> None:
    # of the 1 - serial - pow2 = 0.18 that are not rounded, those that come out as a power by chance:
    # log2 of the size uniform on [0.8, 4.5] (0.86) or [4.5, 7] (0.14), size k from log2(k-.5) to log2(k+.5)
    def density(low: float, high: float) -> float:
        def part(a: float, b: float) -> float:
            return max(0.0, min(high, b) - max(low, a)) / (b - a)

        return 0.86 * part(0.8, 4.5) + 0.14 * part(4.5, 7)

    by_chance = sum(density(math.log2(2**k - 0.5), math.log2(2**k + 0.5)) for k in range(1, 8))
    expected = 0.244 + 0.576 + 0.18 * by_chance
    found = np.mean(workload.nodes & (workload.nodes - 1) == 0)
    assert within(found, expected, math.sqrt(expected * (1 - expected) / JOBS))


@pytest.mark.parametrize(
    ("low", "high", "share"), [(0.8, 1.5, 0.7 / 3.7), (1.5, 2.5, 1 / 3.7), (2.5, 3.5, 1 / 3.7)]
)
def test_sizes_of_rounded_jobs(low: float, high: float, share: float) -> None:
    everything_rounded = replace(UNTYPED, serial=0.0, pow2=1.0)
    nodes = (
        LublinModel(nodes=128, classes=(everything_rounded,)).generate(JOBS, np.random.default_rng(2)).nodes
    )
    expected = 0.86 * share
    found = np.mean(nodes == 2 ** round((low + high) / 2))
    assert within(found, expected, math.sqrt(expected * (1 - expected) / JOBS))


@pytest.mark.parametrize("nodes", [2, 3, 4, 5, 100, 127, 4360])
@pytest.mark.parametrize("classes", [(UNTYPED,), TYPED])
def test_sizes_stay_within_any_machine(nodes: int, classes: tuple[JobClass, ...]) -> None:
    sizes = LublinModel(nodes=nodes, classes=classes).generate(3000, np.random.default_rng(3)).nodes
    assert sizes.min() == 1
    assert 2 <= sizes.max() <= nodes


def test_run_times_of_serial_jobs() -> None:
    # p = 0.78 - 0.0054; ln(run) is gamma(4.2, 0.94), mean 3.948, or gamma(312, 0.03), mean 9.36; the few
    # above 12 are drawn again, and the cut to whole seconds lowers logarithms of short runs
    serial = replace(UNTYPED, serial=1.0)
    run_time = LublinModel(classes=(serial,)).generate(JOBS, np.random.default_rng(4)).run_time
    rng = np.random.default_rng(5)
    mixture = np.where(rng.random(JOBS) < 0.7746, rng.gamma(4.2, 0.94, JOBS), rng.gamma(312, 0.03, JOBS))
    mixture = np.log(np.floor(np.exp(mixture[mixture <= 12])))
    found = np.log(run_time)
    assert within(found.mean(), mixture.mean(), math.sqrt(2) * mixture.std() / math.sqrt(JOBS))
    points = np.arange(0, 12, 0.1)
    share, expected = (np.searchsorted(np.sort(logs), points) / len(logs) for logs in (found, mixture))
    assert np.abs(share - expected).max() < 1.95 * math.sqrt(2 / JOBS)  # Kolmogorov-Smirnov, 0.1 %
    assert 1 <= run_time.min() <= run_time.max() <= math.exp(12)


def test_larger_jobs_run_longer(workload: Workload) -> None:
    logs = np.log(workload.run_time)
    for nodes, probability in ((1, 0.78 - 0.0054), (16, 0.78 - 0.0054 * 16), (128, 0.78 - 0.0054 * 128)):
        found = logs[workload.nodes == nodes]
        expected = probability * 4.2 * 0.94 + (1 - probability) * 312 * 0.03
        assert within(found.mean(), expected, found.std() / math.sqrt(len(found)) + 0.02), nodes


def test_times_between_arrivals() -> None:
    logs = np.log(_gaps(UNTYPED, JOBS, np.random.default_rng(6)))
    assert logs.max() <= 13
    shape = 10.2303 * 1.0225
    # only 0.05 % lie above 13 and are drawn again
    assert within(logs.mean(), shape * 0.4871, 0.4871 * math.sqrt(shape / JOBS) + 0.005)


def test_daily_weights_are_the_gamma_density() -> None:
    stats = pytest.importorskip("scipy.stats")
    for parameters in (UNTYPED, BATCH, INTERACTIVE):
        cycle = stats.gamma(parameters.anum, scale=parameters.bnum)
        expected = np.empty(48)
        for i in range(11, 59):
            expected[(i - 1) % 48] = cycle.cdf(i + 0.5) - cycle.cdf(i - 0.5)
        assert np.allclose(daily_weights(parameters), expected / expected.mean(), rtol=1e-10)


def test_arrivals_follow_the_day() -> None:
    submit = LublinModel(nodes=64).generate(JOBS, np.random.default_rng(7)).submit_time
    found = np.bincount(submit % DAY // 1800, minlength=48) / JOBS * 48
    weights = daily_weights(UNTYPED)
    assert np.abs(found - weights).max() < 0.12
    assert np.corrcoef(found, weights)[0, 1] > 0.995
    hours = np.bincount(submit % DAY // 3600, minlength=24)
    assert 12 <= hours.argmax() <= 15
    assert 3 <= hours.argmin() <= 5


def test_clock_pays_bucket_by_bucket() -> None:
    # the model's own way, one job and one half hour after another
    model = LublinModel()
    rush = np.cumsum(_gaps(UNTYPED, 300, np.random.default_rng(8)))
    weights = daily_weights(UNTYPED)
    bucket, paid, expected = 0, 0.0, []
    for due in rush:
        while paid + 1800 * weights[bucket % 48] < due:
            paid += 1800 * weights[bucket % 48]
            bucket += 1
        expected.append(1800 * bucket + (due - paid) / weights[bucket % 48])
    assert np.allclose(model._clock(rush, np.zeros(300, dtype=int)), expected, rtol=1e-9)


@pytest.mark.parametrize("classes", [(UNTYPED,), TYPED])
@pytest.mark.parametrize("load", [0.3, 0.9, 2.0])
def test_load_is_reached_and_the_day_kept(classes: tuple[JobClass, ...], load: float) -> None:
    workload = LublinModel(nodes=256, classes=classes, load=load).generate(20_000, np.random.default_rng(9))
    assert workload.offered_load() == pytest.approx(load, rel=1e-3)
    hours = np.bincount(workload.submit_time % DAY // 3600, minlength=24)
    assert 8 <= hours.argmax() <= 18
    assert hours[9:18].sum() > 2 * hours[:7].sum()


def test_load_changes_nothing_but_submissions() -> None:
    plain = LublinModel().generate(500, np.random.default_rng(10))
    loaded = LublinModel(load=0.5).generate(500, np.random.default_rng(10))
    assert plain.nodes.tolist() == loaded.nodes.tolist()
    assert plain.run_time.tolist() == loaded.run_time.tolist()
    assert "load 0.5" in loaded.provenance[0]


def test_same_seed_same_workload() -> None:
    for model in (LublinModel(), LublinModel(classes=TYPED, load=0.8)):
        first, second, other = (model.generate(1000, np.random.default_rng(seed)) for seed in (1, 1, 2))
        assert first.hash == second.hash != other.hash


def test_two_clocks_mix_batch_and_interactive_jobs() -> None:
    workload = LublinModel(classes=TYPED).generate(JOBS, np.random.default_rng(11))
    assert (np.diff(workload.submit_time) >= 0).all()
    batch, interactive = workload.select(workload.queue == 1), workload.select(workload.queue == 0)
    rates = [1 / np.mean(_gaps(parameters, JOBS, np.random.default_rng(12))) for parameters in TYPED]
    # times between arrivals have a long tail: rates of so many jobs are good to 4 %
    assert len(batch) / JOBS == pytest.approx(rates[0] / sum(rates), rel=0.15)
    assert np.mean(batch.nodes == 1) == pytest.approx(BATCH.serial, abs=0.015)
    assert np.mean(interactive.nodes == 1) == pytest.approx(INTERACTIVE.serial, abs=0.005)
    assert batch.run_time.mean() > 10 * interactive.run_time.mean()


@pytest.mark.parametrize(
    ("log", "classes"), [("lublin-1", (replace(UNTYPED, arar=1.0),)), ("lublin-2", TYPED)]
)
def test_published_instances_are_of_this_model(shared: Path, log: str, classes: tuple[JobClass, ...]) -> None:
    published = read_swf(shared / "traces" / f"{log}.swf")
    made = LublinModel(nodes=256, classes=classes).generate(JOBS, np.random.default_rng(13))

    def near(found: np.ndarray, expected: np.ndarray, sigmas: float = 4) -> bool:
        return within(found.mean(), expected.mean(), expected.std() / math.sqrt(len(found)), sigmas)

    for parameters in classes:
        theirs = published.select(published.queue == parameters.queue) if len(classes) > 1 else published
        ours = made.select(made.queue == parameters.queue)
        assert near(np.log(theirs.run_time), np.log(ours.run_time))
        assert near(theirs.run_time, ours.run_time)
        assert near(theirs.nodes, ours.nodes)
        assert near(theirs.nodes == 1, ours.nodes == 1)
        assert near(theirs.nodes & (theirs.nodes - 1) == 0, ours.nodes & (ours.nodes - 1) == 0)
        gaps = _gaps(parameters, JOBS, np.random.default_rng(14))
        assert within(theirs.span / len(theirs), gaps.mean(), gaps.std() / math.sqrt(len(theirs)))


@pytest.mark.parametrize(
    ("model", "jobs", "needed"),
    [
        (LublinModel(nodes=1), 5, "nodes needs 2 or more, found 1"),
        (LublinModel(), 0, "jobs needs 1 or more, found 0"),
        (LublinModel(classes=()), 5, "classes needs at least one kind of job"),
        (LublinModel(load=0), 5, "load needs a positive number, found 0"),
        (LublinModel(load=float("nan")), 5, "load needs a positive number, found nan"),
        (LublinModel(load=1e-9), 50, "raise the load"),
        (LublinModel(classes=(replace(UNTYPED, aarr=1000.0),)), 5, "should stay below 13"),
    ],
)
def test_parameters_out_of_range(model: LublinModel, jobs: int, needed: str) -> None:
    with pytest.raises(WorkloadError, match=needed):
        model.generate(jobs, np.random.default_rng(1))


def test_one_job() -> None:
    assert len(LublinModel(load=0.9).generate(1, np.random.default_rng(1))) == 1
