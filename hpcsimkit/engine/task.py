"""Tasks: pieces of work with an identity, a folder, and an outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsimkit.engine.code_version import code_version
from hpcsimkit.engine.identity import digest, identity_of, modules_of

Tell = Callable[[int], None]
"""Callback that receives the progress of a task, in its unit of work."""


class Task(ABC):
    """Piece of work with its own folder, of the same name.

    Tasks may read the folders of the tasks that they require.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Unique name, and the name of the task's folder in the store."""

    @property
    def label(self) -> str:
        """Name of the task in messages; by default the same."""
        return self.name

    @property
    @abstractmethod
    def kind(self) -> str:
        """Name of the group of tasks with the same processing rate."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Amount of work, in units of the kind: decisions or jobs."""

    @property
    def requires(self) -> Collection[str]:
        """Names of the tasks that must be complete before this one starts; by default none."""
        return ()

    @property
    def prepares_others(self) -> bool:
        """Whether what it computes first serves the next tasks of its process, too; by default not."""
        return False

    @abstractmethod
    def inputs(self) -> Any:
        """Return everything that determines the outcome; see :mod:`~hpcsimkit.engine.identity`."""

    @abstractmethod
    def run(self, folder: Path, tell: Tell) -> Any:
        """Perform the task, or resume it from the files of an interrupted run in the folder.

        Returns a JSON value; further files may be written to the folder.
        """

    @property
    def identity(self) -> Any:
        """Identity of the inputs, a JSON value; not kept, since there may be many tasks."""
        return identity_of(self.inputs())

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the inputs, and of the code that determines the outcome, as 32 hexadecimal digits."""
        identity = self.identity
        code = code_version({type(self).__module__, *modules_of(identity)})
        return digest({"code": code, "inputs": identity})
