"""The reference schedules of conservative backfilling beside jobs that exceed their requests.

``python -m tests.references.conservative`` writes ``overruns_64.csv.gz``, the workload by the kit's generator and the
start times by the independent simulator of the tests, which is written from the page of the semantics.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpcsimkit.workloads import default_workload
from tests.kernel.naive_conservative import SCORES, NaiveConservative, Row
from tests.references.workloads import FOLDER, table

NAME, NODES = "overruns_64", 64


def overruns_64() -> pd.DataFrame:
    """Return the built-in workload on fewer nodes; two of five jobs run up to four times their request."""
    rng = np.random.default_rng(22)
    jobs = table(default_workload(rng, jobs=1000, nodes=NODES, load=0.8))
    exceeds = rng.random(len(jobs)) < 0.4
    jobs.loc[exceeds, "requested"] = (jobs.run / rng.uniform(1, 4, len(jobs))).astype(int).clip(lower=20)
    return jobs


def rows_of(jobs: pd.DataFrame, mode: str) -> list[Row]:
    """Return the jobs as rows; in mode `kill`, they end at their requested time."""
    run = jobs.run.clip(upper=jobs.requested) if mode == "kill" else jobs.run
    return list(
        zip(jobs.submit.tolist(), run.tolist(), jobs.requested.tolist(), jobs.nodes.tolist(), strict=True)
    )


if __name__ == "__main__":
    jobs = overruns_64()
    for schedule in ("fcfs.run", "fcfs.kill", "sjf.run", "wfp3.run"):
        order, mode = schedule.split(".")
        starts = NaiveConservative(rows_of(jobs, mode), NODES, SCORES[order]).run().starts
        jobs[f"{order}+conservative.{mode}"] = starts
    jobs.to_csv(FOLDER / f"{NAME}.csv.gz", index=False, compression={"method": "gzip", "mtime": 0})
