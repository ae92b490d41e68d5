"""Results folders, built beside their final path and moved there when complete."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit._version import __version__
from hpcsimkit.engine.lock import LOCK, locked, remove_temporary_files, writing
from hpcsimkit.engine.replacing import check_replacement
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import make_folder, unlinked
from hpcsimkit.io.formats import Format
from hpcsimkit.io.interruption import Stopped, signal_of

if TYPE_CHECKING:
    from filelock import BaseFileLock

__all__ = [
    "FINISHED",
    "PROVENANCE",
    "SETTINGS",
    "ResultsFolder",
    "file_name",
    "head_of_toml",
    "next_free",
]

PROVENANCE = "provenance.json"
"""File that identifies a results folder."""

SETTINGS = "settings"
"""Key of this file with the settings that decide the results."""

FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Characters that some operating system forbids in names of files."""

FINISHED = "finished"
"""Subfolder of an incomplete folder with the outcomes of its tasks."""

FORMER = ".former"
"""Subfolder of an incomplete folder with the former results while they are being replaced."""

OURS = {
    "jobs",
    "schedules",
    "placements",
    "traces",
    "pictures",
    "machines.csv",
    "metrics.csv",
    "metrics.json",
    PROVENANCE,
    "experiment.toml",
    "report.html",
}
"""Names of files and subfolders of the results folder of a comparison."""


