"""A scenario: jobs and options of a run, independent of the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation

__all__ = ["Scenario"]

MANY_NEEDS = 5000
"""Number of cached needs from which machines are not shared with another run."""


@dataclass(frozen=True)
class Scenario:
    """All parameters of a run except the policy.

    Parameters
    ----------
    workload : Workload
        Jobs of the scenario.
    setup : Setup
        Options of the run, such as the cluster and the seed. Default: those of
        :class:`~hpcsimkit.kernel.setup.Setup`.
    learn_from : int, optional
        End of the warm-up [s]: decisions before this time are made by the heuristic behind the seat, to fill
        the machine, and are not used for learning. By default no warm-up.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> Scenario(w).simulation(Pipeline()).run().start_time.tolist()
    [0, 9]
    >>> Scenario(w).changed(cluster=5).simulation(Pipeline()).run().start_time.tolist()
    [0, 1]
    """

    workload: Workload
    setup: Setup = field(default_factory=Setup)
    learn_from: int | None = None

    def changed(self, **options: Any) -> Scenario:
        """Return the scenario with some other options."""
        return replace(self, setup=replace(self.setup, **options))

    def under(self, setup: Setup) -> Scenario:
        """Return the scenario with the options of a setup and its own seed."""
        return replace(self, setup=replace(setup, seed=self.setup.seed))

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
        setup = replace(self.setup, cluster=_lent(self.setup.cluster))
        return Simulation(self.workload, policy, setup=setup, observers=observers, name=name)

    def _check(self) -> None:
        if not isinstance(self.setup, Setup):
            raise UsageError(f"a Scenario needs a Setup, found {self.setup!r}")
        instant = self.learn_from
        if instant is not None and not isinstance(instant, int | np.integer):
            raise UsageError(f"learn_from needs a whole number of seconds, found {instant!r}")

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
        >>> scenario.workload.submit_time.tolist(), scenario.setup.event_order
        ([5], DirlabOrder(following=9))
        """
        end = start + jobs
        if not 0 <= start < end <= len(log):
            raise UsageError(f"{log.name}: {jobs} jobs from row {start} on are needed, found {len(log)} rows")
        part = log.select(slice(start, end), f"rows {start} to {end}")
        following = int(log.submit_time[end]) if end < len(log) else None
        return cls(part, Setup(event_order=DirlabOrder(following)))


def _lent(cluster: AnyCluster | int | None) -> AnyCluster | int | None:
    """Return the cluster, or an equal one without cached needs if it has cached very many.

    Runs share the cached needs of their machines, which saves time as long as their jobs have similar
    requests.
    """
    if isinstance(cluster, Machines) and len(cluster.needs) >= MANY_NEEDS:
        return replace(cluster)
    return cluster
