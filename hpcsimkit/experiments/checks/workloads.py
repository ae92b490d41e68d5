"""Small random workloads full of corner cases, to check parts on, and changes of what a part may not know."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.result import Result


def machines_of_three_types() -> Machines:
    """Return heterogeneous machines, shared by jobs that request CPUs, GPUs and memory."""
    plain = Machines.of(3, cpus=8, memory="64 B")
    return plain + Machines.of(2, "gpu", cpus=4, gpus=2, memory="32 B") + Machines.of(1, "large", cpus=16)


def random_workloads(
    rng: np.random.Generator, jobs: int = 60, *, cluster: AnyCluster | int | None = None, shared: bool = False
) -> list[Workload]:
    """Return small workloads full of corner cases.

    They cover machines of 1 to 64 nodes, light to extreme loads, simultaneous arrivals, zero-length jobs,
    jobs as large as the machine, and jobs that run longer, shorter and exactly as long as requested. On a
    cluster of machines, they also cover multi-machine, exclusive and pooled requests, unless `shared` is
    True: then each job shares one machine.

    >>> [w.machine_size for w in random_workloads(np.random.default_rng(0))]
    [1, 2, 4, 7, 16, 16, 64, 64]
    """
    if isinstance(cluster, Machines):
        return [_requests_of(rng, jobs, cluster, load, shared=shared) for load in (0.5, 1.0, 3.0, 50.0)]
    if cluster is not None:
        size = cluster if isinstance(cluster, int) else cluster.size
        return [_random_workload(rng, jobs, size, load) for load in (0.5, 1.0, 3.0, 50.0)]
    machines = [(1, 0.8), (2, 2.0), (4, 1.0), (7, 1.5), (16, 0.5), (16, 50.0), (64, 1.0), (64, 3.0)]
    return [_random_workload(rng, jobs, nodes, load) for nodes, load in machines]


def _random_workload(rng: np.random.Generator, jobs: int, machine_size: int, load: float) -> Workload:
    nodes = np.ceil(machine_size ** rng.uniform(0, 1.05, jobs)).clip(1, machine_size).astype(np.int64)
    run_time = rng.integers(0, 100, jobs) * rng.integers(0, 2, jobs) + rng.integers(0, 5, jobs)
    requested = np.maximum(1, run_time + rng.choice([-10, -1, 0, 0, 1, 20, 200], jobs))
    gap = np.dot(run_time, nodes) / (jobs * machine_size * load)
    gaps = rng.exponential(2 * gap, jobs) * rng.integers(0, 2, jobs)
    columns = {
        "submit_time": np.cumsum(gaps).astype(np.int64),
        "run_time": run_time,
        "requested_time": requested,
        "nodes": nodes,
        "user": rng.integers(0, 5, jobs),
    }
    return Workload(columns, machine_size=machine_size, name=f"random, {machine_size} nodes, load {load:g}")


def _requests_of(
    rng: np.random.Generator, jobs: int, cluster: Machines, load: float, *, shared: bool
) -> Workload:
    """Return requests of all forms that fit the cluster; with `shared`, for a share of one machine each."""
    plain = _random_workload(rng, jobs, cluster.size, load)
    spread, exclusive = (rng.integers(0, 4, jobs) == 0).astype(np.int64), rng.integers(0, 8, jobs) == 0
    columns = {**plain.columns, "nodes": rng.choice([1, 1, 1, 2, 3], jobs), "spread": spread}
    columns["exclusive"] = exclusive.astype(np.int64)
    if shared:
        columns |= {"nodes": np.ones(jobs), "spread": np.zeros(jobs), "exclusive": np.zeros(jobs)}
    for k, name in enumerate(cluster.resources):
        column = cluster.capacity[:, k]
        most = np.where(spread == 1, column.sum(), column.max())
        columns[name] = np.ceil(most ** rng.uniform(0, 1, jobs)).astype(np.int64) * rng.integers(0, 2, jobs)
    columns[cluster.unit] = np.maximum(columns[cluster.unit], 1)
    name = f"random, on {cluster!r}, load {load:g}"
    workload = Workload(columns, name=name, resources=tuple(cluster.resources))
    return workload.select(~cluster.misfits(workload))


def with_other_ends(
    workload: Workload, result: Result, at: int, rng: np.random.Generator
) -> tuple[Workload, NDArray[np.int64]]:
    """Return the workload with other run times of the jobs that end after an instant [s], and their rows."""
    rows = np.flatnonzero((result.end_time > at) | ~result.finished)
    started = result.start_time[rows]
    runs = (started >= 0) & (started <= at)
    run_time = workload.run_time.copy()
    least = np.maximum(np.where(runs, at - started + 1, 0), _tested_by(result, at)[rows])
    run_time[rows] = least + rng.integers(0, 200, len(rows))
    return replace(workload, columns={**workload.columns, "run_time": run_time}), rows


def _tested_by(result: Result, at: int) -> NDArray[np.int64]:
    """Return the run time that each job at least has, as its stopped tests show by an instant [s]; else 0."""
    least, attempts = np.zeros(len(result), dtype=np.int64), result.attempts
    if attempts is not None:
        seen = (attempts.outcome == Outcome.TESTED) & (attempts.start_time <= at)
        took = np.minimum(attempts.end_time, at)[seen] - attempts.start_time[seen]
        np.maximum.at(least, attempts.job[seen], took + 1)
    return least
