"""Engines that execute tasks: in this process, or in worker processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, cast

from hpcsimkit.engine.pool import Message, Pool, WorkerLostError, execute
from hpcsimkit.engine.store import reason_of
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.engine.user_code import Consents
from hpcsimkit.errors import HpcsimkitError

__all__ = ["Engine", "Failed", "InProcess", "Processes", "Threads", "Work", "engine_of"]

Work = Callable[[Task, Tell], None]
"""Function ``work(task, tell)`` that performs a task, writes it to disk and reports progress."""

Failed = Callable[[Task, Exception], None]
"""Callback ``failed(task, error)``: raises the error, or returns for the other tasks to go on."""


class Engine(ABC):
    """Executes tasks; results are on disk, so that an engine returns nothing."""

    @property
    @abstractmethod
    def workers(self) -> int:
        """Maximum number of tasks executed in parallel."""

    @abstractmethod
    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks, each after those of them that it requires.

        `work` is called for each task, and pickled where a worker does not inherit it; `tell(name, done)` is
        the callback for progress, and `failed` that for each failed task.
        """


class InProcess(Engine):
    """Executes tasks one after the other in this process."""

    workers = 1

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`."""
        execute(_Here(work, tell), tasks, tell, failed)


class _Here(Pool):
    """The own process, which performs a task while its messages are awaited."""

    def __init__(self, work: Work, tell: Callable[[str, int], None]) -> None:
        self.work = work
        self.tell = tell
        self._task: Task | None = None

    @property
    def has_room(self) -> bool:
        return self._task is None

    @property
    def busy(self) -> bool:
        return self._task is not None

    def start(self, task: Task) -> None:
        self._task = task

    def messages(self) -> list[tuple[Task, Message]]:
        task, self._task = self._task, None
        assert task is not None, "messages are awaited while a task is under way"
        try:
            self.work(task, partial(self.tell, task.name))
        except Exception as error:
            return [(task, error)]
        return [(task, None)]


class Threads(Engine):
    """Executes tasks in threads of this process: for tasks that run machine code most of the time."""

    workers = 1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`. After an error, those that have begun are completed."""
        with ThreadPoolExecutor(self.workers) as threads:
            execute(_ThreadPool(threads, self.workers, work, tell), tasks, tell, failed)


class _ThreadPool(Pool):
    """Threads of this process."""

    def __init__(
        self, threads: ThreadPoolExecutor, workers: int, work: Work, tell: Callable[[str, int], None]
    ) -> None:
        self.threads = threads
        self.workers = workers
        self.work = work
        self.tell = tell
        self._running: dict[Future[None], Task] = {}

    @property
    def has_room(self) -> bool:
        return len(self._running) < self.workers

    @property
    def busy(self) -> bool:
        return bool(self._running)

    def start(self, task: Task) -> None:
        self._running[self.threads.submit(self.work, task, partial(self.tell, task.name))] = task

    def messages(self) -> Iterator[tuple[Task, Message]]:
        for future in futures.wait(self._running, return_when=FIRST_COMPLETED).done:
            task, error = self._running.pop(future), future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error  # such as KeyboardInterrupt
            yield task, error


LONG = 1.0
"""Time of a task after which its process is replaced, so that memory is given back [s]."""


SECONDS_TO_END = 5.0
"""Time in which a terminated process has to end before it is killed [s]."""


class Processes(Engine):
    """Executes tasks in worker processes of this machine.

    A worker that dies loses only its own task, which another worker attempts once more. A worker is replaced
    after a task that took a second or more, unless it prepares others: a new process costs little beside it,
    and memory is given back.
    """

    workers = 1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`."""
        pool = _ProcessPool(tasks, work, self.workers)
        try:
            execute(pool, tasks, tell, failed)
        finally:
            pool.end()


class _Worker(NamedTuple):
    """Worker process, the connection to it, its task, and the start time of the task [s]."""

    process: Any
    connection: Connection
    task: Task
    began: float


