"""Where an agent differs from the heuristics, as `evaluate` says: classes of jobs, hours, choices; at every seat."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Simulation, Workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import Dense, SlotScores
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.seats import RandomAgent, Watched
from hpcsimkit.agents.spaces.encoders import QueueWindow, RequestsAndMachines
from hpcsimkit.agents.spaces.machine_encoders import MachineRows
from hpcsimkit.agents.spaces.masks import AcceptReject, JobMachine, Slots
from hpcsimkit.envs.interfaces import shape_of
from hpcsimkit.experiments.evaluation.choices import Choices
from hpcsimkit.experiments.parts.learner_parts import seated
from hpcsimkit.kernel.decision import Answering
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.metrics import measure
from hpcsimkit.workloads import default_workload, read_log

SHORTEST = SlotScores({"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)})
WITHIN = {"dispatch": "fcfs", "two-level": "fcfs", "placement": "fcfs+easy+first-fit"}
LARGE = Dense({"weight.0": np.eye(7)[[0, 2]] * [[0], [1]], "bias.0": np.array([0.1, 0])})
"""Rejects jobs on more than a tenth of the nodes."""


def agent_of(stage: str) -> Agent:
    """An agent for a seat; where its network is dense, each action has a score of its own."""
    encoder, mask, network = {
        "order": (QueueWindow(8), Slots(8), SHORTEST),
        "backfiller": (QueueWindow(8), Slots(8, decline=True), None),
        "inspector": (InspectorFeatures(), AcceptReject(), LARGE),
        "two-level": (QueueWindow(8), Slots(8), SHORTEST),
        "dispatch": (RequestsAndMachines(4, 3), JobMachine(4, 3), None),
        "placement": (MachineRows(3, 3), Slots(3), None),
    }[stage]
    inputs = int(np.prod(shape_of(encoder)))
    scores = np.random.default_rng(1).normal(size=(mask.actions, inputs))
    return Agent(
        encoder, mask, network or Dense({"weight.0": scores, "bias.0": np.zeros(mask.actions)}), stage,
        about={"training": {"policy": WITHIN.get(stage, "fcfs+easy")}},
    )  # fmt: skip


@pytest.fixture
def log(cli: Any, tmp_path: Path) -> Path:
    cli("generate", "lublin", "--nodes", 16, "--jobs", 400, "--load", 1.0, "-o", "x.swf", "-q")
    return tmp_path / "x.swf"


def where(folder: Path) -> list[dict[str, str]]:
    with (folder / "where.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("stage", ["order", "backfiller", "inspector", "two-level"])
def test_every_seat(cli, log, tmp_path, stage) -> None:
    agent_of(stage).save("agent.hpcsim")
    flags = ["--sequences", 6, "--jobs", 60, "-p", "saf+easy", "-m", "mean_wait_time", "--out", "e"]
    outcome = cli("evaluate", "agent.hpcsim", log, *flags)
    assert (outcome.code, outcome.err) == (0, "")
    said = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert list(said["metrics"]["mean_wait_time"]["policies"]) == [
        "agent",
        "random agent",
        "fcfs+easy",
        "saf+easy",
    ]
    assert said["behind"] == "fcfs+easy"
    choices = said["choices"]
    assert 0 < choices["differing"] <= choices["decisions"]
    assert stage == "backfiller" or not choices["declined"]
    rows = [row for row in where(tmp_path / "e") if row["by"] == "choice"]
    assert [row["label"] for row in rows][:2] == ["wait so far [s]", "requested time [s]"]
    assert len(rows) == (6 if stage == "inspector" else 4)
    if stage in ("order", "two-level"):  # it takes the shortest job
        assert float(rows[1]["difference"]) < 0
    if stage == "inspector":
        assert float(rows[2]["agent"]) > 0.1 > float(rows[2]["of_other"])
        assert "where they differ" in outcome.out


@pytest.mark.parametrize("stage", ["dispatch", "placement"])
def test_seats_of_machines(cli, tmp_path, stage) -> None:
    agent_of(stage).save("agent.hpcsim")
    (tmp_path / "three.csv").write_text(
        "MachineName,TotalCPUs,TotalGPUs,TotalMemory\na,8,2,64\nb,8,0,64\nc,8,0,64\n"
    )
    rng, lines = np.random.default_rng(0), ["ReqCPUs,ReqGPUs,ReqMem,ActualDuration,Submit"]
    for at in np.cumsum(rng.integers(0, 60, 120)):
        lines.append(f"{rng.integers(1, 9)},{rng.integers(0, 2)},1,{rng.integers(10, 1200)},{at}")
    (tmp_path / "day.csv").write_text("\n".join(lines) + "\n")
    flags = ["--machines", "three.csv", "--sequences", 4, "--jobs", 30, "-m", "mean_wait_time", "--out", "e"]
    outcome = cli("evaluate", "agent.hpcsim", "day.csv", *flags, "-p", "sjf+fitting")
    assert (outcome.code, outcome.err) == (0, "")
    said = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert said["behind"] == {"dispatch": "fcfs+fitting", "placement": WITHIN["placement"]}[stage]
    assert said["behind"] in said["metrics"]["mean_wait_time"]["policies"]
    assert said["choices"]["differing"] > 0
    assert {row["by"] for row in where(tmp_path / "e")} >= {"size", "run_time", "gpus", "choice"}


def test_an_agent_of_stable_baselines(cli, log, tmp_path) -> None:
    (tmp_path / "t.toml").write_text(
        f'log = "{log}"\nslots = 4\n[episodes]\njobs = 30\n[trainer]\nalgorithm = "sb3-ppo"\ntotal_timesteps = 64\n'
        "options = {n_steps = 32, batch_size = 32}\n[validation]\nwindows = 2\njobs = 30\n"
    )
    assert cli("train", "t.toml", "--out", "a", "-q").code == 0
    assert cli("evaluate", "a/best.hpcsim", log, "--sequences", 3, "--jobs", 30, "--out", "e", "-q") == (
        0,
        "",
        "",
    )
    said = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert said["choices"]["decisions"] > 0


def test_classes_add_up_to_the_difference(cli, log, tmp_path) -> None:
    """A single sequence, and the means of its classes from the breakdown of the schedules."""
    agent_of("order").save("agent.hpcsim")
    flags = [
        "--sequences",
        1,
        "--jobs",
        400,
        "-p",
        "saf+easy",
        "-m",
        "mean_bounded_slowdown",
        "--out",
        "e",
        "-q",
    ]
    assert cli("evaluate", "agent.hpcsim", log, *flags) == (0, "", "")
    seed = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    names = {"agent": "fcfs+easy+agent:agent.hpcsim", "saf+easy": "saf+easy"}
    results = {name: Simulation(read_log(log), make(policy)).run() for name, policy in names.items()}
    rows = [row for row in where(tmp_path / "e") if row["other"] == "saf+easy" and row["by"] != "choice"]
    assert {row["measure"] for row in rows} == {"mean_bounded_slowdown"}
    assert {row["by"] for row in rows} == {"size", "run_time", "hour"}, seed
    for by in ("size", "run_time", "hour"):
        tables = {name: breakdown(result, by) for name, result in results.items()}
        mine = [row for row in rows if row["by"] == by]
        assert [row["label"] for row in mine] == tables["agent"].index.tolist()
        for row in mine:
            own, other = (tables[name].loc[row["label"], "mean_bounded_slowdown"] for name in names)
            assert float(row["agent"]) == pytest.approx(own)
            assert float(row["difference"]) == pytest.approx(own - other)
            assert int(row["jobs"]) == tables["agent"].loc[row["label"], "jobs"]
        assert sum(float(row["share"]) for row in mine) == pytest.approx(1)
        total = sum(float(row["difference"]) * int(row["jobs"]) for row in mine) / 400
        whole = [measure(result)["mean_bounded_slowdown"] for result in results.values()]
        assert total == pytest.approx(whole[0] - whole[1])


# --- choices -----------------------------------------------------------------------------------------------


def test_choices_by_hand() -> None:
    """On one node a long job and a short one wait; the agent takes the second, the heuristic the first."""
    columns = {
        "submit_time": [0, 0, 5],
        "run_time": [50, 90, 10],
        "requested_time": [50, 90, 20],
        "nodes": [1, 1, 1],
    }

    class Last(Answering):
        def answer(self, decision: Any) -> int:
            return len(decision.options) - 1

    choices = Choices()
    policy = seated(make("fcfs"), Watched(Last(), choices), "order", None)
    result = Simulation(Workload(columns, machine_size=1), policy).run()
    assert result.start_time.tolist() == [100, 0, 90]
    own, others = [[0, 90], [0, 20], [85, 20]], [[0, 50], [5, 50], [90, 50]]  # wait so far, requested time
    assert choices.record() == {  # at t=0 job 2 instead of 1, at t=5 and t=90 job 3 instead of 1; then no choice
        "decisions": 3, "differing": 3, "declined": 0,
        "own": pytest.approx([*np.mean(own, axis=0), 1, 130 / 3]),
        "others": pytest.approx([*np.mean(others, axis=0), 1, 50]),
    }  # fmt: skip


def test_an_agent_like_the_heuristic_does_not_differ() -> None:
    class First(Answering):
        def answer(self, decision: Any) -> int:
            return decision.position(decision.default)

    choices = Choices()
    workload = default_workload(np.random.default_rng(0), jobs=100)
    result = Simulation(workload, seated(make("sjf+easy"), Watched(First(), choices), "order", None)).run()
    assert result.hash == Simulation(workload, make("sjf+easy")).run().hash
    assert choices.decisions > 0
    assert choices.record() == {
        "decisions": choices.decisions, "differing": 0, "declined": 0, "own": None, "others": None,
    }  # fmt: skip


@pytest.mark.parametrize("stage", ["order", "backfiller", "inspector"])
def test_watching_changes_nothing(stage: str) -> None:
    """Drawn actions, too: the random numbers are those of the agent alone."""
    workload, agent = default_workload(np.random.default_rng(0), jobs=150), agent_of(stage)
    agent.sample = True
    for holder in (agent, RandomAgent(agent.mask, decline=agent.decline)):
        policies = [seated(make("sjf+easy"), each, stage, 8) for each in (holder, Watched(holder, Choices()))]
        hashes = [Simulation(workload, policy, seed=3).run().hash for policy in policies]
        assert hashes[0] == hashes[1]
    assert External(decline=True).decline
