"""Studies that choose a policy: parts, goals and fronts by hand, and whole studies of a small log."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hpcsimkit import Simulation, Workload, make
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.candidates import RULES, Candidate, candidates, front, plain
from hpcsimkit.experiments.learn.goal import Goal, figures_of
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.records import weekly_difference
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import LOADS, SHARES, Study
from hpcsimkit.experiments.parts.registry import check
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.results.result import Result


def small_log(seed: int = 1) -> Workload:
    """240 jobs of six users in six weeks on 8 nodes; requests are far above run times, and jobs wait."""
    numbers = np.random.default_rng(seed)
    jobs = 240
    user = numbers.integers(0, 6, jobs)
    run_time = numbers.lognormal(8 + user, 0.5).astype(np.int64).clip(1, 200_000)
    return Workload(
        {
            "submit_time": np.sort(numbers.integers(0, 6 * WEEK, jobs)) + 1000,
            "run_time": run_time,
            "requested_time": run_time * numbers.integers(2, 9, jobs),
            "nodes": numbers.integers(1, 9, jobs),
            "user": user,
        },
        machine_size=8,
        name="small",
    )


SMALL = small_log()
FEW: dict[str, Any] = {"times": [10], "seconds": [300]}
"""A guard and tests of one kind."""


def study(place: Path, workload: Workload = SMALL, **settings: Any) -> Study:
    return Study(Learning(**{**FEW, **settings}), workload, place)


def test_periods_are_whole_weeks() -> None:
    periods = Periods.of(SMALL)
    first = int(SMALL.submit_time.min())
    assert periods == (first, first + 2 * (SMALL.span // WEEK) // 3 * WEEK)
    masks = periods.masks(SMALL)
    assert (masks["past"] ^ masks["test"]).all()
    assert Periods.of(SMALL, 3).test == first + 3 * WEEK
    with pytest.raises(UsageError, match=r"small: --test-from must be a week from 1 to \d, found 99$"):
        Periods.of(SMALL, 99)


def test_losses_by_hand() -> None:
    goal = Goal.named("mean bounded slowdown and mean wait time", 1.5)
    reference = {"mean_bounded_slowdown": 10.0, "mean_wait_time": 940.0, "max_wait_time": 1940.0}
    figures = {"mean_bounded_slowdown": 5.0, "mean_wait_time": 440.0, "max_wait_time": 2910.0}
    assert goal.loss(figures, reference) == pytest.approx(log(0.5))
    assert goal.keeps_limit(figures, reference)
    over = {**figures, "max_wait_time": 5940.0}  # (5940 + 60) / (1940 + 60) is twice the limit
    assert goal.loss(over, reference) == pytest.approx(log(0.5) + 3 * log(2))
    assert not goal.keeps_limit(over, reference)


def test_losses_with_a_limit_of_the_fairness_by_hand() -> None:
    goal = Goal.named("mean wait time", 1.5)._replace(fairness=0.8)
    reference = {"mean_wait_time": 940.0, "max_wait_time": 1940.0, "user_fairness": 0.5}
    figures = {"mean_wait_time": 440.0, "max_wait_time": 1940.0, "user_fairness": 0.4}
    assert goal.loss(figures, reference) == pytest.approx(log(0.5))
    assert goal.keeps_limit(figures, reference)
    unfair = {**figures, "user_fairness": 0.2}  # half of the limit, 0.8 x 0.5
    assert goal.loss(unfair, reference) == pytest.approx(log(0.5) + 3 * log(2))
    assert not goal.keeps_limit(unfair, reference)


def test_candidates_are_policies() -> None:
    found = candidates([10, 30], [60, 300])
    assert len(found) == (2 + 3 * (len(RULES) - 2)) * 3, "a guard changes nothing of FCFS"
    for name, candidate in found.items():
        check(name, None, Trust(()))
        assert candidate.name == name
    assert {*plain()} < {*found}
    for tests in (None, 300):
        recipe = Candidate("predicted-aging", 30, tests).name
        spelt = Candidate("predicted-aging", 30.5, tests).name.replace("30.5", "30")
        assert recipe.startswith("predicted-aging") and not spelt.startswith("predicted")
        assert Simulation(SMALL, recipe).run().hash == Simulation(SMALL, spelt).run().hash


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([(1, 1), (1, 1)], [0]),
        ([(2, 1), (1, 1)], [1]),
        ([(1, 2), (2, 1), (3, 0), (3, 1)], [0, 1, 2]),
        ([], []),
    ],
)
def test_fronts_by_hand(points: list[tuple[float, float]], expected: list[int]) -> None:
    assert front(points) == expected


def test_weekly_differences_by_hand() -> None:
    def result(start: list[int]) -> Result:
        jobs = Workload({"submit_time": [0, 0, WEEK], "run_time": [20] * 3, "nodes": [1] * 3}, machine_size=1)
        begin = np.array(start)
        return Result(jobs, "p", 1, jobs.submit_time, begin, begin + 20, np.ones(3), np.zeros(3, bool))

    one, other = result([0, 20, WEEK]), result([20, 0, WEEK + 30])
    found = weekly_difference(one, other, np.ones(3, bool), "mean_wait_time")
    assert found.mean == -10
    assert (found.low, found.high) == (-30, 0)  # resampling two weeks: sums 0 and -30 of 2 jobs and 1 job
    assert weekly_difference(one, other, np.ones(3, bool), "mean_bounded_slowdown").mean == pytest.approx(
        -0.5
    )


@pytest.fixture(scope="module")
def complete(tmp_path_factory: pytest.TempPathFactory) -> Study:
    done = study(tmp_path_factory.mktemp("learn") / "out")
    done.run()
    return done


PLAIN: dict[str, Any] = {"times": [], "seconds": [], "beside": ["f3+easy-saf"], "longest_wait": 1.0}
"""Neither guards nor tests, and a limit that the best policies exceed."""


@pytest.fixture(scope="module")
def without_tests(tmp_path_factory: pytest.TempPathFactory) -> Study:
    done = study(tmp_path_factory.mktemp("learn") / "out", **PLAIN)
    done.run()
    return done


def outcome_of(done: Study) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.place / "outcome.json").read_text())
    return found


def test_a_whole_study(complete: Study) -> None:
    outcome = outcome_of(complete)
    masks = complete.periods.masks(SMALL)
    assert outcome["jobs"] == {name: int(mask.sum()) for name, mask in masks.items()}
    assert set(outcome["past"]) == set(complete.candidates)
    assert set(outcome["test"]) == {*plain(), *outcome["front"], outcome["policy"], outcome["with_tests"]}
    assert "tests" not in outcome["policy"] and "tests" in outcome["with_tests"]
    for role, file in (("policy", "policy"), ("with_tests", "policy_with_tests")):
        schedule = Simulation(SMALL, make(f"learned:{complete.place}/{file}.json")).run()
        found = outcome["test"][outcome[role]]
        assert found["mean_wait_time"] == schedule.wait_time[masks["test"]].mean()
    attempts = schedule.attempts
    assert attempts is not None and attempts.lost.sum() > 0
    later = masks["test"][attempts.job]
    lost = (attempts.lost * SMALL.size[attempts.job])[later].sum()
    assert found["lost"] == lost / (SMALL.run_time * SMALL.size)[masks["test"]].sum()
    assert outcome["test"]["fcfs+easy"]["lost"] == 0
    for name in ("weeks", "size"):
        assert pandas.read_csv(complete.place / f"{name}.csv")["jobs"].sum() == masks["test"].sum()
    for name in ("report.md", "model_card.md"):
        text = (complete.place / name).read_text()
        assert outcome["policy"] in text and outcome["with_tests"] in text
    assert pandas.read_csv(complete.place / "past.csv")["policy"].tolist() == list(complete.candidates)
    assert (complete.place / "front.png").exists()
    steps = [step for step in (complete.place / "tasks").iterdir() if (step / "outcome.json").exists()]
    assert len(steps) == complete._steps


def test_the_best_within_the_limits_are_chosen(complete: Study) -> None:
    outcome = outcome_of(complete)
    past, goal = outcome["past"], complete.goal
    for role, tested in (("policy", False), ("with_tests", True)):
        kept = [
            name
            for name in past
            if ("tests" in name) is tested and goal.keeps_limit(past[name], past["fcfs+easy"])
        ]
        losses = {name: goal.loss(past[name], past["fcfs+easy"]) for name in kept}
        assert outcome[role] == min(losses, key=losses.__getitem__)
    for name in outcome["front"]:
        longest, slowdown, wait = (
            past[name][metric] for metric in ("max_wait_time", "mean_bounded_slowdown", "mean_wait_time")
        )
        alike = [each for other, each in past.items() if ("tests" in other) is ("tests" in name)]
        shorter = [each for each in alike if each["max_wait_time"] < longest]
        assert not any(
            each["mean_bounded_slowdown"] <= slowdown and each["mean_wait_time"] <= wait for each in shorter
        )


def test_changed_conditions(complete: Study) -> None:
    outcome = outcome_of(complete)
    test = complete.periods.masks(SMALL)["test"]
    found = outcome["sensitivity"]
    assert set(found["load"]) == {f"{load:g}" for load in LOADS}
    for load, figures in found["load"].items():
        assert {outcome["policy"], outcome["with_tests"], outcome["rival"], "fcfs+easy"} == set(figures)
        waits = Simulation(SMALL.scale_load(float(load)), "fcfs+easy").run().wait_time[test]
        assert figures["fcfs+easy"]["mean_wait_time"] == waits.mean()
    assert list(found["users"]) == [f"{share:g}" for share in SHARES]
    half = outcome["with_tests"].replace("seconds=300", "seconds=300,users=0.6")
    waits = Simulation(SMALL, half).run().wait_time[test]
    assert found["users"]["0.6"]["mean_wait_time"] == waits.mean()
    assert "| 60 % |" in (complete.place / "report.md").read_text()


def test_a_policy_beyond_the_limit_is_not_chosen(without_tests: Study) -> None:
    outcome, goal = outcome_of(without_tests), without_tests.goal
    losses = {name: goal.loss(each, outcome["past"]["fcfs+easy"]) for name, each in outcome["past"].items()}
    assert outcome["policy"] == "fcfs+easy" != min(losses, key=losses.__getitem__)


def test_a_centre_without_tests(without_tests: Study) -> None:
    outcome = outcome_of(without_tests)
    assert set(outcome["past"]) == set(candidates([], []))
    assert outcome["with_tests"] is None and outcome["sensitivity"]["users"] == {}
    assert not (without_tests.place / "policy_with_tests.json").exists()
    assert "| With tests | none tried |" in (without_tests.place / "model_card.md").read_text()


def test_further_policies_are_tested_beside(without_tests: Study) -> None:
    outcome = outcome_of(without_tests)
    schedule = Simulation(SMALL, make("f3+easy-saf")).run()
    test = without_tests.periods.masks(SMALL)["test"]
    assert outcome["test"]["f3+easy-saf"]["mean_wait_time"] == schedule.wait_time[test].mean()
    assert {"f3+easy-saf"} <= {*outcome["differences"][outcome["policy"]]}
    assert "| beside |" in (without_tests.place / "report.md").read_text()


def test_the_choice_knows_nothing_of_the_last_part(without_tests: Study, tmp_path: Path) -> None:
    """With other jobs in the last part, all that is known of the past is the same."""
    last = without_tests.periods.masks(SMALL)["test"]
    run_time = np.where(last, 10, SMALL.run_time)
    nodes = np.where(last, 8, SMALL.nodes)
    other = replace(SMALL, columns={**SMALL.columns, "run_time": run_time, "nodes": nodes})
    again, outcome = study(tmp_path / "out", other, **PLAIN).run(), outcome_of(without_tests)
    for key in ("past", "policy", "with_tests", "front", "rival"):
        assert again[key] == outcome[key]


def test_interrupted_and_resumed_is_the_same(without_tests: Study, tmp_path: Path) -> None:
    class Interrupted(KeyboardInterrupt):
        pass

    def stopping(at: int) -> Callable[[int, int, int], None]:
        def tell(done: int, failed: int, of: int) -> None:
            if done == at:
                raise Interrupted

        return tell

    place = tmp_path / "out"
    for stop in (1, len(without_tests.candidates) + 2):
        with pytest.raises(
            Stopped, match=r"stopped; \d+ of \d+ simulations are finished; the same command goes on"
        ):
            study(place, **PLAIN).run(stopping(stop))
    study(place, **PLAIN).run()
    for name in ("outcome.json", "policy.json", "report.md", "past.csv", "test.csv", "weeks.csv", "user.csv"):
        assert (place / name).read_bytes() == (without_tests.place / name).read_bytes()


def test_fairness_by_hand() -> None:
    jobs = Workload(
        {"submit_time": [0, 0, 0], "run_time": [20] * 3, "nodes": [1] * 3, "user": [1, 1, 2]}, machine_size=1
    )
    start = np.array([0, 20, 40])  # slowdowns 1 and 2 of user 1, 3 of user 2
    result = Result(jobs, "p", 1, jobs.submit_time, start, start + 20, np.ones(3), np.zeros(3, bool))
    assert figures_of(result, np.ones(3, bool))["user_fairness"] == pytest.approx(4.5**2 / (2 * (1.5**2 + 9)))


def test_fairness_needs_users(tmp_path: Path) -> None:
    unknown = replace(SMALL, columns={**SMALL.columns, "user": np.full(len(SMALL), -1)})
    with pytest.raises(UsageError, match="small: fairness needs users in the part 'past', found none"):
        study(tmp_path, unknown, fairness=0.9)


def test_folders_of_others_and_short_logs(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError, match="a new folder, or one of a study, is needed; other files are in it"):
        study(tmp_path).run()
    with pytest.raises(UsageError, match="small: at least 3 weeks are needed to learn, found 1"):
        study(tmp_path, SMALL.window(0, 2 * WEEK))
