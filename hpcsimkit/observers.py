"""Observers: told what happens, never asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.job import Job
from hpcsimkit.reservation import reserve
from hpcsimkit.system import Mode
from hpcsimkit.timeline import Steps

if TYPE_CHECKING:
    from hpcsimkit.decision import Decision
    from hpcsimkit.system import System

__all__ = ["Observer", "Promises", "Timeline"]

BACKFILLED = int(Mode.BACKFILLED)


class Observer:
    """Override what you want to be told; what is not overridden costs nothing."""

    def on_begin(self, system: System) -> None:
        """The run begins; nothing has been submitted yet."""

    def on_submit(self, job: Job, system: System) -> None:
        """A job has joined the queue."""

    def on_block(self, job: Job, system: System) -> None:
        """A job is the head of a pass and does not fit; nothing has been started behind it yet."""

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """A job has started."""

    def on_end(self, job: Job, system: System) -> None:
        """A job has ended."""

    def on_reject(self, job: Job, system: System) -> None:
        """A job was refused for good."""

    def on_decision(self, decision: Decision, choice: Any, system: System) -> None:
        """An open seat was answered; the choice has not been carried out yet."""

    def on_pass(self, seconds: float, system: System) -> None:
        """A pass is over; `seconds` is the time the policy took, without waiting for open seats."""

    def on_finish(self, system: System) -> None:
        """The run is over."""


class Timeline(Observer):
    """Records waiting jobs and busy nodes whenever they change, as the run goes.

    :meth:`Result.timeline` computes the same afterwards; this one also sees rejected jobs wait.

    Examples
    --------
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.simulation import Simulation
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2]}, machine_size=4)
    >>> timeline = Timeline()
    >>> _ = Simulation(w, Pipeline(), observers=[timeline]).run()
    >>> timeline.steps.time.tolist(), timeline.steps.busy.tolist()
    ([0, 1, 9, 13], [3, 3, 2, 0])
    """

    def __init__(self) -> None:
        self._forget()

    @property
    def steps(self) -> Steps:
        """What was recorded so far."""
        return Steps.of(self._time, self._waiting, self._busy)

    def on_begin(self, system: System) -> None:
        """Forget an earlier run."""
        self._forget()

    def on_submit(self, job: Job, system: System) -> None:
        """One more waits."""
        self._note(system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """One fewer waits, one more runs."""
        self._nodes += system.cluster.main_amount(job, allocation)
        self._note(system)

    def on_end(self, job: Job, system: System) -> None:
        """One fewer runs."""
        self._nodes -= system.cluster.main_amount(job, system.given(job.index))
        self._note(system)

    def on_reject(self, job: Job, system: System) -> None:
        """One fewer waits."""
        self._note(system)

    def _forget(self) -> None:
        self._time: list[int] = []
        self._waiting: list[int] = []
        self._busy: list[int] = []
        self._nodes = 0

    def _note(self, system: System) -> None:
        """Record the state now; within an instant the last one counts."""
        waiting = len(system.queue)
        if self._time and self._time[-1] == system.now:
            self._waiting[-1], self._busy[-1] = waiting, self._nodes
        else:
            self._time.append(system.now)
            self._waiting.append(waiting)
            self._busy.append(self._nodes)


class Promises(Observer):
    """Counts what blocked jobs were promised and did not get, whoever backfills behind them.

    When a job is blocked at the head of the queue, the reservation that it could have at that moment, before
    anything is started behind it, is its promise. A promise is broken when the job starts later. It lapses
    when the order puts another job first, and may be made anew. Pipelines without a backfiller make none.

    With :class:`~hpcsimkit.reservation.EASY` none is broken, unless jobs outlive their requested times.

    Attributes
    ----------
    made : int
        Jobs that started from the head of the queue, after they had been blocked there.
    broken : int
        Those of them that started later than promised.
    delay : int
        By how much in all [s].

    Examples
    --------
    The blocked second job could start at 9 s; the third, which fits, keeps it waiting:

    >>> from hpcsimkit.policies import Greedy
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.simulation import Simulation
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 50], "nodes": [3, 4, 1]}, machine_size=4)
    >>> promises = Promises()
    >>> _ = Simulation(w, Pipeline(backfiller=Greedy()), observers=[promises]).run()
    >>> promises.made, promises.broken, promises.delay
    (1, 1, 43)
    """

    _job: int
    _at: int

    def __init__(self) -> None:
        self._forget()

    def on_begin(self, system: System) -> None:
        """Forget an earlier run."""
        self._forget()

    def on_block(self, job: Job, system: System) -> None:
        """Note when the job could start, the first time."""
        if job.index != self._job:
            self._job, self._at = job.index, reserve(job, system)[0]

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """See whether the promise is kept."""
        if job.index == self._job:
            late = max(system.now - self._at, 0)
            self._job = -1
            self.made += 1
            self.broken += late > 0
            self.delay += late
        elif system.modes[job.index] != BACKFILLED:
            self._job = -1

    def _forget(self) -> None:
        self._job = -1
        self._at = self.made = self.broken = self.delay = 0
