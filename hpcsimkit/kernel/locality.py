"""Locality by job type: packing favours compute-bound jobs, spreading favours network-bound jobs."""

from __future__ import annotations

import math

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.service_time import ServiceTime

__all__ = ["BREADTH", "COMPUTE_BOUND", "DEPTH", "LOCALITIES", "NETWORK_BOUND", "KindLocality"]

COMPUTE_BOUND, NETWORK_BOUND = 0, 1
"""Job types: compute-bound, such as dgemm, and network-bound, such as daxpy."""

DEPTH, BREADTH = "depth", "breadth"
"""Styles of an allocation: pack (depth-first, as few machines as possible) and spread (breadth-first)."""

PROCESSORS = ("cpus", "gpus")
"""Resources that communicate."""


class KindLocality(ServiceTime):
    """Penalties of CuSH's two job types, linear in the job's time and in its size.

    The penalty is ``kappa x seconds x size`` if the style of the allocation does not suit the job type,
    otherwise zero. The size is the larger of the job's shares of the cluster's CPUs and GPUs; memory, which
    does not communicate, does not count.

    The paper (Domeniconi et al., CuSH, DRL4KDD 2019, section 3.1) shows that such penalties exist and which
    style each job type prefers, but gives no numbers. Those of :data:`LOCALITIES` were fitted to the
    heuristics' rows of its table 1.

    Parameters
    ----------
    compute_spread : float
        Penalty factor kappa of compute-bound jobs (type 0) placed breadth-first, >= 0.
    network_crowded : float
        Penalty factor kappa of network-bound jobs (type 1) placed depth-first, >= 0.
    nodes : int, optional
        Number of nodes of the reference cluster. If given, the size is the minimum number of nodes that can
        hold the job, divided by this number, irrespective of the size of the cluster (for clusters of other
        sizes than CuSH's 128 nodes).

    Examples
    --------
    >>> from hpcsimkit.jobs.job import Request
    >>> cluster = Machines.of(2, cpus=2, gpus=4)
    >>> job = Job(0, 1, 0, 10, 10, 1, request=Request(("cpus", "gpus"), (2, 0), spread=True), kind=1)
    >>> crowded, spread = Allocation([0], [[2, 0]], DEPTH), Allocation([0, 1], [[1, 0], [1, 0]], BREADTH)
    >>> model = KindLocality(compute_spread=0.1, network_crowded=2.0)
    >>> model.actual(job, crowded, cluster), model.actual(job, spread, cluster)
    (20, 10)
    """

    def __init__(self, compute_spread: float, network_crowded: float, nodes: int | None = None) -> None:
        self.compute_spread = compute_spread
        self.network_crowded = network_crowded
        self.nodes = nodes

    def penalty(self, job: Job, seconds: int, allocation: Allocation, cluster: AnyCluster) -> float:
        """Return the penalty [s]; zero for other job types."""
        if job.kind not in (COMPUTE_BOUND, NETWORK_BOUND):
            return 0.0
        if not isinstance(cluster, Machines):
            raise UsageError(f"{self!r} needs machines, found {cluster!r}")
        style = allocation.style or _style(job, allocation, cluster)
        if job.kind == COMPUTE_BOUND:
            return self.compute_spread * seconds * self._size(job, cluster) if style == BREADTH else 0.0
        return self.network_crowded * seconds * self._size(job, cluster) if style == DEPTH else 0.0

    def _size(self, job: Job, cluster: Machines) -> float:
        return _share(job, cluster) if self.nodes is None else _fewest(job, cluster) / self.nodes


def _share(job: Job, cluster: Machines) -> float:
    """Return the larger of the job's shares of the cluster's CPUs and GPUs."""
    each = zip(cluster.resources, cluster.need(job).totals(), cluster.totals, strict=True)
    return max((asked / there for name, asked, there in each if name in PROCESSORS and there), default=0.0)


def _fewest(job: Job, cluster: Machines) -> int:
    """Return the minimum number of the largest machines on which a job could run."""
    need = cluster.need(job)
    if not need.spread:
        return need.nodes
    most = need.shape.largest.tolist()
    return max(math.ceil(amount / has) for amount, has in zip(need.totals(), most, strict=True)) or 1


def _style(job: Job, allocation: Allocation, cluster: Machines) -> str:
    """Classify an allocation without a style by comparing its number of machines with the extremes."""
    asked = dict(zip(cluster.resources, cluster.need(job).totals(), strict=True))
    asked.pop("memory", None)  # every machine could contribute a single byte
    fewest, most = _fewest(job, cluster), min(len(cluster), max(sum(asked.values()), 1))
    return DEPTH if len(allocation.machines) <= (fewest + most) / 2 else BREADTH


LOCALITIES = {
    "sierra": KindLocality(compute_spread=0.1, network_crowded=2.0),
    "summit": KindLocality(compute_spread=1.0, network_crowded=1.7),
}
"""Calibrated penalties of CuSH's two clusters: nodes with 2 CPUs and 4 GPUs, and with 2 CPUs and 6 GPUs."""
