"""Lost capacity: by hand, and second by second whatever the windows in which a schedule is examined."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results import lost_capacity as module
from hpcsimkit.results.lost_capacity import Spans, lost_capacity, smallest_covering
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result

SIZE = 6


@st.composite
def schedules(draw: st.DrawFn) -> Spans:
    """Jobs in any order that wait, run and overlap at random: also what no scheduler would do."""
    few = st.integers(0, 9)
    rows = draw(st.lists(st.tuples(st.integers(0, 30), few, few, st.integers(0, SIZE + 2)), min_size=1))
    submit, wait, run, nodes = np.array(rows).T
    return Spans(submit, submit + wait, submit + wait + run, nodes)


def second_by_second(jobs: Spans, begin: int, stop: int) -> int:
    lost = 0
    for now in range(begin, stop):
        idle = SIZE - jobs.nodes[(jobs.start <= now) & (now < jobs.end)].sum()
        waiting = jobs.nodes[(jobs.submit <= now) & (now < jobs.start)]
        lost += idle if (waiting <= idle).any() else 0
    return int(lost)


@given(schedules(), st.integers(1, 5), st.integers(0, 20), st.integers(0, 20))
def test_second_by_second(jobs: Spans, window: int, early: int, late: int) -> None:
    begin = int(jobs.submit.min()) + early
    stop = max(begin, int(jobs.end.max()) - late)
    with patch.object(module, "WINDOW", window):
        assert lost_capacity(jobs, SIZE, begin, stop) == second_by_second(jobs, begin, stop)


def test_a_long_queue_is_not_copied_for_each_window() -> None:
    """All jobs wait until the end: the windows double."""
    submit = np.arange(100)
    jobs = Spans(submit, np.full(100, 1000), np.full(100, 1001), np.ones(100, dtype=np.int64))
    with patch.object(module, "WINDOW", 1):
        sizes = [len(here.submit) for _, _, here in module._windows(jobs, 0, 1001)]
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 100]


def test_times_too_far_apart_for_plain_numbers() -> None:
    far = 2**61
    instants, place = module._instants(np.array([far, 3, far, 5]))
    assert (instants.tolist(), place.tolist()) == ([3, 5, far], [2, 0, 2, 1])


@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12), st.integers(0, 300))),
    st.sampled_from([127, 128, 257, 2**15, 2**31, 2**62]),
)
def test_smallest_covering_agrees_with_looking(ranges: list[tuple[int, int, int]], nothing: int) -> None:
    rows = [(min(a, b), max(a, b), value) for a, b, value in ranges]
    first, stop, value = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    found = smallest_covering(first, stop, value, 12, nothing=nothing)
    for position, smallest in enumerate(found.tolist()):
        covering = [value for begin, end, value in rows if begin <= position < end]
        assert smallest == min([*covering, nothing])


@pytest.mark.parametrize("jobs", [1, 2, 3, 20, 21, 1000])
def test_percentiles_are_those_of_numpy(jobs: int) -> None:
    rng = np.random.default_rng(jobs)
    submit, run_time = np.sort(rng.integers(0, 10**6, jobs)), rng.integers(0, 10**4, jobs)
    start = submit + rng.integers(0, 10**5, jobs)
    workload = Workload({"submit_time": submit, "run_time": run_time, "nodes": [1] * jobs})
    mode, killed = np.ones(jobs, dtype=np.uint8), np.zeros(jobs, dtype=bool)
    values = measure(Result(workload, "p", 9, submit, start, start + run_time, mode, killed))
    wait = (start - submit).astype(float)
    slowdown = np.maximum(1, (wait + run_time) / np.maximum(run_time, 10))
    for name, of in (("wait_time", wait), ("bounded_slowdown", slowdown)):
        assert values[f"median_{name}"] == pytest.approx(np.median(of), rel=1e-15)
        assert values[f"p95_{name}"] == np.percentile(of, 95)
    assert values["p99_wait_time"] == np.percentile(wait, 99)
