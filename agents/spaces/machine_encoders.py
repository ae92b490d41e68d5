"""Encoders for clusters of machines: machine rows, job-machine pairs, expected availability over time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.dispatch import PairDecision


class MachineRows(Encoder):
    """Free and total resources of each machine, one row per machine.

    ====== ============= ========= ================================================
    row    column        range     meaning
    ====== ============= ========= ================================================
    m      k             0 to 1    free share of resource k of machine m; 0 if none
    m      resources+k   0 to 1    amount of resource k of machine m, relative to the largest machine
    ====== ============= ========= ================================================

    Parameters
    ----------
    machines, resources : int
        Number of machines, and number of resources (CPUs, GPUs, memory ...).
    """

    low, high = 0.0, 1.0
    reads_compiled = True

    def __init__(self, machines: int, resources: int) -> None:
        self.machines = machines
        self.resources = resources

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (machines, 2 resources)."""
        return (self.machines, 2 * self.resources)

    def bind(self, system: System) -> Encode:
        """Precompute the capacities of the machines."""
        cluster = checked_machines(self, system, self.machines, self.resources)
        inverse, largest = amounts_inverted(cluster.capacity), cluster.capacity.max(axis=0)
        sizes = cluster.capacity * amounts_inverted(largest)

        def encode(decision: Decision, out: Observation) -> None:
            out[:, : self.resources] = system.free * inverse
            out[:, self.resources :] = sizes

        return encode


class JobMachinePairs(Encoder):
    """One row per pair of job and machine: the job, the machine, and the resources left after a start.

    ============ ===================== ========= ==========================================================
    row          column                range     meaning
    ============ ===================== ========= ==========================================================
    s machines+m 0                     0 or 1    1 if slot s holds a job
    s machines+m 1                     0 or 1    1 if machine m can start it now
    s machines+m 2                     >= 0      wait time so far [`time_scale`]
    s machines+m 3                     >= 0      requested time [`time_scale`]
    s machines+m 4+k                   0 to 1    request for resource k, relative to the largest machine
    s machines+m 4+resources+k         0 to 1    share of resource k of machine m left after the start
    ============ ===================== ========= ==========================================================

    One row is one action of :class:`~hpcsimkit.agents.spaces.masks.JobMachine`, for networks that score rows.

    Parameters
    ----------
    slots : int
        Number of job slots.
    machines, resources : int
        Number of machines, and number of resources (CPUs, GPUs, memory ...).
    time_scale : float
        Unit of time [s].
    """

    low, high = 0.0, np.inf
    reads_compiled = True

    def __init__(self, slots: int, machines: int, resources: int, time_scale: Positive = 86_400.0) -> None:
        self.slots = slots
        self.machines = machines
        self.resources = resources
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots x machines, 4 + 2 resources)."""
        return (self.slots * self.machines, 4 + 2 * self.resources)

    def bind(self, system: System) -> Encode:
        """Precompute the capacities of the machines."""
        cluster = checked_machines(self, system, self.machines, self.resources)
        inverse, whole = amounts_inverted(cluster.capacity), amounts_inverted(cluster.capacity.max(axis=0))
        requested, submitted = system.workload.requested_time, system.column("submit_time")
        resources = self.resources

        def encode(decision: Decision, out: Observation) -> None:
            if not isinstance(decision, PairDecision):
                raise UsageError(f"{self!r} needs pairs of jobs and machines, found {decision!r}")
            rows = decision.rows
            amounts = cluster.needs.amounts[decision.numbers]
            pairs = out.reshape(self.slots, self.machines, -1)[: len(rows)]
            pairs[:, :, 0] = 1
            pairs[:, :, 1] = decision.valid
            pairs[:, :, 2] = ((system.now - submitted[rows]) / self.time_scale)[:, None]
            pairs[:, :, 3] = (requested[rows] / self.time_scale)[:, None]
            pairs[:, :, 4 : 4 + resources] = (amounts * whole)[:, None]
            left = np.maximum(system.free - amounts[:, None], 0) * inverse
            pairs[:, :, 4 + resources :] = left * decision.valid[:, :, None]

        return encode


class ExpectedFree(Encoder):
    """Expected free resources from now on, one row per time step: an image of the cluster over time.

    ====== ====== ========= ====================================================================
    row    column range     meaning
    ====== ====== ========= ====================================================================
    t      k      0 to 1    share of resource k expected to be free at now + t x `step`
    ====== ====== ========= ====================================================================

    Running jobs end at their expected ends; one past its estimate, one second from now. A cluster of
    homogeneous nodes has one resource, the nodes.

    Parameters
    ----------
    steps : int
        Number of time steps (rows).
    step : int
        Length of a time step [s].
    resources : int
        Number of resources of the cluster (CPUs, GPUs, memory ...); 1 for homogeneous nodes.
    """

    low, high = 0.0, 1.0

    def __init__(self, steps: int, step: int, resources: int = 1) -> None:
        self.steps = steps
        self.step = step
        self.resources = resources

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (steps, resources)."""
        return (self.steps, self.resources)

    def bind(self, system: System) -> Encode:
        """Precompute the total capacity."""
        cluster = system.cluster
        if isinstance(cluster, Machines):
            checked_machines(self, system, len(cluster), self.resources)
        elif self.resources != 1:
            raise UsageError(f"{self!r} needs {self.resources} resources, found {cluster!r}")
        totals = np.array(_totals(cluster.capacity))
        times = np.arange(self.steps) * self.step

        def encode(decision: Decision, out: Observation) -> None:
            entries, now = system.running.entries, system.now
            free = np.array(_totals(system.free), dtype=np.int64)
            if not entries:
                out[:] = free / totals
                return
            ends = np.maximum([end for end, _, _ in entries], now + 1) - now
            released = np.cumsum([_given(allocation) for _, _, allocation in entries], axis=0)
            count = np.searchsorted(np.maximum.accumulate(ends), times, side="right")
            released = np.vstack([np.zeros_like(released[:1]), released])
            out[:] = (free + released[count]) / totals

        return encode


def _totals(level: Any) -> list[int]:
    return [level] if isinstance(level, int) else level.sum(axis=0).tolist()


def _given(allocation: Any) -> tuple[int, ...]:
    return (allocation,) if isinstance(allocation, int) else allocation.totals


def amounts_inverted(amounts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return 1 / amounts, and 0 for an amount of 0."""
    return np.divide(1.0, amounts, out=np.zeros(amounts.shape), where=amounts > 0)


def checked_machines(encoder: Encoder, system: System, machines: int, resources: int) -> Machines:
    """Return the machines of a run, after checking their number and that of their resources."""
    cluster = system.cluster
    if not isinstance(cluster, Machines) or cluster.capacity.shape != (machines, resources):
        raise UsageError(
            f"{encoder!r} needs {machines} machines with {resources} resources, found {cluster!r}"
        )
    return cluster
