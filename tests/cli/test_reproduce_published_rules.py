"""`reproduce published-rules` as a user types it, on a small log."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.plans.plan import paper_files
from hpcsimkit.workloads import default_workload, write_swf
from tests.cli.conftest import CLI

TINY = {"seeds": 2, "orders": ["sjf"], "rlscheduler_orders": []}
TESTS = {
    "schedinspector": "sequences",
    "rlbackfilling": "published_sequences",
    "rlscheduler": "published_sequences",
}


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None) -> str:
    """A log, one of the papers' by its name."""
    monkeypatch.setitem(paper_files(PAPERS["published-rules"])[0].sizes, "quick", TINY)
    for paper, name in TESTS.items():
        monkeypatch.setitem(paper_files(PAPERS[paper])[0].sizes["full"], name, 2)
    write_swf(default_workload(np.random.default_rng(0), jobs=3100, load=0.6), tmp_path / "lublin-1.swf")
    return "lublin-1.swf"


@pytest.mark.usefixtures("few_rivals")
def test_the_whole_of_it(cli: CLI, log: str, tmp_path: Path) -> None:
    outcome = cli("reproduce", "published-rules", log, "--quick", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0] == "Lublin-1: 3 100 jobs, 256 nodes, with requested times of their own"
    assert lines[1] == "19 sets of sequences with all their baselines"
    assert lines[-1] == "results: out/report.md"
    report = (tmp_path / "out" / "report.md").read_text()
    for heading in ("Published numbers, computed again", "One rule a case", "One rule at a time",
                    "WFP3 and UNICEF, as coded and as meant", "Untrained policies",
                    "How much a seed matters", "Targets"):  # fmt: skip
        assert f"## {heading}\n" in report
    assert "| M4: the reservation is made once | FCFS + EASY | 10 |" in report
    assert "| 0, 0, 760, 60 | 0, 0, 500, 600 |" in report
    assert str(tmp_path) not in report
    pictures = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert pictures == {"rules.png", "seeds-Lublin-1-fcfs.png", "seeds-Lublin-1-sjf.png"}
    targets = {row["what"]: row for row in json.loads((tmp_path / "out" / "targets.json").read_text())}
    inspector = targets["SchedInspector, table 4, Lublin-1: numbers equal to the digit"]
    assert (inspector["paper"], inspector["ours"], inspector["met"]) == (1.0, 0.0, False)
    assert sum(what.startswith("M") and row["met"] for what, row in targets.items()) == 8

    rows = list(csv.DictReader((tmp_path / "out" / "effects.csv").read_text().splitlines()))
    head = next(
        row for row in rows
        if (row["code"], row["log"], row["order"], row["scheduler"]) == ("schedinspector", "Lublin-1", "sjf", "head anew")
    )  # fmt: skip
    base = next(
        row
        for row in rows
        if (row["log"], row["order"], row["scheduler"]) == ("Lublin-1", "sjf", "published")
    )
    means = float(head["mean_bounded_slowdown"]), float(base["mean_bounded_slowdown"])
    assert float(head["ratio"]) == pytest.approx(means[0] / means[1], rel=1e-4)
    assert float(head["difference"]) == pytest.approx(means[0] - means[1], rel=1e-2)


def test_logs_that_do_not_do(cli: CLI, log: str, tmp_path: Path) -> None:
    assert "lublin_256_new2" in cli("reproduce", "published-rules").line()
    write_swf(default_workload(np.random.default_rng(9), jobs=500), tmp_path / "short.swf")
    found = cli("reproduce", "published-rules", "short.swf", "--quick", "--out", "out")
    assert found.line() == "short.swf: 3072 jobs or more are needed, found 500"
    (tmp_path / "lublin_256.swf").write_bytes((tmp_path / log).read_bytes())
    found = cli("reproduce", "published-rules", log, "lublin_256.swf", "--quick", "--out", "out")
    assert found.line() == "lublin-1.swf: a log 'Lublin-1' is given twice"
