"""The catalogue of archive logs."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hpcsimkit.errors import WorkloadError
from hpcsimkit.workloads import CATALOGUE, read_swf, verify
from hpcsimkit.workloads.readers.swf_lines import parse_lines


def test_entries_are_complete_and_unlike() -> None:
    entries = list(CATALOGUE.values())
    assert len(entries) == 14
    assert all(re.fullmatch("[0-9a-f]{64}", entry.sha256) for entry in entries)
    assert len({entry.sha256 for entry in entries}) == len({entry.file for entry in entries}) == len(entries)
    assert all(entry.donors and entry.machine_size > 0 and entry.file.endswith(".swf") for entry in entries)


SMALL = ("KTH-SP2", "NASA-iPSC")


@pytest.mark.parametrize(("logs", "count"), [(SMALL, 2), pytest.param(("",), 7, marks=pytest.mark.slow)])
def test_entries_agree_with_the_real_logs(logs: tuple[str, ...], count: int, shared: Path) -> None:
    known = {entry.file: entry for entry in CATALOGUE.values() if entry.file.startswith(logs)}
    found = [path for path in (shared / "traces").glob("*-cln.swf.gz") if path.name[:-3] in known]
    assert len(found) == count
    for path in found:
        entry = verify(path)
        assert entry.file == path.name[:-3]
        assert entry.machine_size == read_swf(path).machine_size
        assert entry.jobs == len(parse_lines(gzip.decompress(path.read_bytes())).line)


def test_another_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.swf"
    path.write_text("1 2 3")
    with pytest.raises(WorkloadError, match=r"x\.swf: a log of the catalogue needed, found SHA-256 "):
        verify(path)
    damaged = tmp_path / "KTH-SP2-1996-2.1-cln.swf.gz"
    damaged.write_text("1 2 3")
    with pytest.raises(WorkloadError, match=r"SHA-256 fba36494.* needed for KTH-SP2, found SHA-256 "):
        verify(damaged)


def test_importing_the_package_is_light() -> None:
    heavy = "pandas", "scipy", "matplotlib", "pyarrow", "pydantic", "simpy"
    code = f"import sys, hpcsimkit.workloads; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
