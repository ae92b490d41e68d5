"""`compare --machines`: what jobs get where, the files, and every way in which the input can be wrong."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pandas
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.comparison.experiment import MACHINE_POLICIES
from hpcsimkit.reports.saved_results import SavedResults
from hpcsimkit.workloads import read_swf
from tests.waiting import until

MACHINES = """\
MachineName,TotalMemory,TotalCPUs,TotalGPUs
big,64000000,8,0
gpu,32000000,4,2
"""

DAY = """\
JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit
job1,16000000,4,0,0-00:02:00,100,0
job2,8000000,1,1,60,50,10
job3,8000000,8,0,30,20,20
"""

# By hand. On the first machine that fits, job 1 goes to `big`, job 2 to `gpu`, and job 3 has to wait for all of
# `big`. Best fit leaves less of `gpu`: (0/4 + 2/2 + 16/32) / 3 = 0.5 against (4/8 + 48/64) / 2 = 0.625; job 2
# waits there for a CPU until 100, and job 3, the shorter one, is ahead of it and has `big` at once.
FIRST = [(0, "big"), (10, "gpu"), (100, "big")]
BEST = [(0, "gpu"), (100, "gpu"), (20, "big")]


@pytest.fixture
def day(tmp_path: Path) -> str:
    """Machines and a job table, in the folder where commands run."""
    (tmp_path / "machines.csv").write_text(MACHINES)
    (tmp_path / "day.csv").write_text(DAY)
    return "day.csv"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def schedule(folder: Path, policy: str) -> list[tuple[int, str]]:
    return [(int(row["start_time"]), row["machines"]) for row in rows(folder / "jobs" / f"{policy}.csv")]


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# --- what is simulated -----------------------------------------------------------------------------------


def test_the_command_of_the_manual(cli, day, tmp_path) -> None:
    outcome = cli(
        "compare", "--machines", "machines.csv", day, "-p", "bfbp", "-p", "sjf", "--placement", "best-fit"
    )
    assert (outcome.code, outcome.err) == (0, "")
    # 4 CPUs x 100 s + 1 x 50 + 8 x 20 of 12 x 20 s of submissions; likewise for the others
    assert outcome.out.splitlines()[0] == (
        "day: 3 jobs kept on 2 machines (12 cpus, 2 gpus, 96 GB memory), "
        "offered load 2.54 of cpus, 1.25 of gpus, 1.12 of memory, none skipped"
    )
    table = [
        re.split(r"\s{2,}", line) for line in outcome.out.splitlines() if line[:6] in ("policy", "bfbp  ")
    ]
    values = dict(zip(*table, strict=True))
    assert values["utilisation"] == "0.3389"  # (400 + 50 + 160) of 12 x 150 CPU-seconds
    assert values["GPU utilisation"] == "0.1667"  # 50 of 2 x 150
    folder = tmp_path / "results" / "day"
    assert schedule(folder, "bfbp") == schedule(folder, "sjf") == BEST
    assert (folder / "report.html").is_file()
    metrics = json.loads((folder / "metrics.json").read_text())["sjf"]
    assert metrics["mean_wait_time"] == (0 + 90 + 0) / 3
    assert metrics["utilisation"] == pytest.approx((400 + 50 + 160) / (12 * 150))


def test_placement_is_for_those_that_name_none(cli, day, tmp_path) -> None:
    names = ("sjf", "sjf+first-fit", "sjf+easy")
    policies = [flag for name in names for flag in ("-p", name)]
    cli(
        "compare",
        day,
        "--machines",
        "machines.csv",
        *policies,
        "--placement",
        "best-fit",
        "--out",
        "out",
        "-q",
    )
    assert schedule(tmp_path / "out", "sjf") == schedule(tmp_path / "out", "sjf+easy") == BEST
    assert schedule(tmp_path / "out", "sjf+first-fit") == FIRST
    about = json.loads((tmp_path / "out" / "provenance.json").read_text())["policies"]
    assert about["sjf"]["policy"] == "Pipeline(order=SJF(), placement=BestFit())"
    assert about["sjf+first-fit"]["policy"] == "Pipeline(order=SJF(), placement=FirstFit())"


def test_without_placement_the_first_machine_that_fits(cli, day, tmp_path) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--out", "out", "--no-report", "-q")
    assert schedule(tmp_path / "out", "sjf") == FIRST


def test_without_policies_a_list_for_any_jobs(cli, day, tmp_path) -> None:
    (tmp_path / day).write_text(
        "JobName,ReqCPUs,ReqGPUs,ActualDuration,Submit,Nodes,Spread\n"
        "job1,4,0,100,0,2,0\njob2,1,1,50,10,1,0\njob3,12,0,20,20,1,1\njob4,3,0,10,30,1,0\n"
    )
    assert cli("compare", day, "--machines", "machines.csv", "--no-report", "--out", "out", "-q").code == 0
    assert {path.stem for path in (tmp_path / "out" / "jobs").glob("*.csv")} == set(MACHINE_POLICIES)
    assert schedule(tmp_path / "out", "fcfs") == [
        (0, "big gpu"),
        (100, "gpu"),
        (150, "big gpu"),
        (170, "big"),
    ]


def test_help_says_which_policies_are_compared(cli) -> None:
    text = " ".join(cli("compare", "--help").out.split())
    assert f"on machines {', '.join(MACHINE_POLICIES[:-1])} and {MACHINE_POLICIES[-1]}." in text


@pytest.mark.parametrize(
    ("policy", "reference"),
    [("fcfs", "fcfs"), ("sjf+fitting", "sjf"), ("oracle-sjf+fitting", "oracle"), ("bfbp", "bfbp")],
)
def test_a_day_of_beocat_equals_its_reference(cli, shared, tmp_path, policy, reference) -> None:
    folder = shared / "refs" / "beocat"
    flags = ["--machines", folder / "nine_machines.csv.gz", "-p", policy, "--out", "out", "--no-report", "-q"]
    assert cli("compare", folder / "20210603_untied_jobs.csv.gz", *flags).code == 0
    with gzip.open(folder / f"20210603_untied_{reference}.csv.gz", "rt") as file:
        expected = [(int(row["start"]), row["machine"]) for row in csv.DictReader(file) if row["start"]]
    assert schedule(tmp_path / "out", policy) == expected


def test_a_log_of_processors_runs_on_machines(cli, log, day, tmp_path) -> None:
    out = cli("compare", log, "--machines", "machines.csv", "-p", "fcfs", "--out", "out", "--no-report").out
    # 12 CPUs: jobs of 4 and 8 run at once, also the one that is larger than the machine of the log
    assert out.startswith("tiny: 5 jobs kept on 2 machines (12 cpus, 2 gpus, 96 GB memory), offered load")
    assert ", none skipped" in out
    assert schedule(tmp_path / "out", "fcfs") == [
        (100, "big"), (109, "big gpu"), (150, "big"), (150, "big"), (160, "big gpu"),
    ]  # fmt: skip
    assert json.loads((tmp_path / "out" / "provenance.json").read_text())["workload"]["nodes"] == 12


def test_the_built_in_workload_is_made_for_the_machines(cli, day) -> None:
    flags = ["--machines", "machines.csv", "--jobs", 40, "-p", "fcfs", "--no-report"]
    out = cli("compare", *flags, "--out", "first").out
    assert out.startswith("lublin-12: 40 jobs kept on 2 machines (12 cpus")
    assert (
        cli("compare", "first/experiment.toml", "--out", "second").out.splitlines()[0] == out.splitlines()[0]
    )


LOCALITY = """
from hpcsimkit.kernel.service_time import ServiceTime

