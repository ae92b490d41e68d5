"""What all tests share: where the repository is, and where the real logs and reference schedules are."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session", autouse=True)
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard, also by tests that are started in the background, and by what they start."""
    before = signal.getsignal(signal.SIGINT)
    if before == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs (``traces``) and reference schedules (``refs``); skips where it is absent."""
    folder = Path(os.environ.get("HPCSIMKIT_SHARED") or ROOT.parent / "shared")
    if not (folder / "traces").is_dir():
        pytest.skip(
            f"no real logs in {folder}: set HPCSIMKIT_SHARED to the folder that holds traces/ and refs/"
        )
    return folder
