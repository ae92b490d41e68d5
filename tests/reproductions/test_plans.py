"""Papers as data: what a plan says, and what is wrong in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import SJF
from hpcsimkit.reproductions.catalogue import SYSTEMS, reproduction_named
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.plans.parts import Parts, kit_part
from hpcsimkit.reproductions.plans.plan import Plan, paper_files
from hpcsimkit.reproductions.plans.planned import reproduction_of


def test_folders_with_a_plan_are_reproductions() -> None:
    assert {"rlscheduler", "schedinspector", "rlbackfilling"} <= set(PAPERS) <= set(SYSTEMS)
    assert reproduction_named("rlscheduler") is reproduction_of(PAPERS["rlscheduler"])
    assert not list(PAPERS["rlscheduler"].glob("*.py")), "a paper needs no code of its own"


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_plan_names_is_there(name: str) -> None:
    plan, published = paper_files(PAPERS[name])
    assert not [each for each in parts_of(plan.model_dump()) if kit_part(each) is None]
    learners = [kit_part(each.learner) for each in plan.agents.values() if each.learner]
    needed = ("of", "size", "train", "agents", "with_others", "requires")
    assert all(hasattr(learner, name) for learner in (Learner, *learners) for name in needed)
    used = {row for each in plan.comparisons.values() for rows in each.rows for row in rows.rows}
    assert used == set(plan.rows), "no row is left over"
    assert {target.published for target in plan.targets} - {""} <= set(published)
    assert set(plan.sizes["quick"]) <= set(plan.sizes["full"])
    for table in published.values():
        assert {len(row) for row in table.rows.values()} == {len(table.columns)}


def parts_of(value: Any) -> list[str]:
    if isinstance(value, dict):
        inner = [name for each in value.values() for name in parts_of(each)]
        return inner + [
            name
            for key in ("part", "copy")
            if isinstance(name := value.get(key), str) and ":" in name and "{" not in name
        ]
    return [name for each in value for name in parts_of(each)] if isinstance(value, list | tuple) else []


def test_loops_have_the_first_variable_outermost_and_no_value_twice() -> None:
    parts = Parts({"orders": ("sjf", "f1")})
    found = parts.each({"order": ["{orders}", "fcfs", "sjf"], "backfilling": [False, True]})
    assert [each.made("{order}{backfilling:?-bf}") for each in found] == [
        "sjf", "sjf-bf", "f1", "f1-bf", "fcfs", "fcfs-bf",
    ]  # fmt: skip


def test_copies_leave_the_original_as_it_is() -> None:
    policy = Pipeline(SJF())
    changed = Parts({"policy": policy}).made({"copy": "{policy}", "max_rejections": 72})
    assert (changed.max_rejections, policy.max_rejections) == (72, Pipeline().max_rejections)
    settings = {"copy": "agents.rlscheduler.settings:PUBLISHED", "episodes": 3}
    assert Parts({}).made(settings).episodes == 3
    assert kit_part("agents.rlscheduler.settings:PUBLISHED").episodes == 100
    for elsewhere in ("run:typer.run", "io.files:os.system", "kernel.pipeline:missing"):
        with pytest.raises(UsageError, match="has no part"):
            kit_part(elsewhere)


def test_an_agent_is_made_by_its_name_and_variables() -> None:
    parts = Parts({"order": "sjf"}, lambda name, variables: (name, dict(variables)))
    made = parts.made({"agent": "own", "mode": "guarded"})
    assert made == ("own", {"order": "sjf", "mode": "guarded"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("sample = [true, false]", "sampled = true", r"plan.toml:\d+: rows.own.sampled: unknown key"),
        ('rows = ["heuristic"]', 'rows = ["heuristics"]', "unknown row 'heuristics'; nearest: heuristic"),
        ('{ agent = "own" }', '{ agent = "mine" }', "unknown agent 'mine'"),
        ('jobs = 1024', 'jobs = 0', r"plan.toml:\d+: logs.jobs must be greater than 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_plan_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (PAPERS["rlscheduler"] / "plan.toml").read_text()
    assert old in text
    (tmp_path / "plan.toml").write_text(text.replace(old, new))
    with pytest.raises(UsageError, match=message) as error:
        Plan.of_toml(tmp_path / "plan.toml")
    assert "\n" not in str(error.value)
