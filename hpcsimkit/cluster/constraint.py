"""Constraints: the features that a job requires of its machines."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["SIGNS", "satisfied"]

SIGNS = frozenset("&|()[]")
"""Signs of a constraint, which no feature contains."""

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
