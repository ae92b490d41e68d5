"""Metrics, readers and machines by name: as entry points, as module:Name and file.py:Name, and what can be wrong."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Machines, Workload
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.parts.catalogue import parts
from hpcsimkit.experiments.parts.named_parts import is_name, machines_named, metric_named, reader_named
from hpcsimkit.experiments.parts.registry import policy_named
from hpcsimkit.experiments.parts.trust import CALLER, Trust
from hpcsimkit.experiments.source import Source
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.io import catalogue
from hpcsimkit.reproductions.plans.planned import reproduction_named
from hpcsimkit.results import metrics
from hpcsimkit.results.metrics import METRICS, Metric
from hpcsimkit.workloads.readers.logs import LogFormat, read_log
from tests.cli.conftest import CLI, cli

__all__ = ["cli"]

HERE = "tests.experiments.parts.test_named_parts"
POINTS = {
    "hpcsimkit.metrics": [
        EntryPoint("most_jobs", f"{HERE}:MOST", "hpcsimkit.metrics"),
        EntryPoint("makespan", "no_such_module:X", "hpcsimkit.metrics"),
    ],
    "hpcsimkit.readers": [
        EntryPoint("theirs", f"{HERE}:THEIRS", "hpcsimkit.readers"),
        EntryPoint("plain", f"{HERE}:read", "hpcsimkit.readers"),
    ],
    "hpcsimkit.machines": [EntryPoint("four", f"{HERE}:four", "hpcsimkit.machines")],
}

MOST = Metric("most_jobs", "jobs", "jobs", "higher", "Number of jobs", lambda result, selection: len(result))
NEUTRAL = Metric("neutral", "1", "1", "none", "One", lambda result, selection: 1.0)


def read(path: str) -> Workload:
    """One job a line: submission, run time, nodes."""
    columns = np.loadtxt(path, dtype=int, delimiter=",", skiprows=1, ndmin=2).T
    return Workload(dict(zip(("submit_time", "run_time", "nodes"), columns, strict=True)), machine_size=8)


THEIRS = LogFormat("their log", read, ("their_run",))


def four() -> Machines:
    """Four machines."""
    return Machines.of(4, cpus=8, gpus=1, memory="64 GB")


def no_log(path: str) -> int:
    return 3


def broken(path: str) -> Workload:
    raise ValueError("what a line")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(catalogue, "entry_points", lambda group: POINTS.get(group, []))
    metrics._installed.cache_clear()
    yield
    monkeypatch.undo()
    metrics._installed.cache_clear()


@pytest.fixture(autouse=True)
def metrics_of_the_kit() -> Iterator[None]:
    """What a test adds to the table of metrics is not in that of the next."""
    yield
    METRICS.own.clear()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "their.csv"
    path.write_text(
        "submit,their_run,nodes\n" + "".join(f"{9 * n},{10 + n % 5},{1 + n % 8}\n" for n in range(80))
    )
    return path


# --- entry points ------------------------------------------------------------------------------------------


def test_plug_ins_everywhere(installed: None, cli: CLI, log: Path, tmp_path: Path) -> None:
    """The log is recognised, the metric is a column, the machines have a name."""
    assert cli("compare", log, "-p", "fcfs", "--no-report", "--out", "c", "-q") == (0, "", "")
    found = json.loads((tmp_path / "c" / "metrics.json").read_text())["fcfs"]
    assert found["most_jobs"] == 80
    assert found["makespan"] > 0  # a name of the kit comes before theirs
    (tmp_path / "day.csv").write_text("ReqCPUs,ReqGPUs,ReqMem,ActualDuration,Submit\n" + "4,0,1,60,0\n" * 60)
    flags = ["--machines", "four", "-p", "fcfs", "--no-report", "-q"]
    assert cli("compare", "day.csv", *flags, "--out", "d") == (0, "", "")
    saved = tomllib.loads((tmp_path / "d" / "experiment.toml").read_text())
    assert saved["machines"] == "four" and "machines_sha256" not in saved
    assert cli("compare", "d/experiment.toml", "--out", "again", "--no-report", "-q") == (0, "", "")
    assert (tmp_path / "d" / "metrics.csv").read_bytes() == (tmp_path / "again" / "metrics.csv").read_bytes()


def test_they_are_listed_with_their_origin(installed: None) -> None:
    listed = {kind: {part.name: part for part in parts(kind)} for kind in ("metric", "reader", "machines")}
    assert listed["metric"]["most_jobs"].summary == "Number of jobs"
    assert listed["metric"]["most_jobs"].origin == listed["machines"]["four"].origin == "tests"
    assert listed["machines"]["four"].summary == "Four machines."
    assert listed["reader"]["swf"].origin == listed["metric"]["makespan"].origin == "hpcsimkit"
    assert listed["machines"]["nine-machines"].summary.startswith("The nine machines")


def test_a_training_by_a_metric_of_a_plug_in(installed: None) -> None:
    training, problem = Training.checked({"validation": {"metric": "most_jobs"}})
    assert problem is None and training is not None and training.validation.sign == 1


# --- names of code -----------------------------------------------------------------------------------------


def test_names_of_code(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(f"from {HERE} import MOST, THEIRS, four, read\n")
    for code in ("mine", "mine.py"):
        assert len(machines_named(f"{code}:four", None, CALLER)) == 4
        assert len(read_log(log, reader_named(f"{code}:read", None, CALLER))) == len(
            read_log(log, reader_named(f"{code}:THEIRS", None, CALLER))
        )
        assert metric_named(f"{code}:MOST", None, CALLER) is METRICS[f"{code}:MOST"]
    source = Source(log=str(log), reader="mine:read")
    assert source.code == ["mine"] and len(source.workload()) == 80
    for name in ("mine:four", "mine:read"):
        with pytest.raises(UsageError, match="--allow-code mine"):
            (machines_named if name.endswith("four") else reader_named)(name, None, Trust(()))


def test_a_file_needs_consent(cli: CLI, log: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"from {HERE} import MOST, four, read\n")
    (tmp_path / "e.toml").write_text(f'log = "{log}"\nreader = "mine:read"\npolicies = ["fcfs"]\n')
    flags = ["--out", "e", "--no-report", "-q"]
    assert cli("compare", "e.toml", *flags).line() == (
        "e.toml:2: reader: 'mine:read' is code that is not the kit's own, and a file may not name it without "
        "consent: --allow-code mine"
    )
    assert cli("compare", "e.toml", *flags, "--allow-code", "mine") == (0, "", "")
    (tmp_path / "t.toml").write_text('[validation]\nmetric = "mine:MOST"\n')
    assert cli("train", "t.toml").line().startswith("t.toml:2: validation.metric: 'mine:MOST' is code")


def test_a_reader_for_a_log_of_another_look(cli: CLI, log: Path, tmp_path: Path) -> None:
    """Neither its name nor its first line says what it is."""
    flags = ["-p", "fcfs", "--no-report", "-q", "--out", "c"]
    assert "a log of a form that is understood" in cli("compare", log, *flags).line()
    (tmp_path / "mine.py").write_text(f"from {HERE} import read\n")
    assert cli("compare", log, "--reader", "mine.py:read", *flags) == (0, "", "")
    assert (
        cli("compare", "c/experiment.toml", "--allow-code", "mine.py", "--out", "d", "--no-report", "-q").code
        == 0
    )


def test_an_agent_trained_and_evaluated_by_a_metric_of_ones_own(cli: CLI, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(f"from {HERE} import MOST\n")
    (tmp_path / "t.toml").write_text(
        "[generate]\njobs = 200\nnodes = 16\n[trainer]\ntotal_timesteps = 64\nepisodes = 2\nn_steps = 32\n"
        '[episodes]\njobs = 30\n[validation]\nwindows = 2\nmetric = "mine:MOST"\n'
    )
    assert cli("train", "t.toml", "--allow-code", "mine", "--out", "a", "-q") == (0, "", "")
    flags = ["--sequences", 2, "--jobs", 30, "-q"]
    assert "--allow-code mine" in cli("evaluate", "a/best.hpcsim", *flags, "--out", "no").line()
    assert cli("evaluate", "a/best.hpcsim", *flags, "-m", "mine:MOST", "--out", "e") == (0, "", "")
    said: dict[str, Any] = json.loads((tmp_path / "e" / "evaluation.json").read_text())
    assert said["metrics"]["mine:MOST"]["policies"]["agent"]["mean"] == 30


# --- wrong input -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "name", "message"),
    [
        (machines_named, "nin-machines", "unknown machines 'nin-machines'; nearest: nine-machines"),
        (machines_named, f"{HERE}:HERE", "needs Machines, or a function that returns them, found 'tests"),
        (machines_named, f"{HERE}:read", "cannot be made: TypeError"),
        (reader_named, "swff", "unknown reader 'swff'; nearest: swf"),
        (reader_named, f"{HERE}:HERE", "needs a LogFormat or a function that reads a log"),
        (metric_named, "makespn", "unknown metric 'makespn'; nearest: makespan"),
        (metric_named, f"{HERE}:HERE", "needs a Metric, found 'tests"),
    ],
)
def test_names_of_something_else(make: Any, name: str, message: str) -> None:
    with pytest.raises(UsageError) as raised:
        make(name, None, CALLER)
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (f"{HERE}:no_log", "the reader '{}' needs to return a Workload, found 3"),
        (f"{HERE}:broken", "'{}' cannot be used: ValueError: what a line"),
    ],
)
def test_readers_that_go_wrong(cli: CLI, log: Path, reader: str, message: str) -> None:
    assert message.format(reader) in cli("compare", log, "--reader", reader, "--out", "c", "-q").line()


def test_a_metric_without_a_direction_does_not_choose_an_agent() -> None:
    _, problem = Training.checked({"validation": {"metric": f"{HERE}:NEUTRAL"}})
    assert problem is not None
    assert problem[1].endswith(
        f"metric '{HERE}:NEUTRAL' has no better direction; choose one with a direction"
    )


# --- texts that cannot be paths ----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["x" * 300, "y/" * 3000 + "z", "a\0b"])
def test_texts_that_cannot_be_paths_are_one_line(text: str, tmp_path: Path) -> None:
    """D11: wherever a path or a name is given, in a program or in a file."""
    assert not is_name(text)
    calls = [
        lambda: Source(log=text).workload(),
        lambda: Source(machines=text).cluster,
        lambda: Source(partitions=text).scheduled,
        lambda: reproduction_named(text),
        lambda: Source.read(Path(text)),
        *(partial(policy_named, f"{prefix}{text}", str(tmp_path), CALLER) for prefix in ("agent:", "learned:")),
        *(partial(find, f"{text}.py:X", str(tmp_path), CALLER) for find in (machines_named, reader_named, policy_named)),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(HpcsimkitError):
            call()
