"""`reproduce cush` as a user types it: without files, with them, gone on with, and what is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.training.taught_ppo import TaughtPPOSettings
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.planned import reproduction_named
from tests.cli.conftest import CLI

KIND: Any = reproduction_named("cush")
TINY: dict[str, Any] = {
    **KIND.paper.size(quick=True), "epochs": 2, "job_sets": 1, "simulations": 2, "seeds": [0, 1],
    "taught_epochs": 1, "evolved_steps": 30, "whole_queue_steps": 30, "validation": 1, "unseen": 2, "draws": 2,
    "sweep_epochs": 1, "nodes": [4, 128], "horizons": [2], "sweep_unseen": 1,
}  # fmt: skip
OUTSIDE = ("SJF (best allocation, of ten jobs)", "SJF (best allocation, whole queue)")
CUSH, FRESH, TAUGHT = "CuSH", "CuSH (fresh job sets, T = 10)", "CuSH (taught, T = 10)"
EVOLVED = "Evolved (best allocation)"
HEURISTICS = [
    f"{selector} {allocation}" for selector in ("FCFS", "SJF", "DRF", "Rand") for allocation in ("DF", "BF")
]
BEYOND = ("SJF (best allocation)", "SJF (best allocation, in sight)", *OUTSIDE)
TRAINED = (CUSH, FRESH, TAUGHT)
ADDED = (EVOLVED, f"{EVOLVED[:-1]}, in sight)", f"{EVOLVED[:-1]}, whole queue)")

HEADER = "jobset,job,arrival,t,cpus,gpus,type(0=dgemm 1=daxpy)\n"
JOBS = "0,0,0,4,200,10,0\n0,1,1,2,100,20,1\n1,0,0,6,1,300,1\n1,1,0,3,30,300,0\n"


def small(monkeypatch: pytest.MonkeyPatch, sizes: dict[str, Any]) -> None:
    """Run little, and with few of the kit's heuristics."""
    plan = KIND.paper
    comparisons = {}
    for name, each in plan.comparisons.items():
        rows = [
            every.model_copy(
                update={"rows": [row for row in every.rows if "easy" not in row and row != "conservative"]}
            )
            for every in each.rows
        ]
        comparisons[name] = each.model_copy(update={"rows": rows})
    changes = {"sizes": {"full": sizes}, "comparisons": comparisons}
    monkeypatch.setattr(KIND, "paper", plan.model_copy(update=changes))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None) -> list[str]:
    """A file for each system; hardly any learning."""
    small(monkeypatch, TINY)
    made = Parts.made

    def few(self: Parts, value: Any) -> Any:
        found = made(self, value)
        if isinstance(found, CrossEntropySettings):
            return replace(found, population=2, elite=1, episodes=1)
        if isinstance(found, TaughtPPOSettings):
            few_of_teacher = {"teacher_population": 2, "teacher_elite": 1, "teacher_episodes": 1}
            return replace(found, episodes=2, group=2, **few_of_teacher)
        return found

    monkeypatch.setattr(Parts, "made", few)
    for name in ("sierra.csv", "mine-Summit.csv"):
        (tmp_path / name).write_text(HEADER + JOBS)
    return ["sierra.csv", "mine-Summit.csv"]


