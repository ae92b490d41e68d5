"""RLScheduler's encoder: the jobs that have waited longest, one row each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.spaces.fitting import fit_each
from hpcsimkit.agents.spaces.shares import HALF_A_DAY, NEARLY_ONE, shares_of
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.jobs.job import UNKNOWN
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["WaitingJobs"]

WAIT, REQUESTED, SIZE, MEMORY, FITS = 0, 1, 2, 3, 7
NUMBERED = {
    "requested_memory": "largest_memory",
    "user": "largest_user",
    "group": "largest_group",
    "executable": "largest_executable",
}
"""Columns of the log, in order from column 3 on, with the parameters for their units."""


class WaitingJobs(Encoder):
    """The jobs to choose from, one row each; shares are at most 0.99999, and unknown values are 1.

    ====== ==================================================
    column meaning
    ====== ==================================================
    0      wait time so far, over 12 hours
    1      requested time, over `longest_time`
    2      processors (or nodes), over all
    3      requested memory, over `largest_memory`
    4      user number, over `largest_user`
    5      group number, over `largest_group`
    6      executable number, over `largest_executable`
    7      0.99999 if it fits now, else 0.00001
    ====== ==================================================

    Rows without a job are 0, 1, 1, 1, 1, 1, 1, 0. (Published code of RLScheduler, SC 2020.)

    Parameters
    ----------
    slots : int
        Number of rows; the first `slots` options of a decision are encoded.
    longest_time : int, optional
        Unit of requested times [s]; by default the longest one of the workload. Published: the longest run
        time of the whole log.
    largest_memory, largest_user, largest_group, largest_executable : int, optional
        Units of columns 3 to 6; by default the maxima of the workload. Published: those of the whole log.
    """

    low, high = 0.0, 1.0
    reads_compiled = True

    def __init__(
        self,
        slots: int = 128,
        longest_time: int | None = None,
        largest_memory: int | None = None,
        largest_user: int | None = None,
        largest_group: int | None = None,
        largest_executable: int | None = None,
    ) -> None:
        self.slots = slots
        self.longest_time = longest_time
        self.largest_memory = largest_memory
        self.largest_user = largest_user
        self.largest_group = largest_group
        self.largest_executable = largest_executable

    @classmethod
    def of(cls, log: Workload, slots: int = 128) -> WaitingJobs:
        """Return the encoder with the maxima of a log as units, as published.

        >>> columns = {"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4], "user": [-1, 3]}
        >>> WaitingJobs.of(Workload(columns))
        WaitingJobs(longest_time=9, largest_user=3)
        """
        largest: dict[str, Any] = {
            name: int(found) for column, name in NUMBERED.items() if (found := log.column(column).max()) > 0
        }
        return cls(slots, longest_time=int(log.run_time.max()), **largest)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots, 8)."""
        return (self.slots, 8)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        slots, known = self.slots, self._known(system)
        submitted = system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            rows = decision.rows[:slots]
            jobs = decision.options[: len(rows)]
            of_jobs = out[: len(jobs)]
            of_jobs[:] = known.take(rows, axis=0)
            of_jobs[:, WAIT] = np.minimum((system.now - submitted.take(rows)) / HALF_A_DAY, NEARLY_ONE)
            of_jobs[:, FITS] = np.where(fit_each(jobs, system), NEARLY_ONE, 1 - NEARLY_ONE)
            out[len(jobs) : slots, REQUESTED:FITS] = 1.0

        return encode

    def _known(self, system: System) -> NDArray[np.float64]:
        """Return the constant job features, shape (jobs, 8)."""
        log = system.workload
        longest = self.longest_time or int(log.requested_time.max(initial=1))
        known = np.zeros((len(log), 8))
        known[:, REQUESTED] = np.minimum(log.requested_time / longest, NEARLY_ONE)
        known[:, SIZE] = np.minimum(shares_of(system), NEARLY_ONE)
        for place, (column, name) in enumerate(NUMBERED.items(), start=MEMORY):
            values = log.column(column)
            largest = getattr(self, name) or max(int(values.max(initial=1)), 1)
            known[:, place] = np.where(values == UNKNOWN, 1.0, np.minimum(values / largest, NEARLY_ONE))
        return known
