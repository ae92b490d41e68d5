"""Partitions: one over the whole cluster beside none, and several that share nothing."""

from __future__ import annotations

import time
from typing import Any


def whole(workload: Any, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload without and with one partition, in turns; returns the seconds and their ratio.

    Raises
    ------
    AssertionError
        The schedules differ.
    """
    from hpcsimkit import Simulation
    from hpcsimkit.cluster.partitions import Partition, Partitions
    from hpcsimkit.experiments.parts.registry import make

    clusters: dict[str, Any] = {
        "none": workload.machine_size,
        "one": Partitions([Partition("all", nodes=workload.machine_size, default=True)]),
    }
    least, hashes = dict.fromkeys(clusters, float("inf")), set()
    for _ in range(repetitions):
        for name, cluster in clusters.items():
            began = time.process_time()
            result = Simulation(workload, make(policy), cluster, simulator="simpy").run()
            least[name] = min(least[name], time.process_time() - began)
            hashes.add(result.hash)
    assert len(hashes) == 1, "one partition over the whole cluster changed the schedule"
    return {"seconds": least["one"], "of_no_partition": least["one"] / least["none"]}


def halves(workload: Any) -> tuple[Any, Any]:
    """Return the jobs that fit half of a cluster, in turns in one of two partitions, and these partitions."""
    from dataclasses import replace

    import numpy as np

    from hpcsimkit.cluster.partitions import Partition, Partitions

    half = workload.machine_size // 2
    fitting = workload.fitting(half)
    columns = {**fitting.columns, "partition": np.arange(len(fitting)) % 2}
    labels = {**fitting.labels, "partition": ("first", "second")}
    cluster = Partitions([Partition(name, nodes=half) for name in labels["partition"]])
    return replace(fitting, columns=columns, labels=labels), cluster
