"""Studies on machines and in partitions: the schedules are those of a comparison, with machines and partitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

from hpcsimkit import Simulation, Workload
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.periods import WEEK
from hpcsimkit.experiments.learn.recipe import BEHIND, PREDICTOR, keys, parameters, policy_of
from hpcsimkit.experiments.learn.sensitivity import other_users
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import Study
from hpcsimkit.experiments.learn.tasks import Search
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.results.breakdown import breakdown
from hpcsimkit.results.result import Result

MACHINES: list[dict[str, Any]] = [
    {"name": "thin", "count": 3, "cpus": 8, "memory": "16 GiB"},
    {"name": "gpu", "count": 2, "cpus": 8, "gpus": 2, "memory": "32 GiB"},
]
PARTITIONS: list[dict[str, Any]] = [
    {"name": "cpu", "machines": ["thin1", "thin2", "thin3"], "users": ["ada", "ben", "cleo"]},
    {"name": "gpu", "machines": ["gpu1", "gpu2"]},
]
SETTINGS: dict[str, dict[str, Any]] = {
    "machines": {"machines": MACHINES, "placement": "best-fit"},
    "partitions": {"machines": MACHINES, "partitions": PARTITIONS},
}


def jobs_with_requests() -> Workload:
    """90 jobs of three users in four weeks; requests are far above run times, and jobs wait."""
    numbers = np.random.default_rng(5)
    jobs = 90
    user, gpus = numbers.integers(0, 3, jobs), numbers.integers(0, 3, jobs) % 3
    run_time = numbers.lognormal(9.5 + user, 0.6).astype(np.int64).clip(1, 150_000)
    return Workload(
        {
            "submit_time": np.sort(numbers.integers(0, 4 * WEEK, jobs)),
            "run_time": run_time,
            "requested_time": run_time * numbers.integers(2, 9, jobs),
            "nodes": numbers.integers(1, 3, jobs),
            "cpus": numbers.integers(1, 9, jobs),
            "gpus": gpus,
            "memory": np.full(jobs, 2**30),
            "user": user,
            "partition": np.where(gpus > 0, 1, numbers.integers(0, 2, jobs)),
        },
        resources=("cpus", "gpus", "memory"),
        labels={"user": ("ada", "ben", "cleo"), "partition": ("cpu", "gpu")},
        name="small",
    )


JOBS = jobs_with_requests()


def compared(settings: Learning, policy: str, jobs: Workload = JOBS) -> Result:
    """Return the schedule of a policy as a comparison makes it."""
    return Simulation(jobs, settings.policy_named(policy), settings.scheduled).run()


@pytest.fixture(scope="module", params=SETTINGS)
def complete(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Study:
    settings = Learning(evaluations=20, **SETTINGS[request.param])
    done = Study(settings, JOBS, tmp_path_factory.mktemp("learn") / "out")
    done.run()
    return done


def test_a_whole_study(complete: Study) -> None:
    outcome = json.loads((complete.place / "outcome.json").read_text())
    test = complete.periods.masks(JOBS)["test"]
    for policy in {outcome["policy"], outcome["rival"], "fcfs+easy"}:
        schedule = compared(complete.settings, policy)
        assert outcome["test"][policy]["mean_wait_time"] == schedule.wait_time[test].mean()
        stored = complete._simulated(policy, "whole").result(complete.store)
        for by in ("size", "partition"):
            pandas.testing.assert_frame_equal(breakdown(stored, by), breakdown(schedule, by))
        assert stored.size == schedule.size == 40
        assert outcome["utilisation"][policy] == _utilisation(schedule, test)
    waits = compared(complete.settings, "fcfs+easy", other_users(JOBS, test)).wait_time[test]
    figures = outcome["sensitivity"]["other-users"]["figures"]["fcfs+easy"]
    assert figures["mean_wait_time"] == waits.mean()  # they may use the partitions of the former ones
    assert "5 machines" in (complete.place / "model_card.md").read_text()


def _utilisation(result: Result, jobs: Any) -> float:
    """Return the share of the CPUs in use from the first to the last submission of some jobs."""
    assert result.placements is not None
    begin, end = result.submit_time[jobs].min(), result.submit_time[jobs].max()
    seconds = np.clip(result.end_time, begin, end) - np.clip(result.start_time, begin, end)
    return float((result.placements.totals[:, 0] * seconds).sum() / (result.size * (end - begin)))


def test_a_search_simulates_the_named_order(complete: Study) -> None:
    """With requested times as predictions; on machines, with the placement of the settings."""
    recording = complete._recording(PREDICTOR)
    search = Search(JOBS, {}, recording, "fcfs+easy", complete.store, complete.goal, 20, 0)
    found = parameters([11.0, 1.0, 0.7, 0.2, -0.4])
    requested, size = np.log(JOBS.requested_time), np.log(JOBS.size)
    order = keys(
        found, JOBS.submit_time.astype(float), {"mean": requested, "requested": requested, "size": size}
    )
    searched = search._simulated(Pipeline(order, backfiller=EASY()), JOBS)
    named = compared(complete.settings, policy_of(found).replace(BEHIND + PREDICTOR, "+easy"))
    np.testing.assert_array_equal(searched.start_time, named.start_time)
    assert (named.start_time != compared(complete.settings, "fcfs+easy").start_time).any()


def test_predictions_are_recorded_for_every_job(complete: Study) -> None:
    recorded = complete._recording(PREDICTOR).arrays(complete.store)
    assert (recorded["mean"] >= 1).all() and len(set(recorded["mean"])) > 10


def test_other_machines_are_another_study(complete: Study) -> None:
    task = complete._simulated("fcfs+easy", "whole")
    fewer = Learning(evaluations=20, **{**SETTINGS["machines"], "machines": MACHINES[1:]})
    other = type(task)("fcfs+easy", JOBS, "whole", fewer)
    assert task.fingerprint != other.fingerprint


def test_a_guard_is_refused_with_partitions(tmp_path: Path) -> None:
    settings = Learning(guard=True, **SETTINGS["partitions"])
    assert isinstance(settings.scheduled, Partitions)
    with pytest.raises(UsageError, match="--guard needs a cluster without partitions"):
        Study(settings, JOBS, tmp_path)
