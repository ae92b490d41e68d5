"""Questions in the cells of a sweep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest

from hpcsimkit import Simulation, Sweep, default_workload, make, what_if
from hpcsimkit.engine.engines import Processes
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.questions.validate import validate
from hpcsimkit.experiments.sweep.question_cell import QUESTIONS, QuestionTable
from hpcsimkit.experiments.sweep.sweep_run import SweepRun
from hpcsimkit.workloads import read_swf

DAY = 86_400


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    drawn = default_workload(np.random.default_rng(2), jobs=300, nodes=32)
    Simulation(drawn, make("sjf+easy")).run().to_swf("log.swf")
    return "log.swf"


def test_changes_and_windows_are_axes(log: str) -> None:
    """Jobs of the warm-up fill the cluster, and are in no answer."""
    sweep = Sweep(
        log=log,
        policies=["fcfs+easy", "sjf+easy"],
        report=False,
        question=QuestionTable(name="what-if"),
        sweep={
            "period": {"length": "8 hours", "warmup": "4 hours"},
            "question.set": ["nodes+=4", "nodes+=8"],
        },
    )
    cells = SweepRun(sweep, "out").run()
    assert cells["status"].tolist() == ["done"] * len(cells) and len(cells) > 8
    assert not {"mean_wait_time", "utilisation"} & {*cells.columns}
    windows = list(sweep.cells())
    for cell, row in zip(windows, cells.to_dict("records"), strict=True):
        part = cell.window.cut(read_swf(log))
        case = replace(Case.of(part, cell.policy), begin=cell.window.begin)
        table = what_if(case, [row["question.set"]]).table
        assert row["mean_wait_before"] == table["before"][0] and row["mean_wait_after"] == table["after"][0]
        assert table["jobs"][0] == np.count_nonzero(part.submit_time >= cell.window.begin) < len(part)
        written = pandas.read_csv(f"out/cells/{row['cell']}/what-if.csv")
        assert written["difference"][0] == row["mean_wait_difference"]
    again = SweepRun(sweep, "out", engine=Processes(2))
    assert again.run().equals(cells) and again.unchanged


@pytest.mark.usefixtures("blank_pictures")
def test_a_tolerance_is_an_axis_and_each_is_that_of_the_function(log: str) -> None:
    question = QuestionTable(name="validate")
    sweep = Sweep(log=log, policies=["fcfs"], question=question, sweep={"question.tolerance": [0.0, 5000.0]})
    cells = SweepRun(sweep, "out", engine=Processes(2)).run()
    distances = [
        validate(log, "fcfs", tolerance=each).measures["waits_ks_distance"] for each in (0.0, 5000.0)
    ]
    assert cells["waits_ks_distance"].tolist() == distances and distances[0] > distances[1]
    assert Path("out/report.html").is_file()


@pytest.mark.usefixtures("blank_pictures")
@pytest.mark.parametrize("name", ["describe", "predict", "explain"])
def test_the_columns_are_the_measures(name: str, log: str) -> None:
    question = QuestionTable(name=name)  # type: ignore[arg-type]
    sweep = Sweep(
        log=log, jobs=60, policies=["sjf+hold-unfit"], question=question, sweep={"load_factor": [1.0, 1.5]}
    )
    cells = SweepRun(sweep, "out").run()
    assert cells["status"].tolist() == ["done", "done"]
    assert cells[list(question.measured)].notna().all(axis=None)
    assert Path("out/report.html").is_file()


def test_mistakes_are_seen_before_anything_runs(log: str) -> None:
    for keys, axes, text in (
        ({"name": "what-if"}, {"seed": [0]}, "'what-if' needs question.set, found none"),
        ({"name": "evaluate"}, {"seed": [0]}, "'evaluate' needs question.model, found none"),
        ({"name": "validate"}, {"question.set": ["nodes+=1"]}, "question: 'validate' has no key 'set'"),
        ({"name": "validate"}, {"question.tolerance": [-1.0]}, "question.tolerance must be greater than"),
        ({"name": "why"}, {"seed": [0]}, "question.name must be 'describe'"),
        (None, {"question.set": ["nodes+=1"]}, "question.set: a question is needed, found none"),
    ):
        with pytest.raises(UsageError) as error:
            Sweep.of_flags({"log": log, "question": keys, "sweep": axes})
        assert text.replace("question.name", "--question") in str(error.value) or text in str(error.value)
    assert {*QUESTIONS} == {"describe", "validate", "predict", "what-if", "advise", "explain", "evaluate"}
    assert Experiment.of_flags({"log": log}).metrics is None
