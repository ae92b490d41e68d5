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

INTERPRETED = "tests/compiled"
"""Tests that run interpreted: each fault in the compiled simulator would be compiled, which takes minutes."""

LONGEST = 20
"""Time of a test [s] beyond which it fails."""

TIMES = "MUTANTS_TIMES"
"""Environment variable with the file for the times of the tests that pass."""


@pytest.fixture(scope="module", autouse=True)
def nothing_is_compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Functions of the compiled simulator run as Python in its own tests."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.nodeid.startswith(INTERPRETED):
            interpret(patch)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[Any]:
    """Let a test fail that takes too long: a fault may have made an endless loop.

    Not while lines are measured: coverage would hold its lock for ever.
    """
    if TIMES in os.environ:
        return (yield)
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LONGEST)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _too_long(*_: Any) -> None:
    pytest.fail(f"longer than {LONGEST} s")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the time of a test, in the process that collects them."""
    file = os.environ.get(TIMES)
    if file and report.when == "call" and report.passed and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(file).open("a", encoding="utf-8") as opened:
            opened.write(json.dumps([report.nodeid, report.duration]) + "\n")
