"""Checks for policies of your own: does it keep the rules on workloads made to break it?"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.columns import REQUIRED_COLUMNS
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.observers import Observer
from hpcsimkit.policy import Parameters, Policy, parts
from hpcsimkit.result import Result
from hpcsimkit.simulation import Simulation
from hpcsimkit.system import System
from hpcsimkit.workload import Workload

__all__ = ["CheckError", "PolicyReport", "check_policy", "random_workloads"]

IDLE_PASSES = 10_000
"""So many passes in a row that start nothing, while nothing runs or is to come, are taken for starvation."""

SHRINKING_RUNS = 200
"""How many runs at most to look for a smaller example."""

LATER = np.iinfo(np.int64).max
"""A start that has not happened by the time in question."""

LONGEST_CODE = 20
"""An example of more jobs is not written out."""

Integers = NDArray[np.int64]
Failure = Callable[[Workload], str | None]
"""What is wrong with the policy on a workload, or None."""


class CheckError(HpcsimkitError):
    """A policy failed a check; the line says which, and on what workload."""


@dataclass(frozen=True)
class PolicyReport:
    """What was checked, all of it passed.

    Attributes
    ----------
    policy : str
        Representation of the policy.
    checks : tuple of str
        What was checked, one line each.
    workloads, jobs, rejected : int
        On how many workloads, with how many jobs together, and how many of those the policy rejected.
    """

    policy: str
    checks: tuple[str, ...]
    workloads: int
    jobs: int
    rejected: int

    def __str__(self) -> str:
        lines = [f"{self.policy}: passed on {self.workloads} workloads, {self.jobs} jobs"]
        if self.rejected:
            lines[0] += f", {self.rejected} of them rejected"
        return "\n".join([*lines, *(f"  {check}" for check in self.checks)])


def check_policy(
    policy: Policy, *, seed: int = 0, workloads: Sequence[Workload] | None = None, oracle: bool = False
) -> PolicyReport:
    """Check that a policy without open seats keeps the rules.

    Parameters
    ----------
    policy : Policy
        The policy; each run works on a copy.
    seed : int
        Where the random workloads and the randomness of the runs come from.
    workloads : sequence of Workload, optional
        What to check on, each with a machine size; by default :func:`random_workloads`.
    oracle : bool
        The policy knows the future on purpose: do not check that it doesn't.

    Returns
    -------
    PolicyReport
        What was checked.

    Raises
    ------
    CheckError
        With what failed, and the smallest workload on which it was seen to fail.
    UsageError
        It is no policy, or a workload has no machine size.

    Examples
    --------
    >>> from hpcsimkit.pipeline import Pipeline
    >>> check_policy(Pipeline()).workloads
    8
    >>> class Hasty(Policy):
    ...     def schedule(self, system):
    ...         for job in system.queue:
    ...             system.start(job)
    >>> try:
    ...     check_policy(Hasty())
    ... except CheckError as error:
    ...     print(str(error).split(";")[0])
    Hasty() fails 'capacity, starts and ends': job 2 at t=0 s needs 1 nodes
    """
    if not isinstance(policy, Policy):
        raise UsageError(f"check_policy needs a Policy, found {policy!r}; put a stage into a Pipeline first")
    if workloads is None:
        workloads = random_workloads(np.random.default_rng(seed))
    for workload in workloads:
        if not workload.machine_size:
            raise UsageError(f"{workload.name}: a workload to check policies on needs a machine size")
    player = _Player(policy, seed)
    _check_parameters(policy)
    checks: dict[str, Failure] = {
        "capacity, starts and ends": player.breaks_rules,
        "same seed, same schedule": player.is_not_repeatable,
        "no state kept between runs": player.remembers,
        "run times not known before the end": player.is_clairvoyant,
        "later submissions not known": player.knows_what_is_to_come,
    }
    if oracle:
        del checks["run times not known before the end"], checks["later submissions not known"]
    for workload in workloads:
        for name, failure in checks.items():
            _must_pass(policy, name, failure, workload)
    rejected = sum(int(np.count_nonzero(~player.run(workload).finished)) for workload in workloads)
    jobs = sum(map(len, workloads))
    return PolicyReport(repr(policy), ("parameters", *checks), len(workloads), jobs, rejected)


def random_workloads(rng: np.random.Generator, jobs: int = 60) -> list[Workload]:
    """Return small workloads full of awkward cases.

    On machines of 1 to 64 nodes, loads from light to hopeless: jobs that arrive together, jobs of zero
    length, jobs as large as the machine, jobs that run longer, shorter and as long as requested.

    >>> [w.machine_size for w in random_workloads(np.random.default_rng(0))]
    [1, 2, 4, 7, 16, 16, 64, 64]
    """
    machines = [(1, 0.8), (2, 2.0), (4, 1.0), (7, 1.5), (16, 0.5), (16, 50.0), (64, 1.0), (64, 3.0)]
    return [_random_workload(rng, jobs, nodes, load) for nodes, load in machines]


def _random_workload(rng: np.random.Generator, jobs: int, machine_size: int, load: float) -> Workload:
    nodes = np.ceil(machine_size ** rng.uniform(0, 1.05, jobs)).clip(1, machine_size).astype(np.int64)
    run_time = rng.integers(0, 100, jobs) * rng.integers(0, 2, jobs) + rng.integers(0, 5, jobs)
    requested = np.maximum(1, run_time + rng.choice([-10, -1, 0, 0, 1, 20, 200], jobs))
    gap = np.dot(run_time, nodes) / (jobs * machine_size * load)
    gaps = rng.exponential(2 * gap, jobs) * rng.integers(0, 2, jobs)
    columns = {
        "submit_time": np.cumsum(gaps).astype(np.int64),
        "run_time": run_time,
        "requested_time": requested,
        "nodes": nodes,
        "user": rng.integers(0, 5, jobs),
    }
    return Workload(columns, machine_size=machine_size, name=f"random, {machine_size} nodes, load {load:g}")


# --- the checks ------------------------------------------------------------------------------------------


class _Player:
    """Runs one policy object over and over, and says what is wrong with what comes out."""

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy = policy
        self.seed = seed

    def run(self, workload: Workload) -> Result:
        return Simulation(workload, self.policy, seed=self.seed, observers=[_Patience()]).run()

    def breaks_rules(self, workload: Workload) -> str | None:
        """Check the outcome itself, whatever the policy did to the system's own checks."""
        result = self.run(workload)
        jobs, submit, start, end = workload.jobs, workload.submit_time, result.start_time, result.end_time
        for row in np.flatnonzero((start >= 0) & (start < submit)):
            return f"job {jobs[row].id} starts at t={start[row]} s, before it is submitted"
        for row in np.flatnonzero((start >= 0) & (end != start + workload.run_time)):
            return f"job {jobs[row].id} starts at t={start[row]} s and ends at t={end[row]} s"
        sweep = result.sweep()
        for instant in np.flatnonzero(sweep.busy > result.size):
            busy, at = sweep.busy[instant], sweep.time[instant]
            return f"{busy} nodes are busy at t={at} s; the cluster has {result.size}"
        return None

    def is_not_repeatable(self, workload: Workload) -> str | None:
        """Run twice."""
        difference = _first_difference(workload, self.run(workload), self.run(workload))
        return difference and f"two runs with seed {self.seed} differ: {difference}"

    def remembers(self, workload: Workload) -> str | None:
        """Run, run something else, run again."""
        before, text = self.run(workload), repr(self.policy)
        if len(workload) > 1:
            self.run(workload.select(slice(None, None, 2)))
        difference = _first_difference(workload, before, self.run(workload))
        if difference:
            return f"after a run of another workload the schedule differs: {difference}"
        if repr(self.policy) != text:
            return f"a run changes the policy into {self.policy!r}"
        return None

    def is_clairvoyant(self, workload: Workload) -> str | None:
        """Change the run times of jobs that have not ended at some instants; nothing before may change."""
        result = self.run(workload)
        rng = np.random.default_rng(self.seed)
        instants = np.unique(result.start_time[result.finished])
        for at in rng.permutation(instants)[:4].tolist():
            changed, rows = _with_other_ends(workload, result, at, rng)
            difference = _first_difference(workload, result, self.run(changed), until=at)
            if difference:
                jobs = ", ".join(str(workload.jobs[row].id) for row in rows[:5]) + ", ..." * (len(rows) > 5)
                return f"with other run times of jobs that end after t={at} s ({jobs}), {difference}"
        return None

    def knows_what_is_to_come(self, workload: Workload) -> str | None:
        """Leave out the jobs submitted after some instants; nothing before may change."""
        result = self.run(workload)
        rng = np.random.default_rng(self.seed)
        for at in rng.permutation(np.unique(workload.submit_time)[:-1])[:4].tolist():
            before = workload.submit_time <= at
            known = self.run(workload.select(before))
            whole = replace(result, start_time=result.start_time[before])
            difference = _first_difference(known.workload, whole, known, until=at)
            if difference:
                return f"without the jobs submitted after t={at} s, {difference}"
        return None


