"""Waiting for other processes: a limit ends a hang, and never tells how fast a machine is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

PATIENCE = 1200
"""Seconds until a test gives up."""


class Process(Protocol):
    """A process as of ``subprocess.Popen``."""

    def poll(self) -> int | None:
        """Return its exit code; none as long as it runs."""

    def communicate(self) -> tuple[Any, Any]:
        """Wait for the end; returns what it has printed."""


def until(condition: Callable[[], bool], process: Process | None = None) -> None:
    """Wait until something has happened, which `process`, if given, lives to see."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.005)
