"""Studies on machines and in partitions: the schedules are those of a comparison, with machines and partitions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas
import pytest

from hpcsimkit import Simulation, Workload
from hpcsimkit.experiments.learn.periods import WEEK
from hpcsimkit.experiments.learn.records import _model_card
from hpcsimkit.experiments.learn.settings import Learning
from hpcsimkit.experiments.learn.study import Study
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
    settings = Learning(times=[], seconds=[300], **SETTINGS[request.param])
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
    waits = compared(complete.settings, "fcfs+easy", JOBS.scale_load(1.2)).wait_time[test]
    assert outcome["sensitivity"]["load"]["1.2"]["fcfs+easy"]["mean_wait_time"] == waits.mean()
    assert outcome["past"]["fcfs+easy+tests(seconds=300)"]["lost"] > 0
    card = (complete.place / "model_card.md").read_text()
    assert "5 machines" in card and "Slurm" not in card
    of_slurm = _model_card(complete.periods, stored, outcome | {"slurm": True})
    begin, end = "go by requested times.\n", "for `as-configured` only.\n"
    added = of_slurm[of_slurm.index(begin) + len(begin) : of_slurm.index(end) + len(end)]
    assert added.startswith("- Of Slurm's configuration, machines, partitions") and "\n\n" not in added
    assert of_slurm.replace(added, "") == card


def _utilisation(result: Result, jobs: Any) -> float:
    """Return the share of the CPUs in use from the first to the last submission of some jobs."""
    assert result.placements is not None
    begin, end = result.submit_time[jobs].min(), result.submit_time[jobs].max()
    seconds = np.clip(result.end_time, begin, end) - np.clip(result.start_time, begin, end)
    return float((result.placements.totals[:, 0] * seconds).sum() / (result.size * (end - begin)))


def test_other_machines_are_another_study(complete: Study) -> None:
    task = complete._simulated("fcfs+easy", "whole")
    fewer = Learning(**{**SETTINGS["machines"], "machines": MACHINES[1:]})
    other = type(task)("fcfs+easy", JOBS, "whole", fewer)
    assert task.fingerprint != other.fingerprint
