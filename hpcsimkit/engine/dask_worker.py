"""Execution of a task on a worker of Dask, in the working directory of the caller."""

from __future__ import annotations

import ctypes
import os
import pickle
import platform
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

from hpcsimkit.engine.code_version import code_files, code_version, hash_of
from hpcsimkit.engine.engines import Work
from hpcsimkit.engine.identity import modules_of
from hpcsimkit.engine.store import reason_of
from hpcsimkit.engine.task import Task
from hpcsimkit.engine.user_code import forget
from hpcsimkit.errors import HpcsimkitError

VARIABLES = "HPCSIMKIT_"
"""Beginning of the names of environment variables that a worker takes over."""

SECONDS_BETWEEN_CHECKS = 0.2
"""Interval between checks of whether a task is cancelled [s]."""


class Origin(NamedTuple):
    """Process that submits tasks.

    `run` is the unique name of the run, and the topic of its messages; `kit` the version with the hash of its
    code; `files` are hashes of the other files with code of the tasks.
    """

    run: str
    folder: str
    variables: dict[str, str]
    kit: str
    files: dict[str, str]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Self:
        """Return this process, as the origin of some tasks."""
        variables = {name: value for name, value in os.environ.items() if name.startswith(VARIABLES)}
        files = code_files(set().union(*(modules_of(task.identity) for task in tasks)))
        run = f"hpcsimkit-{uuid4().hex}"
        return cls(run, str(Path.cwd()), variables, code_version([]), files)


def dask_setup(worker: object) -> None:
    """Ignore Ctrl-C, which a terminal sends to all processes; the one that started this worker ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def attempt(payload: bytes, origin: Origin, name: str) -> None:
    """Perform a task on a worker, and send messages: its progress, and at the end a pickled error or None.

    `payload` has, pickled, consents to code, the function that performs a task, and all tasks by name.
    """
    from distributed import get_worker

    worker, error, label = get_worker(), None, name
    key = worker.get_current_task()

    def send(message: int | bytes) -> None:
        worker.log_event(origin.run, (key, message))

    try:
        with _cancellable(worker.state.tasks[key]):
            work, task = _loaded(payload, origin, name)
            label = task.label
            work(task, lambda done: send(int(done)))
    except KeyboardInterrupt:  # cancelled; the task has saved its state
        return
    except HpcsimkitError as raised:
        error = raised
    except Exception as raised:  # shown as one line
        error = HpcsimkitError(f"{label}: {reason_of(raised)}")
    send(pickle.dumps(error))


# --- the run ---------------------------------------------------------------------------------------------

_PATH = tuple(sys.path)
"""Search path of this worker."""

OURS = ("hpcsimkit", "__main__", "__mp_main__")
"""Modules that a worker keeps."""

_LATEST: dict[str, tuple[Work, dict[str, Task]]] = {}
"""Work and tasks of the latest run of this worker."""


def _loaded(payload: bytes, origin: Origin, name: str) -> tuple[Work, Task]:
    """Change to the folder of the caller, and unpickle its tasks once."""
    if origin.run not in _LATEST:
        _LATEST.clear()
        _forget_modules()
        for variable in [each for each in os.environ if each.startswith(VARIABLES)]:
            del os.environ[variable]
        os.environ.update(origin.variables)
        _check(origin)
        os.chdir(origin.folder)
        _, *found = pickle.loads(payload)  # first the consents, by which modules of the rest are found
        _LATEST[origin.run] = found[0], found[1]
    work, tasks = _LATEST[origin.run]
    return work, tasks[name]


def _check(origin: Origin) -> None:
    """Raise an error if this worker has not the folder or the code of the caller."""
    here = platform.node()
    if not Path(origin.folder).is_dir():
        raise HpcsimkitError(f"{origin.folder}: no such folder on {here}, where a worker needs it")
    if code_version([]) != origin.kit:
        raise HpcsimkitError(f"a worker on {here} has hpcsimkit {code_version([])}, not {origin.kit}")
    for file, digest in origin.files.items():
        if not Path(file).is_file() or hash_of(Path(file)) != digest:
            raise HpcsimkitError(f"{file}: not the same file on {here}, where a worker needs it")


def _forget_modules() -> None:
    """Forget the user's modules: they may have changed since the former run, or be of another folder."""
    forget()
    places = {str(Path.cwd()), *set(sys.path).difference(_PATH)}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        place = max((each for each in sys.path if file.startswith(each + os.sep)), key=len, default="")
        if name.partition(".")[0] not in OURS and ("@" in name or place in places):
            del sys.modules[name]
    sys.path[:] = _PATH


# --- cancellation ----------------------------------------------------------------------------------------


@contextmanager
def _cancellable(state: Any) -> Iterator[None]:
    """Raise KeyboardInterrupt in this thread if its task is cancelled; Dask alone would let it go on."""
    thread, over = threading.get_ident(), threading.Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_CHECKS):
            if state.state == "cancelled":
                interrupt = ctypes.py_object(KeyboardInterrupt)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), interrupt)
                return

    watcher = threading.Thread(target=watch, name="hpcsimkit-cancellation", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
