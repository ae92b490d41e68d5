"""Pieces of work whose outcomes are kept: what is done is not done again."""

from __future__ import annotations

import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpcsimkit import __version__
from hpcsimkit.campaigns.results_folder import writing
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.files import write_bytes
from hpcsimkit.reproductions.identity import fingerprint, identity_of

__all__ = ["Shelf", "Task", "Tell"]

Tell = Callable[[int], None]
"""Is told how much of a task is done, in decisions."""

INPUTS, OUTCOME, SPENT = "inputs.json", "outcome.json", "spent.json"

SECONDS_BETWEEN_NOTES = 20.0
"""Of a processor: so often the time that a task takes is written down."""


class Task(ABC):
    """A piece of work, done in a folder of its own.

    Its name is that of the folder. Tasks may read the folders of others that are done before them.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Short, unique, and fit to be the name of a folder."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Which tasks go as fast as this one."""

    @property
    @abstractmethod
    def size(self) -> int:
        """How much work it is [decisions]."""

    @abstractmethod
    def inputs(self) -> Any:
        """Return all that the outcome depends on; see :mod:`~hpcsimkit.reproductions.identity`."""

    @abstractmethod
    def run(self, folder: Path, tell: Tell) -> Any:
        """Do it, or go on with it from what an interrupted run has left in the folder.

        Returns what JSON can say; further files stay in the folder.
        """


class Shelf:
    """Where outcomes are kept: a folder for each task.

    A task is done again if its inputs are others, defaults of settings among them, or if the kit has another
    version; what it has left before is kept beside it, under the name ``<task>.old``.

    Parameters
    ----------
    place : Path
        The folder of all of them.

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
        """Tell whether a task is done, with the inputs that it has now."""
        return _read(self.folder(task) / OUTCOME).get("fingerprint") == _mark(task)

    def outcome(self, task: Task) -> Any:
        """Return what became of a task that is done."""
        return _read(self.folder(task) / OUTCOME)["outcome"]

    def seconds(self, task: Task) -> float:
        """Return how long a task that is done took [s of a processor], with all that interrupted runs did."""
        return float(_read(self.folder(task) / OUTCOME)["seconds"])

    def set_aside(self, task: Task) -> Path | None:
        """Rename the folder of a task that it cannot go on with, since its inputs were others.

        Returns
        -------
        Path or None
            ``<task>.old``, which replaces an older one; None if there was nothing to rename.

        Raises
        ------
        HpcsimkitError
            It cannot be renamed.
        """
        folder = self.folder(task)
        if not folder.exists() or _read(folder / INPUTS).get("fingerprint") == _mark(task):
            return None
        old = folder.with_name(f"{folder.name}.old")
        with writing(old):
            if old.exists():
                shutil.rmtree(old)
            folder.rename(old)
        return old

    def perform(self, task: Task, tell: Tell) -> None:
        """Do a task; a begun one is gone on with if its inputs were the same, else it is begun anew.

        Raises
        ------
        HpcsimkitError
            It fails, or cannot be written down.
        """
        self.set_aside(task)
        folder, mark = self.folder(task), _mark(task)
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        _write(
            folder / INPUTS, {"fingerprint": mark, "kit": __version__, "inputs": identity_of(task.inputs())}
        )
        stopwatch = Stopwatch(folder / SPENT)
        try:
            outcome = task.run(folder, stopwatch.with_it(tell))
        except BaseException:  # it was interrupted, or failed: how long it took counts all the same
            with suppress(HpcsimkitError):
                stopwatch.note()
            raise
        record = {"fingerprint": mark, "seconds": stopwatch.seconds(), "outcome": outcome}
        _write(folder / OUTCOME, record)


class Stopwatch:
    """Adds up the time that a task takes, run after run, in a file [s of a processor].

    Parameters
    ----------
    file : Path
        Where it stands.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._before = float(_read(file).get("seconds", 0.0))
        self._began = self._noted = time.process_time()

    def seconds(self) -> float:
        """Return how long it took so far, earlier runs included."""
        return self._before + time.process_time() - self._began

    def note(self) -> None:
        """Write it down."""
        _write(self.file, {"seconds": self.seconds()})
        self._noted = time.process_time()

    def with_it(self, tell: Tell) -> Tell:
        """Return what tells, and writes down the time now and then: a killed process has no last words."""

        def telling(done: int) -> None:
            if time.process_time() - self._noted >= SECONDS_BETWEEN_NOTES:
                self.note()
            tell(done)

        return telling


def _mark(task: Task) -> str:
    """Return what tells one way of doing a task from another."""
    return fingerprint({"kit": __version__, "inputs": task.inputs()})


def _read(path: Path) -> dict[str, Any]:
    """Return what a file says; nothing if there is none, or it is damaged."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, record: Any) -> None:
    write_bytes(path, (json.dumps(record, ensure_ascii=False) + "\n").encode())
