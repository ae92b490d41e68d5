"""What one run is about: jobs, machine and rules, whoever schedules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hpcsimkit.cluster import Cluster
from hpcsimkit.observers import Observer
from hpcsimkit.policy import Policy
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.simulation import Simulation
from hpcsimkit.workload import Workload

__all__ = ["Scenario"]


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

    def simulation(
        self, policy: Policy, observers: Sequence[Observer] = (), name: str | None = None
    ) -> Simulation:
        """Return a run of a policy."""
        return Simulation(
            self.workload, policy, self.cluster, seed=self.seed, walltime=self.walltime,
            service_time=self.service_time, observers=observers, name=name,
        )  # fmt: skip
