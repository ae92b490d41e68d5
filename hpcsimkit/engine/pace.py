"""Estimates of the remaining time of tasks, from stated rates that measurements gradually replace."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from hpcsimkit.engine.task import Task

BELIEF = 20.0
"""Weight of a stated rate, as a duration of measurement [s]."""


class Pace:
    """Estimator of the remaining time of tasks.

    `rates` are the stated rates of one process for each kind of task [decisions/s].

    >>> pace = Pace([], {"training": 1000.0}, workers=2)
    >>> pace.seconds_left()
    0.0
    """

    def __init__(self, tasks: Sequence[Task], rates: Mapping[str, float], workers: int) -> None:
        self.tasks = {task.name: task for task in tasks}
        self.workers = workers
        self.sizes = {task.name: task.size for task in tasks}
        self.done = dict.fromkeys(self.tasks, 0)
        self._seen: dict[str, tuple[int, float]] = {}
        self._decisions = {kind: rate * BELIEF for kind, rate in rates.items()}
        self._seconds = dict.fromkeys(rates, BELIEF)

    def tell(self, name: str, done: int, now: float | None = None) -> None:
        """Report the progress of a task [decisions]; the first report gives its initial progress."""
        now = time.monotonic() if now is None else now
        before = self._seen.get(name)
        if before is not None and done >= before[0]:
            kind = self.tasks[name].kind
            self._decisions[kind] += done - before[0]
            self._seconds[kind] += now - before[1]
        self._seen[name] = done, now
        self.done[name] = min(done, self.sizes[name])

    def rate(self, kind: str) -> float:
        """Return the estimated rate of a process for a kind of task [decisions/s]."""
        return self._decisions[kind] / self._seconds[kind]

    def seconds_left(self) -> float:
        """Return the estimated remaining time [s]."""
        work = (
            (self.sizes[name] - self.done[name]) / self.rate(task.kind) for name, task in self.tasks.items()
        )
        return sum(work) / self.workers

    def decisions(self) -> tuple[int, int]:
        """Return the number of completed decisions and their total number."""
        return sum(self.done.values()), sum(self.sizes.values())
