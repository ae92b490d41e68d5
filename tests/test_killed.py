"""Killed at file operations of `compare`, `evaluate`, `train` and `reproduce`: `--resume` ends the same."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.training import trainer
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.files import write_bytes
from hpcsimkit.reports import figures, learning_curve
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.reproduction_run import ReproductionRun
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.targets import Conclusion, Target
from hpcsimkit.run import main
from tests.kill_points import Program, check, run

pytestmark = pytest.mark.skipif(not hasattr(sys, "addaudithook") or sys.platform == "win32", reason="forks")

LOG = "; MaxProcs: 8\n" + "".join(
    f"{job} {10 * job} -1 {run_time} {nodes} -1 -1 {nodes} 100{' -1' * 9}\n"
    for job, (run_time, nodes) in enumerate(
        [(50, 4), (50, 8), (20, 2), (10, 2), (70, 3), (30, 5)] * 2, start=1
    )
)

TRAINING = """
[generate]
nodes = 16
jobs = 120
load = 1.1

[trainer]
total_timesteps = 48
episodes = 2
n_steps = 8
hidden = [4]
n_epochs = 1

[episodes]
jobs = 12

[validation]
windows = 1
every = 1
"""
"""Three rounds of 16 decisions, each validated, with a checkpoint after each."""


def command(*arguments: str) -> Program:
    """Return a command line as a program; `resume` is a flag of it."""

    def program(resume: bool) -> int:
        with pytest.raises(SystemExit) as leaving:
            main([*arguments, *["--resume"] * resume])
        return int(str(leaving.value.code))

    return program


def with_log(folder: Path) -> None:
    (folder / "a.swf").write_text(LOG)


# --- compare -----------------------------------------------------------------------------------------------

COMPARE = [
    *("compare", "a.swf", "-p", "fcfs", "-p", "sjf+easy", "--trace", "--overwrite", "--out", "out", "-q"),
    "--no-report",
]


def with_former_results(folder: Path) -> None:
    """Results of other policies are at the place, and a file in them that no run has left."""
    with_log(folder)
    code, _, words = run(
        command("compare", "a.swf", "-p", "saf", "--out", "out", "-q", "--no-report"), folder
    )
    assert code == 0, words
    (folder / "out" / "jobs" / "other").write_text("of the former results")


def with_interrupted_results(folder: Path) -> None:
    """A run of the same policies with another seed and other times was killed when it was nearly complete."""
    with_log(folder)
    (folder / "b").mkdir()
    done = command("compare", "a.swf", *COMPARE[2:], "--walltime", "kill")
    code, _, words = run(done, folder)
    assert code == 0, words
    (folder / "out").rename(folder / "out.partial")
    (folder / "out.partial" / ".lock").touch()


@pytest.mark.parametrize("before", [with_log, pytest.param(with_former_results, marks=pytest.mark.slow)])
def test_compare(tmp_path: Path, before: Any) -> None:
    assert check(command(*COMPARE), tmp_path, before, every=15, last=3) > 3


@pytest.mark.slow
@pytest.mark.parametrize("before", [with_log, with_former_results, with_interrupted_results])
def test_compare_at_every_operation(tmp_path: Path, before: Any) -> None:
    assert check(command(*COMPARE), tmp_path, before) > 40


@pytest.mark.slow
def test_compare_with_a_report(tmp_path: Path) -> None:
    assert check(command(*COMPARE[:-1]), tmp_path, with_former_results, every=3, last=14) > 14


# --- train and evaluate ------------------------------------------------------------------------------------


def with_training(folder: Path) -> None:
    (folder / "t.toml").write_text(TRAINING)


def train(resume: bool) -> int:
    """Write a checkpoint after every round; draw nothing, which takes longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
        patch.setattr(learning_curve, "draw_learning_curve", lambda *_: None)
        patch.setattr(figures, "save_figure", lambda _, path: write_bytes(path, b"drawn"))
        return command("train", "t.toml", "--out", "agent", "-q")(resume)


def test_train(tmp_path: Path) -> None:
    assert check(train, tmp_path, with_training, every=60, last=2) > 2


@pytest.mark.slow
def test_train_at_every_operation(tmp_path: Path) -> None:
    assert check(train, tmp_path, with_training) > 40


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    with_training(folder)
    code, _, words = run(train, folder)
    assert code == 0, words
    return folder / "agent" / "best.hpcsim"


EVALUATE = command(
    "evaluate", "best.hpcsim", "a.swf", "-p", "fcfs", "--sequences", "2", "--jobs", "6", "--out", "out", "-q"
)


@pytest.mark.parametrize("every", [40, pytest.param(1, marks=pytest.mark.slow)])
def test_evaluate(tmp_path: Path, model: Path, every: int) -> None:
    def prepare(folder: Path) -> None:
        with_log(folder)
        shutil.copy(model, folder)

    assert check(EVALUATE, tmp_path, prepare, every=every, last=2) > 2


# --- reproduce ---------------------------------------------------------------------------------------------


class Steps(Task):
    """Adds up numbers, and writes down how far it is after each."""

    kind, size = "steps", 3

    def __init__(self, name: str, first: int) -> None:
        self._name = name
        self.first = first

    @property
    def name(self) -> str:
        return self._name

    def inputs(self) -> Any:
        return {"first": self.first}

    def run(self, folder: Path, tell: Tell) -> Any:
        file = folder / "so-far.json"
        step, total = json.loads(file.read_text()) if file.exists() else (0, 0)
        while step < self.size:
            step, total = step + 1, total + self.first + step
            write_bytes(file, json.dumps([step, total]).encode())
            tell(step)
        return {"total": total}


class Sums(PaperReproduction):
    """Two sums and a page."""

    title = "Sums"
    logs_needed = "a log"
    rates = {"steps": 10.0}  # noqa: RUF012

    tasks = (Steps("a", 1), Steps("b", 2))

    def prepare(self) -> Iterator[str]:
        yield "2 sums"

    def stages(self) -> Sequence[Sequence[Task]]:
        return [self.tasks]

    def fields(self) -> list[Field]:
        return []

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        totals = [float(store.outcome(task)["total"]) for task in self.tasks]
        table = Table(["sum"], [[str(total)] for total in totals])
        return Conclusion([Target("a", 9.0, totals[0], None, True)], str(table))


def reproduce(resume: bool) -> int:
    """Do it; an interrupted run goes on by itself."""
    ReproductionRun(Sums([]), Path("out"), "sums", workers=1).run(quiet=True, say=lambda line: None)
    return 0


def with_older_tasks(folder: Path) -> None:
    """A task was done from other inputs, another one was set aside before."""
    other = Sums([])
    other.tasks = (Steps("a", 5), Steps("b", 2))  # type: ignore[misc]
    store = Store(folder / "out" / "tasks")
    store.perform(Steps("a", 4), lambda done: None)
    store.set_aside(Steps("a", 5))
    store.perform(Steps("a", 5), lambda done: None)
    run_of = ReproductionRun(Sums([]), folder / "out", "sums", workers=1)
    run_of.folder.begin(run_of._asked)


@pytest.mark.parametrize(
    ("before", "every"),
    [
        (lambda folder: None, 40),
        pytest.param(lambda folder: None, 1, marks=pytest.mark.slow),
        pytest.param(with_older_tasks, 1, marks=pytest.mark.slow),
    ],
)
def test_reproduce(tmp_path: Path, before: Any, every: int) -> None:
    assert check(reproduce, tmp_path, before, every=every, last=2) > 2
