"""The examples in the docstrings: every module once, by its import name."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import hpcsimkit

WALKED = pkgutil.walk_packages(hpcsimkit.__path__, "hpcsimkit.")
MODULES = ["hpcsimkit", *(m.name for m in WALKED if not m.name.endswith(".__main__"))]
OPTIONAL = {
    "torch",
    "gymnasium",
    "stable_baselines3",
    "sb3_contrib",
    "safetensors",
    "tensorboard",
    "pettingzoo",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{name} needs {error.name}: install the extras [rl] and [learn]")
        raise
    outcome = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


def test_all_folders_are_walked() -> None:
    for package in ("policies", "agents", "workloads"):
        assert f"hpcsimkit.{package}" in MODULES
    assert "hpcsimkit.kernel.simulation" in MODULES
