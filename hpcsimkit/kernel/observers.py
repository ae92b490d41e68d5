"""Observers: callbacks for the events of a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.timeline import Steps
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.reservation import shadow_time
from hpcsimkit.kernel.stage import Hearing
from hpcsimkit.results.attempts import Outcome

if TYPE_CHECKING:
    from hpcsimkit.kernel.decision import Decision
    from hpcsimkit.kernel.system import System

__all__ = ["Callbacks", "Observer", "Promises", "Timeline"]

BACKFILLED = int(Mode.BACKFILLED)
NOBODY = -1, 0
"""Row and guaranteed start if no job is blocked."""


class Observer:
    """Base class of observers; override the callbacks you need.

    Callbacks that are not overridden cost nothing.

    Attributes
    ----------
    needs_events : bool
        Whether the run must call the callbacks. If False, as for displays of progress, the compiled simulator
        may run without them.
    """

    needs_events = True

    def on_begin(self, system: System) -> None:
        """Called at the beginning of the run, before the first submission."""

    def on_submit(self, job: Job, system: System) -> None:
        """Called when a job has joined the queue."""

    def on_block(self, job: Job, system: System) -> None:
        """Called when the head of the queue does not fit, before other jobs are backfilled.

        On a cluster with partitions, `system` is that of the partition; elsewhere it is the whole cluster.
        """

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Called when a job has started."""

    def on_end(self, job: Job, system: System) -> None:
        """Called when a job has ended."""

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Called when a running job was stopped; if it is final, :meth:`on_end` follows."""

    def on_take(self, capacity: Any, until: int, system: System) -> None:
        """Called when capacity goes out of order until a time [s]."""

    def on_give(self, capacity: Any, system: System) -> None:
        """Called when capacity is in order again."""

    def on_reject(self, job: Job, system: System) -> None:
        """Called when a job was rejected permanently."""

    def on_hold(self, job: Job, reason: str, system: System) -> None:
        """Called when a gate holds a job that is due or in the queue, and when the reason is another one."""

    def on_decision(self, decision: Decision, choice: Any, system: System) -> None:
        """Called when an open seat has been answered, before the choice takes effect.

        On a cluster with partitions, `system` is that of the partition, as it is for :meth:`on_pass`.
        """

    def on_pass(self, seconds: float, system: System) -> None:
        """Called at the end of a pass; `seconds` is the computing time of the policy, excluding agents."""

    def on_finish(self, system: System) -> None:
        """Called at the end of the run."""


class Callbacks:
    """The callbacks of all observers, by event; those that no observer overrides are empty.

    Parameters
    ----------
    observers : sequence of Observer
        The observers of a run.

    Examples
    --------
    >>> callbacks = Callbacks([Observer(), Timeline()])
    >>> len(callbacks.on_submit), len(callbacks.on_pass)
    (1, 0)
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers
        self.on_begin = self._overridden("on_begin")
        self.on_submit = self._overridden("on_submit")
        self.on_block = self._overridden("on_block")
        self.on_start = self._overridden("on_start")
        self.on_end = self._overridden("on_end")
        self.on_stop = self._overridden("on_stop")
        self.on_take = self._overridden("on_take")
        self.on_give = self._overridden("on_give")
        self.on_reject = self._overridden("on_reject")
        self.on_hold = self._overridden("on_hold")
        self.on_decision = self._overridden("on_decision")
        self.on_pass = self._overridden("on_pass")
        self.on_finish = self._overridden("on_finish")

    def add(self, part: Hearing) -> None:
        """Add the methods of a part of a scheduler that follow events."""
        for name in ("on_submit", "on_start", "on_end", "on_stop"):
            if getattr(type(part), name) is not getattr(Hearing, name):
                getattr(self, name).append(getattr(part, name))

    def _overridden(self, name: str) -> list[Callable[..., None]]:
        return [
            getattr(observer, name)
            for observer in self._observers
            if getattr(type(observer), name) is not getattr(Observer, name)
        ]


