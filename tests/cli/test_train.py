"""`train` as a user types it: what it writes, going on after a kill, and everything that can be wrong."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.training import trainer
from hpcsimkit.experiments.console import number_text
from tests.waiting import until

TINY = """
[generate]
nodes = 16
jobs = 300
load = 1.1

[trainer]
total_timesteps = 512
episodes = 4
n_steps = 32
hidden = [8]
n_epochs = 1

[episodes]
jobs = 48

[validation]
windows = 2
every = 2
"""
"""Four rounds of 128 decisions, validated after the second and the fourth."""

FILES = [
    "best.hpcsim", "checkpoint.safetensors", "curve.csv", "last.hpcsim", "learning_curve.png",
    "learning_curve.svg", "provenance.json", "provenance.run.json", "training.toml",
]  # fmt: skip


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def without_rates(folder: Path) -> list[dict[str, str]]:
    with (folder / "curve.csv").open() as file:
        return [{**row, "steps_per_second": ""} for row in csv.DictReader(file)]


# --- what it writes ----------------------------------------------------------------------------------------


@pytest.mark.smoke
@pytest.mark.pictures
def test_a_training(cli, tiny, tmp_path) -> None:
    outcome = cli("train", tiny, "--out", "agent")
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("lublin-16: 300 jobs kept on 16 nodes")
    assert lines[-1] == "results: agent/best.hpcsim"
    folder = tmp_path / "agent"
    assert names(folder) == FILES
    assert names(tmp_path) == ["agent", "tiny.toml"]

    rows = without_rates(folder)
    assert [int(row["steps"]) for row in rows] == [128, 256, 384, 512]
    scores = [float(row["validation"]) for row in rows]
    assert [score == score for score in scores] == [False, True, False, True]
    record = json.loads((folder / "provenance.json").read_text())
    best = max(score for score in scores if score == score)
    assert record["best"] == pytest.approx(-best)  # a lower mean bounded slowdown is better
    simulators = json.loads((folder / "provenance.run.json").read_text())["simulators"]
    assert set(simulators) == {"simpy"}, "too few jobs for the other one"
    assert simulators["simpy"] >= 4
    begin = next(at for at, line in enumerate(lines) if line.startswith("mean_bounded_slowdown"))
    assert lines[begin].split() == ["mean_bounded_slowdown", "mean", "in", "validation"]
    table = [line.rsplit(None, 1) for line in lines[begin + 1 : begin + 4]]
    assert table == [
        [f"best agent, after {record['best_after_steps']} steps", number_text(record["best"])],
        ["fcfs+easy", number_text(record["baseline"])],
        ["random agent", number_text(record["chance"])],
    ]
    assert len({record["best"], record["baseline"], record["chance"]}) == 3

    learned, verdict = record["learned"], lines[begin + 4 : -1]
    of = f"choices: {learned['choices']} of {number_text(learned['decisions'])} decisions; "
    assert verdict[0].startswith(of)
    assert verdict[1].startswith("not shown to have learned: mean reward in validation "), "of two windows"
    assert learned["reward"] == pytest.approx(-record["best"], rel=0.05), "what it earns is the metric"
    assert learned["rivals"]["random agent"]["reward"] == pytest.approx(-record["chance"], rel=0.05)
    asked = [float(row["agreement"] or "nan") for row in rows]
    assert [share == share for share in asked] == [False, True, False, True]
    best_row = rows[scores.index(best)]
    assert learned["shares"]["evenness"] == pytest.approx(float(best_row["evenness"]))

    agent = Agent.load(folder / "best.hpcsim")
    assert agent.about is not None
    assert agent.about["steps"] == record["best_after_steps"]
    about = agent.about["training"]
    assert (about["policy"], about["slots"], about["metric"]) == ("fcfs+easy", 16, "mean_bounded_slowdown")
    assert [about[part][0]["jobs"] for part in ("training", "validation")] == [240, 60]
    assert str(tmp_path) not in (folder / "best.hpcsim").read_bytes().decode("latin-1")
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert "mean bounded slowdown" in (folder / "learning_curve.svg").read_text()
    assert about["chance"] == record["chance"]


def test_the_saved_file_trains_the_same_again(cli, tiny, tmp_path) -> None:
    cli("train", tiny, "--out", "first", "--seed", 3, "--steps", 300, "-q")
    saved = tomllib.loads((tmp_path / "first" / "training.toml").read_text())
    assert (saved["seed"], saved["trainer"]["total_timesteps"], saved["trainer"]["clip_range"]) == (
        3,
        300,
        0.2,
    )
    assert cli("train", "first/training.toml", "--out", "second", "-q") == (0, "", "")
    assert cli("train", "first/training.toml", "--out", "other", "--seed", 4, "-q") == (0, "", "")
    first, second, other = (tmp_path / name for name in ("first", "second", "other"))
    for file in ("best.hpcsim", "last.hpcsim", "training.toml"):
        assert (first / file).read_bytes() == (second / file).read_bytes()
    assert without_rates(first) == without_rates(second) != without_rates(other)


@pytest.mark.parametrize("algorithm", ["a2c", "pg", "dql", "maskable-ppo"])
def test_algorithms(cli, tmp_path, algorithm) -> None:
    of_its_own = {"dql": "begin = 64\n", "maskable-ppo": "[trainer.options]\nn_steps = 32\n"}
    text = TINY.replace("n_steps = 32\n", "").replace("n_epochs = 1\n", of_its_own.get(algorithm, ""))
    (tmp_path / "t.toml").write_text(text.replace("total_timesteps = 512", f"algorithm = '{algorithm}'"))
    assert cli("train", "t.toml", "--steps", 256, "--out", "agent", "-q") == (0, "", "")
    assert Agent.load(tmp_path / "agent" / "best.hpcsim").about["algorithm"] == algorithm  # type: ignore[index]
    assert cli("train", "agent/training.toml", "--out", "again", "-q") == (0, "", "")
    assert without_rates(tmp_path / "agent") == without_rates(tmp_path / "again")


def test_a_log_and_a_place_by_default(cli, tiny, tmp_path) -> None:
    cli("generate", "lublin", "--nodes", 16, "--jobs", 1400, "--load", 0.9, "-o", "x.swf", "-q")
    outcome = cli("train", "x.swf", "--steps", 1, "-q")
    assert (outcome.code, outcome.err) == (0, "")
    assert names(tmp_path / "results" / "x-ppo") == FILES
    saved = tomllib.loads((tmp_path / "results" / "x-ppo" / "training.toml").read_text())
    assert saved["log"] == str(tmp_path / "x.swf")
    assert len(saved["sha256"]) == 64


def test_paths_are_relative_to_the_file(cli, tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    for name, seed in (("a", 1), ("b", 2), ("c", 3)):
        flags = ["--nodes", 16, "--jobs", 200, "--load", 1.1, "--seed", seed]
        cli("generate", "lublin", *flags, "-o", f"deep/{name}.swf", "-q")
    text = TINY[TINY.index("[trainer]") :] + 'log = "c.swf"\n'
    (tmp_path / "deep" / "t.toml").write_text('logs = ["a.swf", "b.swf"]\n' + text)
    assert cli("train", "deep/t.toml", "--steps", 256, "--out", "agent", "-q") == (0, "", "")
    saved = tomllib.loads((tmp_path / "agent" / "training.toml").read_text())
    assert saved["logs"] == [str(tmp_path / "deep" / f"{name}.swf") for name in "ab"]
    about = json.loads((tmp_path / "agent" / "provenance.json").read_text())
    assert [part["name"] for part in about["training"]] == ["a", "b"]
    assert [(part["name"], part["jobs"]) for part in about["validation"]] == [("c", 200)]
    assert cli("train", "agent/training.toml", "--out", "again", "-q") == (0, "", "")
    assert without_rates(tmp_path / "agent") == without_rates(tmp_path / "again")


def test_broken_promises_cost(cli, tiny, tmp_path) -> None:
    """The seat of the backfiller, where anything that fits may be started; the first round is the same."""
    paid, parts = {}, 'stage = "backfiller"\npolicy = "fcfs+greedy"\nslots = 8\n' + TINY
    for penalty in (0.0, 100.0):
        reward = f'name = "TimelyImprovement"\nbaseline = "fcfs+easy"\nkind = "win-loss"\npenalty = {penalty}'
        tiny.write_text(f'{parts}[encoder]\nname = "Candidates"\n[reward]\n{reward}\n')
        assert cli("train", tiny, "--out", f"agent-{penalty}", "-q") == (0, "", "")
        with (tmp_path / f"agent-{penalty}" / "curve.csv").open() as file:
            paid[penalty] = float(next(csv.DictReader(file))["reward"])
    assert -1 <= paid[0.0] <= 1
    assert paid[100.0] < paid[0.0] - 10, "in every tenth episode at least one is broken"
    tiny.write_text(tiny.read_text().replace("penalty = 100.0", "penalty = -1.0"))
    line = cli("train", tiny, "--out", "agent").line()
    assert line.endswith("reward.penalty must be greater than or equal to 0, found -1.0")


def test_own_parts(cli, tiny, tmp_path) -> None:
    (tmp_path / "myparts.py").write_text(
        "from hpcsimkit.agents.spaces.encoders import QueueWindow\n"
        "from hpcsimkit.agents.spaces.rewards import MinusMeanWait\n"
        "class Seen(QueueWindow):\n    pass\n"
        "class Paid(MinusMeanWait):\n    pass\n"
    )
    own = '[encoder]\nname = "myparts:Seen"\ntime_scale = 3600.0\n[reward]\nname = "myparts:Paid"\nscale = 60.0\n'
    tiny.write_text(TINY + own)
    assert cli("train", tiny, "--allow-code", "myparts", "--out", "agent", "-q") == (0, "", "")
    saved = tomllib.loads((tmp_path / "agent" / "training.toml").read_text())
    assert saved["import_from"] == str(tmp_path)
    assert saved["reward"] == {"name": "myparts:Paid", "scale": 60.0}


EPISODES = """
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.envs.interfaces import Encoder, Episodes, Mask, Reward

