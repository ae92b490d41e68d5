"""The store of transitions: rows in order without a limit, the latest rows with a capacity, and its arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.agents.training.rollout import Rollout

COLUMNS: list[Any] = [((2,), np.float32), ((), np.int64), ((3,), np.bool_)]


def rows(first: int, count: int) -> list[np.ndarray[Any, Any]]:
    """Rows that bear their number in every column."""
    numbers = np.arange(first, first + count)
    return [numbers[:, None] + [0.5, 0.25], numbers, numbers[:, None] % [2, 3, 5] == 0]


def filled(sizes: list[int], capacity: int | None) -> Rollout:
    """A store with blocks of rows of some sizes; single rows are written in place."""
    rollout = Rollout(COLUMNS, capacity=capacity)
    for size in sizes:
        values = rows(rollout.added, size)
        if size == 1:
            for view, value in zip(rollout.row(), values, strict=True):
                view[...] = value[0]
        else:
            rollout.add(*values)
    return rollout


def by_number(columns: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    order = columns[1].argsort()
    return [column[order] for column in columns]


@given(st.lists(st.integers(0, 7), max_size=40), st.sampled_from([None, 7, 20, 1000]))
def test_the_latest_rows_are_kept(sizes: list[int], capacity: int | None) -> None:
    rollout, total = filled(sizes, capacity), sum(sizes)
    kept = total if capacity is None else min(total, capacity)
    assert (len(rollout), rollout.added) == (kept, total)
    expected = rows(total - kept, kept)
    for found, wanted, (shape, kind) in zip(by_number(rollout.columns()), expected, COLUMNS, strict=True):
        assert np.array_equal(found, wanted.reshape(found.shape)) and found.dtype == kind, shape
    if capacity is None:
        before = rollout.columns()
        copies = rollout.taken()
        assert len(rollout) == 0
        assert all(np.array_equal(one, other) for one, other in zip(copies, before, strict=True))
        assert not any(np.shares_memory(*both) for both in zip(copies, before, strict=True) if total)


def test_drawn_uniformly() -> None:
    memory = filled([3, 4], capacity=5)
    drawn = memory.sample(np.random.default_rng(0), 1000)
    for column, expected in zip(drawn, zip(*(rows(each, 1) for each in drawn[1]), strict=True), strict=True):
        assert np.array_equal(column, np.concatenate(expected))
    assert np.bincount(drawn[1], minlength=7)[2:] == pytest.approx([200] * 5, abs=50)


def test_restored_from_its_arrays() -> None:
    for sizes in ([3], [3, 3]):
        memory, copy = filled(sizes, capacity=5), Rollout(COLUMNS, capacity=5)
        saved = {name: values.astype(np.float32) for name, values in memory.arrays().items()}
        copy.restore(saved, memory.added)
        for one in (copy, memory):
            one.add(*rows(9, 2))
        for ours, theirs in zip(memory.columns(), copy.columns(), strict=True):
            assert np.array_equal(ours, theirs)
