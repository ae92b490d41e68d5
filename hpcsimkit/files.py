"""Whole files in and out: gzip or plain, told apart by their content, and never left half-written."""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from pathlib import Path

from hpcsimkit.errors import WorkloadError

__all__ = ["read_bytes", "write_bytes"]

GZIP_MAGIC = b"\x1f\x8b"


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file, decompressed if it is gzip, whatever its name says.

    Parameters
    ----------
    path : str or path
        The file.

    Raises
    ------
    WorkloadError
        The file is missing, a directory, not readable, or gzip that is cut short or damaged.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise WorkloadError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise WorkloadError(f"{path}: a file is needed, found a directory") from None
    except (OSError, ValueError) as error:
        raise WorkloadError(f"{path}: cannot be read: {_why(error)}") from None
    return _gunzip(content, path) if content.startswith(GZIP_MAGIC) else content


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a whole file: first under a temporary name beside it, then renamed, so that none is half there.

    A name that ends in ``.gz`` is compressed, without a time stamp: equal content, equal file. What is
    there but is no ordinary file (a pipe, ``/dev/stdout``) is written to as it is.

    Raises
    ------
    WorkloadError
        The folder is missing or not writable, the disk is full, or the path is a directory.
    """
    target = Path(path)
    data = gzip.compress(content, compresslevel=6, mtime=0) if target.suffix == ".gz" else content
    try:
        if target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            _replace(Path(os.path.realpath(target)), data)
    except (OSError, ValueError) as error:
        raise WorkloadError(f"{path}: cannot be written: {_why(error)}") from None


def _replace(target: Path, data: bytes) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(data)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _gunzip(content: bytes, path: str | os.PathLike[str]) -> bytes:
    try:
        return gzip.decompress(content)
    except EOFError:
        raise WorkloadError(f"{path}: the gzip file is cut short; is the download complete?") from None
    except (OSError, zlib.error) as error:
        raise WorkloadError(f"{path}: the gzip file is damaged: {_why(error)}") from None


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
