"""The language of the kit, measured: descriptions of parameters, and words that the field does not use.

``python -m tests.language [FOLDER ...]`` lists the offending descriptions and the rates of each folder.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("hpcsimkit", "policies", "agents", "workloads")

FIRST = re.compile(r"^(What|Whatever|Of|How|Where|Which|Who|Whose|Whom|That|When|Why)\b")
"""Beginnings that no description of a parameter may have."""

RATES = {
    "what": re.compile(r"\bwhat(ever)?\b", re.IGNORECASE),
    "who": re.compile(r"\bwho(se|m|ever)?\b", re.IGNORECASE),
    "somebody": re.compile(r"\b(somebody|nobody|everybody|anybody)\b", re.IGNORECASE),
}
SECTIONS = ("Parameters", "Attributes")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")


class Described(NamedTuple):
    """A parameter and its description."""

    where: str
    name: str
    text: str


def sources(*folders: str) -> Iterator[Path]:
    """Yield the Python files of the product below some folders."""
    for folder in folders or FOLDERS:
        path = ROOT / folder
        yield from (
            [path]
            if path.is_file()
            else (
                each for each in sorted(path.rglob("*.py")) if not any(p.is_symlink() for p in each.parents)
            )
        )


def templates() -> list[Path]:
    """Return the templates of reports."""
    return sorted((ROOT / "hpcsimkit").rglob("*.md.jinja"))


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def docstrings(path: Path) -> list[tuple[int, str]]:
    """Return line and text of all docstrings of a file, those of attributes included."""
    return list(_docstrings(path))


def _docstrings(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree(path)):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            value = getattr(statement, "value", None)
            if (
                isinstance(statement, ast.Expr)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                yield statement.lineno, value.value


def described(path: Path) -> Iterator[Described]:
    """Yield the parameters and attributes that the docstrings of a file describe."""
    for line, text in docstrings(path):
        rows = text.split("\n")
        inside, indent = False, 0
        for number, row in enumerate(rows):
            word, depth = row.strip(), len(row) - len(row.lstrip())
            under = rows[number + 1].strip() if number + 1 < len(rows) else ""
            if under and set(under) == {"-"}:
                inside, indent = word in SECTIONS, depth
            elif inside and word and depth == indent and set(word) != {"-"}:
                name = word.split(":")[0].strip()
                first = rows[number + 1].strip() if number + 1 < len(rows) else ""
                yield Described(f"{path.relative_to(ROOT)}:{line + number}", name, first)


def prose(path: Path) -> str:
    """Return the words of a file: its docstrings, or its Markdown without code and expressions."""
    if path.suffix == ".jinja":
        return re.sub(
            r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
    if path.suffix == ".md":
        return re.sub(r"```.*?```|`[^`]*`", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    plain = [
        re.sub(r"``[^`]*``|`[^`]*`|^\s*(>>>|\.\.\.).*$", " ", text, flags=re.MULTILINE)
        for _, text in docstrings(path)
    ]
    return "\n".join(plain)


@cache
def constants(path: Path) -> str:
    """Return all string constants of a Python file: docstrings, messages and help texts, joined if split."""
    return "\n".join(
        node.value
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def text_of(path: Path) -> str:
    """Return all words of a file that a reader may meet."""
    if path.suffix == ".py":
        return re.sub(r"``[^`]*``|`[^`]*`|^\s*(>>>|\.\.\.).*$", " ", constants(path), flags=re.MULTILINE)
    return prose(path)


def rates(paths: list[Path]) -> dict[str, float]:
    """Return how often each group of words stands in 1 000 words."""
    text = "\n".join(map(prose, paths))
    words = max(len(WORD.findall(text)), 1)
    return {name: 1000 * len(pattern.findall(text)) / words for name, pattern in RATES.items()}


def main(folders: list[str]) -> None:
    """Print the offending descriptions, and the rates of each file that has any."""
    for folder in folders or FOLDERS:
        paths = (
            list(sources(folder))
            if not folder.endswith(".md") and not folder.startswith("docs")
            else sorted((ROOT / folder).rglob("*.md"))
            if (ROOT / folder).is_dir()
            else [ROOT / folder]
        )
        for path in paths:
            if path.suffix == ".py":
                for each in described(path):
                    if FIRST.match(each.text):
                        print(f"{each.where}: {each.name}: {each.text}")
            for row in prose(path).split("\n"):
                for name, pattern in RATES.items():
                    if pattern.search(row):
                        print(f"{path.relative_to(ROOT)}: {name}: {row.strip()}")
        print(folder, {name: round(rate, 2) for name, rate in rates(paths).items()})


if __name__ == "__main__":
    main(sys.argv[1:])
