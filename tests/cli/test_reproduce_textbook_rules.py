"""`reproduce textbook-rules` as a user types it, on small logs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.agents.rlbackfilling import settings as backfillers
from hpcsimkit.agents.schedinspector import settings as inspectors
from hpcsimkit.workloads import default_workload, write_swf
from tests.cli.conftest import CLI, swf_row
from tests.reproductions.test_textbook_rules import KIND, changed_pair

TINY = {
    **KIND.paper.sizes["full"],
    "sequences": 2,
    "inspector_steps": 1,
    "backfiller_steps": 1,
    "together_steps": 1,
    "orders": ["sjf"],
}
LOG_JOBS = 1400


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None) -> list[str]:
    """Two logs, one without estimates, one with jobs that cannot run; and as little learning as can be."""
    monkeypatch.setitem(KIND.paper.sizes, "quick", TINY)
    monkeypatch.setattr(inspectors, "PROMPT", replace(inspectors.PROMPT, episodes=1, n_epochs=1))
    evolved = replace(backfillers.EVOLVED, episodes=1, population=2, elite=1)
    monkeypatch.setattr(backfillers, "EVOLVED", evolved)
    changed_pair(monkeypatch, episodes=1, n_epochs=1, hidden=[4])
    exact, other = (
        default_workload(np.random.default_rng(seed), jobs=LOG_JOBS, load=1.2) for seed in range(2)
    )
    exact = replace(exact, columns={**exact.columns, "requested_time": exact.run_time})
    write_swf(exact, tmp_path / "lublin_256.swf")
    write_swf(other, tmp_path / "mine.swf")
    last = int(other.submit_time[-1])
    with (tmp_path / "mine.swf").open("a") as file:
        file.write(f"{swf_row(9001, last, -1, 4, 60)}\n{swf_row(9002, last, 5, 99_999, 60)}\n")
    return ["lublin_256.swf", "mine.swf"]


@pytest.mark.slow
@pytest.mark.pictures
def test_the_whole_of_it(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    outcome = cli("reproduce", "textbook-rules", *logs, "--quick", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[:3] == [
        (
            "Lublin-1: 1 400 jobs, the first 280 to learn from; 2 sequences of 256 of the rest to be tested "
            "on; requested times are run times"
        ),
        (
            "mine: 1 400 jobs, 1 skipped (run time unknown), 1 skipped (larger than the machine of 256 "
            "nodes), the first 280 to learn from; 2 sequences of 256 of the rest to be tested on"
        ),
        "8 agents, 2 sets of sequences with all their baselines",
    ]
    assert lines[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    page_is_whole(report)
    assert f"- {lines[1]}\n" in report
    assert str(tmp_path) not in report
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    curves = {f"curves-{kind}.png" for kind in ("inspector", "backfiller", "in-turn", "together")}
    assert pictures == {"ratios-Lublin-1.png", "ratios-mine.png", *curves}
    targets_are_what_was_measured(tmp_path / "out")

    again = cli("reproduce", "textbook-rules", *logs, "--quick", "--out", "out", "--workers", 1)
    assert "tasks are done" in again.out.splitlines()[3]
    assert (tmp_path / "out" / "report.md").read_text().split("## How they learned")[0] == (
        report.split("## How they learned")[0]
    ), "the same, from what is kept"


def page_is_whole(report: str) -> None:
    for heading in ("All logs at a glance", "Policies and tests", "Lublin-1", "mine", "Promises",
                    "How they learned", "Targets"):  # fmt: skip
        assert f"\n## {heading}\n" in report
    assert "**The quick version** (`--quick`)" in report
    assert "*SJF, EASY* and *SJF, EASY-SJF* are the same scheduler" in report
    assert "**On none of 2 logs does a trained agent" in report, "two sequences prove nothing"
    glance = report.split("## All logs at a glance")[1].split("\n## ")[0]
    for row in ("SJF, EASY-SJF", "F1, EASY-SJF", "EASY++", "*SJF, inspector*", "*SJF, inspector, greedy*",
                "*SJF, backfiller*", "*SJF, both, in turn*", "*SJF, both, together, greedy*",
                "SJF, random inspector", "SJF, random backfiller"):  # fmt: skip
        assert glance.count(f"\n| {row} |") == 2, "in both tables"
    for log in ("Lublin-1", "mine"):
        own = report.split(f"\n## {log}\n")[1].split("\n## ")[0]
        rows = [line.strip("| ").split(" | ") for line in own.splitlines() if line.startswith("| ")]
        means = {cells[0].strip("*"): cells[1] for cells in rows}
        assert means["SJF, EASY"] == means["SJF, EASY-SJF"], "one scheduler"


def targets_are_what_was_measured(out: Path) -> None:
    targets = {each["what"]: each for each in json.loads((out / "targets.json").read_text())}
    won, *longest = targets.values()
    assert won["what"].endswith("(needed: 3; tested: 2)")
    assert (won["ours"], won["met"]) == (0.0, False)
    seconds = {
        path.parent.name: json.loads(path.read_text())["seconds"]
        for path in out.glob("**/*/outcome.json")
        if not path.parent.name.startswith("runs-")
    }
    assert len(seconds) == 8

    def minutes(*endings: str) -> float:
        return max(value for name, value in seconds.items() if name.endswith(endings)) / 60

    assert [each["ours"] for each in longest] == pytest.approx(
        [minutes("-inspector", "-in-turn"), minutes("-backfiller"), minutes("-together")]
    )
    assert [each["met"] for each in longest] == [True, True, None]


def test_logs_that_do_not_do(cli: CLI, logs: list[str], tmp_path: Path) -> None:
    write_swf(default_workload(np.random.default_rng(9), jobs=500), tmp_path / "short.swf")
    found = cli("reproduce", "textbook-rules", "short.swf", "--quick", "--out", "out")
    assert found.line() == "short.swf: 1281 jobs or more are needed, found 500"
    (tmp_path / "lublin-1.swf").write_bytes((tmp_path / logs[0]).read_bytes())
    found = cli("reproduce", "textbook-rules", logs[0], "lublin-1.swf", "--quick", "--out", "out")
    assert found.line() == "lublin_256.swf: a log 'Lublin-1' is given twice"
    assert not (tmp_path / "out").exists()
