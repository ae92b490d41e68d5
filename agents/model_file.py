"""One file a model: tensors in the safetensors format, everything else as JSON in its header.

Nothing in such a file is ever executed: classes are looked up by name among those the kit knows, and get
numbers, words and lists as parameters. A hash over all of it tells a damaged file from a sound one.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit import __version__
from hpcsimkit.errors import UsageError
from hpcsimkit.files import read_bytes, write_bytes

__all__ = ["FORMAT", "read_model", "write_model"]

FORMAT = "hpcsimkit model 1"
HEADER = "hpcsimkit"
"""Key in the metadata of the file; there stand the hash, in so many digits, and the JSON."""

DIGITS = 64

Tensors = Mapping[str, NDArray[np.float32]]


def write_model(path: str | os.PathLike[str], tensors: Tensors, about: Mapping[str, Any]) -> None:
    """Write a model; the file appears whole or not at all.

    Parameters
    ----------
    path : path
        Usually ends in ``.hpcsim``.
    tensors : mapping of str to array of float32
        The weights.
    about : mapping
        What JSON can say: encoder, mask, network, training.
    """
    safetensors = _library()
    text = json.dumps({"format": FORMAT, "kit": __version__, **about}, allow_nan=False)
    plain = {name: np.ascontiguousarray(values, dtype=np.float32) for name, values in tensors.items()}
    # One entry only: several would come out in another order each time.
    metadata = {HEADER: _digest(text, plain) + text}
    write_bytes(path, safetensors.numpy.save(plain, metadata=metadata))


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """Read a model: its tensors, and what is known about it.

    Raises
    ------
    UsageError
        It is no model, of another version, or damaged.
    WorkloadError
        The file cannot be read.
    """
    safetensors = _library()
    content = read_bytes(path)
    try:
        length = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + length])["__metadata__"]
        digest, text = metadata[HEADER][:DIGITS], metadata[HEADER][DIGITS:]
        tensors = safetensors.numpy.load(content)
        about = json.loads(text)
        found = about["format"]
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, OverflowError):
        raise UsageError(f"{path}: a model of hpcsimkit is needed, found something else or damaged") from None
    if _digest(text, tensors) != digest:
        raise UsageError(f"{path}: the file is damaged: its content does not hash to what it says")
    if found != FORMAT:
        raise UsageError(f"{path}: {FORMAT!r} is needed, found {found!r} of hpcsimkit {about.get('kit')}")
    return tensors, about


def _digest(text: str, tensors: Tensors) -> str:
    """Return the SHA-256 of the JSON and of the tensors in the order of their names."""
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        values = tensors[name]
        digest.update(repr((name, values.shape, str(values.dtype))).encode() + values.tobytes())
    return digest.hexdigest()


def _library() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise UsageError("model files need the package safetensors: pip install 'hpcsimkit[rl]'") from None
    return safetensors
