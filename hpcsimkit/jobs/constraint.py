"""Constraints: the features that a job requires of its machines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from hpcsimkit.errors import UsageError

__all__ = ["MOST_COUNTS", "SIGNS", "bare", "counted", "satisfied"]

SIGNS = frozenset("&|()[]*")
"""Signs of a constraint, which no feature contains."""

MOST_COUNTS = 8
"""Largest number of counts in a constraint, all subsets of which are examined."""

COUNT = re.compile(r"([^*]+)\*([1-9]\d{0,8})")
INNER = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
TRUE, FALSE = "\x01", "\x00"
"""Words that stand for the values of expressions in brackets; no feature contains them."""


def satisfied(constraint: str, features: Collection[str]) -> bool:
    """Return whether a machine with some features satisfies a constraint.

    A constraint is a list of words joined by ``&`` (all of them) and ``|`` (any of them), of which ``&``
    binds more strongly, with parentheses or square brackets; an empty one is always satisfied.

    >>> [satisfied("ib&(a100|v100)", features) for features in (["ib", "v100"], ["ib"], ["a100"])]
    [True, False, False]
    """
    known = {*features, TRUE}

    def value(text: str) -> bool:
        return any(
            all(word.strip() in known for word in each.split("&") if word.strip()) for each in text.split("|")
        )

    text, found = constraint, 1
    while found:
        text, found = INNER.subn(lambda inner: TRUE if value(inner[1]) else FALSE, text)
    return value(text)


def counted(constraint: str) -> tuple[str, list[tuple[str, int]]]:
    """Return the part of a constraint for all nodes of a job, and its counts: conditions and numbers.

    Raises
    ------
    UsageError
        There is a count that is not joined to all else by ``&``, or there are more than `MOST_COUNTS`.

    Examples
    --------
    >>> counted("ib&(a|b)"), counted("[ib&(a|b)*2&c*1]")
    (('ib&(a|b)', []), ('ib', [('(a|b)', 2), ('c', 1)]))
    """
    if "*" not in constraint:
        return constraint, []
    everywhere, counts = list[str](), list[tuple[str, int]]()
    for sign, term in _terms(bare(bare(constraint.strip(), "[]"))):
        found = COUNT.fullmatch(term)
        if sign == "|" or (found is None and "*" in term):
            raise UsageError(f"counts joined by & needed, such as a*2&b*4, found {constraint!r}")
        if found is None:
            everywhere.append(term)
        else:
            counts.append((found[1], int(found[2])))
    if len(counts) > MOST_COUNTS:
        raise UsageError(f"at most {MOST_COUNTS} counts needed, found {len(counts)} in {constraint!r}")
    return "&".join(everywhere), counts


def _terms(text: str) -> Iterator[tuple[str, str]]:
    """Yield the terms outside all brackets, each with the sign that follows it; none follows the last.

    >>> list(_terms("a*2 & (b|c)|d"))
    [('&', 'a*2'), ('|', '(b|c)'), ('', 'd')]
    """
    depth = begin = 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if not depth and sign in "&|":
            yield sign, text[begin:place].strip()
            begin = place + 1
    yield "", text[begin:].strip()


def bare(text: str, brackets: str = "()") -> str:
    """Return a text without the brackets around all of it, if any.

    >>> bare("(a|b)"), bare("(a|b)&(c|d)"), bare("[a]", "[]")
    ('a|b', '(a|b)&(c|d)', 'a')
    """
    depth = 0
    for place, sign in enumerate(text, 1):
        depth += (sign == brackets[0]) - (sign == brackets[1])
        if not depth:
            return text[1:-1] if 1 < place == len(text) else text
    return text
