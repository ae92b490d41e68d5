"""A scenario: jobs, machine and rules of a run, independent of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import EVENT_ORDERS
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.kernel.simulation import Simulation

__all__ = ["Scenario"]

MANY_NEEDS = 5000
"""Number of cached needs from which machines are not shared with another run."""


@dataclass(frozen=True)
class Scenario:
    """All parameters of a run except the policy; see :class:`~hpcsimkit.kernel.simulation.Simulation`.

    Parameters
    ----------
    workload : Workload
        Jobs of the scenario.
    cluster : Cluster or int, optional
        The cluster, or a number of nodes; by default the workload's ``machine_size``.
    seed : int
        Random seed of the run, >= 0. Default: 0.
    walltime : {"run", "kill"}
        The wall-time limit: jobs run for their full run time, or are killed at their requested time. Default:
        ``"run"``.
    service_time : ServiceTime, optional
        Locality model; by default none.
    learn_from : int, optional
        End of the warm-up [s]: decisions before this time are made by the heuristic behind the seat, to fill
        the machine, and are not used for learning. By default no warm-up.
    semantics : {"textbook", "dirlab"}
        Event-ordering rules: see :mod:`hpcsimkit.kernel.event_order`. Default: ``"textbook"``.
    following : int, optional
        Submission time of the next job of the log [s]; with the rules ``dirlab`` only.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> Scenario(w).simulation(Pipeline()).run().start_time.tolist()
    [0, 9]
    """

    workload: Workload
    cluster: AnyCluster | int | None = None
    seed: int = 0
    walltime: Literal["run", "kill"] = "run"
    service_time: ServiceTime | None = None
    learn_from: int | None = None
    semantics: Literal["textbook", "dirlab"] = "textbook"
    following: int | None = None

    def simulation(
        self, policy: Policy, observers: Sequence[Observer] = (), name: str | None = None
    ) -> Simulation:
        """Return a run of a policy.

        Raises
        ------
        UsageError
            A parameter of the scenario is invalid.
        """
        self._check()
        of_these_rules: dict[str, Any] = {} if self.following is None else {"following": self.following}
        return Simulation(
            self.workload,
            policy,
            _lent(self.cluster),
            seed=self.seed,
            walltime=self.walltime,
            service_time=self.service_time,
            event_order=EVENT_ORDERS[self.semantics](**of_these_rules),
            observers=observers,
            name=name,
        )

    def _check(self) -> None:
        if self.semantics not in EVENT_ORDERS:
            raise UsageError(f"semantics needs one of {', '.join(EVENT_ORDERS)}, found {self.semantics!r}")
        for name in ("learn_from", "following"):
            instant = getattr(self, name)
            if instant is not None and not isinstance(instant, int | np.integer):
                raise UsageError(f"{name} needs a whole number of seconds, found {instant!r}")

    @classmethod
    def sequence(cls, log: Workload, start: int, jobs: int) -> Scenario:
        """Return a scenario of consecutive jobs of a log with the rules ``dirlab``, on an empty machine.

        Parameters
        ----------
        log : Workload
            The log, as returned by :func:`~hpcsimkit.workloads.dirlab.read_published`.
        start : int
            Row of the first job.
        jobs : int
            Number of jobs.

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


def _lent(cluster: AnyCluster | int | None) -> AnyCluster | int | None:
    """Return the cluster, or an equal one without cached needs if it has cached very many.

    Runs share the cached needs of their machines, which saves time as long as their jobs have similar
    requests.
    """
    if isinstance(cluster, Machines) and len(cluster.needs) >= MANY_NEEDS:
        return replace(cluster)
    return cluster
