"""Compiling with our own passes of numba's compiler, and without: equal results, and files of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.compiled import cache_folder, compilation, toolchain

WAYS = ["ours", "stock"]


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(toolchain.STOCK, raising=False)


def take(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile by one of the two ways from now on."""
    with monkeypatch.context() as patch:
        patch.setattr(toolchain, "numba_version", lambda: "0.68.1" if way == "ours" else "0.67.0")
        options = {key: value for key, value in compilation.OPTIONS.items() if key != "pipeline_class"}
        monkeypatch.setattr(compilation, "OPTIONS", {**options, **compilation._compiler()})
    assert ("pipeline_class" in compilation.OPTIONS) == (way == "ours")


def negative(value: Any) -> Any:
    return -value


def compiled(folder: Path) -> Any:
    """Return a new function with a part of each kind, some of them for an argument that may be None."""
    from hpcsimkit.compiled.compilation import called, entry, machine_code, pasted, separate

    @machine_code
    def doubled(value: Any) -> Any:
        return 2 * value

    @pasted
    def raised(value: Any) -> Any:
        return doubled(value) + 1

    @separate
    def total(values: Any) -> Any:
        found = 0
        for place in range(len(values)):
            found += raised(values[place])
        return found

    @called
    def filled(values: Any, others: Any) -> Any:
        if others is not None:
            others[0] = doubled(values[0])
        values[0] = total(values)
        return values[0]

    def simulate(values: Any, others: Any) -> Any:
        return filled(values, others)

    return entry(simulate, folder)  # type: ignore[type-var]


@pytest.mark.parametrize("way", WAYS)
def test_both_ways_compute_the_same_and_load_it(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take(way, monkeypatch)
    hits = []
    for _ in range(2):
        function = compiled(tmp_path / "version" / "kind")
        values, others = np.array([3, 4]), np.array([0])
        assert function(values, others) == 16
        assert (values.tolist(), others.tolist()) == ([16, 4], [6])
        assert function(values, None) == 42
        hits.append(sum(function.stats.cache_hits.values()))
    assert hits == [0, 2]


def test_no_way_loads_a_file_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "version" / "kind"
    for way, hits in (("ours", 0), ("stock", 0), ("ours", 1), ("stock", 1)):
        take(way, monkeypatch)
        function: Any = compilation.entry(negative, folder)
        assert function(3) == -3
        assert sum(function.stats.cache_hits.values()) == hits
    assert len(list(folder.iterdir())) == 2


def test_without_an_interface_to_its_cache_numba_compiles_in_each_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "hpcsimkit.compiled.kept", None)
    lines: list[str] = []
    function: Any = compilation.entry(
        negative, tmp_path / "a" / "b", compiling=lambda: lines.append("compiling")
    )
    assert function(3) == -3
    assert lines == ["compiling"] and list(tmp_path.iterdir()) == []


def older(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "numba_version", lambda: "0.67.1")


def newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "numba_version", lambda: "0.69.0")


def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(toolchain.STOCK, "1")


def gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hpcsimkit.compiled.lowering", None)


def other_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "_processor", lambda: ["flags : fpu"])


def other_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain.platform, "python_version", lambda: "3.99.0")


@pytest.mark.parametrize("version", ["0.68.0", "0.68.1", "0.68.9rc1"])
def test_our_passes_with_tested_versions(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolchain, "numba_version", lambda: version)
    monkeypatch.setenv(toolchain.STOCK, "0")
    assert compilation._compiler()["pipeline_class"].__module__ == "hpcsimkit.compiled.lowering"


@pytest.mark.parametrize("change", [older, newer, forced, gone])
def test_numba_as_it_is_with_others(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    change(monkeypatch)
    assert compilation._compiler() == {}


@pytest.mark.parametrize("change", [older, newer, forced, other_processor, other_python])
def test_each_toolchain_has_a_folder(
    change: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that files in it mean that nothing has to be compiled."""
    before = cache_folder._digest()
    assert cache_folder._digest() == before
    change(monkeypatch)
    assert cache_folder._digest() != before
