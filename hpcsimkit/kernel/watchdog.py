"""Watchdog for passes that hang: a line on standard error names component, simulated time and job."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NamedTuple

from hpcsimkit.errors import UsageError
from hpcsimkit.io.printable import warn
from hpcsimkit.jobs.queue import JobQueue
from hpcsimkit.kernel.guard import Guard, Place

__all__ = ["PATIENCE", "Watchdog", "patience"]

PATIENCE = "HPCSIMKIT_PATIENCE"
"""Environment variable with the time [s] after which a pass is reported."""

SECONDS = 60.0
"""Default time [s] after which a pass is reported."""

LOOKS = 8
"""Number of checks of a pass before it is reported."""


def patience() -> float:
    """Return the time after which a pass is reported [s].

    Raises
    ------
    UsageError
        The environment variable is not a positive number.
    """
    text = os.environ.get(PATIENCE, str(SECONDS))
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise UsageError(f"{PATIENCE} needs a number of seconds greater than 0, found {text!r}")
    return seconds


class Progress(NamedTuple):
    """Progress of a run; equal values indicate that a component has not returned."""

    guard: Guard
    entries: int
    time: int
    passes: int
    submissions_left: int

    @classmethod
    def now(cls, thread: int) -> Progress | None:
        """Return the progress of the outermost run of a thread that advances; None if there is none.

        Encoders and rewards of an agent, and the updates of its learner, belong to no pass: the run waits for
        an answer. Simulations that they run are watched by themselves.
        """
        guard = next((each for each in Guard.active.get(thread, ()) if each.advances), None)
        if guard is None:
            return None
        system = guard.system
        passes, left = (0, 0) if system is None else (system.passes, system.arrivals_left)
        return cls(guard, guard.entries, guard.clock.now, passes, left)


class Watchdog:
    """Context manager that reports a hanging pass once, without stopping it.

    A thread checks the progress of the run periodically; it ends with the context. Only passes and events
    count, not the time for which a run waits for the answer to a decision. Native code that holds
    Python's interpreter lock blocks the thread, and also Ctrl-C.

    Parameters
    ----------
    seconds : float, optional
        Time of one pass after which it is reported [s], > 0; by default the environment variable
        ``HPCSIMKIT_PATIENCE``, else 60 s.
    tell : callable
        Callback for the line; by default it is printed on standard error.

    Examples
    --------
    >>> from hpcsimkit.experiments.parts.registry import make
    >>> from hpcsimkit.kernel.simulation import Simulation
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0], "run_time": [9], "nodes": [3]}, machine_size=4)
    >>> simulation = Simulation(w, make("fcfs"))
    >>> with Watchdog(seconds=600):
    ...     result = simulation.run()
    """

    def __init__(self, seconds: float | None = None, tell: Callable[[str], None] = warn) -> None:
        self.seconds = seconds
        self.tell = tell

    def __enter__(self) -> Watchdog:
        self._patience = patience() if self.seconds is None else self.seconds
        self._watched = threading.get_ident()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="hpcsimkit-watchdog", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        """Check the progress periodically until the context ends."""
        before, looks = None, 0
        while not self._over.wait(self._patience / LOOKS):
            progress = Progress.now(self._watched)
            looks = looks + 1 if progress is not None and progress == before else 0
            before = progress
            if looks == LOOKS and progress is not None:
                self.tell(self._line(progress.guard))

    def _line(self, guard: Guard) -> str:
        """Return the message with the current location of the run."""
        frame = sys._current_frames().get(self._watched)
        place = Place.of(list(traceback.walk_stack(frame)))
        return (
            f"{guard.subject}{place}: one pass has taken {self._patience:g} s and goes on "
            f"({place.line}){_waiting(guard)}; Ctrl-C ends it"
        )


def _waiting(guard: Guard) -> str:
    """Return the number of waiting jobs and the first one stored; no order is called, since it may hang."""
    if guard.system is None or not len(guard.system.queue):
        return ""
    queue = guard.system.queue
    return f"; jobs waiting: {len(queue)}, the first of them job {JobQueue.first(queue).id}"
