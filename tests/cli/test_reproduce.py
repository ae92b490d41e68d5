"""`reproduce` as a user types it: a published experiment in small, killed and gone on with, and what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.masked_ppo import environments
from hpcsimkit.reproductions.masked_ppo.own import Playing
from hpcsimkit.reproductions.papers import SYSTEMS
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.reproductions.sequences import SequenceSet
from tests.reproductions.beocat_months import write_months
from tests.waiting import until

KIND: Any = reproduction_named("masked-ppo")
TINY = {
    **KIND.paper.size(quick=True), "sets": [1, 2], "steps": 6144, "random_seeds": 2, "large_jobs": 40, "gpu_jobs": 3,
    "low": 30, "high": 60, "least": 20, "improved_steps": 1, "population": 4, "elite": 1, "episodes": 1, "copies": 1,
}  # fmt: skip
REPORT = ["report.md", "targets.json", "training-improved.png", "training-published.png", "utilisation-test.png",
          "utilisation-unseen.png", "wait-test.png", "wait-unseen.png"]  # fmt: skip


def small(monkeypatch: pytest.MonkeyPatch, **sizes: Any) -> None:
    changed = {"sizes": {**KIND.paper.sizes, "quick": {**TINY, **sizes}}}
    monkeypatch.setattr(KIND, "paper", KIND.paper.model_copy(update=changed))


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded_torch: None) -> list[str]:
    """Two months of a few days each, in the format of Beocat; and a scale that suits them."""
    small(monkeypatch)
    write_months(tmp_path)
    return ["march.csv", "april.csv"]


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.suffix in (".md", ".json", ".png"))


def numbers(report: Path) -> str:
    """The page, without when and by what it was made."""
    return report.read_text().split("## How it was made")[0]


# --- what it writes ----------------------------------------------------------------------------------------


def test_masked_ppo(cli, logs, tmp_path, monkeypatch) -> None:
    small(monkeypatch, steps=512)
    monkeypatch.setattr(environments, "SETTINGS", replace(environments.SETTINGS, n_steps=256, n_epochs=1))
    outcome = cli("reproduce", "masked-ppo", *logs, "--quick", "--out", "out", "--workers", 2)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("beocat: 410 jobs of 2 logs on 9 machines (496 cpus, 16 gpus")
    dropped = int(lines[1].split()[0])
    assert 20 < dropped < 80
    assert lines[2:4] == [
        "  3 days of the test (30 to 60 jobs)",
        "  3 unseen days from 2021-04-01 on, thinned to as many jobs",
    ]
    assert lines[4] == "7 agents, 2 sets of sequences with all their baselines"
    assert lines[5].startswith("73 tasks; ")
    assert lines[-1] == "results: out/report.md"
    assert files(tmp_path / "out") == sorted([*REPORT, "reproduction.json", "reproduction.run.json"])
    for picture in (tmp_path / "out").glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")

    targets = json.loads((tmp_path / "out" / "targets.json").read_text())
    assert [target["what"] for target in targets if target["what"] not in outcome.out] == []
    by_name = {target["what"]: target for target in targets}
    fcfs = by_name["FCFS: wait [min], 3 days (paper: 23 others)"]
    assert (fcfs["paper"], fcfs["met"]) == (2779.20, None)
    below = by_name["published: wait below BFBP's by 16.9 %, test days [%]"]
    assert below["met"] == (below["ours"] >= 16.9)
    assert below["spread"] > 0

    report = (tmp_path / "out" / "report.md").read_text()
    for row in ("random, K = 60", "SJF + best fit", "published, for wait, greedy", "18.44 %", "march.csv"):
        assert row in report
    assert str(tmp_path) not in report
    assert f"| FCFS | 2779.20 | {fcfs['ours']:.2f} |" in report


def test_masked_ppo_on_subsamples_alone(cli, logs, tmp_path, monkeypatch) -> None:
    small(monkeypatch, balanced_steps=1, balanced_population=2, balanced_elite=1, balanced_episodes=1)
    outcome = cli("reproduce", "masked-ppo", *logs, "--quick", "--subsamples", "--out", "out", "--workers", 1)
    assert (outcome.code, outcome.err) == (0, "")
    assert "2 agents, 1 set of sequences with all their baselines" in outcome.out
    report = (tmp_path / "out" / "report.md").read_text()
    assert "- 4 sequences: days with more than 60 jobs have 2 random subsamples each" in report
    for row in ("random, K = 100", "BFBP", "for both, before training"):
        assert report.count(f"\n| {row} | ") == 4 - ("both" in row), row  # three measures, and the heuristics
    wait, other, gap = json.loads((tmp_path / "out" / "targets.json").read_text())
    assert "SJF + best fit" in wait["what"] and "random, K = 100" in other["what"]
    assert (other["met"], gap["met"]) == (False, gap["ours"] >= -0.1)  # three days allow no low p-value
    assert files(tmp_path / "out") == [
        "report.md", "reproduction.json", "reproduction.run.json", "targets.json", "utilisation-subsamples.png",
        "wait-subsamples.png",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.pictures
def test_one_month_is_enough_and_equal_seeds_give_equal_numbers(cli, logs, tmp_path, monkeypatch) -> None:
    few = {"sets": [1], "steps": 2048, "random_seeds": 1, "large_jobs": 20, "gpu_jobs": 1}
    small(monkeypatch, **few, low=10, high=50, least=10)
    for place, seed in (("one", 7), ("two", 7), ("three", 8)):
        flags = ["--quick", "--out", place, "--seed", seed, "-q", "--workers", 2]
        assert cli("reproduce", "masked-ppo", logs[0], *flags) == (0, "", "")
    one, two, three = (numbers(tmp_path / name / "report.md") for name in ("one", "two", "three"))
    assert one == two != three
    assert "Agents *improved*: see run times to be expected" in one
    assert "improved, for wait, greedy" in one.split("Table II")[1], (
        "in all tables, whatever they are trained for"
    )
    assert (tmp_path / "one" / "training-improved.png").exists()
    what = [target["what"] for target in json.loads((tmp_path / "one" / "targets.json").read_text())]
    assert "improved: wait below BFBP's by 16.9 %, unseen days [%]" in what
    assert "improved: utilisation at most 0.1 points below BFBP's, test days [points]" in what
    assert (tmp_path / "one" / "tasks" / "improved-wait-01" / "last.hpcsim").exists()


# --- going on --------------------------------------------------------------------------------------------

PAUSING = f"""
import sys, time
from hpcsimkit.agents.training import trainer
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.run import main
trainer.SECONDS_BETWEEN_CHECKPOINTS = 0.0
write = trainer.Trainer._write
trainer.Trainer._write = lambda self, folder: (write(self, folder), time.sleep(5))
kind = reproduction_named("masked-ppo")
kind.paper = kind.paper.model_copy(update={{"sizes": {{"full": {TINY!r}}}}})
main(sys.argv[1:])
"""
"""The command line in small; trainings pause at their first checkpoint, after their first round."""


def lines_of(file: Path) -> int:
    return len(file.read_text().splitlines())


def begun(
    tmp_path: Path, environment: dict[str, str], flags: list[str], rounds: int
) -> subprocess.Popen[str]:
    """A run that has written a checkpoint of a training after so many rounds, its former ones included."""
    process = subprocess.Popen(
        [sys.executable, "-c", PAUSING, *flags], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    curves = "killed/tasks/*/curve.csv"
    until(lambda: max(map(lines_of, tmp_path.glob(curves)), default=0) >= 1 + rounds, process)
    return process


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_killed_and_gone_on_bit_for_bit(cli, logs, tmp_path, environment) -> None:
    flags = ["reproduce", "masked-ppo", *logs, "--quick", "--workers", "2", "--out"]
    process = begun(tmp_path, environment, [*flags, "killed"], rounds=1)
    os.killpg(process.pid, signal.SIGKILL)  # the machine went down
    process.communicate()
    process = begun(tmp_path, environment, [*flags, "killed"], rounds=2)
    line = cli(*flags, "killed", "-q").line()
    assert line.startswith("killed: another run is writing there now (process ")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == "hpcsimkit: stopped; the same command goes on where it was\n"
    assert not list(tmp_path.glob("killed/tasks/*/outcome.json"))
    assert not (tmp_path / "killed" / "targets.json").exists()

    assert cli(*flags, "killed", "-q") == (0, "", "")
    assert cli(*flags, "straight", "-q") == (0, "", "")
    killed, straight = tmp_path / "killed", tmp_path / "straight"
    assert files(killed) == files(straight)
    assert (killed / "targets.json").read_bytes() == (straight / "targets.json").read_bytes()
    assert numbers(killed / "report.md") == numbers(straight / "report.md")
    for agent in ("published-wait-01", "published-utilisation-01"):
        one, other = (folder / "tasks" / agent / "last.hpcsim" for folder in (killed, straight))
        assert one.read_bytes() == other.read_bytes()
    assert "all 73 tasks are done" in cli(*flags, "killed").out


# --- what is wrong -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch"], "unknown system 'nosuch'; known: "),
        (["masked-pppo"], "unknown system 'masked-pppo'; nearest: masked-ppo"),
        (["masked-ppo"], "masked-ppo needs logs of Beocat, one or more months, as job tables (JobName, "),
        (["masked-ppo", "no.csv"], "no.csv: no such file"),
        (["masked-ppo", "x.csv"], "x.csv: jobs with Unix time as submit time are needed: a log of Beocat"),
        (["masked-ppo", "march.csv"], "march.csv: at least 2 days with 900 to 1100 jobs are needed, found 0"),
        (
            ["masked-ppo", "march.csv", "--workers", "0"],
            "--workers must be greater than or equal to 1, found 0",
        ),
        (["masked-ppo", "march.csv", "--seed", "-1"], "--seed must be greater than or equal to 0, found -1"),
        ([], "Missing argument 'SYSTEM'"),
    ],
)
def test_one_line(cli, logs, tmp_path, arguments, message) -> None:
    (tmp_path / "x.csv").write_text("ReqCPUs,ReqGPUs,ReqMem,ActualDuration,Submit\n4,1,5,60,0\n")
    assert message in cli("reproduce", *arguments).line()
    assert not (tmp_path / "results").exists()


def test_help_names_all_systems(cli) -> None:
    words = " ".join(cli("reproduce", "--help").out.split())
    assert (
        f"Name of the experiment: {', '.join(sorted(SYSTEMS))}; or path of a folder with plan.toml." in words
    )


def test_a_folder_with_something_else_in_it(cli, logs, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("")
    line = cli("reproduce", "masked-ppo", *logs, "--quick", "--out", "out").line()
    assert line == "out: a new folder, or one of masked-ppo, is needed; other files are in it"


def test_packages_that_are_not_installed(cli, logs, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # type: ignore[arg-type]
    assert cli("reproduce", "masked-ppo", *logs).line().startswith("training needs the package torch")


# --- the real log ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_authors_baselines_on_a_day_of_the_log(shared, tmp_path, monkeypatch) -> None:
    """Equal to the author's own code, its tie rule included, from the month's log on."""
    small(monkeypatch, sets=[], low=900, high=1100, least=10**9)
    found = KIND([shared / "traces" / "beocat-2021-05.csv.gz"], quick=True)
    beocat, contest = found.traces, found.contests[0]
    policies = {each.name: each for each in contest.contestants}
    summary = json.loads((shared / "refs/beocat/beocat_summary.json").read_text())
    (day,) = (day for day in beocat.test_days if str(day) == "2021-06-03")
    assert len(beocat.test_days) == 6
    for row, algorithm in (("FCFS", "fcfs"), ("SJF", "sjf"), ("Oracle SJF", "oracle"), ("BFBP", "bfbp")):
        scenarios = [
            each for each in beocat.test_sequences.scenarios if each.workload is beocat.test_days[day]
        ]
        outcome = Playing(policies[row], SequenceSet("day", scenarios)).run(tmp_path, lambda done: None)
        (wait,), (utilisation,) = outcome["wait"], outcome["utilisation"]
        (author,) = (
            each
            for each in summary
            if (each["input"], each["alg"]) == ("beocat_20210603_jobs.csv", algorithm)
        )
        assert wait * 60 == pytest.approx(author["avg_wait_s"], rel=1e-12)
        assert utilisation == pytest.approx(100 * author["util"], abs=0.01), row
