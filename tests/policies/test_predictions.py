"""Estimates other than the user's, by hand: noise, actual run times, last-two predictions with corrections."""

from __future__ import annotations

import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, Actual, LastTwo, Noisy, Pipeline
from tests.kernel.helpers import Row, run, starts, workload

PAST: list[Row] = [(0, 10, 100, 2), (10, 20, 100, 2)]
"""User 1's first two jobs take 10 and 20 s of the 100 s asked for: 15 s on average."""
LONG: Row = (40, 400, 1000, 1)
"""The third is predicted to take 15 s, from 40 to 55, and takes 400."""
HEAD: Row = (41, 10, 10, 2)
"""It waits for both nodes."""


def predicted(rows: list[Row]) -> Workload:
    return workload(rows, 2, user=[1, 1, 1] + [-1] * (len(rows) - 3))


@pytest.mark.parametrize(("asked", "start"), [(13, 42), (14, 450)])
def test_last_two_mean_makes_the_reservation(asked: int, start: int) -> None:
    """The head's shadow time is 55: a job of 13 s at 42 ends by then, one of 14 s does not (and is last)."""
    rows = [*PAST, LONG, HEAD, (42, asked, asked, 1)]
    assert starts(predicted(rows), "fcfs+easy++") == [0, 10, 40, 440, start]


@pytest.mark.parametrize(("asked", "start"), [(59, 56), (60, 450)])
def test_an_outlived_prediction_grows_by_a_minute(asked: int, start: int) -> None:
    """At 55, when the short job ends: 15 + 60 s, until 115. A job of 59 s at 56 ends by then."""
    rows = [*PAST, LONG, HEAD, (42, 13, 13, 1), (56, asked, asked, 1)]
    assert starts(predicted(rows), "fcfs+easy++") == [0, 10, 40, 440, 42, start]


@pytest.mark.parametrize(("asked", "start"), [(299, 116), (300, 450)])
def test_then_by_five(asked: int, start: int) -> None:
    """At 115: 15 + 60 + 300 s, until 415."""
    rows = [*PAST, LONG, HEAD, (42, 13, 13, 1), (56, 59, 59, 1), (116, asked, asked, 1)]
    assert starts(predicted(rows), "fcfs+easy++") == [0, 10, 40, 440, 42, 56, start]


class ExpectedEnds(Observer):
    """Notes the expected end of job 3 after each pass."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}

    def on_pass(self, seconds: float, system: System) -> None:
        job = system.jobs[2]
        if job in system.running:
            self.ends[system.now] = system.running.expected_end(job)


def test_expected_ends_after_each_correction() -> None:
    """The last correction is cut at the 1000 s asked for: 40 + 1000."""
    ends = ExpectedEnds()
    rows = [*PAST, LONG, HEAD, (42, 13, 13, 1), (56, 59, 59, 1), (116, 299, 299, 1)]
    run(predicted(rows), "fcfs+easy++", observers=[ends])
    assert {now: ends.ends[now] for now in (40, 55, 115, 415)} == {40: 55, 55: 115, 115: 415, 415: 1040}


def test_no_history_no_user_and_short_requests() -> None:
    """One ended job is no history; -1 is nobody; a prediction never exceeds what was asked for."""
    rows: list[Row] = [(0, 10, 100, 2), (5, 20, 90, 2), (40, 5, 80, 2), (41, 5, 12, 2), (42, 5, 70, 2)]
    seen: dict[int, int] = {}

    class Estimates(Observer):
        def on_submit(self, job: Job, system: System) -> None:
            seen[job.id] = system.estimate(job)

    jobs = workload(rows, 2, user=[1, 1, 1, 1, -1])
    run(jobs, Pipeline(estimates=LastTwo()), observers=[Estimates()])
    assert seen == {1: 100, 2: 90, 3: 15, 4: 12, 5: 70}


def test_shortest_predicted_candidate_first() -> None:
    """EASY++ tries user 1's job (predicted 15 s, asked 100) before one of 20 s that came first; one node is free."""
    rows: list[Row] = [*PAST, (40, 30, 30, 1), HEAD, (42, 20, 20, 1), (42, 15, 100, 1)]
    jobs = workload(rows, 2, user=[1, 1, -1, -1, -1, 1])
    assert starts(jobs, "fcfs+easy++")[5] == 42
    assert starts(jobs, "fcfs+easy")[4] == 42


def test_actual_run_times() -> None:
    """C asks for 50 s but takes 8: by 10, when B is reserved, it is gone (A asked for 90 and takes 10)."""
    jobs = workload([(0, 10, 90, 3), (1, 5, 5, 4), (2, 8, 50, 1), (2, 0, 7, 1)], 4)
    assert starts(jobs, "fcfs+easy-ar")[:3] == [0, 10, 2]
    assert starts(jobs, Pipeline(backfiller=EASY(), estimates=Actual()))[:3] == [0, 10, 2]
    assert Actual().estimate(jobs.jobs[3]) == 1


def test_noise_stays_within_its_share() -> None:
    """+50 %: between the run time of 1000 s and 1500 s, all over; +0 % is the run time; at least 1 s."""
    jobs = workload([(0, 1000, 1, 1)] * 200 + [(0, 0, 1, 1)], 1)
    seen: list[int] = []

    class Estimates(Observer):
        def on_submit(self, job: Job, system: System) -> None:
            seen.append(system.estimate(job))

    run(jobs, Pipeline(estimates=Noisy(0.5)), observers=[Estimates()])
    assert min(seen[:-1]) >= 1000
    assert max(seen) <= 1500
    assert min(seen[:-1]) < 1025 and max(seen) > 1475
    assert seen[-1] == 1
    seen.clear()
    run(jobs, Pipeline(estimates=Noisy(0)), observers=[Estimates()])
    assert seen == [1000] * 200 + [1]


def test_negative_noise() -> None:
    with pytest.raises(UsageError, match="noise of at least 0, found -1"):
        starts(workload([(0, 1, 1, 1)], 1), "fcfs+easy-noise(-1)")
