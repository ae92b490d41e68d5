"""Figures of the documentation that take long: which code printed them, and how they are printed anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import docs_numbers, test_docs
from tests.printed import SIMULATION, code_of, stamps, table_after
from tests.tables import TABLES
from tests.test_docs import AFTERNOON, DOCS, PAGES, TRAINING


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_tables_are_what_their_commands_print(name: str, shared: Path) -> None:
    (stamp,) = [
        each for page in PAGES for each in stamps(page) if each.command == f"python -m tests.tables {name}"
    ]
    text = stamp.page.read_text(encoding="utf-8")
    begin, end = table_after(text, stamp.end)
    assert text[begin:end] == f"{TABLES[name]()}\n"


def test_figures_that_take_long_say_which_code_printed_them() -> None:
    """Pages that slow tests run, pages of results, and tables with a command."""
    slow = [AFTERNOON, *(DOCS / "tutorials" / f"{name}.md" for name in TRAINING)]
    gone = ("index", "learned_orders")  # the command of the latter is gone, as it says
    results = [page for page in (DOCS / "results").rglob("*.md") if page.stem not in gone]
    assert [page for page in (*slow, *results) if not list(stamps(page))] == []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.count("% printed by ") == len(list(stamps(page))), page
        for stamp in stamps(page):
            if stamp.command.startswith("python -m tests.tables "):
                begin, end = table_after(text, stamp.end)
                assert stamp.command.split()[-1] in TABLES and begin < end, stamp
    commands = [stamp.command for page in PAGES for stamp in stamps(page)]
    assert [name for name in TABLES if commands.count(f"python -m tests.tables {name}") != 1] == []


def test_older_figures_are_listed_until_they_are_printed_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, kit = tmp_path / "page.md", tmp_path / "hpcsimkit"
    module = kit / "kernel" / "run.py"
    module.parent.mkdir(parents=True)
    module.write_text('"""Words."""\nlimit = 3  # more words\n')
    digest = code_of(("kernel",), kit)
    code_of.cache_clear()
    module.write_text('"""Other words."""\n\nlimit = 3\n')
    assert code_of(("kernel",), kit) == digest
    code_of.cache_clear()
    module.write_text("limit = 4\n")
    assert code_of(("kernel",), kit) != digest

    command = "python -m tests.tables headroom"
    page.write_text(f"# A page\n\n% printed by {command}, code {digest}\n\n| a |\n|---|\n| 1 |\n\nText.\n")
    monkeypatch.setattr(docs_numbers, "ROOT", tmp_path)
    assert list(docs_numbers.stale([page])) == [f"page.md:3: older than the code: {command}"]
    monkeypatch.setattr(docs_numbers, "output_of", lambda stamp: "| a |\n|---|\n| 2 |\n")
    monkeypatch.setattr(docs_numbers, "TRACES", tmp_path)
    monkeypatch.setattr(docs_numbers, "run_page", lambda page: None)
    docs_numbers.update(page)
    renewed = code_of(SIMULATION)
    assert page.read_text() == (
        f"# A page\n\n% printed by {command}, code {renewed}\n\n| a |\n|---|\n| 2 |\n\nText.\n"
    )
    assert list(docs_numbers.stale([page])) == []


def test_tables_are_left_as_they_are_without_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page, text = tmp_path / "page.md", "% printed by python -m tests.tables headroom, code unknown\n\n| a |\n"
    page.write_text(text)
    monkeypatch.setattr(docs_numbers, "TRACES", tmp_path / "nowhere")
    docs_numbers.update(page)
    assert page.read_text() == text
    assert "left as it is, for python -m tests.tables headroom needs the logs" in capsys.readouterr().out


def test_all_figures_of_a_slow_page_are_printed_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    stamp = "% printed by python -m tests.docs_numbers page.md, code unknown\n"
    page.write_text(f"```python\nprint('waits', 7 * 6)\n```\n```text\nwaits 41\n```\n\n{stamp}")
    monkeypatch.setattr(docs_numbers, "ROOT", tmp_path)
    monkeypatch.setattr(test_docs, "ROOT", tmp_path)
    docs_numbers.update(page)
    assert "waits 42" in page.read_text()
    assert list(docs_numbers.stale([page])) == []
