"""The examples of the guide for libraries that the kit does not install: they run where these are to be had."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_docs import blocks

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "guides" / "other_libraries.md"
LIBRARIES = {"rllib_order.py": "ray", "tianshou_order.py": "tianshou"}
"""The library that each file of the guide needs."""


def test_the_guide_has_these_files() -> None:
    assert {block.file for block in blocks(GUIDE) if block.language == "python"} >= set(LIBRARIES)


@pytest.mark.slow
@pytest.mark.parametrize("file", LIBRARIES)
def test_the_example_runs(file: str, tmp_path: Path) -> None:
    library = LIBRARIES[file]
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; it needs an environment of its own, see {GUIDE.name}")
    (text,) = (block.text for block in blocks(GUIDE) if block.file == file)
    (tmp_path / file).write_text(text)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, file], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.strip()
