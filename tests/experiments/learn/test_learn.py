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
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.collection import UNITS, collected
from hpcsimkit.experiments.learn.goal import Goal, figures_of
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.experiments.learn.recipe import (
    BEHIND,
    PERFECT,
    PREDICTOR,
    RANGES,
    RIVALS,
    keys,
    parameters,
    policy_of,
    start,
)
from hpcsimkit.experiments.learn.records import GROUPS, _report, weekly_difference
from hpcsimkit.experiments.learn.sensitivity import CONDITIONS, TITLES, other_users
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import Study
from hpcsimkit.experiments.learn.tasks import Simulated, shaken
from hpcsimkit.experiments.parts.registry import check
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.io.documents import write_record
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


def test_losses_relative_to_a_rival_by_hand() -> None:
    goal = Goal.named("mean bounded slowdown and mean wait time", 1.5)
    reference = {"mean_bounded_slowdown": 99.0, "mean_wait_time": 9999.0, "max_wait_time": 1940.0}
    rival = {"mean_bounded_slowdown": 10.0, "mean_wait_time": 940.0, "max_wait_time": 9.0}
    figures = {"mean_bounded_slowdown": 2.5, "mean_wait_time": 1940.0, "max_wait_time": 2940.0}
    expected = (log(0.25) + log(2)) / 4 + log(2) / 2  # half of the mean, half of the worst
    assert goal.loss(figures, reference, rival) == pytest.approx(expected)
    over = {**figures, "max_wait_time": 5940.0}
    assert goal.loss(over, reference, rival) == pytest.approx(expected + 3 * log(2))


def test_losses_with_a_limit_of_the_fairness_by_hand() -> None:
    goal = Goal.named("mean wait time", 1.5)._replace(fairness=0.8)
    reference = {"mean_wait_time": 940.0, "max_wait_time": 1940.0, "user_fairness": 0.5}
    figures = {"mean_wait_time": 440.0, "max_wait_time": 1940.0, "user_fairness": 0.4}
    assert goal.loss(figures, reference) == pytest.approx(log(0.5))
    assert goal.keeps_limit(figures, reference)
    unfair = {**figures, "user_fairness": 0.2}  # half of the limit, 0.8 x 0.5
    assert goal.loss(unfair, reference) == pytest.approx(log(0.5) + 3 * log(2))
    assert not goal.keeps_limit(unfair, reference)
    assert goal.stricter().fairness == 0.9


def test_columns_of_a_search_are_the_named_order() -> None:
    found = parameters([log(40_000), log(3), 0.7, 0.2, -0.4])
    requested, size = np.log(SMALL.requested_time), np.log(SMALL.size)
    logarithms = {"mean": requested, "requested": requested, "size": size}  # requests are the predictions
    order = keys(found, SMALL.submit_time.astype(float), logarithms)
    searched = Simulation(SMALL, Pipeline(order, backfiller=EASY())).run()
    named = Simulation(SMALL, make(policy_of(found).replace(BEHIND + PREDICTOR, "+easy"))).run()
    np.testing.assert_array_equal(searched.start_time, named.start_time)
    fcfs = Simulation(SMALL, make("fcfs+easy")).run()
    assert (named.start_time != fcfs.start_time).any()


def test_all_names_are_policies() -> None:
    for position in (*zip(*RANGES, strict=True), start(3600.0, np.zeros(3))):
        for predictor in (PREDICTOR, PERFECT):
            check(policy_of(parameters(position), predictor), None, Trust(()))
    for rival in RIVALS:
        check(rival, None, Trust(()))


def test_shaken_jobs_are_shifted_by_user() -> None:
    jobs = replace(SMALL, columns={**SMALL.columns, "user": np.where(SMALL.user == 5, -1, SMALL.user)})
    again = [shaken(jobs, np.random.default_rng(3)).submit_time for _ in range(2)]
    np.testing.assert_array_equal(*again)
    later = jobs.submit_time > jobs.submit_time.min() + 2 * 86_400  # earlier ones may be held back
    shift = (again[0] - jobs.submit_time)[later]
    assert set(shift) == {days * 86_400 for days in range(-2, 3)}
    user = jobs.user[later]
    for known in range(5):
        assert len(set(shift[user == known])) == 1
    assert len(set(shift[user == -1])) == 5


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


def test_changed_conditions(complete: Study) -> None:
    outcome = complete_outcome(complete)
    test = complete.periods.masks(SMALL)["test"]
    report = (complete.place / "report.md").read_text()
    for condition, change in CONDITIONS.items():
        found = outcome["sensitivity"][condition]
        assert set(found["figures"]) == {outcome["policy"], *found["differences"]}
        assert {"fcfs+easy", outcome["rival"], outcome["limited_rival"]} <= set(found["figures"])
        for policy in (outcome["policy"], "fcfs+easy"):
            waits = Simulation(change(SMALL, test), make(policy)).run().wait_time[test]
            assert found["figures"][policy]["mean_wait_time"] == waits.mean()
        assert TITLES[condition] in report
    higher, others = (outcome["sensitivity"][name]["figures"]["fcfs+easy"] for name in CONDITIONS)
    plain = outcome["test"]["fcfs+easy"]
    assert higher["mean_wait_time"] > plain["mean_wait_time"]
    assert others == plain  # FCFS knows no users