class _ProcessPool(Pool):
    """Worker processes: those with a task, and idle ones."""

    def __init__(self, tasks: Sequence[Task], work: Work, workers: int) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.work = work
        self.workers = workers
        self._busy: dict[Connection, _Worker] = {}
        self._idle: list[tuple[Any, Connection]] = []

    @property
    def has_room(self) -> bool:
        return len(self._busy) < self.workers

    @property
    def busy(self) -> bool:
        return bool(self._busy)

    def start(self, task: Task) -> None:
        """Give a task to an idle worker, or to a new one."""
        process, connection = self._idle.pop() if self._idle else self._new()
        try:
            connection.send(task.name)
        except OSError:  # it died while it was idle
            connection.close()
            process.join()
            self.start(task)
        else:
            self._busy[connection] = _Worker(process, connection, task, time.monotonic())

    def messages(self) -> list[tuple[Task, Message]]:
        ready = cast("list[Connection]", wait(list(self._busy)))
        return [(self._busy[connection].task, self._message(connection)) for connection in ready]

    def _message(self, connection: Connection) -> Message:
        try:
            message: Message = connection.recv()
        except (EOFError, ConnectionError):
            process = self._busy.pop(connection).process
            process.join()
            return WorkerLostError(f"its process ended {_how(process.exitcode)}")
        if not isinstance(message, int):
            self._release(self._busy.pop(connection))
        return message

    def _release(self, worker: _Worker) -> None:
        """Keep a worker for a further task, or let it end."""
        if worker.task.prepares_others or time.monotonic() - worker.began < LONG:
            self._idle.append((worker.process, worker.connection))
        else:
            worker.connection.close()
            worker.process.join()

    def _new(self) -> tuple[Any, Connection]:
        """Start a worker process; on Linux it inherits the tasks, elsewhere they are pickled."""
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        ours, theirs = context.Pipe()
        others = [*self._busy, *(connection for _, connection in self._idle), ours]
        inherited = others if sys.platform == "linux" else []
        arguments = (Consents(), self.tasks, self.work, theirs, inherited)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _blocked():  # a signal before _serve would be handled there as in this process
            process.start()
        theirs.close()  # so that reading fails once the process has ended
        return process, ours

    def end(self) -> None:
        """Terminate all workers."""
        processes = [*(worker.process for worker in self._busy.values()), *(each for each, _ in self._idle)]
        for process in processes:
            process.terminate()
        for process in processes:
            process.join(SECONDS_TO_END)
            process.kill()  # a suspended process keeps the first signal waiting
            process.join()


BLOCKABLE = {signal.SIGINT, signal.SIGTERM} if hasattr(signal, "pthread_sigmask") else set()
"""Signals that wait while a process is started; none on Windows."""


@contextmanager
def _blocked() -> Iterator[None]:
    """Block signals, in this process and in those that it starts."""
    if not BLOCKABLE:
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, BLOCKABLE)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


ORPHANED = 3
"""Exit code of a process after the end of its parent."""


def _serve(
    consents: Consents,
    tasks: dict[str, Task],
    work: Work,
    connection: Connection,
    inherited: Sequence[Connection],
) -> None:
    """Perform the tasks of received names (main function of a worker process).

    Where the arguments are pickled, the consents come first: modules of the tasks are found by them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by this; the parent prints the line
    if BLOCKABLE:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, BLOCKABLE)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    for other in inherited:  # a worker that holds the ends of others would hide their death
        other.close()
    while True:
        try:
            task = tasks[connection.recv()]
        except EOFError:
            return
        try:
            work(task, connection.send)
            connection.send(None)
        except KeyboardInterrupt:  # the task was asked to end and has saved its state
            return
        except HpcsimkitError as error:
            connection.send(error)
        except Exception as error:  # shown as one line
            connection.send(HpcsimkitError(f"{task.label}: {reason_of(error)}"))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by ``kill -9``."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a process that another one started"
    parent.join()
    os._exit(ORPHANED)


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"with exit code {exit_code}"
    return f"by signal {-exit_code}{' (out of memory?)' * (exit_code == -9)}"


def engine_of(workers: int) -> Engine:
    """Return the engine for a number of parallel workers of this machine.

    >>> engine_of(1).workers, engine_of(4).workers
    (1, 4)
    """
    return InProcess() if workers == 1 else Processes(workers)
