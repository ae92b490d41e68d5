"""Work in processes of its own: results on disk, progress by pipe, a death noticed."""

from __future__ import annotations

import multiprocessing
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from hpcsimkit.errors import HpcsimkitError

__all__ = ["Work", "run_in_processes"]

Work = Callable[[str, Callable[[int], None]], None]
"""``work(name, tell)`` does the work of that name, puts its outcome on disk, and tells how far it is."""

ATTEMPTS = 2
"""How often work is begun whose process dies (for want of memory, mostly)."""


def run_in_processes(
    names: Sequence[str], work: Work, *, workers: int, tell: Callable[[str, int], None]
) -> None:
    """Do the work of each name in a process of its own, at most `workers` of them at a time.

    One process a task, and not a pool: a process that dies takes nothing with it but its own work.

    Parameters
    ----------
    names : sequence of str
        What to do, in this order.
    work : callable
        See `Work`; processes inherit it on Linux, elsewhere it is pickled.
    workers : int
        How many processes at a time, 1 or more.
    tell : callable
        ``tell(name, done)`` passes on what the work tells.

    Raises
    ------
    HpcsimkitError
        Some work failed (the error is its own), or its process died twice; the others are ended.
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


def _start(work: Work, name: str) -> tuple[Connection, Any]:
    """Start a process; it sends how far it is, at last `DONE` or an exception."""
    context: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(work, name, theirs), daemon=True)
    process.start()
    theirs.close()  # so that its end shows when the process is gone
    return ours, process


def _run(work: Work, name: str, connection: Connection) -> None:
    """Do the work of one name: what a process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all; the one who started us ends us
    try:
        work(name, connection.send)
        connection.send(DONE)
    except KeyboardInterrupt:  # told to end, it has come to a good end and kept what it had
        pass
    except HpcsimkitError as error:
        connection.send(error)
    except Exception as error:  # whatever it is, it becomes one line where it is shown
        connection.send(HpcsimkitError(f"{name}: {type(error).__name__}: {error}"))


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
