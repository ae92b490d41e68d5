"""The leaves of files, each with a function that puts something else there: a value, a cell, a key, an expression, an array."""

from __future__ import annotations

import gzip
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from pyarrow import parquet

from hpcsimkit.agents.networks.model_file import CHECKPOINT_TEXT, read_model, write_model
from hpcsimkit.io.files import GZIP_MAGIC

CELL = re.compile(r"\"[^\"\n]*\"|[^\s,|;=\[\]]+")
EXPRESSION = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|(?<=\n)\n", re.DOTALL)
ZIP_MAGIC, PARQUET_MAGIC = b"PK", b"PAR1"
OTHER_KEYS = ("allow_code", "import_from", "part", "copy", "name")
"""Keys that each table is given: those with which some tables name code, or allow it."""


class Leaf(NamedTuple):
    """A place in a file, and a function that returns the file with something else there, a text or a table."""

    place: str
    changed: Callable[[object], bytes]


def leaves_of(name: str, content: bytes) -> Iterator[Leaf]:
    """Yield the leaves of a file; their kind follows from its content, else from its name."""
    if content.startswith(GZIP_MAGIC):
        for place, changed in leaves_of(name.removesuffix(".gz"), gzip.decompress(content)):
            yield Leaf(place, lambda payload, changed=changed: gzip.compress(changed(payload), mtime=0))  # type: ignore[misc]
    elif content.startswith(ZIP_MAGIC):
        yield from _arrays(content)
    elif content.startswith(PARQUET_MAGIC):
        yield from _columns(content)
    elif name.endswith((".hpcsim", ".safetensors")):
        yield from _models(content)
    elif name.endswith(".toml"):
        yield from _tree(tomllib.loads(content.decode()), _toml)
    elif name.endswith(".json"):
        yield from _tree(json.loads(content), lambda value: json.dumps(value).encode())
    else:
        yield from _texts(content.decode(), EXPRESSION if name.endswith(".jinja") else CELL)


def _tree(values: Any, dump: Callable[[Any], bytes]) -> Iterator[Leaf]:
    """Yield all values of a tree, the tables included, further keys of each table, and its keys themselves."""
    for path in ((), *_paths(values)):
        place, value = ".".join(map(str, path)), _at(values, path)
        if path:
            yield Leaf(place, lambda payload, path=path: dump(_put(values, path, payload)))  # type: ignore[misc]
        for key in OTHER_KEYS if isinstance(value, dict) else ():
            yield Leaf(f"{place} + {key}", partial(_with_key, values, path, key, dump))
        for key in value if isinstance(value, dict) else ():
            yield Leaf(f"{place}.{key} as a key", partial(_with_name, values, path, key, dump))


def _with_key(
    values: Any, path: tuple[Any, ...], key: str, dump: Callable[[Any], bytes], payload: object
) -> bytes:
    entry = [payload] if key == "allow_code" else payload
    return dump(_put(values, path, {**_at(values, path), key: entry}))


def _with_name(
    values: Any, path: tuple[Any, ...], key: str, dump: Callable[[Any], bytes], payload: object
) -> bytes:
    table = _at(values, path)
    return dump(_put(values, path, {str(payload) if each == key else each: table[each] for each in table}))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the places of all values in nested tables and lists."""
    if path:
        yield path
    entries = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, entry in entries:
        yield from _paths(entry, (*path, key))


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _put(value: Any, path: tuple[Any, ...], entry: Any) -> Any:
    """Return a copy of a tree with an entry at a place."""
    if not path:
        return entry
    copy = value.copy()
    copy[path[0]] = _put(value[path[0]], path[1:], entry)
    return copy


def _toml(values: dict[str, Any]) -> bytes:
    """Return TOML with a line for each key of the document."""
    return "".join(f"{json.dumps(key)} = {_inline(value)}\n" for key, value in values.items()).encode()


def _inline(value: Any) -> str:
    """Return a value of TOML in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_inline(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return json.dumps(value) if isinstance(value, str | bool) else str(value)


def _texts(text: str, leaf: re.Pattern[str]) -> Iterator[Leaf]:
    for found in leaf.finditer(text):
        place = f"line {text.count(chr(10), 0, found.start()) + 1}: {found[0][:40]!r}"
        before, after = text[: found.start()], text[found.end() :]
        yield Leaf(place, lambda payload, before=before, after=after: f"{before}{payload}{after}".encode())  # type: ignore[misc]


def _models(content: bytes) -> Iterator[Leaf]:
    """Yield the leaves of what a model or checkpoint says, changed with the hash that belongs to it, and its tensors' names."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.hpcsim"
        path.write_bytes(content)
        tensors, about = read_model(path, CHECKPOINT_TEXT)
    yield from _tree(
        {key: value for key, value in about.items() if key != "format"}, partial(_model, tensors)
    )
    for name in tensors:
        yield Leaf(
            f"tensor {name}", lambda payload, name=name: _model(_renamed(tensors, name, payload), about)
        )  # type: ignore[misc]


def _model(tensors: dict[str, Any], about: dict[str, Any]) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.hpcsim"
        write_model(path, tensors, {key: value for key, value in about.items() if key != "format"})
        return path.read_bytes()


def _renamed(table: dict[str, Any], name: str, payload: object) -> dict[str, Any]:
    return {str(payload) if each == name else each: table[each] for each in table}


def _arrays(content: bytes) -> Iterator[Leaf]:
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    for name in arrays:
        yield Leaf(f"array {name}", lambda payload, name=name: _npz({**arrays, name: np.array(str(payload))}))  # type: ignore[misc]
    if "about" in arrays:
        about = json.loads(str(arrays["about"]))
        yield from _tree(about, lambda value: _npz({**arrays, "about": np.array(json.dumps(value))}))


def _npz(arrays: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _columns(content: bytes) -> Iterator[Leaf]:
    """Yield the columns of a table, whose every row is changed, their names, and what the file says of itself."""
    table = parquet.read_table(io.BytesIO(content))
    for number, name in enumerate(table.column_names):
        yield Leaf(f"column {name}", partial(_with_column, table, number))
        names = {each: each for each in table.column_names}
        yield Leaf(
            f"name of {name}",
            lambda payload, name=name, names=names: _parquet(
                table.rename_columns([*{**names, name: str(payload)}.values()])
            ),  # type: ignore[misc]
        )
    for key in (b"pandas", b"ARROW:schema"):
        yield Leaf(f"metadata {key!r}", partial(_with_metadata, table, key))


def _with_column(table: Any, number: int, payload: object) -> bytes:
    column = pyarrow.array([str(payload)] * len(table))
    return _parquet(table.set_column(number, table.column_names[number], column))


def _with_metadata(table: Any, key: bytes, payload: object) -> bytes:
    return _parquet(
        table.replace_schema_metadata(
            {key: json.dumps({"index_columns": [payload], "columns": [payload]}).encode()}
        )
    )


def _parquet(table: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()
