"""Model files: tensors in the safetensors format, with everything else as JSON in the header.

Nothing in such a file is ever executed: classes are looked up by name among those of the kit, and get literal
parameters. A hash of the content detects damage; it does not authenticate the author.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit._version import __version__
from hpcsimkit.errors import UsageError
from hpcsimkit.io.files import is_compressed, read_bytes, write_bytes
from hpcsimkit.io.formats import Format

FORMAT = "hpcsimkit model 1"
HEADER = "hpcsimkit"
"""Key in the metadata of the file; its value is the hash, with `DIGITS` digits, followed by the JSON."""

DIGITS = 64

MODEL_TEXT, CHECKPOINT_TEXT = 2**20, 2**26
"""Maximum size of the header of a model, and of a checkpoint, which contains the learning curve [bytes]."""

MOST_TENSORS, LONGEST_SIDE, DEEPEST = 4096, 2**31, 32
"""Maximum number of tensors, maximum length of a tensor's side, and maximum nesting depth of the JSON."""

GRAPH = "graph"
"""Name of the one tensor of bytes: an ONNX graph. All others are of float32."""

Tensors = Mapping[str, NDArray[Any]]


def write_model(path: str | os.PathLike[str], tensors: Tensors, about: Mapping[str, Any]) -> None:
    """Write a model file, completely or not at all.

    `about` is metadata as JSON data: encoder, mask, network, training.
    """
    safetensors = _library()
    text = json.dumps({"format": FORMAT, "kit": __version__, **about}, allow_nan=False)
    plain = {
        name: np.ascontiguousarray(values, dtype=np.uint8 if name == GRAPH else np.float32)
        for name, values in tensors.items()
    }
    # One entry only: the order of several would vary.
    metadata = {HEADER: _digest(text, plain) + text}
    write_bytes(path, safetensors.numpy.save(plain, metadata=metadata))


def read_model(
    path: str | os.PathLike[str], most_text: int = MODEL_TEXT, form: Format = Format.MODEL
) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Read a model file: its tensors and its metadata.

    The sizes in the header are checked against the size of the file before anything is allocated: reading
    takes a small multiple of the size of the file, and compressed files are refused.

    `most_text` is the maximum size of the header, which contains the JSON [bytes].
    """
    safetensors = _library()
    if is_compressed(path):
        raise UsageError(f"{path}: a model is needed that is not compressed, found a gzip file")
    content = read_bytes(path, form)
    try:
        metadata = _metadata(content, most_text)
        digest, text = metadata[HEADER][:DIGITS], metadata[HEADER][DIGITS:]
        tensors = safetensors.numpy.load(content)
        about = _plain_json(text)
        found = about["format"]
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise UsageError(f"{path}: a model of hpcsimkit is needed, found something else or damaged") from None
    if _digest(text, tensors) != digest:
        raise UsageError(f"{path}: the file is damaged: its content does not hash to what it says")
    if found != FORMAT:
        raise UsageError(f"{path}: {FORMAT!r} is needed, found {found!r} of hpcsimkit {about.get('kit')}")
    return tensors, about


def _metadata(content: bytes, most_text: int) -> dict[str, str]:
    """Return the metadata in the header, after checking the declared tensors against the limits."""
    length = int.from_bytes(content[:8], "little")
    if length > min(most_text, len(content)):
        raise ValueError("a header that is too long")
    header = _plain_json(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    if len(header) > MOST_TENSORS:
        raise ValueError("too many tensors")
    for name, tensor in header.items():
        if (
            tensor["dtype"] != ("U8" if name == GRAPH else "F32")
            or max(tensor["shape"], default=0) > LONGEST_SIDE
        ):
            raise ValueError("a tensor of another type or size")
    return {str(key): str(value) for key, value in metadata.items()}


def _plain_json(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object, after checking its nesting depth."""
    found = json.loads(text, parse_constant=float)
    level = [found]
    for _ in range(DEEPEST):
        tables = (
            entry.values() if isinstance(entry, dict) else entry
            for entry in level
            if isinstance(entry, dict | list)
        )
        level = [entry for table in tables for entry in table]
    if level or not isinstance(found, dict):
        raise ValueError("values nested too deep")
    return found


def _digest(text: str, tensors: Tensors) -> str:
    """Return the SHA-256 of the JSON and of the tensors in order of their names."""
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
