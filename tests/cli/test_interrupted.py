"""Ctrl-C, results folders that are there already, and going on after an interruption."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends signals")

SLOW = '''
import os, time
from pathlib import Path
from hpcsimkit.kernel.policy import Policy

class Slow(Policy):
    """Waits for a file to appear; leaves the number of its process in another."""

    def schedule(self, system):
        Path("slow.pid").write_text(str(os.getpid()))
        while not Path("go").exists():
            time.sleep(0.01)
        for job in list(system.queue):
            if system.fits(job):
                system.start(job)
'''


def alive(process: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False


@pytest.fixture
def interrupted(log, tmp_path, start) -> Callable[..., tuple[int, str]]:
    """Start a comparison of `fcfs` and a policy that hangs; send a signal when the first is finished."""
    (tmp_path / "slow.py").write_text(SLOW)

    def run(*flags: str, workers: int = 1, number: int = signal.SIGINT) -> tuple[int, str]:
        arguments = ["compare", log.name, "-p", "fcfs", "-p", "slow:Slow", "--workers", str(workers), *flags]
        process = start(*arguments)
        partial = next(flag for flag in (*flags, "results/tiny") if not flag.startswith("-"))
        finished = tmp_path / f"{partial}.partial" / "finished" / "fcfs" / "outcome.json"
        slow = tmp_path / "slow.pid"
        until(lambda: finished.exists() and slow.exists() and bool(slow.read_text()))
        os.killpg(process.pid, number)  # as a terminal and a batch system do: to all processes
        _, err = process.communicate()
        return process.returncode, err

    return run


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_and_sigterm(interrupted, tmp_path, workers, number) -> None:
    code, err = interrupted("--out", "out", workers=workers, number=number)
    assert code == 128 + number
    # A signal arrives in one of the two lines of the loop.
    place = (
        rf" in slow:Slow at t=100 s, in Slow \({re.escape(str(tmp_path))}/slow\.py:1[12]\)"
        if workers == 1
        else ""
    )
    assert re.fullmatch(
        rf"hpcsimkit: stopped{place}; 1 of 2 policies are finished; "
        r"to go on: the same command with --resume --out out\n",
        err,
    )
    assert not (tmp_path / "out").exists()
    assert not alive(int((tmp_path / "slow.pid").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_workers_end_with_the_one_that_started_them(shell, log, tmp_path, command, environment) -> None:
    """`kill -9` of the main process: no worker lives on, none holds the lock, and `--resume` goes on."""
    (tmp_path / "slow.py").write_text(SLOW.replace('"slow.pid"', 'f"slow-{os.getpid()}.pid"'))
    (tmp_path / "other.py").write_text("from slow import Slow\nclass Other(Slow):\n    pass\n")
    flags = ["-p", "slow:Slow", "-p", "other:Other", "--workers", "2", "--out", "out", "--no-report", "-q"]
    process = subprocess.Popen([*command, "compare", log.name, *flags], cwd=tmp_path, env=environment)
    until(lambda: len(list(tmp_path.glob("slow-*.pid"))) == 2)
    process.kill()
    process.wait()
    workers = [int(file.stem.removeprefix("slow-")) for file in tmp_path.glob("slow-*.pid")]
    until(lambda: not any(map(alive, workers)))
    (tmp_path / "go").touch()
    assert shell("compare", log.name, *flags, "--resume") == (0, "", "")


@pytest.mark.parametrize("workers", [1, 2])
def test_resume_takes_what_is_finished(interrupted, apart, log, tmp_path, workers) -> None:
    interrupted("--out", "out", workers=workers)
    table = tmp_path / "out.partial" / "jobs" / "fcfs.csv"
    before, content = table.stat().st_mtime_ns, table.read_bytes()
    (tmp_path / "go").touch()
    outcome = apart(
        "compare", log.name, "-p", "fcfs", "-p", "slow:Slow", "--out", "out", "--resume", "--no-report"
    )
    assert (outcome.code, outcome.err) == (0, "")
    table = tmp_path / "out" / "jobs" / "fcfs.csv"
    assert (table.stat().st_mtime_ns, table.read_bytes()) == (before, content)
    assert list(json.loads((tmp_path / "out" / "metrics.json").read_text())) == ["fcfs", "slow:Slow"]
    assert not (tmp_path / "out.partial").exists()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "experiment.toml", "jobs", "metrics.csv", "metrics.json", "provenance.json", "provenance.run.json", "schedules",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        ["--seed", "1"],
        [],
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in (["--walltime", "kill"], ["--jobs", "3"], ["--warmup", "1"])
        ),
    ],
)
def test_resume_takes_only_what_is_the_same(interrupted, apart, log, tmp_path, change) -> None:
    interrupted("--out", "out")
    before = (tmp_path / "out.partial" / "jobs" / "fcfs.csv").stat().st_mtime_ns
    (tmp_path / "go").touch()
    resume = [] if not change else ["--resume"]
    apart(
        "compare", log.name, "-p", "fcfs", "-p", "slow:Slow", "--out", "out", *resume, *change, "--no-report"
    )
    assert (tmp_path / "out" / "jobs" / "fcfs.csv").stat().st_mtime_ns != before


def test_resume_without_out_finds_the_folder(interrupted, apart, log, tmp_path) -> None:
    interrupted()
    (tmp_path / "go").touch()
    flags = ["compare", log.name, "-p", "fcfs", "-p", "slow:Slow", "--no-report"]
    assert apart(*flags, "--resume").out.splitlines()[-1] == "results: results/tiny"
    assert apart(*flags).out.splitlines()[-1] == "results: results/tiny-2"


def test_a_policy_of_other_code_runs_again(apart, log, tmp_path) -> None:
    """`first` is finished when `second` fails; then both files change."""
    order = "from hpcsimkit.kernel.policy import Order\nclass Mine(Order):\n    def key(self, job):\n        return {}\n"
    (tmp_path / "first.py").write_text(order.format("job.nodes"))
    (tmp_path / "second.py").write_text(order.format("1 / 0"))
    flags = [
        "compare",
        log.name,
        "-p",
        "first:Mine",
        "-p",
        "second:Mine",
        "--out",
        "out",
        "--no-report",
        "-q",
    ]
    line = apart(*flags).line()
    assert line.startswith("second:Mine at t=")
    assert "1 of 2 policies are finished" in line
    before = (tmp_path / "out.partial" / "jobs" / "first_Mine.csv").read_bytes()
    (tmp_path / "first.py").write_text(order.format("-job.nodes"))
    (tmp_path / "second.py").write_text(order.format("-job.nodes"))
    assert apart(*flags, "--resume").code == 0
    first, second = (
        (tmp_path / "out" / "jobs" / f"{name}_Mine.csv").read_bytes() for name in ("first", "second")
    )
    assert first == second != before


def test_another_run_on_the_same_folder(cli, start, log, tmp_path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    flags = ["compare", log.name, "-p", "fcfs", "--out", "out", "-q"]
    process = start(*flags, "-p", "slow:Slow")
    until(lambda: (tmp_path / "slow.pid").exists(), process)
    line = cli(*flags).line()
    (tmp_path / "go").touch()
    process.communicate()
    assert line.startswith(f"{tmp_path}/out.partial: another run is writing these results now (process ")
    assert process.returncode == 0
    assert (tmp_path / "out" / "report.html").is_file()


def test_former_results_are_replaced_in_one_go(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs", "-p", "sjf", "--out", "out", "--no-report")
    (tmp_path / "out" / "jobs" / "leftover").touch()
    assert cli("compare", log, "-p", "saf", "--out", "out", "--no-report", "--overwrite").code == 0
    assert [path.name for path in (tmp_path / "out" / "jobs").glob("*.csv")] == ["saf.csv"]
    assert not (tmp_path / "out" / "jobs" / "leftover").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tiny.swf"]


def test_former_results_stay_when_the_new_ones_fail(cli, log, tmp_path) -> None:
    cli("compare", log, "-p", "fcfs", "--out", "out", "--no-report")
    (tmp_path / "mine.py").write_text(SLOW.replace("Path(", "Path(1 / 0)("))
    assert cli("compare", log, "-p", "mine.py:Slow", "--out", "out", "-q", "--overwrite").code == 2
    assert (tmp_path / "out" / "jobs" / "fcfs.csv").is_file()
    assert not (tmp_path / "out.partial").exists()


def test_a_stranger_in_the_way_is_left_alone(cli, log, tmp_path) -> None:
    (tmp_path / "out.partial").mkdir()
    (tmp_path / "out.partial" / "notes.txt").write_text("mine")
    line = cli("compare", log, "-p", "fcfs", "--out", "out", "-q").line()
    assert line == f"{tmp_path}/out.partial: in the way, and not left by an interrupted run"
    assert (tmp_path / "out.partial" / "notes.txt").read_text() == "mine"


def test_a_process_that_dies_once_is_replaced(apart, log, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, signal\nfrom pathlib import Path\nfrom hpcsimkit.policies import FCFS\n"
        "class Fragile(FCFS):\n"
        "    def reset(self, system):\n"
        "        if not Path('died').exists():\n"
        "            Path('died').touch()\n"
        "            os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    flags = ["-p", "fcfs", "-p", "mine:Fragile", "--workers", 2, "--out", "out", "--no-report", "-q"]
    assert apart("compare", log, *flags) == (0, "", "")
    assert (tmp_path / "died").exists()
    jobs = tmp_path / "out" / "jobs"
    assert (jobs / "mine_Fragile.csv").read_bytes() == (jobs / "fcfs.csv").read_bytes()
