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
"""Processor time of a test [s] beyond which its process ends; so it does after ten times as long, if it waits."""

HANGS = 124
"""Exit code of a process with such a test."""

TIMES = "MUTANTS_TIMES"
"""Environment variable with the file for the processor times of the tests that pass."""

PROCESSOR_TIME = "processor time"
"""Property of a test: its processor time [s], which other programs change less than its duration."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_compiled() -> Iterator[None]:
    """Functions of the compiled simulator run as Python: to compile each fault would take minutes."""
    with pytest.MonkeyPatch.context() as patch:
        interpret(patch)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[Any]:
    """End the process if a test takes too long: a fault may have made an endless loop.

    An exception would not do: Hypothesis would try the same again. Not while lines are measured: each test
    takes longer then.
    """
    if TIMES in os.environ:
        began = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            item.user_properties.append((PROCESSOR_TIME, sum(os.times()[:4]) - began))

    timers = {
        signal.SIGPROF: (signal.ITIMER_PROF, LONGEST),
        signal.SIGALRM: (signal.ITIMER_REAL, 10 * LONGEST),
    }
    before = {each: signal.signal(each, lambda *_: os._exit(HANGS)) for each in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        return (yield)
    finally:
        for each, (timer, _) in timers.items():
            signal.setitimer(timer, 0)
            signal.signal(each, before[each])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the processor time of a test, with that of its processes, in the process that collects them."""
    file = os.environ.get(TIMES)
    if file and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(json.dumps([report.nodeid, dict(report.user_properties)[PROCESSOR_TIME]]) + "\n")
