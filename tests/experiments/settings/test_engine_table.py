"""The table [engine], and --engine beside it."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from hpcsimkit.engine.dask import Dask
from hpcsimkit.engine.engines import InProcess, Processes
from hpcsimkit.engine.slurm import Slurm
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.evaluation.evaluation import Evaluation

TABLE = '[engine]\nname = "slurm:8"\npartition = "short"\ntime = "1-12:00"\nmemory = "8 GiB"\ncores = 4\nlogs = "logs"\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "experiment.toml"
    path.write_text(TABLE)
    return path


def test_a_file_names_engine_and_resources(file: Path) -> None:
    engine = Experiment.read(file).engine_for(3)
    assert isinstance(engine, Slurm)
    expected = (8, "short", "1-12:00", "8 GiB", 4, "logs")
    assert (
        engine.workers,
        engine.partition,
        engine.time,
        engine.memory,
        engine.cores,
        engine.logs,
    ) == expected


def test_the_flag_overrides_only_the_name(file: Path) -> None:
    base = Experiment.read(file).model_dump(exclude_unset=True)
    engine = Experiment.of_flags({"engine": {"name": "slurm:2"}}, base).engine_for(3)
    assert isinstance(engine, Slurm)
    assert (engine.workers, engine.partition) == (2, "short")
    assert isinstance(Experiment.of_flags({"engine": {"name": "dask:2"}}, base).engine_for(3), Dask)


def test_workers_are_processes() -> None:
    assert isinstance(Experiment().engine_for(3), InProcess)
    assert isinstance(Experiment(workers=2).engine_for(1), InProcess)
    engine = Experiment(workers=8).engine_for(3)
    assert isinstance(engine, Processes)
    assert engine.workers == 3
    assert Experiment.of_flags({"engine": {"name": "processes:4"}}).engine_for(9).workers == 4


def test_an_experiment_is_saved_without_its_engine(file: Path) -> None:
    assert "engine" not in Experiment.read(file).saved()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'name = "slrum:8"',
            r":2: engine\.name: unknown engine 'slrum:8'; known: processes:N, dask:N, .*, slurm:N",
        ),
        ('name = "slurm:0"', r":2: engine\.name: unknown engine 'slurm:0'"),
        ('name = "slurm:8"\ncores = 0', r":3: engine\.cores must be greater than or equal to 1, found 0"),
        ('name = "slurm:8"\nmemory = "8"', r":3: engine\.memory: memory needs a unit .*, found '8'"),
        ('name = "slurm:8"\ntime = "long"', r":3: engine\.time .*found 'long'"),
        ('name = "slurm:8"\npartition = "a b"', r":3: engine\.partition .*found 'a b'"),
        ('name = "slurm:8"\nqueue = "short"', r":3: engine\.queue: unknown key; known: name, partition"),
        ('partition = "short"', r"engine\.name.* required"),
    ],
)
def test_what_is_wrong(tmp_path: Path, text: str, line: str) -> None:
    (tmp_path / "experiment.toml").write_text(f"[engine]\n{text}\n")
    with pytest.raises(UsageError, match=line):
        Experiment.read(tmp_path / "experiment.toml")


@pytest.mark.parametrize("kind", [Experiment, Evaluation])
def test_workers_and_an_engine(kind: type[Experiment | Evaluation]) -> None:
    flags = {"workers": 2, "engine": {"name": "dask:2"}} | (
        {"model": "x.hpcsim"} if kind is Evaluation else {}
    )
    with pytest.raises(UsageError, match=r"^one of 'workers' and 'engine' is needed, both are given$"):
        kind.of_flags(flags)


def test_code_of_the_user_is_not_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a worker, the classes of a file have not been imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from hpcsimkit import ServiceTime\nclass Same(ServiceTime):\n    def factor(self, *_):\n        return 1.0\n"
    )
    machines = [{"name": "a", "count": 2, "cpus": 4}]
    experiment = Experiment(machines=machines, locality="mine.py:Same", policies=["fcfs"], jobs=5)
    assert experiment.service_time is not None
    assert b"Same" not in pickle.dumps(experiment).replace(b"mine.py:Same", b"")
    assert pickle.loads(pickle.dumps(experiment)) == experiment
