"""Records that the kit itself has written, damaged or made by others: what they tell of is done again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcsimkit.engine.store import Store
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.io.documents import json_record, write_record
from hpcsimkit.io.formats import Format
from tests.reproductions.test_reproductions import Counting, run

DAMAGED = {
    "empty": b"",
    "cut": b'{"seconds": 1',
    "no object": b"[1, 2]",
    "no text": b'{"policy": "\xff"}',
    "deep": b'{"fingerprint": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "digits": b'{"seconds": 1' + b"0" * 100_000 + b"}",
}


@pytest.fixture(params=DAMAGED)
def damaged(request: pytest.FixtureRequest) -> bytes:
    return DAMAGED[request.param]


def test_a_damaged_record_is_empty(damaged: bytes, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(damaged)
    assert json_record(file, Format.TASK) == {}
    write_record(file, {"seconds": 1, "nodes": [3, 4.5], "name": "a"})
    assert json_record(file, Format.TASK) == {"seconds": 1, "nodes": [3, 4.5], "name": "a"}


@pytest.mark.parametrize(
    ("one", "other"), [("3", "8"), ("4.5", "4.6"), ('"a"', '"b"'), ('"nodes"', '"node"')]
)
def test_a_changed_record_is_empty(one: str, other: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    write_record(file, {"seconds": 1, "nodes": [3, 4.5], "name": "a"})
    before = file.read_text()
    file.write_text(before.replace(one, other, 1))
    assert file.read_text() != before
    assert json_record(file, Format.TASK) == {}


def test_a_run_with_a_damaged_record_is_not_finished(damaged: bytes, tmp_path: Path) -> None:
    experiment = Experiment(jobs=5, policies=["fcfs"], report=False)
    campaign = Campaign(experiment, experiment.workload(), tmp_path / "out")
    folder = campaign.store.folder(campaign.tasks[0])
    folder.mkdir(parents=True)
    (folder / "outcome.json").write_bytes(damaged)
    assert not campaign.store.has(campaign.tasks[0])


def test_a_task_with_a_damaged_outcome_is_done_again(damaged: bytes, tmp_path: Path) -> None:
    run(tmp_path / "out")
    (tmp_path / "out" / "tasks" / "a" / "outcome.json").write_bytes(damaged)
    store = Store(tmp_path / "out" / "tasks")
    assert not store.has(Counting("a", 5))
    _, said = run(tmp_path / "out")
    assert "3 tasks, 2 of them done" in said[1]
    assert store.outcome(Counting("a", 5)) == {"sum": 10}


def test_a_folder_with_a_damaged_record_is_left_alone(damaged: bytes, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "reproduction.json").write_bytes(damaged)
    with pytest.raises(UsageError, match="results of other settings are there: not recorded there"):
        run(tmp_path / "out")
