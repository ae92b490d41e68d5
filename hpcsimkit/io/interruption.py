"""Interruption by Ctrl-C or SIGTERM: an orderly end of a run, with a distinctive exit code."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["Stopped", "signal_of", "terminable"]


class Stopped(KeyboardInterrupt):
    """A run was interrupted.

    Parameters
    ----------
    message : str
        State of the run and instructions to resume it; empty where the signal arrives.
    number : int
        Signal number: SIGINT (Ctrl-C) or SIGTERM.
    """

    def __init__(self, message: str = "", number: int = signal.SIGINT) -> None:
        super().__init__(*[message] * bool(message))  # the interrupted component may add its location
        self.number = number


def signal_of(interrupt: KeyboardInterrupt) -> int:
    """Return the signal of an interruption; Python itself raises KeyboardInterrupt for SIGINT only.

    >>> signal_of(KeyboardInterrupt()) == signal.SIGINT, signal_of(Stopped(number=15))
    (True, 15)
    """
    return interrupt.number if isinstance(interrupt, Stopped) else signal.SIGINT


@contextmanager
def terminable() -> Iterator[None]:
    """Raise `Stopped` on SIGTERM, as Ctrl-C raises KeyboardInterrupt.

    An ignored SIGTERM remains ignored. Outside of the main thread, which alone receives signals in Python,
    there is no effect.

    >>> try:
    ...     with terminable():
    ...         signal.raise_signal(signal.SIGTERM)
    ... except Stopped as stopped:
    ...     print(stopped.number)
    15
    """
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or before in (signal.SIG_IGN, None):
        yield
        return
    signal.signal(signal.SIGTERM, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped(number=number)
