"""CSV texts, and parsing of TOML and JSON texts within the limits of :mod:`hpcsimkit.io.budget`."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.budget import beyond, limit_of, refuse_beyond
from hpcsimkit.io.files import read_bytes, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.io.known_formats import named_format

__all__ = ["csv_text", "json_record", "json_value", "toml_tables", "toml_values", "write_record"]

CHECKSUM = "checksum"
"""Key of a record's checksum."""

INTEGER = re.compile(r"[0-9][0-9_]*")
BETWEEN_KEYS = re.compile(r"[=,{}\n]")


def csv_text(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return a table as CSV text; None is an empty cell.

    >>> csv_text(["policy", "wait"], [["fcfs", 2.5], ["sjf, easy", None]])
    'policy,wait\\nfcfs,2.5\\n"sjf, easy",\\n'
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([headings, *rows])
    return text.getvalue()


def toml_tables(text: str, where: object, name: str) -> tuple[list[Any], list[str]]:
    """Return the tables ``[[name]]`` of a TOML text, which has nothing else.

    Parameters
    ----------
    text : str
        TOML text.
    where : object
        Name of the file, with which messages begin.
    name : str
        Name of the tables.

    Returns
    -------
    (list, list of str)
        The tables, and the beginning of messages about each, with its line.

    Raises
    ------
    UsageError
        The text is not TOML, or has other content than such tables.
    WorkloadError
        The text exceeds a limit, see :func:`toml_values`.

    Examples
    --------
    >>> toml_tables("[[calendar]]\\nstart = 5\\n\\n[[calendar]]\\nstart = 7", "c.toml", "calendar")
    ([{'start': 5}, {'start': 7}], ['c.toml:1: ', 'c.toml:4: '])
    """
    try:
        content = toml_values(text, where)
    except tomllib.TOMLDecodeError as error:
        if named := named_format(str(where), text.encode()):
            raise UsageError(f"{where}: {named.refusal}") from None
        raise UsageError(f"{where}: not TOML: {error}") from None
    tables = content.get(name)
    if set(content) != {name} or not isinstance(tables, list) or not tables:
        raise UsageError(f"{where}: tables [[{name}]] are needed, found {', '.join(content) or 'nothing'}")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.strip() == f"[[{name}]]"]
    each = [f"{where}:{line}: " for line in lines]
    return tables, each if len(each) == len(tables) else [f"{where}: "] * len(tables)


def toml_values(text: str, where: object) -> dict[str, Any]:
    """Return the values of a TOML text.

    Parameters
    ----------
    text : str
        TOML text.
    where : object
        Name of the file, with which messages begin.

    Raises
    ------
    WorkloadError
        The length of the text, the digits of a number or the nesting of values exceeds its limit.
    tomllib.TOMLDecodeError
        The text is not TOML.

    Examples
    --------
    >>> toml_values("[generate]\\njobs = 5", "e.toml")
    {'generate': {'jobs': 5}}
    """
    refuse_beyond("toml", len(text), where)
    _check_digits(text, where)
    refuse_beyond("nesting", _most_dots(text), where)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise beyond("nesting", where) from None
    _check_values(values, where)
    return values


def json_value(text: str, where: object) -> Any:
    """Return the value of a JSON text.

    Parameters
    ----------
    text : str
        JSON text.
    where : object
        Name of the file, with which messages begin.

    Raises
    ------
    WorkloadError
        The digits of a number or the nesting of values exceeds its limit.
    json.JSONDecodeError
        The text is not JSON.

    Examples
    --------
    >>> json_value('{"jobs": [5]}', "x.json")
    {'jobs': [5]}
    """
    _check_digits(text, where)
    try:
        value = json.loads(text)
    except RecursionError:
        raise beyond("nesting", where) from None
    _check_values(value, where)
    return value


def json_record(file: Path, form: Format) -> dict[str, Any]:
    """Return the JSON object in a file of a results folder.

    A run that is resumed repeats work without a record, so an unreadable one is no error. Nor is one without
    its checksum, which was changed since :func:`write_record` wrote it.

    Parameters
    ----------
    file : Path
        Path of the file.
    form : Format
        Format of the file.

    Returns
    -------
    dict
        The object, without its checksum; empty if the file is absent, damaged, changed or beyond the limits.

    Examples
    --------
    >>> json_record(Path("no-such-file.json"), Format.TASK)
    {}
    """
    try:
        record = json_value(read_bytes(file, form).decode(), file)
    except (ValueError, WorkloadError):
        return {}
    if not isinstance(record, dict):
        return {}
    expected = record.pop(CHECKSUM, None)
    return record if expected == _checksum(record) else {}


def write_record(file: Path, record: Mapping[str, Any], *, durable: bool = True) -> None:
    """Write a JSON object with its checksum, by which :func:`json_record` notices a changed number or name.

    Parameters
    ----------
    file : Path
        Path of the file.
    record : mapping
        JSON object.
    durable : bool
        As in :func:`~hpcsimkit.io.files.write_bytes`. Default: True.

    Raises
    ------
    StorageError
        The file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "outcome.json")
    ...     write_record(file, {"jobs": 5})
    ...     before = json_record(file, Format.TASK)
    ...     _ = file.write_text(file.read_text().replace("5", "6", 1))
    ...     before, json_record(file, Format.TASK)
    ({'jobs': 5}, {})
    """
    plain = json.loads(json.dumps(record))  # as it is read: keys are strings, tuples are lists
    text = json.dumps({**plain, CHECKSUM: _checksum(plain)}, indent=2, ensure_ascii=False)
    write_bytes(file, f"{text}\n".encode(), durable=durable)


def _checksum(record: Mapping[str, Any]) -> str:
    """Return a hash of a record, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]


def _most_dots(text: str) -> int:
    """Return the number of dots of the longest dotted key; parsing time is quadratic in it."""
    return max(key.partition("#")[0].count(".") for key in BETWEEN_KEYS.split(text))


def _check_digits(text: str, where: object) -> None:
    longest = max(map(len, INTEGER.findall(text)), default=0)
    refuse_beyond("digits", longest, where)


def _check_values(value: Any, where: object) -> None:
    """Raise an error for deeply nested values, and for too many digits in whole numbers of any notation."""
    bits = 4 * limit_of("digits")
    level, depth = [value], 0
    while level:
        depth += 1
        refuse_beyond("nesting", depth, where)
        if any(isinstance(entry, int) and entry.bit_length() > bits for entry in level):
            raise beyond("digits", where)
        tables = (
            entry.values() if isinstance(entry, dict) else entry
            for entry in level
            if isinstance(entry, dict | list)
        )
        level = [entry for table in tables for entry in table]
