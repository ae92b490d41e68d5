"""The folder that keeps compiled functions, which nobody but the user may have written."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from hpcsimkit.compiled.toolchain import signs
from hpcsimkit.io.printable import warn


def _digest() -> str:
    """Return the first digits of the SHA-256 of all files of this package and of its toolchain."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    content = b"".join(file.read_bytes() for file in files)
    return hashlib.sha256(content + repr(signs()).encode()).hexdigest()[:16]


CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "hpcsimkit" / _digest()
"""Folder of the compiled functions, named by the content of all files of this package and its toolchain.

So files in it mean that this process need not compile: :func:`~hpcsimkit.compiled.loading.is_compiled` relies
on it, without importing numba.
"""

SUFFIX = ".compiled"
"""Suffix of its files."""

CHECKSUM = hashlib.sha256().digest_size
"""Number of bytes of the checksum at the beginning of a file."""

OF_OTHERS = stat.S_IWGRP | stat.S_IWOTH
"""Permissions of others to write."""

TOLD: list[str] = []
"""The reason why this process does not use its folder, once it is told."""


class PrivateFiles:
    """Folder of files that are executed, so that only those of the user count.

    The checksum in each file shows damage, not intent: what protects the files are their owner and
    permissions. A file that is damaged, missing or not the user's is taken as absent; a folder that cannot be
    used is reported in one line, and each process then compiles anew.

    Parameters
    ----------
    path : Path
        Path of the folder, in another one that is private, too.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def has_files(self) -> bool:
        """Return whether the folder can be used, and files are in it."""
        return self._fault() is None and any(self.path.glob(f"*{SUFFIX}"))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is absent, damaged or not the user's."""
        if not self._is_usable():
            return None
        file = self.path / f"{name}{SUFFIX}"
        try:
            with open(file, "rb", opener=_without_links) as opened:
                fault = _fault_of(os.fstat(opened.fileno()))
                content = opened.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._tell(f"{file} cannot be read: {error.strerror}")
            return None
        if fault is not None:
            self._tell(f"{file} {fault}")
            return None
        checksum, content = content[:CHECKSUM], content[CHECKSUM:]
        return content if checksum == self._checksum(content) else None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, if possible."""
        try:
            for folder in (self.path.parent, self.path):
                folder.parent.mkdir(parents=True, exist_ok=True)
                folder.mkdir(mode=stat.S_IRWXU, exist_ok=True)
            if self._is_usable():
                self._replace(self.path / f"{name}{SUFFIX}", self._checksum(content) + content)
        except OSError as error:
            self._tell(f"{self.path} cannot be written: {error.strerror}")

    def _checksum(self, content: bytes) -> bytes:
        """Return the checksum of a content in this folder: that of another version is another one."""
        return hashlib.sha256("/".join(self.path.parts[-2:]).encode() + content).digest()

    def _replace(self, file: Path, content: bytes) -> None:
        descriptor, temporary = tempfile.mkstemp(dir=self.path)  # which only the user can read and write
        try:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(content)
            Path(temporary).replace(file)
        except BaseException:
            with suppress(OSError):
                Path(temporary).unlink()
            raise

    def _is_usable(self) -> bool:
        fault = self._fault()
        if fault is not None:
            self._tell(fault)
        return fault is None

    def _fault(self) -> str | None:
        """Return why the folder cannot be used; None if it can, or if there is none."""
        for folder in (self.path.parent, self.path):
            try:
                about = folder.lstat()
            except FileNotFoundError:
                return None
            except OSError as error:
                return f"{folder} cannot be read: {error.strerror}"
            fault = _fault_of(about) if stat.S_ISDIR(about.st_mode) else "is not a folder"
            if fault is not None:
                return f"{folder} {fault}"
        return None

    def _tell(self, reason: str) -> None:
        """Print a line, once, and not in each worker."""
        if not TOLD and multiprocessing.parent_process() is None:
            TOLD.append(reason)
            warn(f"the compiled simulator is compiled anew: {reason}")


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _fault_of(about: os.stat_result) -> str | None:
    """Return why a file or folder may have been written by others; None if it may not."""
    if not hasattr(os, "geteuid"):  # Windows keeps the folders of users apart
        return None
    if about.st_uid != os.geteuid():
        return f"belongs to user {about.st_uid}"
    return "can be written by others" if about.st_mode & OF_OTHERS else None
