"""Commands that simulate for long run under the watchdog, which tells of a pass that does not come back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hpcsimkit.agents.cush.trainer import CushTrainer
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.questions import explain
from hpcsimkit.reproductions.reproduction_run import ReproductionRun
from tests.cli.conftest import CLI
from tests.reproductions.test_reproductions import Sums


def watched() -> bool:
    return any(thread.name == "hpcsimkit-watchdog" for thread in threading.enumerate())


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> Callable[[object, str], list[bool]]:
    """Replace a function by one that notes whether it is watched, and ends the command."""

    def replace(owner: object, name: str) -> list[bool]:
        found: list[bool] = []

        def note(*_: object, **__: object) -> None:
            found.append(watched())
            raise UsageError("enough")

        monkeypatch.setattr(owner, name, note)
        return found

    return replace


def test_explain(cli: CLI, ends: Any) -> None:
    found = ends(explain, "explained")
    assert cli("explain", "sjf+hold-unfit", "--jobs", 50, "-q").line() == "enough"
    assert found == [True] and not watched()


def test_train_cush(cli: CLI, ends: Any, tmp_path: Path) -> None:
    found = ends(CushTrainer, "train")
    (tmp_path / "t.toml").write_text('[trainer]\nalgorithm = "cush"\n[problem]\nnodes = 4\n')
    assert "enough" in cli("train", "t.toml", "-q").line()
    assert found == [True] and not watched()


class Watched(Task):
    """Notes whether it is watched."""

    name, kind, size = "watched", "counting", 1  # type: ignore[assignment]

    def inputs(self) -> Any:
        return {}

    def run(self, folder: Path, tell: Tell) -> Any:
        return {"sum": float(watched())}


def test_reproduce(tmp_path: Path) -> None:
    sums = Sums(logs=[])
    sums.counts = (Watched(),)  # type: ignore[assignment]
    sums.stages = lambda: [sums.counts]  # type: ignore[method-assign]
    with pytest.raises(KeyError, match="a"):  # there is no count of this name to conclude from
        ReproductionRun(sums, tmp_path / "out", "sums", 1).run(quiet=True, say=lambda line: None)
    outcome = json.loads((tmp_path / "out" / "tasks" / "watched" / "outcome.json").read_text())
    assert outcome["outcome"] == {"sum": 1.0}
