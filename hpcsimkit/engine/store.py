"""Store of the outcomes of tasks: a completed task is not repeated."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpcsimkit._version import __version__
from hpcsimkit.engine.lock import remove_temporary_files, writing
from hpcsimkit.engine.provenance import times_of
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, StorageError
from hpcsimkit.io.documents import json_record, write_record
from hpcsimkit.io.files import flush_to_disk, make_folder, single_name
from hpcsimkit.io.formats import Format

INPUTS, OUTCOME, FAILURE = "inputs.json", "outcome.json", "failure.json"
SPENT = times_of(Path(OUTCOME)).name
"""Files in the folder of a task; `SPENT` has the computing time and the name of the machine."""

SECONDS_BETWEEN_NOTES = 20.0
"""Interval between records of the time spent on a task [s of CPU time]."""


class Store:
    """Outcomes of tasks, with a folder for each task.

    A task is repeated if its fingerprint has changed: its inputs, defaults of settings included, or the code
    that determines its outcome. Its former folder is kept as ``<task>.old``.

    Parameters
    ----------
    place : Path
        Path of the folder with the folders of all tasks.
    durable : bool
        Whether outcomes survive a power cut: all files of a task are on the disk before its outcome is.
        Default: True.

    Examples
    --------
    >>> class Adding(Task):
    ...     name, kind, size = "adding", "sums", 1
    ...     def __init__(self, *terms):
    ...         self.terms = terms
    ...     def inputs(self):
    ...         return self.terms
    ...     def run(self, folder, tell):
    ...         tell(1)
    ...         return {"sum": sum(self.terms)}
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     store = Store(Path(place))
    ...     store.perform(Adding(2, 3), lambda done: None)
    ...     store.has(Adding(2, 3)), store.outcome(Adding(2, 3)), store.has(Adding(2, 4))
    (True, {'sum': 5}, False)
    """

    def __init__(self, place: Path, *, durable: bool = True) -> None:
        self.place = place
        self.durable = durable

    def folder(self, task: Task) -> Path:
        """Return the folder of a task."""
        return self.place / single_name(task.name)

    def has(self, task: Task) -> bool:
        """Return whether a task is complete with its current inputs."""
        return self.found(task) is not None

    def found(self, task: Task) -> Any:
        """Return the outcome of a task if it is complete with its current inputs, else None."""
        record = self._record(task, OUTCOME)
        return None if record is None else record["outcome"]

    def outcome(self, task: Task) -> Any:
        """Return the outcome of a complete task."""
        return json_record(self.folder(task) / OUTCOME, Format.TASK)["outcome"]

    def seconds(self, task: Task) -> float:
        """Return the CPU time of a complete task [s], including that of interrupted runs."""
        return float(self.spent(task).get("seconds", 0.0))

    def spent(self, task: Task) -> dict[str, Any]:
        """Return the CPU time of a task so far, ``seconds`` [s], and the name of the last ``host``."""
        return json_record(self.folder(task) / SPENT, Format.TASK)

    def failure(self, task: Task) -> str | None:
        """Return the reason for which a task failed with its current inputs; None if it did not."""
        record = self._record(task, FAILURE)
        return None if record is None else str(record["reason"])

    def fail(self, task: Task, error: Exception) -> None:
        """Record the error by which a task failed, or its worker died, maybe before it began."""
        if self._record(task, INPUTS) is None:
            self._begin(task)
        record = {"fingerprint": task.fingerprint, "reason": reason_of(error)}
        self._write(self.folder(task) / FAILURE, record)

    def set_aside(self, task: Task) -> Path | None:
        """Rename the folder of a task that cannot be resumed, because its fingerprint has changed.

        Return its path ``<task>.old``, which replaces an older one; None if there was nothing to rename.
        """
        folder = self.folder(task)
        if not folder.exists() or self._record(task, INPUTS) is not None:
            return None
        old = folder.with_name(f"{folder.name}.old")
        with writing(old):
            remove_temporary_files(folder)
            if not any(folder.iterdir()):  # killed before the task began
                return None
            if old.exists():
                shutil.rmtree(old)
            folder.rename(old)
        return old

    def perform(self, task: Task, tell: Tell) -> None:
        """Perform a task; an interrupted one is resumed if its inputs are unchanged, else restarted.

        A full disk is a `StorageError`, and no failure of the task.
        """
        self._begin(task)
        folder, mark = self.folder(task), task.fingerprint
        with writing(folder):
            remove_temporary_files(folder)
            (folder / FAILURE).unlink(missing_ok=True)
        stopwatch = Stopwatch(folder / SPENT)
        try:
            outcome = task.run(folder, stopwatch.with_it(tell))
        except BaseException as error:  # interrupted or failed: its time counts too
            with suppress(HpcsimkitError):
                stopwatch.note()
                if isinstance(error, Exception) and not isinstance(error, StorageError):
                    self.fail(task, error)
            raise
        stopwatch.note()
        if self.durable:
            flush_to_disk([*folder.rglob("*"), folder])
        self._write(folder / OUTCOME, {"fingerprint": mark, "outcome": outcome})

    def tidy(self, tasks: Iterable[Task]) -> None:
        """Remove the temporary files that terminated workers have left in the folders of tasks."""
        for task in tasks:
            with suppress(OSError):
                remove_temporary_files(self.folder(task))

    def _begin(self, task: Task) -> None:
        """Create the folder of a task, and record its inputs there."""
        self.set_aside(task)
        make_folder(self.folder(task))
        record = {"fingerprint": task.fingerprint, "version": __version__, "inputs": task.identity}
        self._write(self.folder(task) / INPUTS, record)

    def _write(self, file: Path, record: Mapping[str, Any]) -> None:
        write_record(file, record, durable=self.durable and file.name == OUTCOME)

    def _record(self, task: Task, file: str) -> dict[str, Any] | None:
        """Return a record of a task with its current fingerprint; None if there is none."""
        record = json_record(self.folder(task) / file, Format.TASK)
        return record if record.get("fingerprint") == task.fingerprint else None


def reason_of(error: Exception) -> str:
    """Return an error as one line.

    >>> reason_of(HpcsimkitError("no jobs")), reason_of(ValueError("wrong"))
    ('no jobs', 'ValueError: wrong')
    """
    return str(error) if isinstance(error, HpcsimkitError) else f"{type(error).__name__}: {error}"


class Stopwatch:
    """Counter of the CPU time of a task over all its runs, stored in a file [s]."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before = float(json_record(file, Format.TASK).get("seconds", 0.0))
        self._began = self._noted = time.process_time()

    def seconds(self) -> float:
        """Return the CPU time so far [s], earlier runs included."""
        return self._before + time.process_time() - self._began

    def note(self) -> None:
        """Write the CPU time to the file."""
        write_record(self.file, {"seconds": self.seconds(), "host": platform.node()}, durable=False)
        self._noted = time.process_time()

    def with_it(self, tell: Tell) -> Tell:
        """Return a callback that also records the time regularly, in case the process is killed."""

        def telling(done: int) -> None:
            if time.process_time() - self._noted >= SECONDS_BETWEEN_NOTES:
                self.note()
            tell(done)

        return telling
