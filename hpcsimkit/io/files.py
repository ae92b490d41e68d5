"""Reading and writing of whole files: compressed or plain, detected by content; writing is atomic.

All files that the kit reads are read here, each as a :class:`~hpcsimkit.io.formats.Format`. Reading raises an
audit event, ``hpcsimkit.read``, with the name of the format and the path.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import hashlib
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from hpcsimkit.errors import StorageError, UsageError, WorkloadError
from hpcsimkit.io.budget import beyond, limit_of, refuse_beyond
from hpcsimkit.io.formats import Format

__all__ = [
    "BYTE_ORDER_MARK",
    "ENDINGS",
    "READ",
    "flush_to_disk",
    "is_compressed",
    "is_file",
    "is_folder",
    "make_folder",
    "not_followed",
    "read_bytes",
    "read_start",
    "sha256_of_content",
    "single_name",
    "unlinked",
    "write_bytes",
]

MAGIC = {"gzip": b"\x1f\x8b", "xz": b"\xfd7zXZ\x00", "zstd": b"\x28\xb5\x2f\xfd", "bzip2": b"BZh"}
"""First bytes of compressed files, by the name of the compression."""

ENDINGS = r"(\.(gz|xz|zst|bz2))?$"
"""Pattern for the end of a file name that tells the compression."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""Byte-order marks of text in UTF-16, as spreadsheets save it."""

