"""Metrics of the user in comparisons and sweeps: columns of the results, noticed when they change, and bad ones."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from hpcsimkit.experiments.sweep.results import SweepResults
from hpcsimkit.results.metrics import METRICS
from tests.cli.conftest import CLI, cli

__all__ = ["cli"]

MINE = """
from hpcsimkit.results.metrics import Metric
LONG = Metric("long", "jobs", "jobs", "lower", "Long jobs", lambda result, jobs: float((result.wait_time > {limit}).sum()))
NEUTRAL = Metric("neutral", "1", "1", "none", "Number of jobs", lambda result, jobs: float(len(result.workload)))
BROKEN = Metric("broken", "1", "1", "lower", "Broken", lambda result, jobs: 1 / 0)
TEXT = Metric("text", "1", "1", "lower", "Text", lambda result, jobs: "many")
OTHER = 3
"""
SMALL = ["-p", "fcfs", "-p", "sjf+easy", "--jobs", "200", "--no-report"]


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of metrics; METRICS is as before afterwards."""
    monkeypatch.setattr(METRICS, "own", {})
    (tmp_path / "mine.py").write_text(MINE.format(limit=60))
    return tmp_path / "mine.py"


def forget() -> None:
    for name in [name for name in sys.modules if name.partition("@")[0] == "mine"]:
        del sys.modules[name]


def column(file: Path, name: str) -> list[float]:
    with file.open() as lines:
        return [float(row[name]) for row in csv.DictReader(lines)]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["mine:LONG", "mine.py:LONG"])
def test_a_column_of_the_comparison(cli: CLI, tmp_path: Path, name: str, workers: int) -> None:
    done = cli("compare", *SMALL, "--metric", name, "-m", "makespan", "--out", "out", "--workers", workers)
    assert done.code == 0, done.err
    assert f"policy    {name} [jobs]  makespan [s]" in done.out and "utilisation" not in done.out
    found = column(tmp_path / "out" / "metrics.csv", name)
    assert found == [
        sum(value > 60 for value in column(tmp_path / "out" / "jobs" / f"{policy}.csv", "wait_time"))
        for policy in ("fcfs", "sjf+easy")
    ]
    assert found[0] > found[1] > 0
    again = cli("compare", "out/experiment.toml", "--out", "again", "--no-report", "-q")
    assert again.code == 2 and "--allow-code mine" in again.err  # a file does not consent to code
    flags = ["--allow-code", name.partition(":")[0], "--out", "again", "--no-report", "-q"]
    assert cli("compare", "out/experiment.toml", *flags) == (0, "", "")
    assert (tmp_path / "out/metrics.csv").read_bytes() == (tmp_path / "again/metrics.csv").read_bytes()


def test_no_column_where_it_is_not_named(cli: CLI, tmp_path: Path) -> None:
    """Not even in a process that has imported the metric."""
    listed = [*METRICS]
    cli("compare", *SMALL, "--metric", "mine:LONG", "--out", "one", "-q")
    assert [*METRICS] == listed and len(METRICS) == len(listed) and METRICS["mine:LONG"].unit == "jobs"
    cli("compare", *SMALL, "--out", "other", "-q")
    one, other = (
        json.loads((tmp_path / name / "metrics.json").read_text())["fcfs"] for name in ("one", "other")
    )
    assert set(one) - set(other) == {"mine:LONG"} and set(other) < set(one)


def test_a_column_of_a_sweep_is_computed_anew_where_its_code_changed(
    cli: CLI, tmp_path: Path, mine: Path
) -> None:
    flags = ["-p", "fcfs", "--jobs", "300", "--axis", "seed=0:2", "--no-report", "--out", "out", "-q"]
    found = []
    for limit in (60, 100_000):
        mine.write_text(MINE.format(limit=limit))
        forget()
        assert cli("sweep", *flags, "--metric", "mine:LONG") == (0, "", "")
        found.append(SweepResults(tmp_path / "out").to_frame()["mine:LONG"].tolist())
        assert column(tmp_path / "out" / "cells.csv", "mine:LONG") == found[-1]
    assert found[0] != found[1]
    assert all(before >= after for before, after in zip(*found, strict=True))
    cells = set((tmp_path / "out" / "cells").iterdir())
    assert cli("sweep", *flags) == (0, "", "")
    assert len(set((tmp_path / "out" / "cells").iterdir()) - cells) == 2  # without the metric, other cells


@pytest.mark.usefixtures("blank_pictures")
def test_the_report_has_a_row_also_where_the_code_is_not_imported(
    cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("compare", *SMALL[:-1], "--metric", "mine:NEUTRAL", "--out", "out", "-q")
    monkeypatch.setattr(METRICS, "own", {})
    assert cli("plot", "out", "-q").code == 0
    assert "mine:NEUTRAL" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize("command", [["compare"], ["sweep", "--axis", "seed=0:2"]])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("make_span", "--metric: unknown metric 'make_span'; nearest: makespan"),
        ("mine:MISSING", "'mine:MISSING'"),
        ("mine:OTHER", "'mine:OTHER' needs a Metric, found 3"),
        ("absent.py:LONG", "absent.py"),
    ],
)
def test_bad_names(cli: CLI, command: list[str], name: str, message: str, tmp_path: Path) -> None:
    done = cli(*command, *SMALL, "--metric", name, "--out", "out")
    assert done.code == 2 and message in done.err and done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("BROKEN", "ZeroDivisionError: division by zero"), ("TEXT", "ValueError")]
)
def test_broken_metrics(cli: CLI, name: str, message: str) -> None:
    done = cli("compare", *SMALL, "--metric", f"mine:{name}", "--out", "out")
    assert done.code == 2 and f"'mine:{name}' cannot be computed: {message}" in done.err
    assert "Traceback" not in done.err
