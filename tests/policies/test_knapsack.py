"""Knapsacks against brute force, and against each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hpcsimkit.errors import UsageError
from hpcsimkit.policies.placing.knapsack import assign, choose, choose_many

Array = NDArray[Any]

often = pytest.mark.parametrize("times", [1, pytest.param(24, marks=pytest.mark.slow)])
"""How often the solver is asked is limited by its speed, some milliseconds each."""

GB = 10**9


def subsets(jobs: int) -> Array:
    """All sets of so many jobs, bool, shape (2^jobs, jobs); an older job is a lower bit."""
    return (np.arange(1 << jobs)[:, None] >> np.arange(jobs) & 1).astype(bool)


def best(values: Array, requests: Array, free: Array) -> float:
    """The value of the best set that fits, by brute force."""
    sets = subsets(len(values))
    return float((sets @ values)[(sets @ requests <= free).all(axis=1)].max())


def some_values(rng: np.random.Generator, jobs: int) -> Array:
    """Values of very different kinds: any, those of equation 2, nearly equal, small whole numbers."""
    kinds = [
        rng.random(jobs),
        1 / rng.integers(1, 100_000, jobs),
        1 + 1e-7 * rng.integers(0, 50, jobs),
        rng.integers(0, 4, jobs).astype(float),
    ]
    return kinds[rng.integers(len(kinds))]


# --- one resource ----------------------------------------------------------------------------------------


def test_dynamic_programming_is_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(3000):
        jobs, unit, capacity = rng.integers([1, 1, 0], [9, 4, 40]).tolist()
        values = some_values(rng, jobs)
        sizes = unit * rng.integers(1, 12, jobs)
        chosen = choose(values, sizes, capacity)
        assert chosen == sorted(set(chosen)) and sizes[chosen].sum() <= capacity
        assert values[chosen].sum() == pytest.approx(
            best(values, sizes[:, None], np.array([capacity])), rel=1e-11
        )


def test_ties_leave_out_the_youngest_in_which_sets_differ() -> None:
    rng = np.random.default_rng(2)
    for _ in range(2000):
        jobs, capacity = rng.integers([1, 0], [9, 15]).tolist()
        values, sizes = rng.integers(0, 4, jobs), rng.integers(1, 6, jobs)
        sets = subsets(jobs)
        worth = np.where(sets @ sizes <= capacity, sets @ values, -1)
        assert choose(values, sizes, capacity) == np.flatnonzero(sets[worth.argmax()]).tolist()


def test_sums_tie_that_differ_in_the_last_bit() -> None:
    tenths = np.array([1, 2, 3]) / 10
    assert tenths[0] + tenths[1] > tenths[2]  # as floating point has it
    assert choose(tenths[[2, 0, 1]], [3, 1, 2], 3) == [0]
    assert choose(tenths, [1, 2, 3], 3) == [0, 1]


@pytest.mark.parametrize(
    ("values", "sizes", "capacity", "chosen"),
    [
        ([], [], 5, []),
        ([1], [1], 0, []),
        ([1], [1], -3, []),
        ([1, 2], [3, 4], 7, [0, 1]),
        ([1, 0, -1], [1, 1, 1], 7, [0]),
        ([1, 0, -1], [1, 1, 1], 1, [0]),
        ([1, 5], [6, 3], 5, [1]),
        ([1, 1, 1, 1], [4, 4, 4, 4], 11, [0, 1]),
        ([1, 2, 2, 3], [4, 4, 4, 4], 11, [1, 3]),
    ],
)
def test_by_hand(values: list[float], sizes: list[int], capacity: int, chosen: list[int]) -> None:
    assert choose(values, sizes, capacity) == chosen
    assert choose_many(values, np.reshape(sizes, (-1, 1)), [max(capacity, 0)]) == chosen


@pytest.mark.parametrize(
    ("values", "sizes", "message"),
    [
        ([1.0, 2.0], [1], r"values have shape \(2,\), its requests have \(1,\)"),
        ([float("nan")], [1], "finite values, found nan"),
        ([float("inf")], [1], "finite values, found inf"),
        ([1.0], [0], "sizes of at least 1, found 0"),
        ([1.0], [-2], "at least 0, found -2"),
        ([1.0], [1.5], "whole numbers for requests, found float64"),
    ],
)
def test_what_is_no_knapsack(values: list[float], sizes: list[float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose(values, sizes, 3)


# --- several resources -----------------------------------------------------------------------------------


@often
def test_integer_program_is_dynamic_programming(times: int) -> None:
    rng = np.random.default_rng([3, times])
    for _ in range(75 * times):
        jobs = int(rng.integers(5, 40))
        values, sizes = some_values(rng, jobs), rng.integers(1, 30, jobs)
        capacity = int(sizes.sum() * rng.uniform(0.1, 0.9))
        by_program = choose_many(values, sizes[:, None], [capacity])
        by_table = choose(values, sizes, capacity)
        assert values[by_program].sum() == pytest.approx(values[by_table].sum(), rel=1e-11)
        assert sizes[by_program].sum() <= capacity


@often
def test_several_resources_are_brute_force(times: int) -> None:
    rng = np.random.default_rng([4, times])
    for _ in range(200 * times):
        jobs, resources = rng.integers(1, [9, 4]).tolist()
        values = some_values(rng, jobs)
        units = rng.choice([1, 7, GB, 1_048_576], resources)
        requests = rng.integers(0, 10, (jobs, resources)) * units
        free = rng.integers(0, 25, resources) * units
        chosen = choose_many(values, requests, free)
        assert chosen == sorted(set(chosen)) and (requests[chosen].sum(axis=0) <= free).all()
        assert values[chosen].sum() == pytest.approx(best(values, requests, free), rel=1e-11)
        if resources == 1 and requests.all():
            by_table = choose(values, requests[:, 0], int(free[0]))
            assert values[by_table].sum() == pytest.approx(values[chosen].sum(), rel=1e-11)


@pytest.mark.parametrize("over", [0, 1])
def test_a_byte_too_much_is_too_much(over: int) -> None:
    """The solver's own tolerance is about a megabyte here."""
    requests = [[500 * GB, 1], [500 * GB + over, 1], [300 * GB, 1], [200 * GB + 1, 1]]
    chosen = choose_many([5, 5, 3, 2.5], requests, [1000 * GB, 4])
    assert chosen == ([0, 1] if not over else [0, 2])


