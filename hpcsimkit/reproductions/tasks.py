"""Pieces of work whose outcomes are kept: what is done is not done again."""

from __future__ import annotations

import json
import shutil
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hpcsimkit.campaigns.results_folder import writing
from hpcsimkit.files import write_bytes
from hpcsimkit.reproductions.identity import fingerprint, identity_of

__all__ = ["Shelf", "Task", "Tell"]

Tell = Callable[[int], None]
"""Is told how much of a task is done, in decisions."""

INPUTS, OUTCOME = "inputs.json", "outcome.json"


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

    Parameters
    ----------
    place : Path
        The folder of all of them.
    """

    def __init__(self, place: Path) -> None:
        self.place = place

    def folder(self, task: Task) -> Path:
        """Return the folder of a task."""
        return self.place / task.name

    def has(self, task: Task) -> bool:
        """Tell whether a task is done, with the inputs that it has now."""
        return _read(self.folder(task) / OUTCOME).get("fingerprint") == fingerprint(task.inputs())

    def outcome(self, task: Task) -> Any:
        """Return what became of a task that is done."""
        return _read(self.folder(task) / OUTCOME)["outcome"]

    def seconds(self, task: Task) -> float:
        """Return how long a task took [s of a processor], since it was last begun or taken up again."""
        return float(_read(self.folder(task) / OUTCOME)["seconds"])

    def perform(self, task: Task, tell: Tell) -> None:
        """Do a task; a begun one is gone on with if its inputs were the same, else it is begun anew.

        Raises
        ------
        HpcsimkitError
            It fails, or cannot be written down.
        """
        folder, mark = self.folder(task), fingerprint(task.inputs())
        with writing(folder):
            if _read(folder / INPUTS).get("fingerprint") != mark:
                shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)
        _write(folder / INPUTS, {"fingerprint": mark, "inputs": identity_of(task.inputs())})
        began = time.process_time()
        outcome = task.run(folder, tell)
        seconds = time.process_time() - began
        _write(folder / OUTCOME, {"fingerprint": mark, "seconds": seconds, "outcome": outcome})


def _read(path: Path) -> dict[str, Any]:
    """Return what a file says; nothing if there is none, or it is damaged."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, record: Any) -> None:
    write_bytes(path, (json.dumps(record, ensure_ascii=False) + "\n").encode())
