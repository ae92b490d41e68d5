"""A log like a log, as the command ``generate mimic`` makes it."""

from __future__ import annotations

import math

import numpy as np
from pydantic import Field

from hpcsimkit.campaigns.checked_table import Table
from hpcsimkit.campaigns.console import grouped
from hpcsimkit.pictures.figures import format_duration
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import Mimic, read_log, scaled

__all__ = ["MimicOf", "in_a_line"]

DAY = 86_400


class MimicOf(Table):
    """What to be like, and how many jobs.

    Parameters
    ----------
    log : str
        Path of a log of any form that :func:`hpcsimkit.workloads.logs.read_log` understands.
    days : float, optional
        Only the jobs submitted in so many days from the first submission on; by default all.
    divide : int
        For a machine with so many times fewer nodes: sizes are divided by it and rounded up.
    jobs : int, optional
        How many jobs to make; by default as many as there are to be like.
    seed : int
        Where all randomness comes from.
    """

    log: str = Field(min_length=1)
    days: float | None = Field(None, gt=0, allow_inf_nan=False)
    divide: int = Field(1, ge=1)
    jobs: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)

    def original(self) -> Workload:
        """Read the jobs to be like.

        Raises
        ------
        WorkloadError
            The log cannot be used, or its sizes cannot be divided.
        """
        log = read_log(self.log)
        if self.days is not None:
            first = int(log.submit_time.min())
            log = log.window(first, first + math.ceil(self.days * DAY))
        return log if self.divide == 1 else scaled(log, self.divide)

    def mimic(self, original: Workload) -> Workload:
        """Make jobs like others: equal parameters and equal others, equal jobs.

        Raises
        ------
        WorkloadError
            All of the others are submitted at one instant.
        """
        return Mimic(original).generate(self.jobs or len(original), np.random.default_rng(self.seed))


def in_a_line(workload: Workload) -> str:
    """Return what there is: jobs, time, machine and offered load as far as they are known, jobs skipped.

    >>> columns = {"submit_time": [0, 43_200], "run_time": [5400, 0], "nodes": [4, 1]}
    >>> in_a_line(Workload(columns, machine_size=8, skipped={"no run time": 2}))
    'workload: 2 jobs in 12 h on 8 nodes, offered load 0.06, 2 skipped'
    """
    size, skipped = workload.machine_size, sum(workload.skipped.values())
    jobs = f"{grouped(len(workload))} job{'s' * (len(workload) != 1)} in {format_duration(workload.span)}"
    load = f" on {grouped(size)} nodes, offered load {workload.offered_load():.2f}" if size else ""
    return f"{workload.name}: {jobs}{load}" + (f", {grouped(skipped)} skipped" if skipped else "")
