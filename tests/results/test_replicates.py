"""Replicates: copies of a schedule count once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.results.replicates import distinct, numbered, replicate_of
from hpcsimkit.results.statistics import mean_of, paired, ranking_of

NUMBERS = st.integers(1, 5)


def test_copies_by_hand() -> None:
    """Two windows of a log with three seeds: one policy draws, the other one does not."""
    schedules = np.array([[0, 0, 0, 3, 3, 3], [0, 1, 2, 3, 4, 5]])
    values = np.array([[5.0, 5, 5, 9, 9, 9], [1.0, 2, 6, 10, 14, 12]])
    assert replicate_of(schedules).tolist() == [0, 0, 0, 1, 1, 1]
    assert distinct(values, schedules).tolist() == [[5, 9], [3, 12]]
    assert distinct(values[:1], schedules[:1]).tolist() == [[5, 9]]
    assert distinct(values[1:], schedules[1:]).tolist() == values[1:].tolist(), "alone, each draw counts"


def test_a_copy_of_a_copy() -> None:
    assert replicate_of(np.array([[7, 8, 7, 9], [0, 1, 2, 2]])).tolist() == [0, 1, 0, 0]
    assert replicate_of(np.array([[2, 1, 2]])).tolist() == [0, 1, 0]
    assert replicate_of(np.array([[0, 0], [0, 1], [0, 1]])).tolist() == [0, 0]
    assert distinct(np.empty((2, 0)), np.empty((2, 0), dtype=np.int64)).shape == (2, 0)


def test_what_is_not_known_is_no_copy() -> None:
    assert len({*numbered([None, "a", None, "b", None]).tolist()}) == 5
    assert numbered([("jobs", "x"), ("others", "x"), ("jobs", "x")]).tolist() == [0, 1, 0]


@given(st.integers(2, 3), st.lists(NUMBERS, min_size=2, max_size=8), st.randoms(use_true_random=False))
def test_statistics_do_not_depend_on_the_number_of_copies(
    policies: int, copies: list[int], random: Any
) -> None:
    """Each replicate repeated, in any order: means, intervals, p-values and ranks are those without copies."""
    rng = np.random.default_rng(random.randrange(2**32))
    alone = rng.normal(10, 3, (policies, len(copies)))
    order = [number for number, times in enumerate(copies) for _ in range(times)]
    random.shuffle(order)
    schedules = np.array([[100 * policy + number for number in order] for policy in range(policies)])
    found = distinct(alone[:, order], schedules)
    first = list(dict.fromkeys(order))
    assert found.tolist() == alone[:, first].tolist()
    assert mean_of(found[0]) == mean_of(alone[0, first])
    assert paired([(found[0], found[1])]) == paired([(alone[0, first], alone[1, first])])
    if policies > 2:
        names = "abc"
        assert ranking_of(dict(zip(names, found, strict=True))) == ranking_of(
            dict(zip(names, alone[:, first], strict=True))
        )


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_no_schedule_is_in_two_replicates(rows: list[tuple[int, ...]]) -> None:
    schedules = np.array(rows, dtype=np.int64).T
    replicate = replicate_of(schedules)
    assert replicate[0] == 0 and set(replicate.tolist()) == set(range(replicate.max() + 1))
    for row in schedules:
        for schedule in np.unique(row):
            assert len(np.unique(replicate[row == schedule])) == 1
    if schedules.shape[1] == 2:
        assert (replicate[0] == replicate[1]) == (schedules[:, 0] == schedules[:, 1]).any()
    values = np.random.default_rng(0).normal(size=schedules.shape)
    assert distinct(values, schedules).shape == (3, replicate.max() + 1)


def test_p_values_of_copies_are_none() -> None:
    """Twelve times the same pair: without this rule, p = 0 and 2 / 2^12."""
    values = np.array([[3953.0] * 12, [2500.0] * 12])
    one, other = distinct(values, np.zeros((2, 12), dtype=np.int64))
    (found,) = paired([(one, other)])
    assert np.isnan([found.t_test, found.wilcoxon, found.wilcoxon_holm]).all()
    assert (found.higher, found.difference.mean) == (1, pytest.approx(1453))
