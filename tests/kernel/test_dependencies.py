"""Dependencies (SWF fields 17 and 18), by hand. Rows: submission, run, requested, nodes; one node each."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.gate import Dependencies
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.system import System
from tests.kernel.helpers import Row, run, starts, workload


def linked(
    rows: list[Row], preceding: list[int], think_time: list[int] | None = None, size: int = 1
) -> Workload:
    think = {} if think_time is None else {"think_time": think_time}
    return workload(rows, size, preceding=preceding, **think)


def submitted(jobs: Workload) -> tuple[list[int], list[int]]:
    result = run(jobs, "fcfs", dependencies=True)
    return result.submit_time.tolist(), result.start_time.tolist()


def test_without_the_option_they_are_ignored() -> None:
    assert starts(linked([(0, 9, 9, 1), (2, 5, 5, 1)], [-1, 1], [-1, 7]), "fcfs") == [0, 9]


@pytest.mark.parametrize("recorded", [2, 16, 100])
def test_known_think_time_counts_from_the_end_whatever_was_recorded(recorded: int) -> None:
    """A ends at 9, the user thinks for 7 s."""
    assert submitted(linked([(0, 9, 9, 1), (recorded, 5, 5, 1)], [-1, 1], [-1, 7])) == ([0, 16], [0, 16])


@pytest.mark.parametrize(("recorded", "submit"), [(2, 9), (9, 9), (50, 50)])
def test_unknown_think_time_not_before_the_end_nor_the_recorded_submission(
    recorded: int, submit: int
) -> None:
    assert submitted(linked([(0, 9, 9, 1), (recorded, 5, 5, 1)], [-1, 1])) == ([0, submit], [0, submit])


def test_no_think_time_joins_at_the_very_instant() -> None:
    """At 9 A ends, B and D are submitted, one pass."""
    jobs = linked([(0, 9, 9, 1), (1, 4, 4, 1), (9, 2, 2, 1)], [-1, 1, -1], [-1, 0, -1])
    assert run(jobs, "sjf", dependencies=True).start_time.tolist() == [0, 11, 9]


def test_jobs_of_one_instant_join_in_the_order_of_the_log() -> None:
    """B (waited for A, ended at 9, no think time) and C (recorded for 9) are equal but for their rows."""
    jobs = linked([(0, 9, 9, 1), (1, 4, 4, 1), (9, 4, 4, 1)], [-1, 1, -1], [-1, 0, -1])
    assert starts(jobs, "fcfs", dependencies=True) == [0, 9, 13]


def test_chain() -> None:
    """A 0-3, B thinks 1 s: 4-6, C thinks 2 s: 8-9."""
    jobs = linked([(0, 3, 3, 1), (1, 2, 2, 1), (2, 1, 1, 1)], [-1, 1, 2], [-1, 1, 2])
    assert submitted(jobs) == ([0, 4, 8], [0, 4, 8])


def test_two_jobs_may_wait_for_one() -> None:
    jobs = linked([(0, 3, 3, 1), (0, 2, 2, 1), (0, 1, 1, 1)], [-1, 1, 1], [-1, 5, 1], size=2)
    assert submitted(jobs) == ([0, 8, 4], [0, 8, 4])


@pytest.mark.parametrize(("preceding", "void"), [([1, 1], 1), ([2, 0], 1), ([-1, 1], 0), ([99, 2], 2)])
def test_references_to_no_earlier_job_are_counted(preceding: list[int], void: int) -> None:
    dependencies = Dependencies()
    dependencies.reset(linked([(0, 1, 1, 1), (5, 1, 1, 1)], preceding))
    assert dependencies.void == void


@pytest.mark.parametrize("preceding", [99, 0, -1, 2])
def test_nobody_to_wait_for(preceding: int) -> None:
    """A predecessor that is missing, 0, unknown, or the job itself: submitted as recorded."""
    assert submitted(linked([(0, 1, 1, 1), (5, 1, 1, 1)], [-1, preceding], [-1, 50])) == ([0, 5], [0, 5])


def test_a_job_submitted_later_is_not_waited_for() -> None:
    assert submitted(linked([(0, 1, 1, 1), (5, 1, 1, 1)], [2, -1], [50, -1])) == ([0, 5], [0, 5])


def test_of_two_jobs_of_one_instant_the_later_row_waits() -> None:
    jobs = linked([(0, 4, 4, 1), (0, 1, 1, 1)], [2, 1], [0, 0], size=2)
    assert submitted(jobs) == ([0, 4], [0, 4])


def test_unsorted_log() -> None:
    """Row 0 was submitted after row 1 and waits for it."""
    jobs = linked([(5, 1, 1, 1), (0, 8, 8, 1)], [2, -1], [3, -1])
    assert submitted(jobs) == ([11, 0], [11, 0])


def test_waits_count_from_the_new_submission_and_scores_too() -> None:
    """B is submitted at 16 (recorded: 2) and waits for C until 20: 4 s. WFP3 at 20 ranks D (15 s) before B."""
    rows = [(0, 9, 9, 1), (2, 4, 4, 1), (10, 10, 10, 1), (15, 4, 4, 1)]
    jobs = linked(rows, [-1, 1, -1, -1], [-1, 7, -1, -1])
    result = run(jobs, "wfp3", dependencies=True)
    assert result.submit_time.tolist() == [0, 16, 10, 15]
    assert result.start_time.tolist() == [0, 24, 10, 20]
    assert result.wait_time.tolist() == [0, 8, 0, 5]


def test_killed_jobs_release_those_that_wait_for_them() -> None:
    """A would run 50 s and is killed at 9."""
    jobs = linked([(0, 50, 9, 1), (2, 5, 5, 1)], [-1, 1], [-1, 1])
    assert starts(jobs, "fcfs", dependencies=True, walltime="kill") == [0, 10]


class Smallest(Order):
    def scores(self, jobs: Any, now: int) -> Any:
        return jobs.nodes


def test_scores_of_an_instant_are_not_those_of_its_earlier_round() -> None:
    """At 1, B and C take no time and end; E, which waited for B, arrives in the second round: smaller than D.

    ::

        .EEE......DDDDD
        .EEE......DDDDD
        ..........DDDDD
        AAAAAAAAAADDDDD
    """
    rows = [(0, 10, 10, 1), (1, 0, 5, 1), (1, 0, 5, 1), (1, 5, 5, 4), (1, 3, 3, 2)]
    jobs = linked(rows, [-1, -1, -1, -1, 2], [-1, -1, -1, -1, 0], size=4)
    assert starts(jobs, Pipeline(order=Smallest()), dependencies=True) == [0, 1, 1, 10, 1]


class RejectsTheFirst(Policy):
    def schedule(self, system: System) -> None:
        for job in system.queue:
            if job.id == 1:
                system.reject(job)
            elif system.fits(job):
                system.start(job)


class Refusals(Observer):
    def __init__(self) -> None:
        self.ids: list[int] = []

    def on_reject(self, job: Job, system: System) -> None:
        self.ids.append(job.id)


def test_whoever_waits_for_a_rejected_job_is_rejected_too_and_said_so() -> None:
    """A is refused: B, who waits for its end, never comes, nor C behind B. D does."""
    rows = [(0, 9, 9, 1), (2, 5, 5, 1), (3, 5, 5, 1), (4, 5, 5, 1)]
    refusals = Refusals()
    jobs = linked(rows, [-1, 1, 2, -1], [-1, 7, 7, -1])
    result = run(jobs, RejectsTheFirst(), dependencies=True, observers=[refusals])
    assert refusals.ids == [1, 2, 3]
    assert result.start_time.tolist() == [-1, -1, -1, 4]
    assert result.finished.tolist() == [False, False, False, True]


def test_a_negative_think_time_does_not_turn_the_clock_back() -> None:
    """Other than -1 (unknown) it is refused, or means nothing: B is not submitted before A ends."""
    with suppress(WorkloadError):
        jobs = linked([(0, 9, 9, 1), (2, 5, 5, 1)], [-1, 1], [-1, -5])
        assert starts(jobs, "fcfs", dependencies=True) == [0, 9]
