"""Every option of a run changes the outcome of every command that simulates, as a key and as a flag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import typer

from hpcsimkit import Simulation, Workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.cli.flags import COMMAND_OPTIONS, OF_RUNS
from hpcsimkit.compiled.support import KNOWN_OPTIONS, obstacle
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.settings.run_table import RUN_KEYS
from hpcsimkit.jobs.columns import TIME_LIMIT
from hpcsimkit.kernel.event_order import EVENT_ORDERS, DirlabOrder
from hpcsimkit.kernel.setup import LONGEST, OPTIONS, Setup
from hpcsimkit.run import app
from tests.cli.conftest import CLI

POLICY = "random+hold-unfit"

SHORTEST = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}
"""Weights of an agent that prefers the shortest requested time."""

CHANGES: dict[str, object] = {
    "seed": 5,
    "walltime": "kill",
    "dependencies": True,
    "period": 900,
    "semantics": "dirlab",
    "locality": "apart.py:apart",
    "gates": "log",
    "licenses": "matlab:2",
    "failures": "mtbf=20000, repair=3000",
    "restart": "checkpoint=300, checkpoint_cost=90",
    "calendar": "calendar.toml",
    "begin_at": "6000, sjf",
    "simulator": "compiled",
}
"""Another value of each option."""

FILES: dict[str, tuple[tuple[str, ...], str]] = {
    "compare": (("compare", "x.toml", "--no-report"), "jobs/*.csv"),
    "sweep": (("sweep", "x.toml", "--no-report", "--axis", "load_factor=1"), "cells/*/jobs.parquet"),
    "validate": (("validate", "x.toml", "-p", POLICY), "validation.csv"),
    "predict": (("predict", "x.toml", "-p", POLICY, "--predictor", "last-two"), "predictions.csv"),
    "what-if": (("what-if", "x.toml", "-p", POLICY, "--set", "policy=sjf"), "what-if.csv"),
    "explain": (("explain", POLICY, "x.toml"), "explanation.csv"),
    "advise": (
        ("advise", "x.toml", "-p", POLICY, "--at", "9000", "--futures", "5", "--calibration", "0"),
        "windows.csv",
    ),
    "train": (("train", "t.toml"), "curve.csv"),
    "evaluate": (
        (
            *("evaluate", "shortest.hpcsim", "log.swf", "--machines", "machines.toml", "-p", "random+easy"),
            *("--sequences", "2", "--jobs", "20"),
        ),
        "evaluation.csv",
    ),
}
"""Arguments of each command that simulates, and the files that show the outcome."""

QUICK = ("sweep", "what-if", "explain")
"""Commands that are tested by default: one that compares, one that changes the cluster, one with an environment."""

NO_RUNS = {"describe", "policies", "parts", "plot", "generate lublin", "generate mimic"}
"""Commands that simulate nothing."""

APART = {
    "check": "simulates small workloads of its own",
    "reproduce": "takes the options of its plan",
    "learn": "needs weeks of jobs; its simulations are tested in tests/experiments/learn",
}
"""Commands that are not in `FILES`, with the reason."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    submit = np.repeat(np.cumsum(rng.integers(300, 1600, 15)), 4)  # simultaneous submissions
    lines = []
    for job in range(1, 61):
        run, nodes = int(rng.integers(1, 2000)), int(rng.integers(1, 9))
        before, think = (job - 2, 60) if job > 2 and job % 3 == 0 else (-1, -1)
        lines.append(
            f"{job} {submit[job - 1]} 30 {run} {nodes} -1 -1 {nodes} {max(1, int(run * rng.uniform(0.5, 3)))}"
            f" -1 1 {job % 4} -1 -1 -1 -1 {before} {think}\n"
        )
    (tmp_path / "log.swf").write_text("; MaxProcs: 8\n" + "".join(lines))
    (tmp_path / "apart.py").write_text(
        "def apart(job, seconds, allocation, cluster):\n    return 0.5 * seconds * (len(allocation.machines) - 1)\n"
    )
    (tmp_path / "machines.toml").write_text("[[machines]]\ncount = 4\ncpus = 2\n")
    (tmp_path / "calendar.toml").write_text(
        '[[calendar]]\nstart = 3000\nduration = 9000\nmachines = ["node1", "node2"]\n'
    )
    about = {"training": {"policy": "random+easy", "metric": "mean_wait_time"}}
    Agent(QueueWindow(8), Slots(8), SlotScores(SHORTEST), "order", about=about).save(
        tmp_path / "shortest.hpcsim"
    )
    machines = 'log = "log.swf"\nmachines = [{ count = 4, cpus = 2 }]\n'
    (tmp_path / "x.toml").write_text(f'{machines}policies = ["{POLICY}"]\n')
    (tmp_path / "t.toml").write_text(
        f'{machines}policy = "{POLICY}"\nslots = 4\ntrain_share = 0.5\n[episodes]\njobs = 20\n'
        '[validation]\nwindows = 1\n[trainer]\nalgorithm = "pg"\ntotal_timesteps = 40\n'
    )
    return tmp_path


