"""Ctrl-C, and what a batch system sends before it kills: heard, and answered when nothing is lost by it."""

from __future__ import annotations

import signal
import threading
from types import TracebackType
from typing import Any

__all__ = ["Stopping"]


class Stopping:
    """A context in which SIGINT and SIGTERM only set :attr:`asked`; who is inside looks at it now and then.

    The second of them is not waited for: it raises KeyboardInterrupt wherever the program is. Signals that
    are ignored stay so; off the main thread, where Python hears no signals, nothing is changed.

    Attributes
    ----------
    asked : bool
        Whether somebody wants it to end.

    Examples
    --------
    >>> with Stopping() as stopping:
    ...     signal.raise_signal(signal.SIGTERM)
    ...     stopping.asked
    True
    """

    def __init__(self) -> None:
        self.asked = False
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
            raise KeyboardInterrupt
        self.asked = True
