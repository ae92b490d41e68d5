"""The built-in workload, which is simulated by default."""

from __future__ import annotations

import numpy as np

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.models.estimates import with_estimates
from hpcsimkit.workloads.models.lublin import LublinModel

__all__ = ["default_workload"]


def default_workload(
    rng: np.random.Generator, *, jobs: int = 5000, nodes: int = 256, load: float = 0.9
) -> Workload:
    """Return a workload of the Lublin-Feitelson model with modelled estimates.

    The default offered load of 0.9 is close to the model's own load on 256 nodes (0.88 in the long run, 0.80
    to 0.95 over 5 000 jobs): queues form, so that policies differ, and drain again, so that the system is
    stable.

    >>> w = default_workload(np.random.default_rng(1), jobs=500)
    >>> len(w), round(w.offered_load(), 2), bool((w.requested_time >= w.run_time).all())
    (500, 0.9, True)
    """
    return with_estimates(LublinModel(nodes=nodes, load=load).generate(jobs, rng), rng)
