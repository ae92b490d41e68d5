"""Splitter of text into records: the cells of all logs in table form, whichever program wrote them.

The separator is the one that splits the header into the most known names. Lines with the right number of
cells are split at once; all others, and cells in quotes, one by one:

- A cell in double quotes may contain separators, doubled quotes and line breaks.
- A line with too many cells has separators in a text that the program did not escape. The cells of it are
  put together again if there is only one way to do so, for all columns that are read, in which each cell
  looks like one of its column.
- Lines with too few cells have line breaks in such a text; they are joined in the same way.
"""

from __future__ import annotations

import csv
import os
import re
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from operator import call
from types import BuiltinMethodType
from typing import NamedTuple

import numpy as np

from hpcsimkit.errors import WorkloadError
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.io.formats import Format
from hpcsimkit.workloads.readers.tables import Cells, EncodedCells, Table, read_text, shown

__all__ = ["MENDED", "Columns", "Look", "like", "read_records"]

MENDED = "separator or line break in a text: put together again"
"""Note for records that were not one line with the right number of cells."""

BLOCK = 1 << 21
"""Number of characters that are split at once."""

SEPARATORS = ("|", "\t", ";", ",")
"""Usual separators, by precedence."""

MOST_MORE = 40
"""Largest number of separators within the texts of one record."""

MOST_LINES = 20
"""Largest number of lines of one record."""

DISTINCT = 4096
"""Number of rows after which a column with mostly distinct cells is no longer encoded, and of checks kept."""

Look = Callable[[str], object]
"""Check that a stripped cell looks like one of its column; true if it does."""


def like(pattern: str) -> Look:
    """Return the check that a cell matches a pattern, or is empty."""
    return re.compile(f"(?:{pattern})?", re.IGNORECASE).fullmatch


class Columns(NamedTuple):
    """What is known of the columns of a format.

    Parameters
    ----------
    read : mapping of str to str, optional
        Names of the columns to keep, as the format spells them, by names in lower case; by default all.
    looks : mapping of str to Look
        Checks of cells by name in lower case; cells of all other columns look like anything.
    free : collection of str
        Names in lower case of columns whose texts may contain the separator and line breaks.
    lists : collection of str
        Names in lower case of columns with lists, which contain the separator if it is a comma.
    """

    read: Mapping[str, str] | None = None
    looks: Mapping[str, Look] = {}
    free: Collection[str] = ()
    lists: Collection[str] = ()


ANY = Columns()


def read_records(
    path: str | os.PathLike[str],
    form: Format,
    columns: Columns = ANY,
    fields: Sequence[str] | None = None,
    *,
    separator: str | None = None,
    comment: str | None = None,
) -> Table:
    """Return the table of a file, plain or compressed.

    Parameters
    ----------
    path : path
        Path of the file.
    form : Format
        Format of the file.
    columns : Columns
        Knowledge of its columns. Default: none.
    fields : sequence of str, optional
        Names of the columns of a file without a header; by default the first line has them.
    separator : str, optional
        Separator of the cells; by default it is detected.
    comment : str, optional
        Beginning of lines that are left out. Default: none.

    Raises
    ------
    WorkloadError
        The file cannot be read, is empty or binary, has no header, or a column name occurs twice in it.
    """
    text = read_text(path, form).replace("\r\n", "\n")
    start, number = _first_line(text)
    if comment is not None:
        number -= text.count("\n", 0, start)
        start = _without_comments(text, start, comment)
        number += text.count("\n", 0, start)
    line = text[start : _end_of_line(text, start)].strip()
    if fields is None:
        separator = separator or _separator(line, columns, path)
        names = [name.strip() for name in _quoted(line.lstrip("#"), separator) or line.split(separator)]
        begin = min(_end_of_line(text, start) + 1, len(text))
        number += 1
    else:
        names, begin = [name.strip() for name in fields], start
        separator = separator or _separator_of(line, len(names))
    refuse_beyond("cells", text.count(separator[0]), path)
    kept = _kept_names(names, columns, f"{path}:{number - (fields is None)}")
    splitter = _Splitter(names, kept, separator, columns, comment)
    splitter.split(text, begin, number)
    return splitter.table(str(path))


def _first_line(text: str) -> tuple[int, int]:
    """Return the position of the first line that is not blank, and its number."""
    start = len(text) - len(text.lstrip())
    start = text.rfind("\n", 0, start) + 1
    return start, text.count("\n", 0, start) + 1