def far(job, seconds, allocation, cluster):
    return 7.0

class Far(ServiceTime):
    def penalty(self, job, seconds, allocation, cluster):
        return 7.0

model = Far()
nothing = None

class Needs(Far):
    def __init__(self, what):
        self.what = what
"""


@pytest.mark.parametrize("name", ["mine:far", "mine:Far", "./mine.py:model"])
def test_locality_of_ones_own(apart, day, tmp_path, name) -> None:
    (tmp_path / "mine.py").write_text(LOCALITY)
    flags = ["--machines", "machines.csv", "-p", "sjf", "--locality", name, "--no-report", "-q"]
    assert apart("compare", day, *flags, "--out", "out").code == 0
    table = rows(tmp_path / "out" / "jobs" / "sjf.csv")
    assert [int(row["run_time"]) for row in table] == [107, 57, 27]
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "out", tmp_path / "elsewhere" / "out")
    again = apart(
        "compare",
        "elsewhere/out/experiment.toml",
        "--allow-code",
        name.rpartition(":")[0],
        "--out",
        "again",
        "-q",
    )
    assert again.code == 0, again.err
    assert (tmp_path / "again" / "jobs" / "sjf.csv").read_bytes() == (
        tmp_path / "elsewhere" / "out" / "jobs" / "sjf.csv"
    ).read_bytes()


def test_published_locality(cli, tmp_path) -> None:
    """A network-bound job, placed depth-first: 2.0 x 10 s x (1 of 2 CPUs of the cluster)."""
    (tmp_path / "m.toml").write_text("[[machines]]\ncpus = 2\n")
    (tmp_path / "x.csv").write_text("ReqCPUs,ActualDuration,Submit,Spread,Kind\n1,10,0,1,1\n1,10,0,1,0\n")
    flags = ["--machines", "m.toml", "-p", "fcfs", "--no-report", "-q", "--placement", "depth-first"]
    cli("compare", "x.csv", *flags, "--out", "out", "--locality", "sierra")
    assert [int(row["run_time"]) for row in rows(tmp_path / "out" / "jobs" / "fcfs.csv")] == [20, 10]


# --- the files -------------------------------------------------------------------------------------------


def test_the_files_of_the_contract(cli, day, tmp_path) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--trace", "--out", "out", "-q")
    folder = tmp_path / "out"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "metrics.csv", "metrics.json", "provenance.json", "provenance.run.json", "experiment.toml", "report.html",
        "machines.csv",
        "jobs/sjf.csv", "jobs/sjf.parquet", "placements/sjf.csv", "placements/sjf.parquet", "schedules/sjf.swf",
        "traces/sjf.jsonl",
    }  # fmt: skip
    assert Machines.read(folder / "machines.csv") == Machines.read("machines.csv")
    assert (folder / "placements" / "sjf.csv").read_text() == (
        "row,job_id,machine,cpus,gpus,memory\n"
        "0,1,big,4,0,16000000000\n1,2,gpu,1,1,8000000000\n2,3,big,8,0,8000000000\n"
    )
    header, first, *_ = (folder / "jobs" / "sjf.csv").read_text().splitlines()
    assert header.split(",") == [
        "job_id", "submit_time", "start_time", "end_time", "wait_time", "run_time", "requested_time", "nodes",
        "cpus", "gpus", "memory", "machines", "mode", "killed",
    ]  # fmt: skip
    assert first == "1,0,0,100,0,100,120,1,4,0,16000000000,big,ready,false"
    swf = read_swf(folder / "schedules" / "sjf.swf")
    assert (swf.nodes.tolist(), swf.machine_size) == ([4, 1, 8], 12)
    assert swf.header["Processors"] == "cpus of 2 machines (12 cpus, 2 gpus, 96 GB memory)"
    events = [json.loads(line) for line in (folder / "traces" / "sjf.jsonl").read_text().splitlines()]
    assert events[0]["cpus"] == 12
    assert [event["machines"] for event in events if event["event"] == "start"] == [["big"], ["gpu"], ["big"]]


def test_provenance(cli, day, tmp_path) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--out", "out", "--no-report", "-q")
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert provenance["machines"] == {
        "machines": 2,
        "resources": {"cpus": 12, "gpus": 2, "memory": 96_000_000_000},
        "offered_load": {"cpus": 610 / 240, "gpus": 50 / 40, "memory": 2160 / 1920},
        "file": str(tmp_path / "machines.csv"),
        "file_sha256": hashlib.sha256(MACHINES.encode()).hexdigest(),
    }
    assert provenance["workload"]["resources"] == ["cpus", "gpus", "memory"]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_saved_results_know_the_placements(cli, day, tmp_path, kind) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--out", "out", "--no-report", "-q")
    for other in (tmp_path / "out").rglob(f"*.{'csv' if kind == 'parquet' else 'parquet'}"):
        if other.parent.name in ("jobs", "placements"):
            other.unlink()
    result = SavedResults.read("out").results["sjf"]
    assert (result.size, result.unit, result.workload.resources) == (12, "cpus", ("cpus", "gpus", "memory"))
    assert result.placements is not None
    assert result.placements.words() == ["big", "gpu", "big"]
    assert result.placements.totals.tolist() == [
        [4, 0, 16_000_000_000], [1, 1, 8_000_000_000], [8, 0, 8_000_000_000],
    ]  # fmt: skip
    assert "3 jobs on 2 machines (12 cpus, 2 gpus, 96 GB memory)" in repr(result)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row,job_id,machine,cpus,gpus\n0,1,big,4,0\n", "sjf.csv: column 'memory' is needed"),
        ("row,job_id,machine,cpus,gpus,memory\n0,1,tiny,4,0,1\n", "not a table of placements on machines.csv: 'tiny'"),
        ("row,job_id,machine,cpus,gpus,memory\n3,1,big,4,0,1\n", "rows of jobs, ascending from 0 to 2, are needed"),
    ],
)  # fmt: skip
def test_damaged_placements(cli, day, tmp_path, text, message) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--out", "out", "--no-report", "-q")
    (tmp_path / "out" / "placements" / "sjf.parquet").unlink()
    (tmp_path / "out" / "placements" / "sjf.csv").write_text(text)
    assert message in cli("plot", "out").line()
    (tmp_path / "out" / "placements" / "sjf.csv").unlink()
    assert "placements/sjf.parquet: no such file" in cli("plot", "out").line()


def test_names_of_jobs_users_and_features(cli, day, tmp_path) -> None:
    """Names stay names, also such as CSV has to quote; machine names that look like numbers stay names."""
    (tmp_path / "m.csv").write_text("MachineName,TotalCPUs,Features\n007,4,fast;red\n008,4,\n")
    (tmp_path / "x.csv").write_text(
        "JobName,ReqCPUs,ActualDuration,Submit,Constraint,User,Kind\n"
        'first,4,10,0,,ann,0=dgemm\n"second, try",4,10,0,fast&red,bob,1=daxpy\nthird,4,10,0,,,0=dgemm\n'
    )
    assert (
        cli("compare", "x.csv", "--machines", "m.csv", "-p", "fcfs", "--out", "out", "--no-report", "-q").code
        == 0
    )
    table = rows(tmp_path / "out" / "jobs" / "fcfs.csv")
    assert [row["job_name"] for row in table] == ["first", "second, try", "third"]
    assert [row["constraint"] for row in table] == ["", "fast&red", ""]
    assert [row["kind"] for row in table] == ["dgemm", "daxpy", "dgemm"]
    assert [row["user"] for row in table] == ["ann", "bob", ""]
    assert [row["machines"] for row in table] == ["007", "007", "008"]
    for ending in (".parquet", ".csv"):
        result = SavedResults.read("out").results["fcfs"]
        assert result.workload.labels["user"] == ("ann", "bob"), ending
        assert result.workload.user.tolist() == [0, 1, -1]
        assert result.workload.requests[1].constraint == "fast&red"
        assert result.placements.words() == ["007", "007", "008"]
        for path in (tmp_path / "out").rglob("*.parquet"):
            path.unlink()


# --- repetition ------------------------------------------------------------------------------------------


def tables(folder: Path) -> dict[str, bytes]:
    parts = ("jobs", "schedules", "placements", "machines.csv", "metrics.json", "experiment.toml")
    files = [path for part in parts for path in sorted([folder / part, *(folder / part).glob("*")])]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}


def test_saved_experiment_makes_the_same_folder(cli, day, tmp_path) -> None:
    flags = [
        "--placement",
        "random-place",
        "--locality",
        "summit",
        "-p",
        "sjf",
        "-p",
        "random+easy",
        "-p",
        "bfbp",
    ]
    flags += ["--no-report", "--seed", "4"]
    assert cli("compare", day, "--machines", "machines.csv", *flags, "--out", "first").code == 0
    (tmp_path / "elsewhere").mkdir()
    os.chdir(tmp_path / "elsewhere")
    assert cli("compare", "../first/experiment.toml", "--workers", 2, "--out", "second").code == 0
    first, second = tables(tmp_path / "first"), tables(tmp_path / "elsewhere" / "second")
    assert len(first) == 3 * 5 + 3
    assert first == second


def test_machines_within_the_experiment(cli, day, tmp_path) -> None:
    (tmp_path / "e.toml").write_text(
        'log = "day.csv"\npolicies = ["sjf"]\nreport = false\n\n'
        '[[machines]]\nname = "big"\ncpus = 8\nmemory = "64 GB"\n\n'
        '[[machines]]\ncount = 1\nname = "gpu"\ncpus = 4\ngpus = 2\nmemory = "32 GB"\n'
    )
    assert cli("compare", "e.toml", "--out", "first", "-q").code == 0
    assert schedule(tmp_path / "first", "sjf") == [(0, "big1"), (10, "gpu1"), (100, "big1")]
    assert cli("compare", "first/experiment.toml", "--out", "second", "-q").code == 0
    assert tables(tmp_path / "first") == tables(tmp_path / "second")
    assert cli("compare", "e.toml", "--machines", "machines.csv", "--out", "third", "-q").code == 0
    assert schedule(tmp_path / "third", "sjf") == FIRST


def test_machines_are_relative_to_the_file(cli, day, tmp_path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "e.toml").write_text(
        'log = "../day.csv"\nmachines = "../machines.csv"\npolicies = ["sjf"]\nreport = false\n'
    )
    assert cli("compare", "sub/e.toml", "--out", "out", "-q").code == 0


def test_other_machines_are_not_taken_for_the_ones_meant(cli, day, tmp_path) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--no-report", "--out", "first")
    replaced(tmp_path / "machines.csv", "gpu,32000000,4,2", "gpu,32000000,4,3")
    line = cli("compare", "first/experiment.toml", "--out", "second").line()
    assert line.startswith(f"{tmp_path / 'machines.csv'}: a text with SHA-256")


SLOW = """
import os, time
from pathlib import Path
from hpcsimkit.policies import FCFS

