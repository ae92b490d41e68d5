"""Two small months in the format of Beocat's logs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

__all__ = ["MONTHS", "write_months"]

MONTHS = {"march": [150, 40, 45, 10], "april": [50, 90, 25]}
"""Jobs of successive days; some jobs fit none of the nine machines."""


def write_months(folder: Path) -> list[Path]:
    """Write both, a file each, the jobs of a day within six hours."""
    rng, number, paths = np.random.default_rng(5), 1, []
    for month, (name, counts) in enumerate(MONTHS.items(), start=3):
        rows = ["JobName,ReqMem,ReqCPUs,ReqGPUs,ReqDuration,ActualDuration,Submit"]
        for day, jobs in enumerate(counts, start=1):
            midnight = int(datetime(2021, month, day, tzinfo=ZoneInfo("America/Chicago")).timestamp())
            for second in np.sort(rng.integers(0, 20_000, jobs)).tolist():
                cpus, gpus = int(rng.integers(1, 65)), int(rng.random() < 0.1)
                memory, run = int(rng.integers(1, 600)) * 10**6, int(rng.integers(60, 50_000))
                rows.append(f"job{number},{memory},{cpus},{gpus},{run * 2},{run},{midnight + second}")
                number += 1
        paths.append(folder / f"{name}.csv")
        paths[-1].write_text("\n".join(rows) + "\n")
    return paths
