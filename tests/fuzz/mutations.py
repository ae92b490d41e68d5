"""Mutations of files and command lines: bytes without any sense of what they mean, and values with some."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Rng = np.random.Generator
Mutation = Callable[[bytes, Rng], bytes]

LONGEST = 400_000
"""Bytes that a mutated file has at most: the limits of reading are set below that."""

NUMBERS = (
    "0", "-1", "1", "-0", "+5", "1.5", "-1e-9", "1e5", "1e400", "nan", "NaN", "inf", "-inf", "Infinity", "2147483648",
    "4294967296", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551616", "100000000001",
    "1" + "0" * 30, "9" * 400, "9" * 5000, "1_000", "0x10", "0b1", "٣", "1e", ".", "-", "1.2.3", "1,5", "1" + ",000" * 1500, "²", "--5", "12:99:00", "1-00:00:00",
)  # fmt: skip
WORDS = (
    "", " ", "\ufeff", "\x1b[31m", "\x1b]0;title\x07", "\u202e", "\u2028", "\x85", "é", "\U0001d7d9", "x" * 300, "x" * 10_000, "a b", "a\tb",
    "'", '"', '"""', "\\", "[", "]", "{", "}", "[[machines]]", "[generate]", "=", "==", ",", "|", ";", ":", "#", "&", "//", "%s", "{0}",
    "true", "false", "null", "None", "[]", "{}", "../..", "/", "/dev/zero", ".", "~", "fcfs", "nosuch", "easy-k(0)", "easy-k(99999999999)",
    "os:system('true')", "builtins:eval", "no_file.py:X", "Unknown", "UNLIMITED", "mem=0", "cpu=-1", "128 GB", "1e9 XB", "GB", "\r", "\0",
    "[" * 60, "[" * 3000, "a." * 60, "a." * 3000, "(" * 200, "((((1,),),),)", "fcfs+" * 200 + "easy", "sjf+easy+easy",
)  # fmt: skip
CONTROLS = b"\0\x01\x07\x08\t\r\n\x0b\x0c\x1b\x7f\x85\x9b\xa0\xad\xff\xfe\xef\xbb\xbf"


def _span(length: int, rng: Rng, most: int = 400) -> tuple[int, int]:
    start = int(rng.integers(0, length + 1))
    return start, min(length, start + int(rng.integers(0, most + 1)))


