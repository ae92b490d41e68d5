"""`sweep`, as a user types it."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from hpcsimkit.experiments.sweep import sweep_run
from hpcsimkit.experiments.sweep.results import SweepResults
from hpcsimkit.reports.sweep import report, texts
from tests.cli.conftest import CLI, Start

SWEEP = """
policies = ["fcfs", "fcfs+easy"]
jobs = 200
report = false
[sweep]
seed = { first = 0, count = 3 }
load_factor = [1.0, 1.2]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.toml").write_text(SWEEP)
    return tmp_path / "s.toml"


def rows_of(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "cells.csv").read_text().splitlines()))


def test_a_file(cli: CLI, file: Path, tmp_path: Path) -> None:
    outcome = cli("sweep", "s.toml", "--out", "out")
    assert outcome == (0, "results: out/cells.csv\n", "")
    rows = rows_of(tmp_path / "out")
    assert [(row["policy"], row["seed"], row["load_factor"]) for row in rows][:3] == [
        ("fcfs", "0", "1"), ("fcfs+easy", "0", "1"), ("fcfs", "0", "1.2"),
    ]  # fmt: skip
    assert {row["status"] for row in rows} == {"done"}
    assert len(rows) == 12
    assert cli("sweep", "--status", "out").out == "12 cells: 12 completed, 0 failed, 0 running, 0 pending\n"
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert provenance["cells"] == {"done": 12}
    assert cli("sweep", "out/sweep.toml", "--out", "again", "-q") == (0, "", "")
    assert [row["schedule_sha256"] for row in rows_of(tmp_path / "again")] == [
        row["schedule_sha256"] for row in rows
    ]


