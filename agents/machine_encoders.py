"""What learners see of machines: their rows, pairs of jobs and machines, what is expected to be free when."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.machines import Machines
from hpcsimkit.policies.dispatch import PairDecision
from hpcsimkit.system import System

__all__ = ["ExpectedFree", "JobMachinePairs", "MachineRows", "amounts_inverted", "checked_machines"]


class MachineRows(Encoder):
    """What is left of each machine, a row each.

    ====== ============= ========= ================================================
    row    column        range     what
    ====== ============= ========= ================================================
    m      k             0 to 1    free share of resource k of machine m; 0 if none
    m      resources+k   0 to 1    amount of resource k of machine m, share of the largest machine's
    ====== ============= ========= ================================================

    Parameters
    ----------
    machines, resources : int
        How many machines the cluster has, and how many kinds of resources (CPUs, GPUs, memory ...).
    """

    low, high = 0.0, 1.0

    def __init__(self, machines: int, resources: int) -> None:
        self.machines = machines
        self.resources = resources

    @property
    def shape(self) -> tuple[int, ...]:
        """(machines, 2 resources)."""
        return (self.machines, 2 * self.resources)

    def bind(self, system: System) -> Encode:
        """Work out what machines have, once for the run."""
        cluster = checked_machines(self, system, self.machines, self.resources)
        inverse, largest = amounts_inverted(cluster.capacity), cluster.capacity.max(axis=0)
        sizes = cluster.capacity * amounts_inverted(largest)

        def encode(decision: Decision, out: Observation) -> None:
            out[:, : self.resources] = system.free * inverse
            out[:, self.resources :] = sizes

        return encode


class JobMachinePairs(Encoder):
    """For each job that can start and each machine: the job, the machine, and what would be left of it.

    ============ ===================== ========= ==========================================================
    row          column                range     what
    ============ ===================== ========= ==========================================================
    s machines+m 0                     0 or 1    there is a job in slot s
    s machines+m 1                     0 or 1    machine m can start it now
    s machines+m 2                     >= 0      it has waited so far [`time_scale`]
    s machines+m 3                     >= 0      requested time [`time_scale`]
    s machines+m 4+k                   0 to 1    resource k it asks for, share of the largest machine's
    s machines+m 4+resources+k         0 to 1    resource k left of machine m after it, share of the machine's
    ============ ===================== ========= ==========================================================

    One row is one action of :class:`~hpcsimkit.agents.masks.JobMachine`: made for networks that score rows.

    Parameters
    ----------
    slots : int
        Slots for jobs.
    machines, resources : int
        How many machines the cluster has, and how many kinds of resources (CPUs, GPUs, memory ...).
    time_scale : float
        Seconds that count as one.
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int, machines: int, resources: int, time_scale: float = 86_400.0) -> None:
        self.slots = slots
        self.machines = machines
        self.resources = resources
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """(slots x machines, 4 + 2 resources)."""
        return (self.slots * self.machines, 4 + 2 * self.resources)

    def bind(self, system: System) -> Encode:
        """Work out what machines have, once for the run."""
        cluster = checked_machines(self, system, self.machines, self.resources)
        inverse, whole = amounts_inverted(cluster.capacity), amounts_inverted(cluster.capacity.max(axis=0))
        requested, submitted = system.workload.requested_time, system.column("submit_time")
        resources = self.resources

        def encode(decision: Decision, out: Observation) -> None:
            if not isinstance(decision, PairDecision):
                raise UsageError(f"{self!r} needs pairs of jobs and machines, found {decision!r}")
            rows = np.array([job.index for job in decision.jobs], dtype=np.intp)
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
    """What is expected to be free from now on, time step by time step: an image of the cluster over time.

    ====== ====== ========= ====================================================================
    row    column range     what
    ====== ====== ========= ====================================================================
    t      k      0 to 1    share of resource k expected to be free at now + t x `step`
    ====== ====== ========= ====================================================================

    Running jobs are expected to end as the scheduler believes; one past its estimate, one second from now.
    On counted nodes there is one resource, the nodes.

    Parameters
    ----------
    steps : int
        Rows.
    step : int
        Seconds from one to the next.
    resources : int
        How many kinds of resources the cluster has (CPUs, GPUs, memory ...); 1 where nodes are counted.
    """

    low, high = 0.0, 1.0

    def __init__(self, steps: int, step: int, resources: int = 1) -> None:
        self.steps = steps
        self.step = step
        self.resources = resources

    @property
    def shape(self) -> tuple[int, ...]:
        """(steps, resources)."""
        return (self.steps, self.resources)

    def bind(self, system: System) -> Encode:
        """Find out what all there is."""
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
    """Return 1 over amounts, 0 where there is nothing."""
    return np.divide(1.0, amounts, out=np.zeros(amounts.shape), where=amounts > 0)


def checked_machines(encoder: Encoder, system: System, machines: int, resources: int) -> Machines:
    """Return the machines of a run, if they are as many, with as many resources, as an encoder is for."""
    cluster = system.cluster
    if not isinstance(cluster, Machines) or cluster.capacity.shape != (machines, resources):
        raise UsageError(
            f"{encoder!r} needs {machines} machines with {resources} resources, found {cluster!r}"
        )
    return cluster
