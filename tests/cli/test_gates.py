"""Gates on the command line and in files of settings: columns of a job table, and the files of results."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest

from tests.cli.conftest import CLI

HEAD = "JobName,Submit,ActualDuration,ReqCPUs,ReqDuration,Dependency,BeginTime,HoldUntil,ArrayJob,ArrayLimit,Licenses"
DAY = f"""{HEAD}
job1,0,100,2,100,,,,,,matlab:2
job2,1,50,1,60,afterok:1,,,,,
job3,2,50,1,60,"afterok:1:2,afterany:4",,,,,
job4,3,50,1,60,,400,,,,
job5,4,50,1,60,,,300,,,
job6,5,50,1,60,,,,50,1,
job7,5,50,1,60,,,,50,1,matlab
job8,6,50,1,60,afternotok:1,,,,,
"""
STARTS = {"job1": 0, "job2": 100, "job3": 450, "job4": 400, "job5": 300, "job6": 5, "job7": 100, "job8": None}


@pytest.fixture
def day(tmp_path: Path) -> Path:
    (tmp_path / "day.csv").write_text(DAY)
    (tmp_path / "m.csv").write_text("MachineName,TotalCPUs\nn1,8\n")
    return tmp_path


def test_all_gates_of_a_job_table(cli: CLI, day: Path) -> None:
    done = cli(
        *("compare", "day.csv", "--machines", "m.csv", "-p", "fcfs+easy", "--no-report", "--out", "out"),
        *("--gates", "log", "--licenses", "matlab:2"),
    )
    assert done.code == 0
    lines = done.out.splitlines()
    assert "fcfs+easy: 1 of 8 jobs rejected, as they can never start: DependencyNeverSatisfied" in lines
    place = next(k for k, line in enumerate(lines) if line.startswith("share of the wait by the reason"))
    assert lines[place + 1].split() == [
        *("policy", "BeginTime", "Dependency", "JobArrayTaskLimit", "JobHeldUser", "Licenses"),
    ]
    jobs = pandas.read_csv(day / "out" / "jobs" / "fcfs+easy.csv")
    assert [None if pandas.isna(each) else each for each in jobs.start_time] == [*STARTS.values()]
    held = pandas.read_csv(day / "out" / "held" / "fcfs+easy.csv")
    assert held.columns.tolist() == ["job_id", "start_time", "end_time", "reason"]
    assert held.query("job_id == 7").reason.tolist() == ["JobArrayTaskLimit", "Licenses"]
    assert pandas.read_parquet(day / "out" / "held" / "fcfs+easy.parquet").shape == held.shape
    metrics = json.loads((day / "out" / "metrics.json").read_text())
    assert metrics["fcfs+easy"]["held_share"] == 1


def test_a_table_of_licences_and_some_columns_in_a_file_of_settings(cli: CLI, day: Path) -> None:
    (day / "x.toml").write_text(
        'log = "day.csv"\nmachines = "m.csv"\npolicies = ["fcfs"]\ngates = "begin_time"\n[licenses]\nmatlab = 3\n'
    )
    done = cli("compare", "x.toml", "--no-report", "--out", "out")
    assert done.code == 0, done.err
    starts = pandas.read_csv(day / "out" / "jobs" / "fcfs.csv").start_time.tolist()
    assert starts == [0, 1, 2, 400, 4, 5, 5, 6]
    again = cli("compare", "out/experiment.toml", "--no-report", "--out", "again")
    assert again.code == 0, again.err
    assert (day / "again/jobs/fcfs.csv").read_bytes() == (day / "out/jobs/fcfs.csv").read_bytes()


def test_dependencies_by_the_flag_for_dependencies(cli: CLI, day: Path) -> None:
    done = cli(
        *("compare", "day.csv", "--machines", "m.csv", "-p", "fcfs", "--no-report", "--out", "out"),
        "--dependencies",
    )
    assert done.code == 0
    assert pandas.read_csv(day / "out/jobs/fcfs.csv").start_time.fillna(-1).tolist() == [
        0,
        100,
        150,
        3,
        4,
        5,
        5,
        -1,
    ]


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (
            ("--gates", "logs"),
            "--gates: the columns dependency, begin_time, hold_until, array_limit or log are",
        ),
        (("--licenses", "matlab:-1"), "--licenses: licences need NAME:NUMBER, such as matlab:2, found"),
        (("--licenses", "matlab:1"), "day:2: job 1 asks for 2 of the licence 'matlab'; the cluster has 1"),
        (("--licenses", "mathlab:4"), "day:2: job 1 asks for the unknown licence 'matlab'; nearest: mathlab"),
        (("--gates", "log", "--jobs", "3"), "day:4: job 3 depends on job 4, which is not in the workload"),
        (
            ("--gates", "log", "--simulator", "compiled"),
            "the compiled simulator cannot run this: it knows AfterJobs and ArrayLimits on homogeneous nodes",
        ),
        (
            ("--licenses", "matlab:2", "--semantics", "dirlab"),
            "'licenses' is not known to the rules 'dirlab'",
        ),
    ],
)
def test_wrong_flags(cli: CLI, day: Path, flags: tuple[str, ...], error: str) -> None:
    done = cli(
        "compare", "day.csv", "--machines", "m.csv", "-p", "fcfs", "--no-report", "--out", "out", *flags
    )
    assert done.code == 2
    assert error in done.line()


def test_wrong_tables(cli: CLI, day: Path) -> None:
    command = ("compare", "day.csv", "--machines", "m.csv", "-p", "fcfs", "--no-report", "--out", "out")
    for cell, flags, error in (
        ("afterok:3", ("--gates", "log"), "day:3: job 2 depends on job 3 on job 2: a cycle of dependencies"),
        ("afterok;1", ("--dependencies",), "day:3: job 2: a dependency needs after:JOB"),
    ):
        (day / "day.csv").write_text(DAY.replace("60,afterok:1,", f"60,{cell},"))
        done = cli(*command, *flags)
        assert done.code == 2
        assert error in done.line()
    (day / "day.csv").write_text(DAY.replace(",400,", ",-400,"))
    assert "begin_time needs -1 to 100000000000, found -400" in cli(*command).line()


def test_gates_need_columns_of_the_log(cli: CLI, day: Path) -> None:
    done = cli("compare", "-p", "fcfs", "--no-report", "--out", "out", "--gates", "begin_time")
    assert done.code == 2
    assert "gates: jobs with a column begin_time are needed, found none" in done.line()


def test_a_part_of_a_log(cli: CLI, day: Path) -> None:
    done = cli(
        *("compare", "day.csv", "--machines", "m.csv", "-p", "fcfs", "--no-report", "--out", "out"),
        *("--jobs", "3", "--gates", "dependency,missing=ignore"),
    )
    assert done.code == 0, done.err
    assert pandas.read_csv(day / "out/jobs/fcfs.csv").start_time.tolist() == [0, 100, 150]


def test_a_job_table_is_written_as_it_was_read(day: Path) -> None:
    from hpcsimkit.workloads.readers.job_table import read_job_table, write_job_table

    jobs = read_job_table(day / "day.csv")
    write_job_table(jobs, day / "copy.csv")
    again = read_job_table(day / "copy.csv")
    for name in ("dependency", "begin_time", "hold_until", "array_job", "array_limit", "licenses"):
        assert jobs.column(name).tolist() == again.column(name).tolist()
        assert jobs.labels.get(name) == again.labels.get(name)


def test_the_report_shows_the_shares_of_the_wait(cli: CLI, day: Path) -> None:
    command = ("compare", "day.csv", "--machines", "m.csv", "-p", "fcfs", "-p", "sjf", "--out", "out")
    assert cli(*command, "--gates", "log", "--licenses", "matlab:2").code == 0
    page = (day / "out" / "report.html").read_text()
    assert "What jobs waited for" in page
    assert "JobArrayTaskLimit" in page
    assert "41.0%" in page
    (day / "out" / "held" / "fcfs.parquet").unlink()
    (day / "out" / "held" / "fcfs.csv").write_text("job_id,start_time,end_time,reason\n99,0,1,X\n")
    done = cli("plot", "out")
    assert done.code == 2
    assert "held/fcfs.csv: not a table of intervals of these jobs" in done.line()
