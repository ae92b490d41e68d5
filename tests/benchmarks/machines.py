"""Speed on machines: a month of a real cluster, a decision of bin packing, job sets of CuSH."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.partitions import halves

MONTHS = {"beocat-03": "beocat-2021-03.csv.gz", "beocat-04": "beocat-2021-04.csv.gz"}
BEOCAT_MACHINES = "beocat-machines.csv"


def fitting_month(traces: Path, source: str) -> tuple[Any, Any]:
    """Return the jobs of a month that fit the machines of the cluster, and the cluster."""
    from hpcsimkit import Machines
    from hpcsimkit.workloads import read_job_table

    workload, cluster = read_job_table(traces / MONTHS[source]), Machines.read(traces / BEOCAT_MACHINES)
    return workload.without(cluster.misfits(workload), "fits no machine"), cluster


def at_once_on_nine(jobs: int) -> tuple[Any, Any]:
    """Return jobs that are submitted at once, and nine machines."""
    from hpcsimkit import Machines, Workload

    rng = np.random.default_rng(1)
    columns = {
        "submit_time": np.zeros(jobs), "nodes": np.ones(jobs), "cpus": rng.integers(1, 65, jobs),
        "gpus": np.zeros(jobs), "memory": rng.integers(1, 257, jobs) * 10**9,
        "requested_time": rng.integers(3_600, 86_400, jobs),
    }  # fmt: skip
    columns["run_time"] = (columns["requested_time"] * rng.random(jobs)).astype(np.int64)
    workload = Workload(columns, resources=("cpus", "gpus", "memory"))
    return workload, Machines.of(7, cpus=64, memory="256 GB") + Machines.of(
        2, "gpu", cpus=64, gpus=8, memory="512 GB"
    )


def workload_and_cluster(traces: Path, workload_of: Callable[[str], Any], source: str) -> tuple[Any, Any]:
    """Return a workload and its machines, or None for as many nodes as the log names.

    The source is ``LOG/JOBS``, a log of which all jobs are taken, ``nine:JOBS``, or ``LOG/halves`` for one
    with two partitions.
    """
    name, _, jobs = source.partition("/")
    if jobs == "halves":
        return halves(workload_of(name))
    if name.startswith("nine:"):
        return at_once_on_nine(int(name.removeprefix("nine:")))
    workload, cluster = fitting_month(traces, name) if name in MONTHS else (workload_of(name), None)
    return workload.first(int(jobs)) if jobs else workload, cluster


def month(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a month on all machines of the cluster with SimPy; jobs/s."""
    from hpcsimkit import Simulation, make

    workload, cluster = fitting_month(traces, source)
    count, best = len(workload.jobs), float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        Simulation(workload, make(policy), cluster, simulator="simpy").run()
        best = min(best, time.process_time() - began)
    return {"jobs": count, "seconds": best, "per_second": count / best}


