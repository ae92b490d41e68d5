"""What learners see: decisions as arrays."""

from __future__ import annotations

import numpy as np

from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.machines import Machines
from hpcsimkit.policies.dispatch import PairDecision
from hpcsimkit.system import System

__all__ = ["QueueWindow", "RequestsAndMachines"]


class QueueWindow(Encoder):
    """The jobs to choose from, a row each, and the state of the machine in a last row.

    ====== =========== ================= ======================================
    row    column      range             what
    ====== =========== ================= ======================================
    job    0           0 or 1            there is a job
    job    1           >= 0              requested time [`time_scale`]
    job    2           0 to 1            nodes (or CPUs), share of the machine
    job    3           >= 0              waited so far [`time_scale`]
    job    4           0 or 1            fits now
    last   0           0 to 1            share of the machine that is free
    last   1           >= 0              jobs that wait, of `slots`
    last   2           >= 0              jobs that run, of `slots`
    last   3, 4        0
    ====== =========== ================= ======================================

    Parameters
    ----------
    slots : int
        Rows for jobs: the first so many options of the decision.
    time_scale : float
        Seconds that count as one.
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int, time_scale: float = 86_400.0) -> None:
        self.slots = slots
        self.time_scale = time_scale

    @property
    def shape(self) -> tuple[int, ...]:
        """(slots + 1, 5)."""
        return (self.slots + 1, 5)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run."""
        cluster, slots, scale = system.cluster, self.slots, np.float32(1 / self.time_scale)
        known = np.ones((len(system.jobs), 3), dtype=np.float32)
        known[:, 1] = system.workload.requested_time * scale
        known[:, 2] = [cluster.asked(job) / cluster.size for job in system.jobs]
        submitted = system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            jobs = decision.options
            if jobs[-1] is None or len(jobs) > slots:
                jobs = [job for job in jobs[:slots] if job is not None]
            rows = np.array([job.index for job in jobs], dtype=np.intp)
            of_jobs = out[: len(rows)]
            of_jobs[:, :3] = known.take(rows, axis=0)
            of_jobs[:, 3] = (system.now - submitted.take(rows)) * scale
            of_jobs[:, 4] = cluster.fit_each(jobs, system.free)
            out[slots, :3] = (
                cluster.share(system.free),
                len(system.queue) / slots,
                len(system.running) / slots,
            )

        return encode


class RequestsAndMachines(Encoder):
    """What is asked for by the jobs that can start, and what each machine has left: raw, as published.

    ============================ ============== ===============================================
    position                     range          what
    ============================ ============== ===============================================
    4 s                          >= 0           memory that the job in slot s asks for [kB]
    4 s + 1                      >= 0           CPUs
    4 s + 2                      >= 0           GPUs
    4 s + 3                      >= 0           requested time [s]
    4 slots + 3 m                >= 0           memory left on machine m [kB]
    4 slots + 3 m + 1            >= 0           CPUs left
    4 slots + 3 m + 2            >= 0           GPUs left
    ============================ ============== ===============================================

    No waiting time, no queue length, nothing normalised: up to 1e9 beside single digits. (Masked-PPO
    scheduler, its published code; the paper's figure 2 shows three features a job.)

    Parameters
    ----------
    slots : int
        Slots for jobs.
    machines : int
        Machines of the cluster.
    """

    low, high = 0.0, np.inf

    def __init__(self, slots: int, machines: int) -> None:
        self.slots = slots
        self.machines = machines

    @property
    def shape(self) -> tuple[int, ...]:
        """(4 slots + 3 machines,)."""
        return (4 * self.slots + 3 * self.machines,)

    def bind(self, system: System) -> Encode:
        """Find the columns of the cluster."""
        cluster = system.cluster
        if not isinstance(cluster, Machines) or len(cluster) != self.machines:
            raise UsageError(f"{self!r} needs {self.machines} machines, found {cluster!r}")
        columns, scale = _columns(cluster), np.array([1000, 1, 1])
        requested = system.workload.requested_time

        def encode(decision: Decision, out: Observation) -> None:
            assert isinstance(decision, PairDecision)
            rows = [job.index for job in decision.jobs]
            of_jobs = out[: 4 * self.slots].reshape(self.slots, 4)[: len(rows)]
            of_jobs[:, :3] = cluster.needs.amounts[decision.numbers][:, columns] / scale
            of_jobs[:, 3] = requested[rows]
            out[4 * self.slots :].reshape(self.machines, 3)[:] = system.free[:, columns] / scale

        return encode


def _columns(cluster: Machines) -> list[int]:
    """Return where a cluster has memory, CPUs and GPUs."""
    names = list(cluster.resources)
    missing = [name for name in ("memory", "cpus", "gpus") if name not in names]
    if missing:
        raise UsageError(f"memory, cpus and gpus are needed on {cluster!r}, missing: {', '.join(missing)}")
    return [names.index(name) for name in ("memory", "cpus", "gpus")]
