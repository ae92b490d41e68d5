"""CuSH's encoders: images of the cluster and of the waiting jobs, and the type of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.units import Units
from hpcsimkit.agents.spaces.machine_encoders import checked_machines
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.kinds import KindsInRun

__all__ = ["ClusterImage", "JobKind", "Sketch"]


class Sketch(NamedTuple):
    """A compressed :class:`ClusterImage`, a thirtieth of its size.

    Parameters
    ----------
    busy : array of uint8, shape (..., units)
        Remaining busy time of each unit, in steps; 0 if free, at most the number of rows.
    jobs : array of float32, shape (..., slots, resources + 2)
        Units of each resource, number of steps and channel value of each waiting job; zeros without a job.
    """

    busy: NDArray[np.uint8]
    jobs: NDArray[np.float32]


class ClusterImage(Encoder):
    """An image of the cluster and of each waiting job as channels; a row is one second of the future.

    ======= ======= ================== ========= =======================================================
    channel row     column             range     meaning
    ======= ======= ================== ========= =======================================================
    0       i       unit               0 or 1    1 if the unit is expected to be busy at now + i
    1 + s   i       first units of     >= 0      1 + wait time so far [`wait_unit`] of the job in slot s, in
                    each resource                as many units as it requests and as many rows as it runs,
                                                 by its requested time; 0 elsewhere
    ======= ======= ================== ========= =======================================================

    The units are the CPUs of all nodes, then the GPUs of all nodes, with those of a node side by side. Slots
    hold the jobs that have waited longest, in that order; a job longer than the image fills all rows. The
    expected run time of a running job is its requested time, plus the penalty of its placement in the
    locality model. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.2. The paper uses the wait time without
    the 1, with which a job that has just arrived would look like an empty slot.)

    Parameters
    ----------
    nodes : int
        Number of homogeneous nodes in the cluster: N.
    units : sequence of int
        Number of units per node of each resource.
    slots : int
        Number of visible waiting jobs: Q.
    steps : int
        Number of rows: the horizon T, 2 to 255.
    wait_unit : float
        Unit of wait times [s], > 0.

    Examples
    --------
    On two nodes with 1 CPU and 2 GPUs, one job of 2 s waits for both CPUs and three GPUs:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.cluster.machines import Machines
    >>> columns = {"submit_time": [0], "run_time": [2], "nodes": [1], "cpus": [2], "gpus": [3], "spread": [1]}
    >>> workload = Workload(columns, resources=("cpus", "gpus"))
    >>> policy = Pipeline(order=External(), fitting=True)
    >>> simulation = Simulation(workload, policy, Machines.of(2, cpus=1, gpus=2))
    >>> decision, image = simulation.next_decision(), ClusterImage(2, (1, 2), slots=1, steps=3)
    >>> seen = np.zeros(image.shape, dtype=np.float32)
    >>> image.bind(decision.system)(decision, seen)
    >>> seen[1].tolist()
    [[1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]
    """

    low, high = 0.0, np.inf

    def __init__(
        self, nodes: int, units: Sequence[int], slots: int = 5, steps: int = 5, wait_unit: float = 1.0
    ) -> None:
        self.nodes = nodes
        self.units = units
        self.slots = slots
        self.steps = steps
        self.wait_unit = wait_unit

    @property
    def widths(self) -> list[int]:
        """Number of columns of each resource."""
        return [self.nodes * count for count in self.units]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots + 1, steps, units of the cluster)."""
        return (self.slots + 1, self.steps, sum(self.widths))

    def bind(self, system: System) -> Encode:
        """Start to track a run."""
        sketch = self.sketcher([system])

        def encode(decision: Decision, out: Observation) -> None:
            (busy,), (jobs,) = sketch([0])
            self.draw(Sketch(busy, jobs), out)

        return encode

    def draw(self, sketch: Sketch, out: Observation) -> None:
        """Draw an image into an array of zeros."""
        out[0] = sketch.busy > np.arange(self.steps)[:, None]
        for channel, (*asked, rows, value) in enumerate(sketch.jobs.tolist(), start=1):
            begin = 0
            for units, width in zip(asked, self.widths, strict=True):
                out[channel, : int(rows), begin : begin + int(units)] = value
                begin += width

    def sketcher(self, systems: Sequence[System]) -> Callable[[Sequence[int]], Sketch]:
        """Return a function that sketches parallel runs, given their indices.

        Raises
        ------
        UsageError
            The cluster differs, or `steps` or `wait_unit` is out of range.
        """
        shown, units, nothing = self._shown(systems), Units(systems, self.units), [0, 0] * self.slots

        def sketch(runs: Sequence[int]) -> Sketch:
            seen: list[int] = []  # number and wait time of the job in each slot
            for run in runs:
                first, now = units.first_job[run], systems[run].now
                jobs = systems[run].queue.oldest(self.slots)
                for job in jobs:
                    seen += first + job.index, now - job.submit_time
                seen += nothing[2 * len(jobs) :]
            slots = np.array(seen, dtype=np.int64).reshape(len(runs), self.slots, 2)
            numbers, waited = slots[..., 0], slots[..., 1]
            features = shown.take(numbers, axis=0)
            features[..., -1] = np.where(numbers > 0, 1 + waited / self.wait_unit, 0)
            return Sketch(units.remaining(runs, self.steps), features)

        return sketch

    def _shown(self, systems: Sequence[System]) -> NDArray[np.float32]:
        """Return the constant features of all jobs of all runs, float32, shape (1 + jobs, resources + 2).

        Row 0 stands for no job; the last column is filled with the wait time later.
        """
        rows: list[tuple[int, ...]] = [(0,) * (len(self.units) + 2)]
        for system in systems:
            need = self._checked(system).need
            rows += [(*need(job).totals(), min(job.requested_time, self.steps), 0) for job in system.jobs]
        return np.array(rows, dtype=np.float32)

    def _checked(self, system: System) -> Machines:
        """Return the cluster of a run, after checking that it is the cluster of the image."""
        if not 2 <= self.steps <= 255:
            raise UsageError(f"{self!r}: steps needs a number from 2 to 255, found {self.steps!r}")
        if not self.wait_unit > 0:
            raise UsageError(f"{self!r}: wait_unit needs a number above 0, found {self.wait_unit!r}")
        cluster = checked_machines(self, system, self.nodes, len(self.units))
        if (cluster.capacity != np.array(self.units)).any():
            raise UsageError(f"{self!r} needs nodes with {list(self.units)} units each, found {cluster!r}")
        return cluster


class JobKind(Encoder):
    """One-hot encoding of the type of the job to place; zeros if the type is unknown.

    Parameters
    ----------
    kinds : int
        Number of job types. (CuSH has two, compute-bound and network-bound.)
    application : str, optional
        Column that identifies executions of the same program. With it, types are not read but learned from
        past executions, by :class:`~hpcsimkit.policies.placing.kinds.KindsInRun`.
    """

    low, high = 0.0, 1.0

    def __init__(self, kinds: int = 2, application: str = "") -> None:
        self.kinds = kinds
        self.application = application

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (kinds,)."""
        return (self.kinds,)

    def bind(self, system: System) -> Encode:
        """Prepare to read the job type at each decision, or to learn types from the jobs that end."""
        learned = KindsInRun(system, self.application) if self.application else None

        def encode(decision: Decision, out: Observation) -> None:
            job = decision.job
            assert job is not None
            kind = job.kind if learned is None else learned.kind_of(job)
            if 0 <= kind < self.kinds:
                out[kind] = 1.0

        return encode
