"""Tasks with stored outcomes: a completed task is not repeated."""

from __future__ import annotations

import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpcsimkit._version import __version__
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.identity import fingerprint, identity_of
from hpcsimkit.experiments.results_folder import remove_temporary_files, writing
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import make_folder, write_bytes

__all__ = ["Shelf", "Task", "Tell"]

Tell = Callable[[int], None]
"""Callback that receives the progress of a task [decisions]."""

INPUTS, OUTCOME, SPENT = "inputs.json", "outcome.json", "spent.json"

SECONDS_BETWEEN_NOTES = 20.0
"""Interval between records of the time spent on a task [s of CPU time]."""


class Task(ABC):
    """Piece of work with its own folder, of the same name.

    Tasks may read the folders of tasks completed before them.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Short, unique name, which is also the name of the folder."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the group of tasks with the same processing rate."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Amount of work [decisions]."""

    @abstractmethod
    def inputs(self) -> Any:
        """Return everything that determines the outcome; see :mod:`~hpcsimkit.experiments.identity`."""

    @abstractmethod
    def run(self, folder: Path, tell: Tell) -> Any:
        """Perform the task, or resume it from the files of an interrupted run in the folder.

        Returns a JSON value; further files may be written to the folder.
        """


class Shelf:
    """Store of the outcomes of tasks, with a folder for each task.

    A task is repeated if its inputs have changed, defaults of settings included, or if the version of
    hpcsimkit has changed; its former folder is kept as ``<task>.old``.

    Parameters
    ----------
    place : Path
        Path of the folder with the folders of all tasks.

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
    ...     shelf = Shelf(Path(place))
    ...     shelf.perform(Adding(2, 3), lambda done: None)
    ...     shelf.has(Adding(2, 3)), shelf.outcome(Adding(2, 3)), shelf.has(Adding(2, 4))
    (True, {'sum': 5}, False)
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    def folder(self, task: Task) -> Path:
        """Return the folder of a task."""
        return self.place / task.name

    def has(self, task: Task) -> bool:
        """Return whether a task is complete with its current inputs."""
        return json_record(self.folder(task) / OUTCOME).get("fingerprint") == _mark(task)

    def outcome(self, task: Task) -> Any:
        """Return the outcome of a complete task."""
        return json_record(self.folder(task) / OUTCOME)["outcome"]

    def seconds(self, task: Task) -> float:
        """Return the CPU time of a complete task [s], including that of interrupted runs."""
        return float(json_record(self.folder(task) / OUTCOME)["seconds"])

    def set_aside(self, task: Task) -> Path | None:
        """Rename the folder of a task that cannot be resumed, because its inputs have changed.

        Returns
        -------
        Path or None
            Path ``<task>.old``, which replaces an older one; None if there was nothing to rename.

        Raises
        ------
        HpcsimkitError
            The folder cannot be renamed.
        """
        folder = self.folder(task)
        if not folder.exists() or json_record(folder / INPUTS).get("fingerprint") == _mark(task):
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

        Raises
        ------
        HpcsimkitError
            The task fails, or its outcome cannot be written.
        """
        self.set_aside(task)
        folder, mark = self.folder(task), _mark(task)
        make_folder(folder)
        _write(
            folder / INPUTS, {"fingerprint": mark, "kit": __version__, "inputs": identity_of(task.inputs())}
        )
        stopwatch = Stopwatch(folder / SPENT)
        try:
            outcome = task.run(folder, stopwatch.with_it(tell))
        except BaseException:  # interrupted or failed: its time counts too
            with suppress(HpcsimkitError):
                stopwatch.note()
            raise
        record = {"fingerprint": mark, "seconds": stopwatch.seconds(), "outcome": outcome}
        _write(folder / OUTCOME, record)


class Stopwatch:
    """Counter of the CPU time of a task over all its runs, stored in a file [s].

    Parameters
    ----------
    file : Path
        Path of the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before = float(json_record(file).get("seconds", 0.0))
        self._began = self._noted = time.process_time()

    def seconds(self) -> float:
        """Return the CPU time so far [s], earlier runs included."""
        return self._before + time.process_time() - self._began

    def note(self) -> None:
        """Write the CPU time to the file."""
        _write(self.file, {"seconds": self.seconds()})
        self._noted = time.process_time()

    def with_it(self, tell: Tell) -> Tell:
        """Return a callback that also records the time regularly, in case the process is killed."""

        def telling(done: int) -> None:
            if time.process_time() - self._noted >= SECONDS_BETWEEN_NOTES:
                self.note()
            tell(done)

        return telling


def _mark(task: Task) -> str:
    """Return the fingerprint of a task with its inputs and the version of hpcsimkit."""
    return fingerprint({"kit": __version__, "inputs": task.inputs()})


def _write(path: Path, record: Any) -> None:
    write_bytes(path, (json.dumps(record, ensure_ascii=False) + "\n").encode())
