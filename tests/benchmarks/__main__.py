"""How fast the kit is, beside a yardstick of bare SimPy events measured in the same minutes.

    python -m tests.benchmarks              # everything, about six minutes
    python -m tests.benchmarks --quick      # KTH-SP2 and small synthetic logs, under a minute
    python -m tests.benchmarks --only speed compiled first    # the compiled simulator beside SimPy, and alone

Each line comes from a process of its own, so that peak memory is its own too. Speeds are those of the
simulation alone, through the public API, after the workload was loaded; the best of several repetitions is
shown, in processor time. Ratios compare with the yardstick of the same process: two SimPy events a job.
Real logs are read from the folder named by HPCSIMKIT_SHARED (by default ../shared beside the repository).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from tests.benchmarks import (
    agents,
    corners,
    machines,
    partitions,
    reading,
    shares,
    simulators,
    slurm,
    sweeps,
    verification,
)

TRACES = Path(os.environ.get("HPCSIMKIT_SHARED", Path(__file__).parents[3] / "shared")) / "traces"
LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
}
YARDSTICK_JOBS = 100_000


def processor_seconds(action: Callable[[], Any], repetitions: int) -> float:
    """Return the least processor time of several repetitions [s]."""
    best = float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        action()
        best = min(best, time.process_time() - began)
    return best


def bare_simpy() -> None:
    """Two SimPy events a job: a process that waits for arrivals, a timeout with a callback for each end."""
    import simpy

    environment = simpy.Environment()

    def end(event: Any) -> None:
        """Do what every simulation must at least do: be told."""

    def arrivals() -> Any:
        for _ in range(YARDSTICK_JOBS):
            yield environment.timeout(1)
            environment.timeout(37).callbacks.append(end)

    environment.process(arrivals())
    environment.run()


def workload_of(source: str) -> Any:
    """Return the workload of a log, ``lublin:JOBS``, ``deep:JOBS`` (overload) or ``burst:JOBS``."""
    import numpy as np

    from hpcsimkit.workloads import burst, default_workload, read_swf

    kind, _, jobs = source.partition(":")
    if kind == "lublin":
        return default_workload(np.random.default_rng(1), jobs=int(jobs))
    if kind == "deep":  # with 400 000 jobs, 20 000 wait at the end
        return default_workload(np.random.default_rng(1), jobs=int(jobs), load=1.4)
    if kind == "burst":
        return burst(int(jobs), np.random.default_rng(1), machine_size=256)
    workload = read_swf(TRACES / LOGS[source])
    return workload.fitting(workload.machine_size)


def measure_simulation(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with SimPy; returns jobs/s, ratio and peak memory."""
    from hpcsimkit.experiments.parts.registry import make
    from hpcsimkit.kernel.simulation import Simulation

    workload = workload_of(source)
    count = len(workload.jobs)
    yardstick = YARDSTICK_JOBS / processor_seconds(bare_simpy, 3)
    seconds = processor_seconds(
        lambda: Simulation(workload, make(policy), simulator="simpy").run(), repetitions
    )
    return {
        "jobs": count,
        "seconds": seconds,
        "jobs_per_second": count / seconds,
        "yardstick": yardstick,
        "ratio": count / seconds / yardstick,
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_speed(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with both simulators; returns jobs/s of both, of bare SimPy, and ratios."""
    bare = YARDSTICK_JOBS / processor_seconds(bare_simpy, 3)
    workload, cluster = machines.workload_and_cluster(TRACES, workload_of, source)
    return {**simulators.speed(workload, policy, repetitions, cluster), "bare": bare}


def measure_compiled(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with the compiled simulator alone; returns jobs/s, peak memory and longest queue."""
    found = simulators.compiled(workload_of(source), policy, repetitions)
    return {**found, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure_evaluation(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Compute all metrics of a compiled simulation; returns their ratio to its time, and peak memory."""
    found = simulators.evaluated(workload_of(source), policy, repetitions)
    return {**found, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def measure_trials(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run a policy that simulates others on the first 5 000 jobs of a log."""
    return simulators.trials(workload_of(source).first(5_000), policy, repetitions)


def measure_corner(source: str, policy: str, repetitions: int) -> dict[str, Any]:
    """Simulate a workload on which the SimPy kernel is slow; returns jobs/s and shares of functions."""
    return corners.corner(TRACES, workload_of, source, policy, repetitions)


def measure_verification(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with both simulators; returns the share of the verification of the schedule."""
    return verification.share(TRACES, workload_of, source, policy, repetitions)


def measure_partition(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate a workload with one partition over the whole cluster, beside none."""
    return partitions.whole(workload_of(source), policy, repetitions)


def measure_decisions(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Answer every decision of an open order seat with its first option; returns decisions/s."""
    from hpcsimkit import Simulation, read_swf
    from hpcsimkit.kernel.decision import External
    from hpcsimkit.kernel.pipeline import Pipeline
    from hpcsimkit.kernel.reservation import EASY

    workload = read_swf(TRACES / LOGS[source]).first(10_000)
    workload = workload.fitting(workload.machine_size)
    decisions = 0

    def play() -> None:
        nonlocal decisions
        decisions = 0
        simulation = Simulation(workload, Pipeline(order=External(), backfiller=EASY(), window=32))
        while (decision := simulation.next_decision()) is not None:
            decisions += 1
            simulation.answer(decision.options[0])

    seconds = processor_seconds(play, repetitions)
    return {"jobs": len(workload), "seconds": seconds, "decisions_per_second": decisions / seconds}


def measure_reading(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Read a log; returns the time and peak memory."""
    return reading.read(TRACES, LOGS, source, repetitions)


def measure_help(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Start the command line and print its help, on the wall clock."""
    best = float("inf")
    for _ in range(repetitions):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "hpcsimkit.run", "--help"], check=True, capture_output=True)
        best = min(best, time.perf_counter() - began)
    return {"seconds": best}


def measure_compare(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Compare the default policies on a log as on the command line, once compiled; returns the best time."""
    best, processor = float("inf"), float("inf")
    with tempfile.TemporaryDirectory() as place:
        command = [
            sys.executable,
            "-m",
            "hpcsimkit.run",
            "compare",
            str(TRACES / LOGS[source]),
            "--no-report",
        ]
        for repetition in range(repetitions + 1):
            used, began = _of_children(), time.perf_counter()
            subprocess.run([*command, "--out", f"{place}/{repetition}"], check=True, capture_output=True)
            if repetition:
                best = min(best, time.perf_counter() - began)
                processor = min(processor, _of_children() - used)
    return {"seconds": best, "processor": processor}


def _of_children() -> float:
    """Return the processor time of all processes that this one started and that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure_begun(source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate the running and waiting jobs of a busy instant of a log with SimPy."""
    return simulators.begun(workload_of(source), policy, repetitions)


MEASURES = {
    "simulate": measure_simulation,
    "decide": measure_decisions,
    "read": measure_reading,
    "help": measure_help,
    "compare": measure_compare,
    "begun": measure_begun,
    "speed": measure_speed,
    "tests": measure_speed,
    "compiled": measure_compiled,
    "evaluate": measure_evaluation,
    "trials": measure_trials,
    "partition": measure_partition,
    "verification": measure_verification,
    "corners": measure_corner,
    "first": simulators.first,
    **{name: partial(measure, TRACES) for name, measure in (
        ("month", machines.month), ("outages", machines.outages), ("table", machines.table), ("metrics", machines.metrics),
        ("packing", machines.packing), ("episodes", machines.episodes),
        ("window", agents.window), ("pairs", agents.pairs), ("inspector", agents.inspector),
        ("training", agents.training), ("inference", agents.inference), ("backfilling", agents.backfilling),
        ("games", agents.games), ("batches", agents.batches), ("shares", shares.shares),
        ("preemptive", simulators.preemptive), ("futures", simulators.futures),
        ("slurm", slurm.measure), ("stopping", slurm.stopping), ("validated", slurm.validated), ("advice", slurm.advice), ("advised", slurm.advised),
        ("sweep", sweeps.overhead), ("finished", sweeps.finished), ("workers", sweeps.workers),
    )},
}  # fmt: skip

UNITS = {"month": "jobs", "slurm": "jobs", "stopping": "jobs", "validated": "jobs", "advice": "futures", "preemptive": "jobs", "futures": "futures", "outages": "jobs", "corners": "jobs", "speed": "jobs", "tests": "jobs", "compiled": "jobs", "table": "jobs", "metrics": "jobs", "packing": "decisions",
         "episodes": "episodes", "games": "episodes", "window": "steps", "pairs": "steps", "inspector": "steps", "training": "steps", "inference": "answers", "backfilling": "steps", "batches": "steps"}  # fmt: skip

FILES = (
    {name: [file] for name, file in LOGS.items()}
    | {name: [file, machines.BEOCAT_MACHINES] for name, file in machines.MONTHS.items()}
    | {"KTH-SP2/halves": [LOGS["KTH-SP2"]]}
    | {"beocat-03/20000": [machines.MONTHS["beocat-03"], machines.BEOCAT_MACHINES]}
    | {"philly": [simulators.TIRESIAS], "lublin-1": [agents.LUBLIN], "backfilling": [agents.LUBLIN]}
)
"""Which files of the folder of logs a case needs."""

QUICK = [
    ("simulate", "KTH-SP2", "fcfs", 5),
    ("simulate", "KTH-SP2", "fcfs+easy", 5),
    ("simulate", "lublin:10000", "fcfs+easy", 5),
    ("simulate", "burst:20000", "fcfs+easy", 1),
    ("decide", "KTH-SP2", "order seat", 3),
    ("episodes", "sierra", "sjf+depth-first+fitting+window(5)", 3),
    ("games", "sierra", "CuSH, random", 10),
    ("packing", "1000 x 9", "bfbp", 3),
    ("window", "16 jobs", "random", 3),
    ("window", "16 jobs", "random, SimPy", 3),
    ("pairs", "128 x 9", "random", 3),
    ("pairs", "128 x 9", "random, SimPy", 3),
    ("inspector", "128 jobs", "random", 1),
    ("inspector", "128 jobs", "random, SimPy", 1),
    ("training", "16 jobs", "MaskablePPO, 32 x 128, batch 512", 3),
    ("training", "16 jobs", "maskable-ppo of the kit, the same settings", 3),
    ("training", "16 jobs", "PPO of the kit, the same settings", 3),
    *(("batches", "16 episodes", way, 3) for way in ("make, DummyVecEnv", "make_vec", "SchedulingVecEnv")),
    ("inference", "85-32-16", "dense", 3),
    ("inference", "128 x 6-32-16-8-1", "slots", 3),
    ("backfilling", "lublin-1", "random, environment alone", 3),
    ("backfilling", "lublin-1", "random, environment alone, SimPy", 3),
    ("backfilling", "lublin-1", "random, with the baseline", 3),
    ("backfilling", "lublin-1", "random, with the baseline, SimPy", 3),
    ("speed", "KTH-SP2", "fcfs+easy", 3),
    ("first", "from the cache", "fcfs+easy", 3),
    ("help", "-", "-", 5),
    ("sweep", "1000 cells", "20 jobs each", 3),
    ("finished", "10000 cells", "20 jobs each", 3),
]
ALL = [
    *QUICK,
    ("verification", "KTH-SP2", "fcfs+easy", 3),
    ("verification", "HPC2N", "fcfs+easy", 1),
    ("verification", "lublin:100000", "fcfs+easy", 1),
    ("verification", "beocat-03/20000", "fcfs+best-fit+easy", 1),
    ("shares", "window", "random", 1),
    ("shares", "pairs", "random", 4),
    ("shares", "inspector", "random", 4),
    ("shares", "backfilling", "random, environment alone", 3),
    ("shares", "backfilling", "random, with the baseline", 3),
    ("shares", "games", "CuSH, random", 1),
    ("shares", "training", "MaskablePPO, 32 x 128, batch 512", 1),
    ("shares", "training", "PPO of the kit, the same settings", 1),
    ("workers", "HPC2N", "fcfs+easy", 1),
    ("partition", "KTH-SP2", "fcfs+easy", 9),
    ("partition", "lublin:100000", "fcfs+easy", 3),
    ("simulate", "SDSC-SP2", "fcfs", 3),
    ("simulate", "SDSC-SP2", "fcfs+easy", 3),
    ("simulate", "HPC2N", "fcfs", 3),
    ("simulate", "HPC2N", "fcfs+easy", 3),
    ("simulate", "KTH-SP2", "wfp3+easy", 3),
    ("simulate", "KTH-SP2", "fcfs+conservative", 3),
    ("simulate", "lublin:100000", "fcfs+easy", 2),
    ("simulate", "lublin:1000000", "fcfs", 1),
    ("simulate", "lublin:1000000", "fcfs+easy", 1),
    ("simulate", "burst:20000", "sjf+easy", 1),
    ("simulate", "burst:20000", "wfp3+easy", 1),
    ("month", "beocat-03", "fcfs+best-fit+easy", 1),
    ("month", "beocat-04", "fcfs+best-fit+easy", 1),
    ("outages", "beocat-03", "fcfs+best-fit+easy", 3),
    ("outages", "beocat-03", "fcfs+best-fit+easy, draining", 3),
    ("outages", "beocat-03", "fcfs+best-fit+easy, compiled", 5),
    ("outages", "beocat-03", "fcfs+best-fit+easy, compiled, draining", 5),
    ("tests", "KTH-SP2", "unicef+easy+tests(seconds=300)", 3),
    ("tests", "HPC2N", "unicef+easy+tests(seconds=300)", 2),
    ("tests", "beocat-03", "unicef+best-fit+easy+tests(seconds=300)", 1),
    ("tests", "KTH-SP2/halves", "unicef+easy+tests(seconds=300)", 2),
    ("speed", "KTH-SP2/halves", "fcfs+easy", 2),
    ("preemptive", "philly", "oracle-srtf", 3),
    ("preemptive", "philly", "las", 3),
    ("futures", "500 jobs", "fcfs+easy", 3),
    ("begun", "HPC2N", "fcfs+easy", 5),
    ("slurm", "20000 jobs", "as-configured", 3),
    ("validated", "20000 jobs", "as-configured", 2),
    ("slurm", "20000 jobs", "as-configured, SimPy", 1),
    ("stopping", "20000 jobs", "as-configured, preempt/qos", 3),
    ("advice", "520 waiting", "as-configured", 50),
    ("advised", "520 waiting", "200 futures, not calibrated", 2),
    ("advised", "520 waiting", "200 futures", 2),
    ("corners", "KTH-SP2", "fcfs+easy", 5),
    ("corners", "KTH-SP2", "wfp3+easy", 5),
    ("corners", "KTH-SP2", "xfactor+easy", 5),
    ("corners", "KTH-SP2", "unicef+easy", 3),
    ("corners", "KTH-SP2", "slurm+easy", 2),
    ("corners", "HPC2N", "wfp3+easy", 2),
    ("corners", "burst:20000", "fcfs+easy", 2),
    ("corners", "deep:100000", "fcfs+easy", 2),
    ("corners", "KTH-SP2", "fcfs+conservative", 3),
    ("corners", "burst:2000", "fcfs+conservative", 1),
    ("corners", "beocat-03/20000", "fcfs+conservative", 2),
    ("corners", "nine:300", "fcfs+conservative", 1),
    ("speed", "KTH-SP2", "wfp3+easy", 2),
    ("speed", "KTH-SP2", "slurm+easy", 2),
    ("speed", "KTH-SP2", "fcfs+easy++", 2),
    ("speed", "KTH-SP2", "fcfs+conservative", 2),
    ("speed", "KTH-SP2", "fcfs+easy-k(4)", 2),
    ("speed", "HPC2N", "fcfs+easy", 2),
    ("speed", "HPC2N", "fcfs+conservative", 1),
    ("speed", "lublin:1000000", "fcfs+easy", 1),
    ("speed", "burst:20000", "fcfs+easy", 1),
    ("speed", "deep:400000", "fcfs+easy", 1),
    ("speed", "beocat-03", "fcfs+best-fit+easy", 1),
    ("speed", "beocat-03", "fcfs+easy", 1),
    ("speed", "beocat-04", "fcfs+best-fit+easy", 1),
    ("speed", "beocat-03/20000", "fcfs+conservative", 2),
    ("speed", "beocat-03/20000", "fcfs+best-fit+conservative", 2),
    ("speed", "beocat-03", "fcfs+easy++", 1),
    ("speed", "beocat-03/20000", "fcfs+easy-k(4)", 1),
    ("speed", "nine:1000", "fcfs+conservative", 1),
    ("compiled", "KTH-SP2", "fcfs+conservative", 9),
    ("compiled", "HPC2N", "fcfs+conservative", 9),
    ("compiled", "deep:400000", "fcfs+easy", 9),
    ("compiled", "burst:20000", "fcfs+easy", 9),
    ("compiled", "burst:200000", "fcfs+easy", 5),
    ("compiled", "lublin:1000000", "fcfs+easy", 9),
    ("compiled", "lublin:10000000", "fcfs+easy", 3),
    ("evaluate", "lublin:1000000", "fcfs+easy", 5),
    ("evaluate", "lublin:10000000", "fcfs+easy", 3),
    ("trials", "KTH-SP2", "looking-ahead+easy", 2),
    ("trials", "HPC2N", "looking-ahead+easy", 2),
    ("first", "from the cache", "fcfs+conservative", 3),
    ("first", "compiling", "fcfs+easy", 1),
    ("first", "compiling", "wfp3+easy", 1),
    ("first", "compiling", "fcfs+easy-k(4)", 1),
    ("first", "compiling", "fcfs+conservative", 1),
    ("first", "compiling, nine", "fcfs+best-fit+easy", 1),
    ("first", "compiling, nine", "wfp3+easy", 1),
    ("first", "compiling, nine", "fcfs+easy++", 1),
    ("first", "compiling, nine", "fcfs+easy-k(4)", 1),
    ("first", "compiling, nine", "fcfs+conservative", 1),
    ("first", "compiling, nine", "slurm+conservative", 1),
    ("read", "HPC2N", "-", 3),
    ("read", "slurm:1000000", "-", 1),
    ("compare", "HPC2N", "the eight defaults, no report", 5),
    ("table", "beocat-04", "-", 3),
    ("metrics", "beocat-03", "fcfs+best-fit+easy", 1),
]


def in_process_of_its_own(case: tuple[str, str, str, int]) -> dict[str, Any]:
    """Measure one case in a fresh interpreter."""
    answer = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", "--case", json.dumps(case)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return dict(json.loads(answer.stdout))


def row(case: tuple[str, str, str, int], found: dict[str, Any]) -> str:
    """Return one line of the table."""
    measure, source, policy, _ = case
    cells = [f"{measure:9s} {source:15s} {policy:32s} {found['seconds']:8.3f} s"]
    if "jobs_per_second" in found:
        cells.append(
            f"{found['jobs_per_second']:9,.0f} jobs/s  {found['ratio']:.3f} of bare SimPy "
            f"({found['yardstick']:,.0f})  peak {found['peak_mib']:,.0f} MiB"
        )
    if "per_second" in found:
        cells.append(f"{found['per_second']:9,.0f} {UNITS[measure]}/s")
    if "shares" in found:
        cells.append(", ".join(f"{name} {share:.0%}" for name, share in found["shares"]))
    if "decisions_per_second" in found:
        cells.append(f"{found['decisions_per_second']:9,.0f} decisions/s")
    if "ms_per_cell" in found:
        cells.append(f"{found['ms_per_cell']:.2f} ms a cell beside the simulations and metrics")
    if "kib_per_cell" in found:
        cells.append(f"{found['kib_per_cell']:.1f} KiB a cell  peak {found['peak_mib']:,.0f} MiB")
    if "faster" in found:
        cells.append(
            f"{found['simpy']:9,.0f} jobs/s with SimPy  {found['faster']:.0f} x  bare SimPy {found['bare']:,.0f}"
        )
    if "on_simpy" in found:
        cells.append(f"{found['on_simpy']:.3f} s with SimPy")
    if "read_mib" in found:
        cells.append(f"peak {found['read_mib']:,.0f} MiB")
    if "without" in found:
        cells.append(
            f"{found['longer']:.2f} x the time without outages ({found['without']:.3f} s); {found['starts']:.2f} x "
            f"the starts, so {found['longer'] / found['starts']:.2f} x the time per start, {found['passes']:.2f} x "
            f"the passes, {found['blocked']:.2f} x those with a blocked job"
        )
    if "wall" in found:
        cells.append(f"half of its processor time; {found['wall']:.1f} s with two workers on this machine")
        cells.append(f"{found['waiting']:,.0f} jobs wait")
    elif "waiting" in found:
        cells.append(f"{found['running']:,.0f} jobs run and {found['waiting']:,.0f} wait at the beginning")
    if "only_simpy" in found:
        cells.append(f"{found['only_simpy']:.3f} s if all its simulations run on SimPy")
    if "processor" in found:
        cells.append(f"{found['processor']:.3f} s of processor time")
    if "longest_queue" in found:
        cells.append(f"{found['longest_queue']:,.0f} jobs wait at most  peak {found['peak_mib']:,.0f} MiB")
    if "of_simulation" in found:
        cells.append(
            f"{found['of_simulation']:.2f} of the simulation's time  peak {found['peak_mib']:,.0f} MiB"
        )
    if "of_plain" in found:
        cells.append(
            f"{found['stops']:,.0f} stops; {found['of_plain']:.2f} x the time without preemption, the first jobs "
            f"{found['of_simpy']:.0f} x as fast as on SimPy"
        )
    if "of_no_partition" in found:
        cells.append(f"{found['of_no_partition']:.3f} of the time without a partition")
    if "of_compiled" in found:
        cells.append(
            f"of this, the verification takes {found['of_compiled']:.1%}; on SimPy {found['of_simpy']:.2%}"
        )
    if measure == "shares":
        cells.extend(f"{part} {share:.0f} %" for part, share in found.items() if part != "seconds")
    if measure == "workers":
        cells.append(f"{found['ratio']:.2f} x with two workers")
    return "  ".join(cells)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="only what takes less than a minute")
    parser.add_argument(
        "--only", nargs="+", metavar="MEASURE", help="only these measures, as in the first column"
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        measure, source, policy, repetitions = json.loads(options.case)
        print(json.dumps(MEASURES[measure](source, policy, repetitions)))
        return
    for case in QUICK if options.quick else ALL:
        if options.only and case[0] not in options.only:
            continue
        absent = [file for file in FILES.get(case[1], ()) if not (TRACES / file).exists()]
        if absent:
            print(f"{case[0]:9s} {case[1]:15s} skipped: no {TRACES / absent[0]} (set HPCSIMKIT_SHARED)")
            continue
        print(row(case, in_process_of_its_own(case)), flush=True)


if __name__ == "__main__":
    main()
