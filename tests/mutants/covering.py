"""Which tests run which lines: a fault is tried against those that run its line, the quickest first."""

from __future__ import annotations

import ast
import hashlib
import json
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate, chain
from pathlib import Path

from coverage import CoverageData

from tests.mutants.plugin import TIMES
from tests.mutants.trial import Checkout

ROOT = Path(__file__).resolve().parents[2]

FOLDERS = (
    ("kernel", "slurm", "golden", "policies", "reproductions/test_published_rules.py", "test_doctests.py"),
    ("cluster", "jobs", "results", "envs", "compiled"),
)
"""Folders and files of the tests that are measured, for two processes that take about the same time."""

MEASURED = ("hpcsimkit", "policies", "agents", "workloads", "tests")
"""Folders whose files decide what the tests run."""

COMPILING = "tests/compiled/test_toolchain.py"
"""Tests that compile whatever the plugin does."""

MOST = 180
"""Processor time of the tests of a fault [s], as measured."""


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
        """Processor time of each test that passed [s], by its identifier."""
        lines = (file.read_text(encoding="utf-8").splitlines() for file in self.folder.glob("*.times"))
        return dict(map(json.loads, chain.from_iterable(lines)))

    @cached_property
    def _ran_by(self) -> Mapping[str, Mapping[int, set[str]]]:
        """By whom each line of each file was run; files by where they are, since some are found by links."""
        found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for each in self.folder.glob("*.lines"):
            data = CoverageData(str(each))
            data.read()
            for file in data.measured_files():
                lines = found[str((ROOT / file).resolve())]
                for line, contexts in data.contexts_by_lineno(file).items():
                    lines[line].update(contexts)
        return found

    def tests_of(self, path: str, line: int) -> list[str]:
        """Return the tests that run a line of a file, the quickest first, up to :data:`MOST`.

        Those of a line that is run when the file is imported, before the measurement or in whichever test is the
        first, are all tests that run another line of it. If there is none, as in a file of constants, they are
        those of the files that import it.

        Parameters
        ----------
        path : str
            File, relative to the repository.
        line : int
            Line number, from 1.
        """
        ran_by = self._ran_by.get(str((ROOT / path).resolve()), {})
        contexts = ran_by.get(line, set())
        if line not in _lines_of_functions(path):
            contexts = set().union(*ran_by.values()) - {""} or self._of_who_imports(path)
        tests = {each.rpartition("|")[0] for each in contexts} & self.seconds.keys()
        ordered = sorted(tests, key=lambda test: (self.seconds[test], test))
        until = accumulate(self.seconds[test] for test in ordered)
        return [test for test, total in zip(ordered, until, strict=True) if total <= MOST]

    def _of_who_imports(self, path: str) -> set[str]:
        """Return the tests that run a line of a file in the same folder that imports another one."""
        module = Path(path).with_suffix("").as_posix().replace("/", ".")
        files = [
            each for each in (ROOT / path).parent.glob("*.py") if f"from {module} import" in each.read_text()
        ]
        return set().union(*(lines for each in files for lines in self._ran_by.get(str(each), {}).values()))


@cache
def _lines_of_functions(path: str) -> frozenset[int]:
    """Return the lines of a file that are run when a function is called."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node.body for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return frozenset(
        line for body in functions for line in range(body[0].lineno, (body[-1].end_lineno or 0) + 1)
    )


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
    if not (found / "done").exists():
        print("running the quick tests once, to see which run which lines ...", file=sys.stderr, flush=True)
        _measure(checkout, found)
    return Covering(found)


def _measure(checkout: Checkout, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    covered = ["--cov", "--cov-config=tests/mutants/covering.ini", "--cov-context=test", "--cov-report="]
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider"]
    # Not in workers of one pytest: when one of them ends early, the lines of both are lost.
    processes = [
        subprocess.Popen(
            [
                *command,
                "-p",
                "tests.mutants.plugin",
                f"--ignore={COMPILING}",
                *covered,
                *(f"tests/{each}" for each in folders),
            ],
            cwd=checkout.root,
            env={
                **checkout.environment,
                "COVERAGE_FILE": str(folder / f"{number}.lines"),
                TIMES: str(folder / f"{number}.times"),
            },
        )
        for number, folders in enumerate(FOLDERS)
    ]
    codes = [process.wait() for process in processes]
    if not set(codes) <= {0, 1}:  # a test that fails without any fault is left out
        sys.exit(f"the tests were not measured: pytest has ended with the codes {codes}")
    (folder / "done").touch()
