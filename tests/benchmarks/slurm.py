"""Slurm as configured: jobs of a month in five partitions with limits, and futures of a full queue."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

CONF = """\
ClusterName=bench
SchedulerParameters=bf_interval=30,bf_resolution=60,bf_window=2880,bf_max_job_test=500,bf_continue
PriorityType=priority/multifactor
PriorityDecayHalfLife=7-0
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityWeightPartition=1000
PriorityWeightQOS=2000
PriorityWeightTRES=CPU=500,Mem=500,GRES/gpu=2000
PriorityMaxAge=7-0
AccountingStorageEnforce=associations,limits,qos
NodeName=DEFAULT CPUs=32 RealMemory=128000
NodeName=c[001-064] Weight=10
NodeName=fat[01-08] RealMemory=1024000 Weight=50 Feature=fat
NodeName=gpu[01-08] Gres=gpu:a100:4 Weight=90
PartitionName=DEFAULT MaxTime=2-0 DefaultTime=60
PartitionName=short Nodes=c[001-064] PriorityTier=5 PriorityJobFactor=40 MaxTime=60
PartitionName=cpu Nodes=c[009-064],fat[01-08] Default=YES PriorityTier=2 PriorityJobFactor=20
PartitionName=long Nodes=c[033-064] PriorityTier=1 PriorityJobFactor=10 MaxTime=7-0
PartitionName=any Nodes=ALL PriorityTier=1 PriorityJobFactor=1
PartitionName=gpu Nodes=gpu[01-08] PriorityTier=2 PriorityJobFactor=20 QOS=ofgpu TRESBillingWeights=CPU=1,GRES/gpu=8
"""

QOS = """\
Name|Priority|Flags|UsageFactor|GrpTRES|GrpJobs|MaxTRES|MaxWall|MaxTRESPU|MaxJobsPU
normal|10||||||||
high|100||||||||4
small|0||||||2-00:00:00|cpu=256|40
ofgpu|0||||||||
"""

ACCOUNTS, USERS = 8, 60
PARTITIONS = ("cpu", "short", "long", "any", "gpu", "cpu,any")
KINDS = ("normal", "high", "small")
DAY = 86_400
EPOCH = 1_795_000_000
"""Unix time at which the log begins, in what Slurm prints."""

FEW = 2_000
"""Number of jobs that are also simulated on SimPy."""

LABELS = ("user", "group", "qos", "partition")


def profile() -> Any:
    """Return the cluster: 80 nodes, five partitions that share most of them, QOS and accounts with limits."""
    from hpcsimkit.slurm.profile import Slurm

    with tempfile.TemporaryDirectory() as folder:
        configure(Path(folder))
        return Slurm.read(folder)


def configure(folder: Path) -> None:
    """Write the configuration of the cluster to a folder."""
    dump = ["Cluster - 'bench':Fairshare=1:QOS='normal'", "Parent - 'root'"]
    dump += [
        f"Account - 'a{number}':Fairshare={1 + number}:GrpTRES=cpu={512 + 128 * number}"
        for number in range(ACCOUNTS)
    ]
    for number in range(ACCOUNTS):
        dump.append(f"Parent - 'a{number}'")
        dump += [
            f"User - 'u{user}':Fairshare=1:MaxJobs=100" for user in range(USERS) if user % ACCOUNTS == number
        ]
    for name, text in (("slurm.conf", CONF), ("qos.txt", QOS), ("dump.cfg", "\n".join(dump) + "\n")):
        (folder / name).write_text(text)


def jobs(count: int = 20_000, days: float = 30.0, seed: int = 1) -> Any:
    """Return jobs of many users, most of them in the daytime, some in series of equal ones."""
    from hpcsimkit.jobs.workload import Workload

    rng = np.random.default_rng(seed)
    series = np.repeat(np.arange(count), np.minimum(1 + rng.geometric(0.3, count), 30))[:count]
    each = int(series.max()) + 1
    at = np.sort(rng.random(each) * days)
    at = np.floor(at) + np.clip(0.55 + 0.18 * rng.standard_normal(each), 0, 0.999)
    submit = np.sort((at * DAY).astype(np.int64))[series]
    user = (USERS * rng.random(each) ** 2).astype(np.int64)[series]
    part = rng.choice(len(PARTITIONS), each, p=[0.45, 0.15, 0.1, 0.1, 0.1, 0.1])[series]
    of_part = np.array([1.0, 0.1, 4.0, 1.0, 1.5, 1.0])[part]
    run = np.clip(
        np.exp(7.9 + 1.4 * rng.standard_normal(each))[series] * of_part * (0.7 + 0.6 * rng.random(count)),
        5,
        7 * DAY,
    )
    most = np.array([2 * DAY, 3600, 7 * DAY, 2 * DAY, 2 * DAY, 2 * DAY])[part]
    run = np.minimum(run, most).astype(np.int64)
    limit = np.minimum(np.ceil(run * (1 + 4 * rng.random(each)[series]) / 600) * 600, most).astype(np.int64)
    nodes = np.where(rng.random(each) < 0.15, rng.integers(2, 9, each), 1)[series]
    cpus = np.array([1, 2, 4, 8, 16, 32])[rng.choice(6, each, p=[0.25, 0.1, 0.2, 0.2, 0.1, 0.15])][series]
    cpus = np.where(nodes > 1, 32, cpus)
    gpus = np.where(part == 4, rng.choice([1, 1, 2, 4], each)[series], 0)
    nodes, cpus = np.where(part == 4, np.minimum(nodes, 2), nodes), np.where(part == 4, 8, cpus)
    columns = {
        "submit_time": submit,
        "run_time": run,
        "requested_time": np.maximum(limit, 60),
        "nodes": nodes,
        "cpus": cpus,
        "gpus": gpus,
        "memory": cpus * 2**20 * rng.choice([1000, 2000, 4000], each)[series],
        "user": user,
        "group": user % ACCOUNTS,
        "qos": rng.choice(3, each, p=[0.7, 0.1, 0.2])[series],
        "partition": part,
    }
    labels = {
        "user": tuple(f"u{user}" for user in range(USERS)),
        "group": tuple(f"a{number}" for number in range(ACCOUNTS)),
        "qos": KINDS,
        "partition": PARTITIONS,
    }
    return Workload(columns, resources=("cpus", "gpus", "memory"), labels=labels)


def busy(count: int = 6000, waiting: int = 560, seed: int = 2) -> Any:
    """Return jobs of a quiet time, and others that come within an hour at its end, so that some 500 wait."""
    from hpcsimkit.jobs.workload import Workload

    quiet = jobs(count, days=count / 20_000 * 30.0, seed=seed)
    burst = jobs(waiting, days=1.0, seed=seed + 1)
    columns = {name: np.concatenate([quiet.column(name), burst.column(name)]) for name in quiet.columns}
    end = int(quiet.submit_time.max())
    columns["submit_time"][count:] = end + np.arange(waiting) * 3600 // waiting
    columns["id"] = np.arange(1, count + waiting + 1)
    return Workload(columns, resources=quiet.resources, labels=quiet.labels)


def measure(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate Slurm as configured, compiled or on SimPy."""
    from hpcsimkit import Simulation

    made, workload = profile(), jobs(int(source.partition(" ")[0]))
    workload = workload.select(np.flatnonzero(made.partitions.admitted(workload).any(axis=0)))
    least, simulator = float("inf"), "simpy" if "SimPy" in policy else "compiled"
    for _ in range(repetitions + (simulator == "compiled")):  # the first run loads it
        began = time.process_time()
        Simulation(workload, made.policy, made.partitions, simulator=simulator, **made.options).run()
        least = min(least, time.process_time() - began)
    return {"seconds": least, "per_second": len(workload) / least}


