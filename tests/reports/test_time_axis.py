"""Time axes: local dates where the log has them, never a zone that the log does not name."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports import plots, workload_plots
from hpcsimkit.reports.gallery import draw_pictures
from hpcsimkit.reports.time_axis import TimeAxis
from hpcsimkit.reports.week import draw_week, weekly_waits
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.local_time import calendar_of

AUTUMN = 846_374_400  # Sunday, 27 October 1996, 0:00 UTC: clocks go back in Stockholm at 1:00 UTC
SPRING = 859_680_000  # Sunday, 30 March 1997, 0:00 UTC: clocks go forward there at 1:00 UTC
STOCKHOLM = {"TimeZone": "3600", "TimeZoneString": "Europe/Stockholm"}


def jobs(submit: list[int], **header: str) -> Workload:
    """Jobs of one node and an hour, with the header of a log."""
    ones = [1] * len(submit)
    columns = {"submit_time": submit, "run_time": [3600] * len(submit), "nodes": ones}
    return Workload(columns, machine_size=4, header=header)


def at_once(workload: Workload) -> Result:
    """All jobs start when they are submitted."""
    start = workload.submit_time
    ones = np.ones(len(workload), dtype=np.uint8)
    end = start + workload.run_time
    return Result(workload, "at once", 4, start, start, end, ones, np.zeros(len(workload), dtype=bool))


@pytest.mark.parametrize(
    ("start", "header", "name", "hours"),
    [
        (AUTUMN, STOCKHOLM, "Europe/Stockholm", [2, 2, 3]),
        (SPRING, STOCKHOLM, "Europe/Stockholm", [1, 3, 4]),
        (AUTUMN, {"TimeZone": "3600"}, "UTC+01:00", [1, 2, 3]),
        (AUTUMN, {"TimeZone": "0"}, "UTC", [0, 1, 2]),
        (AUTUMN, {"TimeZone": "-18000", "TimeZoneString": "no zone"}, "UTC-05:00", [19, 20, 21]),
        (AUTUMN, {}, "", [0, 1, 2]),
    ],
)
def test_dates_by_hand(start: int, header: dict[str, str], name: str, hours: list[int]) -> None:
    calendar = calendar_of(jobs([0], UnixStartTime=str(start), **header))
    assert calendar is not None
    assert calendar.name == name
    assert calendar.dates([0, 3600, 7200]).hour.tolist() == hours


def test_a_zone_is_written_only_if_the_log_names_it() -> None:
    named = calendar_of(jobs([0], UnixStartTime=str(AUTUMN), **STOCKHOLM))
    unnamed = calendar_of(jobs([0], UnixStartTime=str(AUTUMN)))
    assert named is not None
    assert unnamed is not None
    assert named.text(0) == "Sun 27 Oct 1996 02:00 CEST"
    assert named.text(3600) == "Sun 27 Oct 1996 02:00 CET"
    assert unnamed.text(0) == "Sun 27 Oct 1996 00:00"
    assert "not given" in unnamed.label


@pytest.mark.parametrize(
    "workload",
    [
        jobs([0]),
        jobs([0], UnixStartTime="0"),
        jobs([], UnixStartTime=str(AUTUMN)),
        jobs([0, 9], UnixStartTime=str(AUTUMN)).scale_load(1.5),
    ],
)
def test_no_dates(workload: Workload) -> None:
    assert calendar_of(workload) is None


def ticks(ax: Any) -> dict[str, float]:
    """Positions of the ticks by their labels."""
    ax.figure.draw_without_rendering()
    return dict(zip([text.get_text() for text in ax.get_xticklabels()], ax.get_xticks(), strict=True))


def test_ticks_are_local_midnights() -> None:
    submit = [86_400 * day for day in range(4)]  # Saturday to Tuesday, the clock goes back on Sunday
    result = at_once(jobs(submit, UnixStartTime=str(AUTUMN - 86_400), **STOCKHOLM))
    ax = plots.plot_gantt(result, window=(0, submit[-1]))
    found = ticks(ax)
    assert ax.get_xlabel() == "26 Oct 1996 to 29 Oct 1996, local time, Europe/Stockholm"
    midnights = [AUTUMN - 2 * 3600, AUTUMN + 23 * 3600]  # of Sunday (CEST) and of Monday (CET)
    assert [found["Oct-27"], found["Oct-28"]] == pytest.approx([second / 86_400 for second in midnights])
    queue = plots.plot_queue(result)
    load = workload_plots.plot_offered_load(result.workload, machine_size=4)
    for other in (queue, load):
        assert other.get_xlabel().endswith("Oct 1996, local time, Europe/Stockholm")
        assert other.get_xlim()[0] == pytest.approx((AUTUMN - 86_400) / 86_400)


@pytest.mark.parametrize("width", [0.5, 2.2, 3.5, 9.0])
def test_every_period_has_ticks_without_a_warning(width: float) -> None:
    calendar = calendar_of(jobs([0], UnixStartTime=str(AUTUMN), **STOCKHOLM))
    for seconds in (
        120,
        3000,
        7000,
        26 * 3600,
        47 * 3600,
        *(86_400 * days for days in (20, 80, 330, 700, 1400)),
    ):
        figure = Figure(figsize=(width, 2))
        ax = figure.add_subplot()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            TimeAxis(0, seconds, calendar).apply(ax)
            figure.draw_without_rendering()
        assert len(ax.get_xticks()) >= 1


def test_without_dates_time_counts_from_the_first_submission() -> None:
    result = at_once(jobs([100, 7300, 14_500]))
    ax = plots.plot_queue(result)
    assert ax.get_xlabel() == "time since the first submission [hours]"
    assert ax.get_xlim()[0] == 0


def test_the_window_is_described_by_dates() -> None:
    submit = [3600 * hour for hour in range(4)]
    result = at_once(jobs(submit, UnixStartTime=str(AUTUMN), **STOCKHOLM))
    gantt = next(picture for picture in draw_pictures({"x": result}) if picture.name == "gantt")
    assert gantt.caption.startswith("From Sun 27 Oct 1996 02:00 CEST to Sun 27 Oct 1996 05:00 CET, in which")


def test_weekly_waits_by_hand() -> None:
    submit = [0, 1800, 3600, 7200]  # 2:00 and 2:30 CEST, 2:00 and 3:00 CET: the hour from 2:00 comes twice
    result = at_once(jobs(submit, UnixStartTime=str(AUTUMN), **STOCKHOLM))
    waits = np.array([60, 120, 300, 9])
    late = dataclasses.replace(result, start_time=result.start_time + waits, end_time=result.end_time + waits)
    calendar = calendar_of(result.workload)
    assert calendar is not None
    table = weekly_waits(late, calendar)
    assert (table[6, 2], table[6, 3]) == (160, 9)  # on Sunday
    assert np.isnan(table).sum() == 7 * 24 - 2
    rejected = dataclasses.replace(late, end_time=np.where(np.arange(4) == 2, -1, late.end_time))
    assert weekly_waits(rejected, calendar)[6, 2] == 90
    picture = draw_week({"a": result, "b": late})
    assert picture is not None
    first, second = (
        ax.collections[0].get_facecolor()[6 * 24 + 2 : 6 * 24 + 4, 3] for ax in picture.figure.axes
    )
    assert first.tolist() == pytest.approx([0.04, 0.04])  # no wait, on the scale of both policies
    assert second[0] == pytest.approx(0.9)
    assert 0.04 < second[1] < 0.9
    assert picture.caption.startswith("Hours are local time, Europe/Stockholm.")
    assert draw_week({"x": at_once(jobs([0, 5]))}) is None
