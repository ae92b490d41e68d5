"""Share of the verification of the finished schedule in the time of a run, on both simulators."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from tests.benchmarks.machines import workload_and_cluster


def share(
    traces: Path, workload_of: Callable[[str], Any], source: str, policy: str, repetitions: int
) -> dict[str, float]:
    """Simulate a workload; returns the seconds of the compiled run, and the shares of the verification.

    A share is that of the least time of the verification in the least time of the rest of the run, in
    processor time of the same process.
    """
    from hpcsimkit import Simulation, make
    from hpcsimkit.kernel import simulation as module
    from hpcsimkit.kernel.verification import verify

    workload, cluster = workload_and_cluster(traces, workload_of, source)
    spent = [0.0]

    def timed(*arguments: Any, **options: Any) -> None:
        began = time.process_time()
        verify(*arguments, **options)
        spent[0] = time.process_time() - began

    module.verify = timed  # type: ignore[attr-defined]
    found: dict[str, float] = {}
    programs: dict[Literal["compiled", "simpy"], int] = {
        "compiled": max(15, repetitions),
        "simpy": repetitions,
    }
    for simulator, times in programs.items():
        rest = least = float("inf")
        Simulation(workload.first(10), make(policy), cluster, simulator=simulator).run()  # is loaded
        for _ in range(times):
            began = time.process_time()
            Simulation(workload, make(policy), cluster, simulator=simulator).run()
            seconds = time.process_time() - began
            rest, least = min(rest, seconds - spent[0]), min(least, spent[0])
        found |= {simulator: rest, f"of_{simulator}": least / rest}
    return {"seconds": found["compiled"], **found}
