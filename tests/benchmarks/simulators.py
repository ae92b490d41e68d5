"""The compiled simulator beside SimPy: equal schedules, processor times and their ratio from one process."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["begun", "compiled", "evaluated", "first", "futures", "preemptive", "speed", "trials"]

TIRESIAS = "../refs/tiresias/shortest.csv.gz"
"""File of the jobs of Philly, in the folder of logs."""


def _least(action: Callable[[], Any], repetitions: int) -> tuple[float, Any]:
    """Return the least processor time of several repetitions [s], and the last result."""
    best, result = float("inf"), None
    for _ in range(repetitions):
        result = None  # freed before the next one is made, as the peak memory is measured, too
        began = time.process_time()
        result = action()
        best = min(best, time.process_time() - began)
    return best, result


def speed(workload: Any, policy: str, repetitions: int, cluster: Any = None) -> dict[str, float]:
    """Simulate a workload with both simulators; returns jobs/s of both, and their ratio."""
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation

    def simulate(simulator: Any) -> Any:
        return Simulation(workload, make(policy), cluster, simulator=simulator).run()

    simulate("compiled")  # is loaded
    seconds, found = _least(lambda: simulate("compiled"), max(3, repetitions))
    simpy, reference = _least(lambda: simulate("simpy"), repetitions)
    assert found.hash == reference.hash
    return {"seconds": seconds, "per_second": len(workload) / seconds, "simpy": len(workload) / simpy,
            "faster": simpy / seconds}  # fmt: skip


def compiled(workload: Any, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with the compiled simulator; returns jobs/s and the longest queue."""
    import numpy as np

    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation

    def simulate() -> Any:
        return Simulation(workload, make(policy), simulator="compiled").run()

    Simulation(workload.first(10), make(policy), simulator="compiled").run()  # is loaded
    seconds, result = _least(simulate, repetitions)
    jobs = np.arange(1, len(workload) + 1)
    started_before = np.searchsorted(np.sort(result.start_time), np.sort(result.submit_time), side="left")
    return {"seconds": seconds, "per_second": len(workload) / seconds,
            "longest_queue": float((jobs - started_before).max())}  # fmt: skip


def evaluated(workload: Any, policy: str, repetitions: int) -> dict[str, float]:
    """Compute all metrics of a compiled simulation; returns the seconds, and their ratio to those of the run."""
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation
    from hpcsimkit.results.metrics import measure

    def simulate(jobs: Any = workload) -> Any:
        return Simulation(jobs, make(policy), simulator="compiled").run()

    simulate(workload.first(10))  # is loaded
    simulation, result = _least(simulate, repetitions)
    seconds, _ = _least(lambda: measure(result), repetitions)
    return {"seconds": seconds, "of_simulation": seconds / simulation}


def trials(workload: Any, policy: str, repetitions: int) -> dict[str, float]:
    """Run a policy that simulates others, these with the compiled simulator as soon as it is worth it.

    Returns the seconds, and those if all its simulations run on SimPy.
    """
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel import simulators
    from hpcsimkit.kernel.simulation import Simulation

    def simulate() -> Any:
        return Simulation(workload, make(policy)).run()

    simulate()  # compiles, and loads
    seconds, found = _least(simulate, repetitions)
    simulators.LOADERS.clear()
    simpy, reference = _least(simulate, repetitions)
    assert found.hash == reference.hash
    return {"seconds": seconds, "only_simpy": simpy}