class Timeline(Observer):
    """Recorder of the numbers of waiting jobs and busy nodes during the run.

    :meth:`Result.timeline` computes the same afterwards; this observer also includes rejected jobs while they
    wait.

    Examples
    --------
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
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
        """The recorded steps so far."""
        return Steps.of(self._time, self._waiting, self._busy)

    def on_begin(self, system: System) -> None:
        """Clear the record of an earlier run."""
        self._forget()

    def on_submit(self, job: Job, system: System) -> None:
        """Record one more waiting job."""
        self._note(system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Record one fewer waiting job and one more running job."""
        self._stopped.discard(job.index)
        self._nodes += system.cluster.main_amount(job, allocation)
        self._note(system)

    def on_end(self, job: Job, system: System) -> None:
        """Record one fewer running job."""
        if job.index not in self._stopped:  # those that were stopped for good have freed their nodes before
            self._nodes -= system.cluster.main_amount(job, system.given(job.index))
        self._note(system)

    def on_stop(self, job: Job, why: Outcome, system: System) -> None:
        """Record one fewer running job."""
        self._stopped.add(job.index)
        self._nodes -= system.cluster.main_amount(job, system.given(job.index))
        self._note(system)

    def on_reject(self, job: Job, system: System) -> None:
        """Record one fewer waiting job."""
        self._note(system)

    def _forget(self) -> None:
        self._time: list[int] = []
        self._waiting: list[int] = []
        self._busy: list[int] = []
        self._stopped: set[int] = set()
        self._nodes = 0

    def _note(self, system: System) -> None:
        """Record the current state; of several records at one instant, the last one counts."""
        waiting = len(system.queue)
        if self._time and self._time[-1] == system.now:
            self._waiting[-1], self._busy[-1] = waiting, self._nodes
        else:
            self._time.append(system.now)
            self._waiting.append(waiting)
            self._busy.append(self._nodes)


class Promises(Observer):
    """Counter of guaranteed start times and reservation violations, for any backfilling rule.

    When a job is blocked at the head of the queue, its guaranteed start time is that of the reservation it
    could have at that moment, before other jobs are backfilled. A reservation violation occurs when the job
    starts later. The guarantee lapses when the order puts another job first, and may be renewed later.
    Pipelines without a backfiller give no guarantees.

    With :class:`~hpcsimkit.kernel.reservation.EASY` there are no violations, unless jobs exceed their
    requested times.

    Attributes
    ----------
    made : int
        Number of jobs that started from the head of the queue after being blocked there.
    broken : int
        Number of reservation violations: those of these jobs that started later than guaranteed.
    delay : int
        Total delay of these jobs [s].

    Examples
    --------
    The second job is blocked and could start at 9 s; the third, which fits, delays it:

    >>> from hpcsimkit.policies import Greedy
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 50], "nodes": [3, 4, 1]}, machine_size=4)
    >>> promises = Promises()
    >>> _ = Simulation(w, Pipeline(backfiller=Greedy()), observers=[promises]).run()
    >>> promises.made, promises.broken, promises.delay
    (1, 1, 43)
    """

    def __init__(self) -> None:
        self._forget()

    def on_begin(self, system: System) -> None:
        """Clear the counts of an earlier run."""
        self._forget()

    def on_block(self, job: Job, system: System) -> None:
        """Record the guaranteed start time when the job is blocked for the first time."""
        if job.index != self._guaranteed.get(system.partition, NOBODY)[0]:
            self._guaranteed[system.partition] = job.index, shadow_time(job, system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Check the guaranteed start time of the job."""
        partition = system.ledger.partition_of(job.index)
        row, start = self._guaranteed.get(partition, NOBODY)
        if job.index == row:
            late = max(system.now - start, 0)
            del self._guaranteed[partition]
            self.made += 1
            self.broken += late > 0
            self.delay += late
        elif system.ledger.modes[job.index] != BACKFILLED:
            self._guaranteed.pop(partition, None)

    def _forget(self) -> None:
        self._guaranteed: dict[str, tuple[int, int]] = {}  # row and start of the head of each partition
        self.made = self.broken = self.delay = 0
