"""Markdown of generated pages: tables, code, text of docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from typing import Any


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell(text) for text in line) + " |" for line in lines) + "\n"


def cell(text: str) -> str:
    """Return text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def code(text: str) -> str:
    """Return text as inline code."""
    return f"`{text}`" if text else ""


def plain(text: str) -> str:
    """Return text in which ``<name>`` is not taken for a tag."""
    return text.replace("<", "\\<")


def summary(thing: object) -> str:
    """Return the first paragraph of a docstring as plain text."""
    return without_roles((inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " "))


def without_roles(text: str) -> str:
    """Return a docstring's text in Markdown.

    >>> without_roles("see :class:`~a.b.F1` and ``x``")
    'see `F1` and `x`'
    """
    return re.sub(r":\w+:`(?:~[\w.]*\.)?([^`]*)`", r"`\1`", text).replace("``", "`")


def parameters_in(thing: Any) -> dict[str, str]:
    """Return the descriptions of parameters in docstrings, by name, including those of base classes."""
    found: dict[str, str] = {}
    for each in reversed(inspect.getmro(thing)):
        text = inspect.cleandoc(vars(each).get("__doc__") or "")
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[\w ]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
        for names, words in re.findall(
            r"^(\w[^\n]*)\n((?: +[^\n]*\n?|\n)*)", section[1] if section else "", re.MULTILINE
        ):
            for name in names.partition(":")[0].split(","):
                found[name.strip()] = without_roles(" ".join(words.split()))
    return found
