"""The words of the documentation: nouns of the field in place of clauses, and one word for one thing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.language import FIRST, ROOT, described, sources, templates, text_of

AVOIDED = re.compile(
    r"""
    \bcounted\s+nodes\b | \b(?:the|their|its)\s+rivals?\b | \bthe\s+one\s+to\s+beat\b | \bwhoever\b | \bon\s+line\b |
    \bthat\s+which\b | \bno\s+policy\s+and\s+no\s+stage\b | \bhow\s+this\s+was\s+made\b |
    \bjobs\s+noted,\s+and\s+why\b | \bfiles\s+from\s+others\b | \blimits\s+of\s+reading\b |
    \btells?\s+policies\s+apart\b | \bwhat\s+cannot\s+be\s+combined\b | \bis\s+no\s+failure\s+of\b |
    \banswers\s+in\s+a\s+minute\b | \bthe\s+same\s+recipe\s+is\s+so\b | \bwho\s+has\s+waited\b |
    \[(?:not\s+known|no\s+change|that\s+of\b|that\s+in\b|those\s+of\b)
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Words with a better alternative in CONTRIBUTING.md."""


def pages() -> list[Path]:
    """Return the pages that people read, without the printed output of experiments and the changelog."""
    found = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for folder in ("agents", "background", "guides", "notebooks", "reference", "results", "tutorials"):
        found += (ROOT / "docs" / folder).glob("*.md")
    return sorted(found)


def test_descriptions_of_parameters_begin_with_a_noun() -> None:
    found = [each for path in sources() for each in described(path)]
    assert len(found) > 1000, "the sections of docstrings are no longer found"
    wrong = [f"{each.where}: {each.name}: {each.text}" for each in found if FIRST.match(each.text)]
    assert not wrong, "\n".join(wrong)


def test_the_words_of_the_table() -> None:
    """Docstrings, string constants (messages, help texts), templates and pages use the words of the field."""
    paths = [*sources(), *templates(), *pages(), *(ROOT / "hpcsimkit").glob("reports/templates/*.html.jinja")]
    assert len(paths) > 400
    wrong = [
        f"{path.relative_to(ROOT)}: {' '.join(match[0].split())}"
        for path in paths
        for match in AVOIDED.finditer(text_of(path))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["on counted\nnodes", "Whoever waits", "learns on line", "[not known]"])
def test_the_words_are_found(text: str) -> None:
    assert AVOIDED.search(text)
