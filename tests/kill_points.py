"""A program killed at each of its file operations in turn; then it goes on, and what it leaves is compared.

Operations are counted by an audit hook, in a forked process and in those that it forks itself. A kill is one of
the whole group, as when a machine goes down: no process can clean up.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import shutil
import signal
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

OPERATIONS = {
    "open",
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
}
FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
HALF = b"half"

Program = Callable[[bool], int]
"""``program(resume)`` does it in the current folder and returns an exit code."""


class Kill(NamedTuple):
    """When to kill: before an operation, counted from 1; `torn`, when it has opened a file and written a bit.

    Or the process `stops` there until it is continued, or the disk is `full` from there on.
    """

    operation: int = 0
    torn: bool = False
    stops: bool = False
    full: bool = False


NEVER = Kill()


class Operations:
    """Operations that change files in a folder: written down, and killed at one of them."""

    def __init__(self, folder: Path, log: Path, kill: Kill) -> None:
        self.folder = os.path.realpath(folder)
        self.kill = kill
        self.root = os.getpid()
        self.count = mmap.mmap(-1, 8)  # shared with the processes that are forked
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.busy = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in OPERATIONS or self.busy or not self._counts(event, arguments):
            return
        self.busy = True
        (number,) = struct.unpack("q", self.count[:])
        self.count[:] = struct.pack("q", number + 1)
        name = os.path.relpath(os.fsdecode(arguments[0]), self.folder)
        os.write(self.log, f"{event} {name}\n".encode())
        if self.kill.full:
            self.busy = False
            if 0 < self.kill.operation <= number + 1 and event in ("open", "os.mkdir"):
                raise OSError(errno.ENOSPC, "No space left on device", os.fsdecode(arguments[0]))
        elif number + 1 == self.kill.operation and self.kill.stops:
            os.kill(os.getpid(), signal.SIGSTOP)
        elif number + 1 == self.kill.operation:
            if self.kill.torn and event == "open":
                Path(os.fsdecode(arguments[0])).write_bytes(HALF)
            for process in dict.fromkeys((self.root, os.getpid())):  # this one last
                os.kill(process, signal.SIGKILL)
        self.busy = False

    def _counts(self, event: str, arguments: tuple[Any, ...]) -> bool:
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        if event == "open" and not (arguments[2] or 0) & FOR_WRITING:
            return False
        if (
            event in ("os.remove", "os.rmdir") and arguments[-1] != -1
        ):  # in a folder that is open: shutil.rmtree
            return True
        return os.path.realpath(os.fsdecode(path)).startswith(self.folder + os.sep)


def run(
    program: Program, folder: Path, *, resume: bool = False, kill: Kill = NEVER
) -> tuple[int, list[str], str]:
    """Do it in a process of its own; returns its exit code, its operations and what it said."""
    return end(start(program, folder, resume=resume, kill=kill), folder)


def start(
    program: Program, folder: Path, label: str = "", *, resume: bool = False, kill: Kill = NEVER
) -> int:
    """Begin to do it in a process of its own, and return its number."""
    log, words = _notes(folder, label)
    for file in (log, words):
        file.unlink(missing_ok=True)
    process = os.fork()
    if process == 0:
        code = 99
        try:
            os.chdir(folder)
            said = os.open(words, os.O_WRONLY | os.O_CREAT)
            os.dup2(said, 1), os.dup2(said, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            sys.addaudithook(Operations(folder, log, kill))
            code = program(resume)
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
            os._exit(code)
    return process


def end(process: int, folder: Path, label: str = "") -> tuple[int, list[str], str]:
    """Wait for a process; returns its exit code, its operations and what it said."""
    log, words = _notes(folder, label)
    _, status = os.waitpid(process, 0)
    operations = log.read_text().splitlines() if log.exists() else []
    return os.waitstatus_to_exitcode(status), operations, words.read_text(errors="replace")


def _notes(folder: Path, label: str) -> list[Path]:
    return [folder.with_name(f"{folder.name}{label}.{name}") for name in ("operations", "words")]


def content(folder: Path) -> dict[str, Any]:
    """Return the contents of a folder, without the files of times and machines."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.name.endswith(".run.json")
    }


def kills(operations: list[str], every: int, last: int) -> Iterator[Kill]:
    """Return the kills of a program: at every so many of its operations, and at all of the last ones."""
    for number, operation in enumerate(operations, start=1):
        if number % every == 0 or number > len(operations) - last:
            yield Kill(number)
            if operation.startswith("open ") and not operation.endswith("/.lock"):
                yield Kill(number, torn=True)
    yield Kill(1)


def check(
    program: Program, folder: Path, prepare: Callable[[Path], None], *, every: int = 1, last: int = 0
) -> int:
    """Kill a program at its operations, let it go on, and see that the outcome is that of a straight run.

    Returns the number of kills.
    """

    def fresh() -> Path:
        here = folder / "here"  # always the same: results name the files that they are made of
        if here.exists():
            shutil.rmtree(here)
        here.mkdir()
        prepare(here)
        return here

    here = fresh()
    with contextlib.chdir(here):  # in this process: libraries are loaded once, and inherited
        assert program(False) == 0
    expected = content(here)
    code, operations, words = run(program, fresh())
    assert code == 0, words
    assert differences(expected, content(here)) == []
    wrong, count = [], 0
    for kill in kills(operations, every, last):
        count += 1
        code, _, _ = run(program, fresh(), kill=kill)
        at = f"{'in' if kill.torn else 'before'} {operations[kill.operation - 1]!r} (operation {kill.operation})"
        if code != -signal.SIGKILL:
            wrong.append(f"{at}: not killed, {code}")
            continue
        code, _, words = run(program, here, resume=True)
        found = differences(expected, content(here)) if code == 0 else words.strip()[-500:]
        if code != 0 or found:
            wrong.append(f"{at}: {code} {found}")
    assert not wrong, "\n".join(wrong)
    return count


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the names of what differs."""
    return sorted(name for name in {**one, **other} if one.get(name, b"-") != other.get(name, b"-"))
