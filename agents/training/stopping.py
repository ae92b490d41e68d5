"""Graceful shutdown on SIGINT (Ctrl-C) and SIGTERM (a batch system's warning before it kills a job)."""

from __future__ import annotations

import signal
import threading
from types import TracebackType
from typing import Any

from hpcsimkit.io.interruption import Stopped


class Stopping:
    """A context in which SIGINT and SIGTERM only set :attr:`asked`, to be polled at safe points.

    The second signal raises :class:`~hpcsimkit.io.interruption.Stopped` at once. Ignored signals stay
    ignored; outside the main thread, where Python cannot handle signals, nothing changes.

    Attributes
    ----------
    asked : bool
        Whether a signal has asked the program to stop.
    number : int
        Number of that signal.

    Examples
    --------
    >>> with Stopping() as stopping:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stopping.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
        self.number: int = signal.SIGINT
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _hear(self, number: int, frame: object) -> None:
        if self.asked:
            raise Stopped(number=number)
        self.asked, self.number = True, number
