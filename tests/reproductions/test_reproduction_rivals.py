"""Rivals that papers leave out: who runs, which is best, and what a table says of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.engine.store import Store
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.reproductions.papers import SYSTEMS
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.rivals import RIVALS, RULES, USUAL, Field, field_of, field_table, measured_fields
from hpcsimkit.reproductions.sequences import BSLD, Contestant, Meeting, SequenceSet

CROWDED = Workload({"submit_time": [0, 1, 2], "run_time": [100, 500, 10], "nodes": [4, 4, 4]}, machine_size=4)


@pytest.fixture
def field() -> Field:
    """FCFS/EASY on one sequence, where short jobs had better go first, and an agent that has not learned."""
    sequences = SequenceSet("crowded", (Scenario(CROWDED),))
    known = {"own": Meeting(Contestant("own", RULES["FCFS/EASY"], "textbook"), sequences)}
    return field_of("Crowded", sequences, 0, known)


def test_each_heuristic_has_a_folder_of_its_own(field: Field) -> None:
    names = [task.name for task in field.tasks]
    assert len(set(names)) == len(names) == 1 + len(RULES)


def test_the_best_of_both_kinds_is_said(field: Field, tmp_path: Path) -> None:
    store = Store(tmp_path)
    for task in field.tasks:
        store.perform(task, lambda done: None)
    (found,) = measured_fields([field], store, alone=True)
    values = {row[0].strip("*"): float(row[1]) for row in found["table"].rows}
    assert list(values) == ["own", *RULES]
    assert values["own"] == values["FCFS/EASY"] == pytest.approx((1 + 599 / 500 + 608 / 10) / 3, abs=0.005)
    assert values["SJF/EASY"] == pytest.approx((1 + 609 / 500 + 108 / 10) / 3, abs=0.005)
    best = min(values[name] for name in RULES)
    assert found["name"] == "Crowded"
    assert list(found["sentences"]) == [
        f"best of the page: own ({values['own']:.2f}); of the kit: SJF/EASY ({best:.2f}, -79.3 %)."
    ], "no sentence on agents"


def test_below_for_sure_by_both_tests() -> None:
    rng = np.random.default_rng(1)
    base = 5 + rng.random(30)
    measures = {measure: base for measure, _ in USUAL.values()}
    lower = {**measures, BSLD: 0.9 * base}
    lucky = {**measures, BSLD: base - np.array([0.01] * 29 + [100.0])}
    table = {
        row[0]: row[-1] for row in field_table(USUAL, {"own": measures}, {"lower": lower, "lucky": lucky})[1]
    }
    assert (table["own"], table["*lower*"]) == ("", "-10.0 %*")
    assert table["*lucky*"].startswith("-") and not table["*lucky*"].endswith("*")


HEURISTICS_ALONE = {"winning"}
"""Reproductions that compare nothing but heuristics: the flag would leave out nothing."""


@pytest.mark.parametrize("name", [name for name in SYSTEMS if name not in HEURISTICS_ALONE])
def test_every_reproduction_with_agents_knows_the_flag(name: str) -> None:
    assert RIVALS in reproduction_named(name).flags