class _Patience(Observer):
    """Ends a run in which nothing happens any more."""

    def on_begin(self, system: System) -> None:
        self._version, self._idle = system.version, 0

    def on_pass(self, seconds: float, system: System) -> None:
        if system.anything_ahead or system.version != self._version:
            self._version, self._idle = system.version, 0
            return
        self._idle += 1
        if self._idle >= IDLE_PASSES:
            raise CheckError(
                f"{len(system.queue)} jobs starve: nothing runs and nothing is to come, and the last "
                f"{self._idle} passes, until t={system.now} s, have started nothing"
            )


def _with_other_ends(
    workload: Workload, result: Result, at: int, rng: np.random.Generator
) -> tuple[Workload, Integers]:
    """Return the workload with other run times for the jobs that end after an instant, and their rows."""
    rows = np.flatnonzero((result.end_time > at) | ~result.finished)
    started = result.start_time[rows]
    runs = (started >= 0) & (started <= at)
    run_time = workload.run_time.copy()
    run_time[rows] = np.where(runs, at - started + 1, 0) + rng.integers(0, 200, len(rows))
    columns = {**workload.columns, "run_time": run_time}
    return Workload(columns, machine_size=workload.machine_size, name=workload.name), rows


def _first_difference(workload: Workload, one: Result, other: Result, until: int = LATER) -> str | None:
    """Describe the earliest start up to an instant in which two schedules differ."""
    starts = np.stack([one.start_time, other.start_time])
    starts[(starts < 0) | (starts > until)] = LATER
    rows = np.flatnonzero(starts[0] != starts[1])
    if not len(rows):
        return None
    row = rows[starts[:, rows].min(axis=0).argmin()]
    absent = "never" if until == LATER else "later"
    expected, found = (f"at t={start} s" if start < LATER else absent for start in starts[:, row])
    return f"job {workload.jobs[row].id} starts {found} instead of {expected}"


