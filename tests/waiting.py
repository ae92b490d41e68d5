"""Waiting for other processes: a limit ends a hang, and never tells how fast a machine is."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

PATIENCE = 1200
"""Seconds until a test gives up."""


def until(condition: Callable[[], bool], process: subprocess.Popen[Any] | None = None) -> None:
    """Wait until something has happened, which `process`, if given, lives to see."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it never happened"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.005)
