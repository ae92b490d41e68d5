"""How long it will take: by rates that are stated first, and measured as soon as there is anything to see."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from hpcsimkit.reproductions.tasks import Task

__all__ = ["Pace"]

BELIEF = 20.0
"""A stated rate counts as much as so many seconds of measuring."""


class Pace:
    """Follows tasks, and says how long the rest of them will take.

    Parameters
    ----------
    tasks : sequence of Task
        Those that are to be done.
    rates : mapping of str to float
        Stated for each kind of task, of one process [decisions/s].
    workers : int
        How many processes there are.

    Examples
    --------
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
        """Hear that so much of a task is done; the first time, that it has begun there."""
        now = time.monotonic() if now is None else now
        before = self._seen.get(name)
        if before is not None and done >= before[0]:
            kind = self.tasks[name].kind
            self._decisions[kind] += done - before[0]
            self._seconds[kind] += now - before[1]
        self._seen[name] = done, now
        self.done[name] = min(done, self.sizes[name])

    def rate(self, kind: str) -> float:
        """Return how fast a process is with a kind of task [decisions/s]."""
        return self._decisions[kind] / self._seconds[kind]

    def seconds_left(self) -> float:
        """Return how long the rest will take [s]."""
        work = (
            (self.sizes[name] - self.done[name]) / self.rate(task.kind) for name, task in self.tasks.items()
        )
        return sum(work) / self.workers

    def decisions(self) -> tuple[int, int]:
        """Return how many decisions are done, and how many there are in all."""
        return sum(self.done.values()), sum(self.sizes.values())
