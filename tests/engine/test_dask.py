"""Dask: the same results as in this process, whatever happens to a worker, and one line for what cannot work."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit import errors
from hpcsimkit.engine import dask
from hpcsimkit.engine.dask import Dask
from hpcsimkit.engine.engines import InProcess
from hpcsimkit.engine.named import engine_named
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.sweep.sweep import Sweep
from hpcsimkit.experiments.sweep.sweep_run import SweepRun
from hpcsimkit.run import main
from tests.engine.schedulers import dask_scheduler
from tests.engine.steps import Step
from tests.waiting import until

distributed = pytest.importorskip(
    "distributed", reason="needs the extra [cluster]: pip install 'hpcsimkit[cluster]'"
)

MINE = """
from hpcsimkit.kernel.policy import Order

class Mine(Order):
    def key(self, job):
        return job.nodes
"""
FRAGILE = """
import os, signal
from pathlib import Path
from hpcsimkit.policies import FCFS

class Fragile(FCFS):
    def reset(self, system):
        if not Path("died").exists():
            Path("died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""
HANGING = """
import os
from pathlib import Path
from hpcsimkit.kernel.policy import Policy

class Hanging(Policy):
    def schedule(self, system):
        Path("hangs.pid").write_text(str(os.getpid()))
        try:
            while not Path("go").exists():
                pass
        except KeyboardInterrupt:
            Path("interrupted").touch()
            raise
        for job in list(system.queue):
            if system.fits(job):
                system.start(job)
"""
COMPARISON = """
import sys
from hpcsimkit.engine.dask import Dask
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.io.interruption import Stopped

experiment = Experiment(jobs=50, policies=["fcfs", "hanging:Hanging"], report=False)
try:
    Campaign(experiment, experiment.workload(), "out", engine=Dask(sys.argv[1], insecure=True)).run(resume=True)
except Stopped as stopped:
    sys.exit(str(stopped))
"""


@contextlib.contextmanager
def scheduler(workers: int, **options: Any) -> Iterator[str]:
    """Start a scheduler and its workers, as a user would beforehand; yields the address."""
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0", **options}
    with distributed.LocalCluster(silence_logs=50, memory_limit=0, **options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with scheduler(2) as found:
        yield found


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, bytes]]:
    """Compare policies in a folder; returns the contents of the files, without what is of one run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)

    def compare(out: str, engine: Any, *policies: str) -> dict[str, bytes]:
        experiment = Experiment(jobs=300, policies=["fcfs+easy", "mine.py:Mine", *policies], report=False)
        Campaign(experiment, experiment.workload(), out, engine=engine).run()
        files = (
            file
            for file in (tmp_path / out).rglob("*")
            if file.is_file() and not file.name.endswith(".run.json")
        )
        return {str(file.relative_to(tmp_path / out)): file.read_bytes() for file in files}

    return compare


# --- tasks -------------------------------------------------------------------------------------------------


def test_an_error_cancels_the_others(tmp_path: Path, address: str) -> None:
    tasks = [Step("sleeps", does="hang"), Step("x", ("a",), does="fail later"), Step("a")]
    with pytest.raises(HpcsimkitError, match=r"^x: ValueError: wrong$"):
        perform(tasks, Store(tmp_path), Dask(address, insecure=True))
    until((tmp_path / "sleeps" / "outcome.run.json").exists)  # written at the end of the task
    assert not (tmp_path / "sleeps" / "slept").exists()


def test_a_scheduler_with_tls(tmp_path: Path) -> None:
    store, tasks = Store(tmp_path), [Step(name) for name in "abc"]
    with dask_scheduler(1) as engine:
        perform(tasks, store, engine)
    assert all(map(store.has, tasks))


# --- comparisons -------------------------------------------------------------------------------------------


def test_results_are_those_without_dask(results: Any, address: str, tmp_path: Path) -> None:
    """Also with code of the user that changes between runs on the same workers."""
    here = results("here", InProcess(), "sjf+easy")
    assert results("there", Dask(address, insecure=True), "sjf+easy") == here
    (tmp_path / "mine.py").write_text(MINE.replace("job.nodes", "-job.nodes"))
    changed = results("changed", Dask(address, insecure=True), "sjf+easy")
    assert changed["jobs/mine.py_Mine.csv"] != here["jobs/mine.py_Mine.csv"]
    assert changed["jobs/sjf+easy.csv"] == here["jobs/sjf+easy.csv"]


def test_results_are_the_same_with_a_worker_killed(results: Any, address: str, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(FRAGILE)
    there = results("there", Dask(address, insecure=True), "fragile:Fragile")
    assert (tmp_path / "died").exists()
    assert there == results("here", InProcess(), "fragile:Fragile")


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 1, marks=pytest.mark.slow), (signal.SIGKILL, -9)]
)
def test_the_end_of_the_caller_cancels_its_tasks(
    tmp_path: Path, address: str, root: Path, number: int, code: int
) -> None:
    """No task goes on, nothing is locked, and the next run goes on with what is finished."""
    (tmp_path / "hanging.py").write_text(HANGING)
    start = lambda: subprocess.Popen(  # noqa: E731
        [sys.executable, "-c", COMPARISON, address], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(root)},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    process = start()
    until(lambda: (tmp_path / "hangs.pid").exists(), process)
    until((tmp_path / "out.partial" / "finished" / "fcfs" / "outcome.json").exists, process)
    process.send_signal(number)
    _, err = process.communicate()
    assert process.returncode == code
    until((tmp_path / "interrupted").exists)
    if number == signal.SIGINT:
        assert (
            err
            == "stopped; 1 of 2 policies are finished; to go on: the same command with --resume --out out\n"
        )
    before = (tmp_path / "out.partial" / "jobs" / "fcfs.csv").stat().st_mtime_ns
    (tmp_path / "go").touch()
    process = start()
    assert process.communicate()[1] == ""
    assert (tmp_path / "out" / "jobs" / "fcfs.csv").stat().st_mtime_ns == before
    assert (tmp_path / "out" / "jobs" / "hanging_Hanging.csv").exists()


def test_fingerprints_are_those_of_the_caller(results: Any, tmp_path: Path, root: Path) -> None:
    """In a process that has imported nothing yet, as a worker."""
    results("so that there is a policy", InProcess())
    experiment = Experiment(jobs=300, policies=["fcfs+easy", "mine.py:Mine"])
    tasks = Campaign(experiment, experiment.workload(), "out").tasks
    ours = [task.fingerprint for task in tasks]
    for task in tasks:
        del vars(task)["fingerprint"]
    command = "import pickle, sys; print(*(task.fingerprint for task in pickle.load(sys.stdin.buffer)))"
    environment = {**os.environ, "PYTHONPATH": str(root)}
    theirs = subprocess.run(
        [sys.executable, "-c", command], input=pickle.dumps(tasks), capture_output=True, env=environment
    )
    assert theirs.stdout.decode().split() == ours, theirs.stderr


def test_a_sweep_has_the_same_results(results: Any, address: str, tmp_path: Path) -> None:
    results("so that there is a policy", InProcess())
    sweep = Sweep(jobs=100, policies=["fcfs", "mine.py:Mine"], sweep={"seed": [1, 2]}, report=False)
    here, there = (SweepRun(sweep, tmp_path / name, engine=engine).run()
                   for name, engine in (("one", InProcess()), ("two", Dask(address, insecure=True))))  # fmt: skip
    assert there["status"].tolist() == ["done"] * 4
    assert there["schedule_sha256"].tolist() == here["schedule_sha256"].tolist()


def test_the_command_line(results: Any, address: str, tmp_path: Path) -> None:
    results("so that there is a policy", InProcess())
    common = ["--jobs", "50", "-p", "fcfs", "-p", "mine.py:Mine", "--no-report", "-q"]
    for command, out in (("compare", "one"), ("sweep", "two")):
        axis = ["--axis", "seed=0:2"] if command == "sweep" else []
        with pytest.raises(SystemExit, match=r"^0$"):
            main([command, *common, *axis, "--engine", f"dask-insecure:{address}", "--out", out])
    assert (tmp_path / "one" / "jobs" / "mine.py_Mine.csv").exists()
    assert len(list((tmp_path / "two" / "cells").glob("*/outcome.json"))) == 4


@pytest.mark.slow
def test_workers_of_its_own(results: Any, tmp_path: Path) -> None:
    (tmp_path / "fragile.py").write_text(FRAGILE)
    there = results("there", Dask(2), "sjf+easy", "fragile:Fragile")
    assert (tmp_path / "died").exists()
    assert there == results("here", InProcess(), "sjf+easy", "fragile:Fragile")


# --- what cannot work --------------------------------------------------------------------------------------


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections, and never answers."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_an_address_that_does_not_answer(silent_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "SECONDS_TO_ANSWER", 0.3)
    for url in (f"tcp://127.0.0.1:{silent_port}", "tcp://127.0.0.1:9"):
        with pytest.raises(UsageError, match=f"^{url}: no Dask scheduler answers there$"):
            _ = Dask(url, insecure=True).workers
    with pytest.raises(UsageError, match=r"answers there: unknown address scheme 'foo'"):
        _ = Dask("foo://there:1", insecure=True).workers


def test_workers_that_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with scheduler(2) as other:
        assert Dask(other, insecure=True).workers == 2
    monkeypatch.setattr(dask, "SECONDS_TO_ANSWER", 0.3)
    with (
        scheduler(0) as other,
        pytest.raises(UsageError, match=r"has no workers; `dask worker` starts them$"),
    ):
        _ = Dask(other, insecure=True).workers
    with (
        scheduler(1, threads_per_worker=2, processes=False) as other,
        pytest.raises(UsageError, match=r"^worker .* has 2 threads; one is needed: --nthreads 1$"),
    ):
        _ = Dask(other, insecure=True).workers


@pytest.mark.parametrize(
    ("version", "message"),
    [("0.0.9", r"^worker tcp://\S+ has hpcsimkit 0\.0\.9 \w+; this process has hpcsimkit \d\S+ \w+$"),
     (None, r"^worker tcp://\S+ has no hpcsimkit \d\S+ \w+: .*No module named .*hpcsimkit\.engine")],
)  # fmt: skip
def test_workers_with_another_version(tmp_path: Path, root: Path, version: str | None, message: str) -> None:
    """Refused before any task starts."""
    if version is None:
        (tmp_path / "hpcsimkit").mkdir()
        (tmp_path / "hpcsimkit" / "__init__.py").touch()
    else:
        shutil.copytree(
            root / "hpcsimkit", tmp_path / "hpcsimkit", ignore=shutil.ignore_patterns("__pycache__")
        )
        (tmp_path / "hpcsimkit" / "_version.py").write_text(f'__version__ = "{version}"\n')
    with scheduler(0) as url:
        command = [sys.executable, "-m", "distributed.cli.dask_worker", url, "--nthreads", "1", "--no-nanny"]
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        worker = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
        try:
            with distributed.Client(url, set_as_default=False) as client:
                client.wait_for_workers(1)
            with pytest.raises(UsageError, match=message):
                perform([Step("x")], Store(tmp_path), Dask(url, insecure=True))
        finally:
            worker.kill()
            worker.wait()
    assert not (tmp_path / "order.txt").exists()


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    line = r"^this engine needs the packages distributed, cryptography: pip install 'hpcsimkit\[cluster\]'$"
    with pytest.raises(UsageError, match=line):
        perform([Step("x")], Store(tmp_path), engine_named("dask:2"))
