"""Versions of code: all that a module of the user imports counts, and the whole kit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcsimkit.engine.code_version import code_files, code_version
from hpcsimkit.engine.user_code import forget
from hpcsimkit.experiments.parts.trust import CALLER, version_of
from hpcsimkit.io import own_code
from hpcsimkit.io.own_code import hash_of_kit

FILES = {
    "studied.py": "import helper, numpy, json\nfrom pack import inner\nclass Best: pass\n",
    "helper.py": "def late():\n    import much_later\n    return much_later.VALUE\n",
    "much_later.py": "VALUE = 1\n",
    "pack/__init__.py": "",
    "pack/inner.py": "from .deep import WORTH\nfrom . import beside\n",
    "pack/deep.py": "WORTH = 2\n",
    "pack/beside.py": "",
    "unrelated.py": "VALUE = 1\n",
}
IMPORTED = sorted(set(FILES) - {"unrelated.py"})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    forget()
    before = set(sys.modules)
    CALLER.imported("studied:Best")
    yield tmp_path
    forget()  # consents to the folder, too
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_all_that_a_module_imports(folder: Path) -> None:
    found = [Path(file).relative_to(folder).as_posix() for file in code_files(["studied"])]
    assert found == IMPORTED, "neither libraries nor files that nobody imports"


@pytest.mark.parametrize("name", FILES)
def test_a_change_of_any_of_them(folder: Path, name: str) -> None:
    before, shown = code_version(["studied"]), version_of("studied")
    (folder / name).write_text(FILES[name] + "\nMORE = 1\n")
    assert (code_version(["studied"]) != before) == (name in IMPORTED)
    assert (version_of("studied") != shown) == (name in IMPORTED)


def test_the_whole_kit_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each package, templates included; there is no list of those that matter."""
    kit = tmp_path / "hpcsimkit"
    for package in ("compiled", "cli", "reports/templates"):
        (kit / package).mkdir(parents=True)
    files = [
        kit / "run.py",
        kit / "compiled" / "a.py",
        kit / "cli" / "b.py",
        kit / "reports/templates/c.jinja",
    ]
    monkeypatch.setattr(own_code, "ROOT", kit)
    seen = set()
    for file in [None, *files]:
        if file is not None:
            file.write_text("1")
        hash_of_kit.cache_clear()
        seen.add(hash_of_kit())
    hash_of_kit.cache_clear()
    assert len(seen) == 1 + len(files)
