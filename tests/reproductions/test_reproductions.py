"""The frame of reproductions: tasks that are done once, how long the rest takes, targets, pages."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from pathlib import Path
from signal import SIGINT, SIGTERM
from typing import Any

import numpy as np
import pytest

from hpcsimkit import Workload
from hpcsimkit._version import __version__
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.engine import code_version
from hpcsimkit.engine import store as stores
from hpcsimkit.engine.identity import fingerprint, identity_of
from hpcsimkit.engine.pace import BELIEF, Pace
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.documents import write_record
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.reproductions import reproduction_run
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.reproduction_run import ReproductionRun
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.targets import Conclusion, Target, targets_json, targets_table
from hpcsimkit.reproductions.templates import tidied


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


class Sums(PaperReproduction):
    """Two counts side by side, and one after them."""

    title = "Sums"
    logs_needed = "a log"
    rates = {"counting": 10.0}  # noqa: RUF012

    counts = (Counting("a", 5), Counting("b", 4), Counting("c", 3))

    def prepare(self) -> Iterator[str]:
        yield f"{len(self.counts)} counts"

    def stages(self) -> Sequence[Sequence[Task]]:
        return [self.counts[:2], self.counts[2:]]

    def fields(self) -> list[Field]:
        return []

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        found = {task.name: float(store.outcome(task)["sum"]) for task in self.counts}
        table = Table(["count", "sum"], [[name, str(value)] for name, value in found.items()])
        return Conclusion([Target("sum of a", 10.0, found["a"], None, found["a"] == 10)], str(table))


def run(place: Path, *counts: Counting, workers: int = 1, **how: Any) -> tuple[Conclusion, list[str]]:
    sums = Sums(**{"logs": [], **how})
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
    assert said[1] == (
        "1 task is restarted, since hpcsimkit or settings have changed; former results are kept: b.old"
    )
    assert said[2].startswith("3 tasks, 2 of them done; 6 decisions to go")
    after = {name: processes(tmp_path / "out", name) for name in "abc"}
    assert (after["a"], after["c"]) == (before["a"], before["c"])
    assert len(set(after["b"])) == 1, "other inputs: begun anew"
    assert not set(after["b"]) & set(before["b"])
    assert processes(tmp_path / "out", "b.old") == before["b"]


def test_another_version_of_the_kit_begins_anew_and_keeps_the_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def counts() -> list[Counting]:
        return [Counting(name, 5) for name in "abcd"]  # a task keeps its fingerprint

    run(tmp_path / "out", *counts())
    first = {name: processes(tmp_path / "out", name) for name in "abcd"}
    for version in ("next", "last"):
        before = {name: processes(tmp_path / "out", name) for name in "abcd"}
        monkeypatch.setattr(code_version, "__version__", version)
        _, said = run(tmp_path / "out", *counts())
        assert said[1] == (
            "4 tasks are restarted, since hpcsimkit or settings have changed; former results are kept: "
            "a.old, b.old, c.old and 1 more"
        )
        assert said[2].startswith("4 tasks; 20 decisions to go")
        assert {name: processes(tmp_path / "out", f"{name}.old") for name in "abcd"} == before
    assert before != first, "an older .old was replaced"
    assert (
        json.loads((tmp_path / "out" / "tasks" / "a" / "inputs.json").read_text())["version"] == __version__
    )
    assert run(tmp_path / "out", *counts())[1][1] == "all 4 tasks are done"


def test_nothing_is_set_aside_that_can_be_gone_on_with(tmp_path: Path) -> None:
    store, task = Store(tmp_path), Counting("a", 5)
    assert store.set_aside(task) is None
    store.perform(task, lambda done: None)
    assert store.set_aside(task) is None
    (tmp_path / "a" / stores.OUTCOME).unlink()
    assert store.set_aside(task) is None, "begun, with the same inputs"
    (tmp_path / "a" / stores.INPUTS).unlink()
    assert store.set_aside(task) == tmp_path / "a.old", "whose is it?"
    assert (tmp_path / "a.old" / "so-far").exists()
    assert not (tmp_path / "a").exists()


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


@pytest.mark.parametrize(
    ("interrupt", "number"), [(KeyboardInterrupt(), SIGINT), (Stopped(number=SIGTERM), SIGTERM)]
)
def test_ctrl_c_and_sigterm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: KeyboardInterrupt, number: int
) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise interrupt

    monkeypatch.setattr(reproduction_run, "perform", interrupted)
    with pytest.raises(
        Stopped, match=r"^stopped; finished tasks are kept; the same command goes on$"
    ) as stopped:
        run(tmp_path / "out")
    assert stopped.value.number == number
    monkeypatch.undo()
    assert run(tmp_path / "out")[0].targets[0].met


def test_an_outcome_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, task = Store(tmp_path), Counting("a", 5)
    store.perform(task, lambda done: None)
    assert store.has(task)
    assert store.outcome(task) == {"sum": 10}
    assert store.seconds(task) >= 0
    (tmp_path / "a" / stores.OUTCOME).write_text('{"fingerprint": "')
    assert not store.has(task)
    assert not store.has(replace(task, to=6))
    assert not list((tmp_path / "a").glob(".*.tmp"))


class Interrupted(Counting):
    """Takes 15 s of a processor a step, by a clock of its own."""

    clock = 0.0

    def run(self, folder: Path, tell: Tell) -> Any:
        def telling(done: int) -> None:
            Interrupted.clock += 15.0
            tell(done)

        return super().run(folder, telling)


def test_the_time_of_all_stretches_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores.time, "process_time", lambda: Interrupted.clock)
    store, task = Store(tmp_path), Interrupted("a", 5, stumbles_at=3)
    with pytest.raises(HpcsimkitError):
        store.perform(task, lambda done: None)
    assert store.seconds(task) == 45.0
    Interrupted.clock = 1000.0  # another process
    store.perform(task, lambda done: None)
    assert store.seconds(task) == 75.0

    changed = replace(task, to=4, stumbles_at=-1)
    store.perform(changed, lambda done: None)
    assert store.seconds(changed) == 60.0, "what was spent on other inputs is another matter"


def test_a_killed_task_has_noted_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores.time, "process_time", lambda: Interrupted.clock)
    noted = []

    def look(done: int) -> None:
        file = tmp_path / "a" / stores.SPENT
        noted.append(json.loads(file.read_text())["seconds"] if file.exists() else None)

    Store(tmp_path).perform(Interrupted("a", 5), look)
    assert noted == [None, 30.0, 30.0, 60.0, 60.0], "at most 20 s are lost, plus a step"


def test_ctrl_c_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores.time, "process_time", lambda: Interrupted.clock)

    def interrupt(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Store(tmp_path).perform(Interrupted("a", 5), interrupt)
    assert Store(tmp_path).seconds(Interrupted("a", 5)) == 15.0


# --- the folder ------------------------------------------------------------------------------------------


def test_folders_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    with pytest.raises(
        UsageError, match=r"mine: a new folder, or one of sums, is needed; other files are in it"
    ):
        run(tmp_path / "mine")
    (tmp_path / "other").mkdir()
    write_record(tmp_path / "other" / "reproduction.json", {"settings": {"system": "dras"}})
    with pytest.raises(UsageError, match="there: system was dras, is sums; "):
        run(tmp_path / "other")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="found a file"):
        run(tmp_path / "file")


def test_a_folder_is_of_one_seed_scale_and_set_of_logs(tmp_path: Path) -> None:
    log, other = tmp_path / "a.swf", tmp_path / "b.swf"
    log.write_text("1")
    other.write_text("2")
    one, two = (hashlib.sha256(text).hexdigest()[:8] for text in (b"1", b"2"))
    out = tmp_path / "out"
    run(out, logs=[log], seed=3)
    record = json.loads((out / "reproduction.json").read_text())["settings"]
    assert (record["system"], record["seed"], record["quick"]) == ("sums", 3, False)
    assert record["logs"] == [f"a.swf ({one})"]
    assert "finished" in json.loads((out / "reproduction.run.json").read_text())

    for how, differs in [
        ({"logs": [log], "seed": 4}, "seed was 3, is 4"),
        ({"logs": [log], "seed": 3, "quick": True}, "quick was False, is True"),
        ({"logs": [log, other], "seed": 3}, f"logs was a.swf ({one}), is a.swf ({one}), b.swf ({two})"),
        ({"logs": [other], "quick": True}, ("seed was 3, is 0; quick was False, is True; "
         f"logs was a.swf ({one}), is b.swf ({two})")),
    ]:  # fmt: skip
        before = {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
        with pytest.raises(UsageError) as caught:
            run(out, **how)  # type: ignore[arg-type]
        line = f"out: results of other settings are there: {differs}; --overwrite replaces them, another --"
        assert line in str(caught.value)
        assert before == {file: file.read_bytes() for file in out.rglob("*") if file.is_file()}
    log.write_text("3")
    with pytest.raises(UsageError, match=f"there: logs was a.swf .{one}., is a.swf"):
        run(out, logs=[log], seed=3)


def test_a_folder_is_taken_over_after_consent(tmp_path: Path) -> None:
    run(tmp_path / "out", seed=3)
    sums = Sums(logs=[], seed=4)
    ReproductionRun(sums, tmp_path / "out", "sums", 1).run(quiet=True, overwrite=True, say=lambda line: None)
    assert json.loads((tmp_path / "out" / "reproduction.json").read_text())["settings"]["seed"] == 4
    with pytest.raises(UsageError, match="seed was 4, is 3"):
        run(tmp_path / "out", seed=3)


def test_an_interrupted_folder_says_what_it_is_of(tmp_path: Path) -> None:
    with pytest.raises(HpcsimkitError, match="stumbled"):
        run(tmp_path / "out", Counting("a", 5, stumbles_at=1), seed=3, quick=True)
    record = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert record["unfinished"]
    assert record["settings"] == {
        "system": "sums", "seed": 3, "quick": True, "rivals": False, "logs": [],
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"seed was 3, is 0; quick was True, is False; --overwrite"):
        run(tmp_path / "out")
    (tmp_path / "out" / "reproduction.json").write_text('{"system": "sums"}')  # of another version
    with pytest.raises(UsageError, match="there: not recorded there; --over"):
        run(tmp_path / "out")


def test_one_run_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    run(tmp_path / "out")
    with (tmp_path / "out" / ".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="another run is writing there now"):
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


@dataclass(frozen=True)
class Settings:
    """With a default that is another one in a later version of the kit."""

    steps: int = 5
    rate: float = 0.1


def with_rate(rate: float) -> type:
    changed = dataclass(frozen=True)(type("Settings", (), {
        "__annotations__": {"steps": int, "rate": float}, "steps": 5, "rate": rate,
    }))  # fmt: skip
    changed.__module__, changed.__qualname__ = Settings.__module__, Settings.__qualname__
    return changed


def test_what_is_as_by_default_is_part_of_it_too() -> None:
    assert identity_of(MinusMeanWait()) == {
        "is": "hpcsimkit.agents.spaces.rewards:MinusMeanWait",
        "scale": 1.0,
    }
    assert identity_of(Settings()) == {"is": f"{__name__}:Settings", "steps": 5, "rate": 0.1}
    assert fingerprint(with_rate(0.1)()) == fingerprint(Settings())
    assert fingerprint(with_rate(0.2)()) != fingerprint(Settings())
    assert fingerprint(Pipeline()) != fingerprint(Pipeline(fitting=True))


def test_defaults_of_functions_and_weights_of_networks_are_part_of_it() -> None:
    def judged(agent: object, days: int = 3) -> None: ...
    def judged_longer(agent: object, days: int = 4) -> None: ...

    judged_longer.__qualname__ = judged.__qualname__
    assert fingerprint(judged) != fingerprint(judged_longer)
    assert fingerprint(partial(judged, 1)) != fingerprint(partial(judged_longer, 1))
    assert fingerprint(partial(judged, days=4)) == fingerprint(partial(judged_longer, days=4))
    assert fingerprint(Settings(3).__eq__) != fingerprint(Settings(4).__eq__)
    one, other = (
        SlotScores({"weight.0": np.full((1, 2), value), "bias.0": np.zeros(1)}) for value in (1.0, 2.0)
    )
    assert fingerprint(one) != fingerprint(other)


def test_what_does_not_say_what_it_is_made_of() -> None:
    with pytest.raises(TypeError, match=r"^what a datetime:date is made of cannot be told$"):
        identity_of(date(2021, 5, 1))


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


def test_a_report_is_tidy_markdown() -> None:
    table = Table(["a|b", "c"], [["1", "2"]])
    assert tidied(f"# Title\n\n\nOne\nparagraph\n.\n\n- one\n  item\n- two\n\n```\na\nb\n```\n{table}") == (
        "# Title\n\nOne paragraph.\n\n- one item\n- two\n\n```\na\nb\n```\n| a\\|b | c |\n|---|---:|\n| 1 | 2 |\n"
    )
