"""`reproduce dras` as a user types it, on small logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.agents.training.taught_ppo import TaughtPPOSettings
from hpcsimkit.reproductions.plans.parts import Parts
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.rivals import rules_without
from hpcsimkit.workloads import default_workload, write_swf
from tests.cli.conftest import CLI

KIND: Any = reproduction_named("dras")
TINY = {
    **KIND.paper.sizes["full"], "sampled": 1, "synthetic": 1, "jobs": 20, "learners": ["pg", "ppo"], "seeds": [0, 1],
    "decima_seeds": [0], "waiting_seeds": [0], "evolved_seeds": [0], "evolved_steps": 1, "slots": [1, 2],
    "orders": KIND.paper.sizes["full"]["orders"][:2], "repeats": 1,
}  # fmt: skip
SLOTS = ["Slot 1, two levels", "Slot 2, two levels"]
DAYS = 110
"""Of a log: three months, and nearly three weeks to be tested on."""


def outside() -> list[str]:
    """Return the heuristics of the kit that the page has no rows for."""
    return [name for name, _ in rules_without(["FCFS/EASY", "SJF/EASY"])]


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None, few_rivals: None) -> list[str]:
    """A log called as Theta's, which is made smaller, and one paid by equation 2; hardly any learning."""
    monkeypatch.setitem(KIND.paper.sizes, "quick", TINY)
    names = ["ALCF-Theta-2022.swf", "HPC2N-mine.swf"]
    for seed, name in enumerate(names):
        write_swf(stretched(default_workload(np.random.default_rng(seed), jobs=300)), tmp_path / name)
    return names


def stretched(log: Workload) -> Workload:
    """Return a log with all its times longer, so that the load is as it was."""
    factor = DAYS * 86_400 / log.span
    times = ("submit_time", "run_time", "requested_time")
    columns = {name: np.ceil(log.column(name) * factor).astype(np.int64) for name in times}
    return replace(log, columns={**log.columns, **columns})


