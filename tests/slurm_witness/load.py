"""Submissions of a random day to a real Slurm: run within the fast clock, as users would submit.

    python load.py NUMBER SECONDS        with WITNESS_SEED and WITNESS_SHAPE in the environment

It is copied to the folder of the cluster and needs nothing but Python and the commands of Slurm.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass

USERS = ["ada"] * 5 + ["ben"] * 4 + ["cleo"] * 3 + ["dan"] * 3 + ["eve"] * 2 + ["fay"]
WITH_GPUS = {"ada", "ben", "dan", "eve"}


@dataclass(frozen=True)
class Shape:
    """What kind of day it is.

    Parameters
    ----------
    jobs : float
        Factor of the number of submissions.
    median, spread : float
        Median of the run times [s], and standard deviation of their logarithm.
    arrays, dependencies, low, limited : float
        Shares of arrays, of dependent jobs, of QOS `low` (which is preempted by `high`) and of `limited`.
    high : float
        Share of the QOS `high`.
    event : str
        What happens in the middle of the day: ``"maintenance"``, ``"failure"`` or nothing.
    grace : int
        `GraceTime` of the QOS `low` [s].
    """

    jobs: float = 1.0
    median: float = 665.0
    spread: float = 1.0
    arrays: float = 0.04
    dependencies: float = 0.03
    high: float = 0.08
    low: float = 0.15
    limited: float = 0.07
    event: str = ""
    grace: int = 0


SHAPES = {
    "mixed": Shape(),
    "long": Shape(jobs=0.4, median=2400),
    "short": Shape(jobs=2.0, median=200, spread=0.7),
    "arrays": Shape(jobs=0.7, arrays=0.2, dependencies=0.15),
    "limits": Shape(limited=0.3, high=0.2),
    "preemption": Shape(low=0.45, high=0.2),
    "grace": Shape(low=0.45, high=0.2, grace=300),
    "maintenance": Shape(event="maintenance"),
    "failure": Shape(event="failure"),
}


def request(rng: random.Random, user: str, run: int, limit: int) -> tuple[str, list[str], int, int]:
    """Return partition, options, run time [s] and limit [min] of a job."""
    kind = rng.random()
    if kind < 0.45:
        cpus, memory = rng.choice([1, 2, 4, 8]), rng.choice([500, 2000, 8000])
        return "cpu", ["-N1", "-n1", f"-c{cpus}", f"--mem={memory}"], run, limit
    if kind < 0.55:
        nodes, cpus = rng.choice([2, 3, 4]), rng.choice([4, 8])
        return "cpu", [f"-N{nodes}", "--ntasks-per-node=1", f"-c{cpus}", "--mem=4000"], run, limit
    if kind < 0.75 and user in WITH_GPUS:
        model, count = rng.choice(["", "", "a100:", "v100:"]), rng.choice([1, 1, 2])
        return "gpu", ["-N1", "-n1", "-c2", f"--gres=gpu:{model}{count}", "--mem=8000"], run, limit
    if kind < 0.82:
        return "debug", ["-N1", "-n1", "-c2", "--mem=1000"], min(run, 1700), min(limit, 30)
    if kind < 0.90:
        return "spot", ["-N1", "-n1", "-c4", "--mem=4000"], run, limit
    if kind < 0.94:
        return "long", ["-N1", "-n1", "-c8", "--mem=8000"], run, limit
    return "cpu,spot", ["-N1", "-n1", "-c4", "--mem=4000"], run, limit


def submission(rng: random.Random, shape: Shape, known: list[str]) -> list[str]:
    """Return the command line of a submission."""
    user = rng.choice(USERS)
    run = int(min(30_000, max(20, rng.lognormvariate(0, shape.spread) * shape.median)))
    limit = max(1, int(run * rng.choice([1.0, 1.2, 2.0, 4.0, 8.0]) / 60 + 0.5))
    partition, options, run, limit = request(rng, user, run, limit)
    weights = [1 - shape.high - shape.low - shape.limited, shape.high, shape.low, shape.limited]
    qos = "low" if partition == "spot" else rng.choices(["normal", "high", "low", "limited"], weights)[0]
    special = rng.random()
    if special < shape.arrays:
        options.append(f"--array=1-{rng.choice([4, 6])}%2")
        run = min(run, 900)
    elif special < shape.arrays + shape.dependencies and known:
        options.append(f"--dependency=afterok:{rng.choice(known[-8:])}")
    elif special < shape.arrays + shape.dependencies + 0.02:
        options.append("--begin=now+1800")
    elif special < shape.arrays + shape.dependencies + 0.06:
        options.append("--exclusive")
    work = f"sleep {run}" + ("; exit 3" if rng.random() < 0.04 else "")
    plain = ["sbatch", "--parsable", f"--uid={user}", "-J", "job", "-o", "/dev/null", "-p", partition]
    return [*plain, f"--qos={qos}", *options, "-t", str(limit), "--wrap", work]


def happens(shape: Shape, length: float) -> None:
    """Set the grace time, and begin what happens in the middle of the day; a maintenance is known from the beginning on."""
    middle = int(length / 2)
    if shape.grace:
        subprocess.run(
            ["sacctmgr", "-i", "modify", "qos", "low", "set", f"GraceTime={shape.grace}"], check=True
        )
    if shape.event == "maintenance":
        subprocess.Popen(
            f"scontrol create reservation starttime=now+{middle} duration=60 user=root "
            "flags=maint,ignore_jobs nodes=c[1-2]; scontrol show reservation > reservations.txt",
            shell=True,
        )
    elif shape.event == "failure":
        subprocess.Popen(
            # A node that is down and answers returns to service at once (ReturnToService): it drains, too.
            f"sleep {middle}; scontrol update nodename=c2 state=drain reason=broken; "
            "scontrol update nodename=c2 state=down reason=broken; sleep 3600; "
            "scontrol update nodename=c2 state=resume",
            shell=True,
        )


def main() -> None:
    """Submit the jobs of a day."""
    count, length = int(sys.argv[1]), float(sys.argv[2])
    shape = SHAPES[os.environ.get("WITNESS_SHAPE", "mixed")]
    rng = random.Random(int(os.environ.get("WITNESS_SEED", "0")))
    happens(shape, length)
    times = sorted(rng.random() * length for _ in range(int(count * shape.jobs)))
    begin, known = time.time(), list[str]()
    for due in times:
        command = submission(rng, shape, known)
        time.sleep(max(begin + due - time.time(), 0))
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            known.append(done.stdout.strip())
        now = time.time() - begin
        print(
            round(now, 1), round(now - due, 1), done.returncode, *command[2:], done.stderr.strip(), flush=True
        )


if __name__ == "__main__":
    main()
