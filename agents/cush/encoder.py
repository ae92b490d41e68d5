"""What CuSH sees: pictures of the cluster and of the waiting jobs, and the kind of work of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.units import Units
from hpcsimkit.agents.machine_encoders import checked_machines
from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.machines import Machines
from hpcsimkit.policies.kinds import KindsInRun
from hpcsimkit.system import System

__all__ = ["ClusterImage", "JobKind", "Sketch"]


class Sketch(NamedTuple):
    """All that is in a :class:`ClusterImage`, in a thirtieth of the room.

    Parameters
    ----------
    busy : array of uint8, shape (..., units)
        For how many steps each unit is still busy; 0 if it is free, as many as the picture has at most.
    jobs : array of float32, shape (..., slots, resources + 2)
        Of each waiting job: units of each resource, steps, and what its channel shows; zeros without a job.
    """

    busy: NDArray[np.uint8]
    jobs: NDArray[np.float32]


class ClusterImage(Encoder):
    """A picture of the cluster, and one of each waiting job, one upon the other; a row is a second to come.

    ======= ======= ================== ========= =======================================================
    channel row     column             range     what
    ======= ======= ================== ========= =======================================================
    0       i       unit               0 or 1    the unit is busy at now + i, as far as can be expected
    1 + s   i       the first units    >= 0      the job in slot s asks for that many, for longer than i:
                    of each resource             there stands 1 and its waiting time so far, of which
                                                 `wait_unit` seconds count as one
    ======= ======= ================== ========= =======================================================

    The units are the CPUs of all nodes, then the GPUs of all nodes, those of a node side by side. Jobs in
    slots are those that have waited longest, in that order; a job that takes longer than the picture shows
    fills its rows. A running job is expected to take what it requested, and what the locality model adds for
    its placement. (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.2. There the waiting time alone stands in
    place of 1: a job that has just arrived would look like an empty slot.)

    Parameters
    ----------
    nodes : int
        Of the cluster, all alike: N.
    units : sequence of int
        Units that a node has of each resource.
    slots : int
        Waiting jobs that are seen: Q.
    steps : int
        Rows: the horizon T, 2 to 255.
    wait_unit : float
        Seconds of waiting that count as one, > 0.

    Examples
    --------
    On two nodes with 1 CPU and 2 GPUs, one job waits for both CPUs and three GPUs, for 2 s:

    >>> from hpcsimkit import External, Pipeline, Simulation, Workload
    >>> from hpcsimkit.machines import Machines
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
        """Columns of each resource."""
        return [self.nodes * count for count in self.units]

    @property
    def shape(self) -> tuple[int, ...]:
        """(slots + 1, steps, units of the cluster)."""
        return (self.slots + 1, self.steps, sum(self.widths))

    def bind(self, system: System) -> Encode:
        """Begin to follow a run."""
        sketch = self.sketcher([system])

        def encode(decision: Decision, out: Observation) -> None:
            (busy,), (jobs,) = sketch([0])
            self.draw(Sketch(busy, jobs), out)

        return encode

    def draw(self, sketch: Sketch, out: Observation) -> None:
        """Draw a picture into an array of zeros."""
        out[0] = sketch.busy > np.arange(self.steps)[:, None]
        for channel, (*asked, rows, value) in enumerate(sketch.jobs.tolist(), start=1):
            begin = 0
            for units, width in zip(asked, self.widths, strict=True):
                out[channel, : int(rows), begin : begin + int(units)] = value
                begin += width

    def sketcher(self, systems: Sequence[System]) -> Callable[[Sequence[int]], Sketch]:
        """Return what sketches runs that go on side by side: called with numbers of runs, it sketches these.

        Raises
        ------
        UsageError
            The cluster is another one; or `steps` or `wait_unit` is out of its range.
        """
        shown, units = self._shown(systems), Units(systems, self.units)

        def waiting(run: int) -> list[tuple[int, int]]:
            """Return number and waiting time of the job in each slot."""
            first, now = units.first_job[run], systems[run].now
            jobs = systems[run].queue.oldest(self.slots)
            seen = [(first + job.index, now - job.submit_time) for job in jobs]
            return seen + [(0, 0)] * (self.slots - len(seen))

        def sketch(runs: Sequence[int]) -> Sketch:
            slots = np.array([*map(waiting, runs)], dtype=np.int64).reshape(len(runs), self.slots, 2)
            numbers, waited = slots[..., 0], slots[..., 1]
            jobs = shown.take(numbers, axis=0)
            jobs[..., -1] = np.where(numbers > 0, 1 + waited / self.wait_unit, 0)
            return Sketch(units.remaining(runs, self.steps), jobs)

        return sketch

    def _shown(self, systems: Sequence[System]) -> NDArray[np.float32]:
        """Return what never changes of all jobs of all runs, float32, shape (1 + jobs, resources + 2).

        Number 0 is no job; the last column is that of the waiting time.
        """
        rows: list[tuple[int, ...]] = [(0,) * (len(self.units) + 2)]
        for system in systems:
            need = self._checked(system).need
            rows += [(*need(job).totals(), min(job.requested_time, self.steps), 0) for job in system.jobs]
        return np.array(rows, dtype=np.float32)

    def _checked(self, system: System) -> Machines:
        """Return the cluster of a run, if it is that of the picture."""
        if not 2 <= self.steps <= 255:
            raise UsageError(f"{self!r}: steps needs a number from 2 to 255, found {self.steps!r}")
        if not self.wait_unit > 0:
            raise UsageError(f"{self!r}: wait_unit needs a number above 0, found {self.wait_unit!r}")
        cluster = checked_machines(self, system, self.nodes, len(self.units))
        if (cluster.capacity != np.array(self.units)).any():
            raise UsageError(f"{self!r} needs nodes with {list(self.units)} units each, found {cluster!r}")
        return cluster


class JobKind(Encoder):
    """The kind of work of the job that is to be placed: 1 in its own column, zeros where it is not known.

    Parameters
    ----------
    kinds : int
        How many there are. (CuSH has two, compute-bound and network-bound.)
    application : str, optional
        The column that says which jobs are executions of the same program: then kinds are not read, but
        learned from what executions took, by :class:`~hpcsimkit.policies.kinds.KindsInRun`.
    """

    low, high = 0.0, 1.0

    def __init__(self, kinds: int = 2, application: str = "") -> None:
        self.kinds = kinds
        self.application = application

    @property
    def shape(self) -> tuple[int, ...]:
        """(kinds,)."""
        return (self.kinds,)

    def bind(self, system: System) -> Encode:
        """Look at the job of each decision, or begin to learn from those that end."""
        learned = KindsInRun(system, self.application) if self.application else None

        def encode(decision: Decision, out: Observation) -> None:
            job = decision.job
            assert job is not None
            kind = job.kind if learned is None else learned.kind_of(job)
            if 0 <= kind < self.kinds:
                out[kind] = 1.0

        return encode
