"""Logs in table form: a header line followed by one row per job."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpcsimkit.errors import UsageError, WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.files import BYTE_ORDER_MARK, read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.columns import Column
from hpcsimkit.jobs.job import UNKNOWN

__all__ = [
    "Cells",
    "Parser",
    "Table",
    "labelled",
    "numbered",
    "parse",
    "read_csv",
    "read_text",
    "shown",
    "table_of",
]

Cells = Sequence[str]
Parser = Callable[[str], int]

CELL_SHOWN = 40

NAME_WITH_NUMBER = re.compile(r"(.*?)(0|[1-9][0-9]{0,17})", re.DOTALL)
PLAIN_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


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
    """

    path: str
    columns: Mapping[str, Cells]
    line: Column
    width: int
    malformed: Sequence[tuple[int, str]] = ()

    def __len__(self) -> int:
        return len(self.line)

    @property
    def file_name(self) -> str:
        """The name of the file without its folder."""
        return Path(self.path).name

    @property
    def log_name(self) -> str:
        """The name of the file without its extensions."""
        endings = r"(\.(csv|txt|psv|sacct|log|out))?(\.gz)?$"
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


def parse(cells: Cells, parser: Parser) -> tuple[Column, dict[str, str]]:
    """Return the parsed cells (-1 if a cell cannot be parsed), and error messages by cell text.

    Each distinct text is parsed only once, since logs contain many equal cells.
    """
    values: dict[str, int] = {}
    wrong: dict[str, str] = {}
    for cell in dict.fromkeys(cells):
        try:
            values[cell] = parser(cell.strip())
        except UsageError as error:
            values[cell] = UNKNOWN
            wrong[cell] = str(error)
    return np.fromiter(map(values.__getitem__, cells), dtype=np.int64, count=len(cells)), wrong


def shown(text: str) -> str:
    """Return a piece of a file in a form suited to messages: short and without control characters."""
    return repr(text if len(text) <= CELL_SHOWN else f"{text[: CELL_SHOWN - 3]}...")


# --- reading ---------------------------------------------------------------------------------------------


def read_csv(path: str | os.PathLike[str], form: Format) -> Table:
    """Return the table in a CSV file, plain or gzip; cells that contain commas are in double quotes.

    Raises
    ------
    WorkloadError
        If the file cannot be read, is empty or binary, or a column name occurs twice in the header.
    """
    text = read_text(path, form)
    refuse_beyond("cells", text.count(","), path)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)

    def rows() -> Iterator[tuple[int, list[str]]]:
        first = 1
        try:
            for row in reader:
                yield first, row
                first = reader.line_num + 1
        except csv.Error as error:
            raise WorkloadError(f"{path}:{reader.line_num}: a table of cells needed: {error}") from None

    return table_of(path, rows())


def read_text(path: str | os.PathLike[str], form: Format) -> str:
    """Return the text of a file, plain or gzip, in UTF-8 or Latin-1; raise an error if empty or binary."""
    content = read_bytes(path, form, lines=True).removeprefix(BYTE_ORDER_MARK)
    if b"\0" in content[:65536]:
        raise WorkloadError(f"{path}: a table with a header line is needed, found binary data")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    if not text.strip():
        raise WorkloadError(f"{path}: a table with a header line is needed, found an empty file")
    return text


def table_of(path: str | os.PathLike[str], rows: Iterable[tuple[int, list[str]]]) -> Table:
    """Return the table of rows with line numbers; the first row that is not blank is the header."""
    rows = ((line, row) for line, row in rows if row and (len(row) > 1 or row[0].strip()))
    where, header = next(iter(rows), (1, []))
    if not header:
        raise WorkloadError(f"{path}: a table with a header line is needed, found only blank lines")
    names = [name.strip() for name in header]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise WorkloadError(
            f"{path}:{where}: each column needs a name of its own, found {shown(twice)} twice"
        )
    lines: list[int] = []
    cells: list[list[str]] = []
    malformed = []
    for line, row in rows:
        if len(row) == len(names):
            lines.append(line)
            cells.append(row)
        else:
            malformed.append((line, f"{len(row)} cell{'s' * (len(row) != 1)}"))
    columns = dict(zip(names, zip(*cells, strict=True), strict=True)) if cells else dict.fromkeys(names, ())
    return Table(str(path), columns, np.array(lines, dtype=np.int64), len(names), malformed)


# --- names -----------------------------------------------------------------------------------------------


def labelled(cells: Cells, *, numbers: bool = True) -> tuple[Column, tuple[str, ...]]:
    """Return numbers for names in order of first appearance (-1 for an empty cell), and the names.

    If all names are integers, they are used as the numbers, unless `numbers` is False.

    >>> [part for part in labelled(["b", "a", "", "b"])], labelled(["7", "", "8"])[0].tolist()
    ([array([ 0,  1, -1,  0]), ('b', 'a')], [7, -1, 8])
    """
    names = tuple(name for name in dict.fromkeys(cell.strip() for cell in cells) if name)
    if numbers and all(map(PLAIN_NUMBER.fullmatch, names)):
        return parse(cells, lambda cell: int(cell or UNKNOWN))[0], ()
    number = {"": UNKNOWN, **{name: position for position, name in enumerate(names)}}
    return parse(cells, number.__getitem__)[0], names


def numbered(names: Cells) -> tuple[Column, str, tuple[str, ...]]:
    """Return job numbers for job names, the common prefix of the numbers, and the names.

    Names that are plain numbers are the job numbers, even if one is repeated. If the names consist of the
    same word and a different number each (``job7``, ``job8``), these numbers are the job numbers. In both
    cases no names are returned. Otherwise the job numbers are the positions 0, 1, ... of the names.

    >>> numbered(["job7", "job9"])[:2], numbered(["7", "7"])[:2], numbered(["a", "a1"])[2]
    ((array([7, 9]), 'job'), (array([7, 7]), ''), ('a', 'a1'))
    """
    matches = [NAME_WITH_NUMBER.fullmatch(name.strip()) for name in names]
    words = {match[1] if match else None for match in matches}
    numbers = [int(match[2]) for match in matches if match]
    if words == {""} or (len(words) == 1 and len(set(numbers)) == len(names)):
        return np.array(numbers, dtype=np.int64), words.pop() or "", ()
    return np.arange(len(names), dtype=np.int64), "", tuple(name.strip() for name in names)