# --- parameters ------------------------------------------------------------------------------------------


def _check_parameters(policy: Policy) -> None:
    """Check that the constructors only store their arguments, of the policy and of its stages."""
    for part in parts(policy):
        problem = _parameter_problem(part)
        if problem:
            raise CheckError(f"{policy!r} fails 'parameters': {problem}")


def _parameter_problem(part: Parameters) -> str | None:
    cls = type(part)
    without_name = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    parameters = inspect.signature(cls).parameters.values()
    for parameter in parameters:
        if parameter.kind in without_name:
            stars = without_name[parameter.kind]
            return f"{cls.__name__} takes {stars}{parameter.name}: each parameter needs a name of its own"
        if not hasattr(part, parameter.name):
            return f"{cls.__name__} does not store its parameter {parameter.name!r} under this name"
    values = {parameter.name: getattr(part, parameter.name) for parameter in parameters}
    if repr(cls(**values)) != repr(part):
        return f"{cls.__name__} made of its own parameters is {cls(**values)!r}"
    if repr(copy.deepcopy(part)) != repr(part):
        return f"a copy of {cls.__name__} is {copy.deepcopy(part)!r}"
    return None


# --- the smallest example --------------------------------------------------------------------------------


def _must_pass(policy: Policy, name: str, failure: Failure, workload: Workload) -> None:
    """Raise if a check fails, with the smallest workload found on which it does."""
    problem = _problem(failure, workload)
    if problem is None:
        return
    search = _Shrinking(workload, problem, failure)
    search.drop_jobs()
    search.simplify()
    raise CheckError(
        f"{policy!r} fails {name!r}: {search.problem}; on {_as_code(search.workload)} "
        "(smallest example found)"
    )


def _problem(failure: Failure, workload: Workload) -> str | None:
    """Return what is wrong; an error of the run itself is wrong too."""
    try:
        return failure(workload)
    except HpcsimkitError as error:
        return str(error)


class _Shrinking:
    """Looks for a smaller workload on which a check still fails."""

    def __init__(self, workload: Workload, problem: str, failure: Failure) -> None:
        self.workload = workload
        self.problem = problem
        self._failure = failure
        self._runs = 0

    def _try(self, candidate: Workload) -> bool:
        """Take the candidate if the check fails on it too."""
        self._runs += 1
        problem = _problem(self._failure, candidate) if len(candidate) else None
        if problem is not None:
            self.workload, self.problem = candidate, problem
        return problem is not None

    def drop_jobs(self) -> None:
        """Leave out blocks of jobs, smaller and smaller ones; single ones until none can go any more."""
        size, dropped = len(self.workload), True
        while (size > 1 or dropped) and self._runs < SHRINKING_RUNS:
            size = max(1, size // 2)
            first, dropped = 0, False
            while first < len(self.workload) and self._runs < SHRINKING_RUNS:
                rows = np.arange(len(self.workload))
                if self._try(self.workload.select((rows < first) | (rows >= first + size))):
                    dropped = True
                else:
                    first += size

    def simplify(self) -> None:
        """Keep to the columns that matter; new job numbers; time begins at 0; all come at 0."""
        for change in (
            lambda columns: {name: columns[name] for name in REQUIRED_COLUMNS},
            lambda columns: {**columns, "id": np.arange(1, len(columns["id"]) + 1)},
            lambda columns: {**columns, "submit_time": columns["submit_time"] - columns["submit_time"].min()},
            lambda columns: {**columns, "submit_time": np.zeros(len(columns["id"]))},
        ):
            workload = self.workload
            columns = change(workload.columns)
            self._try(Workload(columns, machine_size=workload.machine_size, name=workload.name))


def _as_code(workload: Workload) -> str:
    """Return a workload as an expression that makes it, a large one by its name."""
    if len(workload) > LONGEST_CODE:
        return f"{len(workload)} jobs of {workload.name!r}"
    columns = {name: workload.column(name).tolist() for name in workload.columns}
    return f"Workload({columns}, machine_size={workload.machine_size})"
