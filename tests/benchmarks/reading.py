"""How long logs take to be read: a real one in SWF, and a made-up Slurm year as ``sacct`` prints it."""

from __future__ import annotations

import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FIELDS = (
    "JobID|JobIDRaw|User|Account|Partition|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES|"
    "Constraints|Eligible|NodeList"
)
"""Fields of the guide to Slurm logs."""

STATES = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "OUT_OF_MEMORY")
CONSTRAINTS = ("", "", "", "ib", "a100|v100", "ib&fat")
"""One in six has the separator of the fields in it, as sacct prints it."""

START_OF_YEAR = 1_704_067_200


def slurm_year(count: int) -> Iterator[str]:
    """Yield the lines of a made-up year: 5 % of the jobs never started, 30 % are of arrays."""
    rng = np.random.default_rng(1)
    submit = START_OF_YEAR + np.sort(rng.integers(0, 366 * 86_400, count))
    wait = np.where(
        rng.random(count) < 0.4, rng.integers(0, 5, count), rng.exponential(7200, count).astype(int)
    )
    limit = rng.choice([15, 60, 240, 1440, 5760], count)
    run = 1 + (limit * 60 * rng.beta(0.5, 1.5, count)).astype(int)
    nodes, cpus = rng.choice([1, 1, 1, 1, 2, 8], count), rng.choice([1, 2, 8, 32, 64], count)
    times = (
        np.datetime_as_string(each.astype("datetime64[s]"))
        for each in (submit, submit + wait, submit + wait + run)
    )
    drawn = {
        "state": rng.choice(STATES, count, p=[0.7, 0.12, 0.08, 0.08, 0.02]), "user": rng.zipf(1.4, count) % 600,
        "gpus": np.where(rng.random(count) < 0.2, rng.choice([1, 2, 4], count), 0), "asked": rng.choice(CONSTRAINTS, count),
        "never": rng.random(count) < 0.05, "array": rng.random(count) < 0.3, "first": rng.integers(0, 400, count),
    }  # fmt: skip
    yield FIELDS
    columns = (limit, run, nodes, cpus, *times, *drawn.values())
    for number, row in enumerate(zip(*(column.tolist() for column in columns), strict=True), start=9_000_000):
        yield _line(number, *row)


def _line(number: int, *row: Any) -> str:
    limit, run, nodes, cpus, submit, start, end, state, user, gpus, asked, never, array, first = row
    job = f"{number - number % 50}_{number % 50}" if array else f"{number}"
    models = f"gres/gpu:a100={gpus * nodes},gres/gpu={gpus * nodes}," if gpus else ""
    tres = f"billing={cpus * nodes},cpu={cpus * nodes},{models}mem={4 * cpus * nodes}G,node={nodes}"
    who = f"{job}|{number}|u{user}|a{user % 60}|{'gpu' if gpus else 'cpu'}|normal"
    if never:
        return (
            f"{who}|CANCELLED by 1001|{submit}|None|{start}|0|{limit}|{tres}||{asked}|{submit}|None assigned"
        )
    hosts = f"n{first:04d}" if nodes == 1 else f"n[{first:04d}-{first + nodes - 1:04d}]"
    return f"{who}|{state}|{submit}|{start}|{end}|{run}|{limit}|{tres}|{tres}|{asked}|{submit}|{hosts}"


def read(traces: Path, logs: dict[str, str], source: str, repetitions: int) -> dict[str, float]:
    """Read a log in SWF, or ``slurm:LINES``; returns the least processor time [s] and the peak memory."""
    from hpcsimkit.workloads import read_log

    kind, _, count = source.partition(":")
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "year.sacct" if kind == "slurm" else traces / logs[source]
        if kind == "slurm":
            with log.open("w") as file:
                file.writelines(f"{line}\n" for line in slurm_year(int(count)))
        seconds = float("inf")
        for _ in range(repetitions):
            began = time.process_time()
            read_log(log)
            seconds = min(seconds, time.process_time() - began)
    return {"seconds": seconds, "read_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
