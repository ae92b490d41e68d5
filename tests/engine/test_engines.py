"""Engines: every task once, after those that it requires, whatever happens to its process."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.engine import engines
from hpcsimkit.engine.engines import Engine, InProcess, Processes, Threads
from hpcsimkit.engine.runner import perform, stop
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, UsageError
from tests.waiting import PATIENCE

ENGINES = [InProcess(), Threads(3), Processes(1), Processes(3)]


@dataclass(frozen=True)
class Step(Task):
    """Writes its process; works, fails, dies, sleeps, or waits for the failure of another."""

    name: str = "x"  # type: ignore[misc]
    after: tuple[str, ...] = ()
    does: str = "work"
    size: int = 3  # type: ignore[misc]
    kind = "step"

    @property
    def requires(self) -> Collection[str]:
        return self.after

    def inputs(self) -> Any:
        return self.name

    def run(self, folder: Path, tell: Tell) -> Any:
        with (folder.parent / "order.txt").open("a") as file:
            file.write(f"{self.name}\n")
        (folder / "pid").write_text(str(os.getpid()))
        if self.does == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "die once" and not (folder / "died").exists():
            (folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.does == "sleep":
            for _ in range(100 * PATIENCE):
                time.sleep(0.01)
            (folder / "slept").touch()
        while self.does == "wait" and not (folder.parent / "x" / "failure.json").exists():
            time.sleep(0.01)
        if self.does == "fail":
            raise ValueError("wrong")
        if self.does == "refuse":
            raise UsageError("not understood")
        for number in range(1, self.size + 1):
            tell(number)
        return {"pid": os.getpid()}


def order(place: Path) -> list[str]:
    return (place / "order.txt").read_text().split()


@pytest.mark.parametrize("engine", ENGINES, ids=["here", "threads", "one", "three"])
def test_every_task_once_after_those_that_it_requires(tmp_path: Path, engine: Engine) -> None:
    tasks = [Step("c", ("b", "a")), Step("b", ("a",)), Step("d"), Step("a", ("of another run",))]
    store, told = Store(tmp_path), list[tuple[str, int]]()
    perform(tasks, store, engine, tell=lambda name, done: told.append((name, done)))
    found = order(tmp_path)
    assert sorted(found) == ["a", "b", "c", "d"]
    assert found.index("a") < found.index("b") < found.index("c")
    for task in tasks:
        reports = [done for name, done in told if name == task.name]
        assert reports == [0, 1, 2, 3, 3]
        assert store.has(task)
    perform(tasks, store, engine)
    assert order(tmp_path) == found, "nothing is done twice"


def test_tasks_run_in_worker_processes(tmp_path: Path) -> None:
    store, tasks = Store(tmp_path), [Step(name) for name in "abcdef"]
    perform(tasks, store, Processes(2))
    processes = {store.outcome(task)["pid"] for task in tasks}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_tasks_that_have_begun_in_threads_are_completed_after_an_error(tmp_path: Path) -> None:
    tasks, store = [Step("x", does="fail"), Step("waits", does="wait"), Step("z")], Store(tmp_path)
    with pytest.raises(ValueError, match=r"^wrong$"):
        perform(tasks, store, Threads(2))
    assert [store.has(task) for task in tasks] == [False, True, False]


def test_a_worker_is_replaced_after_a_long_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "LONG", 0.0)
    store, tasks = Store(tmp_path), [Step(name) for name in "abc"]
    perform(tasks, store, Processes(1))
    assert len({store.outcome(task)["pid"] for task in tasks}) == 3


@pytest.mark.parametrize(
    ("does", "message"), [("fail", r"^x: ValueError: wrong$"), ("refuse", r"^not understood$")]
)
def test_an_error_ends_the_others(tmp_path: Path, does: str, message: str) -> None:
    with pytest.raises(HpcsimkitError, match=message):
        perform([Step("sleeps", does="sleep"), Step("x", does=does)], Store(tmp_path), Processes(2))
    assert not (tmp_path / "sleeps" / "slept").exists()
    pid = tmp_path / "sleeps" / "pid"
    if pid.exists():  # it had begun
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


@pytest.mark.parametrize("engine", ENGINES, ids=["here", "threads", "one", "three"])
def test_the_others_go_on_if_the_caller_wishes(tmp_path: Path, engine: Engine) -> None:
    tasks = [
        Step("x", does="fail"), Step("y", ("x",)), Step("z", ("y",)), Step("a", does="refuse"), Step("b"),
    ]  # fmt: skip
    store, failed = Store(tmp_path), dict[str, str]()
    perform(tasks, store, engine, failed=lambda task, error: failed.update({task.name: str(error)}))
    assert set(failed) == {"x", "y", "z", "a"}
    assert failed["y"] == "y: it requires x, which failed"
    assert failed["z"] == "z: it requires y, which failed"
    assert store.failure(tasks[0]) == "ValueError: wrong"
    assert store.failure(tasks[3]) == "not understood"
    assert store.has(tasks[4])
    assert not any(map(store.has, tasks[:4]))


def test_a_failure_is_forgotten_by_the_next_attempt(tmp_path: Path) -> None:
    store = Store(tmp_path)
    perform([Step("x", does="fail")], store, InProcess(), failed=lambda task, error: None)
    assert store.failure(Step("x")) == "ValueError: wrong"
    perform([Step("x")], store, InProcess())
    assert store.failure(Step("x")) is None
    assert store.has(Step("x"))


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_death_is_noticed_and_tried_twice(tmp_path: Path) -> None:
    with pytest.raises(
        HpcsimkitError, match=r"^x: its process ended by signal 9 \(out of memory\?\), 2 times$"
    ):
        perform([Step("x", does="die")], Store(tmp_path), Processes(2))
    assert order(tmp_path) == ["x", "x"]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_task_survives_the_death_of_its_process(tmp_path: Path) -> None:
    store, tasks = Store(tmp_path), [Step("x", does="die once"), *(Step(name) for name in "abcd")]
    perform(tasks, store, Processes(2))
    assert all(map(store.has, tasks))
    assert sorted(order(tmp_path)) == ["a", "b", "c", "d", "x", "x"]


def test_tasks_can_be_sent_to_a_process_that_inherits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS and Windows, and on the workers of a cluster."""
    monkeypatch.setattr(engines.sys, "platform", "darwin")
    store, tasks = Store(tmp_path), [Step(name) for name in "ab"]
    perform(tasks, store, Processes(2))
    assert all(map(store.has, tasks))


def test_errors_are_raised_as_they_are_in_this_process(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^wrong$"):
        perform([Step("x", does="fail")], Store(tmp_path), InProcess())
    with pytest.raises(ValueError, match=r"^wrong$"):
        stop(Step("x"), ValueError("wrong"))


def test_code_and_inputs_decide_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "task_of_a_user.py"
    text = Path(__file__).read_text().partition("ENGINES =")[0]
    text += "class Mine(Task):\n    name, kind, size = 'mine', 'mine', 1\n"
    text += "    def inputs(self):\n        return 1\n    def run(self, folder, tell):\n        return 2\n"
    file.write_text(text)
    import task_of_a_user  # type: ignore[import-not-found]

    before = task_of_a_user.Mine().fingerprint
    assert task_of_a_user.Mine().fingerprint == before
    file.write_text(text.replace("return 2", "return 3"))
    os.utime(file, ns=(1, 1))
    assert task_of_a_user.Mine().fingerprint != before
