"""Machines that several runs have in common, in threads: what is kept of the needs of their jobs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster import request_table
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.request_table import NeedTable
from hpcsimkit.jobs.workload import Workload


def jobs_of(amounts: list[int]) -> Workload:
    zeros = np.zeros(len(amounts), dtype=np.int64)
    columns = {"submit_time": zeros, "run_time": zeros + 1, "nodes": zeros + 1, "cpus": np.array(amounts)}
    return Workload(columns, resources=("cpus",))


def slowly(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Let other threads run before the end of a method."""
    real = getattr(owner, name)

    def slow(*arguments: Any) -> Any:
        found = real(*arguments)
        time.sleep(0.02)
        return found

    monkeypatch.setattr(owner, name, slow)


def test_needs_of_two_threads_are_added_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch, request_table, "_judged")
    machines = Machines.of(2, cpus=8)
    with ThreadPoolExecutor(4) as threads:
        sizes = list(threads.map(machines.sizes_of, [jobs_of([each, 9]) for each in (1, 2, 3, 4)]))
    assert len(machines.needs) == 5
    assert machines.needs.amounts[[each[0] for each in sizes], 0].tolist() == [1, 2, 3, 4]
    assert len({each[1] for each in sizes}) == 1


def test_needs_that_are_too_large_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    slowly(monkeypatch, NeedTable, "fit")
    machines, jobs = Machines.of(2, cpus=8), jobs_of([3, 9, 4])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(machines.misfits, [jobs] * 4))
    assert [each.tolist() for each in found] == [[False, True, False]] * 4
    assert machines.misfits(jobs_of([9, 12, 5])).tolist() == [True, True, False]


def test_what_did_not_fit_is_known_with_its_level() -> None:
    """A need that another run has just found not to fit its fuller machines is tried again."""
    machines = Machines.of(1, cpus=8)
    numbers = machines.sizes_of(jobs_of([6])).tolist()
    full, empty = np.array([[1]]), np.array([[8]])
    within: list[set[int]] = []

    class Interrupted(NeedTable):
        """Another thread asks whenever something is kept."""

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if not within:
                within.append(set())
                within.append(self.fitting(numbers, empty))

    table = machines.needs
    assert table.fitting(numbers, empty) == set(numbers)
    table.__class__ = Interrupted
    assert table.fitting(numbers, full) == set()
    assert within == [set(), set(numbers)]
