"""The picture of two workloads beside each other: what is drawn, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.likeness import draw_likeness
from hpcsimkit.workloads import Mimic, default_workload

MONDAY = {"UnixStartTime": "1704067200"}  # 1 January 2024 0:00 UTC

ONE = Workload(
    {"submit_time": [0, 3600, 7200], "run_time": [50, 100, 0], "requested_time": [100, 100, 100], "nodes": [1, 2, 8]},
    header=MONDAY, name="one",
)  # fmt: skip
OTHER = Workload(
    {"submit_time": [3600, 5400], "run_time": [300, 95], "requested_time": [100, 100], "nodes": [3, 4]},
    header=MONDAY, name="other",
)  # fmt: skip


def heights(ax: Any) -> list[list[float]]:
    """The bars of the first workload, and those of the second."""
    return [[bar.get_height() for bar in box.patches] for box in ax.containers]


def test_arrivals_are_rates_in_the_time_that_a_log_saw() -> None:
    weekdays, hours = draw_likeness(ONE, OTHER).axes[:2]
    # one lasts three hours with three jobs, the other one hour with two
    assert heights(weekdays) == [[24, 0, 0, 0, 0, 0, 0], [48, 0, 0, 0, 0, 0, 0]]
    assert [bars[:4] for bars in heights(hours)] == [[1, 1, 1, 0], [0, 2, 0, 0]]
    assert [label.get_text() for label in weekdays.get_xticklabels()][:2] == ["Mon", "Tue"]


def test_sizes_and_accuracy() -> None:
    axes = draw_likeness(ONE, OTHER).axes
    third = 100 / 3
    assert heights(axes[2]) == [pytest.approx([third, third, 0, third]), [0, 0, 100, 0]]
    first, second = heights(axes[4])
    assert {place: bar for place, bar in enumerate(first) if bar} == pytest.approx(
        {0: third, 10: third, 20: third}
    )
    assert {place: bar for place, bar in enumerate(second) if bar} == {19: 50, 20: 50}


def test_durations() -> None:
    axes = draw_likeness(ONE, OTHER).axes
    run_times, gaps = ([line.get_xdata().tolist() for line in ax.lines] for ax in (axes[3], axes[5]))
    assert run_times == [[0, 50, 100], [0, 95, 300]]
    assert gaps == [[0, 3600], [0, 1800]]


def test_clock_without_a_calendar(tmp_path: Path) -> None:
    log = default_workload(np.random.default_rng(1), jobs=300)
    figure = draw_likeness(log, Mimic(log).generate(300, np.random.default_rng(2)))
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list("1234567")
    assert "second 0" in figure.axes[1].get_xlabel()
    assert save_figure(figure, tmp_path / "x.png").stat().st_size > 10_000
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["lublin-256: 300 jobs", "lublin-256-mimic: 300 jobs"]


def test_nothing_to_compare() -> None:
    with pytest.raises(WorkloadError, match="burst: submissions at different times"):
        draw_likeness(ONE, Workload({"submit_time": [1], "run_time": [1], "nodes": [1]}, name="burst"))
