"""Logs in table form: a header line followed by one row per job."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.files import BYTE_ORDER_MARK, ENDINGS, read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN

__all__ = [
    "MISSING",
    "Cells",
    "EncodedCells",
    "InBulk",
    "Letters",
    "Parser",
    "Table",
    "changed",
    "digits",
    "labelled",
    "letters_of",
    "numbered",
    "parse",
    "read_text",
    "shown",
    "some",
    "table_of_records",
    "whole_ids",
    "whole_numbers",
]

Cells = Sequence[str]
Letters = NDArray[np.uint8]
"""ASCII codes of the letters of cells, of shape (cells, `LONGEST_TEXT`), with 0 behind the end of each."""

Parser = Callable[[str], int]
"""Function of the stripped text of a cell; it may have a method ``bulk`` for many cells at once."""

MISSING = frozenset({"", "nan", "nat", "<na>", "none", "null", "n/a", "na"})
"""Cells in lower case that programs write for a missing value."""

CELL_SHOWN = 40

LONGEST_TEXT = 24
"""Length of cells that are parsed in bulk; longer ones are cut, and neither numbers nor the usual times."""

NAME_WITH_NUMBER = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})", re.DOTALL)
FLOAT_ID = re.compile(r"\d+\.0")
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class EncodedCells(Sequence[str]):
    """Cells of a column with few distinct texts.

    Parameters
    ----------
    distinct : sequence of str
        The distinct texts.
    codes : array of int, shape (rows,)
        Number of the text of each row.

    Examples
    --------
    >>> list(EncodedCells(["a", "b"], np.array([0, 1, 0])))
    ['a', 'b', 'a']
    """

    def __init__(self, distinct: Sequence[str], codes: NDArray[Any]) -> None:
        self.distinct = distinct
        self.codes = codes

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, row: int) -> str: ...

    @overload
    def __getitem__(self, row: slice) -> Cells: ...

    def __getitem__(self, row: int | slice) -> str | Cells:
        if isinstance(row, slice):
            return EncodedCells(self.distinct, self.codes[row])
        return self.distinct[self.codes[row]]

    def __iter__(self) -> Iterator[str]:
        return map(self.distinct.__getitem__, self.codes.tolist())


def some(cells: Cells, rows: NDArray[Any]) -> Cells:
    """Return the cells of some rows, given by number.

    >>> list(some(["a", "b", "c"], np.array([2, 0])))
    ['c', 'a']
    """
    if isinstance(cells, EncodedCells):
        return EncodedCells(cells.distinct, cells.codes[rows])
    return [cells[row] for row in rows.tolist()]


def changed(cells: Cells, change: Callable[[str], str]) -> Cells:
    """Return changed cells; each distinct text is changed once.

    >>> list(changed(["a", "b", "a"], str.upper))
    ['A', 'B', 'A']
    """
    if isinstance(cells, EncodedCells):
        return EncodedCells([change(cell) for cell in cells.distinct], cells.codes)
    known = {cell: change(cell) for cell in dict.fromkeys(cells)}
    return [known[cell] for cell in cells]


@dataclass(frozen=True)
class Table:
    """The cells of a file by column, before parsing.

    Parameters
    ----------
    path : str
        Path of the file, for messages.
    columns : mapping of str to sequence of str
        Cells by column name, one per row.
    line : array of int64, shape (rows,)
        Number of the first line of each row in the file, from 1.
    width : int
        Number of cells in the header and in each row.
    malformed : sequence of (int, str)
        Line number of each row with a different number of cells, and a description of it.
    mended : sequence of int
        Line numbers of rows whose cells were put together again.
    unread : sequence of str
        Names of the columns that are not read.
    """

    path: str
    columns: Mapping[str, Cells]
    line: Column
    width: int
    malformed: Sequence[tuple[int, str]] = ()
    mended: Sequence[int] = ()
    unread: Sequence[str] = ()

    def __len__(self) -> int:
        return len(self.line)

    @property
    def file_name(self) -> str:
        """The name of the file without its folder."""
        return Path(self.path).name

    @property
    def log_name(self) -> str:
        """The name of the file without its extensions."""
        endings = rf"(\.(csv|tsv|txt|psv|sacct|log|out|json|parquet))?{ENDINGS}"
        return re.sub(endings, "", self.file_name, flags=re.IGNORECASE) or self.file_name

    def needs(self, names: Iterable[str], what: str) -> None:
        """Raise an error if one of the columns is missing."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            found = ", ".join(map(shown, self.columns))
            raise WorkloadError(f"{self.path}:1: {what} needs the column {missing[0]}, found {found}")

    def check_well_formed(self) -> None:
        """Raise an error if a row has a different number of cells than the header, or there is no row."""
        if self.malformed:
            line, found = self.malformed[0]
            raise WorkloadError(f"{self.path}:{line}: {self.width} cells needed, found {found}")
        if not len(self):
            raise WorkloadError(f"{self.path}: no job in it, only a header line")

    def refuse(self, row: int, text: str) -> WorkloadError:
        """Return an error that names the line of a row."""
        return WorkloadError(f"{self.path}:{self.line[row]}: {text}")

    def numbers(self, name: str, parser: Parser) -> Column:
        """Return the parsed cells of a column; the first cell that cannot be parsed is an error."""
        cells = self.columns[name]
        values, wrong = parse(cells, parser)
        if wrong:
            row = next(row for row, cell in enumerate(cells) if cell in wrong)
            raise self.refuse(row, f"{name}: {wrong[cells[row]]}")
        return values