class Slow(FCFS):
    def reset(self, system):
        Path("slow.pid").write_text(str(os.getpid()))
        while not Path("go").exists():
            time.sleep(0.01)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize("changed", [False, True])
def test_killed_and_resumed(start, apart, day, tmp_path, changed) -> None:
    """What is finished is taken over, but not if the machines are others by now."""
    (tmp_path / "slow.py").write_text(SLOW)
    flags = [
        "compare",
        day,
        "--machines",
        "machines.csv",
        "-p",
        "sjf",
        "-p",
        "slow:Slow",
        "--no-report",
        "-q",
    ]
    process = start(*flags, "--out", "out")
    until((tmp_path / "slow.pid").exists, process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = tmp_path / "out.partial" / "placements" / "sjf.csv"
    finished.write_text(finished.read_text().replace("big", "BIG"))  # to see whether it is written again
    (tmp_path / "go").touch()
    if changed:
        replaced(tmp_path / "machines.csv", "gpu,32000000,4,2", "gpu,32000000,4,3")
    assert apart(*flags, "--out", "out", "--resume") == (0, "", "")
    assert ("BIG" in (tmp_path / "out" / "placements" / "sjf.csv").read_text()) is not changed
    assert schedule(tmp_path / "out", "slow_Slow") == [(0, "big"), (10, "gpu"), (100, "big")]


# --- describe --------------------------------------------------------------------------------------------


def test_describe(cli, day, tmp_path) -> None:
    replaced(tmp_path / day, "job2,8000000,1,1", "job2,8000000,1,3")
    out = cli("describe", day, "--machines", "machines.csv", "--no-picture").out
    shown = dict(line.strip().rsplit("  ", 1) for line in out.splitlines() if line.startswith("  "))
    shown = {label.strip(): value for label, value in shown.items()}
    assert (shown["machines"], shown["cpus"], shown["memory"]) == ("2", "12", "96 GB")
    assert float(shown["offered load of cpus"]) == pytest.approx(610 / 240, rel=1e-3)
    assert float(shown["offered load of gpus"]) == pytest.approx(150 / 40, rel=1e-3)
    assert shown["fits no machine (jobs)"] == "1"


def test_describe_needs_no_machines(cli, day) -> None:
    assert cli("describe", day, "--no-picture").code == 0


# --- wrong input -----------------------------------------------------------------------------------------


def left_behind(folder: Path) -> list[str]:
    inputs = {"day.csv", "machines.csv", "tiny.swf", "mine.py", "e.toml", "__pycache__"}
    return sorted(path.name for path in folder.iterdir() if path.name not in inputs)


@pytest.mark.parametrize("command", ["compare", "describe"])
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("gpu,32000000,4,2\n", "gpu,32000000,4,2\nbig,1,1,0\n",
         "machines.csv:4: machine 'big' needs a name of its own; it is listed already in line 2"),
        ("64000000", "64 XB", "machines.csv:2: memory needs a unit (B, kB, MB, GB, TB, PB, KiB, ...), found unknown unit 'XB'"),
        ("32000000", "32 GB", "machines.csv:3: mixed units: memory needs a unit in every line or in none; '32 GB' has one, line 2 none"),
        (",8,0", ",eight,0", "machines.csv:2: cpus need a whole number of at least 0, found 'eight'"),
        (",8,0", ",8", "machines.csv:2: 4 values are needed, found 3"),
        ("TotalGPUs", "GPUs", "machines.csv:1: a header of MachineName, TotalMemory, TotalCPUs, TotalGPUs"),
        ("big,64000000,8,0\ngpu,32000000,4,2\n", "", "machines.csv: at least one machine is needed, found none"),
    ],
)  # fmt: skip
def test_machines_that_cannot_be_used(cli, day, tmp_path, command, old, new, message) -> None:
    replaced(tmp_path / "machines.csv", old, new)
    assert cli(command, day, "--machines", "machines.csv").line().startswith(message)
    assert left_behind(tmp_path) == []


