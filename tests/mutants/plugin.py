"""Plugin of pytest for tests of faults: nothing is compiled, nothing takes long, and times can be written."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interpreted import interpret

LONGEST = 20
"""Time of a test [s] beyond which its process ends."""

HANGS = 124
"""Exit code of a process with such a test."""

TIMES = "MUTANTS_TIMES"
"""Environment variable with the file for the times of the tests that pass."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    """Functions of the compiled simulator run as Python: to compile each fault would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        interpret(patch)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[Any]:
    """End the process if a test takes too long: a fault may have made an endless loop.

    An exception would not do: Hypothesis would try the same again. Not while lines are measured: each test
    takes longer then.
    """
    if TIMES in os.environ:
        return (yield)

    before = signal.signal(signal.SIGALRM, lambda *_: os._exit(HANGS))
    signal.alarm(LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the time of a test, in the process that collects them."""
    file = os.environ.get(TIMES)
    if file and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(json.dumps([report.nodeid, report.duration]) + "\n")