@pytest.mark.slow
@pytest.mark.pictures
def test_the_whole_of_it(cli: CLI, files: list[str], tmp_path: Path) -> None:
    outcome = cli("reproduce", "cush", *files, "--quick", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("Sierra: 128 nodes of 2 CPUs and 4 GPUs; 1 job sets to learn from")
    assert lines[1:3] == ["sierra.csv: 2 job sets for Sierra", "mine-Summit.csv: 2 job sets for Summit"]
    assert lines[3] == "11 agents, 12 sets of sequences with all their baselines"
    assert lines[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    page_is_whole(report)
    assert str(tmp_path) not in report
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"Sierra-learning.png", "Sierra-unseen.png"}
    targets_are_stated(tmp_path / "out")

    again = cli("reproduce", "cush", *files, "--quick", "--out", "out", "--workers", 1)
    assert again.out.splitlines()[4].startswith("all ") and again.out.splitlines()[4].endswith(
        "tasks are done"
    )
    assert (tmp_path / "out" / "report.md").read_text().split("## How it was made")[0] == (
        report.split("## How it was made")[0]
    ), "the same, from what is kept"
    other = cli("reproduce", "cush", files[0], "--quick", "--out", "out", "--workers", 1)
    assert "out: results of other settings are there: logs was sierra.csv (" in other.line()


def page_is_whole(report: str) -> None:
    for heading in ("In short", "How it was done", "Differences from the paper",
                    "To draw, or to take the best action", "Sierra: table 1 on the job sets learned from",
                    "Sierra: table 1 on unseen job sets", "Sierra: learning (figure 4)",
                    "Placements (figures 6 and 7)", "sierra.csv: table 1 on 2 job sets of a file",
                    "mine-Summit.csv: table 1 on 2 job sets of a file", "The size of the cluster (figure 8)",
                    "How far CuSH sees (section 4.2.2)", "Trainings", "Targets"):  # fmt: skip
        assert f"\n## {heading}\n" in report
    assert "**The quick version** (`--quick`)" in report
    italic = lambda names: [f"*{name}*" for name in names if name != CUSH]  # noqa: E731
    for part in ("the job sets learned from", "unseen job sets"):
        rows = table(report, f"Sierra: table 1 on {part}")
        assert {CUSH, *HEURISTICS, *italic((*TRAINED, *BEYOND, *ADDED))} <= set(rows)
        assert rows["FCFS DF"][0] == "7.13", "the paper's"
    assert set(table(report, "sierra.csv: table 1 on 2 job sets of a file")) == {
        CUSH, *HEURISTICS, *italic((*TRAINED, *BEYOND, *ADDED)),
    }  # fmt: skip
    assert list(table(report, "mine-Summit.csv: table 1 on 2 job sets of a file")) == [
        *HEURISTICS,
        *italic(BEYOND),
    ], "nobody is trained for Summit"
    assert list(table(report, "The size of the cluster (figure 8)")) == ["4", "128", "nodes"], "in two tables"
    assert list(table(report, "How far CuSH sees (section 4.2.2)")) == ["2", "T"]
    assert len(table(report, "Trainings")) == 2 + 1 + 1 + 1 + 1 + 1 + 3 + 1


def table(report: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of a section's tables by their first cells."""
    section = report.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    return {row[0]: row[1:] for row in rows}


def targets_are_stated(out: Path) -> None:
    targets = json.loads((out / "targets.json").read_text())
    names = [each["what"] for each in targets]
    assert sum(name.startswith("sierra.csv: ") for name in names) == 16
    assert sum(name.startswith("mine-Summit.csv: ") for name in names) == 16
    assert sum("NTAT below that of" in name for name in names) == 15, "of five who learn, three rivals each"
    assert sum("placed as suits them" in name for name in names) == 6, "two kinds, CuSH trained in three ways"
    assert names[-1].startswith("longest training, ")
    assert all(each["met"] in (True, False) for each in targets)


def test_rivals_alone(cli: CLI, files: list[str], tmp_path: Path) -> None:
    """Heuristics without any training."""
    outcome = cli("reproduce", "cush", *files, "--quick", "--rivals", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    report = (tmp_path / "out" / "report.md").read_text()
    for name in ("Sierra, job sets learned from", "Sierra, unseen job sets", "sierra.csv", "mine-Summit.csv"):
        assert f"**{name}**: best of the page: " in report
    rows = table(report, "Heuristics outside the paper")
    assert set(rows) >= {*HEURISTICS, *(f"*{name}*" for name in OUTSIDE)}
    assert "## Targets" not in report
    names = {path.name for path in (tmp_path / "out" / "tasks").iterdir()}
    assert all(name.startswith("runs-") for name in names), "nothing is trained"


@pytest.mark.slow
def test_without_files(cli: CLI, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch, {**TINY, "seeds": [0], "nodes": [], "horizons": []})
    outcome = cli("reproduce", "cush", "--quick", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    report = (tmp_path / "results" / "cush-quick" / "report.md").read_text()
    assert "of a file" not in report and "figure 8" not in report and "4.2.2" not in report


def test_cush_plus_alone(cli: CLI, files: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One network is trained once, and judged on all job sets, those of a log too."""
    tiny = {**TINY, "systems": ["sierra"], "plus_steps": 64, "plus_teacher_steps": 50, "plus_validation": 2}
    small(monkeypatch, {**tiny, "plus_jobs": [4], "plus_unseen": 2, "log_jobs": 5})
    log = tmp_path / "philly.csv"
    log.write_text("job_id,num_gpu,submit_time,duration\n0,1,0,9000\n1,9,0,20000\n")
    outcome = cli("reproduce", "cush", "philly.csv", "--plus", "--out", "plus", "--workers", 1)
    assert outcome.code == 0, outcome.err
    report = (tmp_path / "plus" / "report.md").read_text()
    assert "|  | Sierra, 20 jobs | Sierra, 4 jobs | Philly, 5 jobs |" in report
    assert "\n| CuSH+ | " in report and "\n| chance | " in report
    targets = [each["what"] for each in json.loads((tmp_path / "plus" / "targets.json").read_text())]
    assert len([each for each in targets if "at least 10" in each]) == 3
    assert [each for each in targets if "2.1" in each] == ["Sierra, 20 jobs: CuSH+, NTAT (at most 2.1)"]
    assert [
        each.name for each in (tmp_path / "plus" / "tasks").iterdir() if each.name.startswith("cush-plus")
    ] == ["cush-plus-1"]


def test_files_that_do_not_do(cli: CLI, files: list[str], tmp_path: Path) -> None:
    (tmp_path / "unknown.csv").write_text(HEADER + JOBS)
    (tmp_path / "sierra-broken.csv").write_text(HEADER + "0,0,0,4,x,10,0\n")
    (tmp_path / "sierra-large.csv").write_text(HEADER + "0,0,0,4,300,10,0\n")
    (tmp_path / "sierra-log.csv").write_text("a,b\n1,2\n")
    for name, words in {
        "unknown.csv": "unknown.csv: the system of the job sets is unknown; the file name must contain one of",
        "no-sierra.csv": "no-sierra.csv: no such file",
        "sierra-broken.csv": "sierra-broken.csv:2: cpus:",
        "sierra-large.csv": "sierra-large.csv: job 0 of sierra-large-0 asks for more than all 128 nodes of Sierra",
        "sierra-log.csv": "sierra-log.csv:1: a file of job sets needs the column jobset, found",
    }.items():
        line = cli("reproduce", "cush", name, "--quick", "--out", "out").line()
        assert line.startswith(words), line
    twice = cli("reproduce", "cush", files[0], files[0], "--quick", "--out", "out").line()
    assert twice == "sierra.csv: a log 'sierra.csv' is given twice"
    assert not (tmp_path / "out").exists()
    assert cli("reproduce", "cush", "--full").line() == "cush knows no --full"