def _without_comments(text: str, start: int, comment: str) -> int:
    """Return the position of the first line that is no comment."""
    while text.startswith(comment, start) and (end := _end_of_line(text, start)) < len(text):
        start = end + 1
    return start


def _end_of_line(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _separator(header: str, columns: Columns, path: str | os.PathLike[str]) -> str:
    """Return the separator of a header: that with the most known names, else that after its first word."""
    known = columns.read or {}

    def names(separator: str) -> int:
        cells = [cell.strip().strip("\"'#").strip().lower() for cell in header.split(separator)]
        return sum(cell in known for cell in cells) if known else len(cells) - 1

    best = max(SEPARATORS, key=names)
    found = re.search(r"[\w.)\]]+[\"']?([^\w\"'()\[\]]+)[\"']?(?:\w|$)", header)
    own = found[1] if found else "|"
    if own.strip(" ") and own not in SEPARATORS and names(own) > names(best):
        return own
    if names(best) or not found:
        return best
    if not own.strip(" "):
        raise WorkloadError(
            f"{path}:1: fields separated by | (sacct --parsable2) needed, found {shown(header)}"
        )
    return own


def _separator_of(line: str, width: int) -> str:
    """Return the separator that splits a line into so many cells, else into the most."""
    exact = (separator for separator in SEPARATORS if line.count(separator) + 1 == width)
    return next(exact, max(SEPARATORS, key=line.count))


def _kept_names(names: list[str], columns: Columns, place: str) -> list[str]:
    """Return the names of columns that are kept, as the format spells them, and empty ones for all others."""
    twice = next((name for number, name in enumerate(names) if name and name in names[:number]), None)
    kept = names if columns.read is None else [columns.read.get(name.lower(), "") for name in names]
    again = next((name for number, name in enumerate(kept) if name and name in kept[:number]), None)
    if again is not None or (columns.read is None and twice is not None):
        raise WorkloadError(f"{place}: each column needs a name of its own, found {shown(again or '')} twice")
    return kept


def _quoted(line: str, separator: str) -> list[str] | None:
    """Return the cells of a line with quotes; None if a quote is not closed, or text follows it."""
    if '"' not in line:
        return None
    if len(separator) == 1:
        try:
            return next(csv.reader([line], delimiter=separator, strict=True), [])
        except csv.Error:
            return None
    cells = line.split(separator)
    whole = all(not cell.startswith('"') or (len(cell) > 1 and cell.endswith('"')) for cell in cells)
    return [cell[1:-1] if cell.startswith('"') else cell for cell in cells] if whole else None


class _Numbers(dict[str, int]):
    """Numbers of distinct cells, in order of first appearance."""

    def __missing__(self, cell: str) -> int:
        number = self[cell] = len(self)
        return number


class _Column:
    """Cells of a column so far: numbers of distinct cells, or, if most are distinct, the cells themselves."""

    def __init__(self) -> None:
        self.numbers: _Numbers | None = _Numbers()
        self.codes = [np.zeros(0, dtype=np.int32)]
        self.cells: list[str] = []
        self.rows = 0

    def extend(self, cells: Sequence[str]) -> None:
        self.rows += len(cells)
        if self.numbers is None:
            self.cells.extend(cells)
            return
        self.codes.append(np.fromiter(map(self.numbers.__getitem__, cells), dtype=np.int32, count=len(cells)))
        if self.rows >= DISTINCT and 2 * len(self.numbers) > self.rows:
            self.cells, self.numbers = list(self._encoded(self.numbers)), None
            self.codes.clear()

    def _encoded(self, numbers: _Numbers) -> EncodedCells:
        return EncodedCells(list(numbers), np.concatenate(self.codes))

    def result(self) -> Cells:
        return self.cells if self.numbers is None else self._encoded(self.numbers)


class _Splitter:
    """Splitter of the lines of one file into the cells of its columns."""

    def __init__(
        self, names: list[str], kept: list[str], separator: str, columns: Columns, comment: str | None
    ) -> None:
        self.comment = comment
        self.names, self.separator, self.width = kept, separator, len(names)
        self.kept = [place for place, name in enumerate(kept) if name]
        self.unread = tuple(name for name, used in zip(names, kept, strict=True) if name and not used)
        spelled = [name.lower() for name in names]
        mergeable = {*columns.free, *(columns.lists if separator == "," else ())}
        looks = [columns.looks.get(name) for name in spelled]
        self.looks = [  # matching a pattern is as quick as keeping what it matches
            look if look is None or isinstance(look, BuiltinMethodType) else lru_cache(DISTINCT)(look)
            for look in looks
        ]
        self.merges = [name in mergeable for name in spelled]
        texts = [place for place, merges in enumerate(self.merges) if merges]
        self.first_text, self.behind_texts = (texts[0], texts[-1] + 1) if texts else (self.width, self.width)
        outside = [*range(self.first_text), *range(self.behind_texts, self.width)]
        self.outside = [place for place in outside if self.looks[place]]
        self.outside_looks = [look for place in self.outside if (look := self.looks[place])]
        self.columns = [_Column() for _ in self.kept]
        self.lines = array("q")
        self.malformed: list[tuple[int, str]] = []
        self.mended: list[int] = []
        self.started = False

    def split(self, text: str, begin: int, number: int) -> None:
        """Split a text from a position on, which is the beginning of a line of a number."""
        while begin < len(text):
            end = text.rfind("\n", begin, begin + BLOCK) + 1 or _end_of_line(text, begin) + 1
            block = text[begin:end].removesuffix("\n")
            if self._at_once(block, number):
                number += block.count("\n") + 1
                begin = end
                continue
            lines = block.split("\n")
            cells, numbers, used = self._one_by_one(lines, number, last=end >= len(text))
            self._add(cells, numbers)
            begin += sum(len(line) + 1 for line in lines[:used])  # a record may go on in the next block
            number += used

    def _at_once(self, block: str, number: int) -> bool:
        """Split the lines of a block if all have the right number of cells and no quotes; return whether."""
        separator, width = self.separator, self.width
        if width == 1 or len(separator) > 1 or not separator.isascii() or self._has_quotes(f"\n{block}"):
            return False
        if self.comment is not None and self.comment in block:
            return False
        letters = np.frombuffer(block.encode() + b"\n", dtype=np.uint8)
        ends = np.searchsorted(
            np.flatnonzero(letters == ord(separator)), np.flatnonzero(letters == ord("\n"))
        )
        if (np.diff(ends, prepend=0) != width - 1).any():
            return False
        self._add(block.replace("\n", separator).split(separator), range(number, number + len(ends)))
        return True

    def _has_quotes(self, text: str) -> bool:
        """Return whether a cell begins with a quote in a text of lines, each after a line break."""
        return '"' in text and ('\n"' in text or f'{self.separator}"' in text)

    def _add(self, cells: list[str], numbers: Sequence[int]) -> None:
        """Add records, given by the cells of all in a row, and the numbers of their first lines."""
        for column, place in zip(self.columns, self.kept, strict=True):
            column.extend(cells[place :: self.width])
        self.lines.extend(numbers)

    def _one_by_one(self, lines: list[str], number: int, last: bool) -> tuple[list[str], list[int], int]:
        """Return the cells of records, the numbers of their first lines, and how many lines are done."""
        cells: list[str] = []
        numbers: list[int] = []
        place = 0
        while place < len(lines):
            line, taken = lines[place], 1
            row = line.split(self.separator)
            found: list[str] | None = row
            if self._is_empty(line, row):
                place += 1
                continue
            if len(row) != self.width or self._has_quotes(f"\n{line}"):
                if not last and place and len(lines) - place < MOST_LINES:
                    break
                found, taken = self._record(lines, place)
                if found is not None and (taken > 1 or (len(row) > self.width and '"' not in line)):
                    self.mended.append(number + place)
            if found is None and self._goes_on(line):
                if cells:
                    cells[-1] += f"\n{line}"
                self.mended.append(numbers[-1] if numbers else self.lines[-1])
            elif found is None:
                count = len(line.split(self.separator))
                self.malformed.append((number + place, f"{count} cell{'s' * (count != 1)}"))
            else:
                cells.extend(found)
                numbers.append(number + place)
                self.started = True
            place += taken
        return cells, numbers, place

    def _is_empty(self, line: str, row: list[str]) -> bool:
        """Return whether a line is blank, has only blank cells, or is a comment."""
        if self.comment is not None and line.startswith(self.comment):
            return True
        return not row[0].strip() and not line.strip(f" \t\r{self.separator if self.width > 1 else ''}")

    def _goes_on(self, line: str) -> bool:
        """Return whether a line goes on with the text in the last cell of the record before."""
        look = self.looks[0]
        if not self.merges[-1] or look is None or not (len(self.lines) or self.started):
            return False
        return self.separator not in line and not look(line.strip())

    def _record(self, lines: list[str], place: int) -> tuple[list[str] | None, int]:
        """Return the cells of the record that begins at a line, and the number of its lines."""
        line = lines[place]
        if (found := self._of_line(line)) is not None:
            return found, 1
        joined = line
        is_open = _opens(line, self.separator)
        for more, further in enumerate(lines[place + 1 : place + MOST_LINES], start=2):
            if joined.count(self.separator) >= self.width + MOST_MORE or len(joined) > BLOCK:
                break
            if not is_open and (found := self._of_line(further)) is not None:
                break  # a record of its own
            joined = f"{joined}\n{further}"
            found = self._of_quotes(joined) if is_open else self._aligned(joined.split(self.separator))
            if found is not None:
                return found, more
        return None, 1

    def _of_line(self, line: str) -> list[str] | None:
        found = self._of_quotes(line)
        if found is not None:
            return found
        cells = line.split(self.separator)
        if len(cells) == self.width:
            return cells
        return self._aligned(cells)

    def _of_quotes(self, text: str) -> list[str] | None:
        cells = _quoted(text, self.separator)
        if cells is None or len(cells) == self.width:
            return cells
        return self._aligned(cells)

    def _aligned(self, cells: list[str]) -> list[str] | None:
        """Return the cells of a record that was split too often; None if there are several ways, or none."""
        if len(cells) == self.width + 1 and not cells[-1].strip():
            return cells[:-1]  # sacct --parsable under a header of --parsable2
        if not self.width < len(cells) <= self.width + MOST_MORE and (
            len(cells) != self.width or not any(self.looks)
        ):
            return None
        ways = self._ways(cells)
        if not ways and sum(self.merges) == 1 and len(cells) > self.width:
            place, more = self.merges.index(True), len(cells) - self.width
            text = self.separator.join(cells[place : place + more + 1])
            return [*cells[:place], text, *cells[place + more + 1 :]]
        return ways[0] if len(ways) == 1 else None

    def _ways(self, cells: list[str]) -> list[list[str]]:
        """Return up to two ways, which differ in what is read, to put cells together.

        Cells before the first column of texts and behind the last one have only one place.
        """
        first, end = self.first_text, len(cells) - (self.width - self.behind_texts)
        if end <= first:
            return []
        outside = [*cells[:first], *[""] * (self.behind_texts - first), *cells[end:]]
        stripped = (outside[place].strip() for place in self.outside)
        if not all(map(call, self.outside_looks, stripped)):
            return []
        known: dict[tuple[int, int], list[tuple[str, ...]]] = {}
        ways = self._ways_between(first, self.behind_texts, cells[first:end], known)
        return [[*cells[:first], *way, *cells[end:]] for way in ways]

    def _ways_between(
        self, place: int, last: int, cells: list[str], known: dict[tuple[int, int], list[tuple[str, ...]]]
    ) -> list[tuple[str, ...]]:
        """Return up to two ways to put cells together from a column on and before another one."""
        left = last - place
        if not left:
            return [()] if not cells else []
        if (key := (place, len(cells))) in known:
            return known[key]
        most = len(cells) - left + 1 if self.merges[place] else 1
        least = most if left == 1 else 1
        look, ways = self.looks[place], list[tuple[str, ...]]()
        for count in range(least, most + 1) if most > 0 else ():
            cell = self.separator.join(cells[:count])
            if look is not None and not look(cell.strip()):
                continue
            for rest in self._ways_between(place + 1, last, cells[count:], known):
                way = (cell, *rest)
                if not ways or self._differ(place, ways[0], way):
                    ways.append(way)
            if len(ways) > 1:
                break
        known[key] = ways[:2]
        return known[key]

    def _differ(self, place: int, one: tuple[str, ...], other: tuple[str, ...]) -> bool:
        """Return whether two ways from a column on differ in what is read."""
        pairs = enumerate(zip(one, other, strict=True), start=place)
        return any(first != second and self.names[column] for column, (first, second) in pairs)

    def table(self, path: str) -> Table:
        """Return the table of all lines so far."""
        cells = {
            self.names[place]: column.result() for place, column in zip(self.kept, self.columns, strict=True)
        }
        return Table(
            path,
            cells,
            np.array(self.lines, dtype=np.int64),
            self.width,
            self.malformed,
            mended=self.mended,
            unread=self.unread,
        )


def _opens(line: str, separator: str) -> bool:
    """Return whether a quoted cell begins in a line and does not end there."""
    last = line.rfind(f'{separator}"')
    start = last + len(separator) if last >= 0 else (0 if line.startswith('"') else -1)
    return start >= 0 and line.count('"', start) % 2 == 1
