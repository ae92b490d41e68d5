"""Encoders: decisions as observation arrays."""

from __future__ import annotations

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.agents.spaces.fitting import fit_each
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.dispatch import PairDecision

__all__ = ["QueueWindow", "RequestsAndMachines"]


class QueueWindow(Encoder):
    """Job features, one row per option, and the state of the machine in a last row.

    ====== =========== ================= ======================================
    row    column      range             meaning
    ====== =========== ================= ======================================
    job    0           0 or 1            1 if the row holds a job
    job    1           >= 0              requested time [`time_scale`]
    job    2           0 to 1            nodes (or CPUs), share of the machine
    job    3           >= 0              wait time so far [`time_scale`]
    job    4           0 or 1            1 if the job fits now
    last   0           0 to 1            free share of the machine
    last   1           >= 0              waiting jobs, divided by `slots`
    last   2           >= 0              running jobs, divided by `slots`
    last   3, 4        0                 unused
    ====== =========== ================= ======================================

    Parameters
    ----------
    slots : int
        Number of job rows; the first `slots` options of a decision are encoded.
    time_scale : float
        Unit of time [s].
    """

    low, high = 0.0, np.inf
    reads_compiled = True

    def __init__(self, slots: int, time_scale: Positive = 86_400.0) -> None:
        self.slots = slots
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots + 1, 5)."""
        return (self.slots + 1, 5)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        cluster, slots, scale = system.cluster, self.slots, float(np.float32(1 / self.time_scale))
        known = np.ones((len(system.jobs), 5))
        known[:, 1] = system.workload.requested_time * scale
        known[:, 2] = [cluster.asked(job) / cluster.size for job in system.jobs]
        known[:, 3] = -system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            rows, free = decision.rows[:slots], system.free
            of_jobs = known.take(rows, axis=0)
            waits = of_jobs[:, 3]
            waits += system.now
            waits *= scale
            of_jobs[:, 4] = fit_each(decision.options[: len(rows)], system)
            out[: len(rows)] = of_jobs
            of_machine = out[slots]
            of_machine[0] = cluster.share(free)
            of_machine[1] = len(system.queue) / slots
            of_machine[2] = len(system.running) / slots

        return encode


class RequestsAndMachines(Encoder):
    """Requests of the jobs that can start, and free resources of each machine; raw values, as published.

    ============================ ============== ===============================================
    position                     range          meaning
    ============================ ============== ===============================================
    4 s                          >= 0           requested memory of the job in slot s [kB]
    4 s + 1                      >= 0           requested CPUs
    4 s + 2                      >= 0           requested GPUs
    4 s + 3                      >= 0           requested time [s]
    4 slots + 3 m                >= 0           free memory of machine m [kB]
    4 slots + 3 m + 1            >= 0           free CPUs
    4 slots + 3 m + 2            >= 0           free GPUs
    ============================ ============== ===============================================

    There is no wait time and no queue length, and nothing is normalised: values range from single digits to
    1e9. (Published code of the masked-PPO scheduler; figure 2 of the paper shows three features per
    job.)

    Parameters
    ----------
    slots : int
        Number of job slots.
    machines : int
        Number of machines in the cluster.
    """

    low, high = 0.0, np.inf
    reads_compiled = True

    def __init__(self, slots: int, machines: int) -> None:
        self.slots = slots
        self.machines = machines

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (4 slots + 3 machines,)."""
        return (4 * self.slots + 3 * self.machines,)

    def bind(self, system: System) -> Encode:
        """Look up the resource columns of the cluster."""
        cluster = system.cluster
        if not isinstance(cluster, Machines) or len(cluster) != self.machines:
            raise UsageError(f"{self!r} needs {self.machines} machines, found {cluster!r}")
        columns, scale = np.array(_columns(cluster)), np.array([1000, 1, 1])
        needs = [cluster.size_of(job) for job in system.jobs]
        known = np.empty((len(needs), 4), dtype=np.float32)
        known[:, :3] = cluster.needs.amounts[needs][:, columns] / scale
        known[:, 3] = system.workload.requested_time
        of_machines = 4 * self.slots

        def encode(decision: Decision, out: Observation) -> None:
            assert isinstance(decision, PairDecision)
            of_jobs = known.take(decision.rows, axis=0).ravel()
            out[: len(of_jobs)] = of_jobs
            out[of_machines:] = (system.free.take(columns, axis=1) / scale).ravel()

        return encode


def _columns(cluster: Machines) -> list[int]:
    """Return the indices of memory, CPUs and GPUs among the resources of a cluster."""
    names = list(cluster.resources)
    missing = [name for name in ("memory", "cpus", "gpus") if name not in names]
    if missing:
        raise UsageError(f"memory, cpus and gpus are needed on {cluster!r}, missing: {', '.join(missing)}")
    return [names.index(name) for name in ("memory", "cpus", "gpus")]