GZIP_MAGIC = MAGIC["gzip"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Bytes that some editors insert at the beginning of UTF-8 text."""

PART = 1 << 18
"""Number of bytes per read."""

READ = "hpcsimkit.read"
"""Audit event of a file that is read, with the name of its format and its path."""


def is_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a file; False for a text that cannot be a path, such as a long one.

    >>> is_file("x" * 5000), is_file("a\\0b")
    (False, False)
    """
    return os.path.isfile(path)  # noqa: PTH113 - the method of a path raises errors


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is that of a folder; see :func:`is_file`."""
    return os.path.isdir(path)  # noqa: PTH112 - as above


def single_name(name: str) -> str:
    """Return a name that a text from a file gives to a file or folder, if it leads to no other folder.

    Raises
    ------
    StorageError
        The text is a path.

    Examples
    --------
    >>> single_name("KTH-SP2-rest")
    'KTH-SP2-rest'
    >>> single_name("../bashrc")
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.StorageError: '../bashrc' is no name of a file or folder: it leads elsewhere
    """
    if not name or name in (".", "..") or {"/", "\\", "\0"} & set(name):
        raise StorageError(f"{name!r} is no name of a file or folder: it leads elsewhere")
    return name


def read_bytes(path: str | os.PathLike[str], form: Format, *, lines: bool = False) -> bytes:
    """Return the content of a regular file, decompressed by its first bytes, irrespective of its name.

    Files may be compressed with gzip, xz, zstd or bzip2.

    Parameters
    ----------
    path : str or path
        Path of the file.
    form : Format
        Format of the file.
    lines : bool
        Whether the file consists of text lines, with limits of their number and length; text in UTF-16 with a
        byte-order mark becomes UTF-8. Default: False.

    Raises
    ------
    WorkloadError
        The file is missing, a directory, a pipe or a device, unreadable, beyond a limit of
        :mod:`hpcsimkit.io.budget`, or truncated or damaged.
    """
    sys.audit(READ, form.name, os.fspath(path))
    content = io.BytesIO()
    for part in _parts(path, _LineCount(path) if lines else None):
        content.write(part)
    return _as_utf_8(content.getvalue()) if lines else content.getvalue()


def read_utf_8(path: str | os.PathLike[str], form: Format, needed: str) -> str:
    """Return the text of a file, read by :func:`read_bytes` in lines.

    Parameters
    ----------
    path : str or path
        Path of the file.
    form : Format
        Format of the file.
    needed : str
        Words on what is needed, with which the message on other files begins.

    Raises
    ------
    UsageError
        The file is not in UTF-8, nor in UTF-16 with a byte-order mark.
    WorkloadError
        The file cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "machines.csv"
    ...     _ = file.write_bytes(BYTE_ORDER_MARK + b"CPUs")
    ...     read_utf_8(file, Format.MACHINES, "a table is needed")
    'CPUs'
    """
    try:
        return read_bytes(path, form, lines=True).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: {needed}, found no UTF-8 text") from None


def _as_utf_8(content: bytes) -> bytes:
    """Return text that begins like UTF-16 in UTF-8; what is none remains as it is."""
    if content.startswith(UTF_16):
        with suppress(UnicodeDecodeError):
            return content.decode("utf-16").encode()
    return content


def read_start(path: str | os.PathLike[str], length: int) -> bytes:
    """Return the first bytes of a file, decompressed as in :func:`read_bytes`; fewer if it is shorter.

    They tell the format of a file, as which it is then read.

    Parameters
    ----------
    path : str or path
        Path of the file.
    length : int
        Number of bytes.
    """
    start = b""
    for part in _parts(path, None):
        start += part
        if len(start) >= length:
            break
    if start.startswith(UTF_16):
        return start[: length // 2 * 2].decode("utf-16", "replace").encode()
    return start[:length]


def is_compressed(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is compressed with gzip.

    Raises
    ------
    WorkloadError
        The file cannot be read; see :func:`read_bytes`.
    """
    with _opened(path) as file:
        return isinstance(file, gzip.GzipFile)


def sha256_of_content(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of the content of a file, decompressed as in :func:`read_bytes`.

    Raises
    ------
    WorkloadError
        The file cannot be read; see :func:`read_bytes`.
    """
    digest = hashlib.sha256()
    for part in _parts(path, None):
        digest.update(part)
    return digest.hexdigest()


class _LineCount:
    """Number of lines so far, and length of the incomplete last line."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path
        self.lines = 0
        self.open = 0

    def add(self, part: bytes) -> None:
        """Count the next part; raise an error if a limit is exceeded."""
        text = part if b"\n" in part else part.replace(b"\r", b"\n")
        first, last = text.find(b"\n"), text.rfind(b"\n")
        self.lines += text.count(b"\n")
        if self.open + (len(text) if first < 0 else first) > limit_of("line"):
            raise beyond("line", f"{self.path}:{self.lines + 1}")
        self.open = self.open + len(text) if last < 0 else len(text) - last - 1
        if self.lines > limit_of("jobs"):
            raise beyond("jobs", self.path)


def _parts(path: str | os.PathLike[str], count: _LineCount | None) -> Iterator[bytes]:
    """Yield the content of a file in parts, so that an oversized file is rejected before it is read."""
    found, limit = 0, limit_of("bytes")
    with _opened(path) as file:
        while part := _next_part(file, path):
            found += len(part)
            if found > limit:
                raise beyond("bytes", path)
            if count is not None:
                count.add(part)
            yield part


def _next_part(file: BinaryIO, path: str | os.PathLike[str]) -> bytes:
    try:
        return file.read(PART)
    except EOFError:
        raise WorkloadError(
            f"{path}: the {_compression(file)} file is cut short; is the download complete?"
        ) from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise WorkloadError(f"{path}: the {_compression(file)} file is damaged: {_why(error)}") from None
    except OSError as error:
        if error.errno is None and _compression(file):  # what bz2 and pyarrow raise
            raise WorkloadError(f"{path}: the {_compression(file)} file is damaged: {_why(error)}") from None
        raise WorkloadError(f"{path}: cannot be read: {_why(error)}") from None


def _compression(file: BinaryIO) -> str:
    kinds: dict[type, str] = {gzip.GzipFile: "gzip", lzma.LZMAFile: "xz", bz2.BZ2File: "bzip2"}
    return kinds.get(type(file), "" if isinstance(file, io.BufferedReader) else "zstd")


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a regular file for reading, decompressed; opening a pipe would block until it has a writer."""
    try:
        about = Path(path).stat()
        if not stat.S_ISREG(about.st_mode):
            raise WorkloadError(f"{path}: a file is needed, found {_kind(about.st_mode)}")
        refuse_beyond("bytes", about.st_size, path)
        file = Path(path).open("rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        raise WorkloadError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        raise WorkloadError(f"{path}: cannot be read: {_why(error)}") from None
    with file:
        start = file.peek(max(map(len, MAGIC.values())))
        found = next((name for name, magic in MAGIC.items() if start.startswith(magic)), "")
        yield _decompressed(file, found) if found else file


def _decompressed(file: BinaryIO, compression: str) -> BinaryIO:
    opened: Any
    if compression == "zstd":
        import pyarrow  # slow to import, and needed for this compression only

        opened = pyarrow.CompressedInputStream(file, "zstd")
    elif compression == "gzip":
        opened = gzip.GzipFile(fileobj=file)
    else:
        opened = lzma.LZMAFile(file) if compression == "xz" else bz2.BZ2File(file)  # noqa: SIM115 - by the caller
    return cast(BinaryIO, opened)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFDIR: "a directory", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    return kinds.get(stat.S_IFMT(mode), "a device")


def write_bytes(path: str | os.PathLike[str], content: bytes | memoryview, *, durable: bool = False) -> None:
    """Write a whole file atomically: under a temporary name in the same folder, then renamed.

    A file with the suffix ``.gz`` is compressed without a time stamp: equal content gives equal files.
    Existing pipes and devices, and the system's names of open files (``/dev/stdout``), are written directly.
    A symbolic link is rejected, since it may have been placed by another user.

    Parameters
    ----------
    path : str or path
        Path of the file.
    content : bytes
        Content of the file.
    durable : bool
        Whether the file and its name are on the disk on return, so that a power cut leaves the former or the
        new file, and no empty one. Default: False.

    Raises
    ------
    StorageError
        The folder is missing or not writable, the disk is full, or the path is a directory or a link.
    """
    target = Path(path)
    data = gzip.compress(content, compresslevel=6, mtime=0) if target.suffix == ".gz" else content
    try:
        if _is_open_file(target):
            target.write_bytes(data)
        elif target.exists() and not (target.is_file() or target.is_symlink()):
            with open(target, "wb", opener=not_followed) as file:
                file.write(data)
        else:
            _replace(target, data, durable=durable)
    except (OSError, ValueError) as error:
        raise StorageError(f"{path}: cannot be written: {_why(error)}") from None


def flush_to_disk(paths: Iterable[Path]) -> None:
    """Wait until files are on the disk; of a folder, until the names in it are. Absent paths are left out.

    Raises
    ------
    StorageError
        The disk refuses a file.
    """
    for path in paths:
        try:
            _flush(path)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written: {_why(error)}") from None


def _flush(path: Path) -> None:
    """Wait until a file or the names in a folder are on the disk; Windows does so for neither by itself."""
    if os.name == "nt" or path.is_symlink():
        return
    with suppress(FileNotFoundError):
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for its writer
        try:
            os.fsync(number)
        except OSError as error:
            if error.errno != errno.EINVAL:  # pipes, and file systems that know no such request
                raise
        finally:
            os.close(number)


def make_folder(path: str | os.PathLike[str], *, parents: bool = True) -> None:
    """Create a folder if it does not exist; a symbolic link is rejected, even to a folder.

    Parameters
    ----------
    path : str or path
        Path of the folder.
    parents : bool
        Whether missing parents are created as well; links among the parents are followed. Default: True.

    Raises
    ------
    StorageError
        The folder cannot be created, or the path is a symbolic link.
    """
    try:
        if Path(path).is_symlink():
            raise _is_a_link(path)
        Path(path).mkdir(parents=parents, exist_ok=True)
    except (OSError, ValueError) as error:
        where = getattr(error, "filename", None) or path
        raise StorageError(f"{where}: cannot be written: {_why(error)}") from None


def unlinked(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path without symbolic links among its parents; the path itself may be a link."""
    absolute = Path(path).absolute()
    if absolute.name in ("", ".."):
        return absolute.resolve()
    return absolute.parent.resolve() / absolute.name


def not_followed(path: str, flags: int) -> int:
    """Open a file for writing without following a symbolic link: an ``opener`` for :func:`open`."""
    try:
        return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)
    except OSError as error:
        raise _is_a_link(path) if error.errno == errno.ELOOP else error from None


def _is_a_link(path: str | os.PathLike[str]) -> OSError:
    return OSError(errno.ELOOP, "it is a symbolic link, which is not followed", os.fspath(path))


def _is_open_file(path: Path) -> bool:
    """Return whether a path is the system's name of an open file, such as /dev/stdout, which is a link."""
    return re.fullmatch(r"/dev|/dev/fd|/proc/[^/]+/fd", str(path.absolute().parent)) is not None


def _replace(target: Path, data: bytes | memoryview, *, durable: bool) -> None:
    if target.is_symlink():
        raise _is_a_link(target)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.unlink(missing_ok=True)  # so that the file is a new one
        with temporary.open("xb") as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(target)
        if durable:
            _flush(target.parent)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