def flip(data: bytes, rng: Rng) -> bytes:
    """Flip bits."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 9)) if changed else 0):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    """Leave a range out, or the rest."""
    start, end = _span(len(data), rng)
    return data[:start] + (data[end:] if rng.random() < 0.7 else b"")


def splice(data: bytes, rng: Rng) -> bytes:
    """Copy a range somewhere else."""
    start, end = _span(len(data), rng)
    at = int(rng.integers(0, len(data) + 1))
    return data[:at] + data[start:end] + data[at:]


def repeat(data: bytes, rng: Rng) -> bytes:
    """Repeat a range."""
    start, end = _span(len(data), rng, 60)
    return data[:end] + data[start:end] * int(rng.integers(1, 300)) + data[end:]


def control(data: bytes, rng: Rng) -> bytes:
    """Insert control characters."""
    at = int(rng.integers(0, len(data) + 1))
    inserted = bytes(CONTROLS[int(rng.integers(len(CONTROLS)))] for _ in range(int(rng.integers(1, 5))))
    return data[:at] + inserted + data[at:]


def number(data: bytes, rng: Rng) -> bytes:
    """Put another number in the place of one."""
    return _replaced(data, rng, rb"-?[0-9][0-9.]*", NUMBERS)


def word(data: bytes, rng: Rng) -> bytes:
    """Put another word in the place of a word, a number or a cell."""
    return _replaced(data, rng, rb"[\w.+-]+|\"[^\"\n]*\"|[^,|\n]+", WORDS if rng.random() < 0.7 else NUMBERS)


def insert(data: bytes, rng: Rng) -> bytes:
    """Insert a word anywhere."""
    at = int(rng.integers(0, len(data) + 1))
    return data[:at] + _text(WORDS, rng) + data[at:]


def line(data: bytes, rng: Rng) -> bytes:
    """Leave a line out, double it, swap two, or blank one."""
    lines = data.split(b"\n")
    one, other = rng.integers(len(lines), size=2).tolist()
    way = int(rng.integers(4))
    if way == 0:
        del lines[one]
    elif way == 1:
        lines.insert(other, lines[one])
    elif way == 2:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = b""
    return b"\n".join(lines)


def encoding(data: bytes, rng: Rng) -> bytes:
    """Write it as other programs do: byte-order marks, line ends, UTF-16; or leave nothing but those."""
    ways: tuple[bytes, ...] = (
        b"\xef\xbb\xbf" + data, b"\xef\xbb\xbf", b"", b"\n", data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"),
        data.replace(b"\n", b"\n\n"), data.decode("latin-1").encode("utf-16"), b"\xff\xfe", data.replace(b",", b";"),
        data.split(b"\n", 1)[0], data.rstrip(b"\n"), data.replace(b" ", b"\t"), data.upper(), data * 3,
    )  # fmt: skip
    return ways[int(rng.integers(len(ways)))]


def compress(data: bytes, rng: Rng) -> bytes:
    """Compress it once more, or twice, or let it swell."""
    way = int(rng.integers(4))
    if way == 0:
        return gzip.compress(data, 1, mtime=0)
    if way == 1:
        return gzip.compress(gzip.compress(data, 1, mtime=0), 1, mtime=0)
    return gzip.compress(
        data + bytes([int(rng.integers(256))]) * 3_000_000 + (b"\n" if way == 2 else b""), 1, mtime=0
    )


def _replaced(data: bytes, rng: Rng, pattern: bytes, texts: Sequence[str]) -> bytes:
    found = list(re.finditer(pattern, data))
    if not found:
        return data
    place = found[int(rng.integers(len(found)))]
    return data[: place.start()] + _text(texts, rng) + data[place.end() :]


def _text(texts: Sequence[str], rng: Rng) -> bytes:
    return texts[int(rng.integers(len(texts)))].encode("utf-8", "surrogatepass")


BLIND: tuple[Mutation, ...] = (flip, cut, splice, repeat, control, encoding, compress)
SEEING: tuple[Mutation, ...] = (number, number, word, word, insert, line)


def mutated(data: bytes, rng: Rng, *, text: bool) -> bytes:
    """Return a file after one to four mutations; those that see words are for text."""
    if data.startswith(b"\x1f\x8b") and rng.random() < 0.8:
        return gzip.compress(mutated(gzip.decompress(data), rng, text=True), 1, mtime=0)
    for _ in range(1 + int(rng.integers(4))):
        choice = SEEING if text and rng.random() < 0.7 else BLIND
        data = choice[int(rng.integers(len(choice)))](data, rng)[:LONGEST]
    return data


def mutated_json(value: Any, rng: Rng) -> Any:
    """Return a JSON value in which one part is another: of another type, missing, nested or huge."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        key = list(value)[int(rng.integers(len(value)))]
        changed = dict(value)
        if rng.random() < 0.1:
            del changed[key]
        else:
            changed[key] = mutated_json(value[key], rng)
        return changed
    if isinstance(value, list) and value and rng.random() < 0.7:
        position = int(rng.integers(len(value)))
        return [*value[:position], mutated_json(value[position], rng), *value[position + 1 :]]
    others: tuple[Any, ...] = (
        None, True, -1, 0, 1, 10**9, 2**63, 10**400, 1.5, 1e308, float("nan"), float("inf"), "", "x", "x" * 3000, "os:system", "\x1b[2J",
        [], {}, [[]], [0], ["x"], {"": {}}, {"policy": "fcfs"}, json.loads("[" * 90 + "]" * 90),
    )  # fmt: skip
    return others[int(rng.integers(len(others)))]


def mutated_arguments(arguments: Sequence[str], rng: Rng) -> list[str]:
    """Return a command line in which some words are other words, missing, doubled or in another place."""
    changed = list(arguments)
    for _ in range(1 + int(rng.integers(3))):
        at = int(rng.integers(len(changed))) if changed else 0
        way = int(rng.integers(6))
        if way <= 2 and changed:
            changed[at] = str((WORDS + NUMBERS)[int(rng.integers(len(WORDS) + len(NUMBERS)))])
        elif way == 3 and changed:
            del changed[at]
        elif way == 4 and changed:
            changed[at:at] = changed[at : at + 2]
        else:
            changed.insert(
                at,
                ("--help", "--nosuch", "-q", "--seed", "--", "-p", "--limit", "--out")[int(rng.integers(8))],
            )
    return _quick([word.replace("\0", "") for word in changed])


def _quick(arguments: list[str]) -> list[str]:
    """Return a command line that does not take long if it is accepted: few jobs, no pictures."""
    command = arguments[0] if arguments and not arguments[0].startswith("-") else "compare"
    bounds = {"compare": (("--jobs", "9"), ("--no-report",)), "describe": (("--no-picture",),)}
    wanted = (words for words in bounds.get(command, ()) if words[0] not in arguments)
    return [*arguments, *(word for words in wanted for word in words)]
