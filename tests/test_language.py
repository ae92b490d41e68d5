"""The words of the documentation: parameters are described by nouns."""

from __future__ import annotations

from tests.language import FIRST, described, sources


def test_descriptions_of_parameters_begin_with_a_noun() -> None:
    found = [each for path in sources() for each in described(path)]
    assert len(found) > 1000, "the sections of docstrings are no longer found"
    wrong = [f"{each.where}: {each.name}: {each.text}" for each in found if FIRST.match(each.text)]
    assert not wrong, "\n".join(wrong)