def outages(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a month with 10 000 outages of machines of 5 to 20 min, in turn with the month without them.

    With SimPy, or with the compiled simulator if the policy is followed by ", compiled". Returns jobs/s, and the ratios of the times, starts, passes and passes that block a job: an outage stops
    jobs, which start again, and its beginning and end are instants at which waiting jobs may start. With
    ", draining" at the end, jobs run out, so that none starts again.
    """
    from hpcsimkit import Observer, Simulation, make
    from hpcsimkit.cluster.outages import Outage, Outages

    policy, *kinds = policy.split(", ")
    workload, cluster = fitting_month(traces, source)
    rng = np.random.default_rng(1)
    begins = np.sort(rng.integers(workload.submit_time.min(), workload.submit_time.max(), 10_000)).tolist()
    listed, over = [], np.zeros(len(cluster), dtype=np.int64)
    for begin, machine in zip(begins, rng.integers(len(cluster), size=10_000).tolist(), strict=True):
        if over[machine] < begin:
            over[machine] = begin + int(rng.integers(300, 1_200))
            listed.append(Outage(begin, int(over[machine]), machines=(machine,), drain="draining" in kinds))

    class Counting(Observer):
        """Counts starts and blocked jobs."""

        starts = blocked = 0

        def on_start(self, job: Any, allocation: Any, system: Any) -> None:
            self.starts += 1

        def on_block(self, job: Any, system: Any) -> None:
            self.blocked += 1

    def simulate(source: Any, *observers: Any) -> Any:
        compiled = "compiled" in kinds and not observers
        options = {
            "outages": source,
            "simulator": "compiled" if compiled else "simpy",
            "observers": observers,
        }
        return Simulation(workload, make(policy), cluster, **options).run()  # type: ignore[arg-type]

    sources = None, Outages(listed)
    best, counted = [float("inf")] * 2, [Counting(), Counting()]
    results = [simulate(each, counter) for each, counter in zip(sources, counted, strict=True)]
    for _ in range(repetitions):
        for place, each in enumerate(sources):
            began = time.process_time()
            simulate(each)
            best[place] = min(best[place], time.process_time() - began)
    before, after = counted
    return {
        "jobs": len(workload),
        "seconds": best[1],
        "per_second": len(workload) / best[1],
        "without": best[0],
        "longer": best[1] / best[0],
        "starts": after.starts / before.starts,
        "passes": results[1].passes / results[0].passes,
        "blocked": after.blocked / before.blocked,
    }


def table(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Read a month of jobs from a table; jobs/s."""
    from hpcsimkit.workloads import read_job_table

    best = float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        count = len(read_job_table(traces / MONTHS[source], strict=True))
        best = min(best, time.process_time() - began)
    return {"jobs": count, "seconds": best, "per_second": count / best}


def metrics(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Reckon metrics of machines for a month; jobs/s."""
    from hpcsimkit import Simulation, make
    from hpcsimkit.results.metrics import measure

    workload, cluster = fitting_month(traces, source)
    result, best = Simulation(workload, make(policy), cluster).run(), float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        measure(result, names=["gpu_fragmentation", "snapshot_utilisation", "memory_utilisation"])
        best = min(best, time.process_time() - began)
    return {"jobs": len(workload), "seconds": best, "per_second": len(workload) / best}


def packing(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Take one decision of best-fit bin packing over 1 000 waiting jobs and nine machines; decisions/s."""
    from hpcsimkit import Simulation, System
    from hpcsimkit.policies import BestFitBinPacking

    class Timed(BestFitBinPacking):
        """Times the first pass, in which all jobs wait."""

        def schedule(self, system: System) -> None:
            before, began = len(system.running), time.process_time()
            super().schedule(system)
            if system.passes == 1:
                found["seconds"] = time.process_time() - began
                found["starts"] = len(system.running) - before

    found: dict[str, float] = {}
    workload, cluster = at_once_on_nine(1_000)
    best = float("inf")
    for _ in range(repetitions):
        Simulation(workload, Timed(), cluster).run()
        best = min(best, found["seconds"] / found["starts"])
    return {"seconds": best, "per_second": 1 / best}


def episodes(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate CuSH's job sets of 20 jobs on 128 nodes with a heuristic; episodes/s."""
    from hpcsimkit import Machines, Simulation, make
    from hpcsimkit.kernel.locality import LOCALITIES
    from hpcsimkit.workloads import CushJobSets

    sets = CushJobSets(system=source).generate(np.random.default_rng(1), jobsets=100)
    cluster = Machines.of(128, cpus=2, gpus=4 if source == "sierra" else 6)
    for workload in sets:
        workload.jobs  # noqa: B018 - made once, as a learner would
    scheduler, best = make(policy), float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        for workload in sets:
            Simulation(workload, scheduler, cluster, service_time=LOCALITIES[source]).run()
        best = min(best, time.process_time() - began)
    return {"seconds": best, "per_second": len(sets) / best}
