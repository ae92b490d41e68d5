"""One seat with two levels of decisions: jobs to start or reserve, and jobs to backfill."""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.pipeline import ask
from hpcsimkit.kernel.policy import FCFS, Order, Policy
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.system import System

__all__ = ["STAGE", "TwoLevel"]

STAGE = "two-level"
"""Name of the stage in the seat's decisions."""

_READY, _RESERVED, _BACKFILLED = map(int, (Mode.READY, Mode.RESERVED, Mode.BACKFILLED))


class TwoLevel(Policy):
    """Policy that asks one seat on two levels: for jobs to start or reserve, then for jobs to backfill.

    Level 1 offers the jobs that have waited longest. A selected job that fits is started; a selected job that
    does not fit gets the reservation and keeps it until it starts, and there are no decisions on level 1 in
    the meantime. Level 2 offers the jobs that fit now without delaying the reserved job, by the rules of
    :class:`~hpcsimkit.kernel.reservation.EASY`; each selected job starts at once, until no candidate is left.
    The ``job`` of a decision is the reserved job on level 2 and None on level 1. (Fan et al., IEEE TPDS 2022,
    section 3.2.)

    The schedule is that of ``Pipeline(order=..., backfiller=EASY(), commit=True, window=...)`` with the same
    open seat as order and as candidate order of the backfiller.

    Parameters
    ----------
    seat : External
        The seat that decides on both levels.
    window : int
        Maximum number of jobs offered, >= 1; W in the paper.
    order : Order, optional
        Order of the jobs in both windows; by default first come, first served. The window of level 1 always
        holds the jobs that arrived first, independent of this order.

    Examples
    --------
    On 4 nodes: job 1 runs, job 2 needs all of them and gets the reservation; of the others only job 4 ends
    before that.

    >>> from hpcsimkit import Simulation, Workload
    >>> columns = {"submit_time": [0, 1, 1, 1], "run_time": [9, 5, 20, 8], "nodes": [2, 4, 2, 2]}
    >>> workload = Workload(columns, machine_size=4)
    >>> simulation = Simulation(workload, TwoLevel(External(), window=2))
    >>> while (decision := simulation.next_decision()) is not None:
    ...     print([job.id for job in decision.options], "behind", decision.job and decision.job.id)
    ...     simulation.answer_position(0)
    [1] behind None
    [2, 3] behind None
    [4] behind 2
    [3] behind None
    >>> simulation.result().start_time.tolist()
    [0, 9, 14, 1]
    """

    heeds_calendar = False

    def __init__(self, seat: External, window: int = 50, order: Order | None = None) -> None:
        self.seat = seat
        self.window = window
        self.order = order

    @property
    def queue_order(self) -> Order:
        """The order in which jobs are offered."""
        return self.order if self.order is not None else FCFS()

    def check(self) -> None:
        """Check the seat and the window."""
        if not isinstance(self.seat, External):
            raise UsageError(f"the seat of two levels needs an External, found {self.seat!r}")
        if not (isinstance(self.window, int) and self.window >= 1):
            raise UsageError(f"window needs a whole number of at least 1, found {self.window!r}")

    def reset(self, system: System) -> None:
        """Start without a reservation."""
        self._reserved: Job | None = None
        self._filler = EASY()
        self._filler.reset(system)
        self.seat.reset(system)

    def schedule(self, system: System) -> Generator[Decision, Any, None]:
        """Run a pass: level 1 until a job does not fit, then level 2 until no candidate is left."""
        while system.queue:
            job, mode = self._reserved, _RESERVED
            if job is None or not system.ledger.waits(job.index):
                job, mode = (yield from self._ask(system, system.queue.oldest(self.window))), _READY
            if not system.fits(job):
                break
            self._reserved = None
            system.start(job, None, mode)
        else:
            return
        self._reserved = job
        system.listener.on_block(job)
        while candidates := list(islice(self._filler.fill(job, system), self.window)):
            chosen = yield from self._ask(system, candidates, job)
            place = system.cluster.place(chosen, self._filler.level(chosen, system))
            system.start(chosen, place, _BACKFILLED)

    def _ask(
        self, system: System, jobs: list[Job], reserved: Job | None = None
    ) -> Generator[Decision, Any, Job]:
        """Ask the seat to select one of the jobs; the default is the first."""
        decision = Decision(STAGE, system, reserved, options=lambda: jobs, default=lambda: jobs[0])
        return (yield from ask(self.seat, decision))
