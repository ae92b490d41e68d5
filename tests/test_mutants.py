"""The maker of deliberate faults: what `python -m tests.mutants` changes, and what it leaves alone."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from coverage import CoverageData

from tests.mutants.__main__ import ROOT, all_faults, equivalent, read, report
from tests.mutants.covering import MOST, Covering
from tests.mutants.faults import faults_of
from tests.mutants.plugin import HANGS
from tests.mutants.trial import CONCERNED, PACKAGES, Checkout, concerned_by

SOURCE = '''"""Doc of 1 + 1."""
import os

__all__ = ["f"]


class C:
    x: int = 1

    def __repr__(self) -> str:
        return "a" if self.x < 1 else "b"

    def f(self, a: int = 0, *, b: bool = False) -> int:
        """Return 1."""
        self.x = a  # a comment
        if a < 3 and b:
            a += 1
            os.remove(f"é {a + 1}", *zip(a, a, strict=True))
        if not a:
            raise ValueError(a - 1)
        return min(a, -1)
'''
EXPECTED = [
    "8 C: 1 -> 2",
    "8 C: 1 -> 0",
    "13 C.f: 0 -> 1",
    "13 C.f: False -> True",
    "15 C.f: self.x = a -> pass",
    "16 C.f: a < 3 and b -> joined by 'or'",
    "16 C.f: a < 3 and b -> without 'a < 3'",
    "16 C.f: a < 3 and b -> without 'b'",
    "16 C.f: a < 3 and b -> not (a < 3 and b)",
    "16 C.f: a < 3 -> a <= 3",
    "16 C.f: 3 -> 4",
    "16 C.f: 3 -> 2",
    "17 C.f: a += 1 -> pass",
    "17 C.f: a += 1 -> a -= 1",
    "17 C.f: 1 -> 2",
    "17 C.f: 1 -> 0",
    "18 C.f: os.remove(f'é {a + 1}', *zip(a, a, strict=True)) -> pass",
    "19 C.f: not a -> (a)",
    "21 C.f: min(a, -1) -> max(a, -1)",
    "21 C.f: -1 -> 0",
    "21 C.f: -1 -> (1)",
]


def test_faults_of_a_source() -> None:
    found = [f"{fault.line} {fault.function}: {fault.change}" for fault in faults_of(SOURCE)]
    assert sorted(found) == sorted(EXPECTED)


def test_only_the_text_of_the_fault_changes() -> None:
    for fault in faults_of(SOURCE):
        lines, changed = SOURCE.splitlines(), fault.applied(SOURCE).splitlines()
        differing = [n for n, (a, b) in enumerate(zip(lines, changed, strict=True), 1) if a != b]
        assert differing == [fault.line]


def test_faults_of_the_code_can_be_compiled_and_told_apart() -> None:
    faults = all_faults(["hpcsimkit/kernel/pipeline.py", "policies/backfill"])
    assert len({fault.key for fault in faults}) == len(faults) > 500
    for fault in faults[::20]:
        source = (ROOT / fault.path).read_text(encoding="utf-8")
        changed = fault.applied(source)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source)), fault


def test_equivalent_faults_exist_and_have_reasons() -> None:
    """An entry for code that has changed since is removed, or written anew."""
    reasons = equivalent()
    keys = {fault.key for fault in all_faults(sorted({path for path, *_ in reasons}))}
    for key, reason in reasons.items():
        assert key in keys, key
        assert len(reason) > 20, key


def test_tests_concerned_exist(root: Path) -> None:
    for prefix, places in CONCERNED.items():
        assert (root / prefix).is_dir()
        assert all((root / place).exists() for place in places)
    for package in PACKAGES:
        files = concerned_by(f"{package}/x.py", root)
        assert len(files) == len(set(files)) > 5


def test_tests_that_run_a_line_are_found_the_quickest_first(tmp_path: Path) -> None:
    """Line 2 of a function is run by two tests and a long one, line 3 by one; another failed.

    A line outside of functions is run when the file is imported, which the first test does that needs it.
    """
    path, constants = "hpcsimkit/compiled/slurm_groups.py", "hpcsimkit/compiled/slurm_state.py"
    source = (ROOT / path).read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(source, start=1) if line.startswith("def _first")) + 5
    lines = CoverageData(str(tmp_path / "0.lines"))
    ran = {
        "": [1, 4],
        "slow|run": [first],
        "quick|run": [1, first, first + 1],
        "quick|setup": [first + 3],
        "failed|run": [first, first + 1],
        "too long|run": [first],
    }
    for context, numbers in ran.items():
        lines.set_context(context)
        lines.add_lines({path: numbers})
    lines.write()
    times = [("slow", 2.5), ("quick", 0.5), ("too long", 2.0 * MOST)]
    (tmp_path / "0.times").write_text("".join(f"{json.dumps(each)}\n" for each in times))
    covering = Covering(tmp_path)
    expected = {
        1: ["quick", "slow"],
        first: ["quick", "slow"],
        first + 1: ["quick"],
        first + 3: ["quick"],
        first + 4: [],
    }
    for line, tests in expected.items():
        assert covering.tests_of(path, line) == tests, line
    assert covering.tests_of(constants, 17) == ["quick", "slow"]
    assert covering.tests_of("hpcsimkit/kernel/clock.py", 1) == []


def test_a_test_that_takes_too_long_ends_its_process(tmp_path: Path) -> None:
    """Computing for longer than allowed does, and so does waiting for ten times as long."""
    (tmp_path / "test_them.py").write_text(
        "import time\nfrom tests.mutants import plugin\nplugin.LONGEST = 0.05\n"
        "def test_computes():\n while True: pass\n"
        "def test_waits(): time.sleep(5)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.plugin", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    codes = {
        name: subprocess.run(
            [*command, f"test_them.py::{name}"], cwd=tmp_path, env=environment, capture_output=True
        ).returncode
        for name in ("test_computes", "test_waits")
    }
    assert codes == {"test_computes": HANGS, "test_waits": HANGS}


SMALL = "def larger(a, b):\n    return max(a, b)\n"


@pytest.mark.parametrize(
    ("test", "word"),
    [
        ("from code_of import larger\ndef test_it(): assert larger(1, 2) == 2\n", "noticed"),
        ("from code_of import larger\ndef test_it(): assert larger(2, 2) == 2\n", "unnoticed"),
        ("from code_of import larger\ndef test_it():\n while larger(1, 2) == 1: pass\n", "hangs"),
    ],
)
def test_a_fault_is_tried_in_a_copy(test: str, word: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "code_of.py").write_text(SMALL)
    (project / "test_it.py").write_text(test)
    checkout = Checkout(project, tmp_path)
    (fault,) = faults_of(SMALL, "code_of.py")
    assert checkout.outcome(["test_it.py"], None).word == "unnoticed"
    outcome = checkout.outcome(["test_it.py"], 5 if word == "hangs" else None, fault)
    assert outcome.word == word
    assert outcome.test == ("test_it.py::test_it" if word == "noticed" else "")
    assert (checkout.root / "code_of.py").read_text() == (project / "code_of.py").read_text() == SMALL


def test_results_are_read_back_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    faults = faults_of(SOURCE, "c.py")[:4]
    results = tmp_path / "mutants.jsonl"
    words = ["unnoticed", "noticed", "hangs"]
    lines = [json.dumps({**vars(fault), "word": word}) for fault, word in zip(faults, words, strict=False)]
    results.write_text("\n".join([*lines, lines[0][:20]]))  # cut short by a kill
    report(faults, read(results), {faults[3].key: "a reason"})
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"c.py:8  C  {faults[0].change}"
    assert (
        last
        == "2 of 3 faults noticed (66.7%), 1 of them by the time limit; 1 more are equivalent; 0 were not tried"
    )