def test_machines_that_are_not_there(cli, day, tmp_path) -> None:
    assert cli("compare", day, "--machines", "none.csv").line() == "none.csv: no such file"
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0-00:02:00", "1-25:03:04", "day.csv:2: ReqDuration: "),
        (",50,10", ",1-02:63:04,10", "day.csv:3: ActualDuration: "),
        (",50,10", ",1-02:03:04:05,10", "day.csv:3: ActualDuration: "),
        ("8000000,1,1", "8 XB,1,1", "day.csv:3: ReqMem: mixed units: a unit in every cell or in none needed, "),
        (",1,1,60", ",1,one,60", "day.csv:3: ReqGPUs: "),
    ],
)  # fmt: skip
def test_job_tables_that_cannot_be_used(cli, day, tmp_path, old, new, message) -> None:
    replaced(tmp_path / day, old, new)
    line = cli("compare", day, "--machines", "machines.csv", "--strict").line()
    assert line.startswith(message)
    assert any(f"'{cell}'" in line for cell in new.split(","))
    assert left_behind(tmp_path) == []


def test_unknown_unit_of_memory_in_a_job_table(cli, day, tmp_path) -> None:
    text = (tmp_path / day).read_text()
    (tmp_path / day).write_text(text.replace("16000000,", "16 GB,").replace("8000000,", "8 XB,"))
    line = cli("compare", day, "--machines", "machines.csv", "--strict").line()
    assert line.startswith("day.csv:3: ReqMem: memory needs a unit") and "'XB'" in line
    out = cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--no-report", "--out", "out").out
    assert "1 job kept" in out and "ReqMem not understood" in out


