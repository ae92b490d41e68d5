"""Verification that finished schedules keep to dependencies, begin times, holds, arrays and licences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.kernel.after_jobs import AFTER_FAILED, AfterJobs, JobNumbers, Term, terms_of
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Licenses
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.verified_capacity import Use, excess
from hpcsimkit.results.result import Result

__all__ = ["impossible_through_gates"]

NEVER = 2**62


def impossible_through_gates(setup: Setup, result: Result) -> Iterator[str]:
    """Yield jobs that start though a gate holds them."""
    for gate in setup.all_gates:
        if isinstance(gate, AfterJobs):
            yield from _before_others(result, () if setup.begun is None else setup.begun.started)
        elif isinstance(gate, BeginTimes):
            yield from _too_early(gate.columns[0], result)
        elif isinstance(gate, ArrayLimits):
            yield from _too_many_of_an_array(result.by_attempt)
        elif isinstance(gate, Licenses):
            yield from _too_many_licences(gate, result.by_attempt)


# --- dependencies ------------------------------------------------------------------------------------------


def _before_others(result: Result, running: Container[int]) -> Iterator[str]:
    """Yield jobs that start before their dependencies are met; those that run at the begin are as given."""
    column = result.workload.column("dependency")
    jobs_of, well, starts = JobNumbers(result.workload), _ended_well(result), _first_starts(result)
    before: dict[int, int] = {}  # ends of the earlier jobs of each row's user and name
    for row in np.flatnonzero((column >= 0) & (result.start_time >= 0)).tolist():
        if row in running:
            continue
        terms, any_of = terms_of(result.workload.label("dependency", int(column[row])))
        if not before and any(term.kind == "singleton" for term in terms):
            before = _ends_before(result)
        met = [
            each
            for term in terms
            for each in (
                [before[row]] if term.kind == "singleton" else _met(term, jobs_of, result, well, starts)
            )
        ]
        due = (min if any_of else max)(met, default=0)
        start = starts[row]
        if start < due:
            when = "can never be met" if due == NEVER else f"is met at t={due} s"
            text = result.workload.label("dependency", int(column[row]))
            yield f"{_job(result, row)} starts at t={start} s, though its dependency {text!r} {when}"


def _met(
    term: Term, jobs_of: JobNumbers, result: Result, well: NDArray[np.bool_], starts: NDArray[np.int64]
) -> Iterator[int]:
    """Yield the times from which a condition is met by each of its jobs; 0 where a result does not tell."""
    others = jobs_of.named(term.job)
    if not others:
        yield 0  # of another part of the log: counts as met
    for other in others:
        rejected = result.start_time[other] < 0
        if term.kind in ("afterok", "afternotok") and well[other] != (term.kind == "afterok"):
            yield NEVER
        elif rejected:  # at a time that a result does not tell
            yield 0
        elif term.kind == "after":
            yield int(starts[other]) + term.delay
        else:
            yield int(result.end_time[other])


def _first_starts(result: Result) -> NDArray[np.int64]:
    """Return the first start of each job, also of a test that was stopped; -1 for rejected jobs."""
    starts, attempts = result.start_time.copy(), result.attempts
    if attempts is not None:
        first = np.flatnonzero(np.diff(attempts.job, prepend=-1))
        starts[attempts.job[first]] = attempts.start_time[first]
    return starts


def _ended_well(result: Result) -> NDArray[np.bool_]:
    """Return which jobs have ended well: by the log, and neither at their limit nor after a failure."""
    failed = np.isin(result.workload.column("status"), AFTER_FAILED)
    return (result.start_time >= 0) & ~result.killed & ~failed


def _ends_before(result: Result) -> dict[int, int]:
    """Return the last end of all earlier jobs of the same user and name, by row."""
    users, names = (result.workload.column(name).tolist() for name in ("user", "executable"))
    ends, found = result.end_time.tolist(), {}
    last: dict[tuple[int, int], int] = defaultdict(int)
    for row in result.workload.arrival_order.tolist():
        key = users[row], names[row]
        found[row] = last[key]
        last[key] = max(last[key], ends[row])
    return found


# --- times and limits --------------------------------------------------------------------------------------


def _too_early(column: str, result: Result) -> Iterator[str]:
    released, start = result.workload.column(column), _first_starts(result)
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
