"""The notebooks of the documentation run, and show what is stored in them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

from tests.notebooks import NAMES, PLACE, executed, kinds_of, read, texts_of

TRAINED = ("train_an_agent",)
"""Notebooks with numbers that depend on the processor: what was learned."""

QUICK = ("first_comparison", "a_class_on_backfilling")
PATH = re.compile(r"(?<![\w/.:<>~)\]])/(?:[\w.+-]+/)+[\w.+-]*|\b[A-Z]:\\\\+\w+")
"""An absolute path of Unix with two parts or more, or of Windows; addresses and closing tags are none."""

DATA = re.compile(r"data:[\w/+-]+;base64,[\w+/=\\]+|\"image/\w+\": \"[^\"]*\"")
"""Pictures inside of texts and outputs: their letters spell anything."""

MOST = 2**20
"""Largest size of a notebook [bytes]."""


@pytest.mark.parametrize(
    "name", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in NAMES]
)
def test_cells_show_what_is_stored(name: str, tmp_path: Path) -> None:
    stored = read(name)
    ran = executed(read(name), tmp_path)
    for before, after in zip(stored.cells, ran.cells, strict=True):
        if before.cell_type != "code":
            continue
        assert kinds_of(after.outputs) == kinds_of(before.outputs), before.source
        if name not in TRAINED:
            assert texts_of(after) == texts_of(before), f"{before.source}\npython -m tests.notebooks {name}"


@pytest.mark.parametrize("name", NAMES)
def test_stored_outputs_are_complete(name: str) -> None:
    """All cells ran without an error or a warning, and left no trace of this machine."""
    cells = [cell for cell in read(name).cells if cell.cell_type == "code"]
    shown = [output for cell in cells for output in cell.outputs]
    assert all(cell.execution_count for cell in cells), f"python -m tests.notebooks {name}"
    assert not [output for output in shown if output.output_type == "error" or output.get("name") == "stderr"]
    assert sum("image/png" in kinds_of([output]) for output in shown) >= 1, "a notebook has pictures"
    text = (PLACE / f"{name}.ipynb").read_text()
    assert len(text) < MOST
    assert PATH.findall(DATA.sub("", text)) == [], "a path of the machine that ran it"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see /home/ada/x.csv", True),
        ("'/srv/x'", True),
        ('File \\"/opt/python/lib/a.py\\"', True),
        ("C:\\\\Users", True),
        ("https://example.org/a/b", False),
        ("<b>x</b>", False),
        ("jobs/s, 1/2 and out/a/b.csv", False),
    ],
)
def test_paths_are_found(text: str, found: bool) -> None:
    assert bool(PATH.search(DATA.sub("", text))) is found


def test_notebooks_need_two_names_at_most() -> None:
    """``hpcsimkit`` and one of its doors: nothing deeper."""
    lines = [line for name in NAMES for cell in read(name).cells for line in source_of(cell)]
    deep = [line for line in lines if line.startswith(("import hpcsimkit.", "from hpcsimkit."))]
    assert not deep
    assert any(line == "import hpcsimkit as hk" for line in lines)


def source_of(cell: Any) -> list[str]:
    return cell.source.splitlines() if cell.cell_type == "code" else []


def test_all_notebooks_are_on_their_page() -> None:
    page = (PLACE / "index.md").read_text()
    for name in NAMES:
        assert f"({name}.ipynb)" in page
        assert f"{{download}}`{name}.ipynb`" in page
