"""Engines that execute tasks: in this process, or in worker processes of this machine."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import count
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, cast

from hpcsimkit.engine.store import reason_of
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.engine.user_code import Consents
from hpcsimkit.engine.waiting import Waiting
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

        Parameters
        ----------
        tasks : sequence of Task
            Tasks in the order of execution, as far as their requirements allow it.
        work : callable
            Function to call for each task; pickled where a worker does not inherit it.
        tell : callable
            Callback ``tell(name, done)`` for progress.
        failed : callable
            Callback for each failed task.
        """


TASKS_A_COLLECTION = 500
"""Number of tasks between collections of garbage, which Python itself makes rarely beside many tasks."""


class InProcess(Engine):
    """Executes tasks one after the other in this process."""

    workers = 1

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`."""
        waiting = Waiting(tasks, failed)
        for number in count(1):
            task = waiting.next()
            if task is None:
                return
            if not number % TASKS_A_COLLECTION:
                gc.collect()
            name = task.name
            try:
                work(task, lambda done, name=name: tell(name, done))  # type: ignore[misc]
            except Exception as error:
                waiting.fail(task, error)
            else:
                waiting.complete(task)


class Threads(Engine):
    """Executes tasks in threads of this process: for tasks that run machine code most of the time.

    Parameters
    ----------
    workers : int
        Maximum number of parallel threads, 1 or more.
    """

    workers = 1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`. After an error, those that have begun are completed."""
        waiting = Waiting(tasks, failed)
        running: dict[Future[None], Task] = {}
        with ThreadPoolExecutor(self.workers) as pool:
            while True:
                while len(running) < self.workers and (task := waiting.next()) is not None:
                    running[pool.submit(work, task, partial(tell, task.name))] = task
                if not running:
                    return
                for future in futures.wait(running, return_when=FIRST_COMPLETED).done:
                    task, error = running.pop(future), future.exception()
                    if isinstance(error, Exception):
                        waiting.fail(task, error)
                    else:
                        future.result()
                        waiting.complete(task)


ATTEMPTS = 2
"""Maximum number of attempts if the process of a task dies, mostly for lack of memory."""

LONG = 1.0
"""Time of a task after which its process is replaced, so that memory is given back [s]."""


class Processes(Engine):
    """Executes tasks in worker processes of this machine.

    A worker that dies loses only its own task, which another worker attempts once more. A worker is replaced
    after a task that took a second or more: a new process costs little beside it, and memory is given back.

    Parameters
    ----------
    workers : int
        Maximum number of parallel processes, 1 or more.
    """

    workers = 1

    def __init__(self, workers: int) -> None:
        self.workers = workers

    def run(
        self, tasks: Sequence[Task], work: Work, tell: Callable[[str, int], None], failed: Failed
    ) -> None:
        """Execute tasks; see :meth:`Engine.run`."""
        pool = _Pool(tasks, work, self.workers)
        waiting = Waiting(tasks, failed)
        deaths: Counter[str] = Counter()
        try:
            while True:
                while pool.has_room and (task := waiting.next()) is not None:
                    pool.start(task)
                if not pool.busy:
                    return
                for task, message in pool.messages():
                    if isinstance(message, int):
                        tell(task.name, message)
                    elif isinstance(message, Exception):
                        waiting.fail(task, message)
                    elif message == DONE:
                        waiting.complete(task)
                    else:
                        deaths[task.name] += 1
                        if deaths[task.name] < ATTEMPTS:
                            waiting.put_back(task)
                        else:
                            waiting.fail(task, _death(task, int(message)))
        finally:
            pool.end()


DONE = "done"


class _Worker(NamedTuple):
    """Worker process, the connection to it, its task, and the start time of the task [s]."""

    process: Any
    connection: Connection
    task: Task
    began: float


class _Pool:
    """Worker processes: those with a task, and idle ones."""

    def __init__(self, tasks: Sequence[Task], work: Work, workers: int) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.work = work
        self.workers = workers
        self.busy: dict[Connection, _Worker] = {}
        self.idle: list[tuple[Any, Connection]] = []

    @property
    def has_room(self) -> bool:
        """Whether a further task can start."""
        return len(self.busy) < self.workers

    def start(self, task: Task) -> None:
        """Give a task to an idle worker, or to a new one."""
        process, connection = self.idle.pop() if self.idle else self._new()
        connection.send(task.name)
        self.busy[connection] = _Worker(process, connection, task, time.monotonic())

    def messages(self) -> list[tuple[Task, int | str | Exception]]:
        """Wait for messages of the workers: progress, `DONE`, an error, or the exit code of a dead worker."""
        ready = cast("list[Connection]", wait(list(self.busy)))
        return [(self.busy[connection].task, self._message(connection)) for connection in ready]

    def _message(self, connection: Connection) -> int | str | Exception:
        try:
            message: int | str | Exception = connection.recv()
        except (EOFError, ConnectionError):
            process = self.busy.pop(connection).process
            process.join()
            return str(process.exitcode)
        if not isinstance(message, int):
            self._release(self.busy.pop(connection))
        return message

    def _release(self, worker: _Worker) -> None:
        """Keep a worker for a further task, or let it end."""
        if time.monotonic() - worker.began < LONG:
            self.idle.append((worker.process, worker.connection))
        else:
            worker.connection.close()
            worker.process.join()

    def _new(self) -> tuple[Any, Connection]:
        """Start a worker process; on Linux it inherits the tasks, elsewhere they are pickled."""
        context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
        ours, theirs = context.Pipe()
        others = [*self.busy, *(connection for _, connection in self.idle), ours]
        inherited = others if sys.platform == "linux" else []
        arguments = (Consents(), self.tasks, self.work, theirs, inherited)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _blocked():  # a signal before _serve would be handled there as in this process
            process.start()
        theirs.close()  # so that reading fails once the process has ended
        return process, ours

    def end(self) -> None:
        """Terminate all workers."""
        processes = [*(worker.process for worker in self.busy.values()), *(each for each, _ in self.idle)]
        for process in processes:
            process.terminate()
        for process in processes:
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
            connection.send(DONE)
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


def _death(task: Task, exit_code: int) -> HpcsimkitError:
    how = f"by signal {-exit_code}" if exit_code < 0 else f"with exit code {exit_code}"
    memory = "; is there enough memory?" if exit_code == -9 else ""
    return HpcsimkitError(f"{task.label}: its process ended {how}, {ATTEMPTS} times{memory}")


def engine_of(workers: int) -> Engine:
    """Return the engine for a number of parallel workers of this machine.

    >>> engine_of(1).workers, engine_of(4).workers
    (1, 4)
    """
    return InProcess() if workers == 1 else Processes(workers)