class ResultsFolder:
    """Folder ``OUT`` that appears only when complete.

    Until :meth:`publish`, its files are in ``OUT.partial``. A process may be killed at any time; its
    unfinished results are either resumed or replaced.

    Parameters
    ----------
    place : path
        Final path of the results. A former results folder there is replaced; so is an empty folder. Anything
        else is an error.
    files : collection of str
        Names of the files and subfolders that may be replaced, ``*`` stands for any characters; by default
        those of a comparison.

    Attributes
    ----------
    place, work : Path
        Final path of the results, and path of the working folder.
    """

    def __init__(self, place: str | os.PathLike[str], files: Collection[str] = OURS) -> None:
        self.place = unlinked(place)
        if not self.place.name:
            raise UsageError(f"{place}: a folder for the results is needed, found the root of all folders")
        self.work = self.place.with_name(f"{self.place.name}.partial")
        self._files = files
        self._lock: BaseFileLock | None = None

    def open(
        self,
        *folders: str,
        resume: bool = False,
        settings: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Create the working folder and its subfolders, or take over or empty an interrupted one.

        Parameters
        ----------
        *folders : str
            Names of the subfolders.
        resume : bool
            Whether the unfinished results of a former run are kept. Default: False.
        settings : mapping, optional
            Settings that decide the results; by default former results are replaced, whatever theirs.
        overwrite : bool
            Whether former results of other settings are replaced; otherwise the user is asked, or they are
            an error. Default: False.

        Raises
        ------
        UsageError
            Other files or results of other settings are at the final path, or another process is working on
            it.
        HpcsimkitError
            The folder cannot be written.
        """
        self.claim(resume=resume)
        try:
            with writing(self.place):
                self._check_place()
            if settings is not None and (self.place / PROVENANCE).is_file():
                held = json_record(self.place / PROVENANCE, Format.PROVENANCE).get(SETTINGS)
                check_replacement(self.place, held, settings, overwrite=overwrite)
        except HpcsimkitError:
            self._release()
            raise
        with writing(self.work):
            self._check_work()
            self._take_lock()
            try:
                self._restore_former()
                if not resume:
                    self._empty()
                for name in folders:
                    make_folder(self.work / name)
            except (OSError, HpcsimkitError):
                self.close(keep=resume)
                raise

    @contextmanager
    def session(
        self,
        *folders: str,
        resume: bool = False,
        settings: Mapping[str, Any] | None = None,
        overwrite: bool = False,
        kept: Callable[[], str] = lambda: "",
    ) -> Iterator[None]:
        """Open the folder for the work of the context, and publish it at the end.

        Parameters
        ----------
        *folders, resume, settings, overwrite
            As in :meth:`open`.
        kept : callable
            Function that returns a text on the finished part of the work; empty if there is none. If the work
            ends early, the finished part is kept, and the message says how to resume.

        Raises
        ------
        UsageError, HpcsimkitError
            See :meth:`open`; errors of the work are those with the hint to resume.
        Stopped
            Ctrl-C or SIGTERM was received.
        """
        self.open(*folders, resume=resume, settings=settings, overwrite=overwrite)
        try:
            yield
            self.publish()
        except BaseException as error:
            finished = kept()
            self.close(keep=bool(finished))
            place = shlex.quote(os.path.relpath(self.place))
            again = f"to go on: the same command with --resume --out {place}"
            hint = f"; {finished}; {again}" if finished else ""
            if isinstance(error, KeyboardInterrupt):
                raise Stopped(f"{str(error) or 'stopped'}{hint}", signal_of(error)) from None
            if isinstance(error, HpcsimkitError) and finished:
                raise type(error)(f"{error}{hint}") from error
            raise

    def claim(self, *, resume: bool) -> None:
        """Lock the unfinished results of a former run, if there are any.

        If the process was killed after moving the results, but before removing temporary files, they become
        the working folder again when resumed; otherwise the temporary files are removed.

        Raises
        ------
        UsageError
            Another process is working on it.
        HpcsimkitError
            The folder cannot be written.
        """
        with writing(self.place):
            if (self.work / LOCK).is_file():
                self._take_lock()
            elif not resume:
                self.settle()
            elif (self.place / LOCK).is_file() and (self.place / PROVENANCE).is_file():
                self._lock = locked(self.place / LOCK, self._busy)
                _remove(self.place / FORMER)
                self._unlock_on_windows()
                self.place.rename(self.work)

    def settle(self) -> None:
        """Remove the temporary files of a run that was killed when its results were already in place.

        Raises
        ------
        UsageError
            Another process is still working on it.
        HpcsimkitError
            The folder cannot be written.
        """
        if (self.place / LOCK).is_file() and (self.place / PROVENANCE).is_file():
            with writing(self.place):
                self._lock = locked(self.place / LOCK, self._busy)
                self._tidy()

    def publish(self) -> None:
        """Move the complete folder to its final path; remove former results and temporary files."""
        with writing(self.place):
            remove_temporary_files(self.work)
            self._unlock_on_windows()
            if self.place.exists():
                _remove(self.work / FORMER)
                self.place.rename(self.work / FORMER)
            self.work.rename(self.place)
            self._tidy()

    def close(self, *, keep: bool) -> None:
        """Release the working folder: keep it for resuming, or remove it."""
        if self._lock is None:
            return
        if not keep:
            with suppress(OSError):
                self._restore_former()
                self._empty()
                self._unlock_on_windows()
                (self.work / LOCK).unlink()
                self.work.rmdir()
        self._release()

    def _check_place(self) -> None:
        if self.place.is_symlink():
            raise UsageError(f"{self.place}: a symbolic link is not followed; name the folder it points to")
        if self.place.is_dir():
            if any(self.place.iterdir()) and not (self.place / PROVENANCE).is_file():
                raise UsageError(
                    f"{self.place}: a new, empty or results folder is needed; other files are in it"
                )
            foreign = sorted(entry.name for entry in self.place.iterdir() if not self._is_ours(entry.name))
            if foreign:
                raise UsageError(
                    f"{self.place}: the results in it can be replaced, but there are other files: "
                    f"{', '.join(foreign[:3])}{', ...' * (len(foreign) > 3)}"
                )
        elif self.place.exists():
            raise UsageError(f"{self.place}: a folder for the results is needed, found a file")

    def _is_ours(self, name: str) -> bool:
        return any(fnmatch(name, own) for own in self._files)

    def _check_work(self) -> None:
        """Raise an error if the working path is in use, but not by an interrupted run."""
        if not self.work.exists() or (self.work / LOCK).is_file():
            return
        if not self.work.is_dir() or any(self.work.iterdir()):
            raise UsageError(f"{self.work}: in the way, and not left by an interrupted run")

    # --- the lock ------------------------------------------------------------------------------------

    @property
    def _busy(self) -> str:
        return f"{self.work}: another run is writing these results now"

    def _take_lock(self) -> None:
        if self._lock is None:
            make_folder(self.work)
            self._lock = locked(self.work / LOCK, self._busy)

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _unlock_on_windows(self) -> None:
        """Release the lock on Windows, where open files block removing them and renaming their folder."""
        if sys.platform == "win32":
            self._release()

    # --- moving and removing ---------------------------------------------------------------------------

    def _restore_former(self) -> None:
        """Move former results back to their path if they were moved away for results never published."""
        if (self.work / FORMER).exists() and not self.place.exists():
            (self.work / FORMER).rename(self.place)

    def _tidy(self) -> None:
        """Remove the temporary files from the published folder, the lock last."""
        _remove(self.place / FORMER)
        _remove(self.place / FINISHED)
        self._unlock_on_windows()
        (self.place / LOCK).unlink()
        self._release()

    def _empty(self) -> None:
        """Remove everything but the lock, beginning with the records of finished work."""
        _remove(self.work / FINISHED)
        for entry in self.work.iterdir():
            if entry.name != LOCK:
                _remove(entry)


def _remove(path: Path) -> None:
    """Remove a file, a folder or a symbolic link, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def head_of_toml(command: str, code: Sequence[str]) -> str:
    """Return the initial comment of a saved TOML file: the command that repeats it, and user-defined code.

    Parameters
    ----------
    command : str
        Command that repeats the run.
    code : sequence of str
        User-defined modules and files named in the file.
    """
    lines = [f"Made by hpcsimkit {__version__}. The same again:", f"  {command}"]
    if code:
        lines[1] += "".join(f" --allow-code {shlex.quote(name)}" for name in code)
        lines.append(
            f"It names code that is not the kit's own: {', '.join(code)}. Look at it before it is run."
        )
    return "".join(f"# {line}\n" for line in lines) + "\n"


def file_name(policy: str) -> str:
    """Return the name of a policy's files, without suffix, as every operating system allows it.

    Characters that Windows, macOS or Linux forbid become ``_``.

    >>> file_name("fcfs+easy"), file_name("my/policies.py:Best")
    ('fcfs+easy', 'my_policies.py_Best')
    """
    return FORBIDDEN.sub("_", policy)


def next_free(place: Path, *, resume: bool = False) -> Path:
    """Return the path, or the first free numbered one: ``results/x``, ``results/x-2``, ...

    With `resume`, return the first interrupted one, if there is any.
    """
    for number in count(1):
        candidate = place if number == 1 else place.with_name(f"{place.name}-{number}")
        partial = candidate.with_name(f"{candidate.name}.partial").exists()
        interrupted = partial or (candidate / LOCK).exists()
        if (interrupted and resume) or not (partial or candidate.exists()):
            return candidate
    raise AssertionError("there are infinitely many numbers")
