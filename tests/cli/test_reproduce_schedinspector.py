"""`reproduce schedinspector` as a user types it, on small logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.schedinspector import settings as made
from hpcsimkit.engine.store import Store
from hpcsimkit.policies.dirlab import published
from hpcsimkit.reproductions.plans.planned import PaperReproduction, reproduction_named
from hpcsimkit.reproductions.scores import standings
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet
from hpcsimkit.workloads import default_workload, write_swf
from tests.cli.conftest import CLI

KIND: type[PaperReproduction] = reproduction_named("schedinspector")  # type: ignore[assignment]
TINY = {
    **KIND.paper.sizes["full"],
    "sequences": 2,
    "steps": 300,
    "prompt_steps": 300,
    "study_steps": 0,
    "orders": ["sjf"],
}
JOBS = 1400
BASE, NOT_COMMITTED = "base", "base that does not commit"


def paper(tmp_path: Path, logs: list[str], seed: int = 0) -> PaperReproduction:
    return KIND([tmp_path / log for log in logs], quick=True, seed=seed)


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None) -> list[str]:
    """Two logs, one of the paper's by its name; and as little learning as there can be."""
    monkeypatch.setitem(KIND.paper.sizes, "quick", TINY)
    monkeypatch.setattr(made, "PUBLISHED", replace(made.PUBLISHED, episodes=2, n_epochs=2))
    monkeypatch.setattr(made, "RATIO", replace(made.RATIO, episodes=2, n_epochs=2))
    for seed, name in enumerate(("lublin-1.swf", "other.swf")):
        write_swf(default_workload(np.random.default_rng(seed), jobs=JOBS, load=1.1), tmp_path / name)
    return ["lublin-1.swf", "other.swf"]