def test_other_users_are_new_and_as_many(complete: Study) -> None:
    test = complete.periods.masks(SMALL)["test"]
    user = other_users(SMALL, test).user
    assert not set(user[test]) & set(SMALL.user)
    assert len(set(user[test])) == len(set(SMALL.user[test]))
    np.testing.assert_array_equal(user[~test], SMALL.user[~test])


def test_calibration_by_hand(tmp_path: Path) -> None:
    task = Simulated("fcfs+easy+history", SMALL, "past", Learning(), records=True)
    store = Store(tmp_path)
    perform([task], store, Learning().engine_for(1))
    quantiles = task.arrays(store)["quantiles"]
    jobs = np.arange(len(SMALL)) < 100
    shares = task.calibration(store, jobs)
    assert list(shares) == ["0.05", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95"]
    assert shares["0.5"] == np.mean(SMALL.run_time[:100] <= quantiles[:100, 3])
    assert 0.2 < shares["0.5"] < shares["0.95"] <= 1


def test_collected_seeds_by_hand(tmp_path: Path) -> None:
    """Of two logs, one is won with all of three seeds, and one with one of them."""

    def write(log: str, seed: int, slowdown: float, high: float) -> None:
        means = {"learned": slowdown, "saf": 7.0, "f1": 5.0, "oracle": 1.0, "fcfs+easy": 9.0}
        test = {
            name: {
                "mean_bounded_slowdown": mean,
                "mean_wait_time": 3600 * mean,
                "max_wait_time": 86_400 * mean,
            }
            for name, mean in means.items()
        }
        won = {"mean": -6.0, "low": -7.0, "high": -5.0}
        interval = {"mean": high - 2, "low": high - 4, "high": high}
        differences = {rival: dict.fromkeys(UNITS, interval) for rival in ("saf", "f1")}
        outcome = {
            "log": log,
            "seed": seed,
            "learned": True,
            "policy": "learned",
            "limited_rival": "saf",
            "rival": "f1",
            "clairvoyant": "oracle",
            "keeps_limit": seed != 1,
            "test": test,
            "differences": differences,
            "perfect": {
                "policy": "oracle",
                "learned": True,
                "keeps_limit": log == "a",
                "differences": {rival: dict.fromkeys(UNITS, won) for rival in ("saf", "f1")},
            },
        }
        (tmp_path / f"{log}-{seed}").mkdir()
        write_record(tmp_path / f"{log}-{seed}" / "outcome.json", outcome)

    for seed in range(3):
        write("a", seed, slowdown=4.0, high=-1.0)
        write("b", seed, slowdown=6.0 + seed, high=-1.0 if seed == 0 else 1.0)
    text = collected(tmp_path)
    assert "| both significantly lower than the best heuristic within the limit | 1 of 2 | 1 of 2 |" in text
    assert "| limit of the longest wait kept | 0 of 2 | 2 of 2 |" in text
    assert "| a | 0.50 | 0.50 | 0.25 | 0.25 |" in text  # (7 - 4) / (7 - 1), (5 - 4) / (5 - 1)
    assert "| b | 0.00 | 0.00 | -0.50 | -0.50 |" in text
    assert "| mean | 0.25 (2 logs) | 0.25 (2 logs) | -0.12 (2 logs) | -0.12 (2 logs) |" in text
    assert "| b | 7.00 | 7.00 | 5.00 | 1.00 | 9.00 |" in text
    perfect = text.partition("Logs, with perfect predictions")[2]
    assert (
        "| both significantly lower than the best heuristic within the limit | 2 of 2 | 2 of 2 |" in perfect
    )
    assert "| limit of the longest wait kept | 1 of 2 | 1 of 2 |" in perfect
    assert "| b | 1.00 | 1.00 | 1.00 | 1.00 |" in perfect
    assert "| b | 6.00, 7.00, 8.00 | 7.00 | 5.00 | 1.00 | 9.00 |" in text
    assert "| b | -3.00 [-5.00, -1.00] *; -1.00 [-3.00, 1.00]; -1.00 [-3.00, 1.00] |" in text


def test_perfect_predictions_are_searched_and_tested_alike(complete: Study, tmp_path: Path) -> None:
    """They leave everything else as it is; reservations go by requested times in both."""
    without, place = complete_outcome(complete), tmp_path / "out"
    outcome = study(place, perfect=True).run()
    perfect = outcome["perfect"]
    assert without["perfect"] is None and without["policy"] == outcome["policy"]
    assert perfect["policy"].endswith("+easy-weighted(mean=1)+actual(reservations=false)")
    schedule = Simulation(SMALL, make(perfect["policy"])).run()
    test = complete.periods.masks(SMALL)["test"]
    assert outcome["test"][perfect["policy"]]["mean_wait_time"] == schedule.wait_time[test].mean()
    assert set(perfect["differences"]) == {"fcfs+easy", outcome["rival"], outcome["limited_rival"]}
    report = (place / "report.md").read_text()
    assert "## Perfect predictions" in report and "reads run times |" in report
    assert "Share of the gap that is closed, with perfect predictions" in collected(tmp_path)


def test_further_policies_are_tested_beside(complete: Study, tmp_path: Path) -> None:
    outcome = study(tmp_path / "out", beside=["f3+easy-saf"]).run()
    schedule = Simulation(SMALL, make("f3+easy-saf")).run()
    test = complete.periods.masks(SMALL)["test"]
    assert outcome["test"]["f3+easy-saf"]["mean_wait_time"] == schedule.wait_time[test].mean()
    assert outcome["policy"] == complete_outcome(complete)["policy"]
    assert next(iter(outcome["differences"])) == "f3+easy-saf"
    assert "| beside |" in (tmp_path / "out" / "report.md").read_text()


def test_a_rival_beside_is_no_further_step(tmp_path: Path) -> None:
    assert study(tmp_path, beside=["fcfs+easy", "fcfs+easy"]).steps == study(tmp_path).steps
    assert study(tmp_path, beside=["f3+easy-saf"]).steps == study(tmp_path).steps + 1


def test_a_guard_is_part_of_the_policy(tmp_path: Path) -> None:
    """It is put around the order that was chosen without it, and tested beside it."""
    jobs, place = small_log(3), tmp_path / "out"
    without = study(place, jobs).run()
    assert "| Guard | none |" in (place / "model_card.md").read_text()
    outcome = study(place, jobs, guard=True).run(overwrite=True)
    assert without["learned"] and outcome["refined"] == without["policy"]
    order, behind = without["policy"].split("+", 1)
    fallback = without["limited_rival"].split("+")[0]
    assert outcome["policy"] == f"guarded({order},fallback={fallback},objective=bounded_slowdown)+{behind}"
    assert outcome["test"][outcome["refined"]] == without["test"][without["policy"]]
    simulation = Simulation(jobs, make(f"learned:{place}/policy.json"))
    schedule = simulation.run()
    changes = simulation.system.order.followed  # type: ignore[attr-defined]
    begin = Periods.of(jobs).learn
    assert outcome["followed"] == [[(time - begin) / WEEK, which] for time, which in changes]
    for week, which in outcome["followed"]:
        assert f"| {which} | {week:.1f} |" in (place / "report.md").read_text()
    test = Periods.of(jobs).masks(jobs)["test"]
    assert outcome["test"][outcome["policy"]]["mean_wait_time"] == schedule.wait_time[test].mean()
    report = (place / "report.md").read_text()
    assert "learned, without its guard" in report and "| order | 0.0 |" in report
    assert "falls back to the order after" in (place / "model_card.md").read_text()


def test_changes_of_a_guard_are_recorded_and_reported(complete: Study, tmp_path: Path) -> None:
    policy = "guarded(laf,fallback=sjf,weeks=0.2,margin=0)+easy"
    found = Simulated(policy, SMALL, "whole", Learning()).run(tmp_path, lambda done: None)
    simulation = Simulation(SMALL, make(policy))
    simulation.run()
    assert found["followed"] == simulation.system.order.followed  # type: ignore[attr-defined]
    assert found["followed"]
    outcome = complete_outcome(complete) | {
        "guarded": True,
        "followed": [[2.53, "fallback"], [4.06, "order"]],
    }
    by = {name: pandas.read_csv(complete.place / f"{name}.csv") for name in GROUPS}
    text = _report(outcome, Periods(0, WEEK, 2 * WEEK), by)
    assert "the last part begins with week 2" in text
    assert "| order | 0.0 |\n| fallback | 2.5 |\n| order | 4.1 |" in text


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
    for stop in (1, 19, 22):
        with pytest.raises(
            Stopped, match=r"stopped; \d+ of \d+ steps are finished; the same command goes on"
        ):
            study(place).run(stopping(stop))
    study(place).run()
    for name in ("outcome.json", "policy.json", "report.md", "test.csv", "weeks.csv", "user.csv"):
        assert (place / name).read_bytes() == (complete.place / name).read_bytes()


def test_fairness_by_hand() -> None:
    jobs = Workload(
        {"submit_time": [0, 0, 0], "run_time": [20] * 3, "nodes": [1] * 3, "user": [1, 1, 2]}, machine_size=1
    )
    start = np.array([0, 20, 40])  # slowdowns 1 and 2 of user 1, 3 of user 2
    result = Result(jobs, "p", 1, jobs.submit_time, start, start + 20, np.ones(3), np.zeros(3, bool))
    assert figures_of(result, np.ones(3, bool))["user_fairness"] == pytest.approx(4.5**2 / (2 * (1.5**2 + 9)))


def test_fairness_needs_users(tmp_path: Path) -> None:
    unknown = replace(SMALL, columns={**SMALL.columns, "user": np.full(len(SMALL), -1)})
    with pytest.raises(UsageError, match="small: fairness needs users in the part 'learn', found none"):
        study(tmp_path, unknown, fairness=0.9)


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
