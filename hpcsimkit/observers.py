"""Observers: told what happens, never asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.job import Job
from hpcsimkit.timeline import Steps

if TYPE_CHECKING:
    from hpcsimkit.decision import Decision
    from hpcsimkit.system import System

__all__ = ["Observer", "Timeline"]


class Observer:
    """Override what you want to be told; what is not overridden costs nothing."""

    def on_begin(self, system: System) -> None:
        """The run begins; nothing has been submitted yet."""

    def on_submit(self, job: Job, system: System) -> None:
        """A job has joined the queue."""

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
