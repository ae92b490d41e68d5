"""SimPy's clock in whole seconds, and events with a priority within an instant."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappush
from typing import TYPE_CHECKING, Any

from simpy.core import Environment
from simpy.events import Event

__all__ = [
    "ARRIVAL",
    "BEFORE_ENDS",
    "CHANGE",
    "END",
    "GIVE",
    "OUTAGE",
    "RETURN",
    "TEST",
    "Clock",
    "Instant",
]

BEFORE_ENDS, END, TEST, GIVE, OUTAGE, CHANGE, ARRIVAL, RETURN = 0, 1, 1.125, 1.25, 1.5, 1.75, 2, 3
"""Priorities of events within an instant; SimPy's own timeouts have priority 1."""


class Clock(Environment):
    """SimPy environment in whole seconds."""

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The simulated time [s]."""

    @property
    def pending(self) -> list[Any]:
        """The heap of the events to come, by time [s], the same list all the time; not to be changed."""
        return self._queue

    def next_rank(self) -> float:
        """Return the priority of the next event of this instant, after all others if there is none."""
        if not self._queue or self._queue[0][0] > self._now:
            return float("inf")
        return self._queue[0][1]

    def move_to(self, now: int) -> None:
        """Set the time [s], in a run of a program that has its own events."""
        self._now = now


class Instant(Event):
    """A SimPy timeout with a priority among the events of its instant.

    Examples
    --------
    >>> clock = Clock()
    >>> _ = Instant(clock, ARRIVAL, 5, [lambda event: print("then", event.value)], "a job arrives")
    >>> _ = Instant(clock, END, 5, [lambda event: print("first", event.value)], "a job ends")
    >>> clock.run()
    first a job ends
    then a job arrives
    """

    _ok = True  # for all of them: none fails

    def __init__(
        self,
        env: Environment,
        rank: float,
        delay: int,
        callbacks: list[Callable[[Any], None]],
        value: Any = None,
    ) -> None:
        self.env = env
        self.callbacks = callbacks
        self._value = value
        # As `env.schedule`, without a call for each event.
        heappush(env._queue, (env._now + delay, rank, next(env._eid), self))  # type: ignore[misc]
