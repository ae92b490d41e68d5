"""Execution of tasks: those without an outcome in the store, each after those that it requires."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.pool import WorkerLostError
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import StorageError
from hpcsimkit.kernel.watchdog import Watchdog


def stop(task: Task, error: Exception) -> NoReturn:
    """Raise the error of a failed task, which ends the others."""
    raise WorkerLostError(f"{task.label}: {error}") if isinstance(error, WorkerLostError) else error


def perform(
    tasks: Sequence[Task],
    store: Store,
    engine: Engine,
    *,
    tell: Callable[[str, int], None] = lambda name, done: None,
    failed: Callable[[Task, Exception], None] = stop,
) -> None:
    """Perform the tasks that the store does not have; failures are recorded there.

    `tell(name, done)` is told the progress of a task, from 0 to its size. `failed(task, error)` by default
    raises the error; if it returns, the other tasks go on, except those that require the failed one.
    """
    missing = [task for task in tasks if not store.has(task)]

    def fail(task: Task, error: Exception) -> None:
        # Most errors are recorded where they occur; not so the death of a worker.
        if not isinstance(error, StorageError) and store.failure(task) is None:
            store.fail(task, error)
        failed(task, error)

    try:
        engine.run(missing, partial(_perform, store), tell, fail)
    except BaseException:
        store.tidy(missing)  # the other workers were terminated, maybe while they wrote a file
        raise


def finish(
    tasks: Sequence[Task],
    store: Store,
    engine: Callable[[list[Task]], Engine],
    *,
    tell: Callable[[str, int], None],
) -> list[Any]:
    """Perform the tasks that the store does not have, and return the outcomes of all.

    `engine(tasks)` returns the engine for the tasks to perform; `tell` is told the whole size of each task
    with an outcome at the beginning.
    """
    missing = []
    for task in tasks:
        if store.has(task):
            tell(task.name, task.size)
        else:
            missing.append(task)
    perform(missing, store, engine(missing), tell=tell)
    return [store.outcome(task) for task in tasks]


def finished(tasks: Sequence[Task], store: Store, noun: str) -> str:
    """Return the number of tasks with an outcome as text; empty if there are none."""
    count = sum(map(store.has, tasks))
    return f"{count} of {len(tasks)} {noun} are finished" if count else ""


def _perform(store: Store, task: Task, tell: Tell) -> None:
    """Perform one task, in any process."""
    tell(0)
    with Watchdog():
        store.perform(task, tell)
    tell(task.size)
