"""The two spellings of a part, a text and a table, are one part."""

from __future__ import annotations

from typing import Any

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.by_name import part_named
from hpcsimkit.experiments.parts.learner_parts import Kind, part_of
from hpcsimkit.experiments.parts.registry import check, with_parameter
from hpcsimkit.experiments.parts.spelling import Part, parts_in
from hpcsimkit.experiments.parts.trust import Trust


def test_both_spellings_have_the_same_key_and_parameters() -> None:
    (text,) = parts_in("QueueWindow(slots=4,time_scale=3600.0)")
    table = Part.of_table({"slots": 4, "name": "QueueWindow", "time_scale": 3600.0}, "JobKind")
    assert (text.key, text.parameters, text.code) == (table.key, table.parameters, table.code)
    assert Part.of_table({}, "JobKind").key == "JobKind"


def test_both_spellings_make_the_same_encoder() -> None:
    encoder = part_named("QueueWindow(slots=4,time_scale=3600.0)", Trust(()), "encoder")
    table = {"name": "QueueWindow", "time_scale": 3600.0}
    assert part_of(Kind.of_seat("order")[0], table, {"slots": 4}, None, Trust(())) == (encoder, None)


def test_both_spellings_of_code_need_consent() -> None:
    message = r"code that is not the kit's own, .*--allow-code mine\.py"
    with pytest.raises(UsageError, match=message):
        part_named("mine.py:Mine(4)", Trust(()), "encoder")
    made, problem = part_of(Kind.of_seat("order")[0], {"name": "mine.py:Mine"}, {}, None, Trust(()))
    assert made is None and problem is not None and "--allow-code mine.py" in problem[1]


@pytest.mark.parametrize("name", [3, None, [1], {"name": "QueueWindow"}])
def test_the_name_in_a_table_is_a_text(name: Any) -> None:
    _, problem = part_of(Kind.of_seat("order")[0], {"name": name}, {}, None, Trust(()))
    assert problem == (("encoder", "name"), f": a name is needed, found {name!r}")


def test_a_changed_parameter_keeps_those_given_by_position() -> None:
    changed = with_parameter("fcfs+easy-weighted(0.5,0.25)+window(9)", "size", 2.0, None, Trust(()))
    assert changed == "fcfs+easy-weighted(mean=0.5, harmonic=0.25, size=2.0)+window(9)"


def test_a_name_is_checked_before_anything_is_read() -> None:
    """Its file does not exist, and is not looked for."""
    with pytest.raises(UsageError, match=r"--allow-code mine$"):
        check("fcfs+agent:nowhere.hpcsim(parts=mine)", None, Trust(()))
