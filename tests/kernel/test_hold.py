"""Inspectors that hold jobs, by hand. Rows: submission, run, requested, nodes; four nodes."""

from __future__ import annotations

from typing import Any

import pytest

from hpcsimkit import SJF, Simulation, Workload, measure
from hpcsimkit.errors import StalledError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, HoldUnfit, Pipeline
from tests.kernel.helpers import starts, workload


class HoldSecond(Inspector):
    """Holds job 2 before an instant."""

    def __init__(self, until: int) -> None:
        self.until = until

    def accept(self, job: Job, system: System) -> bool:
        return job.id != 2 or system.now >= self.until


ROWS = [(0, 20, 20, 1), (1, 1, 1, 1)]


def test_a_held_job_is_asked_about_at_the_next_scheduling_point() -> None:
    """A's end at 20 is the next thing that happens after 1."""
    assert starts(workload(ROWS, 4), Pipeline(inspector=HoldSecond(12))) == [0, 20]


def test_after_max_interval_at_the_latest() -> None:
    """Asked at 1, 6, 11 and 16."""
    assert starts(workload(ROWS, 4), Pipeline(inspector=HoldSecond(12), max_interval=5)) == [0, 16]


def test_a_scheduling_point_in_between_asks_too() -> None:
    """C arrives at 13: B is asked about then."""
    jobs = workload([*ROWS, (13, 1, 1, 1)], 4)
    assert starts(jobs, Pipeline(inspector=HoldSecond(12), max_interval=15)) == [0, 13, 13]


def test_max_rejections() -> None:
    """Held at 1 and 6; at 11 the limit of two lets it go, a second before the inspector would."""
    policy = Pipeline(inspector=HoldSecond(12), max_interval=5, max_rejections=2)
    assert starts(workload(ROWS, 4), policy) == [0, 11]


def test_each_job_has_its_own_count_of_rejections() -> None:
    """Everything is held once: at 0 A, at 1 (A may go) B, at 2 C, at 3 D, at 4 E, until A ends at 10."""

    class No(Inspector):
        def accept(self, job: Job, system: System) -> bool:
            return False

    jobs = workload([(0, 9, 9, 1), (1, 9, 9, 1), (2, 9, 9, 1), (3, 9, 9, 1), (4, 9, 9, 1)], 5)
    policy = Pipeline(inspector=No(), max_rejections=1)
    assert starts(jobs, policy) == [1, 2, 3, 4, 10]


def test_a_hold_ends_the_pass_for_everyone() -> None:
    """B is held until 20: C fits, could be backfilled, and waits."""
    jobs = workload([*ROWS, (2, 1, 1, 1)], 4)
    assert starts(jobs, Pipeline(inspector=HoldSecond(12), backfiller=EASY())) == [0, 20, 20]


def test_hold_with_nothing_to_come_is_an_error() -> None:
    """At 20 nothing runs and nothing is to come, and B is still held."""
    message = "job 2 at t=20 s is held although nothing runs and nothing is to come"
    with pytest.raises(StalledError, match=message):
        starts(workload(ROWS, 4), Pipeline(inspector=HoldSecond(21)))
    with pytest.raises(StalledError, match=message):
        starts(workload(ROWS, 4), Pipeline(inspector=HoldSecond(30), max_interval=7))


def test_hold_unfit_reserves_and_backfills_nothing() -> None:
    """B (four nodes) does not fit and is held; C is not backfilled. Then strict FCFS.

    ::

        ..........BBBBBC
        AAAAAAAAAABBBBB
    """
    rows = [(0, 10, 10, 3), (1, 5, 5, 4), (2, 1, 1, 1)]
    held = Pipeline(inspector=HoldUnfit(), backfiller=EASY())
    assert starts(workload(rows, 4), held) == starts(workload(rows, 4), Pipeline()) == [0, 10, 15]


# --- the example of SchedInspector (HPDC 2022), figure 1 and table 1, times in minutes --------------------------


class RejectOnce(Inspector):
    """Rejects job 2 in minute 1."""

    def accept(self, job: Job, system: System) -> bool:
        return (job.id, system.now) != (2, 60)


FIVE_NODES = {"a": ([0, 1, 1, 2], [4, 5, 5, 3], [2, 3, 2, 3]), "b": ([0, 1, 2], [4, 5, 3], [2, 4, 3])}
"""Submissions, run times and nodes; job 1 runs before the example begins."""


@pytest.mark.parametrize(
    ("case", "inspector", "waits", "slowdown"),
    [
        ("a", None, [0, 5, 4], (1 + 2 + 7 / 3) / 3),
        ("a", RejectOnce(), [4, 4, 0], (1.8 + 1.8 + 1) / 3),  # printed: waits 4, 4 and 1, a slip
        ("b", None, [3, 7], (1.6 + 10 / 3) / 2),
        ("b", RejectOnce(), [4, 0], (1.8 + 1) / 2),
    ],
)
def test_the_five_nodes_of_the_paper(case: str, inspector: Any, waits: list[int], slowdown: float) -> None:
    submitted, run_times, nodes = FIVE_NODES[case]
    columns = {
        "submit_time": [60 * t for t in submitted],
        "run_time": [60 * t for t in run_times],
        "nodes": nodes,
    }
    policy = Pipeline(order=SJF(), inspector=inspector, commit=case == "b")
    result = Simulation(Workload(columns, machine_size=5), policy).run()
    assert (result.wait_time[1:] / 60).tolist() == waits
    found = measure(result, warmup=60, names=["mean_bounded_slowdown"])
    assert found["mean_bounded_slowdown"] == pytest.approx(slowdown)
