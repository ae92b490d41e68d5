"""Statistical clones of logs for the command ``generate mimic``."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.io.budget import refuse_beyond
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.figures import format_duration
from hpcsimkit.workloads import Mimic, read_log, scaled

DAY = 86_400


class MimicOf(Table):
    """Settings of a statistical clone of a log.

    Parameters
    ----------
    log : str
        Path of a log in any format of :func:`hpcsimkit.workloads.readers.logs.read_log`.
    days : float, optional
        Length of the first part of the log to model [days], above 0; by default the whole log.
    divide : int
        Divisor of the cluster size and of job sizes, which are rounded up; 1 or more. Default: 1.
    jobs : int, optional
        Number of jobs to generate, 1 or more; by default that of the modelled part.
    seed : int
        Random seed, 0 or more. Default: 0.
    """

    log: str = Field(min_length=1)
    days: float | None = Field(None, gt=0, allow_inf_nan=False)
    divide: int = Field(1, ge=1, lt=2**31)
    jobs: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)

    def original(self) -> Workload:
        """Read the part of the log to model."""
        log = read_log(self.log)
        if self.days is not None:
            first = int(log.submit_time.min())
            log = log.window(first, first + math.ceil(self.days * DAY))
        return log if self.divide == 1 else scaled(log, self.divide)

    def mimic(self, original: Workload) -> Workload:
        """Generate a statistical clone of a workload; equal parameters and originals give equal jobs."""
        refuse_beyond("jobs", self.jobs or 0, "--jobs")
        return Mimic(original).generate(self.jobs or len(original), np.random.default_rng(self.seed))


def in_a_line(workload: Workload) -> str:
    """Return a one-line summary: jobs, time span, machine and offered load if known, and skipped jobs.

    >>> columns = {"submit_time": [0, 43_200], "run_time": [5400, 0], "nodes": [4, 1]}
    >>> in_a_line(Workload(columns, machine_size=8, skipped={"no run time": 2}))
    'workload: 2 jobs in 12 h on 8 nodes, offered load 0.06, 2 skipped'
    """
    size, skipped = workload.machine_size, sum(workload.skipped.values())
    jobs = f"{grouped(len(workload))} job{'s' * (len(workload) != 1)} in {format_duration(workload.span)}"
    machine = f" on {grouped(size)} nodes" if size else ""
    machine += f", offered load {workload.offered_load():.2f}" if size and workload.span else ""
    return f"{workload.name}: {jobs}{machine}" + (f", {grouped(skipped)} skipped" if skipped else "")