@pytest.mark.slow
@pytest.mark.pictures
def test_the_whole_of_it(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    outcome = cli("reproduce", "dras", *logs, "--quick", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("Theta-2022: jobs on 26 nodes (sizes / 10, rounded up), equation 1: ")
    assert lines[1].startswith("HPC2N: jobs on 256 nodes, equation 2: ")
    assert lines[2] == "15 agents, 4 sets of sequences with all their baselines"
    assert lines[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    page_is_whole(report)
    assert str(tmp_path) not in report
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    kinds = ("waits", "learning", "synthetic")
    of_logs = {f"{log}-{kind}.png" for log in ("Theta-2022", "HPC2N") for kind in kinds}
    assert pictures == {"orders.png", *of_logs}
    targets_say_which_log(tmp_path / "out")

    again = cli("reproduce", "dras", *logs, "--quick", "--out", "out", "--workers", 1)
    assert again.out.splitlines()[3] == f"all {lines[3].split()[0]} tasks are done"
    assert (tmp_path / "out" / "report.md").read_text().split("## How it was made")[0] == (
        report.split("## How it was made")[0]
    ), "the same, from what is kept"
    other = cli("reproduce", "dras", *logs, "--quick", "--full", "--out", "out", "--workers", 1)
    assert "out: results of other settings are there: full was False, is True; --over" in other.line()


def page_is_whole(report: str) -> None:
    for heading in ("In short", "How it was done", "Differences from the paper",
                    "Theta-2022: metrics", "Theta-2022: waits of the largest jobs (figure 8)",
                    "Theta-2022: how jobs start (table 4, figure 9)",
                    "Theta-2022: best action, drawn, constant slot", "Heuristics outside the paper", "HPC2N: learning (figure 6)",
                    "Figure 4: synthetic jobs",
                    "Figure 5: the order of job sets", "Trainings",
                    "Targets"):  # fmt: skip
        assert f"\n## {heading}\n" in report
    assert "**The quick version** (`--quick`)" in report
    metrics = table(report, "Theta-2022: metrics")
    assert list(metrics) == [
        "FCFS/EASY", "Optimization", "BinPacking", "Random", "*SJF/EASY*", "*Random, two levels*",
        "*Shortest, two levels*", "*Largest, two levels*", *(f"*{name}*" for name in (*SLOTS, *outside())),
        "Decima-PG", "DRAS-PG", "*DRAS-PG, drawn*", "DRAS-PPO", "*DRAS-PPO, drawn*",
        "*DRAS-DQL, paid for short waits*", "*Evolved, two levels*",
    ]  # fmt: skip
    modes = table(report, "Theta-2022: how jobs start (table 4, figure 9)")
    assert modes["FCFS/EASY"][0] == "79.25", "the paper's"
    assert len(table(report, "HPC2N: how jobs start (table 4, figure 9)")["FCFS/EASY"]) == 6, "none of it"
    for row, cells in modes.items():
        assert sum(map(float, cells[1::4])) == pytest.approx(100, abs=0.02), row
        if row in ("Optimization", "BinPacking", "Random", "Decima-PG"):
            assert cells[5] == "100.00", "nobody reserves or backfills"


def table(report: str, heading: str) -> dict[str, list[str]]:
    """Return the rows of a section's table by their first cells."""
    section = report.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")][1:]
    return {row[0]: row[1:] for row in rows}


def targets_say_which_log(out: Path) -> None:
    targets = {each["what"]: each for each in json.loads((out / "targets.json").read_text())}
    theta = [each for what, each in targets.items() if what.startswith("Theta-2022")]
    others = [each for what, each in targets.items() if what.startswith("HPC2N")]
    for of_log in (theta, others):
        best = len(of_log) - 8
        assert best in (4, 8), "of the best of the two that are trained, or of both, and of two others"
    judged = [each for each in theta if each["met"] is not None]
    assert len(judged) == len(theta) - 8
    assert not [each for each in judged if "paid" in each["what"] or "Evolved" in each["what"]]
    assert all(each["met"] is None for each in others), "for comparison only"


def test_rivals_alone(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    """Heuristics and constant slots, without any training."""
    outcome = cli("reproduce", "dras", *logs, "--quick", "--rivals", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    report = (tmp_path / "out" / "report.md").read_text()
    rows = table(report, "Heuristics outside the paper")
    assert {f"*{name}*" for name in outside()} | set(SLOTS) | {"FCFS/EASY"} <= set(rows)
    assert not [row for row in rows if "DRAS" in row or "Evolved" in row]
    assert {path.name.split("-")[0] for path in (tmp_path / "out" / "tasks").iterdir()} == {"runs"}
    other = cli("reproduce", "dras", *logs, "--quick", "--out", "out", "--workers", 1)
    assert "out: results of other settings are there: rivals was True, is False; --over" in other.line()


def test_dras_plus_alone(cli: CLI, logs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One network is trained for each log, and judged beside heuristics; then all is kept."""
    plus = {
        "plus_seeds": [0],
        "plus_steps": 64,
        "plus_window": 30,
        "plus_validate_every": 1,
        "plus_rules": TINY["plus_rules"][:2],
    }
    monkeypatch.setitem(KIND.paper.sizes, "quick", {**TINY, **plus, "plus_weeks": 10})
    made = Parts.made

    def few(self: Parts, value: Any) -> Any:
        found = made(self, value)
        return replace(found, episodes=2, n_steps=16) if isinstance(found, TaughtPPOSettings) else found

    monkeypatch.setattr(Parts, "made", few)
    command = ("reproduce", "dras", logs[1], "--plus", "--quick", "--out", "plus", "--workers", 1)
    outcome = cli(*command)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(
        "HPC2N: jobs at its own load, 69 to learn from, 23 to choose by, 45 that are judged"
    )
    report = (tmp_path / "plus" / "report.md").read_text()
    rows = list(table(report, "HPC2N"))
    assert rows == [
        "UNICEF", "XFactor", "UNICEF, with tests", "XFactor, with tests", "its heuristic",
        "its heuristic, with tests", "chance, with tests", "DRAS+", "DRAS+, with tests",
        "DRAS+ choosing, with tests",
    ]  # fmt: skip
    assert list(table(report, "Training")) == ["HPC2N-plus-1", "HPC2N-plus-choosing-1"]
    assert (tmp_path / "plus" / "HPC2N-plus-learning.png").exists()
    targets = [each["what"] for each in json.loads((tmp_path / "plus" / "targets.json").read_text())]
    assert len(targets) == 9 and all("DRAS+" in each for each in targets)

    again = cli(*command)
    assert "all 12 tasks are done" in again.out
    assert list(table((tmp_path / "plus" / "report.md").read_text(), "HPC2N")) == rows


def test_other_reproductions_know_no_full_size(cli: CLI, logs: list[str]) -> None:
    assert cli("reproduce", "textbook-rules", *logs, "--full").line() == "textbook-rules knows no --full"


def test_logs_that_do_not_do(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    assert cli("reproduce", "dras").line().startswith("dras needs logs in the Standard Workload Format")
    write_swf(default_workload(np.random.default_rng(9), jobs=50), tmp_path / "short.swf")
    found = cli("reproduce", "dras", "short.swf", "--quick", "--out", "out").line()
    assert found.startswith("short.swf: jobs of more than 91.2 days are needed")
    found = cli("reproduce", "dras", logs[0], logs[0], "--quick", "--out", "out").line()
    assert found == "ALCF-Theta-2022.swf: a log 'Theta-2022' is given twice"
    assert not (tmp_path / "out").exists()
