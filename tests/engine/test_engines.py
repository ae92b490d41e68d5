"""Engines of this machine: their processes and threads; what holds for all engines is in test_conformance.py."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.engine import engines
from hpcsimkit.engine.engines import InProcess, Processes, Threads
from hpcsimkit.engine.runner import perform, stop
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import HpcsimkitError, StorageError
from tests.engine.steps import Step, order
from tests.waiting import until


def test_tasks_run_in_worker_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "LONG", math.inf)  # on a busy machine, any task may take long
    store, tasks = Store(tmp_path), [Step(name) for name in "abcdef"]
    perform(tasks, store, Processes(2))
    processes = {store.outcome(task)["pid"] for task in tasks}
    assert 1 <= len(processes) <= 2
    assert os.getpid() not in processes
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def test_tasks_that_have_begun_in_threads_are_completed_after_an_error(tmp_path: Path) -> None:
    def failed(task: Task, error: Exception) -> None:
        (tmp_path / "x" / "seen").touch()  # a later task may have begun before the error is seen
        raise error

    tasks, store = [Step("x", does="fail"), Step("waits", does="wait"), Step("z")], Store(tmp_path)
    with pytest.raises(ValueError, match=r"^wrong$"):
        perform(tasks, store, Threads(2), failed=failed)
    assert [store.has(task) for task in tasks] == [False, True, False]


def test_a_worker_is_replaced_after_a_long_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "LONG", 0.0)
    store, tasks = Store(tmp_path), [Step(name) for name in "abc"]
    perform(tasks, store, Processes(1))
    assert len({store.outcome(task)["pid"] for task in tasks}) == 3


def test_a_worker_goes_on_after_a_long_task_that_prepares_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "LONG", 0.0)
    monkeypatch.setattr(Step, "prepares_others", True)
    store, tasks = Store(tmp_path), [Step(name) for name in "abc"]
    perform(tasks, store, Processes(1))
    assert len({store.outcome(task)["pid"] for task in tasks}) == 1


@pytest.mark.parametrize(
    ("does", "message"), [("fail", r"^x: ValueError: wrong$"), ("refuse", r"^not understood$")]
)
def test_an_error_ends_the_others(tmp_path: Path, does: str, message: str) -> None:
    with pytest.raises(HpcsimkitError, match=message):
        perform([Step("sleeps", does="hang"), Step("x", does=does)], Store(tmp_path), Processes(2))
    assert not (tmp_path / "sleeps" / "slept").exists()
    pid = tmp_path / "sleeps" / "pid"
    if pid.exists() and pid.read_text():  # it had begun
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid.read_text()), 0)


def test_an_error_leaves_no_temporary_files_of_terminated_workers(tmp_path: Path) -> None:
    class Terminated(engines.Engine):
        workers = 1

        def run(self, tasks: Any, work: Any, tell: Any, failed: Any) -> None:
            (tmp_path / "x").mkdir()
            (tmp_path / "x" / ".outcome.json.1.tmp").touch()
            raise StorageError("disk full")

    with pytest.raises(StorageError, match=r"^disk full$"):
        perform([Step("x"), Step("not begun")], Store(tmp_path), Terminated())
    assert list((tmp_path / "x").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_an_error_by_the_death_of_a_process_names_the_task(tmp_path: Path) -> None:
    with pytest.raises(
        HpcsimkitError, match=r"^x: its process ended by signal 9 \(out of memory\?\), 2 times$"
    ):
        perform([Step("x", does="die")], Store(tmp_path), Processes(2))


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_a_suspended_process_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps the signal to end waiting, as one that waits for a lost disk does."""
    monkeypatch.setattr(engines, "SECONDS_TO_END", 0.1)

    def tell(name: str, done: int) -> None:
        if name == "halts" and done == 1:
            until(lambda: " T " in Path(f"/proc/{pid.read_text()}/stat").read_text())
            raise KeyboardInterrupt

    pid = tmp_path / "halts" / "pid"
    with pytest.raises(KeyboardInterrupt):
        perform([Step("halts", does="halt")], Store(tmp_path), Processes(2), tell=tell)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_an_idle_process_that_died_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "LONG", math.inf)
    start = engines._ProcessPool.start

    def start_after_death(pool: engines._ProcessPool, task: Step) -> None:
        for process, _ in pool._idle:
            process.kill()
            process.join()
        start(pool, task)

    monkeypatch.setattr(engines._ProcessPool, "start", start_after_death)
    store, tasks = Store(tmp_path), [Step(name) for name in "abc"]
    perform(tasks, store, Processes(1))
    assert len({store.outcome(task)["pid"] for task in tasks}) == 3
    assert order(tmp_path) == ["a", "b", "c"]


def test_a_failure_is_forgotten_by_the_next_attempt(tmp_path: Path) -> None:
    store = Store(tmp_path)
    perform([Step("x", does="fail")], store, InProcess(), failed=lambda task, error: None)
    assert store.failure(Step("x")) == "ValueError: wrong"
    perform([Step("x")], store, InProcess())
    assert store.failure(Step("x")) is None
    assert store.has(Step("x"))


def test_a_task_fails_before_it_has_begun(tmp_path: Path) -> None:
    store, task = Store(tmp_path), Step("x")
    store.fail(task, HpcsimkitError("its worker died"))
    assert store.failure(task) == "its worker died"
    assert not store.has(task)
    assert store.set_aside(task) is None, "its inputs are recorded, too"
    store.perform(task, lambda done: None)
    assert (store.failure(task), store.has(task)) == (None, True)


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
    text = (
        "from hpcsimkit.engine.task import Task\n"
        "class Mine(Task):\n    name, kind, size = 'mine', 'mine', 1\n"
        "    def inputs(self):\n        return 1\n    def run(self, folder, tell):\n        return 2\n"
    )
    file.write_text(text)
    import task_of_a_user  # type: ignore[import-not-found]

    before = task_of_a_user.Mine().fingerprint
    assert task_of_a_user.Mine().fingerprint == before
    file.write_text(text.replace("return 2", "return 3"))
    os.utime(file, ns=(1, 1))
    assert task_of_a_user.Mine().fingerprint != before