def files_of(folder: Path, pattern: str) -> dict[str, bytes]:
    found = {file.name: file.read_bytes() for file in sorted(folder.glob(pattern))}
    assert found, f"{folder} has no {pattern}"
    return found


def outcome(cli: CLI, folder: Path, command: str, name: str, *flags: object) -> dict[str, bytes] | str:
    """The files of a command, or the line of its refusal."""
    arguments, pattern = FILES[command]
    done = cli(*arguments, "--out", name, "--allow-code", "apart.py", *flags)
    if done.code == 3:  # of a sweep, whose table has the reasons
        return done.out
    return done.line() if done.code else files_of(folder / name, pattern)


def with_key(folder: Path, command: str, key: str, value: object) -> None:
    """Put a key in front of the file of a command."""
    file = folder / ("t.toml" if command == "train" else "x.toml")
    text = str(value).lower() if isinstance(value, bool | int) else f'"{value}"'
    file.write_text(f"{key} = {text}\n{file.read_text()}")


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=[pytest.mark.slow] * (name not in QUICK)) for name in FILES]
)
def test_every_option_changes_the_outcome_or_is_refused(cli: CLI, folder: Path, command: str) -> None:
    plain = outcome(cli, folder, command, "plain")
    assert isinstance(plain, dict), plain
    original = {file: (folder / file).read_text() for file in ("x.toml", "t.toml")}
    for key, value in CHANGES.items():
        flag = f"--{key.replace('_', '-')}"
        flags = [flag] if value is True else [flag, value]
        by_flag = outcome(cli, folder, command, f"flag-{key}", *flags)
        by_key = by_flag  # `evaluate` takes no file of settings
        if command != "evaluate":
            with_key(folder, command, key, value)
            by_key = outcome(cli, folder, command, f"key-{key}")
        for file, text in original.items():
            (folder / file).write_text(text)
        if isinstance(by_flag, str):
            assert key in by_flag and isinstance(by_key, str) and key in by_key, (key, by_flag, by_key)
        else:
            assert by_key == by_flag, key
            assert by_flag != plain, f"{command}: {key} changes nothing"


def names_of_commands() -> Iterator[str]:
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        inner = getattr(command, "commands", None)
        yield from (f"{name} {each}" for each in inner) if inner else (name,)


def test_every_command_is_tested_or_simulates_nothing() -> None:
    assert {*names_of_commands()} == {*FILES, *NO_RUNS, *APART}


def test_all_commands_that_simulate_have_all_options() -> None:
    taking = {command.__name__.replace("_", "-"): options for command, options in COMMAND_OPTIONS.items()}
    for name in (*FILES, "learn"):
        assert set(RUN_KEYS) <= taking[name].keys(), name


def test_the_options_are_those_of_the_kernel() -> None:
    assert {*CHANGES} == {*RUN_KEYS} == {*OF_RUNS}
    assert {*OPTIONS} == {each.name for each in fields(Setup)}
    assert {*OPTIONS["event_order"].choices} == {*EVENT_ORDERS}
    assert LONGEST == TIME_LIMIT
    assert {*KNOWN_OPTIONS} <= {*OPTIONS}


@pytest.mark.parametrize("name", ["seed", "walltime", "dependencies", "period", "simulator"])
def test_plain_options_are_checked(name: str) -> None:
    for wrong in ("x", -1, 1.5, [], True if name != "dependencies" else "true"):
        with pytest.raises(UsageError, match=f"{name} needs {re.escape(OPTIONS[name].needs)}, found"):
            replace(Setup(), **{name: wrong}).check()


def test_results_are_identified_by_what_decides_the_schedule() -> None:
    order = DirlabOrder()
    assert Setup(seed=3, simulator="compiled").record == Setup().record
    assert Setup(period=60, event_order=order).record == {
        "walltime": "run", "dependencies": False, "period": 60, "semantics": "dirlab",
    }  # fmt: skip
    assert Setup(period=60, event_order=order).given == {"period": 60, "event_order": order}


def test_the_compiled_simulator_refuses_an_option_that_it_does_not_know_by_name() -> None:
    workload = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
    assert obstacle(Simulation(workload, make("fcfs"), period=60)) == "it knows no period, found 60"
