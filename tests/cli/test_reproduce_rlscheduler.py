"""`reproduce rlscheduler` as a user types it: a reproduction that is a folder without code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.engine.store import Store
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.workloads import default_workload, write_swf
from tests.cli.conftest import CLI

KIND: Any = reproduction_named("rlscheduler")
TINY = {
    "sequences": 1,
    "published_sequences": 2,
    "steps": 1,
    "episodes": 1,
    "n_epochs": 1,
    "backfillings": [True],
}


@pytest.mark.usefixtures("few_rivals", "loaded_torch")
def test_one_log(cli: CLI, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KIND.paper.sizes, "quick", TINY)
    write_swf(default_workload(np.random.default_rng(0), jobs=3100, load=0.8), tmp_path / "lublin-1.swf")
    command = ("reproduce", "rlscheduler", "lublin-1.swf", "--quick", "--out", "out", "--workers", 1)
    outcome = cli(*command)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[1] == "2 agents, 2 sets of sequences with all their baselines"
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| log | *FCFS* | FCFS | *WFP3* | WFP3 | *UNICEF* | UNICEF | *SJF* | SJF | *F1* | F1 |" in report
    assert "\n| Lublin-1, with backfilling | 235.82 | " in report
    for row in ("agent, greedy", "random agent", "textbook SJF, EASY"):
        assert f"\n| {row} | " in report
    targets = {each["what"]: each for each in json.loads((tmp_path / "out" / "targets.json").read_text())}
    base = targets["Lublin-1, with backfilling, as published: FCFS, mean bounded slowdown"]
    assert (base["paper"], base["met"]) == (235.82, None), "two sequences are not the published ten"
    assert "tasks are done" in cli(*command).out.splitlines()[2]


@pytest.mark.parametrize("backfilling", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_numbers_of_the_read_me(
    backfilling: bool, shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KIND.paper.sizes, "quick", {"backfillings": [backfilling]})
    paper = KIND([shared / "traces" / "lublin-1.swf"], quick=True)
    contest = paper.contests[0]
    known = KIND.published["read_me"].columns
    rows = [each for each in contest.contestants if each.name in known and each.learner is None]
    contest, store = contest._replace(contestants=rows), Store(tmp_path)
    for task in contest.meetings.values():
        store.perform(task, lambda done: None)
    findings = KIND.findings(paper, store)
    vars(findings)["scores"] = [Scores.kept(contest, store)]
    targets = list(findings.targets())
    assert [target.met for target in targets] == [True] * 5, targets
