"""The words of the documentation: parameters described by nouns, few pronouns where the field has terms."""

from __future__ import annotations

import pytest

from tests.language import FIRST, FOLDERS, LIMITS, ROOT, described, rates, sources, templates


def test_descriptions_of_parameters_begin_with_a_noun() -> None:
    found = [each for path in sources() for each in described(path)]
    assert len(found) > 1000, "the sections of docstrings are no longer found"
    wrong = [f"{each.where}: {each.name}: {each.text}" for each in found if FIRST.match(each.text)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_use_terms(folder: str) -> None:
    found = rates(list(sources(folder)))
    assert all(found[name] < limit for name, limit in LIMITS.items()), found


def test_documentation_uses_terms() -> None:
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    pages += sorted((ROOT / "docs").rglob("*.md"))
    pages = [path for path in pages if not {"_build", "_generated"} & set(path.parts)]
    found = rates(pages)
    assert all(found[name] < limit for name, limit in LIMITS.items()), found


def test_templates_of_reports_use_terms() -> None:
    """Each on its own: the text of a report is read alone."""
    found = {str(path.relative_to(ROOT)): rates([path]) for path in templates()}
    assert len(found) > 7, "the templates are no longer found"
    wrong = {name: each for name, each in found.items() if any(each[key] >= LIMITS[key] for key in LIMITS)}
    assert not wrong, wrong
