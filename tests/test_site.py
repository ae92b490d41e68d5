"""The questions to a search index, on a small one by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.site import INTERNALS, WANTED, Index, complaints

PAGES = ["guides/a", "reference/b", f"{INTERNALS}c"]


def site(folder: Path, **tables: Any) -> Path:
    known = {
        "docnames": PAGES,
        "indexentries": {},
        "alltitles": {},
        "objects": {},
        "terms": {},
        "titleterms": {},
    }
    (folder / "searchindex.js").write_text(f"Search.setIndex({json.dumps(known | tables)})")
    return folder


def test_main_entries_come_before_titles_objects_and_other_entries(tmp_path: Path) -> None:
    index = Index(
        site(
            tmp_path,
            indexentries={"tail": [[1, "t", False], [0, "i", True]]},
            alltitles={"A tail": [[1, "x"]]},
            objects={"": [[1, 0, 1, "", "tail"]]},
        )
    )
    assert index.found("tail") == ["guides/a", "reference/b"]
    assert index.found("nothing") == []


@pytest.mark.parametrize(
    "tables",
    [{"terms": {"word": [0, 2]}}, {"titleterms": {"word": 2}}, {"objects": {"": [[2, 0, 1, "", "x"]]}}],
)
def test_internals_in_the_index_are_told(tmp_path: Path, tables: dict[str, Any]) -> None:
    found = complaints(site(tmp_path, **tables))
    assert found[-1] == f"{PAGES[2]}: a page of the internals"
    assert len(found) == len(WANTED) + 1, "each query that finds nothing, too"
