"""Processes that are copies of this one: what takes seconds to load is loaded already.

For tests that kill or interrupt a process. Those of a start as a user types it begin a new interpreter.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from tests.waiting import PATIENCE

__all__ = ["Forked"]


class Forked:
    """A copy of this process that runs a function in a folder, with pipes to it, as of ``subprocess.Popen``.

    It leads a session of its own, and ends with the exit code of the function's ``SystemExit``, if any, else 0.

    Parameters
    ----------
    work : callable
        Function to run.
    folder : Path
        Folder to run it in.
    """

    def __init__(self, work: Callable[[], object], folder: Path) -> None:
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was read
        self.pid = os.fork()
        if not self.pid:
            _run(work, folder, (theirs_in, theirs_out, self._errors.fileno()), (ours_in, ours_out))
        os.close(theirs_in)
        os.close(theirs_out)
        self.stdin = os.fdopen(ours_in, "w", buffering=1)
        self.stdout = os.fdopen(ours_out)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or that of the signal that ended it as a negative number; none as long as it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self) -> int:
        """Wait for the end; returns the exit code."""
        limit = time.monotonic() + PATIENCE
        while (code := self.poll()) is None:
            if time.monotonic() > limit:
                self.send_signal(9)
                raise TimeoutError(f"process {self.pid} does not end")
            time.sleep(0.005)
        return code

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; returns what it has printed, less than a pipe holds, and its errors."""
        self.wait()
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        with self.stdout as printed, self._errors as errors:
            errors.seek(0)
            return printed.read(), errors.read().decode()

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)


def _run(
    work: Callable[[], object], folder: Path, theirs: tuple[int, int, int], ours: tuple[int, int]
) -> NoReturn:
    """Become the copy: streams, session and folder of its own; nothing of the tests runs when it ends."""
    code = 1
    try:
        os.setsid()
        os.chdir(folder)
        for descriptor in ours:
            os.close(descriptor)
        for place, descriptor in enumerate(theirs):
            os.dup2(descriptor, place)
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(place, "w" if place else "r") for place in range(3))
        work()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
        os._exit(code)
