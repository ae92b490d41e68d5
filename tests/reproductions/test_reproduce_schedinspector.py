"""What `reproduce schedinspector` says of numbers: tables, targets, whose numbers they are beside."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.planned import PaperReproduction, reproduction_named
from hpcsimkit.reproductions.schedinspector.own import OwnFindings
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import BSLD, SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.templates import environment
from hpcsimkit.workloads import default_workload, write_swf
from tests.reproductions.test_reproduction_contests import LEARNER

SEQUENCES = 20
BASE, NOT_COMMITTED, UNFIT = "base", "base that does not commit", "reject iff it does not fit"
INSPECTOR, PROMPT = "inspector", "prompt inspector"
KIND: Any = reproduction_named("schedinspector")
TABLE_4 = KIND.published["table_4"].rows


def scores(log: str, protocol: str = "rest", above: dict[str, float] | None = None) -> Scores:
    """Everybody has 10 and a little noise on each sequence; some have so much more."""
    trace: Any = SimpleNamespace(name=log)
    parts = Parts({"log": log, "order": "sjf", "backfilling": False})
    sequences = SequenceSet("x", [None] * SEQUENCES)  # type: ignore[list-item]
    contest = Comparison(KIND.paper.comparisons[protocol], protocol, trace, parts, sequences, [], {})
    names = [BASE, NOT_COMMITTED, UNFIT]
    for row in (INSPECTOR, PROMPT):
        names += [row, f"{row}, greedy", f"{row} of Lublin", f"{row} of SDSC-SP2"]
    rng = np.random.default_rng(0)
    values = {
        name: {
            "utilisation": np.full(SEQUENCES, 0.5),
            BSLD: 10 + (above or {}).get(name, 0.0) + rng.normal(0, 0.1, SEQUENCES),
        }
        for name in names
    }
    return Scores(contest, values)


def findings(*found: Scores, first: str = "Lublin", seconds: Any = lambda task: 60.0) -> OwnFindings:
    """Measurements that are these scores."""
    contests = [replace_contestants(each.contest) for each in found]
    plan: Any = SimpleNamespace(
        published=KIND.published, paper=KIND.paper, traces=SimpleNamespace(first=SimpleNamespace(name=first)),
        scores=lambda store: list(found), contests=contests,
        compared=list({row.learner.name: row.learner for each in contests for row in each.contestants if row.learner}.values()),
    )  # fmt: skip
    store: Any = SimpleNamespace(seconds=seconds)
    return OwnFindings(plan, store)


def replace_contestants(contest: Comparison) -> Any:
    return (
        contest if contest.contestants else contest._replace(contestants=[SimpleNamespace(learner=LEARNER)])
    )  # type: ignore[list-item]


def published_targets(found: Scores) -> list[Target]:
    return [target for target in findings(found).targets() if "training" not in target.what]


def test_table_4_names_the_log_of_the_paper_only_if_it_is_that() -> None:
    both = [scores("SDSC-SP2", above={BASE: 5}), scores("Lublin", above={BASE: 5})]
    headings, (sdsc, lublin) = findings(first="SDSC-SP2").tabulated("table_4", both)
    assert headings[3:5] == ["*of SDSC-SP2*", "of SDSC-SP2"]
    assert {len(headings)} == {len(sdsc), len(lublin)}
    assert lublin[headings.index("*of SDSC-SP2*")] == f"{TABLE_4['Lublin'][1]:.2f}"
    assert lublin[headings.index("*own*")] == f"{TABLE_4['Lublin'][2]:.2f}"

    headings, lines = findings().tabulated("table_4", both[1:])
    assert not any("SDSC" in heading for heading in headings)
    assert headings[3] == "of Lublin"
    assert {len(headings)} == {len(lines[0])}
    assert f"{TABLE_4['Lublin'][1]:.2f}" not in lines[0], "it is of another agent"
    assert lines[0][headings.index("*own*")] == f"{TABLE_4['Lublin'][2]:.2f}"
    assert lines[0][headings.index("of Lublin")] == lines[0][headings.index("own")], "at home"
    assert lines[0][headings.index("prompt, of Lublin")] == lines[0][headings.index("prompt")]


def test_ratios_of_figure_7_are_of_one_log() -> None:
    curve = {"steps": np.array([1.0]), "reward": np.array([0.0]), "rejected": np.array([0.5])}
    report = (KIND.folder / "report.md.jinja").read_text(encoding="utf-8")
    part = report[
        report.index("{% for study in plan.studies %}") : report.index("{% if scale.study_steps %}")
    ]

    def ratios(first: str, figure: str) -> list[str]:
        plan = SimpleNamespace(studies=[SimpleNamespace(name=figure, about="")])
        found = SimpleNamespace(curves={figure: {"FCFS": curve, "SAF": curve, "manual": curve}})
        values = {"plan": plan, "found": found, "first": first, "own": KIND.own, "published": KIND.published}
        lines = environment().from_string(part).render(values).splitlines()
        return [line.split("|")[4].strip() for line in lines if "50.0 %" in line]

    assert ratios("SDSC-SP2", "figure-7") == ["5.00", "48.20", ""]
    assert ratios("Lublin", "figure-7") == ["", "", ""]
    assert ratios("SDSC-SP2", "figure-5") == ["", "", ""]


@pytest.mark.parametrize("agent", [INSPECTOR, PROMPT])
def test_the_rival_that_does_not_commit_is_to_be_beaten_by_both_tests(agent: str) -> None:
    def target(of: Scores) -> Target:
        begin = f"Lublin, unseen jobs: {agent}, below SJF that does not commit by [%], p < 0.05 by both tests"
        (found,) = (target for target in published_targets(of) if target.what == begin)
        return found

    assert target(scores("Lublin", above={BASE: 5})).met is False, "the base is another one"
    assert target(scores("Lublin", above={agent: 1})).met is False
    found = scores("Lublin")
    rival = found.of(NOT_COMMITTED)
    found.values[agent][BSLD][:] = rival - 1.0
    assert target(found).met is True
    assert target(found).ours == pytest.approx(100 / rival.mean())
    found.values[agent][BSLD][:] = rival - np.array([0.01] * (SEQUENCES - 1) + [1000.0])
    assert target(found).met is False, "one sequence decides the mean"


def test_overlapping_sequences_are_not_tested() -> None:
    found = scores("Lublin", "whole", {INSPECTOR: -5, PROMPT: -5})
    not_tested = [target for target in published_targets(found) if "does not commit" in target.what]
    assert [target.met for target in not_tested] == [None, None]
    assert not any("p <" in target.what for target in not_tested)


def test_gains_of_all_agents_beside_the_papers() -> None:
    targets = {
        target.what: target for target in published_targets(scores("HPC2N", above={BASE: 10, PROMPT: -5}))
    }
    found = {row: targets[f"HPC2N, unseen jobs: {row}, below SJF by [%]"]
             for row in (INSPECTOR, f"{INSPECTOR}, greedy", PROMPT, f"{PROMPT}, greedy")}  # fmt: skip
    assert {round(target.paper or 0, 2) for target in found.values()} == {60.41}  # 8.26 to 3.27
    assert [target.met for target in found.values()] == [False, False, True, False]
    assert found[PROMPT].ours == pytest.approx(75, abs=1)


def test_rows_that_are_not_there_are_left_blank() -> None:
    """Behind backfilling there are prompt inspectors only."""
    found = scores("Lublin")
    fewer = Scores(found.contest, {row: found.values[row] for row in (BASE, PROMPT)})
    headings, (line,) = findings(fewer).tabulated("table_5")
    assert dict(zip(headings, line, strict=True)) == {
        "log": "Lublin", "order": "SJF", "backfilling": "no", "*base*": "61.49", "base": "50.00",
        "*inspector*": "61.06", INSPECTOR: "", PROMPT: "50.00",
    }  # fmt: skip


def test_trained_here_tested_there() -> None:
    logs = [scores("SDSC-SP2"), scores("Lublin")]
    for row in (INSPECTOR, PROMPT):
        logs[1].values[f"{row} of SDSC-SP2"][BSLD][:] = 7.0
        logs[1].values[row][BSLD][:] = 3.0
        headings, lines = findings().tabulated("cross", logs, row=row)
        assert headings == ["tested on", "base", "trained on SDSC-SP2", "trained on Lublin"]
        assert lines[1][2:] == ["7.00", "3.00"]


# --- with what limits ----------------------------------------------------------------------------------------


def test_published_inspectors_learn_without_a_limit_and_are_tested_with_one(tmp_path: Path) -> None:
    path = tmp_path / "lublin-1.swf"
    write_swf(default_workload(np.random.default_rng(0), jobs=1400, load=1.1), path)
    paper: PaperReproduction = KIND([path])
    limits: dict[str, set[int | None]] = {}
    for study in paper.studies:
        for learner in study.learners.values():
            assert isinstance(learner.policy, Pipeline)
            limits.setdefault(learner.trainer, set()).add(learner.policy.max_rejections)
    assert limits == {"schedinspector": {None}, "prompt-inspector": {72}}
    rows = [row for contest in paper.contests for row in contest.contestants if row.learner]
    assert {row.learner.trainer for row in rows if row.learner} == set(limits)
    assert {row.policy.max_rejections for row in rows if isinstance(row.policy, Pipeline)} == {72}


# --- how long trainings take ---------------------------------------------------------------------------------


def test_training_times_are_those_of_all_stretches() -> None:
    """By the store, which adds them up; of the agents of tables only, each kind for itself."""
    took = {"table": 450.0, "other": 900.0, "prompt": 60.0, "study": 5000.0}

    def seconds(task: Training) -> float:
        return took[task.name]

    table = replace(LEARNER, name="table", trainer="schedinspector")
    learners = [table, None, replace(table, name="other"), table,
                replace(table, name="prompt", trainer="prompt-inspector")]  # fmt: skip
    contestants: Any = [SimpleNamespace(name=f"{at}", learner=each) for at, each in enumerate(learners)]
    rows: Any = dict.fromkeys("01234", SimpleNamespace(family="", group=""))
    found = scores("Lublin", above={BASE: 5})
    contest = found.contest._replace(
        contestants=contestants,
        rows=rows,
        parts=Parts({"log": "Lublin", "order": "f1", "backfilling": False}),
    )
    published, prompt = findings(Scores(contest, found.values), seconds=seconds).targets()
    assert published.what.startswith("longest training of schedinspector agents")
    assert (published.ours, published.met, prompt.ours, prompt.met) == (15.0, False, 1.0, True)
