"""Locks of folders, and one-line messages for errors in writing to them."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hpcsimkit.errors import HpcsimkitError, StorageError, UsageError
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK = ".lock"
"""File that is locked while a process works on its folder."""

SECONDS_TO_LOOK = 3.0
"""Time to wait for a lock that another process may hold only to look at it [s]."""

MOST_OF_HOLDER = 200
"""Maximum length of the text on the process that holds a lock."""


def locked(file: Path, message: str, *, patience: float = 0.0) -> BaseFileLock:
    """Lock a file, created if absent; processes forked later do not hold the lock.

    If another process holds the lock for longer than `patience` [s], that is an error with the text
    `message`, and the number and host of the process.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(file)
    try:
        lock.acquire(timeout=patience)
    except Timeout:
        with suppress(HpcsimkitError, UnicodeDecodeError):
            message += read_bytes(file, Format.LOCK).decode()[:MOST_OF_HOLDER]
        raise UsageError(message) from None
    with suppress(OSError):  # Windows forbids writing to a locked file
        file.write_text(f" (process {os.getpid()} on {platform.node()})", encoding="utf-8")
    return lock


def remove_temporary_files(folder: Path) -> None:
    """Remove the temporary files that killed processes have left."""
    for leftover in folder.rglob(".*.tmp"):
        leftover.unlink()


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Convert errors of the operating system in writing to one-line messages with the path."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else path
        raise StorageError(f"{where}: cannot be written: {error.strerror or error}") from None
