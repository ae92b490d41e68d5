"""The slow corners of the SimPy kernel: jobs per second, and the functions in which their time goes."""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["corner"]

LARGEST = 4
"""Number of functions that are named, with the largest shares of the time."""


def corner(
    traces: Path, workload_of: Callable[[str], Any], source: str, policy: str, repetitions: int
) -> dict[str, Any]:
    """Simulate the first jobs of a log with SimPy; returns jobs/s, and each function's own share of the time.

    The source is ``LOG/JOBS``, or a log of which all jobs are taken. The shares are those of another run, under
    Python's profiler, which favours short functions.
    """
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation

    workload, cluster = _workload_and_cluster(traces, workload_of, source)
    best, profiler = float("inf"), cProfile.Profile()
    for _ in range(repetitions):
        began = time.process_time()
        Simulation(workload, make(policy), cluster, simulator="simpy").run()
        best = min(best, time.process_time() - began)
    simulation = Simulation(workload, make(policy), cluster, simulator="simpy")
    profiler.runcall(simulation.run)
    stats = pstats.Stats(profiler)
    own = {function: values[2] for function, values in stats.stats.items()}  # type: ignore[attr-defined]
    shares = [
        (_name(function), seconds / sum(own.values()))
        for function, seconds in sorted(own.items(), key=lambda item: -item[1])[:LARGEST]
    ]
    return {"seconds": best, "per_second": len(workload) / best, "shares": shares}


def _workload_and_cluster(traces: Path, workload_of: Callable[[str], Any], source: str) -> tuple[Any, Any]:
    """Return a workload and its machines, or None for as many nodes as the log names."""
    from hpcsimkit import Machines
    from hpcsimkit.workloads import read_job_table
    from tests.benchmarks.machines import BEOCAT_MACHINES, MONTHS

    name, _, jobs = source.partition("/")
    if name not in MONTHS:
        workload = workload_of(name)
        return (workload.first(int(jobs)) if jobs else workload), None
    workload, cluster = read_job_table(traces / MONTHS[name]), Machines.read(traces / BEOCAT_MACHINES)
    return workload.without(cluster.misfits(workload), "fits no machine").first(int(jobs)), cluster


def _name(function: tuple[str, int, str]) -> str:
    """Return the name of a function with its file, or of one in C."""
    path, _, name = function
    if path != "~":
        return f"{Path(path).stem}.{name}"
    for word in ("method ", "built-in ", "'", " objects", "<", ">", "{", "}"):
        name = name.replace(word, "")
    return name
