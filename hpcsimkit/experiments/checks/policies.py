"""Checks of user-defined policies for rule violations, on workloads full of corner cases."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.jobs.columns import REQUIRED_COLUMNS
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import message_of
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.parameters import Parameters, parts
from hpcsimkit.kernel.policy import Placement, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result

__all__ = [
    "CheckError",
    "Failure",
    "PolicyReport",
    "check_policy",
    "machines_of_three_types",
    "parameter_problem",
    "problem_of",
    "random_workloads",
    "with_other_ends",
]

IDLE_PASSES = 10_000
"""Number of consecutive passes without a start, running jobs or pending events that indicates starvation."""

SHRINKING_RUNS = 200
"""Maximum number of runs in the search for a smaller example."""

LATER = np.iinfo(np.int64).max
"""Value of a start that has not happened by the time of interest."""

LONGEST_CODE = 20
"""Maximum number of jobs of an example that is written as code."""

Integers = NDArray[np.int64]
Failure = Callable[[Workload], str | None]
"""Function that returns a problem of the policy on a workload, or None."""


class CheckError(HpcsimkitError):
    """A policy failed a check; the message names the check and a workload."""


@dataclass(frozen=True)
class PolicyReport:
    """Report of a policy that passed all checks.

    Attributes
    ----------
    policy : str
        Representation of the policy.
    checks : tuple of str
        Names of the checks.
    workloads : int
        Number of workloads.
    jobs : int
        Total number of jobs.
    rejected : int
        Number of jobs that the policy rejected.
    notes : tuple of str
        Notes on aspects that were not checked.
    """

    policy: str
    checks: tuple[str, ...]
    workloads: int
    jobs: int
    rejected: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.policy}: passed on {self.workloads} workloads, {self.jobs} jobs"]
        if self.rejected:
            lines[0] += f", {self.rejected} of them rejected"
        return "\n".join([*lines, *(f"  {check}" for check in self.checks), *self.notes])


def check_policy(
    policy: Policy,
    *,
    seed: int = 0,
    workloads: Sequence[Workload] | None = None,
    oracle: bool = False,
    cluster: AnyCluster | int | None = None,
) -> PolicyReport:
    """Check that a policy without open seats obeys the rules.

    Parameters
    ----------
    policy : Policy
        The policy to check; each run uses a copy.
    seed : int
        Random seed of the workloads and the runs. Default: 0.
    workloads : sequence of Workload, optional
        Workloads to run, each with a machine size or fitting the cluster; by default
        :func:`random_workloads`.
    oracle : bool
        Whether the policy may use future information, which is then not checked. Default: False.
    cluster : Cluster or int, optional
        Machines (or number of nodes) for the runs. By default, a policy that selects machines, in a placement
        stage or itself (:attr:`Policy.selects_machines <hpcsimkit.kernel.policy.Policy.selects_machines>`),
        runs on six machines of three types; any other policy runs on counted nodes, where there is no machine
        to select. A policy that selects machines itself gets jobs that share one machine each.

    Returns
    -------
    PolicyReport
        Summary of the checks.

    Raises
    ------
    CheckError
        A check failed; the message contains the smallest failing workload that was found.
    UsageError
        The object is not a policy, or the machine size of a workload is unknown.
    ScheduleError
        A job of a given workload does not fit the cluster.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
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
    places = [part for part in parts(policy) if _selects_machines(part)]
    if workloads is None:
        cluster = machines_of_three_types() if cluster is None and places else cluster
        workloads = random_workloads(
            np.random.default_rng(seed), cluster=cluster, shared=policy.selects_machines
        )
    clusters = [_cluster_of(workload, cluster) for workload in workloads]
    player = _Player(policy, seed, cluster)
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
    nowhere = not any(isinstance(each, Machines) for each in clusters)
    notes = [_not_checked(part) for part in places if nowhere]
    return PolicyReport(repr(policy), ("parameters", *checks), len(workloads), jobs, rejected, tuple(notes))


def _selects_machines(part: Parameters) -> bool:
    return isinstance(part, Placement) or (isinstance(part, Policy) and part.selects_machines)


def _not_checked(part: Parameters) -> str:
    """Return the note on a part that selects machines but ran on counted nodes only."""
    if isinstance(part, Placement):
        return f"not checked: {part!r}, which changes nothing on counted nodes"
    return f"not checked: the machine selection of {part!r}, since counted nodes have no machines"


def machines_of_three_types() -> Machines:
    """Return heterogeneous machines, shared by jobs that request CPUs, GPUs and memory."""
    plain = Machines.of(3, cpus=8, memory="64 B")
    return plain + Machines.of(2, "gpu", cpus=4, gpus=2, memory="32 B") + Machines.of(1, "large", cpus=16)


