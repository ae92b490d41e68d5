"""Checks of user-defined policies for rule violations, on workloads full of corner cases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import as_cluster
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.checks.runner import (
    CheckError,
    CheckReport,
    Checks,
    Failure,
    event_problem,
    parameter_problem,
    pass_all,
)
from hpcsimkit.experiments.checks.workloads import machines_of_three_types, random_workloads
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.given_policy import GivenPolicy, policy_of
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.parameters import Parameters, parts
from hpcsimkit.kernel.policy import Placement, Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result

__all__ = ["CheckError", "check_policy"]

IDLE_PASSES = 10_000
"""Number of consecutive passes without a start, running jobs or pending events that indicates starvation."""

LATER = np.iinfo(np.int64).max
"""Value of a start that has not happened by the time of interest."""


def check_policy(
    policy: GivenPolicy,
    *,
    seed: int = 0,
    workloads: Sequence[Workload] | None = None,
    oracle: bool = False,
    cluster: AnyCluster | int | None = None,
) -> CheckReport:
    """Check that a policy without open seats obeys the rules.

    Parameters
    ----------
    policy : Policy, Stage or str
        The policy to check, of which each run uses a copy; a stage, for a pipeline with no other one; or the
        name of a policy.
    seed : int
        Random seed of the workloads and the runs. Default: 0.
    workloads : sequence of Workload, optional
        Workloads to run, each with a machine size or fitting the cluster; by default
        :func:`~hpcsimkit.experiments.checks.workloads.random_workloads`.
    oracle : bool
        Whether the policy may use future information, which is then not checked. Default: False.
    cluster : Cluster or int, optional
        Machines (or number of nodes) for the runs. By default, a policy that selects machines, in a placement
        stage or itself (:attr:`Policy.selects_machines <hpcsimkit.kernel.policy.Policy.selects_machines>`),
        runs on six machines of three types; any other policy runs on homogeneous nodes, where there is no
        machine to select. A policy that selects machines itself gets jobs that share one machine each.

    Returns
    -------
    CheckReport
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
    policy = policy_of(policy)
    places = [part for part in parts(policy) if _selects_machines(part)]
    if workloads is None:
        cluster = machines_of_three_types() if cluster is None and places else cluster
        rng = np.random.default_rng(seed)
        workloads = random_workloads(rng, cluster=cluster, shared=policy.selects_machines)
    clusters = [_cluster_of(workload, cluster) for workload in workloads]
    for part in parts(policy):
        for check, problem in (("parameters", parameter_problem(part)), ("events", event_problem(part))):
            if problem:
                raise CheckError(f"{policy!r} fails {check!r}: {problem}")

    def schedule(policy: Policy, workload: Workload) -> Schedule:
        scenario = Scenario(workload, Setup(cluster, seed=seed))
        return Schedule(scenario.simulation(policy, [_Patience()]).run())

    def breaks_rules(workload: Workload) -> None:
        """Run the policy: the schedule of each run is checked, see :mod:`~hpcsimkit.kernel.verification`."""
        schedule(policy, workload)

    common = Checks(policy, schedule, seed)
    checks: dict[str, Failure] = {
        "capacity, starts and ends": breaks_rules,
        "same seed, same schedule": common.is_not_repeatable,
        "no state kept between runs": common.remembers,
        "run times not known before the end": common.is_clairvoyant,
        "later submissions not known": common.knows_what_is_to_come,
    }
    if oracle:
        del checks["run times not known before the end"], checks["later submissions not known"]
    pass_all(repr(policy), checks, workloads, smallest=True)
    ends = [schedule(policy, workload).result.finished for workload in workloads]
    nowhere = not any(isinstance(each, Machines) for each in clusters)
    return CheckReport(
        repr(policy),
        ("parameters", "events", *checks),
        len(workloads),
        sum(map(len, workloads)),
        rejected=sum(int(np.count_nonzero(~finished)) for finished in ends),
        notes=tuple(_not_checked(part) for part in places if nowhere),
    )


@dataclass(frozen=True)
class Schedule:
    """Trace of a policy: the first starts of the jobs, also those of tests."""

    result: Result

    @property
    def starts(self) -> NDArray[np.int64]:
        """First start of each job [s], -1 for rejected ones."""
        starts, attempts = self.result.start_time.copy(), self.result.attempts
        if attempts is not None:
            first = attempts.number == 1
            starts[attempts.job[first]] = attempts.start_time[first]
        return starts

    def difference(self, other: Schedule, until: int | None = None) -> str | None:
        """Describe the earliest difference; the first jobs of both are the same, in order of submission."""
        until = LATER if until is None else until
        count = min(len(self.result), len(other.result))
        starts = np.stack([self.starts[:count], other.starts[:count]])
        starts[(starts < 0) | (starts > until)] = LATER
        rows = np.flatnonzero(starts[0] != starts[1])
        if not len(rows):
            return None
        row = rows[starts[:, rows].min(axis=0).argmin()]
        absent = "never" if until == LATER else "later"
        expected, found = (f"at t={start} s" if start < LATER else absent for start in starts[:, row])
        return f"job {self.result.workload.jobs[row].id} starts {found} instead of {expected}"


def _selects_machines(part: Parameters) -> bool:
    return isinstance(part, Placement) or (isinstance(part, Policy) and part.selects_machines)


def _not_checked(part: Parameters) -> str:
    """Return the note on a part that selects machines but ran on homogeneous nodes only."""
    if isinstance(part, Placement):
        return f"not checked: {part!r}, which changes nothing on homogeneous nodes"
    return f"not checked: the machine selection of {part!r}, since homogeneous nodes have no machines"


def _cluster_of(workload: Workload, cluster: AnyCluster | int | None) -> AnyCluster:
    if cluster is None and not workload.machine_size:
        raise UsageError(f"{workload.name}: a workload to check policies on needs a machine size")
    return as_cluster(cluster, workload)


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
