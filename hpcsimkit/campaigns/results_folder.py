"""The results folder: built beside its place and moved there when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO

from hpcsimkit.errors import HpcsimkitError, UsageError

__all__ = ["ResultsFolder", "file_name", "next_free", "writing"]

PROVENANCE = "provenance.json"
"""The file by which a results folder is known."""

OURS = {
    "jobs", "schedules", "placements", "traces", "pictures", "machines.csv", "metrics.csv", "metrics.json",
    PROVENANCE, "experiment.toml", "report.html",
}  # fmt: skip
"""What a results folder may hold."""

LOCK = ".lock"
"""The file by which a folder in the making is known; locked while somebody works on it."""


class ResultsFolder:
    """A folder ``OUT`` that is never half there: until :meth:`publish`, all of it is in ``OUT.partial``.

    Parameters
    ----------
    place : path
        Where the results belong. What is there may be a former results folder, which is replaced, or an
        empty folder; anything else is left alone.

    Attributes
    ----------
    place, work : Path
        Where the results belong, and where they are made.
    """

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = Path(os.path.realpath(place))
        self.work = self.place.with_name(f"{self.place.name}.partial")
        self._lock: IO[bytes] | None = None

    def open(self, *folders: str, resume: bool = False) -> None:
        """Make the working folder with folders in it; or take an interrupted one over, or empty it.

        Raises
        ------
        UsageError
            Something else is at the place, or somebody is working on it.
        HpcsimkitError
            The folder cannot be written.
        """
        with writing(self.place):
            self._check_place()
        with writing(self.work):
            self._check_work()
            self.work.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            try:
                if not resume:
                    self._empty()
                for name in folders:
                    (self.work / name).mkdir(exist_ok=True)
            except OSError:
                self.close(keep=resume)
                raise

    def publish(self, *drop: str) -> None:
        """Move the complete folder, without the folders to drop, to its place; what is there goes."""
        with writing(self.place):
            for name in drop:
                shutil.rmtree(self.work / name)
            for leftover in self.work.rglob(".*.tmp"):  # of a process that was killed
                leftover.unlink()
            self._release()
            (self.work / LOCK).unlink()
            aside = self.place.with_name(f".{self.place.name}.{os.getpid()}.old")
            if self.place.exists():
                self.place.rename(aside)
            self.work.rename(self.place)
            shutil.rmtree(aside, ignore_errors=True)

    def close(self, *, keep: bool) -> None:
        """Leave the working folder to be resumed, or remove it."""
        ours = self._lock is not None
        self._release()
        if ours and not keep:
            shutil.rmtree(self.work, ignore_errors=True)

    def _check_place(self) -> None:
        if self.place.is_dir():
            if any(self.place.iterdir()) and not (self.place / PROVENANCE).is_file():
                raise UsageError(
                    f"{self.place}: a new, empty or results folder is needed; other files are in it"
                )
            foreign = sorted({entry.name for entry in self.place.iterdir()} - OURS)
            if foreign:
                raise UsageError(
                    f"{self.place}: the results in it can be replaced, but there are other files: "
                    f"{', '.join(foreign[:3])}{', ...' * (len(foreign) > 3)}"
                )
        elif self.place.exists():
            raise UsageError(f"{self.place}: a folder for the results is needed, found a file")

    def _check_work(self) -> None:
        """See that what is in the way was made by an interrupted run."""
        if not self.work.exists() or (self.work / LOCK).is_file():
            return
        if not self.work.is_dir() or any(self.work.iterdir()):
            raise UsageError(f"{self.work}: in the way, and not left by an interrupted run")

    def _take_lock(self) -> None:
        lock = (self.work / LOCK).open("wb")
        with suppress(ImportError):  # Windows has no such locks
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise UsageError(f"{self.work}: another run is writing these results now") from None
        self._lock = lock

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _empty(self) -> None:
        for entry in self.work.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            elif entry.name != LOCK:
                entry.unlink()


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the operating system has against writing into one line that names the path.

    Raises
    ------
    HpcsimkitError
        ``results: cannot be written: No space left on device`` and the like.
    """
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else path
        raise HpcsimkitError(f"{where}: cannot be written: {error.strerror or error}") from None


def file_name(policy: str) -> str:
    """Return the name of a policy's files, without ending: the policy's, but for what no file name may hold.

    >>> file_name("fcfs+easy"), file_name("my/policies.py:Best")
    ('fcfs+easy', 'my_policies.py:Best')
    """
    return policy.replace("/", "_").replace("\0", "_")


def next_free(place: Path, *, resume: bool = False) -> Path:
    """Return the path, or the first numbered one that is not taken: ``results/x``, ``results/x-2``, ...

    With `resume`, the first that was interrupted, if there is one.
    """
    for number in count(1):
        candidate = place if number == 1 else place.with_name(f"{place.name}-{number}")
        partial = candidate.with_name(f"{candidate.name}.partial").exists()
        if (partial and resume) or not (partial or candidate.exists()):
            return candidate
    raise AssertionError("there are infinitely many numbers")
