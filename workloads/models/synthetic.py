"""Small synthetic workloads: Poisson arrivals for validation, and bursts for stress tests."""

from __future__ import annotations

import numpy as np

from hpcsimkit.errors import WorkloadError
from hpcsimkit.jobs.workload import Workload

__all__ = ["burst", "poisson"]


def poisson(
    jobs: int,
    rng: np.random.Generator,
    *,
    servers: int = 1,
    load: float = 0.8,
    mean_service: float = 100_000.0,
    variation: float = 1.0,
) -> Workload:
    """Return one-node jobs with Poisson arrivals, for which queueing theory gives the mean wait.

    With ``variation=1`` the system is M/M/c (Erlang C). With ``servers=1`` it is M/G/1, with the mean wait of
    the Pollaczek-Khinchine formula: ``load / (1 - load) * (1 + variation) / 2 * mean_service``. Times are
    rounded to whole seconds, so the mean service time should be long.

    Parameters
    ----------
    jobs : int
        Number of jobs, >= 1.
    rng : numpy.random.Generator
        Random number generator.
    servers : int
        Number of nodes of the machine, >= 1.
    load : float
        Offered load, > 0; below 1 the queue has a steady state.
    mean_service : float
        Mean run time [s], > 0.
    variation : float
        Squared coefficient of variation of the run times, >= 0: 0 for constant, 1 for exponential, otherwise
        gamma-distributed run times.

    Examples
    --------
    >>> w = poisson(10_000, np.random.default_rng(1), servers=4, load=0.5)
    >>> w.machine_size, round(w.offered_load(), 2), set(w.nodes.tolist())
    (4, 0.5, {1})
    """
    if jobs < 1 or servers < 1 or not load > 0 or not mean_service > 0 or not variation >= 0:
        raise WorkloadError(
            "poisson needs jobs, servers, load and mean_service above 0 and variation from 0 on, "
            f"found {jobs}, {servers}, {load}, {mean_service}, {variation}"
        )
    submit = np.cumsum(rng.exponential(mean_service / (servers * load), jobs))
    service = np.full(jobs, mean_service)
    if variation:
        service = rng.gamma(1 / variation, mean_service * variation, jobs)
    return Workload(
        {
            "submit_time": np.rint(submit),
            "run_time": np.rint(service),
            "nodes": np.ones(jobs, dtype=np.int64),
        },
        machine_size=servers,
        name=f"poisson-{servers}",
        provenance=(
            f"Poisson arrivals: {jobs} jobs, {servers} servers, load {load:g}, variation {variation:g}",
        ),
    )


def burst(
    jobs: int,
    rng: np.random.Generator,
    *,
    machine_size: int = 256,
    max_run_time: int = 86_400,
) -> Workload:
    """Return jobs that are all submitted at time 0, for the longest possible queue.

    Sizes (1 to `machine_size`) and run times (1 s to `max_run_time`) are uniform on a logarithmic scale;
    requested times are one to four times the run time.

    >>> w = burst(500, np.random.default_rng(1))
    >>> w.span, bool((w.requested_time >= w.run_time).all()), bool(w.nodes.max() <= 256)
    (0, True, True)
    """
    if jobs < 1 or machine_size < 1 or max_run_time < 1:
        raise WorkloadError(
            "burst needs jobs, machine_size and max_run_time above 0, "
            f"found {jobs}, {machine_size}, {max_run_time}"
        )
    nodes = np.floor(np.exp(rng.uniform(0, np.log(machine_size + 1), jobs)))
    run_time = np.floor(np.exp(rng.uniform(0, np.log(max_run_time + 1), jobs)))
    return Workload(
        {
            "submit_time": np.zeros(jobs, dtype=np.int64),
            "run_time": np.minimum(run_time, max_run_time),
            "requested_time": np.ceil(np.minimum(run_time, max_run_time) * rng.uniform(1, 4, jobs)),
            "nodes": np.minimum(nodes, machine_size),
        },
        machine_size=machine_size,
        name=f"burst-{machine_size}",
        provenance=(f"burst: {jobs} jobs at once, {machine_size} nodes, up to {max_run_time} s",),
    )
