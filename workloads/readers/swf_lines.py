"""Parser for the lines of an SWF file: plain lines in bulk with numpy, all others one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.io.files import BYTE_ORDER_MARK

__all__ = ["FIELD_COUNT", "Lines", "parse_lines"]

FIELD_COUNT = 18
"""Number of fields of a job line in the Standard Workload Format; further fields are ignored."""

BLOCK_SIZE = 1 << 18
"""Bytes parsed together: large enough for numpy, small enough for the processor's cache."""

NAMED = range(11, 16)
"""Positions of the fields that may hold names: user, group, executable, queue, partition."""

NUMBER = re.compile(rb"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
GROUPED = re.compile(rb"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
"""Numbers with separators of thousands."""

SEPARATORS = (b"\t", b";", b"|", b",")
"""Separators of fields other than blanks."""

GAP, DIGIT, MINUS, POINT, OTHER = range(5)
INSIDE, STARTS, WRONG = range(3)


@dataclass
class Lines:
    """Parsed lines of a log, before any rule is applied.

    Parameters
    ----------
    fields : array of float64, shape (18, jobs)
        The numbers of the job lines, one row per field (field 1 is row 0).
    line : array of int64, shape (jobs,)
        Line number of each job in the file, from 1.
    longer : int
        Number of job lines with more than 18 fields.
    comments : list of (int, bytes)
        Line number and text of each line that starts with ``;``.
    malformed : list of (int, str)
        Line number of each other line, and a description of the text found.
    names : dict of int to dict of int to str
        Names in the fields `NAMED`, by position of the field and line number; the number is then -1.
    """

    fields: NDArray[np.float64]
    line: NDArray[np.int64]
    longer: int = 0
    comments: list[tuple[int, bytes]] = field(default_factory=list)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    names: dict[int, dict[int, str]] = field(default_factory=dict)


def parse_lines(content: bytes) -> Lines:
    """Return the numbers and comments of an SWF text.

    A line may end in LF or CR-LF and may contain tabs, trailing blanks, fractions, separators of thousands,
    names in the fields `NAMED`, words for an unknown value (``-``, ``NaN``, ``N/A``), and more than 18
    fields, which are not read. Fields may be separated by tabs, semicolons, bars or commas. A line of words
    only is a comment. A line with fewer than 18 fields, or with any other word that is not a finite decimal
    number, is malformed.

    >>> lines = parse_lines(b"; MaxProcs: 4\\n" + b"1 " * 18 + b"\\n1 2 x\\n")
    >>> lines.fields.shape, lines.line.tolist(), lines.malformed
    ((18, 1), [2], [(3, "'x'")])
    """
    content = content.removeprefix(BYTE_ORDER_MARK)
    if b"\n" not in content:
        content = content.replace(b"\r", b"\n")
    capacity = content.count(b"\n") + 1
    lines = Lines(np.empty((FIELD_COUNT, capacity)), np.empty(capacity, dtype=np.int64))
    jobs = 0
    first_line = 1
    for block in _blocks(content):
        jobs = _parse_block(block, first_line, lines, jobs)
        first_line += block.count(b"\n")
    lines.fields = lines.fields[:, :jobs]
    lines.line = lines.line[:jobs]
    return lines


def _blocks(content: bytes) -> Iterator[bytes]:
    """Yield blocks of complete lines, each ending in a newline."""
    start = 0
    while start < len(content):
        end = content.rfind(b"\n", start, start + BLOCK_SIZE) + 1 or content.find(b"\n", start) + 1
        if not end:
            yield content[start:] + b"\n"
            return
        yield content[start:end]
        start = end


def _parse_block(block: bytes, first_line: int, lines: Lines, jobs: int) -> int:
    """Append the lines of a block to `lines`, which holds `jobs` jobs; return the new number of jobs."""
    ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n"))
    starts, odd = _tokens(block, ends)
    first_token = np.searchsorted(starts, np.concatenate(([0], ends)))
    counts = np.diff(first_token)
    odd |= (counts > 0) & (counts < FIELD_COUNT)
    rows: dict[int, list[float]] = {}
    text = bytearray(block)
    for index in np.flatnonzero(odd).tolist():
        begin, end = (int(ends[index - 1]) + 1 if index else 0), int(ends[index])
        row = _parse_line(bytes(text[begin:end]), first_line + index, lines)
        if row is not None:
            rows[index] = row
        text[begin:end] = b" " * (end - begin)  # keep only lines that can be parsed in bulk
    counts[odd] = 0
    jobs = _fill(bytes(text), counts, first_line, lines, jobs)
    return _insert(rows, first_line, lines, jobs)


def _tokens(block: bytes, ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the start of each number, and a mask of lines with anything but plain decimal numbers."""
    kinds = np.frombuffer(b"\n".translate(KINDS) + block.translate(KINDS), dtype=np.uint8)
    pairs = kinds[:-1] * np.uint8(5) + kinds[1:]
    marks = np.frombuffer(pairs.tobytes().translate(PAIRS), dtype=np.uint8)
    starts = np.flatnonzero(marks == STARTS)
    wrong = np.flatnonzero(marks == WRONG)
    points = np.flatnonzero(kinds[1:] == POINT)
    owner = np.searchsorted(starts, points)
    twice = points[1:][owner[1:] == owner[:-1]]  # 1.2.3: two points in one number
    odd = np.zeros(len(ends), dtype=bool)
    odd[np.searchsorted(ends, np.concatenate((wrong, twice)))] = True
    return starts, odd


def _fill(text: bytes, counts: NDArray[np.int64], first_line: int, lines: Lines, jobs: int) -> int:
    """Parse all numbers of a text at once; `counts` holds the number of fields of each line."""
    index = np.flatnonzero(counts)
    if not len(index):
        return jobs
    values = np.fromstring(text, dtype=np.float64 if b"." in text else np.int64, sep=" ")
    counts = counts[index]
    first = np.cumsum(counts) - counts
    if len(values) != first[-1] + counts[-1]:  # unreachable after the checks above
        raise AssertionError(f"{len(values)} numbers read, {first[-1] + counts[-1]} seen")
    end = jobs + len(index)
    for number in range(FIELD_COUNT):
        lines.fields[number, jobs:end] = values[first + number]
    lines.line[jobs:end] = first_line + index
    lines.longer += int(np.count_nonzero(counts > FIELD_COUNT))
    return end


def _insert(rows: dict[int, list[float]], first_line: int, lines: Lines, jobs: int) -> int:
    """Insert lines that were parsed one by one at their positions in the block."""
    if not rows:
        return jobs
    end = jobs + len(rows)
    lines.fields[:, jobs:end] = np.array([row[:FIELD_COUNT] for row in rows.values()]).T
    lines.line[jobs:end] = [first_line + index for index in rows]
    begin = int(np.searchsorted(lines.line[:jobs], first_line))
    order = begin + np.argsort(lines.line[begin:end], kind="stable")
    lines.fields[:, begin:end] = lines.fields[:, order]
    lines.line[begin:end] = lines.line[order]
    return end


def _parse_line(text: bytes, number: int, lines: Lines) -> list[float] | None:
    """Return the numbers of one line, or record it as a comment or as malformed and return None."""
    text = text.strip()
    if not text:
        return None
    if text.startswith((b";", b"#")):
        lines.comments.append((number, text))
        return None
    words = _numbered(_words(text))
    values: list[float] = []
    names: dict[int, str] = {}
    for place, word in enumerate(words[:FIELD_COUNT]):
        if NUMBER.fullmatch(word):
            values.append(float(word))
        elif GROUPED.fullmatch(word):
            values.append(float(word.replace(b",", b"")))
        elif place in NAMED and len(words) >= FIELD_COUNT:
            values.append(-1.0)
            names[place] = _text(word)
        elif not place and len(words) >= FIELD_COUNT and all(word[:1].isalpha() for word in words[:5]):
            lines.comments.append((number, b"; " + text))  # a header row
            return None
        else:
            found = word.decode("ascii", "backslashreplace")
            lines.malformed.append((number, repr(found if len(found) <= 30 else found[:27] + "...")))
            return None
    if len(words) < FIELD_COUNT:
        lines.malformed.append((number, f"{len(words)} fields"))
        return None
    for place, name in names.items():
        lines.names.setdefault(place, {})[number] = name
    lines.longer += len(words) > FIELD_COUNT
    return values


def _numbered(words: list[bytes]) -> list[bytes]:
    """Return words with -1 for those that stand for an unknown value."""
    return [b"-1" if word.lower() in UNKNOWN_WORDS else word for word in words]


def _words(text: bytes) -> list[bytes]:
    """Return the fields of a line: words, or cells between separators; a comment behind them is left out."""
    before, comment, _ = text.partition(b";")
    words = before.split()
    if comment and len(words) >= FIELD_COUNT:
        return words
    words = text.split()
    if len(words) >= FIELD_COUNT and not any(word.endswith(SEPARATORS) for word in words[:5]):
        return words
    for separator in SEPARATORS:
        cells = [cell.strip().strip(b'"').strip() for cell in text.split(separator)]
        if len(cells) >= FIELD_COUNT:
            return [cell or b"-1" for cell in cells]
    return words


UNKNOWN_WORDS = (b"-", b"nan", b"na", b"n/a", b"null", b"none")
"""Words in lower case that stand for an unknown value."""


def _text(word: bytes) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return word.decode("latin-1")


def _kinds() -> bytes:
    table = bytearray([OTHER]) * 256
    for characters, kind in ((b" \t\r\n\v\f", GAP), (b"0123456789", DIGIT), (b"-", MINUS), (b".", POINT)):
        for character in characters:
            table[character] = kind
    return bytes(table)


def _pairs() -> bytes:
    """Return the class of each pair of bytes; only numbers such as -12 and 1.5 are plain."""
    table = bytearray([WRONG]) * 256
    table[GAP * 5 + GAP] = table[DIGIT * 5 + GAP] = table[DIGIT * 5 + DIGIT] = INSIDE
    table[MINUS * 5 + DIGIT] = table[DIGIT * 5 + POINT] = table[POINT * 5 + DIGIT] = INSIDE
    table[GAP * 5 + DIGIT] = table[GAP * 5 + MINUS] = STARTS
    return bytes(table)


KINDS, PAIRS = _kinds(), _pairs()
