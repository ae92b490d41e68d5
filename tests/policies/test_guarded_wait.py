"""Who has waited for too long goes first. Rows: submission, run, requested, nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Simulation, check_policy, make
from hpcsimkit.errors import UsageError
from hpcsimkit.policies import EASY, SJF, UNICEF, FCFSShortest, GuardedWait, HoleTests, Pipeline
from tests.kernel.helpers import Row, rows_and_size, run, starts, workload

LONG: list[Row] = [(0, 100, 100, 1), (1, 900, 900, 1), *((90 + 90 * k, 100, 100, 1) for k in range(8))]
"""On one node, with SJF: the second job waits for as long as shorter ones come."""


def test_shorter_jobs_pass_until_the_wait_is_too_long() -> None:
    """By t=600 s, six jobs have waited 0, 10, 20, 30, 40 and 50 s: the mean counts as one minute.

    Nine minutes after its submission, that is at 600 s, the long job goes first.
    """
    assert starts(workload(LONG, 1), "sjf")[1] == 900
    assert starts(workload(LONG, 1), "sjf+guarded-wait(times=9)")[1] == 600
    assert starts(workload(LONG, 1), "sjf+guarded-wait(times=10)")[1] == 700


def test_the_longest_wait_goes_first() -> None:
    """At 1000 s, two jobs have waited for more than 10 minutes; then, for less than ten times the mean wait."""
    rows: list[Row] = [(0, 1000, 1000, 1), (200, 60, 60, 1), (100, 80, 80, 1), (900, 5, 5, 1)]
    assert starts(workload(rows, 1), "sjf+guarded-wait(times=10)") == [0, 1085, 1000, 1080]


def naive(rows: list[Row], times: float, key: object) -> list[int]:
    """One node, strictly in order: recompute everything whenever it is idle."""
    assert callable(key)
    waiting, found, now, waits = list(range(len(rows))), [-1] * len(rows), 0, list[int]()
    while waiting:
        now = max(now, min(rows[j][0] for j in waiting))
        there = sorted((j for j in waiting if rows[j][0] <= now), key=lambda j: (rows[j][0], j))
        limit = times * max(sum(waits) / max(len(waits), 1), 60)
        late = sorted((j for j in there if now - rows[j][0] > limit), key=lambda j: rows[j][0])
        j = late[0] if late else min(there, key=lambda j: key(rows[j]))
        found[j] = now
        waits.append(now - rows[j][0])
        waiting.remove(j)
        now += rows[j][1]
    return found


@given(
    rows=st.lists(
        st.tuples(st.integers(0, 2000), st.integers(1, 200), st.integers(200, 900), st.just(1)),
        min_size=1,
        max_size=15,
    ),
    times=st.sampled_from([0.5, 2, 5]),
)
def test_any_order_is_guarded_as_by_a_naive_simulator(rows: list[Row], times: float) -> None:
    rows = sorted(rows)
    jobs = workload(rows, 1)
    assert starts(jobs, f"sjf+guarded-wait(times={times})") == naive(rows, times, lambda row: row[2])
    assert starts(jobs, f"guarded-wait(times={times})+laf") == naive(rows, times, lambda row: -row[2])


@pytest.mark.parametrize("name", ["fcfs", "sjf", "unicef", "wfp3", "fcfs-shortest", "f1", "aged(mean=1)"])
@given(case=rows_and_size())
def test_a_guard_that_never_acts_changes_nothing(name: str, case: tuple[list[Row], int]) -> None:
    rows, size = case
    jobs = workload(rows, size)
    guarded = run(jobs, f"{name}+guarded-wait(times=1000)+easy")
    np.testing.assert_array_equal(guarded.start_time, run(jobs, f"{name}+easy").start_time)


def test_tests_that_are_stopped_do_not_count_as_starts() -> None:
    """The wait of the job that is stopped at 17 s counts at 150 s, and that of the one done at 7 s is 0."""
    seen = []

    class Watching(GuardedWait):
        def on_start(self, job: object, allocation: object, system: object) -> None:
            super().on_start(job, allocation, system)  # type: ignore[arg-type]
            seen.append((len(self._counted), self._waited))

    rows: list[Row] = [(0, 100, 100, 3), (1, 50, 50, 4), (2, 5, 500, 1), (3, 300, 500, 1)]
    policy = Pipeline(Watching(), backfiller=EASY(), tester=HoleTests(10))
    run(workload(rows, 4), policy)
    assert seen == [(1, 0), (1, 0), (2, 0), (3, 99), (4, 99 + 147)]


def test_names_join_it_with_the_order() -> None:
    expected = GuardedWait(UNICEF(), times=5)
    for name in (
        "unicef+guarded-wait(times=5)",
        "guarded-wait(unicef, times=5)",
        "guarded-wait(times=5)+unicef",
    ):
        assert make(name).order == expected  # type: ignore[attr-defined]
    assert make("guarded-wait").order == GuardedWait()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="gives the order twice"):
        make("sjf+guarded-wait+unicef+saf")


def test_it_is_a_correct_policy() -> None:
    check_policy(Pipeline(GuardedWait(FCFSShortest(), 2.0), backfiller=EASY(SJF())))


@pytest.mark.parametrize("times", [0, -1, "x", float("inf")])
def test_times_must_be_above_0(times: object) -> None:
    with pytest.raises(UsageError, match="times needs a number above 0"):
        Simulation(workload(LONG, 1), Pipeline(GuardedWait(times=times))).run()  # type: ignore[arg-type]