def table_of_records(
    path: str | os.PathLike[str], records: Iterable[tuple[int, Mapping[str, str] | str]]
) -> Table:
    """Return the table of records with their line numbers, all with the same names of cells.

    Parameters
    ----------
    path : path
        Path of the file.
    records : iterable of (int, mapping of str to str, or str)
        Line number and cells of each record; of what is no record, a description of what was found.

    Raises
    ------
    WorkloadError
        There is no record.
    """
    lines: list[int] = []
    rows: list[Mapping[str, str]] = []
    malformed: list[tuple[int, str]] = []
    for line, found in records:
        if isinstance(found, str):
            malformed.append((line, found))
        else:
            lines.append(line)
            rows.append(found)
    if not rows:
        seen = f", found {malformed[0][1]}" if malformed else ""
        where = f"{path}:{malformed[0][0]}" if malformed else f"{path}"
        raise WorkloadError(f"{where}: a record of a job needed{seen}")
    refuse_beyond("cells", len(rows) * len(rows[0]), path)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Table(str(path), columns, np.array(lines, dtype=np.int64), len(columns), malformed)


def parse(cells: Cells, parser: Parser) -> tuple[Column, dict[str, str]]:
    """Return the parsed cells (-1 if a cell cannot be parsed), and error messages by cell text.

    Each distinct text is parsed only once, since logs contain many equal cells.
    """
    if isinstance(cells, EncodedCells):
        used = np.flatnonzero(np.bincount(cells.codes, minlength=len(cells.distinct)))
        values = np.full(len(cells.distinct), UNKNOWN)
        values[used], wrong = parse([cells.distinct[code] for code in used.tolist()], parser)
        return values[cells.codes], wrong
    bulk = getattr(parser, "bulk", None)
    values, left = (
        bulk(cells) if bulk and len(cells) else (np.full(len(cells), UNKNOWN), np.arange(len(cells)))
    )
    known: dict[str, int] = {}
    wrong = {}
    rest = some(cells, left) if len(left) < len(cells) else cells
    for cell in dict.fromkeys(rest):
        try:
            known[cell] = parser(cell.strip())
        except UsageError as error:
            known[cell] = UNKNOWN
            wrong[cell] = str(error)
    values[left] = np.fromiter(map(known.__getitem__, rest), dtype=np.int64, count=len(rest))
    return values, wrong


class InBulk:
    """Parser that reads cells of digits only, as whole numbers, at once, and all others by another parser.

    Parameters
    ----------
    parser : callable
        Parser that reads digits as whole numbers.
    """

    def __init__(self, parser: Parser) -> None:
        self.parser = parser

    def __call__(self, text: str) -> int:
        """Return the number in a cell."""
        return self.parser(text)

    def bulk(self, cells: Cells) -> tuple[Column, NDArray[np.intp]]:
        """Return the numbers of cells of digits, and the rows of all others."""
        letters, plain = digits(cells, 15)
        values = np.full(len(letters), UNKNOWN)
        values[plain] = whole_numbers(letters[plain])
        return values, np.flatnonzero(~plain)


def digits(cells: Cells, length: int) -> tuple[Letters, NDArray[np.bool_]]:
    """Return the letters of cells, and which of them are up to so many digits, without a leading zero.

    >>> digits(["12", "1a", "07", "0", ""], 9)[1].tolist()
    [True, False, False, True, False]
    """
    letters = letters_of(cells)
    is_digit = letters - np.uint8(ord("0")) < 10  # of type uint8, so that all smaller ones become large
    plain = (is_digit | (letters == 0)).all(axis=1) & is_digit[:, 0] & ~is_digit[:, length:].any(axis=1)
    plain &= (letters[:, 0] != ord("0")) | ~is_digit[:, 1]
    return letters, plain


