"""Encoder of job-machine pairs with expected run times and the resources that a start would take."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hpcsimkit.agents.spaces.machine_encoders import amounts_inverted, checked_machines
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.one_seat.dispatch import PairDecision

__all__ = ["PairProspects", "past_run_times"]

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]

USUAL_SHARE = 0.13
"""Mean run time as a share of the requested time, for unknown requests (Beocat, March and April 2021)."""

BELIEF = 3.0
"""Weight of prior knowledge, as a number of jobs that have ended in the run."""


def past_run_times(workload: Workload) -> list[list[int]]:
    """Return the total run times of past jobs, grouped by request.

    Parameters
    ----------
    workload : Workload
        Past jobs: a log, or a part of it.

    Returns
    -------
    list of lists of int, shape (kinds, resources + 3)
        Rows of distinct requests: amounts, requested time [s], number of jobs, total run time [s].

    Examples
    --------
    >>> columns = {"submit_time": [0, 1, 2], "run_time": [5, 7, 9], "nodes": [1] * 3, "cpus": [4, 4, 8],
    ...            "requested_time": [60, 60, 60]}
    >>> past_run_times(Workload(columns, resources=("cpus",)))
    [[4, 60, 2, 12], [8, 60, 1, 9]]
    """
    asked = [workload.column(name) for name in workload.resources]
    kinds, of_job = np.unique(np.column_stack([*asked, workload.requested_time]), axis=0, return_inverse=True)
    of_job = of_job.ravel()
    counts = np.bincount(of_job, minlength=len(kinds))
    sums = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(sums, of_job, workload.run_time)
    return list(np.column_stack([kinds, counts, sums]).tolist())


class PairProspects(Encoder):
    """One row per pair of job and machine: expected run time, and the resources that a start would take.

    With R resources, a row for each slot s and machine m, all zeros where the pair is no option:

    ============ ================== ============ =============================================================
    row          column             range        meaning
    ============ ================== ============ =============================================================
    s machines+m 0                  1            1 if the pair is an option
    s machines+m 1                  -1 to 2      requested time (*)
    s machines+m 2                  -1 to 2      expected run time (*)
    s machines+m 3                  -1 to 2      wait time so far (*)
    s machines+m 4                  -1 to 1      1 + log10(largest share of a resource of all machines) / 2
    s machines+m 5+k                0 to 1       share of resource k of machine m left after the start
    s machines+m 5+R+k              -1 to 1      capacity of m minus request for k, over the largest capacity
    s machines+m 5+2R+k             -1 to 3      column 5+R+k times (1 + column 1)
    s machines+m 5+3R+k             -1 to 3      column 5+R+k times (1 + column 2)
    s machines+m 5+4R               0 to 3       1 + extension of the time that m is in use, as requested (*)
    s machines+m 6+4R+k             -1 to 3      column 5+R+k times column 5+4R
    ============ ================== ============ =============================================================

    (*) log10(1 + seconds) / 3 - 1: -0.9 for a second, 0 for a quarter of an hour, 1 for ten days.

    The expected run time is the mean run time of jobs with the same request: those that have ended in this
    run, and past ones, which weigh as much as three jobs. Only information available to a scheduler is used.

    Parameters
    ----------
    slots : int
        Number of job slots.
    machines, resources : int
        Number of machines, and number of resources of each.
    past : list of lists of int, optional
        Result of :func:`past_run_times`. Without it, or for unknown requests, the prior run time is 13 % of
        the requested time.
    products : bool
        Whether the products of two columns are included; without them, column 5 + 4R is column 5 + 2R, the
        last one. Default: True.
    """

    reads_compiled = True

    def __init__(
        self,
        slots: int,
        machines: int,
        resources: int,
        past: list[list[int]] | None = None,
        *,
        products: bool = True,
    ) -> None:
        self.slots = slots
        self.machines = machines
        self.resources = resources
        self.past = past
        self.products = products

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots x machines, 6 + 5 resources), without products 6 + 2 resources."""
        return (self.slots * self.machines, 6 + (5 if self.products else 2) * self.resources)

    def bind(self, system: System) -> Encode:
        """Precompute the features of jobs and machines that do not change during the run."""
        cluster = checked_machines(self, system, self.machines, self.resources)
        inverse, largest = amounts_inverted(cluster.capacity), amounts_inverted(cluster.capacity.max(axis=0))
        requested, submitted = system.workload.requested_time, system.column("submit_time")
        expected = ExpectedRunTimes(system, cluster, self._past())
        asked = cluster.needs.amounts
        beyond = (cluster.capacity[None] - asked[:, None]) * largest
        share = (asked * amounts_inverted(cluster.capacity.sum(axis=0))).max(axis=1)
        size, as_requested, r = 1 + np.log10(share + 1e-4) / 2, logarithm(requested), self.resources

        def encode(decision: Decision, out: Observation) -> None:
            if not isinstance(decision, PairDecision):
                raise UsageError(f"{self!r} needs pairs of jobs and machines, found {decision!r}")
            rows, needs = decision.rows, decision.numbers
            pairs = out.reshape(self.slots, self.machines, -1)[: len(rows)]
            likely, surplus = logarithm(expected.of(rows)), beyond[needs]
            longer = 1 + logarithm(
                np.maximum(requested[rows][:, None] - in_use_for(system, self.machines), 0)
            )
            pairs[:, :, 0] = 1
            pairs[:, :, 1] = as_requested[rows][:, None]
            pairs[:, :, 2] = likely[:, None]
            pairs[:, :, 3] = logarithm(system.now - submitted[rows])[:, None]
            pairs[:, :, 4] = size[needs][:, None]
            pairs[:, :, 5 : 5 + r] = np.maximum(system.free - asked[needs][:, None], 0) * inverse
            pairs[:, :, 5 + r : 5 + 2 * r] = surplus
            if self.products:
                pairs[:, :, 5 + 2 * r : 5 + 3 * r] = surplus * (1 + as_requested[rows])[:, None, None]
                pairs[:, :, 5 + 3 * r : 5 + 4 * r] = surplus * (1 + likely)[:, None, None]
                pairs[:, :, 6 + 4 * r :] = surplus * longer[:, :, None]
            pairs[:, :, 5 + (4 if self.products else 2) * r] = longer
            pairs *= decision.valid[:, :, None]

        return encode

    def _past(self) -> Numbers:
        columns = self.resources + 3
        past = np.array(self.past or np.zeros((0, columns)), dtype=np.int64)
        if past.ndim != 2 or past.shape[1] != columns:
            raise UsageError(f"{self!r} needs a past of {columns} columns, found shape {past.shape}")
        return past