def _cluster_of(workload: Workload, cluster: AnyCluster | int | None) -> AnyCluster:
    if cluster is None and not workload.machine_size:
        raise UsageError(f"{workload.name}: a workload to check policies on needs a machine size")
    return as_cluster(cluster, workload)


def random_workloads(
    rng: np.random.Generator, jobs: int = 60, *, cluster: AnyCluster | int | None = None, shared: bool = False
) -> list[Workload]:
    """Return small workloads full of corner cases.

    They cover machines of 1 to 64 nodes, light to extreme loads, simultaneous arrivals, zero-length jobs,
    jobs as large as the machine, and jobs that run longer, shorter and exactly as long as requested. On a
    cluster of machines, they also cover multi-machine, exclusive and pooled requests, unless `shared` is
    True: then each job shares one machine.

    >>> [w.machine_size for w in random_workloads(np.random.default_rng(0))]
    [1, 2, 4, 7, 16, 16, 64, 64]
    """
    if isinstance(cluster, Machines):
        return [_requests_of(rng, jobs, cluster, load, shared=shared) for load in (0.5, 1.0, 3.0, 50.0)]
    if cluster is not None:
        size = cluster if isinstance(cluster, int) else cluster.size
        return [_random_workload(rng, jobs, size, load) for load in (0.5, 1.0, 3.0, 50.0)]
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


def _requests_of(
    rng: np.random.Generator, jobs: int, cluster: Machines, load: float, *, shared: bool
) -> Workload:
    """Return requests of all forms that fit the cluster; with `shared`, for a share of one machine each."""
    plain = _random_workload(rng, jobs, cluster.size, load)
    spread, exclusive = (rng.integers(0, 4, jobs) == 0).astype(np.int64), rng.integers(0, 8, jobs) == 0
    columns = {**plain.columns, "nodes": rng.choice([1, 1, 1, 2, 3], jobs), "spread": spread}
    columns["exclusive"] = exclusive.astype(np.int64)
    if shared:
        columns |= {"nodes": np.ones(jobs), "spread": np.zeros(jobs), "exclusive": np.zeros(jobs)}
    for k, name in enumerate(cluster.resources):
        column = cluster.capacity[:, k]
        most = np.where(spread == 1, column.sum(), column.max())
        columns[name] = np.ceil(most ** rng.uniform(0, 1, jobs)).astype(np.int64) * rng.integers(0, 2, jobs)
    columns[cluster.unit] = np.maximum(columns[cluster.unit], 1)
    name = f"random, on {cluster!r}, load {load:g}"
    workload = Workload(columns, name=name, resources=tuple(cluster.resources))
    return workload.select(~cluster.misfits(workload))


# --- the checks ------------------------------------------------------------------------------------------


class _Player:
    """Runner of one policy object, with methods that report problems of its schedules."""

    def __init__(self, policy: Policy, seed: int, cluster: AnyCluster | int | None = None) -> None:
        self.policy = policy
        self.seed = seed
        self.cluster = cluster

    def run(self, workload: Workload) -> Result:
        return Simulation(workload, self.policy, self.cluster, seed=self.seed, observers=[_Patience()]).run()

    def breaks_rules(self, workload: Workload) -> str | None:
        """Run the policy: the schedule of each run is checked, see :mod:`~hpcsimkit.kernel.verification`."""
        self.run(workload)
        return None

    def is_not_repeatable(self, workload: Workload) -> str | None:
        """Compare two runs."""
        difference = _first_difference(workload, self.run(workload), self.run(workload))
        return difference and f"two runs with seed {self.seed} differ: {difference}"

    def remembers(self, workload: Workload) -> str | None:
        """Compare two runs with another run in between."""
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
        """Change the run times of jobs that end after some instants; earlier starts must not change."""
        result = self.run(workload)
        rng = np.random.default_rng(self.seed)
        instants = np.unique(result.start_time[result.finished])
        for at in rng.permutation(instants)[:4].tolist():
            changed, rows = with_other_ends(workload, result, at, rng)
            difference = _first_difference(workload, result, self.run(changed), until=at)
            if difference:
                jobs = ", ".join(str(workload.jobs[row].id) for row in rows[:5]) + ", ..." * (len(rows) > 5)
                return f"with other run times of jobs that end after t={at} s ({jobs}), {difference}"
        return None

    def knows_what_is_to_come(self, workload: Workload) -> str | None:
        """Remove the jobs submitted after some instants; earlier starts must not change."""
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
    """Observer that aborts a run without progress."""

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


