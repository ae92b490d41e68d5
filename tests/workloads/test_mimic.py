"""Logs like a log: what is kept and what is not, by hand, for any log, and for real ones."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import Mimic, read_swf, write_swf
from hpcsimkit.workloads.models.mimic import size_class
from hpcsimkit.workloads.models.weekly_arrivals import HOUR, WEEK, weekly_counts

DAY = 24 * HOUR
MONDAY = {"UnixStartTime": "1704067200"}  # 1 January 2024 0:00 UTC


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def pairs(workload: Workload, *columns: str) -> list[tuple[int, ...]]:
    return list(zip(*(workload.column(name).tolist() for name in columns), strict=True))


@st.composite
def logs(draw: st.DrawFn) -> Workload:
    row = st.tuples(
        st.integers(0, 3 * WEEK), st.integers(0, 10**5), st.integers(1, 10**5), st.integers(1, 300),
        st.integers(-1, 5),
    )  # fmt: skip
    rows = draw(st.lists(row, min_size=2, max_size=20).filter(lambda rows: len({row[0] for row in rows}) > 1))
    names = ("submit_time", "run_time", "requested_time", "nodes", "user")
    return Workload(dict(zip(names, zip(*rows, strict=True), strict=True)), machine_size=256, header=MONDAY)


@given(logs(), st.integers(0, 2**32 - 1), st.none() | st.integers(0, 167))
def test_invariants(log: Workload, seed: int, begin: int | None) -> None:
    w = Mimic(log).generate(50, rng(seed), begin=begin)
    assert w.hash == Mimic(log).generate(50, rng(seed), begin=begin).hash
    assert (len(w), w.machine_size, w.id.tolist()) == (50, 256, list(range(1, 51)))
    assert (np.diff(w.submit_time) >= 0).all() and w.submit_time[0] >= log.submit_time.min()
    assert set(w.nodes.tolist()) <= set(log.nodes.tolist())
    assert set(pairs(w, "run_time", "requested_time", "user")) <= set(
        pairs(log, "run_time", "requested_time", "user")
    )
    alike = {
        (c, *pair)
        for c, pair in zip(size_class(log).tolist(), pairs(log, "run_time", "requested_time"), strict=True)
    }
    assert {
        (c, *pair)
        for c, pair in zip(size_class(w).tolist(), pairs(w, "run_time", "requested_time"), strict=True)
    } <= alike


@pytest.mark.parametrize("first", [0, 10 * DAY + 1234])
@pytest.mark.parametrize("begin", [0, 5, 76, 167])
def test_begins_in_the_hour_asked_for(first: int, begin: int) -> None:
    columns = {"submit_time": first + np.arange(100_000), "run_time": [1] * 100_000, "nodes": [1] * 100_000}
    log = Workload(columns, header=MONDAY)  # a job a second: the first one comes at once
    w = Mimic(log).generate(1, rng(1), begin=begin)
    start = int(w.submit_time[0])
    assert start % WEEK // HOUR == begin and start % HOUR < 30
    assert first <= start < first + WEEK + 30


def test_begins_at_any_hour_if_not_told() -> None:
    columns = {"submit_time": [0, 1, 2], "run_time": [1] * 3, "nodes": [1] * 3}
    mimic = Mimic(Workload(columns, header=MONDAY))
    began = {int(mimic.generate(1, rng(seed)).submit_time[0]) // HOUR for seed in range(2000)}
    assert began == set(range(168))


def test_sizes_and_times_go_together() -> None:
    """Small jobs are short, large ones long; a size brings the times of sizes up to the next power of two."""
    columns = {"submit_time": [0, 1, 2, 3], "run_time": [10, 11, 500, 501], "requested_time": [20, 20, 900, 901],
               "nodes": [1, 1, 5, 8], "user": [1, 2, 3, 4]}  # fmt: skip
    w = Mimic(Workload(columns)).generate(4000, rng(2))
    counts = dict.fromkeys([(1, 10, 1), (1, 11, 2), (5, 500, 3), (5, 501, 4), (8, 500, 3), (8, 501, 4)], 0)
    for row in pairs(w, "nodes", "run_time", "user"):
        counts[row] += 1
    expected = [1000, 1000, 500, 500, 500, 500]
    assert list(counts.values()) == pytest.approx(expected, abs=4 * math.sqrt(1000))


def test_resources_come_with_the_size_and_times_from_jobs_like_it() -> None:
    columns = {"submit_time": [0, 1, 2, 3], "run_time": [10, 11, 12, 13], "nodes": [1] * 4,
               "cpus": [4, 4, 3, 64], "gpus": [0, 1, 2, 0], "constraint": [-1, 0, 1, -1]}  # fmt: skip
    log = Workload(columns, resources=("cpus", "gpus"), labels={"constraint": ("a", "b"), "id": ("x",) * 4})
    w = Mimic(log).generate(500, rng(3))
    assert w.resources == ("cpus", "gpus") and dict(w.labels) == {"constraint": ("a", "b")}
    found = set(pairs(w, "cpus", "gpus", "constraint", "run_time"))
    assert found == {
        (4, 0, -1, 10),
        (4, 1, 0, 11),
        (4, 1, 0, 12),
        (3, 2, 1, 11),
        (3, 2, 1, 12),
        (64, 0, -1, 13),
    }


def test_what_is_no_more_true_is_left_out() -> None:
    header = {**MONDAY, "TimeZone": "3600", "Acknowledge": "Ada", "EndTime": "then", "Computer": "X"}
    columns = {"submit_time": [0, 9], "run_time": [1, 2], "nodes": [1, 1], "preceding": [-1, 1], "think_time": [-1, 5],
               "recorded_wait_time": [7, 8], "queue": [1, 1]}  # fmt: skip
    log = Workload(
        columns, header=header, skipped={"bad": 1}, notes={"odd": 1}, provenance=("read x",), name="x"
    )
    w = Mimic(log).generate(3, rng(4), begin=7)
    assert set(w.columns) == {"id", "submit_time", "run_time", "requested_time", "nodes", "queue"}
    assert (dict(w.skipped), dict(w.notes), w.name) == ({}, {}, "x-mimic")
    assert dict(w.header) == {**MONDAY, "TimeZone": "3600", "Acknowledge": "Ada"}
    assert w.provenance == ("read x", "mimic of x: 3 jobs from hour 7 of the week on")


@pytest.mark.parametrize(
    ("jobs", "begin", "message"),
    [
        (0, None, "Mimic: jobs needs 1 or more, found 0"),
        (1, -1, "Mimic: begin needs an hour of the week, 0 to 167, found -1"),
        (1, 168, "found 168"),
    ],
)
def test_wrong_parameters(jobs: int, begin: int | None, message: str) -> None:
    log = Workload({"submit_time": [0, 9], "run_time": [1, 2], "nodes": [1, 1]})
    with pytest.raises(WorkloadError, match=message):
        Mimic(log).generate(jobs, rng(0), begin=begin)


def test_logs_from_which_nothing_can_be_made() -> None:
    log = Workload({"submit_time": [7, 7], "run_time": [1, 2], "nodes": [1, 1]}, name="burst")
    with pytest.raises(WorkloadError, match=r"burst: submissions at different times are needed .* 2 jobs at"):
        Mimic(log).generate(5, rng(0))
    slow = Workload({"submit_time": [0, 10**11], "run_time": [1, 2], "nodes": [1, 1]}, name="slow")
    with pytest.raises(
        WorkloadError, match="slow: the last of 50 jobs like its own comes after 100000000000 s"
    ):
        Mimic(slow).generate(50, rng(0))


# --- real logs -------------------------------------------------------------------------------------------


def kolmogorov_smirnov(sample: NDArray[np.int64], population: NDArray[np.int64]) -> float:
    """Return the largest distance of two distributions, times the root of the sample's size."""
    at = np.unique(population)
    shares = [np.searchsorted(np.sort(v), at, side="right") / len(v) for v in (sample, population)]
    return float(np.abs(shares[0] - shares[1]).max() * math.sqrt(len(sample)))