def first(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Load the compiled simulator in fresh processes; returns seconds.

    The source is ``from the cache`` or ``compiling``, which compiles it anew; both also ``, nine`` machines.
    """
    source, _, machines = source.partition(", ")
    workload = (
        "at_once_on_nine(10)" if machines else "default_workload(np.random.default_rng(1), jobs=10), None"
    )
    code = (
        "import time, numpy as np; from hpcsimkit import Simulation, default_workload, make; "
        "from tests.benchmarks.machines import at_once_on_nine; "
        f"jobs, cluster = {workload}; "
        f"Simulation(jobs, make('{policy}'), cluster).run(); began = time.process_time(); "
        f"Simulation(jobs, make('{policy}'), cluster, simulator='compiled').run(); "
        "print(time.process_time() - began)"
    )

    def run(cache: str) -> float:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
        )
        return float(done.stdout)

    with tempfile.TemporaryDirectory() as cache:
        cold = run(cache)
        if source == "compiling":
            return {"seconds": cold}
        return {"seconds": min(run(cache) for _ in range(repetitions))}


def preemptive(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate the 1 000 jobs of Philly in the tests of Tiresias, which may be stopped; jobs/s of both."""
    from hpcsimkit import Simulation, Workload, make

    with gzip.open(traces / TIRESIAS, "rt") as file:
        rows = [{name: int(float(value)) for name, value in row.items()} for row in csv.DictReader(file)]
    names = {"submit_time": "submit_time", "run_time": "duration", "nodes": "num_gpu"}
    columns = {column: [row[name] for row in rows] for column, name in names.items()}
    jobs = Workload(columns, machine_size=32)

    def simulate(simulator: Any) -> Any:
        return Simulation(jobs, make(policy), simulator=simulator).run()

    simulate("compiled")  # is loaded
    seconds, found = _least(lambda: simulate("compiled"), max(3, repetitions))
    simpy, reference = _least(lambda: simulate("simpy"), repetitions)
    assert found.attempts is not None and found.hash == reference.hash
    return {"seconds": seconds, "per_second": len(jobs) / seconds, "on_simpy": simpy}


def futures(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate 1 000 futures of 500 waiting and some running jobs, whose run times are drawn, one by one."""
    from hpcsimkit import Simulation, Workload, make
    from hpcsimkit.kernel.begun import Begun

    numbers = np.random.default_rng(1)
    waiting, running, nodes = int(source.split()[0]), 32, 256
    count = waiting + running
    asked = numbers.integers(3600, 14_400, count)
    columns = {
        "submit_time": np.sort(numbers.integers(0, 7000, count)),
        "requested_time": asked,
        "nodes": np.concatenate([np.full(running, nodes // running), numbers.integers(1, 33, waiting)]),
    }
    begun = Begun(8000, dict.fromkeys(range(running), 7500))
    drawn = [np.maximum((asked * numbers.uniform(0.2, 1, count)).astype(int), 600) for _ in range(1000)]

    def simulate() -> None:
        for run_time in drawn:
            jobs = Workload({**columns, "run_time": run_time}, machine_size=nodes)
            Simulation(jobs, make(policy), begun=begun, simulator="compiled").run()

    simulate()  # loads the simulator
    seconds, _ = _least(simulate, repetitions)
    return {"seconds": seconds, "per_second": len(drawn) / seconds}


def begun(workload: Any, policy: str, repetitions: int) -> dict[str, float]:
    """Begin a run with about 300 running and 200 waiting jobs of a log, and simulate these with SimPy."""
    from hpcsimkit import Simulation, make
    from hpcsimkit.kernel.begun import Begun

    whole = Simulation(workload, make(policy)).run()
    submit, start, end = whole.submit_time, whole.start_time, whole.end_time
    instants = np.unique(submit)[::50]
    waiting = np.array([((submit <= at) & (start > at)).sum() for at in instants])
    running = np.array([((start <= at) & (end > at)).sum() for at in instants])
    at = int(instants[np.argmin(abs(running - 300) + abs(waiting - 200))])
    known = workload.select((submit <= at) & (end > at))
    started = start[(submit <= at) & (end > at)]
    state = Begun(at, {row: int(time) for row, time in enumerate(started.tolist()) if time <= at})

    def simulate() -> None:
        Simulation(known, make(policy), whole.size, begun=state, simulator="simpy").run()

    seconds, _ = _least(simulate, repetitions)
    count = len(state.started)
    return {"seconds": seconds, "running": count, "waiting": len(known) - count}
