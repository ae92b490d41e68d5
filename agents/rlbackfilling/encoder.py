"""RLBackfilling's encoder: the candidates for backfilling, one row each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hpcsimkit.agents.spaces.shares import HALF_A_DAY, NEARLY_ONE, shares_of
from hpcsimkit.envs.interfaces import Encode, Encoder, Observation
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.dirlab.backfilling import reservation

__all__ = ["Candidates"]

WAIT, REQUESTED, SIZE, OF_GAP, OF_FREE, BLOCKED, PREDICTED = range(7)


class Candidates(Encoder):
    """The jobs that may start behind a blocked one, one row each; all shares are at most 0.99999.

    ====== =======================================================================================
    column meaning
    ====== =======================================================================================
    0      wait time so far, over 12 hours
    1      requested time, over `longest_time`
    2      processors (or nodes), over all
    3      requested time, over the seconds until the blocked job's reservation, plus 2
    4      nodes, over the free ones
    5      0; 1 in the last row with `decline`
    6      with `predicted`: mean run time by the pipeline's predictor, over `longest_time`
    ====== =======================================================================================

    Rows without a candidate are 0, 1, 1, 1, 1, 0, and 1 in column 6. With `decline` a last row shows the
    blocked job, for the action that starts no job. (Published code of RLBackfilling, which has no column 6;
    the paper's section 3.2 describes another observation.)

    Parameters
    ----------
    slots : int
        Number of candidate rows; the first `slots` options of a decision are encoded.
    longest_time : int, optional
        Unit of requested times [s]; by default the longest one of the workload. Published: the longest run
        time of the whole log.
    relax : float
        Delay of the reservation, as a share of the blocked job's wait time.
    decline : bool
        Whether there is a last row for the action that starts no job.
    predicted : bool
        Whether there is a column of predicted run times. (Published: none.) Default: False.

    Examples
    --------
    One of four nodes is free, the blocked job's reservation is in 7 s, and two candidates have just arrived:

    >>> import numpy as np
    >>> from hpcsimkit.agents.rlbackfilling.seat import backfilling_seat
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
    >>> columns = {"submit_time": [0, 1, 2, 2], "run_time": [9, 9, 50, 3], "nodes": [3, 4, 1, 1]}
    >>> simulation = Simulation(Workload(columns, machine_size=4), backfilling_seat(mode="unguarded"))
    >>> decision, seen = simulation.next_decision(), np.zeros((3, 6))
    >>> Candidates(3, longest_time=100).bind(simulation.system)(decision, seen)
    >>> for row in seen.round(3).tolist():
    ...     print(row)
    [0.0, 0.5, 0.25, 1.0, 1.0, 0.0]
    [0.0, 0.03, 0.25, 0.333, 1.0, 0.0]
    [0.0, 1.0, 1.0, 1.0, 1.0, 0.0]
    """

    low, high = 0.0, 1.0
    reads_compiled = True

    def __init__(
        self,
        slots: int = 128,
        longest_time: int | None = None,
        *,
        relax: float = 0.0,
        decline: bool = False,
        predicted: bool = False,
    ) -> None:
        self.slots = slots
        self.longest_time = longest_time
        self.relax = relax
        self.decline = decline
        self.predicted = predicted

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation: (slots, 6); one more row to decline, one more column if `predicted`."""
        return (self.slots + self.decline, PREDICTED + self.predicted)

    def bind(self, system: System) -> Encode:
        """Precompute the job features that do not change during the run."""
        slots, relax, cluster = self.slots, self.relax, system.cluster
        known = self._known(system)
        scale = np.ones(BLOCKED)
        scale[WAIT] = 1 / HALF_A_DAY
        predicted = self._predictions(system)

        def encode(decision: Decision, out: Observation) -> None:
            head = decision.job
            if head is None:
                raise UsageError(f"{self!r} needs a decision behind a blocked job, found {decision!r}")
            rows, now = decision.rows[:slots], system.now
            count = len(rows)
            if self.decline:
                rows = np.append(rows, head.index)
                out[slots, BLOCKED] = 1.0
            scale[OF_GAP] = 1 / (max(reservation(head, system, relax) - now, 0) + 2)
            scale[OF_FREE] = 1 / (cluster.share(system.free) * cluster.size)
            table = known.take(rows, axis=0)
            table[:, WAIT] += now
            table *= scale
            np.minimum(table, NEARLY_ONE, out=table)
            out[:count, :BLOCKED] = table[:count]
            out[count:slots, REQUESTED:BLOCKED] = 1.0
            if self.decline:
                out[slots, :BLOCKED] = table[count]
            if predicted is not None:
                times = np.minimum(list(map(predicted, rows.tolist())), NEARLY_ONE)
                out[:, PREDICTED] = 1.0
                out[:count, PREDICTED] = times[:count]
                out[slots:, PREDICTED] = times[count:]

        return encode

    def _predictions(self, system: System) -> Callable[[int], float] | None:
        """Return a function for the predicted share of the longest time by row; None if it is not shown."""
        if not self.predicted:
            return None
        jobs, longest, prediction = system.jobs, self._longest(system), system.estimator.prediction
        return lambda row: prediction(jobs[row]).mean / longest

    def _longest(self, system: System) -> int:
        """Return the unit of requested times [s]."""
        return self.longest_time or int(system.workload.requested_time.max(initial=1))

    def _known(self, system: System) -> np.ndarray:
        """Return the constant parts of the job features, shape (jobs, 5); decisions scale and shift them."""
        jobs, requested = system.jobs, system.workload.requested_time
        known = np.empty((len(jobs), BLOCKED))
        known[:, WAIT] = -system.column("submit_time")
        known[:, REQUESTED] = requested / self._longest(system)
        known[:, SIZE] = shares_of(system)
        known[:, OF_GAP] = requested
        known[:, OF_FREE] = [system.cluster.asked(job) for job in jobs]
        return known