def test_a_finished_sweep_is_written_again_only_after_a_change(
    cli: CLI, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(file.read_text().replace("report = false\n", ""))
    out = tmp_path / "out"
    monkeypatch.setattr(
        report, "write_sweep_report", lambda place: (place / "report.html").write_text("drawn")
    )
    monkeypatch.setattr(texts, "headline", lambda table: "")
    monkeypatch.setattr(SweepResults, "remarks", lambda results: [])

    def unchanged(*flags: str) -> bool:
        """Whether the sweep says that nothing has changed; then all files are as they were."""
        before = {file: file.stat().st_mtime_ns for file in out.glob("*.*") if not file.match("sweep.*")}
        said = cli("sweep", "s.toml", "--out", "out", *flags).out.splitlines()
        same = bool(before) and all(file.stat().st_mtime_ns == time for file, time in before.items())
        nothing = ["all 12 cells were finished, and nothing has changed"] * same
        assert said == [*nothing, "results: out/report.html"]
        return same

    assert [unchanged(), unchanged()] == [False, True]
    flags = ("--baseline", "fcfs+easy")
    assert [unchanged(*flags), unchanged(*flags), unchanged()] == [False, True, False]
    (out / "report.html").unlink()
    assert cli("sweep", "s.toml", "--out", "out", "-q").code == 0
    assert (out / "report.html").is_file()
    shutil.rmtree(next((out / "cells").iterdir()))
    assert [unchanged(), unchanged()] == [False, True], "a cell was performed again"
    monkeypatch.setattr(sweep_run, "hash_of_kit", lambda: "another version")
    assert [unchanged(), unchanged()] == [False, True]


def test_flags_add_to_a_file(cli: CLI, file: Path, tmp_path: Path) -> None:
    flags = ["--axis", "seed=7", "--axis", "walltime=run,kill", "-p", "sjf", "--out", "out"]
    assert cli("sweep", "s.toml", *flags).code == 0
    found = {
        (row["policy"], row["seed"], row["load_factor"], row["walltime"]) for row in rows_of(tmp_path / "out")
    }
    assert found == {("sjf", "7", load, treatment) for load in ("1", "1.2") for treatment in ("run", "kill")}


def test_shards_and_what_they_collect(cli: CLI, file: Path, tmp_path: Path) -> None:
    assert "out: a folder of a sweep is needed" in cli("sweep", "s.toml", "--out", "out", "--collect").line()
    assert not (tmp_path / "out").exists()
    first = cli("sweep", "s.toml", "--out", "out", "--shard", "1/2")
    assert first.out.splitlines()[0] == "12 cells: 6 completed, 0 failed, 0 running, 6 pending"
    line = cli("sweep", "s.toml", "--out", "out", "--collect").line()
    assert line == "out: 6 of 12 cells are missing; run their shards"
    assert cli("sweep", "s.toml", "--out", "out", "--shard", "2/2", "-q") == (0, "", "")
    assert cli("sweep", "s.toml", "--out", "out", "--collect") == (0, "results: out/cells.csv\n", "")
    assert len(rows_of(tmp_path / "out")) == 12


def test_seeds_of_a_log_make_no_p_values(cli: CLI, tmp_path: Path) -> None:
    """Twelve times the same schedules gave t-tests of 1e-174 and twelve wins: a policy runs once, and it is said."""
    assert cli("generate", "lublin", "--nodes", 16, "--jobs", 200, "-o", "log.swf", "-q").code == 0
    policies = ["fcfs+easy", "sjf+easy", "saf+easy"]
    flags = [flag for policy in policies for flag in ("-p", policy)]
    outcome = cli("sweep", "log.swf", "--jobs", 100, "--axis", "seed=0:12", *flags, "--out", "out")
    assert outcome.code == 0, outcome.err
    rows = rows_of(tmp_path / "out")
    assert [(row["policy"], row["seed"]) for row in rows] == [(policy, "") for policy in policies]
    remark = (
        "seed: fcfs+easy, sjf+easy and saf+easy ran once: on a log, a seed changes only policies that draw"
    )
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["remarks"][-1].startswith(remark)
    assert remark in outcome.out and "(" not in outcome.out.splitlines()[1], "there are no intervals"
    page = (tmp_path / "out" / "report.html").read_text()
    assert remark in page and "<td>one replicate</td>" in page and "Average ranks" not in page
    tables = tmp_path / "out" / "tables"
    latex = (tables / "mean_wait_time_differences.tex").read_text()
    assert latex.count("one replicate") == 4 and remark in latex and "*" not in latex
    (first, _) = csv.DictReader((tables / "mean_wait_time_differences.csv").read_text().splitlines())
    assert (first["t_test_holm"], first["wilcoxon_holm"], first["replicates"]) == ("", "", "1")
    assert remark in first["remarks"]
    assert not list(tables.glob("*_ranks.*")) and not list(
        (tmp_path / "out" / "pictures").glob("*_differences.*")
    )


def test_windows_are_counted_before_they_run(cli: CLI, tmp_path: Path) -> None:
    cli("generate", "lublin", "--nodes", 16, "--jobs", 200, "-o", "log.swf", "-q")
    line = cli("sweep", "log.swf", "--axis", "period=1 second", "--out", "out").line()
    assert (
        line
        == "the sweep has more than 20 000 cells (windows of a log count one by one); with --yes they run"
    )
    assert not (tmp_path / "out").exists()


def test_a_shard_without_cells(cli: CLI, file: Path, tmp_path: Path) -> None:
    """As in an array of jobs with more parts than there are cells."""
    no_cells = "shard 13/14 has no cells: the sweep has 12\n"
    assert cli("sweep", "s.toml", "--out", "out", "--shard", "13/14") == (0, no_cells, "")
    assert cli("sweep", "s.toml", "--out", "out", "--shard", "14/14", "-q") == (0, "", "")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--axis", "sed=1,2"], "--axis: unknown axis 'sed'; nearest: seed"),
        (["--axis", "seed"], "--axis needs key=value,value,..., found 'seed'"),
        (["--axis", "seed="], "--axis: seed: at least one value is needed"),
        (
            ["--axis", "seed=0:100000", "--axis", "skip=0:10"],
            "the sweep has 4 000 000 cells; with --yes they run",
        ),
        (["--shard", "3/2"], "--shard: I/N with I from 1 to N is needed, found '3/2'"),
        (["--baseline", "sjf"], "--baseline: one of the policies is needed (fcfs, fcfs+easy), found 'sjf'"),
        (["--metric", "wait"], "--metric: unknown metric 'wait'"),
        (["--status", "nowhere"], "nowhere: a folder of a sweep is needed; sweep.json is missing or damaged"),
    ],
)
def test_wrong_input(cli: CLI, file: Path, tmp_path: Path, flags: list[str], message: str) -> None:
    line = cli("sweep", "s.toml", "--out", "out", *flags).line()
    assert line.startswith(message)
    assert not (tmp_path / "out").exists()