def test_many_bytes_too_much() -> None:
    """Every pair is over by a byte or two; so one of each pair goes with small ones."""
    rng = np.random.default_rng(5)
    big = 500 * GB + rng.integers(1, 3, 6)
    requests = np.concatenate([big, 100 * GB + rng.integers(-5, 5, 6)])
    values = np.concatenate([np.full(6, 5.0), rng.random(6)])
    chosen = choose_many(values, requests[:, None], [1000 * GB])
    assert values[chosen].sum() == pytest.approx(best(values, requests[:, None], np.array([1000 * GB])))


def test_of_jobs_that_are_alike_the_oldest() -> None:
    values = [2, 1, 1, 2, 1, 2, 2]
    requests = [[2, 0], [1, 1], [1, 1], [2, 0], [1, 1], [2, 0], [2, 0]]
    assert choose_many(values, requests, [6, 1]) == [0, 3, 5]
    assert choose_many(values, requests, [5, 1]) == [0, 1, 3]
    pairs = assign(values, requests, [[3, 1], [2, 0]])  # only the first has room for one of each
    assert pairs == [(0, 0), (1, 0), (3, 1)] or pairs == [(0, 1), (1, 0), (3, 0)]


# --- machines --------------------------------------------------------------------------------------------


def best_assignment(values: Array, requests: Array, free: Array, allowed: Array) -> float:
    """The value of the best assignment: machine after machine, each takes any set that fits of what is left."""
    sets = subsets(len(values))
    worth = sets @ values
    most = np.zeros(len(sets))  # by the set of jobs still there
    for room, may in zip(free, allowed.T, strict=True):
        fits = np.flatnonzero((sets @ requests <= room).all(axis=1) & ~(sets & ~may).any(axis=1))
        most = np.array(
            [max(worth[s] + most[left & ~s] for s in fits if s & ~left == 0) for left in range(len(sets))]
        )
    return float(most[-1])


@often
def test_assignment_is_brute_force(times: int) -> None:
    rng = np.random.default_rng([6, times])
    for _ in range(60 * times):
        jobs, machines, resources = rng.integers(1, [7, 4, 4]).tolist()
        values = some_values(rng, jobs)
        units = rng.choice([1, GB], resources)
        requests = rng.integers(0, 8, (jobs, resources)) * units
        free = rng.integers(0, 13, (machines, resources)) * units
        allowed = rng.random((jobs, machines)) < 0.8
        pairs = assign(values, requests, free, allowed=allowed)
        left = free.copy()
        for job, machine in pairs:
            left[machine] -= requests[job]
            assert allowed[job, machine]
        assert (left >= 0).all() and len({job for job, _ in pairs}) == len(pairs)
        found = sum(values[job] for job, _ in pairs)
        assert found == pytest.approx(best_assignment(values, requests, free, allowed), rel=1e-11)


def test_assignment_by_hand() -> None:
    free = [[8, 2], [8, 0]]
    assert assign([1, 1], [[8, 0], [4, 2]], free) == [(0, 1), (1, 0)]
    assert assign([1, 1], [[8, 0], [4, 2]], free, allowed=np.array([[True, False], [True, True]])) == [(0, 0)]
    assert assign([1, 0], [[9, 0], [1, 1]], free) == []
    assert assign([], np.zeros((0, 2), dtype=int), free) == []


def test_a_limited_search_still_fits() -> None:
    rng = np.random.default_rng(7)
    values = rng.random(40)
    requests = np.stack([rng.integers(1, 33, 40), rng.integers(1, 129, 40)], axis=1)
    free = np.stack([rng.integers(0, 64, 6), rng.integers(0, 256, 6)], axis=1)
    pairs = assign(values, requests, free, node_limit=1)
    used = np.zeros_like(free)
    for job, machine in pairs:
        used[machine] += requests[job]
    assert pairs and (used <= free).all()
    assert pairs == assign(values, requests, free, node_limit=1)  # and the same whenever it is asked


@pytest.mark.parametrize(
    ("requests", "free", "message"),
    [
        ([[1, 2]], [1, 2, 3], r"room has shape \(1, 3\), its requests have \(1, 2\)"),
        ([1], [1], r"values have shape \(1,\), its requests have \(1,\)"),
        ([[1, -2]], [1, 2], "at least 0, found -2"),
        ([[1, 2]], [1, 2.5], "whole numbers for what is free, found float64"),
    ],
)
def test_what_does_not_go_together(requests: Any, free: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        choose_many([1.0], requests, free)
