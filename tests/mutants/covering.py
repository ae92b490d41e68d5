"""Which tests run which lines: a fault is tried against those that run its line, the quickest first."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from coverage import CoverageData

from tests.mutants.plugin import TIMES
from tests.mutants.trial import Checkout

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = ("kernel", "policies", "cluster", "jobs", "results", "envs", "slurm", "compiled")
"""Folders of the tests that are measured."""

MEASURED = ("hpcsimkit", "policies", "agents", "workloads", "tests")
"""Folders whose files decide what the tests run."""

MOST = 180
"""Time of the tests of a fault [s], as measured."""


@dataclass(frozen=True)
class Covering:
    """Which lines the quick tests of some folders run, and how long they take.

    Parameters
    ----------
    folder : Path
        Folder of the measurement.
    """

    folder: Path

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """Time of each test that passed [s], by its identifier."""
        lines = (self.folder / "times.jsonl").read_text(encoding="utf-8").splitlines()
        return dict(map(json.loads, lines))

    @cached_property
    def _lines(self) -> CoverageData:
        found = CoverageData(str(self.folder / "lines"))
        found.read()
        return found

    @cached_property
    def _files(self) -> Mapping[str, str]:
        """Files as they were measured, by where they are: some are found by links."""
        return {str((ROOT / each).resolve()): each for each in self._lines.measured_files()}

    def tests_of(self, path: str, line: int) -> list[str]:
        """Return the tests that run a line of a file, the quickest first, up to :data:`MOST`.

        Those of a line that is run when the file is imported are all tests that run another line of it.

        Parameters
        ----------
        path : str
            File, relative to the repository.
        line : int
            Line number, from 1.
        """
        file = self._files.get(str((ROOT / path).resolve()))
        if file is None:
            return []
        ran_by = self._lines.contexts_by_lineno(file)
        contexts = set(ran_by.get(line, ()))
        if contexts == {""}:
            contexts = set().union(*ran_by.values())
        tests = {each.rpartition("|")[0] for each in contexts} & self.seconds.keys()
        ordered = sorted(tests, key=lambda test: (self.seconds[test], test))
        until = accumulate(self.seconds[test] for test in ordered)
        return [test for test, total in zip(ordered, until, strict=True) if total <= MOST]


def measured(checkout: Checkout, folder: Path) -> Covering:
    """Return which tests run which lines: as measured before if no file has changed since.

    Parameters
    ----------
    checkout : Checkout
        A copy of the repository, where the tests run.
    folder : Path
        Folder of all measurements.
    """
    content = hashlib.sha256()
    for file in sorted(file for each in MEASURED for file in (checkout.root / each).rglob("*.py")):
        content.update(str(file.relative_to(checkout.root)).encode() + file.read_bytes())
    found = folder / content.hexdigest()[:16]
    if not (found / "lines").exists():
        print("running the quick tests once, to see which run which lines ...", file=sys.stderr, flush=True)
        _measure(checkout, found)
    return Covering(found)


def _measure(checkout: Checkout, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    places = [f"tests/{each}" for each in FOLDERS]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-n", "2", "-p", "no:cacheprovider"]
    covered = ["--cov", "--cov-config=tests/mutants/covering.ini", "--cov-context=test", "--cov-report="]
    times, lines = folder / "times.jsonl", folder / "lines.part"
    times.unlink(missing_ok=True)
    subprocess.run(
        [*command, "-p", "tests.mutants.plugin", *covered, *places],
        cwd=checkout.root,
        env={**checkout.environment, "COVERAGE_FILE": str(lines), TIMES: str(times)},
        check=False,  # a test that fails without any fault is left out
    )
    lines.replace(folder / "lines")
