"""Trying a fault: a copy of the checkout, and the tests that should notice."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import partial
from importlib.util import cache_from_source
from pathlib import Path

from tests.mutants.faults import Fault
from tests.mutants.plugin import HANGS

MEMORY = 8 * 1024**3
"""Bytes of memory that the tests of a fault may take: an endless loop may fill a list."""

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", ".*_cache", ".hypothesis", "_build", "build", "dist", "*.egg-info"
)

KERNEL_FIRST = (
    "tests/kernel/test_shortcuts.py",
    "tests/kernel/test_schedules.py",
    "tests/kernel/test_schedules_conservative.py",
    "tests/kernel/test_seats.py",
    "tests/kernel/test_hold.py",
    "tests/kernel/test_naive.py",
    "tests/kernel/test_small_references.py",
    "tests/kernel/test_conservative_references.py",
)
CONCERNED: dict[str, tuple[str, ...]] = {
    "hpcsimkit/kernel/": (*KERNEL_FIRST, "tests/kernel", "tests/policies", "tests/envs"),
    "hpcsimkit/jobs/": ("tests/jobs/test_workload.py", *KERNEL_FIRST, "tests/kernel", "tests/policies"),
    "hpcsimkit/cluster/": (
        "tests/cluster/test_machines.py",
        "tests/cluster/test_machine_files.py",
        "tests/cluster/test_partition_files.py",
        "tests/kernel/test_fitting.py",
        "tests/kernel/test_shortcuts.py",
        "tests/kernel/test_machine_invariants.py",
        "tests/kernel",
        "tests/policies",
    ),
    "hpcsimkit/results/": (
        "tests/results/test_metrics.py",
        "tests/results/test_result.py",
        "tests/results/test_statistics.py",
        "tests/results/test_lost_capacity.py",
        "tests/results/test_residue.py",
        "tests/results/test_resource_metrics.py",
        "tests/results",
        "tests/reports",
        "tests/experiments",
    ),
    "hpcsimkit/compiled/": (
        "tests/compiled/test_equality.py",
        "tests/compiled/test_machines.py",
        "tests/compiled/test_dirlab.py",
        "tests/compiled/test_open_seats.py",
        "tests/compiled/test_open_pairs.py",
        "tests/compiled",
        "tests/kernel",
    ),
    "policies/backfill/": (
        *KERNEL_FIRST,
        "tests/policies/test_conservative_machines.py",
        "tests/kernel",
        "tests/policies",
        "tests/compiled",
    ),
    "policies/": ("tests/policies/test_orders.py", "tests/policies", "tests/kernel", "tests/compiled"),
}
"""Tests concerned by the faults of a folder, in the order in which they run; the first prefix that fits counts."""

PACKAGES = ("hpcsimkit/kernel", "hpcsimkit/cluster", "policies", "hpcsimkit/results", "hpcsimkit/compiled")
"""Folders in which faults are made by default."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of the tests.

    Parameters
    ----------
    word : str
        "unnoticed" if all pass, else "noticed", or "hangs" if the time limit was exceeded.
    test : str
        The first test that fails; empty if none does or it is unknown.
    seconds : float
        Duration.
    """

    word: str
    test: str
    seconds: float


def concerned_by(path: str, root: Path) -> list[str]:
    """Return the files of the tests concerned by a fault in a file, in the order in which they run.

    Parameters
    ----------
    path : str
        File with the fault.
    root : Path
        The repository.
    """
    found: dict[str, None] = {}
    for name in next(places for prefix, places in CONCERNED.items() if path.startswith(prefix)):
        if name.endswith(".py"):
            found[name] = None
        else:
            files = sorted((root / name).rglob("test_*.py"))
            found.update(dict.fromkeys(str(file.relative_to(root)) for file in files))
    return list(found)


class Checkout:
    """Copy of the checkout, in which one fault is made at a time.

    Parameters
    ----------
    root : Path
        The repository.
    folder : Path
        An empty folder for the copy.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = folder / "checkout"
        shutil.copytree(root, self.root, symlinks=True, ignore=LEFT_OUT)
        shared = os.environ.get("HPCSIMKIT_SHARED") or root.parent / "shared"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "XDG_CACHE_HOME": str(folder / "cache"),  # each fault in the compiled simulator is compiled
            "HPCSIMKIT_SHARED": str(Path(shared).resolve()),
        }

    def outcome(self, tests: list[str], limit: float | None, fault: Fault | None = None) -> Outcome:
        """Run tests until one fails, with a fault or without.

        Parameters
        ----------
        tests : list of str
            Files or tests, in the order in which they run.
        limit : float or None
            Time limit [s]; None for none.
        fault : Fault, optional
            The fault that is made meanwhile.
        """
        if fault is None:
            return self._tested(tests, limit)
        file = self.root / fault.path
        source = file.read_text(encoding="utf-8")
        try:
            self._write(file, fault.applied(source))
            return self._tested(tests, limit)
        finally:
            self._write(file, source)

    @staticmethod
    def _write(file: Path, source: str) -> None:
        file.write_text(source, encoding="utf-8")
        # Byte code is identified by size and whole seconds: two faults may agree in both.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _tested(self, tests: list[str], limit: float | None) -> Outcome:
        listed = self.root.parent / "tests.txt"  # there may be more than a command line can hold
        listed.write_text("\n".join(tests), encoding="utf-8")
        plugin = ["-p", "tests.mutants.plugin", "--hypothesis-profile=as-found"]
        plugin = plugin if (self.root / "tests/mutants").exists() else []
        options = ["-x", "-q", "--tb=no", "-p", "no:cacheprovider", *plugin]
        command = [sys.executable, "-m", "pytest", *options, f"@{listed}"]
        began = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        )
        try:
            printed, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            return Outcome("hangs", "", time.monotonic() - began)
        finally:
            with_all_it_started(process)
        seconds = time.monotonic() - began
        if process.returncode in (0, HANGS):
            return Outcome("hangs" if process.returncode else "unnoticed", "", seconds)
        first = re.search(r"^(?:FAILED|ERROR) (\S+)", printed, re.MULTILINE)
        return Outcome("noticed", first[1] if first else printed[-500:], seconds)


def with_all_it_started(process: subprocess.Popen[str]) -> None:
    """Kill a process and those that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