def stopping(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Simulate Slurm whose jobs of one QOS stop others, and without that, compiled; the first jobs also on SimPy."""
    from hpcsimkit import Simulation
    from hpcsimkit.results.attempts import Outcome

    plain, workload = profile(), jobs(int(source.partition(" ")[0]))
    workload = workload.select(np.flatnonzero(plain.partitions.admitted(workload).any(axis=0)))
    qos = {**plain.qos, "high": replace(plain.qos["high"], preempts=("normal", "small"))}
    stops = replace(plain, qos=qos, preempt="qos", preempt_mode="requeue")

    def simulate(made: Any, log: Any, simulator: Any = "compiled") -> tuple[float, Any]:
        began = time.process_time()
        found = Simulation(log, made.policy, made.partitions, simulator=simulator, **made.options).run()
        return time.process_time() - began, found

    first = workload.first(FEW)
    for made in (stops, plain):
        simulate(made, first)  # is loaded
    on_simpy, reference = simulate(stops, first, "simpy")
    seconds, found = simulate(stops, first)
    assert found.hash == reference.hash
    least = without = float("inf")
    for _ in range(repetitions):  # in turn, as the load of the machine changes
        taken, last = simulate(stops, workload)
        least, without = min(least, taken), min(without, simulate(plain, workload)[0])
    return {
        "seconds": least,
        "per_second": len(workload) / least,
        "stops": float((last.attempts.outcome == Outcome.PREEMPTED).sum()),
        "of_plain": least / without,
        "of_simpy": on_simpy / seconds,
    }


def validated(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Validate jobs whose recorded waits are simulated ones, each up to ten minutes longer."""
    from hpcsimkit import Simulation, validate

    made, workload = profile(), jobs(int(source.partition(" ")[0]))
    found = Simulation(workload, made.policy, made.partitions, simulator="compiled", **made.options).run()
    wait = found.start_time - workload.submit_time + np.random.default_rng(1).integers(0, 600, len(workload))
    columns = {**workload.columns, "recorded_wait_time": np.where(found.start_time >= 0, wait, -1)}
    recorded, least = replace(workload, columns=columns), float("inf")
    for _ in range(repetitions):
        began = time.process_time()
        list(validate(recorded, made.policy, made.partitions, **made.options).lines())
        least = min(least, time.process_time() - began)
    return {"seconds": least, "per_second": len(workload) / least}


def advice(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Draw futures of the jobs that wait after a burst, on one core."""
    from hpcsimkit import Simulation
    from hpcsimkit.experiments.advice.futures import Futures
    from hpcsimkit.experiments.comparison.case import Case

    made, workload = profile(), busy(waiting=800)
    result = Simulation(workload, made.policy, made.partitions, simulator="compiled", **made.options).run()
    futures = Futures(Case.of(workload, made.policy, made.partitions, **made.options), result)
    moment = futures.moment(int(workload.submit_time.max()))
    assert len(moment.waiting) > 500
    began = time.process_time()
    drawn = len(list(futures.draw(moment, repetitions, np.random.default_rng(1))))
    seconds = time.process_time() - began
    return {"seconds": seconds, "per_second": drawn / seconds}


def advised(traces: Path, source: str, policy: str, repetitions: int) -> dict[str, float]:
    """Run ``advise`` on a live queue after a burst as a user does, with what it reads and writes."""
    futures = policy.partition(" ")[0]
    calibration = ("--calibration", "0") if "not calibrated" in policy else ()
    least, wall = float("inf"), float("inf")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "conf").mkdir()
        configure(folder / "conf")
        waiting = _write_queue(folder)
        assert waiting > 500
        command = [
            *(sys.executable, "-m", "hpcsimkit.run", "advise", "--queue", str(folder / "squeue.json")),
            *("--history", str(folder / "history.sacct"), "--slurm", str(folder / "conf")),
            *("--futures", futures, *calibration, "--workers", "2"),
        ]
        # Users have the bytecode of all modules, which takes time to make.
        environment = {key: text for key, text in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        for repetition in range(repetitions + 1):  # the first run may compile
            used, began, out = _of_children(), time.perf_counter(), f"{place}/{repetition}"
            subprocess.run([*command, "--out", out], check=True, capture_output=True, env=environment)
            if repetition:
                wall = min(wall, time.perf_counter() - began)
                least = min(least, _of_children() - used)
    return {"seconds": least / 2, "wall": wall, "waiting": waiting}


def _of_children() -> float:
    """Return the processor time of all processes that this one started and that have ended [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _write_queue(folder: Path) -> int:
    """Write the history and the live queue after a burst as Slurm prints them; return how many jobs wait."""
    from hpcsimkit import Simulation

    made, workload = profile(), busy(waiting=800)
    result = Simulation(workload, made.policy, made.partitions, simulator="compiled", **made.options).run()
    at = EPOCH + int(workload.submit_time.max())
    each = [*_records(workload, result)]
    ended = [job for job in each if 0 <= job["End"] <= at]
    live = [job for job in each if not 0 <= job["End"] <= at and job["Submit"] <= at]
    names = ("JobID", "User", "Account", "Partition", "QOS", "State", "Submit", "Eligible", "Start", "End")
    names += ("ElapsedRaw", "TimelimitRaw", "ReqTRES", "AllocTRES", "NodeList")
    lines = ["|".join(names), *("|".join(str(job[name]) for name in names) for job in ended)]
    (folder / "history.sacct").write_text("\n".join(lines) + "\n")
    (folder / "squeue.json").write_text(json.dumps({"jobs": [_in_queue(job, at) for job in live]}))
    return sum(not 0 <= job["Start"] <= at for job in live)


def _records(workload: Any, result: Any) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a simulation as ``sacct`` prints them once they have ended."""
    machines = result.placements
    names = list(profile().partitions.machines.names)
    for row in range(len(workload)):
        start, end = int(result.start_time[row]), int(result.end_time[row])
        nodes, cpus, gpus = (int(workload.column(name)[row]) for name in ("nodes", "cpus", "gpus"))
        memory = int(workload.column("memory")[row]) >> 20
        tres = f"billing={cpus * nodes},cpu={cpus * nodes},mem={memory * nodes}M,node={nodes}"
        tres += f",gres/gpu={gpus * nodes}" if gpus else ""
        label = {name: workload.label(name, int(workload.column(name)[row])) for name in LABELS}
        submit = EPOCH + int(workload.submit_time[row])
        yield {
            "of_queue": label["partition"],
            "of_node": (cpus, gpus, memory, nodes),
            "JobID": row + 1,
            "User": label["user"],
            "Account": label["group"],
            "QOS": label["qos"],
            "Partition": str(result.started_in[row]) or label["partition"],
            "State": "COMPLETED",
            "Submit": submit,
            "Eligible": submit,
            "Start": EPOCH + start if start >= 0 else -1,
            "End": EPOCH + end if start >= 0 else -1,
            "ElapsedRaw": end - start,
            "TimelimitRaw": int(workload.requested_time[row]) // 60,
            "ReqTRES": tres,
            "AllocTRES": tres,
            "NodeList": _node_list(names, machines, row) if start >= 0 else "",
        }


def _node_list(names: list[str], machines: Any, row: int) -> str:
    return ",".join(names[each] for each in machines.allocation(row).machines)


def _in_queue(job: dict[str, Any], at: int) -> dict[str, Any]:
    """Return a job as ``squeue --json`` prints it at a time."""
    runs = 0 <= job["Start"] <= at
    cpus, gpus, memory, nodes = job["of_node"]
    return {
        "job_id": job["JobID"],
        "user_name": job["User"],
        "account": job["Account"],
        "qos": job["QOS"],
        "partition": job["Partition" if runs else "of_queue"],
        "job_state": "RUNNING" if runs else "PENDING",
        "state_reason": "None" if runs else "Priority",
        "submit_time": job["Submit"],
        "eligible_time": job["Submit"],
        "start_time": job["Start"] if runs else 0,
        "time_limit": job["TimelimitRaw"],
        "tres_req_str": job["ReqTRES"],
        "tres_alloc_str": job["AllocTRES"] if runs else "",
        "tres_per_node": f"gres:gpu:{gpus}" if gpus else "",
        "nodes": job["NodeList"] if runs else "",
        "node_count": nodes,
        "cpus": cpus * nodes,
        "memory_per_node": memory,
    }