def chi_square(found: NDArray[np.int64], expected: NDArray[np.float64]) -> float:
    return float(((found - expected) ** 2 / expected).sum())


@pytest.fixture(scope="module", params=["ALCF-Theta-2022", "HPC2N-2002-2.2-cln"])
def real(request: pytest.FixtureRequest, shared: Path) -> Workload:
    log = read_swf(shared / "traces" / f"{request.param}.swf.gz")
    first = int(log.submit_time.min())
    return log.window(first, first + 59 * DAY) if "Theta" in request.param else log


@pytest.fixture(scope="module")
def made(real: Workload) -> Workload:
    return Mimic(real).generate(30_000, rng(5))


def test_real_sizes_and_times(real: Workload, made: Workload) -> None:
    for column in ("nodes", "run_time", "requested_time"):
        assert kolmogorov_smirnov(made.column(column), real.column(column)) < 1.95  # 0.1 %
    accuracy = [1000 * w.run_time // w.requested_time for w in (made, real)]
    assert kolmogorov_smirnov(*accuracy) < 1.95
    large = [w.run_time[size_class(w) >= 5 + size_class(real).min()] for w in (made, real)]
    assert kolmogorov_smirnov(*large) < 1.95  # given the size, too
    assert kolmogorov_smirnov(real.run_time[real.nodes > np.median(real.nodes)], real.run_time) > 1.95


def test_real_arrivals(real: Workload, made: Workload) -> None:
    (_, seconds), (jobs, own_seconds) = weekly_counts(made), weekly_counts(real)
    found = weekly_counts(made)[0]
    fitted = Mimic(real).arrivals
    expected = fitted.rate * np.outer(fitted.weekday, fitted.hour) * seconds
    flat = np.full((7, 24), found.sum() / seconds.sum()) * seconds
    for axis, limit in ((1, 24.3), (0, 51.2)):
        assert chi_square(found.sum(axis), expected.sum(axis)) < limit  # 0.1 %
        assert chi_square(found.sum(axis), flat.sum(axis)) > 10 * limit
        rates = [
            counts.sum(axis) / time.sum(axis) for counts, time in ((found, seconds), (jobs, own_seconds))
        ]
        assert np.corrcoef(*rates)[0, 1] > 0.98


def test_real_mimic_as_a_file(made: Workload, tmp_path: Path) -> None:
    write_swf(made, tmp_path / "x.swf")
    again = read_swf(tmp_path / "x.swf")
    assert again.hash == made.hash
    assert weekly_counts(again)[0].tolist() == weekly_counts(made)[0].tolist()  # the clock is kept


def test_one_size_and_one_week_at_most(real: Workload) -> None:
    first = int(real.submit_time.min())
    part = real.window(first, first + 2 * DAY)
    for log in (part, replace(part, columns={**part.columns, "nodes": np.full(len(part), 128)}, header={})):
        w = Mimic(log).generate(2000, rng(6))
        assert set(w.nodes.tolist()) <= set(log.nodes.tolist())
        assert kolmogorov_smirnov(w.run_time, log.run_time) < 1.95
        assert 0.5 < w.span / 2000 / (log.span / len(log)) < 2
