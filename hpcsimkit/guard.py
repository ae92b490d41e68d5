"""What keeps a run from failing far away, or never: foreign errors in one line, and no waiting for ever."""

from __future__ import annotations

import traceback
from types import TracebackType

from simpy.core import EmptySchedule

from hpcsimkit.clock import Clock
from hpcsimkit.errors import HpcsimkitError, PolicyError, StalledError
from hpcsimkit.system import System

__all__ = ["IDLE_WAKES", "Guard", "IdleWakes", "stalled"]

IDLE_WAKES = 10_000
"""So often may a policy be woken while nothing runs and nothing is to come, without starting anything."""


class Guard:
    """A context in which a policy or an observer has a hand.

    What they raise leaves it as a :class:`PolicyError` that names the policy, the time and their own line. A
    run that has failed stays failed: :meth:`check` raises the same error again.

    Parameters
    ----------
    name : str
        What the run calls its policy.
    clock : Clock
        Of the run.

    Examples
    --------
    >>> with Guard("mine", Clock(7)):  # doctest: +ELLIPSIS
    ...     1 / 0
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.PolicyError: mine at t=7 s: ZeroDivisionError: division by zero (...:2)
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self.name = name
        self.clock = clock
        self.failure: HpcsimkitError | None = None

    def check(self) -> None:
        """Raise what has been raised before, if anything has."""
        if self.failure is not None:
            raise self.failure

    def __enter__(self) -> None:
        self.check()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        if isinstance(error, HpcsimkitError):
            self.failure = error
        elif isinstance(error, Exception) and not isinstance(error, EmptySchedule):
            self.failure = self.in_one_line(error)
            raise self.failure from error

    def in_one_line(self, error: Exception) -> PolicyError:
        """Return what was raised, and the last line outside of libraries that it came through."""
        frames = traceback.extract_tb(error.__traceback__)
        where = next((f for f in reversed(frames) if "site-packages" not in f.filename), frames[-1])
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return PolicyError(f"{self.name} at t={self.clock.now} s: {what} ({where.filename}:{where.lineno})")


def stalled(system: System) -> StalledError:
    """Return the error of a run in which jobs wait for ever."""
    job = system.queue.first()
    return StalledError(
        f"stalled at t={system.now} s: {len(system.queue)} jobs wait, nothing runs, nothing is to come; "
        f"job {job.id} {system.cluster.shortage(job, system.free)}"
    )


class IdleWakes:
    """Counts the wake-ups of a run in which nothing runs, nothing is to come and nothing is started."""

    def __init__(self) -> None:
        self._version = self._count = 0

    def too_many(self, system: System) -> bool:
        """Count one more, and tell whether the policy waits for ever for what only it can bring about."""
        idle = system.version == self._version and not system.anything_ahead
        self._version, self._count = system.version, self._count + 1 if idle else 0
        return self._count > IDLE_WAKES
