"""Differences of schedules: counts and changes computed by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.difference import draw_difference, plot_changes, plot_moves
from hpcsimkit.reports.report import write_report
from hpcsimkit.results.difference import compare_results, summarize_moves
from hpcsimkit.results.result import Result

COLUMNS = {
    "submit_time": [0, 0, 0, 0, 0],
    "run_time": [100] * 5,
    "nodes": [1, 1, 2, 2, 2],
    "queue": [0, 1, 0, 1, 1],
}
WORKLOAD = Workload(COLUMNS, machine_size=8, labels={"queue": ("day", "night")})


def starting(*start: int, workload: Workload = WORKLOAD) -> Result:
    """A result with given start times; -1 is a rejected job."""
    starts = np.array(start)
    end = np.where(starts < 0, -1, starts + 100)
    mode = (starts >= 0).astype(np.uint8)
    return Result(workload, "x", 8, workload.submit_time, starts, end, mode, np.zeros(len(start), dtype=bool))


FIRST, SECOND = starting(0, 100, 200, 300, 5), starting(0, 40, 260, 3900, -1)


def test_jobs_by_hand() -> None:
    table = compare_results(FIRST, SECOND)
    assert table.change.tolist()[:4] == [0, -60, 60, 3600]
    assert np.isnan(table.change[4])
    assert table.move.tolist() == ["same", "earlier", "later", "later", "one only"]
    assert compare_results(SECOND, FIRST).change.tolist()[:4] == [0, 60, -60, -3600]


def test_summary_by_hand() -> None:
    table = summarize_moves(FIRST, SECOND, "queue")
    assert table.index.tolist() == ["day", "night", "all"]
    assert table[["jobs", "earlier", "same", "later", "one only"]].to_numpy().tolist() == [
        [2, 0, 1, 1, 0],
        [3, 1, 0, 1, 1],
        [5, 1, 1, 2, 1],
    ]
    assert table.mean_change.tolist() == [30, 1770, 900]
    assert table.least_change.tolist() == [0, -60, -60]
    assert table.largest_change.tolist() == [60, 3600, 3600]
    assert summarize_moves(FIRST, SECOND).index.tolist() == ["1", "2", "all"]
    assert summarize_moves(FIRST, SECOND, "queue", top=1).index.tolist() == ["night", "day", "all"]


def test_other_jobs_are_refused() -> None:
    with pytest.raises(UsageError, match="results of the same jobs are needed"):
        compare_results(FIRST, starting(0, 1, workload=WORKLOAD.first(2)))


def test_picture_by_hand() -> None:
    results = {"a": FIRST, "b": SECOND, "c": FIRST}
    picture = draw_difference(results)
    assert picture is not None
    assert picture.title == "Difference from a"
    tables = dict(picture.tables)
    assert tables["By queue"].to_numpy().tolist() == [
        ["3", "33 / 0 / 33, +29.5 min", "0 / 100 / 0, 0 s"],
        ["2", "0 / 50 / 50, +30 s", "0 / 100 / 0, 0 s"],
        ["5", "20 / 20 / 40, +15 min", "0 / 100 / 0, 0 s"],
    ]
    assert list(tables) == ["By size [nodes]", "By queue"]
    assert draw_difference({"a": FIRST}) is None
    assert draw_difference({"a": FIRST, "b": starting(-1, -1, -1, -1, -1)}) is None


def test_curves_and_bars_by_hand() -> None:
    moves = {"b": compare_results(FIRST, SECOND)}
    line = plot_changes(moves).lines[0]
    assert line.get_xdata().tolist() == [-60, 0, 60, 3600]
    assert line.get_ydata().tolist() == [25, 50, 75, 100]
    bars = plot_moves(moves).containers
    assert [(bar.get_label(), bar.patches[0].get_x(), bar.patches[0].get_width()) for bar in bars] == [
        ("earlier", 0, 20),
        ("same", 20, 20),
        ("later", 40, 40),
    ]


def test_difference_reaches_the_page(tmp_path: Path) -> None:
    experiment = Experiment(jobs=100, policies=["fcfs", "fcfs+easy"], report=False)
    Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    page = write_report(tmp_path / "out").read_text()
    assert '<section id="difference"' in page
    assert "<h2>Difference from fcfs</h2>" in page
