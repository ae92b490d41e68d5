"""Arrays in ``.npz`` files, safely read from unknown origin: no pickle, no allocation by claimed sizes."""

from __future__ import annotations

import io
import math
import os
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.files import write_bytes

__all__ = ["DAMAGED", "arrays_in", "write_arrays"]

DAMAGED = (
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)
"""Exceptions that indicate a damaged file or a file of another type."""

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def arrays_in(content: bytes, where: object) -> dict[str, NDArray[Any]]:
    """Return the arrays of an ``.npz`` file by name.

    The zip directory contains the unpacked size of each entry, and each entry begins with the shape of its
    array. Both are compared before any entry is unpacked, so that a false size allocates no memory.

    Parameters
    ----------
    content : bytes
        Content of the file.
    where : object
        Name of the file, with which messages begin.

    Raises
    ------
    WorkloadError
        The arrays have more bytes than the limit of :mod:`hpcsimkit.io.budget`.
    ValueError
        An array contains objects, or is smaller than it claims.

    Examples
    --------
    >>> file = io.BytesIO()
    >>> np.savez_compressed(file, waits=np.array([3, 4]))
    >>> arrays_in(file.getvalue(), "x.npz")
    {'waits': array([3, 4])}
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        refuse_beyond("bytes", sum(entry.file_size for entry in entries), where)
        for entry in entries:
            _check(archive, entry)
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write_arrays(path: str | os.PathLike[str], **arrays: Any) -> None:
    """Write arrays, none of them of objects, to a compressed file.

    Raises
    ------
    WorkloadError
        The file cannot be written.
    """
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    write_bytes(path, content.getvalue())


def _check(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Check that an array is as large as it claims."""
    with archive.open(entry) as file:
        version = npy.read_magic(file)
        if version not in HEADERS:
            raise ValueError(f"{entry.filename} is an array of the unknown version {version}")
        shape, _, dtype = HEADERS[version](file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > entry.file_size:
        raise ValueError(f"{entry.filename} is not as large as it claims")
