"""Defaults as docstrings state them, and as signatures have them: a number that is changed in one is noticed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.language import ROOT, sources, tree

STATED = re.compile(r"\bDefault: (``[^`]+``|-?[\d_ ]*\d(?:\.\d+)?(?:e-?\d+)?|True|False)(?=[.,;])")
"""A default that is a number, a truth value or a text."""

ENTRY = re.compile(r"^(\w[\w, *]*) : ")


class Default(NamedTuple):
    """Default of a parameter in the docstring and in the signature."""

    where: str
    stated: Any
    found: Any


def stated_in(docstring: str) -> Iterator[tuple[str, Any]]:
    """Yield the parameters with one stated default, and the default."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", docstring, re.MULTILINE | re.DOTALL)
    entries = re.split(r"^(?=\w)", section[1], flags=re.MULTILINE) if section else []
    for entry in entries:
        names, stated = ENTRY.match(entry), STATED.findall(entry)
        if names and len(stated) == 1:
            try:
                value = ast.literal_eval(re.sub(r"(?<=\d) (?=\d)", "", stated[0].strip("`")))
            except (SyntaxError, ValueError):
                continue
            yield from ((name.strip(" *"), value) for name in names[1].split(","))


def found_in(node: ast.ClassDef | ast.FunctionDef) -> Mapping[str, Any]:
    """Return the defaults of a function, of a constructor, or of the fields of a class."""
    if isinstance(node, ast.FunctionDef):
        about = node.args
        of_places = zip(reversed([*about.posonlyargs, *about.args]), reversed(about.defaults), strict=False)
        given = [*of_places, *zip(about.kwonlyargs, about.kw_defaults, strict=True)]
        return {argument.arg: literal(value) for argument, value in given if value is not None}
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return found_in(each)
    return {
        each.target.id: literal(each.value)
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None
    }


def literal(node: ast.expr) -> Any:
    """Return the value of an expression of numbers; None for others."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Field", "field") and node.args:
        return literal(node.args[0])
    try:
        return ast.literal_eval(node)
    except ValueError:
        pass
    text = ast.unparse(node)
    return eval(text, {"__builtins__": {}}) if re.fullmatch(r"[\d_ .*+()/-]+", text) else None


def defaults(path: Path) -> Iterator[Default]:
    """Yield the defaults of a file that both the docstring and the signature have."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found = found_in(node)
            for name, stated in stated_in(ast.get_docstring(node) or ""):
                if found.get(name) is not None:
                    yield Default(
                        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}.{name}", stated, found[name]
                    )


def test_docstrings_state_the_defaults_of_signatures() -> None:
    both = [each for path in sources() for each in defaults(path)]
    assert len(both) > 150, "the defaults of docstrings are no longer found"
    wrong = [f"{where}: {found!r}, stated {stated!r}" for where, stated, found in both if stated != found]
    assert not wrong, "\n".join(wrong)


def test_each_form_is_found(tmp_path: Path) -> None:
    lines = (
        "Parameters\n----------\na, b : int\n    One [s].\n    Default: 3.\nc : str\n    Two. Default: ``'x'``.\n"
        "d : float\n    Default: 1 000.\ne : float\n    Default: 0.5, or 0.2.\nf : str\n    Default: a week.\n\nRaises\n------\n"
    )
    assert list(stated_in(lines)) == [("a", 3), ("b", 3), ("c", "x"), ("d", 1000), ("e", 0.5)]
    code = 'def g(a, b=3, *, c="x", d=10 * 100, e=f(), h): pass\nclass C:\n    n: int = Field(4, ge=1)\n    m: int\n'
    function, cls = ast.parse(code).body
    assert isinstance(function, ast.FunctionDef) and isinstance(cls, ast.ClassDef)
    assert found_in(function) == {"b": 3, "c": "x", "d": 1000, "e": None}
    assert found_in(cls) == {"n": 4}