def letters_of(cells: Cells) -> Letters:
    """Return the ASCII codes of the first letters of cells; of a cell with other letters, ``?``.

    >>> letters_of(["7", "é"])[:, :2].tolist()
    [[55, 0], [63, 0]]
    """
    try:
        texts = np.array(cells, dtype=f"S{LONGEST_TEXT}")
    except UnicodeEncodeError:
        texts = np.array([cell if cell.isascii() else "?" for cell in cells], dtype=f"S{LONGEST_TEXT}")
    return texts.view(np.uint8).reshape(len(texts), LONGEST_TEXT)


def whole_numbers(letters: Letters) -> Column:
    """Return the numbers in cells of digits.

    >>> whole_numbers(letters_of(["12", "7"])).tolist()
    [12, 7]
    """
    values = np.zeros(len(letters), dtype=np.int64)
    for place in letters.T:
        there = place != 0
        if not there.any():
            break
        values = np.where(there, values * 10 + (place - np.uint8(ord("0"))), values)
    return values


def shown(text: str) -> str:
    """Return a piece of a file in a form suited to messages: short and without control characters."""
    return repr(text if len(text) <= CELL_SHOWN else f"{text[: CELL_SHOWN - 3]}...")


# --- reading ---------------------------------------------------------------------------------------------


def read_text(path: str | os.PathLike[str], form: Format) -> str:
    """Return the text of a file, in UTF-8 or Latin-1; raise an error if it is empty or binary."""
    content = read_bytes(path, form, lines=True).removeprefix(BYTE_ORDER_MARK)
    if b"\0" in content:
        raise WorkloadError(f"{path}: a table with a header line is needed, found binary data")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if "\n" not in text:
        text = text.replace("\r", "\n")
    if not text.strip():
        raise WorkloadError(f"{path}: a table with a header line is needed, found an empty file")
    return text


# --- names -----------------------------------------------------------------------------------------------


def labelled(cells: Cells, *, numbers: bool = True) -> tuple[Column, tuple[str, ...]]:
    """Return numbers for names in order of first appearance (-1 for an empty cell), and the names.

    If all names are integers, they are used as the numbers, unless `numbers` is False.

    >>> [part for part in labelled(["b", "a", "", "b"])], labelled(["7", "", "8"])[0].tolist()
    ([array([ 0,  1, -1,  0]), ('b', 'a')], [7, -1, 8])
    """
    if isinstance(cells, EncodedCells):
        rows = len(cells)
        first = np.full(len(cells.distinct), rows)
        first[cells.codes[::-1]] = np.arange(rows)[::-1]  # of several values, the last one remains
        order = np.argsort(first, kind="stable")[: np.count_nonzero(first < rows)]
        values = np.full(len(cells.distinct), UNKNOWN)
        values[order], names = labelled([cells.distinct[code] for code in order.tolist()], numbers=numbers)
        return values[cells.codes], names
    names = tuple(name for name in dict.fromkeys(cell.strip() for cell in cells) if name)
    if numbers and all(map(PLAIN_NUMBER.fullmatch, names)):
        return parse(cells, lambda cell: int(cell or UNKNOWN))[0], ()
    number = {"": UNKNOWN, **{name: position for position, name in enumerate(names)}}
    return parse(cells, number.__getitem__)[0], names


def whole_ids(cells: Cells) -> Cells:
    """Return job numbers as whole numbers; spreadsheets write them as ``7.0`` if one is missing.

    >>> whole_ids(["7.0", ""]), whole_ids(["7.0", "7_1"])
    (['7', ''], ['7.0', '7_1'])
    """
    there = (cell.strip() for cell in cells if cell.strip())
    if len(cells) and all(map(FLOAT_ID.fullmatch, there)):
        return changed(cells, lambda cell: cell.strip().removesuffix(".0"))
    return cells


def numbered(names: Cells) -> tuple[Column, str, tuple[str, ...]]:
    """Return job numbers for job names, the common prefix of the numbers, and the names.

    Names that are plain numbers are the job numbers, even if one is repeated. If the names consist of the
    same word and a different number each (``job7``, ``job8``), these numbers are the job numbers. In both
    cases no names are returned. Otherwise the job numbers are the positions 0, 1, ... of the names.

    >>> numbered(["job7", "job9"])[:2], numbered(["7", "7"])[:2], numbered(["a", "a1"])[2]
    ((array([7, 9]), 'job'), (array([7, 7]), ''), ('a', 'a1'))
    """
    letters, plain = digits(names := whole_ids(names), 18)
    if plain.all() and len(names):
        return whole_numbers(letters), "", ()
    matches = [NAME_WITH_NUMBER.fullmatch(name.strip()) for name in names]
    words = {match[1] if match else None for match in matches}
    numbers = [int(match[2]) for match in matches if match]
    if words == {""} or (len(words) == 1 and len(set(numbers)) == len(names)):
        return np.array(numbers, dtype=np.int64), words.pop() or "", ()
    return np.arange(len(names), dtype=np.int64), "", tuple(name.strip() for name in names)
