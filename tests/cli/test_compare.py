"""`compare`: what it prints, what it writes, and that it can be repeated."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

from hpcsimkit._version import __version__
from hpcsimkit.experiments.comparison.experiment import STANDARD_POLICIES
from hpcsimkit.experiments.console import HEADLINES
from hpcsimkit.reports.report import SUMMARY
from hpcsimkit.workloads import read_swf

COLUMNS = [
    "job_id", "submit_time", "start_time", "end_time", "wait_time", "run_time", "requested_time", "nodes", "mode",
]  # fmt: skip

# On 8 nodes, by hand. FCFS: 1 runs 100-150 on 4 nodes; 2 needs all 8, starts at 150, ends at 200; 3 and 4 wait
# for it. EASY: 2 is reserved for 160 (the estimate of 1); 4 may backfill (111 + 30 <= 160), 3 may not
# (110 + 100 > 160, no node is left over then).
STARTS = {"fcfs": [100, 150, 200, 200], "fcfs+easy": [100, 150, 200, 111]}
MODES = {
    "fcfs": ["ready", "ready", "ready", "ready"],
    "fcfs+easy": ["ready", "reserved", "reserved", "backfilled"],
}


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tables(folder: Path) -> dict[str, bytes]:
    """The tables of jobs and the schedules of a results folder, byte by byte."""
    files = [path for name in ("jobs", "schedules") for path in sorted((folder / name).iterdir())]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
def test_without_arguments(shell, tmp_path) -> None:
    outcome = shell()
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("lublin-256: 5 000 jobs kept on 256 nodes, offered load 0.90, none skipped")
    start = next(number for number, line in enumerate(lines) if line.startswith("policy"))
    assert [line.split()[0] for line in lines[start + 1 : start + 9]] == list(STANDARD_POLICIES)
    assert lines[-1] == f"results: {Path('results', 'lublin-256', 'report.html')}"
    folder = tmp_path / "results" / "lublin-256"
    assert "<svg" in (folder / "report.html").read_text()
    assert {path.stem for path in (folder / "jobs").glob("*.csv")} == set(STANDARD_POLICIES)
    assert len(rows(folder / "jobs" / "fcfs.csv")) == 5000


@pytest.mark.smoke
def test_flags_without_a_command_are_those_of_compare(cli, tmp_path) -> None:
    outcome = cli("--jobs", 30, "--nodes", 16, "-p", "fcfs", "--no-report", "--out", "x")
    assert outcome.out.startswith("lublin-16: 30 jobs kept on 16 nodes")
    assert (tmp_path / "x" / "metrics.csv").is_file()


@pytest.mark.smoke
def test_the_files_of_the_contract(cli, log, tmp_path) -> None:
    assert cli("compare", log, "-p", "fcfs", "-p", "fcfs+easy", "--out", "out").code == 0
    files = {
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()
    }
    policies = ("fcfs", "fcfs+easy")
    assert files == {
        "metrics.csv", "metrics.json", "provenance.json", "provenance.run.json", "experiment.toml", "report.html",
        *(f"jobs/{policy}.{kind}" for policy in policies for kind in ("csv", "parquet")),
        *(f"schedules/{policy}.swf" for policy in policies),
    }  # fmt: skip
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("out")] == ["out"]


@pytest.mark.parametrize("policy", STARTS)
def test_tables_of_jobs_by_hand(cli, log, tmp_path, policy) -> None:
    cli("compare", log, "-p", policy, "--out", "out", "--no-report")
    table = rows(tmp_path / "out" / "jobs" / f"{policy}.csv")
    assert list(table[0])[: len(COLUMNS)] == COLUMNS
    assert [int(row["job_id"]) for row in table] == [1, 2, 3, 4]
    assert [int(row["submit_time"]) for row in table] == [100, 109, 110, 111]
    assert [int(row["start_time"]) for row in table] == STARTS[policy]
    assert [row["mode"] for row in table] == MODES[policy]
    for row in table:
        assert int(row["end_time"]) == int(row["start_time"]) + int(row["run_time"])
        assert int(row["wait_time"]) == int(row["start_time"]) - int(row["submit_time"])
    assert [int(row["requested_time"]) for row in table] == [60, 60, 100, 30]
    assert [int(row["nodes"]) for row in table] == [4, 8, 2, 2]


def test_csv_and_parquet_say_the_same(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs+easy", "--out", "out", "--no-report")
    table = pandas.read_parquet(tmp_path / "out" / "jobs" / "fcfs+easy.parquet")
    text = pandas.read_csv(tmp_path / "out" / "jobs" / "fcfs+easy.csv")
    assert list(table) == list(text)
    for column in table:
        assert table[column].astype(str).tolist() == text[column].astype(str).tolist()


def test_schedule_as_log(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs+easy", "--out", "out", "--no-report")
    schedule = read_swf(tmp_path / "out" / "schedules" / "fcfs+easy.swf")
    assert schedule.machine_size == 8
    assert (schedule.submit_time + schedule.recorded_wait_time).tolist() == STARTS["fcfs+easy"]


def test_jobs_keep_the_order_of_the_log(cli, log, tmp_path) -> None:
    lines = log.read_text().splitlines()
    log.write_text("\n".join([lines[0], *reversed(lines[1:])]))
    cli("compare", log, "-p", "fcfs+easy", "--out", "out", "--no-report")
    table = rows(tmp_path / "out" / "jobs" / "fcfs+easy.csv")
    assert [int(row["job_id"]) for row in table] == [4, 3, 2, 1]
    assert [int(row["start_time"]) for row in table] == STARTS["fcfs+easy"][::-1]


def test_metrics_by_hand(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs", "-p", "fcfs+easy", "--out", "out", "--no-report")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())
    # fcfs+easy: waits 0, 41, 90, 0; the schedule lasts from 100 to 220
    assert metrics["fcfs+easy"]["mean_wait_time"] == (41 + 90) / 4
    assert metrics["fcfs+easy"]["max_wait_time"] == 90
    assert metrics["fcfs+easy"]["makespan"] == 120
    used = 50 * 4 + 50 * 8 + 20 * 2 + 10 * 2
    assert metrics["fcfs+easy"]["utilisation"] == pytest.approx(used / (8 * 120))
    assert metrics["fcfs"]["mean_wait_time"] == (41 + 90 + 89) / 4
    assert metrics["fcfs"]["user_fairness"] is None  # no users in the log
    table = {row["policy"]: row for row in rows(tmp_path / "out" / "metrics.csv")}
    assert list(table) == ["fcfs", "fcfs+easy"]
    for policy, values in metrics.items():
        assert {
            name: float(text) if text else None for name, text in table[policy].items() if name != "policy"
        } == values


def test_metrics_leave_out_warmup_and_cooldown(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs", "--warmup", 5, "--cooldown", 1, "--out", "out", "--no-report")
    metrics = json.loads((tmp_path / "out" / "metrics.json").read_text())["fcfs"]
    assert (metrics["jobs"], metrics["mean_wait_time"]) == (2, (41 + 90) / 2)


def test_table_marks_the_best(cli, log) -> None:
    out = cli("compare", log, "-p", "fcfs", "-p", "fcfs+easy", "--out", "out", "--no-report").out
    table = [re.split(r"\s{2,}", line) for line in out.splitlines() if line.startswith(("policy", "fcfs"))]
    assert table[0] == ["policy", *(name for name in HEADLINES.values() if "GPU" not in name)]
    assert table[1] == ["fcfs", "55", "65", "89.85", "90", "4.555", "0.6875", "120"]
    assert table[2] == ["fcfs+easy", "*32.75", "*20.5", "*82.65", "90", "*2.33", "0.6875", "120"]
    assert "* best of its column" in out


def test_a_load_without_waits_is_told(cli, log) -> None:
    flags = ("-p", "fcfs", "-p", "fcfs+easy", "--out", "out", "--no-report", "--load-factor")
    assert "load: no job waits under any policy" in cli("compare", log, *flags, "0.001").out
    assert "no job waits" not in cli("compare", log, *flags, "1").out


def test_table_and_page_show_the_same_metrics() -> None:
    assert tuple(HEADLINES) == tuple(SUMMARY)


def test_text_without_a_terminal_is_plain(apart, log) -> None:
    out = apart("compare", log, "-p", "fcfs", "-p", "sjf+easy", "--no-report").out
    assert re.fullmatch(r"[\n -~]*", out), "printable characters and line ends only"
    assert "…" not in out and "..." not in out


def test_what_was_loaded_is_said(cli, log) -> None:
    log.write_text(log.read_text() + "6 120 -1 -1 2 -1 -1 2 30" + " -1" * 9 + "\n")
    first = cli("compare", log, "-p", "fcfs", "--no-report").out.splitlines()[0]
    assert first.startswith(
        "tiny: 4 jobs kept on 8 nodes, offered load 7.50, 2 skipped: 1 run time unknown (first: line 7)"
    )
    assert first.endswith("1 larger than the machine of 8 nodes")


def test_quiet_prints_nothing(cli, log, tmp_path) -> None:
    outcome = cli("compare", log, "--quiet", "--out", "out")
    assert outcome == (0, "", "")
    assert (tmp_path / "out" / "report.html").is_file()


def test_progress_is_for_terminals_only(apart, log) -> None:
    assert apart("compare", log, "-p", "fcfs").err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_on_a_narrow_terminal_nothing_is_cut(log, tmp_path, command, environment) -> None:
    import pty

    ours, theirs = pty.openpty()
    flags = ["compare", str(log), "-p", "fcfs", "-p", "fcfs+easy", "--no-report"]
    environment = {**environment, "COLUMNS": "40", "TERM": "xterm"}
    with subprocess.Popen(
        [*command, *flags], cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        text = b""
        with contextlib.suppress(OSError):  # Linux: the other end is closed
            while part := os.read(ours, 65536):
                text += part
    os.close(ours)
    assert process.returncode == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.decode())
    assert "policies" in shown, "the progress bar"
    assert re.search(r"fcfs\+easy +\*32\.75 +\*20\.5 +\*82\.65 +90 +\*2\.33 +0\.6875 +120 ", shown)
    assert "\x1b[1;32m" in text.decode(), "the best values are coloured"


# --- provenance and repetition ---------------------------------------------------------------------------


def test_provenance(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs+easy", "--seed", 7, "--walltime", "kill", "--out", "out", "--no-report")
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert provenance["version"] == __version__
    assert provenance["packages"]["numpy"] == np.__version__
    assert provenance["seed"] == 7
    assert provenance["options"]["walltime"] == "kill"
    workload = provenance["workload"]
    assert workload["skipped"] == {"larger than the machine of 8 nodes": 1}
    assert workload["hash"] == read_swf(log).fitting(8).hash
    import hashlib

    assert workload["log_sha256"] == hashlib.sha256(log.read_bytes()).hexdigest()
    times = json.loads((tmp_path / "out" / "provenance.run.json").read_text())
    assert times["started"] <= times["finished"]
    assert times["policies"]["fcfs+easy"]["seconds"] > 0


@pytest.mark.parametrize(
    "flags",
    [
        ["--jobs", "60", "--nodes", "32", "--seed", "5"],
        ["--jobs", "60", "--skip", "10", "--load-factor", "1.3", "--walltime", "kill"],
        ["{log}"],
        ["{log}", "--jobs", "3", "--skip", "1", "--load-factor", "0.5", "--nodes", "9", "--period", "60"],
        ["{log}", "--dependencies", "--size", "allocated", "--walltime", "kill", "--warmup", "1"],
    ],
)
def test_saved_experiment_makes_the_same_folder(cli, log, tmp_path, flags) -> None:
    flags = [flag.format(log=log.name) for flag in flags]
    policies = ["-p", "random+easy", "-p", "fcfs+easy"]
    assert cli("compare", *flags, *policies, "--no-report", "--out", "first").code == 0
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert cli("compare", "../first/experiment.toml", "--out", "second").code == 0
    first, second = tmp_path / "first", tmp_path / "elsewhere" / "second"
    assert tables(first) == tables(second)
    for name in ("metrics.csv", "metrics.json", "experiment.toml"):
        assert (first / name).read_bytes() == (second / name).read_bytes()


def test_another_log_is_not_taken_for_the_one_meant(cli, log) -> None:
    cli("compare", log, "-p", "fcfs", "--no-report", "--out", "first")
    log.write_text(log.read_text().replace("109", "108"))
    line = cli("compare", "first/experiment.toml", "--out", "second").line()
    assert line.startswith(f"{log}: a text with SHA-256")


def test_flags_win_over_the_file(cli, log, tmp_path) -> None:
    (tmp_path / "e.toml").write_text(
        f'log = "{log.name}"\npolicies = ["fcfs", "sjf"]\njobs = 2\nreport = false\n'
    )
    cli("compare", "e.toml", "-p", "fcfs+easy", "--jobs", 3, "--out", "out")
    assert sorted(path.name for path in (tmp_path / "out" / "jobs").glob("*.csv")) == ["fcfs+easy.csv"]
    assert len(rows(tmp_path / "out" / "jobs" / "fcfs+easy.csv")) == 3
    assert not (tmp_path / "out" / "report.html").exists()


def test_log_is_relative_to_the_file(cli, log, tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "e.toml").write_text('log = "../tiny.swf"\npolicies = ["fcfs"]\nreport = false\n')
    assert cli("compare", "sub/e.toml", "--out", "out").code == 0


def test_number_of_workers_changes_nothing(cli, tmp_path) -> None:
    flags = [
        "--jobs",
        300,
        "--nodes",
        32,
        "-p",
        "random+easy",
        "-p",
        "fcfs",
        "-p",
        "wfp3+easy",
        "--no-report",
    ]
    assert cli(*flags, "--out", "one").code == 0
    assert cli(*flags, "--workers", 3, "--out", "three").code == 0
    assert tables(tmp_path / "one") == tables(tmp_path / "three")
    assert (tmp_path / "one" / "metrics.csv").read_bytes() == (
        tmp_path / "three" / "metrics.csv"
    ).read_bytes()


def test_seed_matters(cli, tmp_path, log) -> None:
    flags = ["compare", "--jobs", 300, "--nodes", 32, "-p", "random+easy", "--no-report"]
    for seed in (1, 2):
        cli(*flags, "--seed", seed, "--out", f"seed{seed}")
    assert tables(tmp_path / "seed1") != tables(tmp_path / "seed2")


def test_trace(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs+easy", "--trace", "--out", "out", "--no-report")
    lines = (tmp_path / "out" / "traces" / "fcfs+easy.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines]
    starts = {event["job"]: event["t"] for event in events if event["event"] == "start"}
    assert [starts[job] for job in (1, 2, 3, 4)] == STARTS["fcfs+easy"]


# --- a user's own policies -------------------------------------------------------------------------------


def test_own_order_by_module_and_by_file(shell, log, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "from hpcsimkit.kernel.policy import Order\n\n"
        "class Smallest(Order):\n    def key(self, job):\n        return job.nodes\n"
    )
    outcome = shell(
        "compare", log, "-p", "mine:Smallest", "-p", "mine:Smallest+easy", "-p", "./mine.py:Smallest", "--out", "out",
        "--workers", 2, "--no-report",
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    jobs = tmp_path / "out" / "jobs"
    assert {path.name for path in jobs.glob("*.csv")} == {
        "mine_Smallest.csv", "mine_Smallest+easy.csv", "._mine.py_Smallest.csv",
    }  # fmt: skip
    # no job is ever blocked by a larger one that came earlier
    assert [int(row["start_time"]) for row in rows(jobs / "mine_Smallest.csv")] == [100, 150, 110, 111]


@pytest.mark.parametrize(
    "name", ["KTH-SP2-1996-2.1-cln.swf.gz", "ALCF-Theta-2023.swf.gz", "theta-cqgym-train.swf"]
)
def test_real_logs(cli, shared, name, tmp_path) -> None:
    outcome = cli(
        "compare", shared / "traces" / name, "-p", "fcfs+easy", "--jobs", 2000, "--out", "out", "--no-report"
    )
    assert outcome.code == 0, outcome.err
    assert len(rows(tmp_path / "out" / "jobs" / "fcfs+easy.csv")) == 2000


@pytest.mark.slow
def test_all_real_logs_load_and_run(cli, shared) -> None:
    for log in sorted((shared / "traces").glob("*.swf*")):
        outcome = cli("compare", log, "-p", "fcfs+easy", "--no-report", "--quiet")
        assert outcome == (0, "", ""), log
