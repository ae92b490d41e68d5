"""Observers: timeline, trace, progress and profile of the passes."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hpcsimkit._version import __version__
from hpcsimkit.agents.seats import RandomChoice, play
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import PolicyError, StalledError, UsageError
from hpcsimkit.experiments.checks.workloads import random_workloads
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel import recording
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.observers import Observer, Promises, Timeline
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import PassProfile, Progress, Trace, _Memory
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.placements import BestFit
from hpcsimkit.results.result import MODE_NAMES

THREE = Workload(
    {"id": [7, 8, 9], "submit_time": [0, 1, 1], "run_time": [9, 4, 2], "nodes": [3, 2, 1]},
    machine_size=4,
    name='a "log"',
)


class RejectsLater(Policy):
    """Refuses job 8 at t=9; starts whatever else fits."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if job.id != 8 and system.fits(job):
                system.start(job)
            elif system.now >= 9:
                system.reject(job)


class Breaks(Policy):
    """Fails at t=1."""

    def schedule(self, system: System) -> None:
        if system.now == 1:
            raise ZeroDivisionError
        system.start(system.queue.first())


class Never(Policy):
    """Starts nothing."""

    def schedule(self, system: System) -> None:
        pass


# --- timeline --------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.sampled_from([Pipeline(), Pipeline(backfiller=EASY())]), st.booleans())
def test_timeline_equals_that_of_the_result(seed: int, policy: Pipeline, dependencies: bool) -> None:
    workload = random_workloads(np.random.default_rng(seed), jobs=30)[seed % 8]
    preceding = np.arange(30) - seed % 3
    workload = Workload({**workload.columns, "preceding": preceding}, machine_size=workload.machine_size)
    timeline = Timeline()
    result = Simulation(workload, policy, observers=[timeline], dependencies=dependencies).run()
    steps = result.timeline()
    for name in ("time", "waiting", "busy"):
        np.testing.assert_array_equal(getattr(timeline.steps, name), getattr(steps, name))


def test_timeline_sees_rejected_jobs_wait() -> None:
    timeline = Timeline()
    result = Simulation(THREE, RejectsLater(), observers=[timeline]).run()
    assert timeline.steps.time.tolist() == [0, 1, 3, 9]
    assert timeline.steps.waiting.tolist() == [0, 1, 1, 0]
    assert timeline.steps.busy.tolist() == [3, 4, 3, 0]
    assert result.timeline().waiting.max() == 0


def test_the_time_of_a_run_is_within_that_of_its_call() -> None:
    """Also if the run goes on after a decision."""
    jobs = Workload({"submit_time": [0, 0], "run_time": [5, 5], "nodes": [1, 1]}, machine_size=1)
    began = time.perf_counter()
    plain = Simulation(jobs, Pipeline(), simulator="simpy").run()
    asked = Simulation(jobs, Pipeline(order=External()), simulator="simpy")
    decision = asked.next_decision()
    while decision is not None:
        decision = asked.proceed(0)
    for result in (plain, asked.result()):
        assert 0 < result.seconds < time.perf_counter() - began


