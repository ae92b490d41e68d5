"""Results folders: built beside their path, taken over, locked, published."""

from __future__ import annotations

import sys

import pytest

from hpcsimkit.engine.lock import writing
from hpcsimkit.engine.results_folder import FINISHED, ResultsFolder, file_name, next_free
from hpcsimkit.errors import HpcsimkitError, UsageError


def test_nothing_is_at_the_place_before_it_is_published(tmp_path) -> None:
    folder = ResultsFolder(tmp_path / "deep" / "out")
    folder.open("jobs", FINISHED)
    (folder.work / "jobs" / "x.csv").write_text("1")
    (folder.work / "jobs" / ".x.csv.99.tmp").write_text("half")
    assert not folder.place.exists()
    folder.publish()
    assert [path.name for path in folder.place.iterdir()] == ["jobs"]
    assert [path.name for path in (folder.place / "jobs").iterdir()] == ["x.csv"]
    assert [path.name for path in folder.place.parent.iterdir()] == ["out"]


def test_an_interrupted_folder_is_emptied_or_taken_over(tmp_path) -> None:
    first = ResultsFolder(tmp_path / "out")
    first.open("jobs")
    (first.work / "jobs" / "x.csv").write_text("1")
    first.close(keep=True)
    second = ResultsFolder(tmp_path / "out")
    second.open("jobs", resume=True)
    assert (second.work / "jobs" / "x.csv").exists()
    second.close(keep=True)
    third = ResultsFolder(tmp_path / "out")
    third.open("jobs")
    assert not (third.work / "jobs" / "x.csv").exists()
    third.close(keep=False)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_a_place(tmp_path) -> None:
    (tmp_path / "out").mkdir()
    folder = ResultsFolder(tmp_path / "out")
    folder.open("jobs")
    folder.publish()
    assert (tmp_path / "out" / "jobs").is_dir()


@pytest.mark.skipif(sys.platform == "win32", reason="no such locks")
def test_two_at_a_time_are_refused(tmp_path) -> None:
    first, second = ResultsFolder(tmp_path / "out"), ResultsFolder(tmp_path / "out")
    first.open("jobs")
    with pytest.raises(UsageError, match="another run is writing"):
        second.open("jobs")
    second.close(keep=False)
    assert (first.work / "jobs").is_dir(), "who has not got the folder must not remove it"
    first.close(keep=False)


def test_next_free_place(tmp_path) -> None:
    place = tmp_path / "x"
    assert next_free(place) == place
    place.mkdir()
    assert next_free(place).name == "x-2"
    (tmp_path / "x-2.partial").mkdir()
    assert next_free(place).name == "x-3"
    assert next_free(place, resume=True).name == "x-2"


def test_names_of_files() -> None:
    assert file_name("fcfs+easy") == "fcfs+easy"
    assert file_name("../x.py:A") == ".._x.py_A"
    assert "\0" not in file_name("a\0b")


def test_errors_of_the_system_become_one_line(tmp_path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(HpcsimkitError, match=r"file/x: cannot be written: Not a directory$"),
        writing("elsewhere"),
    ):
        (tmp_path / "file" / "x").write_text("1")