@pytest.mark.usefixtures("few_rivals")
def test_one_log(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    outcome = cli("reproduce", "schedinspector", logs[0], "--quick", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.splitlines()[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    for heading in ("Table 4, as published", "Table 5", "Figure 4", "Targets"):
        assert f"## {heading}" in report
    targets = {row["what"]: row for row in json.loads((tmp_path / "out" / "targets.json").read_text())}
    gain = targets["Lublin, unseen jobs: inspector, below SJF by [%]"]
    assert gain["paper"] == pytest.approx(100 * (1 - 27.97 / 333.19))


@pytest.mark.slow
@pytest.mark.pictures
def test_the_whole_of_it(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    outcome = cli("reproduce", "schedinspector", *logs, "--quick", "--out", "out", "--workers", 2)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == (
        "Lublin: 1 400 jobs, the first 280 to learn from; 2 sequences of 256 of the rest to be tested on"
    )
    assert lines[2] == "10 agents, 6 sets of sequences with all their baselines"
    assert lines[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    for heading in ("Table 4, as published", "Table 4, on unseen jobs", "Table 5",
                    "All policies on the same sequences", "Trained here, tested there: SJF, inspector",
                    "Trained here, tested there: SJF, prompt inspector", "Figure 4", "Figure 13",
                    "Targets"):  # fmt: skip
        assert f"## {heading}" in report
    for row in ("inspector of other", "prompt inspector of other", "prompt inspector, greedy"):
        assert f"| {row} |" in report
    for words in ("Lublin, SJF: inspector", "Lublin, SJF: prompt inspector",
                  "other, SJF with backfilling: prompt inspector"):  # fmt: skip
        assert f"**{words} below base by" in report
    assert "SDSC-SP2" not in report
    assert str(tmp_path) not in report
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert {"figure-4.png", "figure-13.png", "rest-Lublin-sjf.png", "rest-Lublin-sjf-bf.png",
            "figure-4-prompt.png"} <= pictures  # fmt: skip
    targets = {row["what"]: row for row in json.loads((tmp_path / "out" / "targets.json").read_text())}
    gain = targets["Lublin, unseen jobs: inspector, below SJF by [%]"]
    assert gain["paper"] == pytest.approx(100 * (1 - 27.97 / 333.19))
    base = targets["Lublin, published test: SJF's mean bounded slowdown"]
    assert (base["paper"], base["met"]) == (333.19, None), "two sequences are not the paper's fifty"

    others = cli("reproduce", "schedinspector", *logs[:1], "--seed", 5, "--out", "out")
    assert "seed was 0, is 5; quick was True, is False; logs was lublin-1.swf (" in others.line()
    other = cli("reproduce", "schedinspector", *logs, "--quick", "--seed", 5, "--out", "out")
    assert "out: results of other settings are there: seed was 0, is 5; --overwrite" in other.line()
    again = cli("reproduce", "schedinspector", *logs, "--quick", "--out", "out", "--workers", 2)
    assert "all" in again.out.splitlines()[3], "refusals leave the folder as it is"
    assert "tasks are done" in again.out.splitlines()[3]


def test_trained_and_tested_jobs_are_disjoint(
    logs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TINY, "sequences", 200)
    found = paper(tmp_path, logs[:1], seed=3)
    trace = found.traces.first
    seen = found.workshop.agent("inspector", found.workshop.parts().variables).episodes
    learned = {int(job) for job in seen.log.id}  # type: ignore[attr-defined]
    tested = {int(job) for scenario in trace.rest.scenarios for job in scenario.workload.id}
    assert len(learned) == 280
    assert min(tested) > max(learned)
    assert len(trace.rest.scenarios) == 4, "1119 jobs: no more lie side by side"
    assert len(tested) == 4 * 256, "no job is in two sequences"
    assert all(scenario.setup.event_order.following is not None for scenario in trace.rest.scenarios)
    (line,) = found.traces.lines()
    assert line.endswith("4 sequences of 256 (not 200: no more lie side by side) of the rest to be tested on")
    assert len(trace.drawn.scenarios) == 200, "the published ones overlap, as published"


def test_rows_are_of_whom_they_say(logs: list[str], tmp_path: Path) -> None:
    found = paper(tmp_path, logs)
    traces = found.traces
    by_protocol = {
        (contest.trace.name, contest.protocol, contest.variables["backfilling"]): contest
        for contest in found.contests
    }
    contest = by_protocol["Lublin", "rest", False]
    rows = {each.name: each for each in contest.contestants}
    assert rows[BASE].policy == published("schedinspector", "sjf")
    assert rows[NOT_COMMITTED].rules == "textbook"
    assert rows["inspector of other"].changes == {"longest_time": traces.all[0].longest_time}
    store = Store(tmp_path / "store")
    task = contest.meetings[BASE]
    store.perform(task, lambda done: None)
    expected = [
        scenario.simulation(published("schedinspector", "sjf")).run().bounded_slowdown().mean()
        for scenario in traces.all[0].rest.scenarios
    ]
    assert store.outcome(task)["mean_bounded_slowdown"] == pytest.approx(expected)


def test_an_agent_meets_with_the_parameters_of_the_log(logs: list[str], tmp_path: Path) -> None:
    workshop = paper(tmp_path, logs).workshop
    here, there = workshop.traces.all
    learner = workshop.agent("inspector", workshop.parts(there).variables)
    learner.train(tmp_path / "store" / learner.name, lambda steps: None)
    guest = Contestant(
        "inspector", learner.policy, learner=learner, changes={"longest_time": here.longest_time}
    )
    inspector = guest.scheduler(tmp_path / "store").inspector  # type: ignore[attr-defined]
    assert inspector.encoder.longest_time == here.longest_time != there.longest_time
    assert inspector.sample
    at_home = replace(guest, changes=None, sample=False).scheduler(tmp_path / "store")
    assert at_home.inspector.encoder == learner.encoder  # type: ignore[attr-defined]
    assert Meeting(guest, SequenceSet("x", here.rest.scenarios)).name == "runs-x-inspector"


def test_standings_are_paired() -> None:
    values = {"a": np.array([1.0, 10.0, 100.0]), "b": np.array([2.0, 11.0, 101.5])}
    rows = standings(values, "a")
    assert rows["a"].against is None
    against = rows["b"].against
    assert against is not None
    assert against.difference.mean == pytest.approx(-3.5 / 3)
    assert against.difference.low < against.difference.mean < against.difference.high < 0


def test_logs_that_do_not_do(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    write_swf(default_workload(np.random.default_rng(9), jobs=500), tmp_path / "short.swf")
    found = cli("reproduce", "schedinspector", "short.swf", "--quick", "--out", "out")
    assert found.line() == "short.swf: 1280 jobs or more are needed, found 500"
    (tmp_path / "lublin_256.swf").write_bytes((tmp_path / logs[0]).read_bytes())
    found = cli("reproduce", "schedinspector", logs[0], "lublin_256.swf", "--quick", "--out", "out")
    assert found.line() == "lublin-1.swf: a log 'Lublin' is given twice"
