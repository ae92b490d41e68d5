"""Verification of finished schedules: each job is decided once, in time, and within the capacity.

A run refuses invalid actions at once, but a policy may also change the state of the run itself, and
simulators may have defects. So each finished schedule is compared with the rules of the run. Only the
parameters of the run and the result are read, not the state in which the schedule was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.errors import ImpossibleScheduleError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.parameters import parts
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.run import RunParameters
from hpcsimkit.kernel.verified_gates import impossible_through_gates
from hpcsimkit.kernel.verified_placements import (
    impossible_beside_reservations,
    impossible_during_outages,
    impossible_places,
)
from hpcsimkit.results.attempts import Attempts, Outcome
from hpcsimkit.results.result import Result

__all__ = ["VerifiedParameters", "verify"]

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

OWN = "hpcsimkit."
"""Beginning of the names of modules whose policies are not of the user."""


class VerifiedParameters(RunParameters, Protocol):
    """The parameters of a run that determine which schedules are possible."""

    name: str


def verify(
    parameters: VerifiedParameters,
    result: Result,
    rejected: Mask | None = None,
    served: Mapping[int, int] | None = None,
    positions: NDArray[np.int32] | None = None,
) -> None:
    """Check that a schedule is possible by the rules of its run.

    Parameters
    ----------
    parameters : Simulation
        The parameters of the run.
    result : Result
        Result of the run.
    rejected : array of bool, shape (jobs,), optional
        Whether each job was rejected; by default none.
    served : mapping of int to int, optional
        Run time [s] of each job with its allocation, by row, if there is a locality model.
    positions : array of int32, shape (2, jobs), optional
        Positions of starts and ends in time, see :func:`~hpcsimkit.kernel.verified_capacity.excess`.

    Raises
    ------
    ImpossibleScheduleError
        The schedule breaks a rule; the message names the policy, a job and the time.

    Examples
    --------
    >>> from hpcsimkit import Simulation, Workload, make
    >>> w = Workload({"submit_time": [0, 5], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> simulation = Simulation(w, make("fcfs"), name="fcfs")
    >>> made = [np.array(column) for column in ([0, 5], [0, 5], [9, 9], [1, 1], [False, False])]
    >>> verify(simulation, Result(w, "fcfs", 4, *made))
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.ImpossibleScheduleError: fcfs: impossible schedule: job 2 starts at t=5 s, when 5 nodes \
are in use, of 4; this is a defect of hpcsimkit: please report it
    """
    found = next(_violations(parameters, result, rejected, served, positions), None)
    if found is not None:
        own = all(type(part).__module__.startswith(OWN) for part in parts(parameters.policy))
        whose = "; this is a defect of hpcsimkit: please report it" if own else ""
        raise ImpossibleScheduleError(f"{parameters.name}: impossible schedule: {found}{whose}")


def _violations(
    parameters: VerifiedParameters,
    result: Result,
    rejected: Mask | None,
    served: Mapping[int, int] | None,
    positions: NDArray[np.int32] | None,
) -> Iterator[str]:
    """Yield the first violations of each rule; later rules rely on earlier ones."""
    workload, start = parameters.workload, result.start_time
    if not len(workload):
        return
    ran = None if start.min() >= 0 else start >= 0  # None: all of them, as in most runs
    yield from _undecided(result, ran, rejected)
    submit_time = workload.column("submit_time")
    if parameters.setup.dependencies:
        submit_time, refused = _released(workload, result.end_time)
        for row in _first(refused & (start >= 0)):
            yield f"{_starts(result, row)}, though the job that precedes it was rejected"
    for row in _first(_of(ran, result.submit_time != submit_time)):
        counts = result.submit_time[row]
        yield f"{_job(result, row)} counts as submitted at t={counts} s, not {submit_time[row]}"
    yield from _too_early(parameters, result, ran, submit_time)
    yield from impossible_through_gates(parameters.setup, result)
    if result.attempts is None:
        yield from _wrong_duration(parameters, result, ran, served)
        yield from impossible_places(parameters.cluster, workload, result, ran, positions)
    else:
        yield from _wrong_attempts(parameters, result, result.attempts)
        each = result.by_attempt
        yield from impossible_places(parameters.cluster, each.workload, each, None)
    yield from impossible_during_outages(parameters.cluster, result)
    calendar = parameters.setup.calendar.on(workload)
    yield from impossible_beside_reservations(parameters.cluster, calendar, result)


def _of(ran: Mask | None, wrong: Mask) -> Mask:
    """Return which jobs that ran are wrong."""
    return wrong if ran is None else wrong & ran


def _first(wrong: Mask) -> Sequence[int]:
    """Return the first row of a mask, or none."""
    row = int(wrong.argmax())  # faster than to search for all of them
    return (row,) if wrong[row] else ()


def _job(result: Result, row: int) -> str:
    return f"job {result.workload.column('id')[row]}"


def _starts(result: Result, row: int) -> str:
    return f"{_job(result, row)} starts at t={result.start_time[row]} s"


# --- decisions ---------------------------------------------------------------------------------------------


def _undecided(result: Result, ran: Mask | None, rejected: Mask | None) -> Iterator[str]:
    """Yield jobs that were neither started nor rejected, or both."""
    none = np.zeros(1, dtype=np.bool_) if rejected is None else rejected
    if ran is not None:
        for row in _first(~(ran | none)):
            submitted = result.submit_time[row]
            yield f"{_job(result, row)}, submitted at t={submitted} s, was neither started nor rejected"
    if rejected is not None:
        for row in _first(rejected & (result.start_time >= 0)):
            yield f"{_starts(result, row)}, though it was rejected"


# --- times -------------------------------------------------------------------------------------------------


def _too_early(
    parameters: VerifiedParameters, result: Result, ran: Mask | None, submit_time: Integers
) -> Iterator[str]:
    """Yield jobs that start before they are submitted, or between passes."""
    start, begun, period = result.start_time, parameters.setup.begun, parameters.setup.period
    if isinstance(
        parameters.setup.event_order, DirlabOrder
    ):  # none is submitted before its predecessor in the log
        submit_time = np.maximum.accumulate(submit_time)
    for row in _first(_of(ran, start < submit_time)):
        yield f"{_starts(result, row)}, before it is submitted at t={submit_time[row]} s"
    running = [] if begun is None else list(begun.started)
    if begun is not None:
        expected = np.maximum(start, begun.at)
        given = list(begun.started.values())
        expected[running] = np.maximum(start[running], given) if begun.before else given
        for row in _first(_of(ran, start != expected)):
            yield f"{_starts(result, row)}; as the run begins at t={begun.at} s, it needs {expected[row]} s"
    if period is not None:
        late = start % period != 0
        if begun is not None:
            late[running] = False
        for row in _first(_of(ran, late)):
            yield f"{_starts(result, row)}, though passes are at multiples of {period} s"


def _wrong_duration(
    parameters: VerifiedParameters, result: Result, ran: Mask | None, served: Mapping[int, int] | None
) -> Iterator[str]:
    """Yield jobs that run for another time than the rules say."""
    expected = parameters.workload.column("run_time")
    kill = parameters.setup.walltime == "kill"
    if served is not None:
        zero, expected = expected == 0, np.full(len(expected), -1, dtype=np.int64)
        expected[list(served)] = list(served.values())
        expected[zero] = 0
    if kill:
        expected = np.minimum(expected, parameters.workload.column("requested_time"))
    took = result.end_time - result.start_time
    for row in _first(_of(ran, took != expected)):
        yield (
            f"{_starts(result, row)} and ends at t={result.end_time[row]} s: it needs {expected[row]} s, "
            f"found {took[row]} s"
        )


def _wrong_attempts(parameters: VerifiedParameters, result: Result, attempts: Attempts) -> Iterator[str]:
    """Yield jobs whose attempts overlap, begin too early, or do another amount of work than the job needs."""
    job, start, end = attempts.job, attempts.start_time, attempts.end_time
    follows = np.flatnonzero(job[1:] == job[:-1]) + 1
    back = np.zeros(len(job), dtype=np.int64)
    back[follows] = end[follows - 1]
    for row in _first(start < np.maximum(attempts.submit_time, back)):
        yield f"{_job(result, job[row])} starts again at t={start[row]} s, before it is due"
    expected = parameters.workload.column("run_time")
    if parameters.setup.walltime == "kill":
        expected = np.minimum(expected, parameters.workload.column("requested_time"))
    done = np.bincount(job, attempts.work, len(result)).astype(np.int64)
    complete = np.zeros(len(result), dtype=np.bool_)
    complete[job] = (attempts.outcome == Outcome.COMPLETED) | (attempts.outcome == Outcome.LIMIT)
    for row in _first((complete & (done != expected)) | (done > expected)):
        yield f"{_starts(result, row)} and does {done[row]} s of work: it needs {expected[row]} s"
    restart = parameters.setup.restart
    for row in _first(attempts.overhead < 0):
        took = end[row] - start[row]
        yield f"{_job(result, job[row])}: an attempt from t={start[row]} s took {took} s, less than its work"
    if restart == Restart(restart.preempted, restart.delay, restart.limit):  # without any overhead
        for row in _first(attempts.overhead > 0):
            took, work = end[row] - start[row], attempts.work[row] + attempts.lost[row]
            who = f"{_job(result, job[row])}: an attempt from t={start[row]} s"
            yield f"{who} took {took} s for {work} s of work"


def _released(workload: Workload, end_time: Integers) -> tuple[Integers, Mask]:
    """Return the submission times in a run with dependencies, and which jobs cannot be submitted.

    The rules are those of :class:`~hpcsimkit.kernel.gate.Dependencies`.
    """
    number, preceding, think = (workload.column(name) for name in ("id", "preceding", "think_time"))
    by_number = np.argsort(number)
    place = np.minimum(np.searchsorted(number[by_number], preceding), len(number) - 1)
    before = by_number[place]
    position = np.empty(len(number), dtype=np.int64)
    position[workload.arrival_order] = np.arange(len(number))
    depends = (preceding > 0) & (number[before] == preceding) & (position[before] < position)
    end, submit_time = end_time[before], workload.column("submit_time")
    released = np.where(think < 0, np.maximum(end, submit_time), end + think)
    return np.where(depends, released, submit_time), depends & (end < 0)