def with_other_ends(
    workload: Workload, result: Result, at: int, rng: np.random.Generator
) -> tuple[Workload, Integers]:
    """Return the workload with other run times of the jobs that end after an instant, and their rows.

    Parameters
    ----------
    workload, result : Workload, Result
        Jobs, and a schedule of them.
    at : int
        The instant [s].
    rng : Generator
        Random number generator of the run times.
    """
    rows = np.flatnonzero((result.end_time > at) | ~result.finished)
    started = result.start_time[rows]
    runs = (started >= 0) & (started <= at)
    run_time = workload.run_time.copy()
    run_time[rows] = np.where(runs, at - started + 1, 0) + rng.integers(0, 200, len(rows))
    return replace(workload, columns={**workload.columns, "run_time": run_time}), rows


def _first_difference(workload: Workload, one: Result, other: Result, until: int = LATER) -> str | None:
    """Describe the earliest difference between two schedules up to an instant."""
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
    """Check that the constructors of the policy and its stages only store their arguments."""
    for part in parts(policy):
        problem = parameter_problem(part)
        if problem:
            raise CheckError(f"{policy!r} fails 'parameters': {problem}")


def parameter_problem(part: Parameters) -> str | None:
    """Describe a parameter that the constructor does not store under its name, if there is one."""
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
    anew: dict[str, Callable[[], object]] = {
        f"{cls.__name__} made of its own parameters": lambda: cls(**values),
        f"a copy of {cls.__name__}": lambda: copy.deepcopy(part),  # each run has one
    }
    for which, make in anew.items():
        try:
            found = repr(make())
        except Exception as error:  # of the user's code, or of what it contains, such as a lock
            return f"{which} cannot be made: {message_of(error)}"
        if found != repr(part):
            return f"{which} is {found}"
    return None


# --- the smallest example --------------------------------------------------------------------------------


def _must_pass(policy: Policy, name: str, failure: Failure, workload: Workload) -> None:
    """Raise an error if a check fails, with the smallest failing workload found."""
    problem = problem_of(failure, workload)
    if problem is None:
        return
    search = _Shrinking(workload, problem, failure)
    search.drop_jobs()
    search.simplify()
    raise CheckError(
        f"{policy!r} fails {name!r}: {search.problem}; on {_as_code(search.workload)} "
        "(smallest example found)"
    )


def problem_of(failure: Failure, workload: Workload) -> str | None:
    """Return the problem found by a check, or the message of an error in the run."""
    try:
        return failure(workload)
    except HpcsimkitError as error:
        return str(error)


class _Shrinking:
    """Search for a smaller workload on which a check still fails."""

    def __init__(self, workload: Workload, problem: str, failure: Failure) -> None:
        self.workload = workload
        self.problem = problem
        self._failure = failure
        self._runs = 0

    def _try(self, candidate: Workload) -> bool:
        """Adopt the candidate if the check fails on it, too."""
        self._runs += 1
        problem = problem_of(self._failure, candidate) if len(candidate) else None
        if problem is not None:
            self.workload, self.problem = candidate, problem
        return problem is not None

    def drop_jobs(self) -> None:
        """Remove blocks of jobs of decreasing size, then single jobs until none can be removed."""
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

    def _what_matters(self, columns: Mapping[str, ArrayLike]) -> dict[str, ArrayLike]:
        """Return the columns of times, sizes and resource requests."""
        names = (*REQUIRED_COLUMNS, "spread", "exclusive", "constraint", *self.workload.resources)
        return {name: columns[name] for name in names if name in columns}

    def simplify(self) -> None:
        """Keep relevant columns only, renumber the jobs, shift times to 0, submit all jobs at 0."""
        for change in (
            self._what_matters,
            lambda columns: {**columns, "id": np.arange(1, len(columns["id"]) + 1)},
            lambda columns: {**columns, "submit_time": columns["submit_time"] - columns["submit_time"].min()},
            lambda columns: {**columns, "submit_time": np.zeros(len(columns["id"]))},
        ):
            workload = self.workload
            self._try(replace(workload, columns=change(workload.columns)))


def _as_code(workload: Workload) -> str:
    """Return a workload as a Python expression, or its name if it is large."""
    if len(workload) > LONGEST_CODE:
        return f"{len(workload)} jobs of {workload.name!r}"
    columns = {name: workload.column(name).tolist() for name in workload.columns}
    resources = f", resources={workload.resources}" if workload.resources else ""
    return f"Workload({columns}, machine_size={workload.machine_size}{resources})"
