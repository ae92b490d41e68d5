"""The promises of SECURITY.md: each is held by tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEST = re.compile(r"^  `(tests/\S+\.py)::(test_\w+)`$", re.MULTILINE)
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
PROMISES = re.split(
    r"^- (?=\*\*)", TEXT.split("## Guarantees")[1].split("\n## ")[0].split("\n`docs/")[0], flags=re.MULTILINE
)[1:]


def test_there_are_promises() -> None:
    assert len(PROMISES) > 5 and TEXT.count("\n- ") == len(PROMISES)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.split("**")[1])
def test_a_promise_names_tests_that_exist(promise: str) -> None:
    named = TEST.findall(promise)
    assert named, "a promise needs the name of the test that holds it"
    assert promise.count("::") == len(named), "names of tests stand each on a line of its own"
    for file, test in named:
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert test in functions, f"{file} has no {test}"
