"""Pictures and tables of waits by class and by group, and their way through a results folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.classes import draw_classes, draw_groups
from hpcsimkit.reports.partition_plots import draw_partitions
from hpcsimkit.reports.report import write_report
from hpcsimkit.reports.saved_results import SavedResults
from hpcsimkit.results.result import Result


def waits(columns: dict[str, list[int]], wait: list[int], **labels: tuple[str, ...]) -> Result:
    """A result of jobs of one node and 100 s, submitted at 0, with given waits."""
    jobs = len(wait)
    given = {"submit_time": [0] * jobs, "run_time": [100] * jobs, "nodes": [1] * jobs, **columns}
    workload = Workload(given, machine_size=4, labels=labels)
    start = np.array(wait)
    ones = np.ones(jobs, dtype=np.uint8)
    return Result(
        workload, "x", 4, workload.submit_time, start, start + 100, ones, np.zeros(jobs, dtype=bool)
    )


def test_groups_by_hand() -> None:
    columns = {"queue": [0, 0, 1, 1], "partition": [0, 0, 1, 1], "user": [7, 8, 7, 7], "qos": [2, 2, 2, 2]}
    names = {"queue": ("day", "night"), "partition": ("day", "night")}
    results = {
        "a": waits(columns, [0, 60, 120, 240], **names),
        "b": waits(columns, [0, 0, 60, 60], **names),
    }
    picture = draw_groups(results)
    assert picture is not None
    headings = [ax.get_title(loc="left") for ax in picture.figure.axes]
    assert headings == ["By partition", "By user"]  # the queue is the partition, and there is one QOS
    tables = dict(picture.tables)
    assert list(tables["By partition"].index) == ["day", "night"]
    assert tables["By partition"].to_numpy().tolist() == [
        ["2", "50.0%", "30 s", "0 s"],
        ["2", "50.0%", "3 min", "1 min"],
    ]
    assert tables["By user"].to_numpy().tolist() == [
        ["3", "75.0%", "2 min", "40 s"],
        ["1", "25.0%", "1 min", "0 s"],
    ]


def test_the_smallest_groups_share_a_row() -> None:
    many = {"user": [1] * 5 + list(range(2, 15))}
    picture = draw_groups({"a": waits(many, [10] * 18)})
    assert picture is not None
    table = dict(picture.tables)["By user"]
    assert len(table) == 11
    assert table.iloc[-1].tolist() == ["4", "22.2%", "10 s"]
    assert table.index[-1] == "other (4 groups)"
    assert picture.figure.axes[0].get_xticklabels()[-1].get_text() == "other (4)"


def test_no_groups_without_columns() -> None:
    results = {"a": waits({}, [0, 9])}
    assert draw_groups(results) is None
    assert len(draw_classes(results).figure.axes) == 1


def test_groups_of_a_log_reach_the_page(tmp_path: Path) -> None:
    fields = "{} {} -1 60 2 -1 -1 2 90 -1 1 {} 3 {} 1 -1 -1 -1"
    rows = [fields.format(job + 1, 10 * job, job % 2, 20 + job % 3) for job in range(30)]
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n" + "\n".join(rows) + "\n")
    experiment = Experiment(log=str(tmp_path / "log.swf"), policies=["fcfs"], report=False)
    Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    saved = SavedResults.read(tmp_path / "out").results["fcfs"].workload
    assert saved.executable.tolist() == [20, 21, 22] * 10
    page = write_report(tmp_path / "out").read_text()
    for heading in ("<summary>By user</summary>", "<summary>By executable</summary>"):
        assert heading in page
    assert "By queue" not in page
    (tmp_path / "out" / "schedules" / "fcfs.swf").unlink()
    assert "By executable" not in write_report(tmp_path / "out").read_text()


def test_waits_and_busy_share_by_partition() -> None:
    """Day has twice the work of night and comes first; its jobs of 100 s keep a quarter of 4 nodes busy each."""
    columns = {"partition": [1, 0, 0]}
    names = {"partition": ("day", "night")}
    results = {"a": waits(columns, [0, 0, 100], **names), "b": waits(columns, [50, 0, 0], **names)}
    picture = draw_partitions(results)
    assert picture is not None
    day, busy_by_day, night, busy_by_night = picture.figure.axes
    assert [ax.get_title(loc="left") for ax in (day, night)] == ["day", "night"]
    assert [line.get_ydata()[0] for line in day.lines] == [50, 100]
    assert [line.get_ydata()[0] for line in night.lines] == [100, 0]
    for ax, most in ((busy_by_day, [25, 50]), (busy_by_night, [25, 25])):
        assert [patch.get_data().values.max() for patch in ax.patches] == pytest.approx(most)
    assert draw_partitions({"a": waits({"partition": [1, 1]}, [0, 0], **names)}) is None
    assert draw_partitions({"a": waits({}, [0, 0])}) is None