def test_the_line_of_a_wrong_axis(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP + "loud = [1]\n")
    line = cli("sweep", "s.toml", "--out", "out").line()
    assert line == "s.toml:5: sweep: unknown axis 'loud'; nearest: log"


POLICY = """
import os, time
from hpcsimkit.kernel.policy import Order

class Slow(Order):
    def key(self, job):
        if not os.path.exists("go"):
            open("begun", "w").close()
            time.sleep(60)
        return job.id
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_killed_and_gone_on(start: Start, apart: CLI, file: Path, tmp_path: Path) -> None:
    """What is finished is not done again; the table is that of a sweep that was never killed."""
    (tmp_path / "mine.py").write_text(POLICY)
    flags = ["-p", "fcfs", "-p", "mine:Slow", "--axis", "load_factor=1", "--workers", 2, "-q", "--out", "out"]
    for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM):
        (tmp_path / "begun").unlink(missing_ok=True)
        process = start("sweep", "s.toml", *flags)
        while not (tmp_path / "begun").exists() or not list(tmp_path.glob("out/cells/*/outcome.json")):
            assert process.poll() is None
        line = apart("sweep", "s.toml", *flags).line()
        assert line.startswith("out: another run is writing there now (process ")
        process.send_signal(number)
        process.communicate()
    finished = {file: file.stat().st_mtime_ns for file in tmp_path.glob("out/cells/*/outcome.json")}
    assert finished
    (tmp_path / "go").touch()
    assert apart("sweep", "s.toml", *flags) == (0, "", "")
    assert {file: file.stat().st_mtime_ns for file in finished} == finished
    assert not list(tmp_path.rglob(".*.tmp"))
    flags[-1] = "straight"
    assert apart("sweep", "s.toml", *flags) == (0, "", "")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "straight")


def test_failed_cells_and_another_try(cli: CLI, apart: CLI, file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY.replace("if not", "if 1/0 and not"))
    outcome = apart("sweep", "s.toml", "-p", "fcfs", "-p", "mine:Slow", "--out", "out")
    some_failed = "hpcsimkit: 6 of 12 cells failed; reasons are in out\n"
    assert (outcome.code, outcome.err) == (3, some_failed)
    assert apart("sweep", "s.toml", "-p", "fcfs", "-p", "mine:Slow", "--out", "out", "-q") == (
        3,
        "",
        some_failed,
    ), "also of cells that failed before, and quietly"
    assert re.search(
        r"^failed: \d of 12 cells: mine:Slow at t=\d+ s, in Slow for job 1: Zero", outcome.out, re.M
    )
    rows = rows_of(tmp_path / "out")
    assert [row["status"] for row in rows] == ["done", "failed"] * 6
    state = cli("sweep", "--status", "out").out
    assert "12 cells: 6 completed, 6 failed" in state
    assert "failed: mine:Slow at t=" in state
    (tmp_path / "mine.py").write_text(POLICY.replace("if not", "if 0 and not"))
    assert apart("sweep", "s.toml", "-p", "fcfs", "-p", "mine:Slow", "--out", "out", "-q").code == 0
    assert {row["status"] for row in rows_of(tmp_path / "out")} == {"done"}, "changed code makes new cells"


def test_failure_of_all_cells(apart: CLI, file: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(POLICY.replace("if not", "if 1/0 and not"))
    outcome = apart("sweep", "s.toml", "-p", "mine:Slow", "--out", "out")
    assert outcome.code == 3
    assert outcome.err == "hpcsimkit: all 6 cells failed; reasons are in out\n"
    assert "results: out/" in outcome.out, "the table has the reasons"
    assert apart("sweep", "--status", "out").code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
@pytest.mark.parametrize("engine", ["processes:1", "processes:2"])
def test_a_full_disk_is_no_failure_of_a_cell(
    start: Start, apart: CLI, file: Path, tmp_path: Path, engine: str
) -> None:
    """Files of at most 10 kB, which the tables of 500 jobs exceed: the sweep ends at once, and goes on later."""

    def small_files() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))

    flags = ["s.toml", "--out", "out", "--axis", "jobs=50,500", "--engine", engine]
    process = start("sweep", *flags, before=small_files)
    _, err = process.communicate()
    assert process.returncode == 2
    assert re.fullmatch(
        r"hpcsimkit: out/cells/\w+/jobs.parquet: cannot be written: File too large; "
        r"(\d+) of 24 cells are finished; the same command goes on\n",
        err,
    ), err
    assert not [*tmp_path.glob("out/cells/*/failure.json"), *tmp_path.glob("out/cells/*/.*.tmp")]
    assert apart("sweep", *flags, "-q") == (0, "", "")
    assert {row["status"] for row in rows_of(tmp_path / "out")} == {"done"}


# --- results of other code, and of no code ---------------------------------------------------------------


def test_a_change_of_a_helper_runs_the_cells_again(apart: CLI, log: Path, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("SIGN = 1\n")
    (tmp_path / "mine.py").write_text(
        "from helper import SIGN\nfrom hpcsimkit import Order\n\n"
        "class Mine(Order):\n    def key(self, job):\n        return SIGN * job.nodes\n"
    )
    words = (
        "sweep",
        log,
        "-p",
        "fcfs",
        "-p",
        "mine:Mine",
        "--axis",
        "seed=0",
        "--no-report",
        "-q",
        "--allow-code",
        "helper",
    )
    assert apart(*words, "--out", "out") == (0, "", "")
    before = {row["policy"]: row for row in rows_of(tmp_path / "out")}
    (tmp_path / "helper.py").write_text("SIGN = -1\n")
    assert apart(*words, "--out", "out") == (0, "", "")
    after = {row["policy"]: row for row in rows_of(tmp_path / "out")}
    assert after["fcfs"] == before["fcfs"], "not performed again"
    assert apart(*words, "--out", "new") == (0, "", "")
    assert after == {row["policy"]: row for row in rows_of(tmp_path / "new")} != before


def test_a_changed_number_is_noticed(cli: CLI, file: Path, tmp_path: Path) -> None:
    assert cli("sweep", "s.toml", "--out", "out", "-q") == (0, "", "")
    before = rows_of(tmp_path / "out")
    outcome = tmp_path / "out" / "cells" / before[3]["cell"] / "outcome.json"
    text = outcome.read_text()
    number = f'"mean_wait_time": {json.loads(text)["outcome"]["metrics"]["mean_wait_time"]}'
    assert number in text
    outcome.write_text(text.replace(number, '"mean_wait_time": 1.5'))
    assert cli("sweep", "--status", "out").code == 0
    assert cli("sweep", "s.toml", "--out", "out", "-q") == (0, "", "")
    assert rows_of(tmp_path / "out") == before
    assert outcome.read_text() == text
    (tmp_path / "out" / "sweep.json").write_text((tmp_path / "out" / "sweep.json").read_text() + " ")
    assert cli("sweep", "--status", "out").code == 0
    changed = (tmp_path / "out" / "sweep.json").read_text().replace("load_factor", "load")
    (tmp_path / "out" / "sweep.json").write_text(changed)
    assert "sweep.json is missing or damaged" in cli("sweep", "--status", "out").line()
