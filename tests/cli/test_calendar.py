"""The calendar as a flag and as tables."""

from __future__ import annotations

from pathlib import Path

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.experiments.comparison.experiment import Experiment
from tests.cli.conftest import CLI


def test_a_calendar_on_the_command_line_and_in_toml(tmp_path: Path, cli: CLI) -> None:
    """A flag and tables give the same schedule, another one than none; the record says which windows."""
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n1 0 -1 50 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n")
    (tmp_path / "calendar.toml").write_text("[[calendar]]\nstart = 10\nend = 90\nnodes = 1\n")
    (tmp_path / "x.toml").write_text(
        'log = "log.swf"\npolicies = ["fcfs"]\n[[calendar]]\nstart = 10\nend = 90\nnodes = 1\n'
    )
    assert (
        cli("compare", "log.swf", "-p", "fcfs", "--calendar", "calendar.toml", "--out", "a", "-q").code == 0
    )
    assert cli("compare", "x.toml", "--out", "b", "-q").code == 0
    for name in "ab":
        text = (tmp_path / name / "jobs" / "fcfs.csv").read_text()
        assert ",90," in text.splitlines()[1], text
    again = cli("compare", "log.swf", "-p", "fcfs", "--out", "a", "-q")
    assert again.code == 2 and "calendar" in again.err
    found = cli("compare", "log.swf", "-p", "optimization", "--calendar", "calendar.toml", "--out", "c", "-q")
    assert found.code == 2 and "Optimization() knows no calendar" in found.err
    experiment = Experiment.read(tmp_path / "x.toml")
    assert experiment.setup.record["calendar"] == [{"start": 10, "end": 90}]
    assert experiment.windows == Calendar([Window(10, 90)])


def test_a_reservation_on_homogeneous_nodes(tmp_path: Path, cli: CLI) -> None:
    """User 1 waits for the end of the window of user 7; tables of jobs name no machines."""
    (tmp_path / "log.swf").write_text("; MaxProcs: 4\n1 0 -1 50 4 -1 -1 4 60 -1 1 1 1 -1 -1 -1 -1 -1\n")
    (tmp_path / "course.toml").write_text("[[calendar]]\nstart = 10\nend = 90\nnodes = 2\nusers = [7]\n")
    assert cli("compare", "log.swf", "-p", "fcfs", "--calendar", "course.toml", "--out", "a", "-q").code == 0
    heading, job = (tmp_path / "a" / "jobs" / "fcfs.csv").read_text().splitlines()
    assert ",90," in job and "machines" not in heading
