"""How much a sweep costs beside its simulations."""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path
from typing import Any

__all__ = ["finished", "overhead", "workers"]


def _sweep(cells: int, policies: tuple[str, ...] = ("fcfs", "sjf+easy")) -> Any:
    """Return a sweep of very small cells; warm-up times make them differ, but for the work."""
    from hpcsimkit import Sweep

    axes = {"warmup": [float(seconds) for seconds in range(cells // len(policies))]}
    return Sweep(generate={"jobs": 20}, policies=list(policies), sweep=axes, report=False)


def _run(sweep: Any, place: Path) -> float:
    """Run a sweep, and return its processor time [s]."""
    from hpcsimkit.experiments.sweep.sweep_run import SweepRun

    began = time.process_time()
    SweepRun(sweep, place).run()
    return time.process_time() - began


def overhead(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run a sweep, and the same simulations and metrics in a loop; returns the difference a cell."""
    from hpcsimkit import Simulation, make, measure

    cells = int(source.partition(" ")[0])
    sweep = _sweep(cells)
    workload = sweep.generator.workload()
    with tempfile.TemporaryDirectory() as place:
        _run(_sweep(2), Path(place) / "first")  # imports
        seconds = min(_run(sweep, Path(place) / str(number)) for number in range(repetitions))
    best = float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        for _ in range(cells // 2):
            for name in sweep.policies:
                measure(Simulation(workload, make(name)).run())
        best = min(best, time.process_time() - began)
    return {"seconds": seconds, "ms_per_cell": 1000 * (seconds - best) / cells, "ratio": seconds / best}


def finished(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run a finished sweep again; returns the time, and the memory that cells add to a process."""
    cells = int(source.partition(" ")[0])
    sweep = _sweep(cells)
    with tempfile.TemporaryDirectory() as place:
        _run(_sweep(2), Path(place) / "first")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _run(sweep, Path(place) / "all")
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = min(_run(sweep, Path(place) / "all") for _ in range(repetitions))
    return {"seconds": seconds, "kib_per_cell": (after - before) / cells, "peak_mib": after / 1024}


def workers(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run 40 equal cells of a log with one worker and with two; returns the ratio of times on the wall clock."""
    from hpcsimkit import Sweep
    from hpcsimkit.experiments.sweep.sweep_run import SweepRun

    log = str(traces / "HPC2N-2002-2.2-cln.swf.gz")
    times = {}
    for number in (1, 2):
        axes = {"seed": {"first": 0, "count": 40}}
        sweep = Sweep(log=log, jobs=20_000, policies=[policy], sweep=axes, report=False, workers=number)
        with tempfile.TemporaryDirectory() as place:
            began = time.perf_counter()
            SweepRun(sweep, place).run()
            times[number] = time.perf_counter() - began
    return {"seconds": times[1], "ratio": times[1] / times[2]}
