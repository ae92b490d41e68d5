"""Fast paths lead where the slow ones do: numpy and lists, shortened and full passes, scores and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Backfiller, Order
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, SJF, SQF, WFP3, Conservative, Greedy, LargestFirst, Reservations
from tests.drawn import examples
from tests.kernel.helpers import deep, rows_and_size, run, starts, workload
from tests.kernel.test_invariants import options, policies, workloads


@given(jobs=workloads(), name=policies(), how=options(), limit=st.sampled_from([1, 2, 5]))
def test_numpy_equals_lists(jobs: Workload, name: str, how: dict[str, Any], limit: int) -> None:
    expected = run(jobs, name, **how)
    with deep(limit):
        found = run(jobs, name, **how)
    np.testing.assert_array_equal(found.start_time, expected.start_time)
    np.testing.assert_array_equal(found.mode, expected.mode)


class Filtered(Backfiller):
    """Another backfiller made anew for each pass and never trusted to be settled: nothing is remembered."""

    reserves = True

    def __init__(self, make: Callable[[], Backfiller]) -> None:
        self.make = make

    def fill(self, head: Job, system: System) -> Any:
        fresh = self.make()
        fresh.reset(system)
        return fresh.fill(head, system)


FILLERS: dict[str, Callable[[], Backfiller]] = {
    "easy": EASY,
    "easy-sjf": lambda: EASY(candidates=SJF()),
    "easy-wfp3": lambda: EASY(candidates=WFP3()),
    "greedy": Greedy,
    "easy-k(1)": lambda: Reservations(1),
    "easy-k(2)": Reservations,
    "replan": lambda: Reservations(None),
}


@pytest.mark.parametrize("filler", FILLERS)
@given(jobs=workloads(), how=options(), order=st.sampled_from([None, SJF(), LargestFirst(), WFP3()]))
def test_shortened_passes_equal_full_ones(
    filler: str, jobs: Workload, how: dict[str, Any], order: Any
) -> None:
    full = Pipeline(order=order, backfiller=Filtered(FILLERS[filler]))
    assert starts(jobs, Pipeline(order=order, backfiller=FILLERS[filler]()), **how) == starts(
        jobs, full, **how
    )


class ScoredSize(Order):
    def scores(self, jobs: JobColumns, now: int) -> Any:
        return jobs.nodes


class ScoredLength(Order):
    def scores(self, jobs: JobColumns, now: int) -> Any:
        return jobs.requested_time * 1.0


class ScoredArrival(Order):
    def scores(self, jobs: JobColumns, now: int) -> Any:
        return jobs.submit_time - now


@pytest.mark.parametrize(
    "backfiller", [None, EASY(), EASY(candidates=SJF()), Greedy(), Reservations(), Conservative()]
)
@examples(0.6)
@given(
    jobs=workloads(), how=options(), limit=st.sampled_from([200, 2]),
    pair=st.sampled_from([(ScoredSize(), SQF()), (ScoredLength(), SJF()), (ScoredArrival(), None)]),
    commit=st.booleans(), window=st.sampled_from([None, None, 2]),
)  # fmt: skip
def test_scores_that_stand_still_equal_a_key(
    backfiller: Any,
    jobs: Workload,
    how: dict[str, Any],
    limit: int,
    pair: Any,
    commit: bool,
    window: int | None,
) -> None:
    scored, keyed = pair
    with deep(limit):
        found = starts(jobs, Pipeline(scored, None, None, backfiller, commit=commit, window=window), **how)
    assert found == starts(jobs, Pipeline(keyed, None, None, backfiller, commit=commit, window=window), **how)


@pytest.mark.parametrize("walltime", ["run", "kill"])
@given(
    drawn=rows_and_size(),
    order=st.sampled_from(["fcfs", "sjf", "wfp3", "largest"]),
    extra=st.sampled_from(["", "+commit"]),
)
def test_one_reservation_is_easy(walltime: str, drawn: Any, order: str, extra: str) -> None:
    jobs = workload(*drawn)
    expected = starts(jobs, f"{order}+easy{extra}", walltime=walltime)
    assert starts(jobs, f"{order}+easy-k(1){extra}", walltime=walltime) == expected


@pytest.mark.parametrize("order", ["fcfs", "wfp3"])
@pytest.mark.parametrize("backfilling", ["none", "easy", "greedy", "easy-sjf"])
def test_really_deep_queues(order: str, backfilling: str) -> None:
    """A thousand jobs at once, with the limit as it is: the same as if no queue were ever deep."""
    draw = np.random.default_rng(1)
    columns = {
        "submit_time": np.sort(draw.integers(0, 300, 1000)),
        "run_time": draw.integers(0, 90, 1000),
        "requested_time": draw.integers(1, 120, 1000),
        "nodes": draw.integers(1, 17, 1000),
    }
    jobs = Workload(columns, machine_size=16)
    with deep(10_000):
        expected = run(jobs, f"{order}+{backfilling}")
    assert run(jobs, f"{order}+{backfilling}").hash == expected.hash
