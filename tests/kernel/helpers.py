"""What the kernel's tests share: workloads from rows, start times, policies by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any
from unittest import mock

import pytest
from hypothesis import strategies as st

from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.result import Result

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs numba: install the extra [fast]")

Row = tuple[int, int, int, int]
"""Submission, run time, requested time, nodes."""


def workload(rows: Sequence[Row], size: int, **columns: Any) -> Workload:
    """Make a workload of rows; job numbers are 1, 2, ... unless a column ``id`` says otherwise."""
    names = ("submit_time", "run_time", "requested_time", "nodes")
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return Workload({**table, **columns}, machine_size=size)


def run(jobs: Workload, policy: Policy | str, **options: Any) -> Result:
    """Simulate a policy, or one of the registry by name."""
    return Simulation(jobs, make(policy) if isinstance(policy, str) else policy, **options).run()


def starts(jobs: Workload, policy: Policy | str, **options: Any) -> list[int]:
    """Return the start times."""
    return run(jobs, policy, **options).start_time.tolist()


@contextmanager
def deep(limit: int) -> Iterator[None]:
    """Let queues count as deep (numpy scans) from so many waiting jobs on."""
    with (
        mock.patch("hpcsimkit.cluster.base.DEEP", limit),
        mock.patch("hpcsimkit.cluster.machines.DEEP", limit),
        mock.patch("hpcsimkit.jobs.queue.DEEP", limit),
    ):
        yield


@st.composite
def rows_and_size(
    draw: st.DrawFn, *, exact: bool = False, max_jobs: int = 14, shortest: int = 0
) -> tuple[list[Row], int]:
    """Draw a small crowded workload: equal instants, zero-length jobs, wrong estimates in both directions."""
    size = draw(st.integers(1, 6))
    last = draw(st.sampled_from([0, 5, 30]))
    run_time = st.integers(shortest, draw(st.sampled_from([3, 12])))
    rows = []
    for _ in range(draw(st.integers(1, max_jobs))):
        took = draw(run_time)
        asked = max(took, 1) if exact else draw(st.sampled_from([max(took, 1), took + 5, 4, 9]))
        rows.append((draw(st.integers(0, last)), took, asked, draw(st.integers(1, size))))
    return rows, size