def test_the_time_of_a_pass_is_also_that_after_its_decisions(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which each part takes 1 s: a pass of two decisions has three parts, one of one has two."""
    seconds = list[float]()

    class Passes(Observer):
        def on_pass(self, taken: float, system: System) -> None:
            seconds.append(taken)

    jobs = Workload({"submit_time": [0, 0, 9], "run_time": [5, 5, 1], "nodes": [1, 1, 2]}, machine_size=2)
    asked = Simulation(jobs, Pipeline(order=External()), simulator="simpy", observers=[Passes()])
    monkeypatch.setattr(time, "perf_counter", map(float, range(10**6)).__next__)
    decision = asked.next_decision()
    while decision is not None:
        decision = asked.proceed(0)
    assert seconds == [3, 2]


def test_promises_before_any_run() -> None:
    promises = Promises()
    assert (promises.made, promises.broken, promises.delay) == (0, 0, 0)


def test_timeline_forgets_the_run_before() -> None:
    timeline = Timeline()
    for _ in range(2):
        Simulation(THREE, Pipeline(), observers=[timeline]).run()
    assert timeline.steps.time.tolist() == [0, 1, 9, 11, 13]


# --- trace -----------------------------------------------------------------------------------------------


def lines_of(path: Path) -> list[dict[str, Any]]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["trace.jsonl", "trace.jsonl.gz"])
def test_trace_by_hand(name: str, tmp_path: Path) -> None:
    Simulation(THREE, Pipeline(backfiller=EASY()), seed=3, observers=[Trace(tmp_path / name)]).run()
    begin, *lines = lines_of(tmp_path / name)
    assert begin == {
        "t": 0, "event": "begin", "workload": 'a "log"', "jobs": 3, "nodes": 4, "seed": 3, "kit": __version__
    }  # fmt: skip
    assert lines == [
        {"t": 0, "event": "submit", "job": 7},
        {"t": 0, "event": "start", "job": 7, "mode": "ready", "nodes": 3},
        {"t": 1, "event": "submit", "job": 8},
        {"t": 1, "event": "submit", "job": 9},
        {"t": 1, "event": "start", "job": 9, "mode": "backfilled", "nodes": 1},
        {"t": 3, "event": "end", "job": 9},
        {"t": 9, "event": "end", "job": 7},
        {"t": 9, "event": "start", "job": 8, "mode": "reserved", "nodes": 2},
        {"t": 13, "event": "end", "job": 8},
        {"t": 13, "event": "finish"},
    ]
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_trace_of_rejection(tmp_path: Path) -> None:
    Simulation(THREE, RejectsLater(), observers=[Trace(tmp_path / "t")]).run()
    assert {"t": 9, "event": "reject", "job": 8} in lines_of(tmp_path / "t")


def test_trace_of_decisions(tmp_path: Path) -> None:
    workload = random_workloads(np.random.default_rng(1))[2]
    policy = Pipeline(External(decline=True), External(), External(), External(decline=True))
    simulation = Simulation(workload, policy, observers=[Trace(tmp_path / "t")])
    result = play(simulation, RandomChoice(np.random.default_rng(4)))
    decisions = [line for line in lines_of(tmp_path / "t") if line["event"] == "decision"]
    assert tuple((line["stage"], line["position"]) for line in decisions) == result.choices
    ids = {*workload.id.tolist(), None}
    values = {"order": ids, "backfiller": ids, "inspector": {True, False}, "placement": {1, 2, 3, 4}}
    assert {line["stage"] for line in decisions} == set(values)
    for line in decisions:
        assert 0 <= line["position"] < line["options"]
        assert line["choice"] in values[line["stage"]]
        assert line["job"] in ids
        assert (line["job"] is None) == (line["stage"] == "order")


def test_trace_on_machines(tmp_path: Path) -> None:
    """Equal machines: each placement can be told from the others, by position and by name."""
    columns = {"submit_time": [0, 1], "run_time": [9, 9], "nodes": [1, 2], "cpus": [2, 1], "gpus": [1, 0]}
    workload = Workload(columns, resources=("cpus", "gpus"))
    cluster = Machines.of(3, cpus=4, gpus=1)
    policy = Pipeline(placement=External(BestFit()))
    simulation = Simulation(workload, policy, cluster, observers=[Trace(tmp_path / "t")])
    taken = []
    while (decision := simulation.next_decision()) is not None:
        taken.append(decision.options[-1])
        simulation.answer(decision.options[-1])
    begin, *lines = lines_of(tmp_path / "t")
    assert (begin["cpus"], "nodes" in begin) == (12, False)
    decisions = [line for line in lines if line["event"] == "decision"]
    assert [line["position"] for line in decisions] == [line["options"] - 1 for line in decisions]
    assert decisions[0]["choice"] == {cluster.names[taken[0].machines[0]]: [2, 1]}
    assert decisions[1]["choice"] == {cluster.names[machine]: [1, 0] for machine in taken[1].machines}
    starts = [line for line in lines if line["event"] == "start"]
    assert [line["machines"] for line in starts] == [list(line["choice"]) for line in decisions]
    assert all("nodes" not in line for line in starts)


def test_trace_tells_the_whole_result(tmp_path: Path) -> None:
    workload = random_workloads(np.random.default_rng(5), jobs=3000)[4]
    result = Simulation(workload, Pipeline(backfiller=EASY()), observers=[Trace(tmp_path / "t")]).run()
    lines = lines_of(tmp_path / "t")
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    row_of = {job.id: job.index for job in workload.jobs}
    for event, times in (
        ("submit", result.submit_time),
        ("start", result.start_time),
        ("end", result.end_time),
    ):
        told = {row_of[line["job"]]: line["t"] for line in lines if line["event"] == event}
        assert [told[row] for row in range(3000)] == times.tolist()
    modes = {row_of[line["job"]]: line["mode"] for line in lines if line["event"] == "start"}
    assert [modes[row] for row in range(3000)] == [MODE_NAMES[mode] for mode in result.mode]


def test_trace_of_a_run_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(PolicyError), Trace(tmp_path / "t") as trace:
        Simulation(THREE, Breaks(), observers=[trace]).run()
    assert list(tmp_path.iterdir()) == []


def test_trace_of_a_run_that_ends_python_leaves_nothing(tmp_path: Path) -> None:
    code = """
from hpcsimkit.policies.placing.placements import BestFit
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.jobs.workload import Workload
class Breaks(Policy):
    def schedule(self, system):
        raise KeyboardInterrupt
workload = Workload({"submit_time": [0], "run_time": [1], "nodes": [1]}, machine_size=1)
Simulation(workload, Breaks(), observers=[Trace("t")]).run()
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert "KeyboardInterrupt" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_trace_does_not_touch_what_was_there_until_it_is_complete(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("former")
    with pytest.raises(StalledError):
        Simulation(THREE, Never(), observers=[Trace(tmp_path / "t")]).run()
    assert (tmp_path / "t").read_text() == "former"
    Simulation(THREE, Pipeline(), observers=[Trace(tmp_path / "t")]).run()
    assert lines_of(tmp_path / "t")[-1]["event"] == "finish"


def test_trace_into_nowhere_is_one_clear_line(tmp_path: Path) -> None:
    path = tmp_path / "nowhere" / "t"
    with pytest.raises(UsageError, match=f"^{path}: the trace cannot be written: No such file or directory$"):
        Simulation(THREE, Pipeline(), observers=[Trace(path)]).run()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("jobs", [10, 3000])
def test_full_disk_is_no_fault_of_the_policy(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = random_workloads(np.random.default_rng(5), jobs=jobs)[4]
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(recording, "_open", lambda path, compress: full)
        with pytest.raises(UsageError, match="the trace cannot be written: No space left on device"):
            Simulation(workload, Pipeline(), observers=[Trace(tmp_path / "t")]).run()


# --- progress --------------------------------------------------------------------------------------------


def terminal() -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    return Console(file=text, force_terminal=True, width=100), text


def test_progress_shows_what_is_done() -> None:
    console, text = terminal()
    Simulation(THREE, Pipeline(), observers=[Progress("sjf", console=console)]).run()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text.getvalue())
    assert re.search(r"sjf .* 3/3 .*jobs/s", shown)


def test_progress_is_silent_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    console, text = terminal()
    quiet = Progress(quiet=True, console=console)
    file = Progress(console=Console(file=text, force_terminal=False))
    Simulation(THREE, Pipeline(), observers=[quiet, file, Progress()]).run()
    assert text.getvalue() == ""
    assert capfd.readouterr() == ("", "")


def followed(monkeypatch: pytest.MonkeyPatch, jobs: int, seconds: float) -> tuple[Progress, Workload]:
    """A progress whose clock goes on by so many seconds with each job, and jobs."""
    progress = Progress(console=terminal()[0])
    monkeypatch.setattr(time, "perf_counter", lambda: getattr(progress, "_ended", 0) * seconds)
    columns = {"submit_time": range(jobs), "run_time": [1] * jobs, "nodes": [1] * jobs}
    return progress, Workload(columns, machine_size=1)


def test_progress_is_drawn_now_and_then_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr(Progress, "_draw", lambda self: drawn.append(self._ended))
    progress, jobs = followed(monkeypatch, 300, 0.001)
    Simulation(jobs, Pipeline(), observers=[progress]).run()
    assert 2 <= len(drawn) <= 300 * 0.001 / Progress.INTERVAL + 1
    assert drawn == sorted(drawn)
    assert drawn[-1] == 300


def test_progress_tells_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """A job ends every quarter of a second."""
    progress, jobs = followed(monkeypatch, 12, 0.25)
    assert progress.console is not None
    Simulation(jobs, Pipeline(), observers=[progress]).run()
    shown = progress.console.file
    assert isinstance(shown, io.StringIO)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.getvalue())
    assert set(re.findall(r"(\d+)/12 +(\d+) jobs/s", text)) >= {("4", "4"), ("12", "4")}


def test_progress_looks_at_the_clock_seldom_in_a_fast_run(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = []
    look = Progress._look
    monkeypatch.setattr(Progress, "_look", lambda self: (looked.append(self._ended), look(self)))
    progress, jobs = followed(monkeypatch, 20_000, 1e-5)
    Simulation(jobs, Pipeline(), observers=[progress], simulator="simpy").run()
    assert 1 <= len(looked) < 50


def test_progress_leaves_the_terminal_in_order_when_a_run_fails() -> None:
    console, text = terminal()
    with pytest.raises(PolicyError), Progress(console=console) as progress:
        Simulation(THREE, Breaks(), observers=[progress]).run()
    assert text.getvalue().rindex("\x1b[?25h") > text.getvalue().rindex("\x1b[?25l")  # the cursor is back


# --- cost of the passes ----------------------------------------------------------------------------------


class Slow(Policy):
    """Takes 1 ms for each pass."""

    def schedule(self, system: System) -> None:
        time.sleep(0.001)
        system.start(system.queue.first())


def test_profile_has_a_row_for_each_pass() -> None:
    profile = PassProfile()
    columns = {"submit_time": range(0, 90, 3), "run_time": [1] * 30, "nodes": [1] * 30}
    result = Simulation(Workload(columns, machine_size=1), Slow(), observers=[profile]).run()
    summary = profile.summary()
    assert summary["passes"] == len(profile.seconds) == len(profile.resident) == result.passes == 30
    assert (profile.seconds >= 0.001).all()
    assert summary["seconds_total"] == pytest.approx(profile.seconds.sum())
    assert summary["seconds_median"] == pytest.approx(np.median(profile.seconds))
    assert summary["seconds_mean"] <= summary["seconds_max"] == profile.seconds.max()
    assert 10**7 < profile.resident.min() <= summary["resident_mean"] <= summary["resident_max"] < 10**11
    assert len(pickle.loads(pickle.dumps(profile)).seconds) == 30


def test_profile_sees_memory_grow() -> None:
    """In a process of its own: here, memory that other tests gave back may be used again."""
    program = """if True:
        import numpy as np
        from hpcsimkit import Policy, Simulation, Workload
        from hpcsimkit.kernel.recording import PassProfile

        class Hoards(Policy):
            def schedule(self, system):
                self.heap = [*getattr(self, "heap", []), np.ones(1_000_000)]
                system.start(system.queue.first())

        profile = PassProfile()
        columns = {"submit_time": range(0, 30, 3), "run_time": [1] * 10, "nodes": [1] * 10}
        Simulation(Workload(columns, machine_size=1), Hoards(), observers=[profile]).run()
        print(profile.resident[-1] - profile.resident[0])
    """
    answer = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert int(answer.stdout) > 60_000_000


def test_resident_size_is_that_of_the_system() -> None:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc")
    (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    assert _Memory().resident() == pytest.approx(int(line.split()[1]) * 1024, rel=0.2)


def test_without_proc_the_peak_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise FileNotFoundError

    with pytest.MonkeyPatch.context() as without_proc:
        without_proc.setattr(Path, "open", missing)
        memory = _Memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("resource.getrusage", lambda who: SimpleNamespace(ru_maxrss=7_000))
    assert memory.resident() == 7_000 * 1024
    monkeypatch.setattr(sys, "platform", "darwin")  # where the unit is bytes
    assert memory.resident() == 7_000


def test_profile_of_nothing() -> None:
    summary = PassProfile().summary()
    assert (summary.pop("passes"), summary.pop("seconds_total")) == (0, 0)
    assert np.isnan(list(summary.values())).all()


# --- hooks -----------------------------------------------------------------------------------------------


def test_observers_are_told_in_turn_and_see_the_state_after() -> None:
    told = []

    class Hears(Observer):
        def on_begin(self, system: System) -> None:
            told.append(("begin", system.now))

        def on_submit(self, job: Job, system: System) -> None:
            assert job in system.queue
            told.append(("submit", job.id))

        def on_start(self, job: Job, allocation: Any, system: System) -> None:
            assert job not in system.queue
            assert job in system.running
            told.append(("start", job.id))

        def on_end(self, job: Job, system: System) -> None:
            assert job not in system.running
            told.append(("end", job.id))

        def on_finish(self, system: System) -> None:
            told.append(("finish", system.now))

    Simulation(THREE, Pipeline(backfiller=EASY()), observers=[Hears()]).run()
    assert told == [
        ("begin", 0), ("submit", 7), ("start", 7), ("submit", 8), ("submit", 9), ("start", 9), ("end", 9),
        ("end", 7), ("start", 8), ("end", 8), ("finish", 13),
    ]  # fmt: skip
