"""Results folders: built beside their final path and moved there when complete, or filled in place."""

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
from hpcsimkit.engine.lock import LOCK, SECONDS_TO_LOOK, locked, remove_temporary_files, writing
from hpcsimkit.engine.provenance import Provenance, times_of
from hpcsimkit.engine.replacing import check_replacement, difference
from hpcsimkit.errors import HpcsimkitError, StorageError, UsageError
from hpcsimkit.io.documents import json_record, write_record
from hpcsimkit.io.files import flush_to_disk, make_folder, unlinked
from hpcsimkit.io.formats import Format
from hpcsimkit.io.interruption import Stopped, signal_of

if TYPE_CHECKING:
    from filelock import BaseFileLock

PROVENANCE = "provenance.json"
"""File that identifies a results folder."""

SETTINGS = "settings"
"""Key of this file with the settings that decide the results."""

UNFINISHED = "unfinished"
"""Key of this file while the results beside it are being written."""

FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f]')
"""Characters that some operating system forbids in names of files."""

FINISHED = "finished"
"""Subfolder of an incomplete folder with the outcomes of its tasks."""

WHOLE = (1, 1)
"""Shard of all work: number of the part, and number of parts."""

FORMER = ".former"
"""Subfolder of an incomplete folder with the former results while they are being replaced."""

OURS = {
    "jobs",
    "schedules",
    "placements",
    "attempts",
    "held",
    "traces",
    "pictures",
    "machines.csv",
    "metrics.csv",
    "metrics.json",
    PROVENANCE,
    times_of(Path(PROVENANCE)).name,
    "experiment.toml",
    "report.html",
}
"""Names of files and subfolders of the results folder of a comparison."""


