"""Passes that are recorded, and repeated without asking the policy."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.capacity import Listener
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.memory import Memories
from hpcsimkit.kernel.scheduler import Scheduler
from hpcsimkit.kernel.system import System
from hpcsimkit.results.attempts import Outcome

__all__ = ["RecordedRun", "Recorder", "Repeated"]

Integers = NDArray[np.int64]

NONE = -1


class Action(IntEnum):
    """An action of a pass."""

    START = 0
    REJECT = 1
    STOP = 2
    WAKE = 3
    PLAN = 4
    BLOCK = 5
    HOLD = 6
    SUSPEND = 7
    RESUME = 8


class RecordedRun(Protocol):
    """The part of a :class:`~hpcsimkit.kernel.run.Run` that is recorded."""

    system: System

    @property
    def acting(self) -> list[Scheduler]:
        """The schedulers that have passes."""
        ...


class Repeated:
    """The passes of an earlier run, up to one of them, and the memory of the policy before that one.

    Parameters
    ----------
    actions : array of int64, shape (actions, 4)
        Kind, row or time, and two further values of each action.
    passes : array of int64, shape (passes, 2)
        Number of the scheduler, and number of actions before each pass.
    allocations : sequence of Allocation
        Allocations of the starts, in their order; empty with homogeneous nodes.
    state : str
        Hash of the state of the run after these passes.
    memory : object
        Memory of the policies, see :class:`~hpcsimkit.kernel.memory.Memories`.
    arrays : sequence of array
        Arrays of the memory.
    """

    def __init__(
        self,
        actions: Integers,
        passes: Integers,
        allocations: Sequence[Allocation],
        state: str,
        memory: Any,
        arrays: Sequence[NDArray[Any]],
    ) -> None:
        self.actions = actions
        self.passes = passes
        self.allocations = allocations
        self.state = state
        self.memory = memory
        self.arrays = arrays


class Recorder:
    """The record of the passes of a run; it may repeat passes of an earlier run first.

    Parameters
    ----------
    run : RecordedRun
        The run, before its first event.
    before_pass : callable
        Function that is called before each pass that is not repeated, with this recorder.
    repeated : Repeated, optional
        Passes to repeat first.
    """

    def __init__(
        self,
        run: RecordedRun,
        before_pass: Callable[[Recorder], None],
        repeated: Repeated | None = None,
    ) -> None:
        self._run, self._before_pass = run, before_pass
        self._actions, self._passes = array("q"), array("q")
        self._allocations: list[Allocation] = []
        self._on_machines = run.system.allocations is not None
        self._schedulers = run.acting
        self._repetition = None if repeated is None else _Repetition(repeated, self._schedulers)
        for place, scheduler in enumerate(self._schedulers):
            scheduler.system.listener = _Heard(self, scheduler.system)
            scheduler.wrap_passes(partial(partial, self._pass, place))

    @property
    def now(self) -> int:
        """The time of the run [s]."""
        return self._run.system.now

    @property
    def passes(self) -> int:
        """Number of passes so far."""
        return len(self._passes) // 2

    @property
    def memories(self) -> Memories:
        """The memory of the policies."""
        return Memories([(each.acting_policy, each.system) for each in self._schedulers])

    def so_far(self) -> Repeated:
        """Return the passes so far, with the state and the memory before the next one.

        Raises
        ------
        UsageError
            A stage keeps something that cannot be written.
        """
        memory, arrays = self.memories.written()
        actions = np.array(self._actions, dtype=np.int64).reshape(-1, 4)
        passes = np.array(self._passes, dtype=np.int64).reshape(-1, 2)
        state = _hash_of_state(self._run.system)
        return Repeated(actions, passes, list(self._allocations), state, memory, arrays)

    def note(self, kind: int, first: int, second: int = 0, third: int = 0) -> None:
        """Record an action."""
        self._actions.extend((kind, first, second, third))

    def note_start(self, row: int, mode: int, limit: int, allocation: Allocation) -> None:
        """Record a start, with the time limit of a test [s]."""
        self.note(Action.START, row, mode, limit)
        if self._on_machines:
            self._allocations.append(allocation)

    def _pass(self, place: int, schedule: Callable[[System], Any], system: System) -> Any:
        """Run a pass: repeat it, or let the policy make it."""
        repetition = self._repetition
        if repetition is not None and not repetition.is_over:
            self._passes.extend((place, len(self._actions) // 4))
            repetition.repeat(place, system)
            return None
        if repetition is not None:
            repetition.check(_hash_of_state(self._run.system))
            repetition.restore(self.memories)
            self._repetition = None
        self._before_pass(self)
        self._passes.extend((place, len(self._actions) // 4))
        return schedule(system)


class _Heard(Listener):
    """The listener of a system, whose notifications are recorded."""

    def __init__(self, recorder: Recorder, system: System) -> None:
        self._recorder, self._system, self._next = recorder, system, system.listener
        self.policy = self._next.policy

    def on_start(self, job: Job, allocation: Any) -> None:
        """Record a start."""
        ledger, row = self._system.ledger, job.index
        limit = ledger.estimates[row] if ledger.modes[row] == Mode.TESTED else 0
        self._recorder.note_start(row, ledger.modes[row], limit, allocation)
        self._next.on_start(job, allocation)

    def on_test(self, job: Job) -> None:
        """Forward a test, which follows from the mode of the start."""
        self._next.on_test(job)

    def on_reject(self, job: Job) -> None:
        """Record a rejection."""
        self._recorder.note(Action.REJECT, job.index)
        self._next.on_reject(job)

    def on_stop(self, job: Job, why: Outcome, requeue: bool, delay: int) -> None:
        """Record a stop."""
        self._recorder.note(Action.STOP, job.index, list(Outcome).index(why), 2 * delay + requeue)
        self._next.on_stop(job, why, requeue, delay)

    def on_suspend(self, job: Job, allocation: Any) -> None:
        """Record a suspension."""
        self._recorder.note(Action.SUSPEND, job.index)
        self._next.on_suspend(job, allocation)

    def on_resume(self, job: Job) -> None:
        """Record that a suspended job goes on."""
        self._recorder.note(Action.RESUME, job.index)
        self._next.on_resume(job)

    def on_wake(self, at: int) -> None:
        """Record a wake-up."""
        self._recorder.note(Action.WAKE, at)
        self._next.on_wake(at)

    def on_plan(self, at: int | None) -> None:
        """Record a planned pass."""
        self._recorder.note(Action.PLAN, NONE if at is None else at, int(at is None))
        self._next.on_plan(at)

    def on_block(self, job: Job) -> None:
        """Record a blocked job."""
        self._recorder.note(Action.BLOCK, job.index)
        self._next.on_block(job)

    def on_hold(self, job: Job, reason: str) -> None:
        """Record a job that is skipped; the reason follows from the policy."""
        self._recorder.note(Action.HOLD, job.index)
        self._next.on_hold(job, reason)

    def on_take(self, capacity: Any, until: int, number: int) -> None:
        """Forward an outage, which follows from the outages of the run."""
        self._next.on_take(capacity, until, number)

    def another(self, policy: Any) -> Any:
        """Return a simulation of another policy."""
        return self._next.another(policy)


class _Repetition:
    """The passes that are left to repeat."""

    def __init__(self, repeated: Repeated, schedulers: Sequence[Scheduler]) -> None:
        self._repeated, self._schedulers = repeated, schedulers
        self._next = 0
        self._allocations = iter(repeated.allocations)
        ends = [*repeated.passes[1:, 1].tolist(), len(repeated.actions)]
        self._passes = (
            list(zip(*repeated.passes.T.tolist(), ends, strict=True)) if len(repeated.passes) else []
        )

    @property
    def is_over(self) -> bool:
        """Whether no pass is left."""
        return self._next >= len(self._passes)

    def repeat(self, place: int, system: System) -> None:
        """Repeat the next pass."""
        who, first, last = self._passes[self._next]
        self._next += 1
        try:
            if who != place:
                raise UsageError("the passes have another order")
            for kind, one, two, three in self._repeated.actions[first:last].tolist():
                self._act(kind, one, two, three, system)
        except (HpcsimkitError, LookupError, ValueError, StopIteration) as error:
            raise _of_another_run() from error

    def _act(self, kind: int, one: int, two: int, three: int, system: System) -> None:
        if kind == Action.WAKE:
            system.wake(one)
        elif kind == Action.PLAN:
            system.wake(None if two else one, planned=True)
        elif not 0 <= one < len(system.jobs):
            raise IndexError(one)
        elif kind == Action.START:
            allocation = None if system.allocations is None else next(self._allocations)
            system.start(system.jobs[one], allocation, two, limit=three or None)
        elif kind == Action.STOP:
            system.stop(system.jobs[one], list(Outcome)[two], requeue=bool(three % 2), delay=three // 2)
        elif kind == Action.HOLD:
            system.listener.on_hold(system.jobs[one], system.listener.policy.reason_of_gate)
        else:
            acts: dict[int, Callable[[Job], None]] = {
                Action.REJECT: system.reject,
                Action.SUSPEND: system.suspend,
                Action.RESUME: system.resume,
                Action.BLOCK: system.listener.on_block,
            }
            acts[kind](system.jobs[one])

    def check(self, state: str) -> None:
        """Raise a UsageError if the passes have led to another state."""
        if state != self._repeated.state:
            raise _of_another_run()

    def restore(self, memories: Memories) -> None:
        """Set the memory of the policies."""
        try:
            memories.read(self._repeated.memory, self._repeated.arrays)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise UsageError("snapshot: the memory of the policy is damaged") from error


def _of_another_run() -> UsageError:
    return UsageError("snapshot: it does not belong to this run: its passes lead to another schedule")


def _hash_of_state(system: System) -> str:
    """Return a hash of what has happened in a run, and of what is free."""
    ledger = system.ledger
    numbers = np.array([*ledger.starts, *ledger.ends, *ledger.attempts, system.now], dtype=np.int64)
    free = np.asarray(system.free, dtype=np.int64)
    words = [numbers.tobytes(), bytes(ledger.state), bytes(ledger.modes), free.tobytes()]
    return hashlib.sha256(b"".join(words)).hexdigest()[:32]
