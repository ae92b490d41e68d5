"""Tasks that wait for execution, available in their order after those that they require."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hpcsimkit.engine.task import Task
from hpcsimkit.errors import HpcsimkitError


class Waiting:
    """Tasks that have not started.

    Parameters
    ----------
    tasks : sequence of Task
        All tasks, in the order of execution. Requirements that are not among them count as complete.
    failed : callable
        Callback ``failed(task, error)`` for failed tasks, and for those that required them.
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
