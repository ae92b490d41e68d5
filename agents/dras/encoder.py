"""DRAS's encoder: two rows per job of the window, and one row per node."""

from __future__ import annotations

import numpy as np

from hpcsimkit.agents.ranges import Positive
from hpcsimkit.cluster.base import Nodes
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["JobsAndNodes"]


class JobsAndNodes(Encoder):
    """The jobs of the window, two rows each, then the nodes, free ones first.

    ============== ======= =========== ==========================================================
    row            column  range       meaning
    ============== ======= =========== ==========================================================
    2 s            0       >= 0        nodes requested by the job in slot s [`size_scale`]
    2 s            1       >= 0        its requested time [`time_scale`]
    2 s + 1        0       0 or 1      its priority: 1 for a large job
    2 s + 1        1       >= 0        its wait time so far [`time_scale`]
    2 slots + n    0       0 or 1      1 if node n is free
    2 slots + n    1       >= 0        time until node n is expected to be free [`time_scale`]; 0 if free
    ============== ======= =========== ==========================================================

    Slots without a job are zero. With scales of 1 the values are raw, as published: thousands of nodes, tens
    of thousands of seconds. Nodes are homogeneous, and sorted by the time at which they are expected to be
    free. In the published code a node's row is its number; the choice of nodes for a job has no effect on any
    other job. (Fan et al., TPDS 2022, section 3.1.)

    Parameters
    ----------
    slots : int
        Number of jobs in the window: W.
    nodes : int
        Number of nodes in the cluster: N.
    size_scale : float
        Unit of job sizes [nodes].
    time_scale : float
        Unit of time [s].
    large : float, optional
        Minimum share of the nodes requested by a job with priority; with None no job has priority. (The
        paper does not define priority; in the logs of its code the threshold is a fifth.)

    Examples
    --------
    Two of four nodes are free, the others are expected to be free in 90 s; one of the two slots is taken, by
    a job that requests 3 nodes.

    >>> from hpcsimkit import External, Simulation, Workload
    >>> from hpcsimkit.policies.one_seat.two_level import TwoLevel
    >>> columns = {"submit_time": [0, 10], "run_time": [100, 50], "nodes": [2, 3]}
    >>> simulation = Simulation(Workload(columns, machine_size=4), TwoLevel(External(), window=2))
    >>> simulation.next_decision(); simulation.answer_position(0)
    Decision('two-level', t=0 s, 1 options)
    >>> decision, seen = simulation.next_decision(), np.zeros((8, 2), dtype=np.float32)
    >>> JobsAndNodes(2, 4, large=0.5).bind(simulation.system)(decision, seen)
    >>> seen.tolist()
    [[3.0, 50.0], [1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 90.0], [0.0, 90.0]]
    """

    low, high = 0.0, np.inf

    def __init__(
        self,
        slots: int,
        nodes: int,
        size_scale: Positive = 1.0,
        time_scale: Positive = 1.0,
        large: float | None = 0.2,
    ) -> None:
        self.slots = slots
        self.nodes = nodes
        self.size_scale = size_scale
        self.time_scale = time_scale
        self.large = large

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (2 slots + nodes, 2)."""
        return (2 * self.slots + self.nodes, 2)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run.

        Raises
        ------
        UsageError
            The cluster does not have the expected number of homogeneous nodes.
        """
        cluster, slots, nodes = system.cluster, self.slots, self.nodes
        if not isinstance(cluster, Nodes) or cluster.size != nodes:
            raise UsageError(f"{self!r} needs {nodes} homogeneous nodes, found {cluster!r}")
        sizes = np.array([cluster.asked(job) for job in system.jobs])
        known = np.empty((len(sizes), 3), dtype=np.float32)
        known[:, 0] = sizes / self.size_scale
        known[:, 1] = system.workload.requested_time / self.time_scale
        known[:, 2] = 0 if self.large is None else sizes >= self.large * nodes
        submitted, running, scale = system.column("submit_time"), system.running, 1 / self.time_scale

        def encode(decision: Decision, out: Observation) -> None:
            jobs = decision.options
            rows = np.fromiter((job.index for job in jobs[:slots] if job is not None), dtype=np.intp)
            of_jobs = out[: 2 * len(rows)].reshape(len(rows), 4)
            of_jobs[:, :3] = known.take(rows, axis=0)
            of_jobs[:, 3] = (system.now - submitted.take(rows)) * scale
            of_nodes = out[2 * slots :]
            of_nodes[: system.free, 0] = 1.0
            ends, widths = [], []
            for end, _, width in running.entries:
                ends.append(end)
                widths.append(width)
            if ends:
                until = np.repeat(np.array(ends) - system.now, widths)
                of_nodes[system.free :, 1] = np.maximum(until, 0) * scale

        return encode