class ExpectedRunTimes:
    """Mean run times of jobs with the same request, as known at the current time."""

    def __init__(self, system: System, cluster: Machines, past: Numbers) -> None:
        self._system = system
        requested = system.workload.requested_time
        needs = np.array([cluster.size_of(job) for job in system.jobs], dtype=np.int64)
        kinds, of_job = np.unique(np.column_stack([needs, requested]), axis=0, return_inverse=True)
        self._kind = of_job.ravel()
        known = {tuple(row[:-2]): (row[-2], row[-1]) for row in past.tolist()}
        self._counts = np.full(len(kinds), BELIEF)
        self._sums = np.empty(len(kinds))
        for kind, (need, seconds) in enumerate(kinds.tolist()):
            count, total = known.get((*cluster.needs.amounts[need].tolist(), seconds), (0, 0))
            self._sums[kind] = BELIEF * (total + USUAL_SHARE * seconds) / (count + 1)
        self._seen = 0

    def of(self, rows: NDArray[np.intp]) -> Floats:
        """Return the expected run times of jobs [s], by row of the workload."""
        system, ended = self._system, self._system.ended
        for row in ended[self._seen :]:
            kind = self._kind[row]
            self._counts[kind] += 1
            self._sums[kind] += system.ledger.end_of(row) - system.ledger.start_of(row)
        self._seen = len(ended)
        kinds = self._kind[rows]
        return self._sums[kinds] / self._counts[kinds]


def in_use_for(system: System, machines: int) -> Floats:
    """Return the time until each machine is expected to be idle [s]."""
    seconds = np.zeros(machines)
    now = system.now
    for end, _, allocation in system.running.entries:  # by expected end: the last one determines it
        for machine in allocation.machines:
            seconds[machine] = end - now
    return np.maximum(seconds, 0)


def logarithm(seconds: ArrayLike) -> Floats:
    """Return log10(1 + seconds) / 3 - 1.

    >>> [round(float(each), 2) for each in logarithm([0, 1, 999, 863_999])]
    [-1.0, -0.9, 0.0, 0.98]
    """
    return np.log10(1 + np.asarray(seconds)) / 3 - 1
