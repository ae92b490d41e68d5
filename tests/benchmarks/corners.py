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

    The shares are those of another run, under Python's profiler, which favours short functions.
    """
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation
    from tests.benchmarks.machines import workload_and_cluster

    workload, cluster = workload_and_cluster(traces, workload_of, source)
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


def _name(function: tuple[str, int, str]) -> str:
    """Return the name of a function with its file, or of one in C."""
    path, _, name = function
    if path != "~":
        return f"{Path(path).stem}.{name}"
    for word in ("method ", "built-in ", "'", " objects", "<", ">", "{", "}"):
        name = name.replace(word, "")
    return name
