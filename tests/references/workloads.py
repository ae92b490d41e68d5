"""The workloads of the small reference schedules, made by the kit's own generators.

``python -m tests.references.workloads`` writes them beside this file. They are committed, since the streams of
NumPy's distributions may change between versions; ``schedules.py`` adds the start times.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads import default_workload

FOLDER = Path(__file__).parent


def table(jobs: Workload) -> pd.DataFrame:
    """Return what a scheduler is told of each job, and how long it runs."""
    return pd.DataFrame(
        {
            "job": np.arange(1, len(jobs) + 1),
            "submit": jobs.submit_time - int(jobs.submit_time[0]) + 1000,
            "run": np.maximum(jobs.run_time, 1),
            "requested": jobs.requested_time,
            "nodes": jobs.nodes,
        }
    )


def lublin_256() -> pd.DataFrame:
    """Return the built-in workload, smaller."""
    return table(default_workload(np.random.default_rng(19), jobs=1000))


def rounded_64() -> pd.DataFrame:
    """Return a crowded machine: many events of one instant, and every third estimate is half the run time."""
    jobs = table(default_workload(np.random.default_rng(20), jobs=800, nodes=64, load=1.1))
    for column in ("submit", "run", "requested"):
        jobs[column] = (jobs[column] // 600 + 1) * 600
    jobs.loc[jobs.job % 3 == 0, "requested"] = (jobs.run // 1200).clip(lower=1) * 600
    return jobs


def gpu_cluster() -> pd.DataFrame:
    """Return jobs of one machine each, that ask for CPUs, GPUs and memory [GB]."""
    rng = np.random.default_rng(21)
    jobs = table(default_workload(rng, jobs=800, nodes=16, load=1.0)).drop(columns="nodes")
    jobs["cpus"] = rng.choice([1, 2, 4, 8, 16, 32], len(jobs))
    jobs["gpus"] = rng.choice([0, 0, 1, 2, 4], len(jobs))
    jobs["memory"] = rng.integers(1, 129, len(jobs))
    jobs["submit"] = 1000 + (jobs.submit - 1000) // 2
    return jobs


if __name__ == "__main__":
    for make in (lublin_256, rounded_64, gpu_cluster):
        path = FOLDER / f"{make.__name__}.csv.gz"
        make().to_csv(path, index=False, compression={"method": "gzip", "mtime": 0})
