"""When jobs come by weekday and hour: counted by hand, drawn and counted again, fitted to real logs."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import WeeklyArrivals, read_swf
from hpcsimkit.workloads.models.weekly_arrivals import HOUR, WEEK, mean_gap, weekly_counts

MONDAY = {"UnixStartTime": "1704067200"}  # 1 January 2024 0:00 UTC
DAY = 24 * HOUR


def log_of(submit: list[int], header: dict[str, str] | None = None) -> Workload:
    ones = [1] * len(submit)
    return Workload({"submit_time": submit, "run_time": ones, "nodes": ones}, header=header or MONDAY)


# --- counting --------------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    jobs, seconds = weekly_counts(log_of([1800, 0, 3600]))  # one job in 1800 s: the log lasts 5400 s
    assert jobs[0, :3].tolist() == [2, 1, 0] and jobs.sum() == 3
    assert seconds[0, :3].tolist() == [3600, 1800, 0] and seconds.sum() == 5400


def test_counts_over_the_end_of_the_week() -> None:
    late = 6 * DAY + 23 * HOUR
    jobs, seconds = weekly_counts(log_of([late, late + HOUR]))
    assert (jobs[6, 23], jobs[0, 0]) == (1, 1)
    assert (seconds[6, 23], seconds[0, 0], seconds.sum()) == (HOUR, HOUR, 2 * HOUR)


def test_time_zone_and_unknown_calendar() -> None:
    submit = [0, HOUR]
    assert weekly_counts(log_of(submit, {**MONDAY, "TimeZone": "-3600"}))[0][6, 23] == 1
    for header in ({"UnixStartTime": "0"}, {"Note": "no clock"}):  # the log's second 0 begins its week
        assert weekly_counts(log_of(submit, header))[0][0, :2].tolist() == [1, 1]


@given(st.lists(st.integers(0, 5 * WEEK), min_size=2, max_size=20).filter(lambda s: len(set(s)) > 1))
def test_counts_add_up(submit: list[int]) -> None:
    log = log_of(submit)
    jobs, seconds = weekly_counts(log)
    length = log.span + mean_gap(log)
    assert jobs.sum() == len(submit)
    assert seconds.sum() == pytest.approx(length)
    assert (seconds >= 0).all() and (seconds[jobs > 0] > 0).all()
    assert seconds.max() <= HOUR * math.ceil(length / WEEK)


@pytest.mark.parametrize(("submit", "found"), [([], "0 jobs"), ([5], "1 job"), ([5, 5, 5], "3 jobs")])
def test_nothing_to_tell_a_rate_from(submit: list[int], found: str) -> None:
    with pytest.raises(WorkloadError, match=f"workload: submissions at different times .* found {found} at"):
        WeeklyArrivals.of(log_of(submit))


# --- fitting ---------------------------------------------------------------------------------------------


def test_factors_by_hand() -> None:
    # two hours, four jobs, two expected in each: (3 + 1) / (2 + 1) and (1 + 1) / (2 + 1); of all other hours
    # and days nothing is known
    fitted = WeeklyArrivals.of(log_of([0, 1200, 2400, 5400]))
    assert fitted.hour == pytest.approx([4 / 3, 2 / 3, *[1] * 22])
    assert fitted.weekday == pytest.approx([1] * 7)
    assert fitted.rate == pytest.approx(4 / 7200)


def test_a_steady_log_has_no_factors() -> None:
    fitted = WeeklyArrivals.of(log_of(list(range(900, 2 * WEEK, HOUR))))
    assert fitted.weekday == pytest.approx(np.ones(7)) and fitted.hour == pytest.approx(np.ones(24))
    assert fitted.rate == pytest.approx(1 / HOUR)


def test_a_day_that_was_seen_in_part_is_not_taken_for_a_quiet_one() -> None:
    """All jobs come at noon; of Saturday the log saw the first hour only, of Sunday nothing."""
    noons = [day * DAY + 12 * HOUR + minute * 60 for day in range(5) for minute in range(60)]
    fitted = WeeklyArrivals.of(log_of([*noons, 5 * DAY + HOUR]))
    assert fitted.hour[12] > 15 and fitted.hour[3] < 0.2
    assert fitted.weekday[[0, 1, 2, 3, 4, 6]] == pytest.approx([1] * 6, abs=0.2)
    assert 0.9 < fitted.weekday[5] < 2


@given(st.lists(st.integers(0, 3 * WEEK), min_size=2, max_size=30).filter(lambda s: len(set(s)) > 1))
def test_factors_are_sound_for_any_log(submit: list[int]) -> None:
    fitted = WeeklyArrivals.of(log_of(submit))
    assert fitted.weekday.mean() == pytest.approx(1) and fitted.hour.mean() == pytest.approx(1)
    assert (fitted.weekday > 0).all() and (fitted.hour > 0).all() and 0 < fitted.rate < math.inf


@pytest.mark.parametrize("name", ["KTH-SP2-1996-2.1-cln", "HPC2N-2002-2.2-cln", "ALCF-Theta-2022"])
def test_a_real_log_is_expected_as_it_was(shared: Path, name: str) -> None:
    log = read_swf(shared / "traces" / f"{name}.swf.gz")
    jobs, seconds = weekly_counts(log)
    fitted = WeeklyArrivals.of(log)
    expected = fitted.rate * np.outer(fitted.weekday, fitted.hour) * seconds
    for axis in (0, 1):
        assert expected.sum(axis=axis) == pytest.approx(jobs.sum(axis=axis), rel=0.01, abs=1.5)
    assert fitted.rate == pytest.approx(1 / mean_gap(log), rel=0.01)
    assert fitted.hour.max() / fitted.hour.min() > 2  # there is something to fit


# --- drawing ---------------------------------------------------------------------------------------------

WEEKDAY = np.array([1.2, 1.2, 1.4, 1.2, 1.0, 0.4, 0.6])
HOURLY = 1 + 0.9 * np.sin(np.arange(24) * math.pi / 12)
PROCESS = WeeklyArrivals(rate=0.01, weekday=WEEKDAY, hour=HOURLY)
FLAT = WeeklyArrivals(rate=0.01, weekday=np.ones(7), hour=np.ones(24))


def distance(process: WeeklyArrivals) -> tuple[float, float]:
    """Return how far counts of 40 weeks by weekday and by hour are from those of `PROCESS`, as chi squares."""
    at = process.draw(41 * 6048, np.random.default_rng(1))
    assert at[-1] > 40 * WEEK
    found = np.bincount((at[at < 40 * WEEK] % WEEK // HOUR).astype(int), minlength=168).reshape(7, 24)
    expected = 40 * 0.01 * HOUR * np.outer(WEEKDAY, HOURLY)
    by_weekday, by_hour = (
        float(((found.sum(axis) - expected.sum(axis)) ** 2 / expected.sum(axis)).sum()) for axis in (1, 0)
    )
    return by_weekday, by_hour


def test_drawn_jobs_come_by_weekday_and_hour() -> None:
    by_weekday, by_hour = distance(PROCESS)
    assert by_weekday < 24.3 and by_hour < 51.2  # chi square of 7 and 24 degrees of freedom: 0.1 %


@pytest.mark.parametrize(
    ("process", "weekday_wrong", "hour_wrong"),
    [
        (WeeklyArrivals(rate=0.01, weekday=WEEKDAY, hour=np.ones(24)), False, True),
        (WeeklyArrivals(rate=0.01, weekday=np.ones(7), hour=HOURLY), True, False),
    ],
)
def test_the_test_would_find_a_missing_factor(
    process: WeeklyArrivals, weekday_wrong: bool, hour_wrong: bool
) -> None:
    by_weekday, by_hour = distance(process)
    assert (by_weekday > 1000, by_hour > 1000) == (weekday_wrong, hour_wrong)


def test_a_constant_rate_is_a_poisson_process() -> None:
    gaps = np.diff(FLAT.draw(100_000, np.random.default_rng(2)))
    assert gaps.mean() == pytest.approx(100, rel=0.015)
    assert gaps.std() == pytest.approx(100, rel=0.02)
    assert abs(np.corrcoef(gaps[1:], gaps[:-1])[0, 1]) < 0.013


@given(st.integers(0, 5 * WEEK), st.integers(0, 2**32 - 1))
def test_drawing_begins_where_it_is_told(begin: int, seed: int) -> None:
    at = PROCESS.draw(50, np.random.default_rng(seed), begin)
    assert (np.diff(at) >= 0).all() and at[0] >= begin
    assert at[0] - begin < DAY  # 864 jobs a day in the mean, 30 in the quietest hours of a Saturday


def test_what_was_drawn_is_fitted_again() -> None:
    submit = PROCESS.draw(200_000, np.random.default_rng(3)).astype(int).tolist()
    fitted = WeeklyArrivals.of(log_of(submit))
    assert fitted.weekday == pytest.approx(WEEKDAY, rel=0.04)
    assert fitted.hour == pytest.approx(HOURLY, rel=0.08)
    assert fitted.rate == pytest.approx(0.01, rel=0.02)