class ResultsFolder:
    """Folder ``OUT`` of results, with a lock, a record of the settings that is written last, and no remains.

    In a :meth:`session`, the files are in ``OUT.partial`` until all are complete. Work :meth:`in_place` is on
    the folder itself: for results that grow with every run, and for files beside those of others. A process
    may be killed at any time; its unfinished results are either resumed or replaced.

    Parameters
    ----------
    place : path
        Final path of the results. A former results folder there is replaced; so is an empty folder. Anything
        else is an error.
    files : collection of str
        Names of the files and subfolders that may be replaced, ``*`` stands for any characters; by default
        those of a comparison.
    record : str
        Name of the record. Default: ``provenance.json``.

    Attributes
    ----------
    path, place, work : Path
        Path as it was given; the same without links among its parents; and path of the working folder.
    """

    def __init__(
        self, place: str | os.PathLike[str], files: Collection[str] = OURS, record: str = PROVENANCE
    ) -> None:
        self.path = Path(place)
        self.place = unlinked(place)
        if not self.place.name:
            raise UsageError(f"{place}: a folder for the results is needed, found the root of all folders")
        self.work = self.place.with_name(f"{self.place.name}.partial")
        self._files = files
        self._record = record
        self._lock: BaseFileLock | None = None

    def open(
        self,
        *folders: str,
        resume: bool = False,
        settings: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Create the working folder and its subfolders, or take over or empty an interrupted one.

        `folders` are names of subfolders. Without `settings`, former results are replaced, whatever theirs.
        Unless `overwrite`, former results of other settings are an error, or the user is asked.
        """
        self.claim(resume=resume)
        try:
            with writing(self.place):
                self._check_place()
            if settings is not None and (self.place / PROVENANCE).is_file():
                check_replacement(self.place, self.settings, settings, overwrite=overwrite)
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

        `kept` returns a text on the finished part of the work, empty if there is none. If the work ends
        early, the finished part is kept, and the message says how to resume. The rest is as in :meth:`open`.
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
        """Remove the temporary files of a run that was killed when its results were already in place."""
        if (self.place / LOCK).is_file() and (self.place / PROVENANCE).is_file():
            with writing(self.place):
                self._lock = locked(self.place / LOCK, self._busy)
                self._tidy()

    def publish(self) -> None:
        """Move the complete folder to its final path; remove former results and temporary files."""
        with writing(self.place):
            remove_temporary_files(self.work)
            flush_to_disk([*self.work.rglob("*"), self.work])
            self._unlock_on_windows()
            if self.place.exists():
                _remove(self.work / FORMER)
                self.place.rename(self.work / FORMER)
            self.work.rename(self.place)
            flush_to_disk([self.place.parent])
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

    # --- work in place -----------------------------------------------------------------------------------

    @property
    def settings(self) -> Mapping[str, Any] | None:
        """Settings of the results in the folder; None if they are not recorded."""
        return json_record(self.path / self._record, Format.PROVENANCE).get(SETTINGS)

    def holds_others(self, settings: Mapping[str, Any]) -> bool:
        """Return whether files of other settings are in the folder."""
        there = any(next(self.path.glob(name), None) for name in (*self._files, self._record))
        return there and (self.settings is None or difference(self.settings, settings) != "")

    @contextmanager
    def in_place(
        self,
        settings: Mapping[str, Any] | None = None,
        *,
        overwrite: bool = False,
        of: tuple[str, Collection[str]] | None = None,
        shard: tuple[int, int] = WHOLE,
        kept: Callable[[], str] = lambda: "",
    ) -> Iterator[None]:
        """Hold the folder for the work of the context; the same command goes on after an interruption.

        Without `settings`, results of all settings may be in the folder. `of` has the noun of the results,
        and names of which a folder with such results has one; by default the files are beside those of
        others. `shard` is the number of the part of the work, and the number of parts: other parts may be at
        work on the folder. `kept` is that of :meth:`session`.
        """
        self._check_folder(of)
        with _unless_empty(self.path), self._held(shard):
            if settings is not None and self.holds_others(settings):
                check_replacement(self.path, self.settings, settings, overwrite=overwrite)
            if shard == WHOLE:
                self._remove_temporary_files()
            try:
                yield
            except KeyboardInterrupt as interrupt:
                said = str(interrupt) or "stopped"
                raise Stopped("; ".join([said, *_to_go_on(kept())]), signal_of(interrupt)) from None
            except StorageError as error:
                raise StorageError("; ".join([str(error), *_to_go_on(kept())])) from None

    @contextmanager
    def _held(self, shard: tuple[int, int]) -> Iterator[None]:
        """Create the folder, and hold its lock, or that of a shard; there are no locks but of like shards."""
        own, alike = (
            (LOCK, LOCK)
            if shard == WHOLE
            else (f"{LOCK}-{shard[0]}-of-{shard[1]}", f"{LOCK}-*-of-{shard[1]}")
        )
        busy = f"{self.path}: another run is writing there now"
        with writing(self.path):
            make_folder(self.path)
            lock = locked(self.path / own, busy)
        try:
            with writing(self.path):  # after the own lock, so that of two processes one sees the other
                for file in self.path.glob(f"{LOCK}*"):
                    if not file.match(alike):
                        locked(file, busy, patience=SECONDS_TO_LOOK).release()
            yield
        finally:
            with suppress(OSError):  # Windows does not remove open files; the lock file may stay
                (self.path / own).unlink()
            lock.release()

    def begin(self, settings: Mapping[str, Any]) -> None:
        """Record that files are about to be replaced: a killed process leaves no record of other files."""
        write_record(self.path / self._record, {SETTINGS: settings, UNFINISHED: True})

    def conclude(
        self, provenance: Provenance, facts: Mapping[str, Any], times: Mapping[str, Any] | None = None
    ) -> None:
        """Write the record, once the files are written and on the disk."""
        flush_to_disk([*(file for name in self._files for file in self.path.glob(name)), self.path])
        provenance.write(self.path / self._record, facts, times)

    def _check_folder(self, of: tuple[str, Collection[str]] | None) -> None:
        _check_kind(self.path)
        if of is None or not self.path.is_dir():
            return
        names = {entry.name for entry in self.path.iterdir() if not _is_temporary(entry)}
        if names and names.isdisjoint(of[1]):
            raise UsageError(
                f"{self.path}: a new folder, or one of {of[0]}, is needed; other files are in it"
            )

    def _remove_temporary_files(self) -> None:
        """Remove the temporary files of a killed process, without a look at the files of others."""
        record = self._record
        with writing(self.path):
            for name in (*self._files, record, times_of(Path(record)).name):
                for leftover in self.path.glob(f".{name}.*.tmp"):
                    leftover.unlink()

    def _check_place(self) -> None:
        _check_kind(self.place)
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


def _check_kind(path: Path) -> None:
    if path.is_symlink():
        raise UsageError(f"{path}: a symbolic link is not followed; name the folder it points to")
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: a folder for the results is needed, found a file")


@contextmanager
def _unless_empty(folder: Path) -> Iterator[None]:
    """Remove a folder, and those above it, if the work fails before there is a file in it."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for path in missing:
                path.rmdir()
        raise


def _to_go_on(kept: str) -> list[str]:
    return [kept, "the same command goes on"] if kept else []


def _is_temporary(path: Path) -> bool:
    """Return whether a file is a lock or the remains of a killed process."""
    return path.name.startswith(LOCK) or path.match(".*.tmp")


def _remove(path: Path) -> None:
    """Remove a file, a folder or a symbolic link, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def head_of_toml(command: str, code: Sequence[str]) -> str:
    """Return the initial comment of a saved TOML file: the command that repeats it, and user-defined code."""
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


def next_free(
    place: Path, *, resume: bool = False, suits: Callable[[Path], bool] = lambda candidate: False
) -> Path:
    """Return the path, or the first free numbered one: ``results/x``, ``results/x-2``, ...

    The first interrupted one is returned if `resume`; `suits` returns whether a folder with files may be
    taken, too.
    """
    for number in count(1):
        candidate = place if number == 1 else place.with_name(f"{place.name}-{number}")
        partial = candidate.with_name(f"{candidate.name}.partial").exists()
        interrupted = partial or (candidate / LOCK).exists()
        if (interrupted and resume) or not (partial or candidate.exists()) or suits(candidate):
            return candidate
    raise AssertionError("there are infinitely many numbers")