def test_a_job_that_fits_no_machine_is_counted_or_refused(cli, day, tmp_path) -> None:
    replaced(tmp_path / day, "job3,8000000,8", "job3,8000000,9")
    flags = ["compare", day, "--machines", "machines.csv", "-p", "sjf", "--no-report"]
    assert "2 jobs kept on 2 machines" in (out := cli(*flags, "--out", "out").out)
    assert ", 1 skipped: 1 fits no machine\n" in out
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    assert provenance["workload"]["skipped"] == {"fits no machine": 1}
    assert cli(*flags, "--strict").line() == (
        "day.csv:4: job 3 needs a machine with 9 cpus, 8 GB memory; none has so much"
    )


def test_a_job_with_a_name_is_called_by_it(cli, day, tmp_path) -> None:
    replaced(tmp_path / day, "job3,8000000,8", "huge,8000000,9")
    line = cli("compare", day, "--machines", "machines.csv", "--strict").line()
    assert line.startswith("day.csv:4: job huge needs a machine with 9 cpus")


def test_no_job_fits(cli, day, tmp_path) -> None:
    (tmp_path / "machines.csv").write_text("MachineName,TotalMemory,TotalCPUs,TotalGPUs\nsmall,1000,1,1\n")
    assert cli("compare", day, "--machines", "machines.csv").line() == (
        "day.csv:2: job 1 needs a machine with 4 cpus, 16 GB memory; none has so much (no job fits)"
    )


