"""Questions in Python: objects and names, tables and pictures, engines; the same answers as those of commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hpcsimkit import (
    Machines,
    Simulation,
    Workload,
    compare,
    default_workload,
    describe,
    evaluate,
    explain,
    make,
    measure,
    predict,
    validate,
    what_if,
)
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.engine.engines import Processes
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Case, Ended
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.questions.explain import ExplanationQuestion
from hpcsimkit.experiments.questions.question import Answer
from hpcsimkit.experiments.questions.validate import ValidationQuestion
from hpcsimkit.experiments.questions.what_if import ChangeQuestion, WhatIf
from hpcsimkit.run import main
from hpcsimkit.workloads import read_swf

SHORTEST = {"weight.0": np.array([[100, -1, 0, 0, 0]]), "bias.0": np.zeros(1)}


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workload:
    """A log with recorded waits in the current folder, ``log.swf``."""
    monkeypatch.chdir(tmp_path)
    drawn = default_workload(np.random.default_rng(2), jobs=150, nodes=32)
    Simulation(drawn, make("sjf+easy")).run().to_swf("log.swf")
    return read_swf("log.swf")


@pytest.fixture
def agent(jobs: Workload) -> Agent:
    about = {"training": {"policy": "fcfs+easy", "metric": "mean_wait_time"}}
    made = Agent(QueueWindow(8), Slots(8), SlotScores(SHORTEST), "order", about=about)
    made.save("agent.hpcsim")
    return made


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as leaving:
        main([*words, "-q", "--out", "out"])
    assert leaving.value.code == 0


SEQUENCES: dict[str, Any] = {"sequences": 3, "jobs": 30}
FLAGS = ("--sequences", "3", "--jobs", "30")

ASKED: dict[str, tuple[Callable[..., Answer], tuple[Any, ...], tuple[str, ...]]] = {
    "validate": (validate, (), ("validate", "log.swf")),
    "predict": (predict, (), ("predict", "log.swf")),
    "what-if": (
        lambda log, **how: what_if(log, ["nodes+=4"], **how),
        (),
        ("what-if", "log.swf", "--set", "nodes+=4"),
    ),
    "explain": (explain, ("sjf+hold-unfit",), ("explain", "sjf+hold-unfit", "log.swf")),
    "evaluate": (
        lambda log, **how: evaluate("agent.hpcsim", log, ["sjf+easy"], **SEQUENCES, **how),
        (),
        ("evaluate", "agent.hpcsim", "log.swf", "-p", "sjf+easy", *FLAGS),
    ),
}


@pytest.mark.usefixtures("agent", "blank_pictures")
@pytest.mark.parametrize("name", ASKED)
def test_answers_are_those_of_the_command_by_object_by_name_and_on_an_engine(
    name: str, jobs: Workload
) -> None:
    ask, arguments, words = ASKED[name]
    answer = ask(jobs, *arguments)
    command(*words)
    by_name, in_processes = ask("log.swf", *arguments), ask("log.swf", *arguments, engine=Processes(2))
    for file in type(answer).files():
        assert Path("out", file).is_file()
    assert [*answer.tables] == list(answer.names)
    for table, frame in answer.tables.items():
        printed = frame.to_csv(index=False, lineterminator="\n", float_format=answer.number_format)
        assert printed == Path("out", f"{table}.csv").read_text()
        for other in (by_name, in_processes):
            pandas.testing.assert_frame_equal(other.tables[table], frame)
    assert [*answer.lines()] == [*in_processes.lines()]
    assert answer.figure().axes
    assert tuple(answer.measures) == answer.measured or name == "predict"


def test_a_comparison_has_the_metrics_of_the_command(jobs: Workload) -> None:
    answer = compare("log.swf", ["fcfs", "sjf+easy"])
    command("compare", "log.swf", "-p", "fcfs", "-p", "sjf+easy", "--no-report")
    written = json.loads(Path("out/metrics.json").read_text())
    for policy, row in answer.table.set_index("policy").iterrows():
        for metric, value in written[policy].items():
            assert row[metric] == value or (value is None and np.isnan(row[metric])), metric
    assert len(answer.figure().axes) == 5
    text = "\n".join(answer.lines())
    assert "* best of its column" in text and "sjf+easy" in text


def test_a_comparison_of_an_experiment(jobs: Workload) -> None:
    Path("x.toml").write_text(
        'log = "log.swf"\npolicies = ["fcfs", "sjf"]\nwarmup = 3600.0\nseed = 4\nwalltime = "kill"'
    )
    for asked in ("x.toml", Path("x.toml"), Experiment.read(Path("x.toml"))):
        table = compare(asked, metrics=["mean_wait_time", "killed"]).table
        run = Simulation(jobs, make("sjf"), walltime="kill", seed=4).run()
        expected = measure(run, warmup=3600, names=["mean_wait_time", "killed"])
        assert table["seed"].tolist() == [4, 4]
        assert table.iloc[1][[*expected]].tolist() == [*expected.values()]
    with pytest.raises(UsageError, match="an experiment has options of its own"):
        compare("x.toml", walltime="run")
    with pytest.raises(UsageError, match="unknown option 'wall_time'; nearest: walltime"):
        compare(jobs, ["fcfs"], wall_time="run")


def test_several_seeds_are_tables_of_their_own_and_the_first_is_in_the_picture(jobs: Workload) -> None:
    answer = compare(jobs, ["random"], seeds=[1, 2], metrics=["mean_wait_time"])
    lines = [*answer.lines()]
    assert lines[0] == "log, seed 1:" and "log, seed 2:" in lines
    assert answer.results["random"].seed == 1


def test_an_agent_is_an_object_or_a_file(agent: Agent, jobs: Workload) -> None:
    by_object = evaluate(agent, jobs, {"short": make("sjf+easy")}, **SEQUENCES)
    by_name = evaluate("agent.hpcsim", jobs, ["sjf+easy"], **SEQUENCES)
    one, other = by_object.tables["evaluation"], by_name.tables["evaluation"]
    assert [*dict.fromkeys(one["policy"])][-1] == "short"
    assert one["mean_wait_time"].tolist() == other["mean_wait_time"].tolist()
    killed = evaluate(agent, jobs, ["sjf+easy"], walltime="kill", seed=1, **SEQUENCES)
    assert killed.tables["evaluation"]["seed"].tolist() != other["seed"].tolist()
    assert killed.contest.scenarios[0].setup.walltime == "kill"
    with pytest.raises(UsageError, match=r"its metrics are measure\(result\)"):
        evaluate(Simulation(jobs, make("fcfs")).run())  # type: ignore[arg-type]


def test_a_description(jobs: Workload) -> None:
    answer = describe("log.swf")
    command("describe", "log.swf", "--no-picture")
    assert answer.measures["jobs"] == 150
    values = answer.table.set_index("name")["value"]
    assert values["jobs"] == 150 and values["machine [nodes]"] == 32
    assert describe(jobs, Machines.of(32, cpus=1)).table["section"].tolist().count("machines") == 4
    assert answer.figure().axes


def test_a_name_in_the_catalogue_is_a_file_here(jobs: Workload) -> None:
    with pytest.raises(UsageError, match=r"KTH-SP2: KTH-SP2-1996-2\.1-cln\.swf\.gz of the archive is needed"):
        describe("KTH-SP2")
    Path("log.swf").rename("KTH-SP2-1996-2.1-cln.swf")
    with pytest.raises(Exception, match=r"a text with SHA-256 fba36494"):
        describe("KTH-SP2")


def test_the_bar_of_an_explanation_moves(
    jobs: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Ended, "EVERY", 40)
    question = ExplanationQuestion(case=Case.of(jobs, "sjf+hold-unfit"), inspector="hold-unfit")
    told: list[int] = []
    question.tasks[0].run(tmp_path, told.append)
    assert told == [40, 80, 120]


def test_complete_runs_of_an_interrupted_command_are_not_repeated(
    jobs: Workload, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["what-if", "log.swf", "--set", "nodes+=4", "-q", "--out", "out"]

    def stopped(self: Answer, folder: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(WhatIf, "save", stopped)
        with pytest.raises(SystemExit) as leaving:
            main(words)
    assert leaving.value.code == 130
    assert "2 of 2 runs are finished; the same command goes on" in capsys.readouterr().err
    assert Path("out/.what-if.tasks/before/result.npz").is_file()
    with monkeypatch.context() as patch:
        patch.delattr(ChangeQuestion, "look")  # nothing is simulated
        with pytest.raises(SystemExit) as leaving:
            main(words)
    assert leaving.value.code == 0
    expected = {"what-if.csv", "what-if.json", "what-if.png", "what-if.run.json"}
    assert {file.name for file in Path("out").iterdir()} == expected


def test_runs_of_other_settings_are_repeated(jobs: Workload) -> None:
    """Whatever decides the answer is in the identity of a run."""
    made = Case.of("log.swf", "sjf+easy")
    changes = (
        ValidationQuestion(case=made, settings={"tolerance": 1}),
        ValidationQuestion(case=replace(made, name="fcfs"), settings={}),
        ValidationQuestion(case=replace(made, jobs=jobs.first(100)), settings={}),
        ValidationQuestion(case=replace(made, options=replace(made.setup, walltime="kill")), settings={}),
        ValidationQuestion(case=replace(made, options=replace(made.setup, cluster=40)), settings={}),
    )
    first = ValidationQuestion(case=made, settings={}).tasks[0].fingerprint
    assert len({first, *(question.tasks[0].fingerprint for question in changes)}) == 6
    other = replace(made, options=replace(made.setup, simulator="simpy"))
    assert ValidationQuestion(case=other, settings={}).tasks[0].fingerprint == first


def test_jobs_before_the_beginning_are_simulated_and_in_no_answer(jobs: Workload) -> None:
    begin = int(np.median(jobs.submit_time))
    whole = Case.of(jobs, "sjf+hold-unfit")
    part = replace(whole, begin=begin)
    measured = int(np.count_nonzero(jobs.submit_time >= begin))
    validation = validate(part).validation
    assert np.count_nonzero(validation.jobs) == len(validation.error) == measured < len(jobs)
    assert np.array_equal(validation.result.start_time, validate(whole).validation.result.start_time)
    predicted = predict(part, predictors=["last-two"]).table
    assert predicted["jobs"][0] == measured
    by_hand = predict(whole, predictors=["last-two"]).table
    assert (
        by_hand["jobs"][0] == len(jobs) and by_hand["pinball loss [s]"][0] != predicted["pinball loss [s]"][0]
    )
    decisions = explain(part, "hold-unfit").measures["decisions"]
    assert 0 < decisions < explain(whole, "hold-unfit").measures["decisions"]
    assert what_if(part, ["nodes+=1"]).table["jobs"][0] == measured


def test_the_picture_of_a_change_has_the_differences_of_the_table(jobs: Workload) -> None:
    answer = what_if(jobs, ["nodes+=4"])
    queue, busy, waits = answer.figure().axes
    assert queue.get_title(loc="left") == "fcfs+easy on log: nodes+=4"
    assert [text.get_text() for text in queue.get_legend().get_texts()] == ["before", "after"]  # type: ignore[union-attr]
    dots = [line.get_xdata()[0] for line in waits.lines if line.get_marker() == "o"]  # type: ignore[index]
    assert dots == answer.table["difference"].head(12).tolist()
    assert busy.get_ylabel() == "nodes busy [%]"
