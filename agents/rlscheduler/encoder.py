"""What RLScheduler's agent sees: the jobs that have waited longest, a row each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.rlbackfilling.encoder import HALF_A_DAY, MOST
from hpcsimkit.agents.schedinspector.features import shares_of
from hpcsimkit.decision import Decision
from hpcsimkit.job import UNKNOWN
from hpcsimkit.learning import Encode, Encoder, Observation
from hpcsimkit.system import System
from hpcsimkit.workload import Workload

__all__ = ["WaitingJobs"]

WAIT, REQUESTED, SIZE, MEMORY, FITS = 0, 1, 2, 3, 7
NUMBERED = {"requested_memory": "largest_memory", "user": "largest_user", "group": "largest_group",
            "executable": "largest_executable"}  # fmt: skip
"""Columns of the log, in their order from 3 on, and the parameters that say what counts as 1."""


class WaitingJobs(Encoder):
    """The jobs to choose from, a row each; all shares are 0.99999 at most, what is unknown is 1.

    ====== ==================================================
    column what
    ====== ==================================================
    0      waited so far, of 12 hours
    1      requested time, of `longest_time`
    2      processors (or nodes), of all
    3      requested memory, of `largest_memory`
    4      number of the user, of `largest_user`
    5      number of the group, of `largest_group`
    6      number of the executable, of `largest_executable`
    7      0.99999 if it fits now, else 0.00001
    ====== ==================================================

    Rows without a job are 0, 1, 1, 1, 1, 1, 1, 0. (RLScheduler, SC 2020, its published code.)

    Parameters
    ----------
    slots : int
        Rows: the first so many options of the decision.
    longest_time : int, optional
        Requested time that counts as 1 [s]; by default the longest one of the workload. Published: the
        longest run time of the whole log.
    largest_memory, largest_user, largest_group, largest_executable : int, optional
        What counts as 1; by default the largest of the workload. Published: the largest of the whole log.
    """

    low, high = 0.0, 1.0

    def __init__(
        self, slots: int = 128, longest_time: int | None = None, largest_memory: int | None = None,
        largest_user: int | None = None, largest_group: int | None = None,
        largest_executable: int | None = None,
    ) -> None:  # fmt: skip
        self.slots = slots
        self.longest_time = longest_time
        self.largest_memory = largest_memory
        self.largest_user = largest_user
        self.largest_group = largest_group
        self.largest_executable = largest_executable

    @classmethod
    def of(cls, log: Workload, slots: int = 128) -> WaitingJobs:
        """Return the encoder with what is largest in a log, as published.

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
        """(slots, 8)."""
        return (self.slots, 8)

    def bind(self, system: System) -> Encode:
        """Lay out what never changes of all jobs, once for the run."""
        slots, cluster, known = self.slots, system.cluster, self._known(system)
        submitted = system.column("submit_time")

        def encode(decision: Decision, out: Observation) -> None:
            jobs = [job for job in decision.options[:slots] if job is not None]
            rows = np.array([job.index for job in jobs], dtype=np.intp)
            of_jobs = out[: len(jobs)]
            of_jobs[:] = known.take(rows, axis=0)
            of_jobs[:, WAIT] = np.minimum((system.now - submitted.take(rows)) / HALF_A_DAY, MOST)
            of_jobs[:, FITS] = np.where(cluster.fit_each(jobs, system.free), MOST, 1 - MOST)
            out[len(jobs) : slots, REQUESTED:FITS] = 1.0

        return encode

    def _known(self, system: System) -> NDArray[np.float64]:
        """Return what never changes of each job, shape (jobs, 8)."""
        log = system.workload
        longest = self.longest_time or int(log.requested_time.max(initial=1))
        known = np.zeros((len(log), 8))
        known[:, REQUESTED] = np.minimum(log.requested_time / longest, MOST)
        known[:, SIZE] = np.minimum(shares_of(system), MOST)
        for place, (column, name) in enumerate(NUMBERED.items(), start=MEMORY):
            values = log.column(column)
            largest = getattr(self, name) or max(int(values.max(initial=1)), 1)
            known[:, place] = np.where(values == UNKNOWN, 1.0, np.minimum(values / largest, MOST))
        return known
