"""Names of nodes as Slurm abbreviates them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

__all__ = ["hostlist_of"]

NUMBERED = re.compile(r"(.*?)(\d{1,18})")


def hostlist_of(names: Iterable[str]) -> str:
    """Return the names of nodes, sorted, with ranges of numbers in brackets.

    >>> hostlist_of(["n3", "n1", "n2", "big", "n10", "f07"])
    'big,f07,n[1-3,10]'
    """
    return ",".join(_lists(names))


def _lists(names: Iterable[str]) -> Iterator[str]:
    """Yield a list for each beginning of names."""
    split = sorted(_split(name) for name in names)
    for prefix, group in groupby(split, key=lambda each: each[0]):
        numbers = [number for _, _, number in group]
        text = ",".join(_ranges(numbers))
        yield f"{prefix}[{text}]" if len(numbers) > 1 else f"{prefix}{text}"


def _split(name: str) -> tuple[str, int, str]:
    """Return the beginning of a name, its number and the digits of that; -1 and none without."""
    match = NUMBERED.fullmatch(name)
    return (name, -1, "") if match is None else (match[1], int(match[2]), match[2])


def _ranges(numbers: list[str]) -> Iterator[str]:
    """Yield ranges of sorted numbers with equally many digits or no leading zeros."""
    first = 0
    for place, number in enumerate(numbers):
        following = numbers[place + 1] if place + 1 < len(numbers) else ""
        if not following or str(int(number) + 1).zfill(len(number)) != following:
            yield number if place == first else f"{numbers[first]}-{number}"
            first = place + 1
