"""What one run is about: jobs, machine and rules, whoever schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from hpcsimkit.cluster import Cluster
from hpcsimkit.errors import UsageError
from hpcsimkit.machines import Machines
from hpcsimkit.observers import Observer
from hpcsimkit.policy import Policy
from hpcsimkit.semantics import SEMANTICS
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.simulation import Simulation
from hpcsimkit.workload import Workload

__all__ = ["Scenario"]

MANY_NEEDS = 5000
"""Machines that know so many different needs are not lent to another run."""


@dataclass(frozen=True)
class Scenario:
    """Everything that decides a run but the policy; see :class:`~hpcsimkit.simulation.Simulation`.

    Parameters
    ----------
    workload : Workload
        The jobs.
    cluster : Cluster or int, optional
        The machine; by default the workload's own.
    seed : int
        Where the run's randomness comes from.
    walltime : {"run", "kill"}
        Do jobs run to their end, or to their requested time?
    service_time : ServiceTime, optional
        Locality model.
    learn_from : int, optional
        Decisions before this instant [s] are no one's to learn from: the heuristic behind the seat takes
        them, to fill the machine.
    semantics : {"textbook", "dirlab"}
        By which rules: see :mod:`hpcsimkit.semantics`.
    following : int, optional
        With the rules ``dirlab``, when the job that follows in the log is submitted [s].

    Examples
    --------
    >>> from hpcsimkit.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> Scenario(w).simulation(Pipeline()).run().start_time.tolist()
    [0, 9]
    """

    workload: Workload
    cluster: Cluster | int | None = None
    seed: int = 0
    walltime: Literal["run", "kill"] = "run"
    service_time: ServiceTime | None = None
    learn_from: int | None = None
    semantics: Literal["textbook", "dirlab"] = "textbook"
    following: int | None = None

    def simulation(
        self, policy: Policy, observers: Sequence[Observer] = (), name: str | None = None
    ) -> Simulation:
        """Return a run of a policy."""
        of_these_rules: dict[str, Any] = {} if self.following is None else {"following": self.following}
        return SEMANTICS[self.semantics](
            self.workload, policy, _lent(self.cluster), seed=self.seed, walltime=self.walltime,
            service_time=self.service_time, observers=observers, name=name, **of_these_rules,
        )  # fmt: skip

    @classmethod
    def sequence(cls, log: Workload, start: int, jobs: int) -> Scenario:
        """Return successive jobs of a log by the rules ``dirlab``, on an empty machine.

        Parameters
        ----------
        log : Workload
            As :func:`~hpcsimkit.workloads.dirlab.read_published` returns it.
        start : int
            Row of the first of them.
        jobs : int
            How many.

        Raises
        ------
        UsageError
            The log has no such rows.

        Examples
        --------
        >>> w = Workload({"submit_time": [0, 5, 9], "run_time": [1] * 3, "nodes": [1] * 3}, machine_size=1)
        >>> scenario = Scenario.sequence(w, 1, 1)
        >>> scenario.workload.submit_time.tolist(), scenario.following
        ([5], 9)
        """
        end = start + jobs
        if not 0 <= start < end <= len(log):
            raise UsageError(f"{log.name}: {jobs} jobs from row {start} on are needed, found {len(log)} rows")
        part = log.select(slice(start, end), f"rows {start} to {end}")
        following = int(log.submit_time[end]) if end < len(log) else None
        return cls(part, semantics="dirlab", following=following)


def _lent(cluster: Cluster | int | None) -> Cluster | int | None:
    """Return the cluster, or if it remembers very many needs (of jobs long gone) one like it that does not.

    Runs share what their machines have worked out, which is fast as long as they meet the same needs.
    """
    if isinstance(cluster, Machines) and len(cluster.needs) >= MANY_NEEDS:
        return replace(cluster)
    return cluster