class Busiest(Episodes):
    def __init__(self, episodes, among=4):
        self.episodes, self.among = episodes, among

    def sample(self, rng):
        drawn = [self.episodes.sample(rng) for _ in range(self.among)]
        return max(drawn, key=lambda scenario: scenario.workload.offered_load())

class Broken(Episodes):
    def sample(self, rng):
        return 1 / 0

class Nothing(Episodes):
    def sample(self, rng):
        return None

class Unsampled(Episodes):
    pass

class Unbound(Encoder):
    shape = (3,)

class Unwritten(Mask):
    actions = 16

class Untaken(Reward):
    pass
"""


def test_own_episodes(cli, tiny, tmp_path) -> None:
    (tmp_path / "mine.py").write_text(EPISODES)
    named = '[episodes]\nname = "mine.py:Busiest"\namong = {}\n'
    for among in (1, 3):
        tiny.write_text(TINY.replace("[episodes]\n", named.format(among)))
        assert cli("train", tiny, "--steps", 128, "--out", f"of{among}", "--allow-code", "mine.py", "-q") == (
            0,
            "",
            "",
        )
    saved = tomllib.loads((tmp_path / "of3" / "training.toml").read_text())
    assert saved["episodes"] == {"name": "mine.py:Busiest", "jobs": 48, "warmup": 0, "among": 3}
    assert saved["import_from"] == str(tmp_path)
    assert cli("train", "of3/training.toml", "--out", "again", "--allow-code", "mine.py", "-q") == (0, "", "")
    of1, of3, again = (without_rates(tmp_path / name) for name in ("of1", "of3", "again"))
    assert of1 != of3 == again
    tiny.write_text(TINY)
    assert cli("train", tiny, "--steps", 128, "--out", "windows", "-q") == (0, "", "")
    assert without_rates(tmp_path / "windows") == of1  # of one window drawn it is the busiest


def test_other_rules(cli, tiny, tmp_path) -> None:
    assert cli("train", tiny, "--steps", 128, "--semantics", "dirlab", "--out", "a", "-q") == (0, "", "")
    assert tomllib.loads((tmp_path / "a" / "training.toml").read_text())["semantics"] == "dirlab"


def test_machines(cli, tmp_path) -> None:
    (tmp_path / "machines.csv").write_text(
        "MachineName,TotalCPUs,TotalGPUs,TotalMemory\na,8,0,64000\nb,8,2,64000\nc,8,2,64000\n"
    )
    rows = [
        f"{1 + n % 4},{n % 5 == 0:d},1000,{60 + n * 37 % 500},{600 + n * 37 % 500},{n * 20}"
        for n in range(300)
    ]
    (tmp_path / "day.csv").write_text(
        "ReqCPUs,ReqGPUs,ReqMem,ActualDuration,ReqDuration,Submit\n" + "\n".join(rows) + "\n"
    )
    seat = 'log = "day.csv"\nmachines = "machines.csv"\nstage = "dispatch"\nslots = 4\n'
    reward = '[reward]\nname = "MinusMeanWait"\nscale = 60.0\n'
    (tmp_path / "t.toml").write_text(seat + TINY[TINY.index("[trainer]") :] + reward)
    outcome = cli("train", "t.toml", "--out", "agent", "-q")
    assert (outcome.code, outcome.err) == (0, "")
    assert Agent.load(tmp_path / "agent" / "best.hpcsim").encoder.machines == 3  # type: ignore[attr-defined]
    where = ["--machines", "machines.csv", "day.csv"]
    flags = ["--sequences", 3, "--jobs", 40, "-p", "bfbp", "-p", "sjf+fitting", "--out", "e"]
    outcome = cli("evaluate", "agent/best.hpcsim", *where, *flags)
    assert (outcome.code, outcome.err) == (0, "")
    assert "agent/best.hpcsim: on the dispatch seat of fcfs, takes the best action" in outcome.out
    compared = ["-p", "agent:agent/best.hpcsim", "-p", "bfbp", "--no-report", "--out", "c", "-q"]
    assert cli("compare", *where, *compared) == (0, "", "")
    (tmp_path / "two.csv").write_text(
        "MachineName,TotalCPUs,TotalGPUs,TotalMemory\na,8,2,64000\nb,8,2,64000\n"
    )
    line = cli("evaluate", "agent/best.hpcsim", "--machines", "two.csv", "day.csv", *flags[:-1], "two").line()
    assert line.startswith(
        "agent/best.hpcsim: RequestsAndMachines(slots=4, machines=3) needs 3 machines, found Machines"
    )


# --- going on --------------------------------------------------------------------------------------------


def often() -> None:
    """Write a checkpoint after every round."""
    trainer.SECONDS_BETWEEN_CHECKPOINTS = 0.0


def killed_after(checkpoints: int) -> None:
    """Die of ``kill -9`` when so many checkpoints are written, one after every round."""
    often()
    write, written = trainer.Trainer._write, []

    def last(self: Any, folder: Path) -> None:
        write(self, folder)
        written.append(folder)
        if len(written) == checkpoints:
            os.kill(os.getpid(), signal.SIGKILL)

    trainer.Trainer._write = last  # type: ignore[method-assign]


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_killed_and_gone_on_bit_for_bit(cli, start, tiny, tmp_path) -> None:
    flags = ["--steps", "1280", "-q", "--out"]
    assert cli("train", tiny, *flags, "straight").code == 0
    killed = start("train", "tiny.toml", *flags, "killed", before=partial(killed_after, 5))
    _, err = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, err
    unfinished = tmp_path / "killed.partial"
    assert 1 <= len(without_rates(unfinished)) < 10
    assert not (tmp_path / "killed").exists()

    line = cli("train", tiny, *flags, "killed").line()
    assert line == (
        f"{unfinished}: an interrupted training is there; --resume goes on with it, else choose another --out"
    )
    line = cli("train", tiny, *flags, "killed", "--resume", "--seed", 1).line()
    assert line == (
        f"{unfinished}/training.toml: an interrupted training of other keys is there: seed was 0, is 1; "
        "choose another --out"
    )
    assert (
        "trainer.total_timesteps was 1280, is 9"
        in cli("train", tiny, "--steps", 9, "--out", "killed", "--resume").line()
    )
    assert cli("train", tiny, *flags, "killed", "--resume") == (0, "", "")
    assert not unfinished.exists()
    straight, resumed = tmp_path / "straight", tmp_path / "killed"
    assert names(straight) == names(resumed) == FILES
    assert len(without_rates(straight)) == 10
    assert without_rates(straight) == without_rates(resumed)
    for file in ("best.hpcsim", "last.hpcsim", "training.toml"):
        assert (straight / file).read_bytes() == (resumed / file).read_bytes()
    assert cli("train", tiny, *flags, "killed", "--resume") == (0, "", ""), "finished"
    line = cli("train", tiny, *flags, "killed", "--resume", "--seed", 1).line()
    assert line == f"{resumed}: a complete training is in it; without --resume another one begins"
    assert cli("train", tiny, *flags, "killed", "--resume", "--overwrite", "--seed", 1) == (0, "", "")


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_cma_es_killed_and_gone_on_bit_for_bit(cli, start, tiny, tmp_path) -> None:
    pytest.importorskip("cma", reason="needs the extra [learn]: pip install 'hpcsimkit[learn]'")
    table = "[trainer]\nalgorithm = 'cma-es'\ntotal_timesteps = 2000\nepisodes = 1\npopulation = 4\n"
    tiny.write_text(TINY[: TINY.index("[trainer]")] + table + TINY[TINY.index("[episodes]") :])
    assert cli("train", tiny, "-q", "--out", "straight") == (0, "", "")
    killed = start("train", "tiny.toml", "-q", "--out", "killed", before=partial(killed_after, 3))
    _, err = killed.communicate()
    assert killed.returncode == -signal.SIGKILL, err
    rounds = len(without_rates(tmp_path / "killed.partial"))
    assert cli("train", tiny, "-q", "--out", "killed", "--resume") == (0, "", "")
    assert rounds < len(without_rates(tmp_path / "killed"))
    for file in ("best.hpcsim", "last.hpcsim", "training.toml"):
        assert (tmp_path / "straight" / file).read_bytes() == (tmp_path / "killed" / file).read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="sends signals")
def test_ctrl_c(start, tiny, tmp_path) -> None:
    process = start("train", "tiny.toml", "--steps", 1_000_000, before=often)
    until((tmp_path / "results" / "lublin-16-ppo.partial" / "checkpoint.safetensors").exists, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == (
        "hpcsimkit: stopped; the last checkpoint is kept; to go on: the same command with --resume "
        "--out results/lublin-16-ppo\n"
    )


def test_ctrl_c_before_the_first_checkpoint(cli, tiny, tmp_path, monkeypatch) -> None:
    def stop(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(trainer.Trainer, "_reports", stop)
    outcome = cli("train", tiny, "--out", "agent", "-q")
    assert (outcome.code, outcome.only_line()) == (130, "stopped")
    assert names(tmp_path) == ["tiny.toml"]


def test_resume_without_a_checkpoint_begins(cli, tiny, tmp_path) -> None:
    assert cli("train", tiny, "--out", "agent", "--resume", "-q") == (0, "", "")


# --- the disk --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["checkpoint.safetensors", "best.hpcsim"])
def test_a_full_disk_during_a_checkpoint(cli, tiny, tmp_path, monkeypatch, file) -> None:
    """The third time a file is written there is no room: what was there stays, and is gone on from."""
    assert cli("train", tiny, "--out", "straight", "-q").code == 0
    monkeypatch.setattr(trainer, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    opened, written = Path.open, []

    def full(path: Path, mode: str = "r", *arguments: object, **options: object) -> object:
        if path.name.startswith(f".{file}.") and mode == "xb":
            written.append(path)
            if len(written) == 3:
                with opened(path, mode) as half:
                    half.write(b"half")
                raise OSError(28, "No space left on device", str(path))
        return opened(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    line = cli("train", tiny, "--out", "agent", "-q").line()
    assert line == (
        f"{tmp_path}/agent.partial/{file}: cannot be written: No space left on device; "
        "the last checkpoint is kept; to go on: the same command with --resume --out agent"
    )
    assert not list((tmp_path / "agent.partial").glob(".*.tmp"))
    assert cli("train", tiny, "--out", "agent", "-q", "--resume") == (0, "", "")
    assert without_rates(tmp_path / "straight") == without_rates(tmp_path / "agent")
    for name in ("best.hpcsim", "last.hpcsim"):
        assert (tmp_path / "straight" / name).read_bytes() == (tmp_path / "agent" / name).read_bytes()


def test_a_disk_that_is_full_at_once(cli, tiny, tmp_path, monkeypatch) -> None:
    opened = Path.open

    def full(path: Path, mode: str = "r", *arguments: object, **options: object) -> object:
        if mode == "xb":
            raise OSError(28, "No space left on device", str(path))
        return opened(path, mode, *arguments, **options)

    monkeypatch.setattr(Path, "open", full)
    line = cli("train", tiny, "--out", "agent", "-q").line()
    assert line == f"{tmp_path}/agent.partial/training.toml: cannot be written: No space left on device"
    assert names(tmp_path) == ["tiny.toml"]


def test_a_folder_that_holds_something_else(cli, tiny, tmp_path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("years of work")
    line = cli("train", tiny, "--out", "thesis", "-q").line()
    assert line == f"{tmp_path}/thesis: a new, empty or results folder is needed; other files are in it"


# --- wrong input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed = 1\nslot = 3\n", "t.toml:2: slot: unknown key; nearest: slots"),
        ("seed = -1\n", "t.toml:1: seed must be greater than or equal to 0, found -1"),
        ("nodes = 0\n", "t.toml:1: nodes must be greater than or equal to 1, found 0"),
        ("workers = 2\n", "t.toml:1: workers: unknown key"),
        ("policies = ['fcfs']\n", "t.toml:1: policies: unknown key; nearest: policy"),
        ("stage = 'head'\n", "t.toml:1: stage must be 'order', 'inspector', 'placement', 'backfiller', 'preemptor', 'gate', 'tester', 'dispatch' or 'two-level'"),
        ("policy = 'fcfs+esay'\n", "t.toml:1: policy: unknown policy 'esay' in 'fcfs+esay'; nearest: easy"),
        ("policy = 'bfbp'\n", "t.toml:1: policy: BestFitBinPacking() has no order seat: a pipeline is needed"),
        ("stage = 'dispatch'\npolicy = 'fcfs+easy'\n", "t.toml:2: policy: behind a dispatch seat stands an order only"),
        ("stage = 'dispatch'\n", "t.toml: encoder.name: RequestsAndMachines needs machines, and none are given"),
        ("stage = 'inspector'\n[generate]\njobs = 2000\n[encoder]\nname = 'QueueWindow'\n", "cannot do with the inspector seat: a decision among jobs is needed, found Decision("),
        ("train_share = 1.5\n", "t.toml:1: train_share must be less than or equal to 1, found 1.5"),
        ("logs = ['a']\nlog = 'b'\n", "t.toml: one of 'log', 'logs' and 'generate' is needed, several are given"),
        ("[generate]\nnode = 4\n", "t.toml:2: generate.node: unknown key; nearest: nodes"),
        ("[episodes]\njob = 4\n", "t.toml:2: episodes.job: unknown key; nearest: jobs"),
        ("[episodes]\nname = 'Windows'\n", "t.toml:2: episodes.name: unknown episodes 'Windows'; your own: module:Name"),
        ("[episodes]\nname = 'nosuch:Mine'\n", "t.toml:2: episodes.name: 'nosuch:Mine' cannot be imported"),
        ("[episodes]\nname = 'parts.py:Busiest'\namon = 2\n", "t.toml:3: episodes.amon: unknown key; nearest: among"),
        ("[episodes]\nname = 'parts.py:Broken'\n", "the episodes Broken, in Broken: ZeroDivisionError: division by zero ("),
        ("[episodes]\nname = 'parts.py:Nothing'\n", "Nothing(): a Scenario is needed of each episode, found None"),
        ("[episodes]\nname = 'parts.py:Unsampled'\n", "Unsampled needs a method sample(rng)"),
        ("[reward]\nname = 'parts.py:Untaken'\n", "Untaken needs a method take(system)"),
        ("[encoder]\nname = 'parts.py:Unbound'\n", "Unbound needs a method bind(system)"),
        ("[mask]\nname = 'parts.py:Unwritten'\n", "Unwritten needs a method write(decision, out)"),
        ("[validation]\nwindow = 4\n", "t.toml:2: validation.window: unknown key; nearest: windows"),
        ("[validation]\nmetric = 'mean_wait'\n", "t.toml:2: validation.metric: unknown metric 'mean_wait'; nearest: mean_wait_time"),
        ("[validation]\nmetric = 'jobs'\n", "t.toml:2: validation.metric: metric 'jobs' has no better direction; choose one with a direction"),
        ("[trainer]\ntotal_timesteps = 9\nepoch = 3\n", "t.toml:3: trainer.epoch: unknown key; nearest: n_epochs"),
        ("[trainer]\nalgorithm = 'pppo'\n", "t.toml:2: trainer.algorithm: unknown algorithm 'pppo'; nearest: ppo"),
        ("[trainer]\nalgorithm = 3\n", "t.toml:2: trainer.algorithm: a name is needed, found 3"),
        ("[trainer]\nalgorithm = [1]\n", "t.toml:2: trainer.algorithm: a name is needed, found [1]"),
        ("[encoder]\nname = [1]\n", "t.toml:2: encoder.name: a name is needed, found [1]"),
        ("[trainer]\nalgorithm = 'a2c'\nclip_range = 0.1\n", "t.toml:3: trainer.clip_range: unknown key"),
        ("[trainer]\nhidden = [8, 0]\n", "t.toml:2: trainer.hidden[1] must be greater than or equal to 1, found 0"),
        ("[trainer]\nkind = 'deep'\n", "t.toml:2: trainer.kind must be 'dense' or 'slots', found 'deep'"),
        ("[trainer]\ngamma = 1.1\n", "t.toml:2: trainer.gamma must be less than or equal to 1, found 1.1"),
        ("[trainer]\nlearning_rate = nan\n", "t.toml:2: trainer.learning_rate must be a finite number, found nan"),
        ("[trainer]\nclip_range_vf = 0.0\n", "t.toml:2: trainer.clip_range_vf must be greater than 0, found 0.0"),
        ("[trainer]\nvalue_learning_rate = 'x'\n", "t.toml:2: trainer.value_learning_rate must be a valid number, found 'x'"),
        ("[trainer]\nnormalise = 'never'\n", "t.toml:2: trainer.normalise must be 'round' or 'batch', found 'never'"),
        ("[trainer]\ndevice = 'abacus'\n", "t.toml:2: trainer.device: cpu or cuda is needed, found 'abacus'"),
        ("[encoder]\nname = 'QueueWindw'\n", "t.toml:2: encoder.name: unknown encoder 'QueueWindw'; nearest: QueueWindow"),
        ("[encoder]\nname = 'nosuchmodule:Nobody'\n", "t.toml:2: encoder.name: 'nosuchmodule:Nobody' cannot be imported"),
        ("[encoder]\nname = 'math:pi'\n", "t.toml:2: encoder.name: 'math:pi' needs a subclass of Encoder, found 3.14"),
        ("[encoder]\ntime_scal = 3.0\n", "t.toml:2: encoder.time_scal: unknown key"),
        ("[mask]\ndecline = 1\n", "t.toml:2: mask.decline must be a valid boolean, found 1"),
        ("[reward]\nname = 'MinusMeanWait'\nscale = 0.0\n", "t.toml:3: reward.scale must be greater than 0, found 0.0"),
        ("[reward]\nname = 'Improvement'\n", "t.toml:1: reward: Improvement needs the key 'baseline'"),
        ("[reward]\nname = 'Improvement'\nbaseline = 'esay'\n", "t.toml:3: reward.baseline: unknown policy 'esay'"),
        ("jobs = 100\n", "lublin-256: windows of 256 jobs are needed for training, found 80 jobs"),
        ("jobs = 600\n", "lublin-256: windows of 256 jobs are needed for validation, found 120 jobs"),
        ("jobs = 600\n[validation]\npart = [500, 700]\n", "validation.part needs [first, end] with 0 < first < end <= 600"),
        ("jobs = 600\ntrain_share = 0.9\n[validation]\npart = [300, 600]\n", "validation.part [300, 600] overlaps with the 540 jobs"),
        ("log = 'no.swf'\n", "no.swf: no such file"),
        ("seed = \n", "t.toml:1: not TOML: invalid value"),
    ],
)  # fmt: skip
def test_training_files_name_the_line(cli, tmp_path, text, message) -> None:
    (tmp_path / "t.toml").write_text(text)
    (tmp_path / "parts.py").write_text(EPISODES)
    consent = [
        word for code in sorted(set(re.findall(r"'([\w./]+):\w+'", text))) for word in ("--allow-code", code)
    ]
    assert message in cli("train", "t.toml", "--out", "agent", *consent).line()
    assert set(names(tmp_path)) - {"__pycache__"} == {"parts.py", "t.toml"}


def test_a_gpu_that_is_not_there(cli, tmp_path, monkeypatch) -> None:
    import torch

    (tmp_path / "t.toml").write_text("[trainer]\ndevice = 'cuda'\n")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    line = cli("train", "t.toml").line()
    assert line.startswith("t.toml:2: trainer.device: 'cuda' is not there: torch ")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    (tmp_path / "t.toml").write_text("[trainer]\ndevice = 'cuda:1'\n")
    line = cli("train", "t.toml").line()
    assert line.startswith("t.toml:2: trainer.device: 'cuda:1' is not there: torch ")
    assert line.endswith(" sees 1 GPU")
    (tmp_path / "t.toml").write_text("[trainer]\ndevice = 'cuda'\nalgorithm = 'maskable-ppo'\n")
    line = cli("train", "t.toml").line()
    assert line == "t.toml:2: trainer.device: maskable-ppo learns on the CPU only, found 'cuda'"
    assert names(tmp_path) == ["t.toml"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nosuch.toml"], "nosuch.toml: no such file"),
        (["nosuch.swf"], "nosuch.swf: no such file"),
        (["tiny.toml", "--algorithm", "x"], "--algorithm: unknown algorithm 'x'; known: ppo, "),
        (["tiny.toml", "--algorithm", "dql"], "trainer.n_steps: unknown key"),
        (["tiny.toml", "--steps", "0"], "--total-timesteps must be greater than or equal to 1, found 0"),
        (["tiny.toml", "--seed", "-1"], "--seed must be greater than or equal to 0, found -1"),
        (["tiny.toml", "--semantics", "x"], "--semantics must be 'textbook' or 'dirlab', found 'x'"),
        (["tiny.toml", "--nosuch"], "No such option: --nosuch"),
    ],
)
def test_flags_that_are_not_understood(cli, tiny, tmp_path, arguments, message) -> None:
    assert message in cli("train", *arguments).line()
    assert names(tmp_path) == ["tiny.toml"]


@pytest.mark.parametrize(("missing", "named"), [(["torch"], "package torch"), (["gymnasium", "safetensors"], "packages gymnasium, safetensors")])  # fmt: skip
def test_packages_that_are_not_installed(cli, tiny, tmp_path, monkeypatch, missing, named) -> None:
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)  # type: ignore[arg-type]
    line = cli("train", tiny).line()
    assert line == f"training needs the {named}: pip install 'hpcsimkit[rl]'"
    assert names(tmp_path) == ["tiny.toml"]


def test_help_loads_no_torch(command, environment, tmp_path) -> None:
    code = "import sys, hpcsimkit.run as r\ntry: r.main(['train', '--help'])\nexcept SystemExit: print(*sys.modules)"
    done = subprocess.run(
        [command[0], "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert not {"numpy", "torch", "gymnasium", "scipy"} & set(done.stdout.splitlines()[-1].split())
