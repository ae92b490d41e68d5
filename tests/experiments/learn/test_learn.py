"""Studies that learn an order: parts, goals and candidates by hand, and whole studies of a small log."""

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
from hpcsimkit.experiments.learn.collection import collected
from hpcsimkit.experiments.learn.goal import Goal
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.recipe import FAMILIES, RIVALS, Family
from hpcsimkit.experiments.learn.records import weekly_difference
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import Study
from hpcsimkit.experiments.registry import check
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
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


def study(place: Path, workload: Workload = SMALL, **settings: Any) -> Study:
    return Study(Learning(evaluations=20, **settings), workload, place)


def test_periods_are_whole_weeks() -> None:
    periods = Periods.of(SMALL)
    first = int(SMALL.submit_time.min())
    weeks = SMALL.span // WEEK
    assert periods == (first, first + weeks // 3 * WEEK, first + 2 * weeks // 3 * WEEK)
    masks = periods.masks(SMALL)
    assert (sum(mask.astype(int) for mask in masks.values()) == 1).all()
    assert Periods.of(SMALL, 1, 3).choose == first + WEEK


@pytest.mark.parametrize(("choose", "test"), [(3, 3), (4, 2), (1, 99)])
def test_periods_in_another_order(choose: int, test: int) -> None:
    with pytest.raises(UsageError, match=rf"ascending order from 1 to \d, found {choose} and {test}$"):
        Periods.of(SMALL, choose, test)


def test_losses_by_hand() -> None:
    goal = Goal.named("mean bounded slowdown and mean wait time", 1.5)
    reference = {"mean_bounded_slowdown": 10.0, "mean_wait_time": 940.0, "max_wait_time": 1940.0}
    figures = {"mean_bounded_slowdown": 5.0, "mean_wait_time": 440.0, "max_wait_time": 2910.0}
    assert goal.loss(figures, reference) == pytest.approx(log(0.5))
    assert goal.keeps_limit(figures, reference)
    over = {**figures, "max_wait_time": 5940.0}  # (5940 + 60) / (1940 + 60) is twice the limit
    assert goal.loss(over, reference) == pytest.approx(log(0.5) + 3 * log(2))
    assert not goal.keeps_limit(over, reference)
    assert goal.stricter().longest_wait == 1.25


@pytest.mark.parametrize("family", [FAMILIES[0], FAMILIES[3]], ids=str)
def test_columns_of_a_search_are_the_named_policy(family: Family) -> None:
    assert family.features == ("requested", "size")
    position = [log(40_000), log(3), 0.9, -0.4] if family.form == "bounded" else [0.9, -0.4]
    parameters = family.parameters(position)
    logarithms = {"requested": np.log(SMALL.requested_time), "size": np.log(SMALL.size)}
    order = family.order(parameters, SMALL.submit_time.astype(float), logarithms)
    searched = Simulation(SMALL, Pipeline(order, backfiller=EASY()), simulator="simpy").run()
    named = Simulation(SMALL, make(family.policy(parameters)), simulator="simpy").run()
    np.testing.assert_array_equal(searched.start_time, named.start_time)
    assert (named.wait_time > 0).any()


def test_all_names_are_policies() -> None:
    for family in FAMILIES:
        low, high = family.ranges
        for position in (low, high, family.start(3600.0)):
            check(family.policy(family.parameters(position)))
    for rival in RIVALS:
        check(rival)


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


def test_a_whole_study(complete: Study) -> None:
    outcome = json.loads((complete.place / "outcome.json").read_text())
    assert outcome["jobs"] == {name: int(m.sum()) for name, m in complete.periods.masks(SMALL).items()}
    assert set(outcome["test"]) >= {outcome["policy"], outcome["rival"], "fcfs+easy", "oracle-sjf+easy"}
    schedule = Simulation(SMALL, make(f"learned:{complete.place}/policy.json")).run()
    test = complete.periods.masks(SMALL)["test"]
    assert outcome["test"][outcome["policy"]]["mean_wait_time"] == schedule.wait_time[test].mean()
    weeks = pandas.read_csv(complete.place / "weeks.csv")
    assert weeks["jobs"].sum() == test.sum()
    for name in ("report.md", "model_card.md"):
        assert outcome["policy"] in (complete.place / name).read_text()
    sizes = pandas.read_csv(complete.place / "size.csv")
    assert sizes["jobs"].sum() == test.sum()
    steps = (complete.place / "tasks").iterdir()
    assert len([step for step in steps if (step / "outcome.json").exists()]) <= complete.steps
    assert "small" in collected(complete.place.parent)


def test_the_choice_knows_nothing_of_the_last_part(complete: Study, tmp_path: Path) -> None:
    """With other jobs in the last part, the same policy is chosen."""
    last = complete.periods.masks(SMALL)["test"]
    run_time = np.where(last, 10, SMALL.run_time)
    nodes = np.where(last, 8, SMALL.nodes)
    other = replace(SMALL, columns={**SMALL.columns, "run_time": run_time, "nodes": nodes})
    assert study(tmp_path / "out", other).run()["refined"] == complete_outcome(complete)["refined"]


def complete_outcome(done: Study) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((done.place / "outcome.json").read_text())
    return found


def test_interrupted_and_resumed_is_the_same(complete: Study, tmp_path: Path) -> None:
    class Interrupted(KeyboardInterrupt):
        pass

    def stopping(at: int) -> Callable[[int, int, int], None]:
        def tell(done: int, failed: int, of: int) -> None:
            if done == at:
                raise Interrupted

        return tell

    place = tmp_path / "out"
    for stop in (1, 6, 20):
        with pytest.raises(
            Stopped, match=r"stopped; \d+ of \d+ steps are finished; the same command goes on"
        ):
            study(place).run(stopping(stop))
    study(place).run()
    for name in ("outcome.json", "policy.json", "report.md", "test.csv", "weeks.csv", "user.csv"):
        assert (place / name).read_bytes() == (complete.place / name).read_bytes()


def test_folders_of_others_and_short_logs(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError, match="a new folder, or one of a study, is needed; other files are in it"):
        study(tmp_path).run()
    with pytest.raises(UsageError, match="small: at least 3 weeks are needed to learn, found 1"):
        study(tmp_path, SMALL.window(0, 2 * WEEK))
    with pytest.raises(UsageError, match="folders with complete studies are needed, found none"):
        collected(tmp_path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", '{"policy": "name of a heuristic"} is needed, found None'),
        ('{"policy": 7}', "is needed, found 7"),
        ('{"policy": "agent:a.hpcsim"}', "is needed, found 'agent:a.hpcsim'"),
        ('{"policy": "learned:policy.json"}', "is needed, found 'learned:policy.json'"),
        ('{"policy": "fcfs+esay"}', "unknown policy 'esay'"),
        ('{"policy": "os:system"}', "'os:system' is"),
    ],
)
def test_learned_files_name_heuristics_only(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "policy.json"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        make(f"learned:{file}")
    assert str(caught.value).startswith(f"{file}: ")
    assert problem in str(caught.value)
