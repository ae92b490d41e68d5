"""Worker processes: results on disk, progress through a pipe, and detection of processes that die."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from hpcsimkit.errors import HpcsimkitError

__all__ = ["Work", "run_in_processes"]

Work = Callable[[str, Callable[[int], None]], None]
"""Function ``work(name, tell)`` that does a named piece of work, writes it to disk and reports progress."""

ATTEMPTS = 2
"""Maximum number of attempts if the process of some work dies, mostly for lack of memory."""


def run_in_processes(
    names: Sequence[str], work: Work, *, workers: int, tell: Callable[[str, int], None]
) -> None:
    """Do each named piece of work in its own process, at most `workers` of them in parallel.

    There is one process per piece of work instead of a pool, so that a process that dies loses only its own
    work.

    Parameters
    ----------
    names : sequence of str
        Names of the work, in the order of execution.
    work : callable
        Function to call, see `Work`; processes inherit it on Linux, elsewhere it is pickled.
    workers : int
        Maximum number of parallel processes, 1 or more.
    tell : callable
        Callback ``tell(name, done)`` for progress reports of the work.

    Raises
    ------
    HpcsimkitError
        Some work failed (with its own error), or its process died twice; the others are terminated.
    """
    waiting = deque(names)
    running: dict[Any, tuple[str, Any]] = {}
    deaths: Counter[str] = Counter()
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                pipe, process = _start(work, waiting[0])
                running[pipe] = waiting.popleft(), process
            for connection in wait(list(running)):
                name, process = running[connection]
                message = _received(cast(Connection, connection))
                if isinstance(message, int):
                    tell(name, message)
                    continue
                del running[connection]
                process.join()
                if isinstance(message, Exception):
                    raise message
                if message == DIED:
                    deaths[name] += 1
                    _check_deaths(name, deaths[name], process.exitcode)
                    waiting.append(name)
    finally:
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


DONE, DIED = "done", "died"

ORPHANED = 3
"""Exit code of a process after the end of its parent."""


def _start(work: Work, name: str) -> tuple[Connection, Any]:
    """Start a process; it sends its progress, and finally `DONE` or an exception."""
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, name, theirs), daemon=True)
    process.start()
    theirs.close()  # so that reading fails once the process has ended
    return ours, process


def _run(work: Work, name: str, connection: Connection) -> None:
    """Do one piece of work (main function of a process)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the parent ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # by this; the parent prints the line
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(name, connection.send)
        connection.send(DONE)
    except KeyboardInterrupt:  # the work was asked to end and has saved its state
        pass
    except HpcsimkitError as error:
        connection.send(error)
    except Exception as error:  # shown as one line
        connection.send(HpcsimkitError(f"{name}: {type(error).__name__}: {error}"))


def _end_with_parent() -> None:
    """End this process as soon as its parent has ended, even by ``kill -9``."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "this is a process that another one started"
    parent.join()
    os._exit(ORPHANED)


def _received(connection: Connection) -> int | str | Exception:
    try:
        message: int | str | Exception = connection.recv()
    except (EOFError, ConnectionError):
        return DIED
    return message


def _check_deaths(name: str, deaths: int, exit_code: int) -> None:
    if deaths >= ATTEMPTS:
        how = f"by signal {-exit_code}" if exit_code < 0 else f"with exit code {exit_code}"
        memory = "; is there enough memory?" if exit_code == -9 else ""
        raise HpcsimkitError(f"{name}: the process that simulated it ended {how}, {deaths} times{memory}")
