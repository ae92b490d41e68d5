"""Papers as data: what a plan says, and what is wrong in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import SJF
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.papers import PAPERS, SYSTEMS
from hpcsimkit.reproductions.plans.catalogue import part_named
from hpcsimkit.reproductions.plans.parts import KIT, Parts
from hpcsimkit.reproductions.plans.plan import Plan, paper_files
from hpcsimkit.reproductions.plans.planned import reproduction_named, reproduction_of


def test_folders_with_a_plan_are_reproductions() -> None:
    assert {"rlscheduler", "schedinspector", "rlbackfilling"} <= set(PAPERS) <= set(SYSTEMS)
    assert reproduction_named("rlscheduler") is reproduction_of(PAPERS["rlscheduler"], KIT.trust)
    assert not list(PAPERS["rlscheduler"].glob("*.py")), "a paper needs no code of its own"


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_plan_names_is_there(name: str) -> None:
    plan, published = paper_files(PAPERS[name])
    assert not [each for each in parts_of(plan.model_dump()) if part_named(each) is None]
    learners = [part_named(each.learner) for each in plan.agents.values() if each.learner]
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
    assert part_named("agents.rlscheduler.settings:PUBLISHED").episodes == 100
    for elsewhere in ("run:typer.run", "io.files:os.system", "kernel.pipeline:missing"):
        with pytest.raises(UsageError, match="unknown part"):
            part_named(elsewhere)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{order.length}", "str has no value 'length'"),
        ("{oder}", "unknown variable 'oder'; nearest: order"),
        ("{oder}-bf", "unknown variable 'oder'; nearest: order"),
        ("{order:next}", "'{order:next}': "),
        ({"part": "kernel.pipeline:Pipeline", "ordre": "sjf"}, "'kernel.pipeline:Pipeline': .*'ordre'"),
        ({"copy": "{policy}", "windows": 4}, "Pipeline has no value 'windows'; nearest: window"),
        ({"copy": "agents.rlscheduler.settings:PUBLISHED", "episode": 3}, "has no value 'episode'; nearest: episodes"),
    ],
)  # fmt: skip
def test_wrong_attributes_are_one_line(value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as error:
        Parts({"order": "sjf", "policy": Pipeline(SJF())}).made(value)
    assert "\n" not in str(error.value)


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


# --- folders of one's own ----------------------------------------------------------------------------------

OWN = """
title = "Ours"

[logs]
needed = "a log"
code = "swf"

[rates]
"runs" = 1000.0

[sizes.full]
sequences = 1

[rows.ours]
name = "ours"
policy = { part = "mine.py:Longest" }

[comparisons.rest]
sequences = "rest"
rows = [{ rows = ["ours"] }]
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with the name of a paper, and a policy in a file beside its plan."""
    folder = tmp_path / "dras"
    folder.mkdir()
    (folder / "plan.toml").write_text(OWN)
    (folder / "mine.py").write_text(
        "from hpcsimkit import Pipeline\nfrom hpcsimkit.policies import LJF\n\ndef Longest():\n    return Pipeline(LJF())\n"
    )
    (tmp_path / "log.swf").write_text(
        ";MaxProcs: 4\n"
        + "".join(f"{n} {n} -1 9 1 -1 -1 1 9 -1 1 -1 -1 -1 -1 -1 -1 -1\n" for n in range(1, 41))
    )
    return folder


def test_a_folder_of_ones_own_is_no_paper_of_the_same_name(own: Path) -> None:
    kind = reproduction_named(str(own))
    assert kind.title == "Ours" and kind.allow_code == ()
    assert kind.__bases__[0].__module__ == "hpcsimkit.reproductions.plans.planned"
    assert reproduction_named("dras").title != "Ours"


def test_code_of_a_plan_needs_consent(own: Path) -> None:
    log = own.parent / "log.swf"
    with pytest.raises(
        UsageError, match=r"'mine.py:Longest' is code .* without consent: --allow-code mine.py"
    ):
        reproduction_named(str(own))([log]).contests  # noqa: B018
    contests = reproduction_named(str(own), ["mine.py"])([log]).contests
    assert [str(each.policy.order) for contest in contests for each in contest.contestants] == ["LJF()"]


@pytest.mark.parametrize(
    ("template", "words"),
    [("aside.md.jinja", "has no template 'aside.md.jinja'"), ("../secret.md", "it leads elsewhere")],
)
def test_the_report_of_a_side_study_is_a_file_of_the_folder(own: Path, template: str, words: str) -> None:
    """A missing one is told at once, and not after hours of runs."""
    (own.parent / "secret.md").write_text("secret")
    text = OWN.replace("[rates]", f'[side_studies.aside]\ntemplate = "{template}"\n\n[rates]')
    (own / "plan.toml").write_text(text.replace("\n[logs]", '\noptions = ["aside"]\n\n[logs]', 1))
    with pytest.raises(HpcsimkitError, match=words):
        reproduction_named(str(own))


def test_a_folder_without_a_plan_is_an_unknown_system(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="unknown system"):
        reproduction_named(str(tmp_path))
