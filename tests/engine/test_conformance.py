"""The same for all engines, whatever happens to a worker: others go on, and the failure names its task."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from hpcsimkit.engine.dask import Dask
from hpcsimkit.engine.engines import Engine, InProcess, Processes, Threads
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.slurm import Slurm
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import StorageError, UsageError
from hpcsimkit.experiments.sweep.sweep import Sweep
from hpcsimkit.experiments.sweep.sweep_run import SweepRun
from tests.engine.private_slurm import missing_programs, private_slurm
from tests.engine.steps import Step, order

HERE = ("in-process", "threads")
"""Engines whose tasks share the process of the command, and its death."""

KILLER = """
import os, signal
from hpcsimkit.policies import FCFS

class Killer(FCFS):
    def reset(self, system):
        os.kill(os.getpid(), signal.SIGKILL)
"""
SCRIPT = """
import pickle, sys
from hpcsimkit.engine.runner import perform

perform(*pickle.load(sys.stdin.buffer))
"""


@contextlib.contextmanager
def slurm_engine(folder: Path) -> Iterator[Engine]:
    with private_slurm(folder) as environment, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", environment["SLURM_CONF"])
        yield Slurm(2, partition="short", memory="1 GB")


no_slurm = bool(missing_programs()) or os.name != "posix" or os.geteuid() != 0
NAMES = [
    "in-process",
    "threads",
    "process",
    "processes",
    pytest.param("dask", marks=pytest.mark.slow),  # starts workers for each case
    pytest.param(
        "slurm",
        marks=[
            pytest.mark.slow,
            pytest.mark.skipif(no_slurm, reason="needs Slurm, as root: apt-get install slurm-wlm munge"),
        ],
    ),
]


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def engine(name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engines: dict[str, Callable[[], Engine]] = {
        "in-process": InProcess,
        "threads": lambda: Threads(2),
        "process": lambda: Processes(1),
        "processes": lambda: Processes(2),
        "dask": lambda: Dask(2),
    }
    if name in ("dask", "slurm"):
        for package in ("distributed", "dask_jobqueue", "cryptography"):
            if find_spec(package) is None:
                pytest.skip("needs the extra [cluster]: pip install 'hpcsimkit[cluster]'")
    if name in engines:
        yield engines[name]()
        return
    with slurm_engine(tmp_path_factory.mktemp("slurm")) as found:
        yield found


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(root))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def performed(tasks: Sequence[Step], store: Store, engine: Engine) -> dict[str, Exception]:
    """Perform tasks; returns the errors by the names of the tasks."""
    failed: dict[str, Exception] = {}
    perform(tasks, store, engine, failed=lambda task, error: failed.update({task.name: error}))
    return failed


def test_every_task_once_after_those_that_it_requires(folder: Path, engine: Engine) -> None:
    tasks = [Step("c", ("b", "a")), Step("b", ("a",)), Step("d"), Step("a", ("of another run",))]
    store, told = Store(folder), list[tuple[str, int]]()
    perform(tasks, store, engine, tell=lambda name, done: told.append((name, done)))
    found = order(folder)
    assert sorted(found) == ["a", "b", "c", "d"]
    assert found.index("a") < found.index("b") < found.index("c")
    for task in tasks:
        assert [done for name, done in told if name == task.name] == [0, 1, 2, 3, 3]
        assert store.has(task)
    perform(tasks, store, engine)
    assert order(folder) == found, "nothing is done twice"


def test_a_task_fails(folder: Path, engine: Engine) -> None:
    tasks = [
        Step("x", does="fail"),
        Step("y", ("x",)),
        Step("z", ("y",)),
        Step("a", does="refuse"),
        Step("b"),
    ]
    store = Store(folder)
    failed = performed(tasks, store, engine)
    assert {name: str(error).removeprefix("x: ValueError: ") for name, error in failed.items()} == {
        "x": "wrong",
        "a": "not understood",
        "y": "y: it requires x, which failed",
        "z": "z: it requires y, which failed",
    }
    assert store.failure(tasks[0]) == "ValueError: wrong"
    assert store.failure(tasks[3]) == "not understood"
    assert [store.has(task) for task in tasks] == [False, False, False, False, True]
    assert performed([Step("x"), Step("a")], store, engine) == {}
    assert store.failure(Step("x")) is None, "a failure is forgotten by the next attempt"


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_worker_dies(folder: Path, engine: Engine, name: str) -> None:
    store = Store(folder)
    tasks = [Step("a"), Step("x", does="die"), Step("o", does="die once"), Step("b"), Step("c")]
    if name in HERE:
        script = [sys.executable, "-c", SCRIPT]
        while not all(map(store.has, [tasks[0], *tasks[2:]])):
            once = [task for task in tasks if task.does != "die"]
            done = subprocess.run(script, input=pickle.dumps((once, store, engine)))
            assert done.returncode in (0, -signal.SIGKILL)
        done = subprocess.run(script, input=pickle.dumps((tasks, store, engine)))
        assert done.returncode == -signal.SIGKILL
        assert store.failure(tasks[1]) is None, "the command dies, too, and tells nothing"
    else:
        (death,) = performed(tasks, store, engine).items()
        assert death[0] == "x"
        assert str(death[1]).startswith("its ")
        assert str(death[1]).endswith(" (out of memory?), 2 times")
        assert store.failure(tasks[1]) == str(death[1])
        assert sorted(order(folder)) == ["a", "b", "c", "o", "o", "x", "x"], "no other task is begun again"
    assert [store.has(task) for task in tasks] == [True, False, True, True, True]
    assert performed([Step("x")], store, engine) == {}
    assert store.has(Step("x"))


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_worker_of_a_sweep_dies(folder: Path, engine: Engine, name: str) -> None:
    """As soon as the cell begins, before its folder is there, or nearly."""
    if name in HERE:
        pytest.skip("the command dies, too")
    (folder / "killer.py").write_text(KILLER)
    policies = ["fcfs", "killer.py:Killer", "sjf"]
    sweep = Sweep(jobs=50, policies=policies, sweep={"seed": [1]}, report=False)
    frame = SweepRun(sweep, folder / "out", engine=engine).run()
    assert frame["status"].tolist() == ["done", "failed", "done"]
    reasons = frame.loc[frame["status"] == "failed", "reason"]
    assert reasons.str.fullmatch(r"its .* ended .*\(out of memory\?\), 2 times").all()
    assert not list(folder.rglob("*.tmp"))


def test_a_task_hangs_and_the_command_is_stopped(folder: Path, engine: Engine) -> None:
    store, tasks = Store(folder), [Step("a"), Step("b"), Step("x", ("a", "b"), does="hang")]

    def tell(name: str, done: int) -> None:
        if name == "x" and done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(tasks, store, engine, tell=tell)
    assert [store.has(task) for task in tasks] == [True, True, False]
    assert store.failure(tasks[2]) is None
    assert performed([*tasks[:2], Step("x", ("a", "b"))], store, engine) == {}
    assert store.has(tasks[2])
    assert order(folder)[2:] == ["x", "x"]
    assert not (folder / "x" / "slept").exists()


def test_a_worker_answers_late(folder: Path, engine: Engine) -> None:
    """After all others, if there are others."""
    store = Store(folder)
    tasks = [
        Step("x", does="answer late" if engine.workers > 1 else "work"),
        Step("a"),
        Step("b"),
        Step("c", ("x",)),
    ]
    ended: list[str] = []
    perform(tasks, store, engine, tell=lambda name, done: ended.append(name) if done == 3 else None)
    assert all(map(store.has, tasks))
    assert list(dict.fromkeys(ended))[-2:] == ["x", "c"] or engine.workers == 1
    assert sorted(order(folder)) == ["a", "b", "c", "x"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_worker_finds_a_full_disk(folder: Path, engine: Engine) -> None:
    store, tasks = Store(folder), [Step("a"), Step("x", does="fill the disk"), Step("b")]
    failed = performed(tasks, store, engine)
    assert [(name, type(error)) for name, error in failed.items()] == [("x", StorageError)]
    assert str(failed["x"]).endswith("x: cannot be written: No space left on device")
    assert store.failure(tasks[1]) is None, "it is no failure of the task"
    assert [store.has(task) for task in tasks] == [True, False, True]
    with pytest.raises(StorageError, match=r"cannot be written: No space left on device$"):
        perform(tasks, store, engine)
    assert performed([Step("x")], store, engine) == {}


def test_two_commands_on_one_folder(folder: Path, engine: Engine) -> None:
    sweep = Sweep(jobs=50, policies=["fcfs", "sjf"], sweep={"seed": [1, 2]}, report=False)
    refused: list[str] = []

    def tell(done: int, failed: int, of: int) -> None:
        with pytest.raises(UsageError) as error:
            SweepRun(sweep, folder / "out", engine=engine).run()
        refused.append(str(error.value))

    frame = SweepRun(sweep, folder / "out", engine=engine).run(tell=tell)
    assert frame["status"].tolist() == ["done"] * 4
    (line,) = set(refused)
    assert line.startswith(f"{folder / 'out'}: another run is writing there now")
    assert frame.equals(SweepRun(sweep, folder / "out", engine=engine).run())
