"""What DRAS sees: two rows for each job of the window, and one for each node."""

from __future__ import annotations

import numpy as np

from hpcsimkit.cluster import Nodes
from hpcsimkit.decision import Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.system import System

__all__ = ["JobsAndNodes"]


class JobsAndNodes(Encoder):
    """The jobs of the window, two rows each, then the nodes, those that are free first.

    ============== ======= =========== ==========================================================
    row            column  range       what
    ============== ======= =========== ==========================================================
    2 s            0       >= 0        nodes that the job in slot s asks for [`size_scale`]
    2 s            1       >= 0        its requested time [`time_scale`]
    2 s + 1        0       0 or 1      its priority: 1 for a large job
    2 s + 1        1       >= 0        how long it has waited [`time_scale`]
    2 slots + n    0       0 or 1      node n is free
    2 slots + n    1       >= 0        until it is expected to be free [`time_scale`]; 0 if it is
    ============== ======= =========== ==========================================================

    Slots without a job hold zeros. With scales of 1 it is raw, as published: thousands of nodes, tens of
    thousands of seconds. Nodes are alike, and stand in the order in which they are expected to be free: in
    the published code the row of a node is its number, and which node a job gets is of no importance to
    anybody else. (Fan et al., TPDS 2022, section 3.1.)

    Parameters
    ----------
    slots : int
        Jobs of the window: W.
    nodes : int
        Nodes of the cluster: N.
    size_scale : float
        Nodes that count as one.
    time_scale : float
        Seconds that count as one.
    large : float, optional
        A job that asks for this share of the nodes, or more, has priority; by default nobody has. (The
        paper does not say who has; in the logs of its code it is who asks for a fifth.)

    Examples
    --------
    Two of four nodes are free, the others are expected to be in 90 s; a job that asks for 3 has the seat's
    only slot that is taken.

    >>> from hpcsimkit import External, Simulation, Workload
    >>> from hpcsimkit.policies.two_level import TwoLevel
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
        self, slots: int, nodes: int, size_scale: float = 1.0, time_scale: float = 1.0,
        large: float | None = 0.2,
    ) -> None:  # fmt: skip
        self.slots = slots
        self.nodes = nodes
        self.size_scale = size_scale
        self.time_scale = time_scale
        self.large = large

    @property
    def shape(self) -> tuple[int, ...]:
        """(2 slots + nodes, 2)."""
        return (2 * self.slots + self.nodes, 2)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run.

        Raises
        ------
        UsageError
            The cluster has no counted nodes, or another number of them.
        """
        cluster, slots, nodes = system.cluster, self.slots, self.nodes
        if not isinstance(cluster, Nodes) or cluster.size != nodes:
            raise UsageError(f"{self!r} needs {nodes} counted nodes, found {cluster!r}")
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
            for end, _, width in running.by_expected_end():
                ends.append(end)
                widths.append(width)
            if ends:
                until = np.repeat(np.array(ends) - system.now, widths)
                of_nodes[system.free :, 1] = np.maximum(until, 0) * scale

        return encode
