"""Preemptive schedulers that plan anew at every event: equal attempts on both simulators."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled import replanned
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from tests.compiled.test_equality import assert_equal_schedules, uncompiled, workloads
from tests.compiled.test_machines import assert_equal_placements, crowd, without_counts
from tests.compiled.test_stops import restarts
from tests.drawn import examples
from tests.kernel.machine_cases import KINDS, cases

SCHEDULERS = [
    "oracle-srtf",
    "oracle-srtf-area",
    "smallest-preemptive",
    "las",
    "las(thresholds=[3, 20], promote=1)",
    "las(thresholds=[5], by=time, promote=0.5, demotion=exact)",
    "las(thresholds=[4, 9, 40], promote=3)",
    "gittins(quantum=5, least=2, interval=7)",
    "gittins(quantum=40, by=time, least=1)",
]


@pytest.fixture
def little_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record of stopped attempts has to grow."""
    monkeypatch.setattr(replanned, "SPACE", 0)


def check(jobs: Workload, scheduler: str, restart: Restart, walltime: str) -> None:
    assert_equal_schedules(jobs, make(scheduler), restart=ending(scheduler, restart), walltime=walltime)


def ending(scheduler: str, restart: Restart) -> Restart:
    """Return rules with which jobs do not take turns forever, where each turn loses what was done."""
    takes_turns = "promote" in scheduler or "gittins" in scheduler
    return replace(restart, preempted="continue") if takes_turns else restart


CASES = given(workloads(), st.sampled_from(SCHEDULERS), restarts(), st.sampled_from(["run", "kill"]))
test_random_workloads = uncompiled(examples(3)(CASES(check)))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


def check_on_machines(
    case: tuple[Machines, list[Any]], scheduler: str, restart: Restart, walltime: str
) -> None:
    cluster, jobs = without_counts(case)
    restart = ending(scheduler, restart)
    options: dict[str, Any] = {"cluster": cluster, "restart": restart, "walltime": walltime}
    found, expected = assert_equal_schedules(jobs, make(scheduler), **options)
    assert_equal_placements(found.placements, expected.placements)


ON_MACHINES = given(
    cases(sorted(KINDS.keys() - {"counts"}), most=20),
    st.sampled_from(SCHEDULERS),
    restarts(),
    st.sampled_from(["run", "kill"]),
)
test_random_machines = uncompiled(
    pytest.mark.usefixtures("little_space")(examples(6)(ON_MACHINES(check_on_machines)))
)
test_many_random_machines = pytest.mark.slow(settings(max_examples=10_000)(ON_MACHINES(check_on_machines)))


@uncompiled
@pytest.mark.usefixtures("little_space")
@pytest.mark.parametrize("scheduler", ["oracle-srtf", "las(thresholds=[3, 20], promote=1)"])
def test_many_stops(scheduler: str) -> None:
    jobs = Workload(
        {
            "submit_time": range(0, 120, 3),
            "run_time": [60 - row for row in range(40)],
            "nodes": [1 + row % 3 for row in range(40)],
        },
        machine_size=3,
    )
    found, _ = assert_equal_schedules(jobs, make(scheduler))
    assert found.attempts is not None and len(found.attempts) > len(jobs) + 2 * 3


@uncompiled
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheduler", [each for each in SCHEDULERS if each.startswith("las(")])
def test_the_queues_of_las(scheduler: str, seed: int) -> None:
    """Several jobs change their queues at once, down and up, in the order of their arrival."""
    rng = np.random.default_rng(seed)
    columns = {
        "submit_time": rng.choice([0, 0, 4, 9, 20, 40], 30),
        "run_time": rng.integers(1, 9, 30) * 5,
        "nodes": rng.choice([1, 1, 2, 4], 30),
    }
    found, _ = assert_equal_schedules(Workload(columns, machine_size=6), make(scheduler))
    assert found.attempts is not None and len(found.attempts) > 45


@pytest.mark.parametrize("scheduler", ["oracle-srtf", "las(thresholds=[3000, 20000])"])
def test_a_crowd_on_machines(scheduler: str) -> None:
    """Compiled."""
    cluster, jobs = crowd(120, seed=7)
    found, _ = assert_equal_schedules(jobs, make(scheduler), cluster=cluster)
    assert found.attempts is not None and len(found.attempts) > 140


def test_no_jobs() -> None:
    none = Workload({"submit_time": [], "run_time": [], "nodes": []}, machine_size=3)
    assert_equal_schedules(none, make("oracle-srtf"))


@pytest.mark.parametrize(
    ("scheduler", "reference"),
    [("oracle-srtf", "shortest"), ("las", "dlas-gpu"), ("smallest-preemptive", None), ("gittins", None)],
)
def test_jobs_of_philly(scheduler: str, reference: str | None, shared: Path) -> None:
    """First starts, ends and numbers of preemptions are those of the simulator of Tiresias."""
    with gzip.open(shared / "refs" / "tiresias" / f"{reference or 'shortest'}.csv.gz", "rt") as file:
        rows = [{name: int(float(value)) for name, value in row.items()} for row in csv.DictReader(file)]
    names = {"submit_time": "submit_time", "run_time": "duration", "nodes": "num_gpu"}
    columns = {column: [row[name] for row in rows] for column, name in names.items()}
    few = slice(0, 1000 if reference else 150)
    jobs = Workload({column: values[few] for column, values in columns.items()}, machine_size=32)
    if not reference:
        assert_equal_schedules(jobs, make(scheduler))
        return
    found = Simulation(jobs, make(scheduler), simulator="compiled").run()
    assert found.attempts is not None
    assert found.start_time.tolist() == [row["first_start"] for row in rows]
    assert found.end_time.tolist() == [row["end"] for row in rows]
    assert (found.attempts.count(1000) - 1).tolist() == [row["preemptions"] for row in rows]


@pytest.mark.parametrize(
    ("scheduler", "columns", "reason"),
    [
        ("gittins", {"run_time": [10**11, 1], "nodes": [10**5, 1]}, "its jobs are too large"),
        ("las(thresholds=[1000000000000])", {}, "times of LAS(thresholds=[1000000000000]) are too large"),
        ("gittins(interval=1000000000000)", {}, "are too large"),
    ],
)
def test_numbers_that_are_not_exact_are_refused(scheduler: str, columns: Any, reason: str) -> None:
    jobs = Workload(
        {"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2], **columns}, machine_size=10**5
    )
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(jobs, make(scheduler), simulator="compiled").run()
    assert reason in str(error.value)
