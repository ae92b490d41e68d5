"""The masked-PPO paper's training sets and days."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import days, read_job_table, training_set


def message(call: Callable[[], object]) -> str:
    with pytest.raises((WorkloadError, UsageError)) as caught:
        call()
    text = str(caught.value)
    assert "\n" not in text
    return text


def log(jobs: int = 400) -> Workload:
    """Job number 1000 + n asks for n % 40 CPUs (at least 1) and, every fifth, for a GPU."""
    n = np.arange(jobs)
    columns = {
        "id": 1000 + n, "submit_time": 500 + n, "run_time": n, "nodes": np.ones(jobs, dtype=np.int64),
        "cpus": np.maximum(n % 40, 1), "gpus": (n % 5 == 0).astype(int), "memory": n,
    }  # fmt: skip
    return Workload(columns, name="log", resources=("cpus", "gpus", "memory"))


# --- training sets -----------------------------------------------------------------------------------------


def test_a_training_set() -> None:
    w = training_set(log(), np.random.default_rng(3), large_jobs=100, gpu_jobs=20)
    assert (len(w), len(set(w.id.tolist()))) == (120, 120)
    assert set(w.submit_time.tolist()) == {500}
    n = w.id - 1000
    assert w.column("cpus").tolist() == np.maximum(n % 40, 1).tolist(), "jobs stay what they are"
    assert w.run_time.tolist() == n.tolist()
    large = w.column("cpus") > 20
    assert np.count_nonzero(large) >= 100
    assert np.count_nonzero(~large & (w.column("gpus") == 0)) == 0
    assert np.count_nonzero(~large) <= 20
    assert not (np.diff(n) > 0).all(), "shuffled"
    assert large[:100].sum() < 100, "shuffled together"
    assert w.name == "log-training"


def test_every_job_there_is() -> None:
    """All 180 large jobs (of 36 with GPUs), and the 40 small ones with GPUs: nothing is drawn twice."""
    whole = log()
    cpus, gpus = whole.column("cpus"), whole.column("gpus")
    large, small = int(np.sum(cpus > 20)), int(np.sum((cpus <= 20) & (gpus > 0)))
    w = training_set(whole, np.random.default_rng(1), large_jobs=large, gpu_jobs=small)
    assert sorted(w.id.tolist()) == whole.id[(cpus > 20) | (gpus > 0)].tolist()
    found = message(
        lambda: training_set(whole, np.random.default_rng(1), large_jobs=large, gpu_jobs=small + 1)
    )
    assert found == f"log: {small + 1} runnable jobs with GPUs > 0 needed to draw from, found {small}"


def test_only_runnable_jobs() -> None:
    whole = log()
    runnable = whole.id % 2 == 0
    w = training_set(whole, np.random.default_rng(1), runnable, large_jobs=50, gpu_jobs=10, submit_time=7)
    assert set((w.id % 2).tolist()) == {0}
    assert set(w.submit_time.tolist()) == {7}
    assert runnable.sum() == 200, "the mask stays as it was"
    with pytest.raises(
        WorkloadError, match=r"log: 101 runnable jobs with CPUs > 20 needed to draw from, found 90"
    ):
        training_set(whole, np.random.default_rng(1), runnable, large_jobs=101)


def test_seeds() -> None:
    sets = [
        training_set(log(), np.random.default_rng(seed), large_jobs=50, gpu_jobs=9).hash for seed in (1, 1, 2)
    ]
    assert sets[0] == sets[1] != sets[2]


def test_training_sets_that_cannot_be() -> None:
    rng = np.random.default_rng(1)
    plain = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, name="plain")
    assert (
        message(lambda: training_set(plain, rng))
        == "plain: a training set needs the resource cpus, found none"
    )
    assert message(lambda: training_set(log(), rng, [True])) == (
        "log: runnable needs 400 truth values, found bool of shape (1,)"
    )
    assert message(lambda: training_set(log(), rng, np.ones(400))) == (
        "log: runnable needs 400 truth values, found float64 of shape (400,)"
    )


# --- days --------------------------------------------------------------------------------------------------


def moments(*texts: str) -> Workload:
    """Jobs submitted at these times of the calendar in UTC."""
    submit = [int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) for text in texts]
    ones = [1] * len(submit)
    return Workload({"submit_time": submit, "run_time": ones, "nodes": ones}, name="log")


def test_days_end_at_local_midnight() -> None:
    w = moments("2021-03-05T05:59:59", "2021-03-05T06:00:00", "2021-03-06T05:59:59", "2021-03-06T06:00:00")
    found = days(w, low=1, high=9)
    assert [(day, part.id.tolist()) for day, part in found] == [
        (date(2021, 3, 4), [1]), (date(2021, 3, 5), [2, 3]), (date(2021, 3, 6), [4])
    ]  # fmt: skip
    assert found[1][1].name == "log-2021-03-05"
    assert [(day, len(part)) for day, part in days(w, low=2, high=2, timezone="UTC")] == [
        (date(2021, 3, 5), 2), (date(2021, 3, 6), 2)
    ]  # fmt: skip


def test_a_day_of_23_hours() -> None:
    """On 14 March 2021 clocks in Chicago jumped from 2:00 to 3:00."""
    w = moments("2021-03-14T05:59:59", "2021-03-14T06:00:00", "2021-03-15T04:59:59", "2021-03-15T05:00:00")
    assert [(day, part.id.tolist()) for day, part in days(w, low=1)] == [
        (date(2021, 3, 13), [1]), (date(2021, 3, 14), [2, 3]), (date(2021, 3, 15), [4])
    ]  # fmt: skip


def test_both_ends_are_included() -> None:
    w = moments(*["2021-03-04T12:00:00"] * 3, *["2021-03-05T12:00:00"] * 4, *["2021-03-07T12:00:00"] * 5)
    assert [len(part) for _, part in days(w, low=3, high=5)] == [3, 4, 5]
    assert [len(part) for _, part in days(w, low=4, high=4)] == [4]
    assert days(w, low=1, high=2) == []
    assert days(w.select([])) == []


def test_unknown_time_zones_are_refused() -> None:
    assert message(lambda: days(log(), timezone="Kansas")) == (
        "a time zone such as 'Europe/Berlin' needed, found 'Kansas'"
    )


# --- the real log ------------------------------------------------------------------------------------------

DAYS = {
    "2021-03": ["18", "19", "25"], "2021-04": ["11"], "2021-05": ["06", "07", "13", "22"],
    "2021-06": ["03", "04"],  # the third file reaches to 4 June
}  # fmt: skip


@pytest.fixture(scope="module")
def spring(shared: Path) -> Workload:
    months = [
        read_job_table(shared / "traces" / f"beocat-2021-{month}.csv.gz") for month in ("03", "04", "05")
    ]
    return months[0].merge(*months[1:])


@pytest.mark.slow
def test_the_days_of_three_months(spring: Workload, shared: Path) -> None:
    found = dict(days(spring))
    assert [str(day) for day in found] == [f"{month}-{day}" for month, there in DAYS.items() for day in there]
    reference = read_job_table(shared / "refs" / "beocat" / "20210603_jobs.csv.gz")
    assert found[date(2021, 6, 3)].id.tolist() == sorted(reference.id.tolist())
    assert (len(found[date(2021, 3, 19)]), len(found[date(2021, 6, 3)])) == (1057, 973)
    assert (np.diff(found[date(2021, 3, 19)].submit_time) >= 0).all()


@pytest.mark.slow
def test_months_of_the_log_join_without_losses(spring: Workload) -> None:
    assert len(spring) == 68_552 + 88_971 + 92_417
    assert (np.diff(spring.submit_time) >= 0).all()
    assert sorted(spring.id.tolist()) == list(range(261_221, 261_221 + len(spring)))


def test_a_real_training_set(spring: Workload) -> None:
    w = training_set(spring, np.random.default_rng(1))
    assert len(w) == len(set(w.id.tolist())) == 2040
    assert set(w.submit_time.tolist()) == {1_614_837_941}, "as in the reference set"
    large = w.column("cpus") > 20
    assert 2000 <= np.count_nonzero(large) <= 2040
    assert np.count_nonzero(w.column("gpus") > 0) >= 40
