"""Verification that finished schedules keep to begin times, holds, limits of arrays, and licences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Licenses
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.verified_capacity import Use, excess
from hpcsimkit.results.result import Result

__all__ = ["impossible_through_gates"]


def impossible_through_gates(setup: Setup, result: Result) -> Iterator[str]:
    """Yield jobs that start though a gate holds them."""
    for gate in setup.all_gates:
        if isinstance(gate, BeginTimes):
            yield from _too_early(gate.columns[0], result)
        elif isinstance(gate, ArrayLimits):
            yield from _too_many_of_an_array(result.by_attempt)
        elif isinstance(gate, Licenses):
            yield from _too_many_licences(gate, result.by_attempt)


def _too_early(column: str, result: Result) -> Iterator[str]:
    released, start = result.workload.column(column), result.start_time
    wrong = (start >= 0) & (start < released)
    if wrong.any():
        row = int(wrong.argmax())
        yield f"{_job(result, row)} starts at t={start[row]} s, before its {column} of {released[row]} s"


def _too_many_of_an_array(result: Result) -> Iterator[str]:
    limits = result.workload.column("array_limit")
    rows = np.flatnonzero(limits >= 0)
    arrays, first, place = np.unique(
        result.workload.column("array_job")[rows], return_index=True, return_inverse=True
    )
    start, end = result.start_time[rows], result.end_time[rows]
    use = Use(rows, start, end, np.ones((len(rows), 1), dtype=np.int64), place.astype(np.int64))
    found = excess(use, limits[rows][first, None])
    if found is not None:
        array, most = arrays[found.place], found.available
        yield (
            f"{_job(result, found.row)} starts at t={found.time} s, when {found.used} jobs of array {array} "
            f"run, of {most} at once"
        )


def _too_many_licences(gate: Licenses, result: Result) -> Iterator[str]:
    asked = gate.asked(result.workload)
    names = list(gate.pools)
    rows = np.array([*asked], dtype=np.int64)  # rejected jobs start and end at once
    amounts = np.array([[asked[row].get(name, 0) for name in names] for row in rows.tolist()], dtype=np.int64)
    use = Use(rows, result.start_time[rows], result.end_time[rows], amounts)
    found = excess(use, np.array([list(gate.pools.values())], dtype=np.int64))
    if found is not None:
        name = names[found.resource]
        yield (
            f"{_job(result, found.row)} starts at t={found.time} s, when {found.used} licences {name!r} are "
            f"in use, of {found.available}"
        )


def _job(result: Result, row: int) -> str:
    return f"job {result.workload.column('id')[row]}"
