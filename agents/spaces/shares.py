"""Job sizes as shares of the machine: code shared by the encoders of the DIR-LAB systems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.kernel.system import System

HALF_A_DAY = 12 * 3600
"""Unit of wait times [s]."""

NEARLY_ONE = 1 - 1e-5
"""Maximum of most features."""


def shares_of(system: System) -> NDArray[np.float64]:
    """Return the size of each job as a share of the machine, float64, shape (jobs,).

    Where jobs take whole nodes with several processors each, the processors count.
    """
    workload, cluster = system.workload, system.cluster
    processors = workload.header.get("MaxProcs")
    if isinstance(cluster, Nodes) and "cpus" in workload.resources and processors:
        return workload.size / int(processors)
    asked: Sequence[int] = [cluster.asked(job) for job in system.jobs]
    return np.array(asked, dtype=np.float64) / cluster.size
