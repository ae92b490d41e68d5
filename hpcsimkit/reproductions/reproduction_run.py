"""A run of a reproduction: its tasks, several at a time, and the folder with what came out."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from hpcsimkit import __version__
from hpcsimkit.campaigns.campaign import Stopped
from hpcsimkit.campaigns.console import grouped
from hpcsimkit.campaigns.experiment import sha256_of
from hpcsimkit.campaigns.processes import run_in_processes
from hpcsimkit.campaigns.results_folder import writing
from hpcsimkit.campaigns.training_progress import progress_bar
from hpcsimkit.errors import UsageError
from hpcsimkit.files import write_bytes
from hpcsimkit.reproductions.pace import Pace
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.targets import HEADINGS, targets_json, targets_rows
from hpcsimkit.reproductions.tasks import Shelf, Task, Tell

__all__ = ["REPORT", "TARGETS", "ReproductionRun"]

REPORT, TARGETS, RECORD, TASKS, LOCK = "report.md", "targets.json", "reproduction.json", "tasks", ".lock"
PACKAGES = ("numpy", "scipy", "torch", "gymnasium", "simpy", "matplotlib")
"""Whose versions are recorded."""

SHOWN = 3
"""Names that a line lists."""


class ReproductionRun:
    """A reproduction, and the folder it is written to.

    Each task is done once: the same command goes on where an interrupted one was, and does nothing again
    whose inputs are as they were. A folder is of one system, seed, scale and set of logs.

    Parameters
    ----------
    reproduction : Reproduction
        What is done.
    place : Path
        The folder: new, empty, or one where the same was asked for.
    system : str
        What the command line calls it.
    workers : int
        Processes at a time.
    """

    def __init__(self, reproduction: Reproduction, place: Path, system: str, workers: int) -> None:
        self.reproduction = reproduction
        self.place = place
        self.system = system
        self.workers = workers
        self.shelf = Shelf(place / TASKS)

    def run(self, *, quiet: bool = False, say: Callable[[str], None] = print) -> Conclusion:
        """Do what is not done yet, conclude, and write the folder.

        Parameters
        ----------
        quiet : bool
            Show no progress.
        say : callable
            Is told, line by line, what will be done and how long it will take.

        Raises
        ------
        HpcsimkitError
            The folder is not ours or cannot be written, the logs do not do, or a task failed.
        Stopped
            Ctrl-C; what is done is kept.
        """
        self._check_place()
        for line in self.reproduction.prepare():
            say(line)
        lock = self._opened()
        try:
            self._perform(quiet, say)
            conclusion = self.reproduction.conclude(self.shelf, self.place)
            self._write(conclusion)
        except KeyboardInterrupt:
            raise Stopped("stopped; the same command goes on where it was") from None
        finally:
            lock.close()
        return conclusion

    # --- tasks -----------------------------------------------------------------------------------------

    def _perform(self, quiet: bool, say: Callable[[str], None]) -> None:
        stages = self.reproduction.stages()
        tasks = [task for stage in stages for task in stage]
        to_do = [task for task in tasks if not self.shelf.has(task)]
        self._set_aside(to_do, say)
        pace = Pace(to_do, self.reproduction.rates, self.workers)
        say(self._plan(len(tasks), pace))
        with progress_bar(quiet=quiet) as draw:

            def tell(name: str, done: int) -> None:
                pace.tell(name, done)
                decisions, of = pace.decisions()
                rate = (of - decisions) / max(pace.seconds_left(), 1e-6)
                over = (
                    len(tasks) - len(to_do) + sum(pace.done[each] >= pace.sizes[each] for each in pace.done)
                )
                draw(f"{over} of {len(tasks)} tasks", decisions, of, rate, "decisions/s")

            for stage in stages:
                names = [task.name for task in stage if task.name in pace.tasks]
                run_in_processes(
                    names, partial(_work, self.shelf, pace.tasks), workers=self.workers, tell=tell
                )

    def _set_aside(self, tasks: Sequence[Task], say: Callable[[str], None]) -> None:
        """Keep what tasks have left that were done, or begun, in another way; say so."""
        kept = [old.name for task in tasks if (old := self.shelf.set_aside(task)) is not None]
        if not kept:
            return
        are = "task is" if len(kept) == 1 else "tasks are"
        more = f" and {len(kept) - SHOWN} more" if len(kept) > SHOWN else ""
        say(
            f"{len(kept)} {are} begun anew, since the kit or its defaults have changed; what was there is "
            f"kept: {', '.join(kept[:SHOWN])}{more}"
        )

    def _plan(self, tasks: int, pace: Pace) -> str:
        """Say what is to be done and how long it will take."""
        done, seconds = tasks - len(pace.tasks), pace.seconds_left()
        if not pace.tasks:
            return f"all {tasks} tasks are done"
        was = f", {done} of them done" if done else ""
        return (
            f"{tasks} tasks{was}; {grouped(pace.decisions()[1])} decisions to go, about "
            f"{timedelta(seconds=max(60, round(seconds / 60) * 60))} with {self.workers} "
            f"process{'es' * (self.workers != 1)} (by stated rates, corrected on the way)"
        )

    # --- the folder ------------------------------------------------------------------------------------

    @cached_property
    def _asked(self) -> dict[str, Any]:
        """What the folder is about."""
        asked, logs = self.reproduction, self.reproduction.logs
        hashes = [[log.name, sha256_of(str(log))] for log in logs]
        chosen = {flag: flag in asked.chosen for flag in sorted(asked.flags)}
        return {"system": self.system, "seed": asked.seed, "quick": asked.quick, **chosen, "logs": hashes}

    def _check_place(self) -> None:
        """See that the folder is new, empty, or one where the same was asked for."""
        if self.place.exists() and not self.place.is_dir():
            raise UsageError(f"{self.place}: a folder for the results is needed, found a file")
        if not self.place.is_dir() or not any(self.place.iterdir()):
            return
        record = {}
        with suppress(OSError, ValueError):
            record = json.loads((self.place / RECORD).read_text())
        if record.get("system") != self.system:
            found = f"a reproduction of {record['system']}" if "system" in record else "other files"
            raise UsageError(f"{self.place}: a new folder, or one of {self.system}, is needed; found {found}")
        differing = [name for name, value in self._asked.items() if record.get(name) != value]
        if differing:
            held, asked = (
                ", ".join(_said(name, of.get(name)) for name in differing) for of in (record, self._asked)
            )
            raise UsageError(
                f"{self.place}: a folder of its own (--out) is needed for {asked}; this one holds {held}"
            )

    def _opened(self) -> IO[bytes]:
        """Make the folder, and see that nobody else works on it."""
        with writing(self.place):
            self.place.mkdir(parents=True, exist_ok=True)
            lock = (self.place / LOCK).open("wb")
        with suppress(ImportError):  # Windows has no such locks
            import fcntl

            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                lock.close()
                raise UsageError(f"{self.place}: another run is working on this reproduction now") from None
        if not (self.place / RECORD).exists():
            self._record(self._asked)
        return lock

    def _record(self, about: Mapping[str, Any]) -> None:
        write_bytes(self.place / RECORD, (json.dumps(about, indent=2, ensure_ascii=False) + "\n").encode())

    def _write(self, conclusion: Conclusion) -> None:
        """Write what came out, and how."""
        page = conclusion.page
        page.heading("Targets")
        page.table(HEADINGS, targets_rows(conclusion.targets))
        self._write_origin(page)
        write_bytes(self.place / TARGETS, targets_json(conclusion.targets))
        write_bytes(self.place / REPORT, str(page).encode())
        self._record({**dict(self._origin()), **self._asked})

    def _write_origin(self, page: Page) -> None:
        page.heading("How it was made")
        page.code(f"{self._command()}")
        page.table(("", ""), list(self._origin()))
        if self.reproduction.logs:
            page.heading("Logs")
            page.table(("log", "SHA-256"), self._asked["logs"])

    def _command(self) -> str:
        """Return the command line, with the bare names of files."""
        reproduction = self.reproduction
        words = [self.system, *(log.name for log in reproduction.logs), *["--quick"] * reproduction.quick]
        words += [f"--{flag}" for flag in sorted(reproduction.chosen)]
        words += ["--seed", str(reproduction.seed), "--workers", str(self.workers), "--out", self.place.name]
        return f"python -m hpcsimkit.run reproduce {shlex.join(words)}"

    def _origin(self) -> list[tuple[str, str]]:
        """Return when, where and by what it was made."""
        tasks = [task for stage in self.reproduction.stages() for task in stage]
        seconds: dict[str, float] = {}
        for task in tasks:
            seconds[task.kind] = seconds.get(task.kind, 0.0) + self.shelf.seconds(task)
        versions = [("hpcsimkit", __version__), *((name, _version(name)) for name in PACKAGES)]
        return [
            ("finished", datetime.now(UTC).isoformat(timespec="minutes")),
            ("seed", str(self.reproduction.seed)),
            ("versions", ", ".join(f"{name} {version}" for name, version in versions)),
            ("python", platform.python_version()),
            ("machine", f"{_processor()}, {os.cpu_count()} cores, {self.workers} used, {sys.platform}"),
            ("processor time", ", ".join(f"{kind} {_clock(value)}" for kind, value in seconds.items())),
        ]


def _work(shelf: Shelf, tasks: dict[str, Task], name: str, tell: Tell) -> None:
    """Do the task of a name: what a process does."""
    tell(0)
    shelf.perform(tasks[name], tell)
    tell(tasks[name].size)


def _said(name: str, value: Any) -> str:
    """Return in words what a folder is about; a folder of an older version may not say it.

    >>> _said("seed", 1), _said("quick", True), _said("logs", [["a.swf", "6c2b9f01ff"]]), _said("seed", None)
    ('seed 1', 'the quick version', 'logs a.swf (6c2b9f01)', 'seed unknown')
    """
    if value is None:
        return f"{name} unknown"
    if name == "quick":
        return "the quick version" if value else "the full version"
    if isinstance(value, bool):
        return f"--{name}" if value else f"no --{name}"
    if name == "logs":
        return f"logs {', '.join(f'{log} ({digest[:8]})' for log, digest in value)}"
    return f"{name} {value}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def _processor() -> str:
    """Return what the processor calls itself, where that can be read."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
