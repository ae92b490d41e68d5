"""Detection of stalled runs, in which jobs would wait forever."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hpcsimkit.errors import StalledError
from hpcsimkit.kernel.system import System

__all__ = ["IDLE_WAKES", "IdleWakes", "finish", "stalled"]

IDLE_WAKES = 10_000
"""Maximum number of consecutive wake-ups without a job start while no job runs and no event is pending."""


def stalled(system: System) -> StalledError:
    """Return the error of a run in which jobs wait forever."""
    job = system.queue.first()
    return StalledError(
        f"stalled at t={system.now} s: {len(system.queue)} jobs wait, nothing runs, nothing is to come; "
        f"job {job.id} {system.cluster.shortage(job, system.free)}"
    )


def finish(system: System, tells: Iterable[Callable[[System], None]]) -> None:
    """End a run in which no event is left, and notify its observers.

    Raises
    ------
    StalledError
        Jobs are still waiting, held or suspended.
    """
    if len(system.queue):
        raise stalled(system)
    held = system.ledger.first_held()
    if held is not None:
        _, reason = system.ledger.held.get(held.index, (0, ""))
        raise StalledError(
            f"stalled at t={system.now} s: job {held.id} is held by a gate, and nothing is to come "
            f"({reason or 'stopped'})"
        )
    if system.suspended:
        job = system.jobs[next(iter(system.suspended))]
        raise StalledError(f"stalled at t={system.now} s: job {job.id} is suspended, and nothing is to come")
    for notify in tells:
        notify(system)


class IdleWakes:
    """Counter of wake-ups without running jobs, pending events and job starts."""

    def __init__(self) -> None:
        self._version = self._count = 0

    def too_many(self, system: System) -> bool:
        """Count a wake-up; return whether the policy exceeds the limit of idle wake-ups."""
        idle = system.version == self._version and not system.anything_ahead
        self._version, self._count = system.version, self._count + 1 if idle else 0
        return self._count > IDLE_WAKES