@pytest.mark.parametrize("column", [",TotalGPUs", ""])
def test_a_gpu_where_there_is_none(cli, day, tmp_path, column) -> None:
    zero = ",0" if column else ""
    (tmp_path / "machines.csv").write_text(
        f"MachineName,TotalMemory,TotalCPUs{column}\nbig,64000000,8{zero}\n"
    )
    flags = ["compare", day, "--machines", "machines.csv", "-p", "sjf", "--no-report", "--out", "out"]
    assert ", 1 skipped: 1 fits no machine\n" in cli(*flags).out
    line = cli(*flags, "--strict").line()
    assert line.startswith("day.csv:3: job 2 needs a machine with 1 cpus")
    assert line.endswith("; the cluster has no gpus")


def test_jobs_that_ask_for_resources_need_machines(cli, day, tmp_path) -> None:
    assert cli("compare", day).line() == (
        "day.csv: its jobs ask for cpus, gpus, memory; say of which machines: --machines FILE"
    )
    assert cli("compare", day, "--nodes", 5).line().endswith("--machines FILE")
    assert left_behind(tmp_path) == []


def test_bfbp_says_which_job_it_cannot_place(cli, day, tmp_path) -> None:
    (tmp_path / day).write_text("ReqCPUs,ActualDuration,Submit,Nodes\n4,9,0,1\n2,9,1,2\n")
    line = cli("compare", day, "--machines", "machines.csv", "-p", "bfbp", "-q", "--out", "out").line()
    assert line == (
        "bfbp: best-fit bin packing needs jobs that share one machine each; "
        "job 2 asks for 2 machines with 2 cpus each"
    )
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--placement", "bestfit"], "--placement: unknown policy 'bestfit'; nearest: best-fit"),
        (["--placement", "sjf"], "--placement: 'sjf' is no placement alone; placements are first-fit, best-fit"),
        (["--placement", "best-fit+easy"], "--placement: 'best-fit+easy' is no placement alone"),
        (["--placement", "bfbp"], "--placement: 'bfbp' is no placement alone"),
        (["--locality", "mars"], "--locality: unknown locality 'mars'; known are sierra, summit, and your own: module:name"),
        (["--locality", "mine.py:nobody"], "--locality: 'mine.py:nobody': mine.py has no 'nobody'"),
        (["--locality", "mine.py:nothing"], "--locality: 'mine.py:nothing' needs a ServiceTime or a function"),
        (["--locality", "mine.py:Needs"], "--locality: 'mine.py:Needs' cannot be made: "),
        (["--locality", "no.py:x"], "--locality: no such file: no.py"),
        (["--nodes", "5"], "one of 'nodes' and 'machines' is needed, both are given"),
        (["--size", "allocated"], "day.csv: the options of a log of the form 'job table' are "),
    ],
)  # fmt: skip
def test_flags_that_are_not_understood(cli, day, tmp_path, flags, message) -> None:
    (tmp_path / "mine.py").write_text(LOCALITY)
    assert cli("compare", day, "--machines", "machines.csv", *flags).line().startswith(message)
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("flag", ["--placement", "--locality"])
def test_what_machines_are_needed_for(cli, log, flag) -> None:
    value = {"--placement": "best-fit", "--locality": "sierra"}[flag]
    assert cli("compare", log, flag, value).line() == (
        f"'{flag[2:]}' needs 'machines': nodes that are only counted are all alike"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\n[[machines]]\ncpus = 1\n\n[[machines]]\ncpus = 2.5\n", "e.toml:5: machines[1]: cpus need a whole number"),
        ('[[machines]]\nmemory = "5 XB"\n', "e.toml:1: machines[0]: memory needs a unit"),
        ("[[machines]]\ncpus = 1\nmemory = 5\n", "e.toml:1: machines[0]: memory needs a unit"),
        ("machines = 5\n", "e.toml:1: machines: the path of a file or tables [[machines]] are needed, found 5"),
        ("machines = []\n", "e.toml:1: machines: the path of a file or tables [[machines]] are needed, found []"),
        ('machines = ""\n', "e.toml:1: machines: the path of a file or tables [[machines]] are needed, found ''"),
        ('machines = "none.csv"\n', "none.csv: no such file"),
        ('seed = 1\nplacement = "x"\nmachines = "m.csv"\n', "e.toml:2: placement: unknown policy 'x'"),
        ('seed = 1\nlocality = "x"\nmachines = "m.csv"\n', "e.toml:2: locality: unknown locality 'x'"),
    ],
)  # fmt: skip
def test_experiment_files_name_the_line(cli, tmp_path, text, message) -> None:
    (tmp_path / "e.toml").write_text(text)
    assert cli("compare", "e.toml").line().startswith(message)
    assert left_behind(tmp_path) == []


def test_a_table_of_jobs_is_a_table_for_pandas(cli, day, tmp_path) -> None:
    cli("compare", day, "--machines", "machines.csv", "-p", "sjf", "--out", "out", "--no-report", "-q")
    jobs = pandas.read_parquet(tmp_path / "out" / "jobs" / "sjf.parquet")
    parts = pandas.read_parquet(tmp_path / "out" / "placements" / "sjf.parquet")
    assert parts.groupby("row")["cpus"].sum().tolist() == jobs["cpus"].tolist()
    assert parts.groupby("machine", observed=True)["gpus"].sum().to_dict() == {"big": 0, "gpu": 1}
