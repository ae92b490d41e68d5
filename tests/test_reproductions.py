"""The frame of reproductions: tasks that are done once, how long the rest takes, targets, pages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit.agents.episodes import AnyOf, Fixed
from hpcsimkit.agents.rewards import MinusMeanWait
from hpcsimkit.campaigns.campaign import Stopped
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.reproductions import reproduction_run, tasks
from hpcsimkit.reproductions.identity import fingerprint, identity_of
from hpcsimkit.reproductions.pace import BELIEF, Pace
from hpcsimkit.reproductions.page import Page
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.reproduction_run import ReproductionRun
from hpcsimkit.reproductions.targets import Target, targets_json, targets_table
from hpcsimkit.reproductions.tasks import Shelf, Task, Tell


@dataclass(frozen=True)
class Counting(Task):
    """Counts to a number, and remembers how far it is; stumbles once at a number, if told so."""

    name: str = "counting"  # type: ignore[misc]
    to: int = 5
    stumbles_at: int = -1
    how: str = "error"
    kind: str = "counting"  # type: ignore[misc]

    @property
    def size(self) -> int:
        return self.to

    def inputs(self) -> Any:
        return {"to": self.to}

    def run(self, folder: Path, tell: Tell) -> Any:
        file = folder / "so-far"
        counted = json.loads(file.read_text()) if file.exists() else []
        for number in range(len(counted), self.to):
            if number == self.stumbles_at and not (folder.parent / "stumbled").exists():
                (folder.parent / "stumbled").touch()
                if self.how == "death":
                    os._exit(9)
                raise HpcsimkitError(f"stumbled at {number}")
            counted.append([number, os.getpid()])
            file.write_text(json.dumps(counted))
            tell(number + 1)
        return {"sum": sum(number for number, _ in counted)}


class Sums(Reproduction):
    """Two counts side by side, and one after them."""

    title = "Sums"
    logs_needed = "a log"
    rates = {"counting": 10.0}  # noqa: RUF012

    counts = (Counting("a", 5), Counting("b", 4), Counting("c", 3))

    def prepare(self) -> Iterator[str]:
        yield f"{len(self.counts)} counts"

    def stages(self) -> Sequence[Sequence[Task]]:
        return [self.counts[:2], self.counts[2:]]

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        found = {task.name: float(shelf.outcome(task)["sum"]) for task in self.counts}
        page = Page(self.title)
        page.table(["count", "sum"], [[name, str(value)] for name, value in found.items()])
        return Conclusion([Target("sum of a", 10.0, found["a"], None, found["a"] == 10)], page)


def run(place: Path, *counts: Counting, workers: int = 1) -> tuple[Conclusion, list[str]]:
    sums = Sums([])
    if counts:
        sums.counts = counts  # type: ignore[misc, assignment]
    said: list[str] = []
    return ReproductionRun(sums, place, "sums", workers).run(quiet=True, say=said.append), said


def processes(place: Path, name: str) -> list[int]:
    """The processes that did the steps of a count."""
    return [process for _, process in json.loads((place / "tasks" / name / "so-far").read_text())]


# --- tasks ---------------------------------------------------------------------------------------------


def test_a_run_and_what_it_writes(tmp_path: Path) -> None:
    conclusion, said = run(tmp_path / "out", workers=2)
    assert conclusion.targets == [Target("sum of a", 10.0, 10.0, None, True)]
    assert said == [
        "3 counts",
        "3 tasks; 12 decisions to go, about 0:01:00 with 2 processes (by stated rates, corrected on the way)",
    ]
    assert json.loads((tmp_path / "out" / "targets.json").read_text()) == [
        {"what": "sum of a", "paper": 10.0, "ours": 10.0, "spread": None, "met": True}
    ]
    report = (tmp_path / "out" / "report.md").read_text()
    assert "| a | 10.0 |\n| b | 6.0 |\n| c | 3.0 |" in report
    assert "| sum of a | 10 | 10 | - | yes |" in report
    assert "python -m hpcsimkit.run reproduce sums" in report
    assert str(tmp_path) not in report
    assert len(set(processes(tmp_path / "out", "a")) | set(processes(tmp_path / "out", "b"))) == 2


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    run(tmp_path / "out")
    before = {name: processes(tmp_path / "out", name) for name in "abc"}
    conclusion, said = run(tmp_path / "out")
    assert said[1] == "all 3 tasks are done"
    assert conclusion.targets[0].met
    assert before == {name: processes(tmp_path / "out", name) for name in "abc"}

    _, said = run(tmp_path / "out", Counting("a", 5), Counting("b", 6), Counting("c", 3))
    assert said[1].startswith("3 tasks, 2 of them done; 6 decisions to go")
    after = {name: processes(tmp_path / "out", name) for name in "abc"}
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert len(set(after["b"])) == 1, "other inputs: begun anew"
    assert not set(after["b"]) & set(before["b"])


def test_a_task_that_failed_goes_on_where_it_was(tmp_path: Path) -> None:
    counts = Counting("a", 5, stumbles_at=3), Counting("b", 4), Counting("c", 3)
    with pytest.raises(HpcsimkitError, match="stumbled at 3"):
        run(tmp_path / "out", *counts)
    assert not (tmp_path / "out" / "targets.json").exists()
    conclusion, _ = run(tmp_path / "out", *counts)
    assert conclusion.targets[0].ours == 10
    first, *_, last = processes(tmp_path / "out", "a")
    assert processes(tmp_path / "out", "a") == [first] * 3 + [last] * 2
    assert first != last


def test_a_process_that_dies_is_begun_again(tmp_path: Path) -> None:
    counts = Counting("a", 5, stumbles_at=3, how="death"), Counting("b", 4), Counting("c", 3)
    conclusion, _ = run(tmp_path / "out", *counts)
    assert conclusion.targets[0].ours == 10
    assert len(set(processes(tmp_path / "out", "a"))) == 2


def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduction_run, "run_in_processes", interrupted)
    with pytest.raises(Stopped, match=r"^stopped; the same command goes on where it was$"):
        run(tmp_path / "out")
    monkeypatch.undo()
    assert run(tmp_path / "out")[0].targets[0].met


def test_an_outcome_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shelf, task = Shelf(tmp_path), Counting("a", 5)
    shelf.perform(task, lambda done: None)
    assert shelf.has(task)
    assert shelf.outcome(task) == {"sum": 10}
    assert shelf.seconds(task) >= 0
    (tmp_path / "a" / tasks.OUTCOME).write_text('{"fingerprint": "')
    assert not shelf.has(task)
    assert not shelf.has(replace(task, to=6))
    assert not list((tmp_path / "a").glob(".*.tmp"))


# --- the folder ------------------------------------------------------------------------------------------


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(UsageError, match=r"mine: a new folder, or one of sums, is needed; found other files"):
        run(tmp_path / "mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "reproduction.json").write_text('{"system": "dras"}')
    with pytest.raises(UsageError, match="found a reproduction of dras"):
        run(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="found a file"):
        run(tmp_path / "file")


def test_one_run_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    run(tmp_path / "out")
    with (tmp_path / "out" / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run is working on this reproduction now"):
            run(tmp_path / "out")
    run(tmp_path / "out")


# --- identity --------------------------------------------------------------------------------------------


def workload(run_time: int) -> Workload:
    return Workload({"submit_time": [0, 5], "run_time": [run_time, 3], "nodes": [1, 1]})


def test_what_is_equal_has_one_fingerprint_and_what_differs_another() -> None:
    values = [
        1, 1.5, "1", None, True, [1], {"a": 1}, np.arange(3), np.arange(4), np.arange(3.0), workload(1),
        workload(2), Fixed(workload(1)), Fixed(workload(2)), Fixed(workload(1), 4), AnyOf([workload(1)]),
        MinusMeanWait(), MinusMeanWait(60.0), Counting("a", 5), Counting("a", 6), len, partial(len, workload(1)),
        partial(len, workload(2)), {3, 1},
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    assert fingerprint(Fixed(workload(1))) == fingerprint(Fixed(workload(1)))
    assert identity_of(np.int64(3)) == 3


def test_parameters_that_are_as_by_default_are_not_part_of_it() -> None:
    assert identity_of(MinusMeanWait(1.0)) == {"is": "hpcsimkit.agents.rewards:MinusMeanWait"}
    assert identity_of(Counting(to=7)) == {"is": f"{__name__}:Counting", "to": 7}


# --- pace ------------------------------------------------------------------------------------------------


def test_time_left_by_stated_rates_then_by_measured_ones() -> None:
    pace = Pace([Counting("a", 100), Counting("b", 200)], {"counting": 10.0}, workers=2)
    assert pace.seconds_left() == 300 / 10 / 2
    pace.tell("a", 0, now=1000.0)
    pace.tell("a", 20, now=1000.0 + BELIEF)  # 20 decisions in 20 s, as believed as 200 in 20 s
    assert pace.rate("counting") == (200 + 20) / 40
    assert pace.seconds_left() == pytest.approx((80 + 200) / 5.5 / 2)
    assert pace.decisions() == (20, 300)
    pace.tell("a", 0, now=2000.0)  # its process died and it begins again: that time is not counted
    pace.tell("a", 10, now=2001.0)
    assert pace.rate("counting") == (200 + 30) / 41
    pace.tell("b", 250, now=2001.0)
    assert pace.decisions() == (210, 300), "never more than there is"


# --- what comes out --------------------------------------------------------------------------------------


def test_targets_as_table_and_file() -> None:
    targets = [Target("a", 1.0, 2.0, 0.5, True), Target("b [%]", None, float("nan"), None, None)]
    assert targets_table(targets).splitlines() == [
        "target  paper  ours  spread  met",
        "a           1     2     0.5  yes",
        "b [%]       -     -       -    -",
    ]
    assert json.loads(targets_json(targets))[1] == {
        "what": "b [%]", "paper": None, "ours": None, "spread": None, "met": None,
    }  # fmt: skip


def test_a_page() -> None:
    page = Page("Title")
    page.heading("Part")
    page.items(["one", "two"])
    page.code("a command")
    page.table(["a|b", "c"], [["1", "2"]])
    page.picture("x.png", "a picture")
    assert str(page) == (
        "# Title\n\n## Part\n\n- one\n- two\n\n```\na command\n```\n\n| a\\|b | c |\n|---|---:|\n| 1 | 2 |\n\n"
        "![a picture](x.png)\n"
    )
