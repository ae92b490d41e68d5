"""Trainings and evaluations in parts: tables, jobs, seats, environments, statistics, the learning curve."""

from __future__ import annotations

import inspect
import tomllib
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from hpcsimkit import External, Pipeline, Simulation, Workload, make
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.catalogue import REWARDS
from hpcsimkit.agents.networks.numpy_networks import Dense
from hpcsimkit.agents.seats import RandomAgent
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.training.catalogue import TRAINERS, settings_of, trainer_named
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.evaluation.sequences import beginnings, places, share_in_several
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.learner_parts import Kind, parameters_of, part_of, seated, trainer_part
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.experiments.progress import (
    show_cells,
    show_runs,
    show_training,
    time_left,
)
from hpcsimkit.experiments.training.data import Validation, WindowsOf, divided
from hpcsimkit.experiments.training.environment import environment_of
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.experiments.training.training_run import TrainingRun
from hpcsimkit.kernel.locality import LOCALITIES
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reports.learning_curve import BINS, draw_learning_curve, plot_column, read_curve
from hpcsimkit.workloads import default_workload
from tests.drawn import examples

LOG = default_workload(np.random.default_rng(5), jobs=500)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each name of a policy is parsed."""
    counts: Counter[str] = Counter()
    make = registry.policy_named

    def counting(name: str, *args: Any, **options: Any) -> Policy:
        counts[name] += 1
        return make(name, *args, **options)

    monkeypatch.setattr(registry, "policy_named", counting)
    return counts


def test_a_policy_that_is_named_once_is_parsed_once(parsed: Counter[str], tmp_path: Path) -> None:
    trainer = {"algorithm": "a2c", "total_timesteps": 64, "n_steps": 16, "episodes": 2, "hidden": [4]}
    values = {
        "generate": {"nodes": 16, "jobs": 200},
        "slots": 4,
        "trainer": trainer,
        "episodes": {"jobs": 24},
    }
    validation = {"windows": 2, "every": 1}
    training = Training.of_flags({**values, "validation": validation, "policy": "sjf+easy"})
    TrainingRun(training, training.workloads(), tmp_path / "trained").run()
    assert parsed == {"sjf+easy": 1}
    experiment = Experiment.of_flags({"jobs": 20, "policies": ["fcfs", "saf+easy"], "report": False})
    Campaign(experiment, experiment.workload(), tmp_path / "compared").run()
    assert parsed == {"sjf+easy": 1, "fcfs": 1, "saf+easy": 1}


def jobs(count: int, name: str = "log", **columns: Any) -> Workload:
    usual = {"submit_time": np.arange(count) * 10, "run_time": np.full(count, 5), "nodes": np.ones(count)}
    return Workload({**usual, **columns}, machine_size=4, name=name)


# --- what a training is -----------------------------------------------------------------------------------


def test_what_is_not_said() -> None:
    training = Training()
    assert (training.stage, training.policy_name, training.algorithm) == ("order", "fcfs+easy", "ppo")
    assert (
        repr(training.environment_parts)
        == "(QueueWindow(slots=16), Slots(slots=16), MinusMeanBoundedSlowdown())"
    )
    assert training.trainer_part.settings == settings_of(trainer_named("ppo"))()
    division = training.divided(training.workloads())
    assert [len(part) for parts in division for part in parts] == [4000, 1000]


@examples(0.25)
@given(
    slots=st.integers(1, 64), share=st.floats(0.01, 1), seed=st.integers(0, 2**40),
    rate=st.floats(0, 1), hidden=st.lists(st.integers(1, 99), min_size=1, max_size=3),
    algorithm=st.sampled_from(["ppo", "a2c", "dql"]), decline=st.booleans(), windows=st.integers(1, 5),
)  # fmt: skip
def test_what_is_saved_is_read_back(
    tmp_path_factory: Any, slots: int, share: float, seed: int, rate: float, hidden: list[int],
    algorithm: str, decline: bool, windows: int,
) -> None:  # fmt: skip
    trainer = {"algorithm": algorithm, "learning_rate": rate, "hidden": hidden}
    values = {"slots": slots, "train_share": share, "seed": seed, "trainer": trainer, "stage": "backfiller",
              "mask": {"decline": decline}, "validation": {"windows": windows}, "nodes": 64, "jobs": 50}  # fmt: skip
    training, problem = Training.checked(values)
    assert problem is None
    assert training is not None
    file = tmp_path_factory.getbasetemp() / "saved.toml"
    file.write_text(training.saved())
    again = Training.read(file)
    assert again.saved() == training.saved()
    assert again.trainer_part == training.trainer_part
    assert repr(again.environment_parts) == repr(training.environment_parts)
    assert again.open_policy() == training.open_policy()
    assert [workload.hash for workload in again.workloads()] == [w.hash for w in training.workloads()]


def test_settings_inside_the_trainer_are_saved(tmp_path: Path) -> None:
    training = Training(trainer={"algorithm": "sb3-dqn", "options": {"learning_starts": 10, "gamma": 0.5}})
    saved = tomllib.loads(training.saved())
    assert saved["trainer"]["options"] == {"learning_starts": 10, "gamma": 0.5}
    (tmp_path / "t.toml").write_text(training.saved())
    assert Training.read(tmp_path / "t.toml").trainer_part == training.trainer_part


@pytest.mark.parametrize("name", TRAINERS)
def test_every_trainer_can_be_named(name: str) -> None:
    trainer = trainer_named(name)
    assert trainer.algorithm == name
    key = "epochs" if name.startswith("cush") else "total_timesteps"
    part, problem = trainer_part({"algorithm": name, key: 7}, None, Trust(()))
    assert problem is None
    assert part is not None
    assert (part.trainer, getattr(part.settings, key)) == (trainer, 7)
    assert (part.problem is None) == (key == "total_timesteps")


@pytest.mark.parametrize("name", REWARDS)
def test_every_reward_can_be_named(name: str) -> None:
    improves = "baseline" in inspect.signature(REWARDS[name]).parameters
    values = {"name": name} | ({"baseline": "sjf+easy"} if improves else {})
    reward, problem = part_of(Kind.of_seat("order")[2], values, {"slots": 4}, None, Trust(()))
    assert problem is None
    assert type(reward) is REWARDS[name]
    if improves:
        assert reward.baseline == make("sjf+easy")


def test_parameters_of_classes_that_say_little_of_them() -> None:
    class Plain:
        pass

    class Untyped:
        def __init__(self, a, *, b=3, **rest) -> None:  # type: ignore[no-untyped-def]
            self.a, self.b = a, b

    assert parameters_of(Plain, {}, {}) == ({}, None)
    assert parameters_of(Untyped, {"a": -1.5}, {}) == ({"a": -1.5, "b": 3}, None)
    assert parameters_of(Untyped, {}, {})[1] == ((), ": Untyped needs the key 'a'")
    assert parameters_of(Untyped, {"c": 1}, {"a": 1})[1] == (("c",), ": unknown key; known: b")


# --- the seat ---------------------------------------------------------------------------------------------


def test_seats_are_opened_with_the_heuristic_behind_them() -> None:
    order = seated(make("sjf+easy"), External(), "order", 8)
    assert order == Pipeline(
        order=External(make("sjf").order), backfiller=make("fcfs+easy").backfiller, window=8
    )  # type: ignore[attr-defined]
    filler = seated(make("sjf+easy+window(4)"), External(), "backfiller", 8)
    assert isinstance(filler, Pipeline)
    assert (filler.window, filler.backfiller) == (4, External(make("fcfs+easy").backfiller))  # type: ignore[attr-defined]
    assert seated(make("sjf"), External(), "dispatch", 8) == Dispatch(External(), 8, make("sjf").order)  # type: ignore[attr-defined]


def test_an_open_seat_that_answers_by_default_is_the_closed_policy() -> None:
    for stage, name in (("order", "saf+easy"), ("backfiller", "fcfs+easy")):
        run = Simulation(LOG, seated(make(name), External(), stage, 10_000))
        while (decision := run.next_decision()) is not None:
            run.answer(decision.default)
        assert run.result().hash == Simulation(LOG, make(name)).run().hash


def test_seats_without_a_number_of_slots() -> None:
    order = seated(make("sjf+easy"), External(), "order", None)
    assert isinstance(order, Pipeline)
    assert order.window is None
    with pytest.raises(UsageError, match="slots needs a whole number of at least 1, found None"):
        seated(make("sjf"), External(), "dispatch", None)


@pytest.mark.parametrize(
    ("stage", "policy", "encoder"),
    [
        ("order", "fcfs+easy", "QueueWindow"),
        ("gate", "fcfs+easy", "InspectorFeatures"),
        ("placement", "fcfs+best-fit+easy", "Places"),
        ("preemptor", "fcfs+easy+preempt", "RunningJobs"),
        ("tester", "unicef+easy+tests", "JobAndHole"),
    ],
)
def test_default_encoders_see_the_options_of_their_seat(stage: str, policy: str, encoder: str) -> None:
    training = Training(stage=stage, policy=policy)  # type: ignore[arg-type]
    assert type(training.environment_parts[0]).__name__ == encoder


def test_seats_that_are_not_there() -> None:
    with pytest.raises(UsageError, match=r"BestFitBinPacking\(\) has no order seat"):
        seated(make("bfbp"), External(), "order", 8)
    with pytest.raises(UsageError, match="behind a dispatch seat stands an order only"):
        seated(make("fcfs+easy"), External(), "dispatch", 8)


def test_chance_draws_all_options_alike() -> None:
    log = jobs(4, submit_time=np.zeros(4), nodes=np.full(4, 4))
    first = [
        int(np.argmin(Simulation(log, Pipeline(order=RandomAgent(Slots(3)), window=4), seed=seed).run().start_time))
        for seed in range(600)
    ]  # fmt: skip
    counts = np.bincount(first, minlength=4)
    assert counts[3] == 0  # in no slot
    assert stats.chisquare(counts[:3]).pvalue > 0.001


def test_chance_depends_on_the_seed_only() -> None:
    policy = seated(make("fcfs+easy"), RandomAgent(Slots(8)), "order", 8)
    hashes = [Simulation(LOG, policy, seed=seed).run().hash for seed in (1, 1, 2)]
    assert hashes[0] == hashes[1] != hashes[2]


# --- jobs -------------------------------------------------------------------------------------------------


@given(size=st.integers(1, 200), share=st.floats(0.01, 1))
def test_no_job_is_in_both_parts(size: int, share: float) -> None:
    log = jobs(size)
    training, validation = (part[0] for part in divided([log], share))
    ids = [*training.id.tolist(), *validation.id.tolist()]
    assert len(ids) == len(set(ids)) == size
    assert len(training) == round(share * size)


def test_parts_by_number_and_by_log() -> None:
    log, other = jobs(100), jobs(7, "other")
    training, validation = divided([log], 1.0, part=(60, 90))
    assert (len(training[0]), validation[0].submit_time.tolist()) == (60, list(range(600, 900, 10)))
    training, _ = divided([log], 0.5, part=(60, 90))
    assert len(training[0]) == 50
    training, validation = divided([log, log], 0.25, others=[other])
    assert ([len(part) for part in training], validation) == ([25, 25], [other])
    for part in ((0, 50), (50, 50), (90, 101)):
        with pytest.raises(
            UsageError, match=r"validation.part needs \[first, end\] with 0 < first < end <= 100"
        ):
            divided([log], 1.0, part=part)


def test_windows_of_several_logs_and_their_rules() -> None:
    machines = Machines.of(4, cpus=1)
    rules = Setup(machines, walltime="kill", service_time=LOCALITIES["sierra"])
    logs = [jobs(50, name) for name in ("a", "b", "c")]
    windows = WindowsOf(logs, 5, rules, warmup=2)
    rng = np.random.default_rng(0)
    scenarios = [windows.sample(rng) for _ in range(300)]
    assert {scenario.workload.name for scenario in scenarios} == {"a", "b", "c"}
    for scenario in scenarios:
        begin = scenario.workload.submit_time
        assert len(begin) == 7
        assert scenario.learn_from == begin[2]
        assert replace(scenario.setup, seed=0) == rules
    assert len({scenario.setup.seed for scenario in scenarios}) == 300


def test_validation_by_hand() -> None:
    """Two windows, one job of which waits; the warm-up job of each does not count."""
    log = Workload(
        {"submit_time": [0, 1, 2], "run_time": [10, 10, 10], "nodes": [4, 4, 4]}, machine_size=4, name="three"
    )
    windows = WindowsOf([log], 2, Setup(), warmup=1)
    validation = Validation.drawn(windows, 2, 0, "mean_wait_time")
    assert validation.mean(make("fcfs")) == pytest.approx((9 + 18) / 2)
    with pytest.raises(UsageError, match="gpus_utilisation is not defined on window 0"):
        Validation.drawn(windows, 2, 0, "gpus_utilisation").mean(make("fcfs"))


@given(
    jobs=st.integers(1, 40), more=st.integers(0, 300), sequences=st.integers(1, 30), seed=st.integers(0, 99)
)  # fmt: skip
def test_sequences_share_no_job_as_long_as_there_is_room(
    jobs: int, more: int, sequences: int, seed: int
) -> None:
    length = jobs + more
    found = beginnings(length, jobs, sequences, np.random.default_rng(seed))
    assert len(found) == sequences
    assert min(found) >= 0
    assert max(found) + jobs <= length
    held = [job for first in found for job in range(first, first + jobs)]
    several = {job for job in held if held.count(job) > 1} if len(held) < 300 else None
    if sequences <= places(length, jobs):
        assert len(held) == len(set(held))
    if several is not None:
        assert share_in_several(found, jobs) == pytest.approx(len(several) / len(set(held)))
    fewer = beginnings(length, jobs, max(1, sequences - 3), np.random.default_rng(seed))
    assert found[: len(fewer)] == fewer


# --- the environment --------------------------------------------------------------------------------------


def test_windows_without_a_decision_are_passed_over() -> None:
    """Among 200 jobs that come one by one only two ever wait together."""
    submit = np.arange(200) * 10
    submit[101] = submit[102] = submit[100] + 1
    log = jobs(200, submit_time=submit, nodes=np.full(200, 4))
    training = Training(episodes={"jobs": 5}, validation={"windows": 1})  # type: ignore[arg-type]
    env = environment_of(training, divided([log], 0.9))
    for _ in range(5):
        env.reset()
        assert env.episode is not None
        assert np.count_nonzero(env.episode.scenario.workload.submit_time == submit[101]) == 2
    with pytest.raises(UsageError, match="1000 episodes in a row have no decision for the order seat"):
        environment_of(training, divided([jobs(100)], 0.9))


def test_what_the_warm_up_costs_is_nobodys_merit() -> None:
    """Ten jobs come at 0 s, run one by one, 5 s each; the agent is asked from 20 s on, when two more come."""
    submit = np.where(np.arange(60) < 10, 0, 20)
    log = jobs(60, submit_time=submit, nodes=np.full(60, 4))
    training = Training(
        episodes={"jobs": 2, "warmup": 10}, validation={"windows": 1}, reward={"name": "MinusMeanWait"}  # type: ignore[arg-type]
    )  # fmt: skip
    env = environment_of(training, divided([log], 0.2))
    env.reset(seed=0)
    earned, terminated = 0.0, False
    while not terminated:
        _, reward, terminated, _, info = env.step(0)
        earned += reward
    before = 5 * (9 + 8 + 7 + 6)  # seconds that nine, eight, seven and six jobs have waited until then
    assert -12 * earned == pytest.approx(12 * info["metrics"]["mean_wait_time"] - before)


# --- progress ---------------------------------------------------------------------------------------------


class Terminal:
    """Standard error as a terminal has it, which keeps what is written."""

    def __init__(self) -> None:
        self.text = ""
        self.encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def fileno(self) -> int:
        raise OSError


def report(steps: int, validation: float) -> Any:
    return SimpleNamespace(steps=steps, of=8000, steps_per_second=1000.0, validation=validation)


def test_progress_of_a_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for quiet in (False, True):
        terminal = Terminal()
        monkeypatch.setattr("sys.stderr", terminal)
        with show_training(Training(), quiet=quiet) as tell:
            tell(report(2000, -30.0))
        for word in ("ppo, mean_bounded_slowdown 30", "1 000 steps/s", "0:00:06 left"):
            assert (word in terminal.text) is not quiet
    assert time_left(0, 9, 0.0) == ""


def test_progress_of_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with show_runs(dict.fromkeys("0123", 100), "sequences", quiet=False) as tell:
        tell("0", 100)
    assert "1 of 4 sequences" in terminal.text
    assert "jobs/s" in terminal.text


def test_progress_of_a_sweep_and_a_campaign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    with show_cells(quiet=False) as told:
        told(2, 1, 4)
        told(3, 1, 4)
    with show_runs({"fcfs": 10, "sjf": 10}, quiet=False) as tell:
        tell("fcfs", 10)
        tell("", 0)
    for words in ("2 of 4 cells, 1 failed", " cells/s", "1 of 2 policies", " jobs/s"):
        assert words in terminal.text
    assert terminal.text.count("drawing the report") >= 2


# --- the learning curve -----------------------------------------------------------------------------------


def curve(rows: int) -> dict[str, Any]:
    steps = np.arange(1, rows + 1) * 100.0
    validation = np.where(np.arange(rows) % 5 == 4, -np.linspace(90, 30, rows), np.nan)
    return {
        "steps": steps,
        "validation": validation,
        "reward": -np.linspace(9, 3, rows),
        "entropy": np.full(rows, np.nan),
    }


def test_the_best_validation_is_marked() -> None:
    figure = draw_learning_curve(curve(20), "mean_wait_time", {"fcfs+easy": 50.0})
    assert [ax.get_ylabel() for ax in figure.axes] == ["mean wait time [s]", "reward"]  # no entropy is known
    top, reward = figure.axes
    lines = {str(line.get_label()): line for line in top.lines}
    assert set(lines) == {"agent", "fcfs+easy: 50", "best: 30"}
    assert lines["agent"].get_xdata().tolist() == [500, 1000, 1500, 2000]  # type: ignore[union-attr]
    assert np.ravel(lines["best: 30"].get_ydata()).tolist() == [30.0]
    assert top.get_yscale() == "linear"
    assert np.asarray(reward.lines[0].get_ydata()).tolist() == np.linspace(-9, -3, 20).tolist()


def test_higher_is_better_for_some() -> None:
    figure = draw_learning_curve({**curve(10), "validation": np.linspace(0.2, 0.7, 10)}, "utilisation")
    assert "best: 0.7" in {line.get_label() for line in figure.axes[0].lines}
    assert figure.axes[0].get_title(loc="left") == "validation (higher is better)"


def test_wide_ranges_are_logarithmic() -> None:
    assert draw_learning_curve(curve(10), "mean_wait_time", {"fcfs": 5000.0}).axes[0].get_yscale() == "log"
    assert draw_learning_curve(curve(10), "mean_wait_time", {"fcfs": 0.0}).axes[0].get_yscale() == "linear"


def test_many_rounds_are_averaged() -> None:
    ax = plot_column(curve(1000), "reward")
    raw, mean = ax.lines
    assert (len(np.asarray(raw.get_xdata())), len(np.asarray(mean.get_xdata()))) == (1000, BINS)
    assert np.mean(np.asarray(mean.get_ydata())) == pytest.approx(-6, abs=0.05)


def test_files_that_are_no_curve(tmp_path: Path) -> None:
    for text in ("", "steps,reward\n1,2\n", "steps,validation\n1,x\n", "no,table"):
        (tmp_path / "c.csv").write_text(text)
        with pytest.raises(
            UsageError, match=r"c\.csv: a learning curve with the columns steps and validation is needed"
        ):
            read_curve(tmp_path / "c.csv")
    (tmp_path / "c.csv").write_text("steps,validation,entropy\n100,nan,\n200,-3.5,0.5\n")
    found = read_curve(tmp_path / "c.csv")
    assert found["steps"].tolist() == [100, 200]
    assert np.isnan(found["validation"][0])
    assert found["entropy"][1] == 0.5


def test_an_agent_of_another_seat_does_not_sit_down(tmp_path: Path) -> None:
    network = Dense({"weight.0": np.ones((8, 45)), "bias.0": np.zeros(8)})
    agent = Agent(QueueWindow(8), Slots(8), network, "placement")
    policy = seated(make("fcfs+easy"), agent, "placement", 8)
    assert isinstance(policy, Pipeline)
    assert policy.placement is agent
