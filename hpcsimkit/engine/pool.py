"""Execution of tasks by the workers of any engine: order, progress, failures, and the death of workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from hpcsimkit.engine.task import Task
from hpcsimkit.errors import HpcsimkitError


class Waiting:
    """Tasks that have not started.

    Requirements that are not among the tasks count as complete. `failed(task, error)` is called for failed
    tasks, and for those that required them.
    """

    def __init__(self, tasks: Sequence[Task], failed: Callable[[Task, Exception], None]) -> None:
        self.failed = failed
        self._waiting = {task.name: task for task in tasks}
        self._incomplete = set(self._waiting)

    def next(self) -> Task | None:
        """Remove and return the first available task; None if there is none."""
        for name, task in self._waiting.items():
            if self._incomplete.isdisjoint(task.requires):
                return self._waiting.pop(name)
        return None

    def put_back(self, task: Task) -> None:
        """Let a task that was started wait again."""
        self._waiting[task.name] = task

    def complete(self, task: Task) -> None:
        """Mark a task as complete."""
        self._incomplete.discard(task.name)

    def fail(self, task: Task, error: Exception) -> None:
        """Report a failed task; those that require it fail, too."""
        self.failed(task, error)
        dependents = [other for other in self._waiting.values() if task.name in other.requires]
        for other in dependents:
            if self._waiting.pop(other.name, None) is not None:
                self.fail(other, HpcsimkitError(f"{other.name}: it requires {task.name}, which failed"))


ATTEMPTS = 2
"""Maximum number of attempts if the worker of a task dies, mostly for lack of memory."""


class WorkerLostError(HpcsimkitError):
    """A worker died while it had a task; the message says how, such as ``its process ended by signal 11``."""


Message = int | Exception | None
"""Message on a task: its progress, its error or the death of its worker, or None once it is complete."""


class Pool(ABC):
    """Workers of an engine, each with one task at a time: a worker that dies loses no other task."""

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Whether a worker is free."""

    @property
    @abstractmethod
    def busy(self) -> bool:
        """Whether a worker has a task."""

    @abstractmethod
    def start(self, task: Task) -> None:
        """Give a task to a free worker."""

    @abstractmethod
    def messages(self) -> Iterable[tuple[Task, Message]]:
        """Wait for messages; there may be none, so that free workers are looked for again."""


def execute(
    pool: Pool,
    tasks: Sequence[Task],
    tell: Callable[[str, int], None],
    failed: Callable[[Task, Exception], None],
) -> None:
    """Execute tasks, each after those of them that it requires.

    A task whose worker dies is attempted once more, by another worker; the other tasks go on.
    """
    waiting = Waiting(tasks, failed)
    deaths: Counter[str] = Counter()
    while True:
        while pool.has_room and (task := waiting.next()) is not None:
            pool.start(task)
        if pool.has_room and not pool.busy:
            return
        for task, message in pool.messages():
            if message is None:
                waiting.complete(task)
            elif isinstance(message, int):
                tell(task.name, message)
            elif not isinstance(message, WorkerLostError):
                waiting.fail(task, message)
            elif deaths[task.name] + 1 < ATTEMPTS:
                deaths[task.name] += 1
                waiting.put_back(task)
            else:
                waiting.fail(task, WorkerLostError(f"{message}, {ATTEMPTS} times"))
