"""The kit against the naive simulators, start for start, on hundreds of random workloads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.drawn import examples
from tests.kernel import naive
from tests.kernel.helpers import Row, deep, rows_and_size, starts, workload

ORDERS = {
    "fcfs": lambda job: job[0],
    "lcfs": lambda job: -job[0],
    "sjf": lambda job: job[2],
    "laf": lambda job: -job[2] * job[3],
    "sqf": lambda job: job[3],
}


def killed(rows: list[Row]) -> list[Row]:
    return [(submit, min(took, asked), asked, nodes) for submit, took, asked, nodes in rows]


@pytest.mark.parametrize("limit", [200, 2], ids=["lists", "numpy"])
@pytest.mark.parametrize("walltime", ["run", "kill"])
@pytest.mark.parametrize("backfilling", ["none", "easy", "easy-k(1)"])
@examples(0.6)
@given(drawn=rows_and_size(), order=st.sampled_from(sorted(ORDERS)))
def test_none_and_easy(backfilling: str, walltime: str, limit: int, drawn, order: str) -> None:
    rows, size = drawn
    really = killed(rows) if walltime == "kill" else rows
    expected = naive.easy(really, size, ORDERS[order], backfill=backfilling != "none")
    with deep(limit):
        assert starts(workload(rows, size), f"{order}+{backfilling}", walltime=walltime) == expected


@given(drawn=rows_and_size())
def test_conservative(drawn) -> None:
    rows, size = drawn
    expected, promised = naive.conservative(killed(rows), size)
    found = starts(workload(rows, size), "fcfs+conservative", walltime="kill")
    assert found == expected
    assert all(start <= promise for start, promise in zip(found, promised, strict=True))


def test_the_naive_ones_by_hand() -> None:
    rows = [(0, 10, 10, 2), (1, 10, 10, 3), (2, 5, 5, 4), (3, 30, 30, 1)]
    assert naive.easy(rows, 4, backfill=False) == [0, 10, 20, 25]
    assert naive.easy(rows, 4) == [0, 10, 33, 3]
    assert naive.conservative(rows, 4) == ([0, 10, 20, 25], [0, 10, 20, 25])
