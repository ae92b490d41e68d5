"""Snapshots: a run that is resumed goes on with the same schedule, or says in one line why it cannot."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Machines, Observer, Order, Simulation, Workload, default_workload, make
from hpcsimkit.cluster.outages import Failures
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.io.npz import arrays_in, write_arrays
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.capacity import Listener
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.observers import Timeline
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.repetition import _Heard
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.snapshot import Keeping, Snapshot
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.helpers import rows_and_size, workload
from tests.kernel.machine_helpers import asked, jobs_on_machines
from tests.kernel.test_partitions import shared_case
from tests.waiting import PATIENCE

POLICIES = (
    "fcfs",
    "fcfs+easy",
    "sjf+easy",
    "fcfs+conservative",
    "fcfs+conservative-replan",
    "random+easy",
    "wfp3+easy",
    "saf+greedy",
    "sjf+fitting",
    "slurm(age=1,fair_share=5)+easy",
    "fcfs+easy+last-two",
    "fcfs+conservative+last-two",
    "aged(mean=1)+easy",
    "fcfs+easy+noisy",
    "las",
    "gittins",
    "oracle-srtf",
    "fcfs+easy+tests(seconds=2)",
    "sjf+conservative+tests(seconds=2)",
    "fcfs+easy-k(2)+tests(seconds=[1,3])",
    "predicted-aging+tests(seconds=2)",
)
THREE = Workload({"submit_time": [0, 5, 8], "run_time": [10, 9, 1], "nodes": [3, 4, 1]}, machine_size=4)


def assert_same(result: Result, whole: Result) -> None:
    assert result.start_time.tolist() == whole.start_time.tolist()
    assert result.hash == whole.hash
    assert result.passes == whole.passes
    assert result.mode.tolist() == whole.mode.tolist()
    if whole.attempts is not None:
        assert result.attempts is not None
        for name, column in vars(whole.attempts).items():
            if isinstance(column, np.ndarray):
                assert np.array_equal(getattr(result.attempts, name), column), name
    if whole.placements is not None:
        assert result.placements is not None
        assert result.placements.words() == whole.placements.words()


def resumed(simulation: Callable[[], Simulation], at: int, file: Path | None = None) -> Result:
    snapshot = simulation().snapshot(at)
    if file is None:
        return simulation().resume(snapshot).run()
    snapshot.write(file)
    return simulation().resume(file).run()


@pytest.mark.parametrize("policy", POLICIES)
@examples(0.3)
@given(drawn=rows_and_size(), walltime=st.sampled_from(["run", "kill"]), data=st.data())
def test_goes_on_with_the_same_schedule(policy: str, drawn: Any, walltime: Any, data: st.DataObject) -> None:
    def simulation() -> Simulation:
        return Simulation(workload(*drawn), make(policy), walltime=walltime)

    whole = simulation().run()
    at = data.draw(st.integers(int(whole.submit_time.min()), int(whole.submit_time.max())))
    with suppress(UsageError):  # there is no pass from then on
        assert_same(resumed(simulation, at), whole)


def test_the_recorder_forwards_all_notifications() -> None:
    names = [name for name in vars(Listener) if name.startswith("on_")]
    assert names and all(name in vars(_Heard) for name in names)


class By(Order):
    """Order by a function, which no snapshot can hold: it is a parameter, and stays that of the policy."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function

    def key(self, job: Any) -> Any:
        return self.function(job)


def test_parameters_are_no_memory() -> None:
    order = By(lambda job: -job.size)

    def simulation() -> Simulation:
        return Simulation(THREE, Pipeline(order))

    assert_same(resumed(simulation, 8), simulation().run())


class Choosy(Policy):
    """Rejects jobs that ask for more than 8 s, and stops the first job once another one waits."""

    def schedule(self, system: System) -> None:
        for job in list(system.queue):
            if job.requested_time > 8:
                system.reject(job)
            elif system.fits(job):
                system.start(job)
            elif system.running.rows == [0] and not system.ledger.attempts[0]:
                system.stop(system.jobs[0])


def test_rejections_and_stops_go_on() -> None:
    """Jobs 2 and 4 are rejected at 1 and 4 s; job 3 stops the first one at 3 s."""
    rows = [(0, 6, 6, 4), (1, 5, 9, 1), (3, 2, 2, 2), (4, 5, 9, 1), (5, 1, 1, 1)]

    def simulation() -> Simulation:
        return Simulation(workload(rows, 4), Choosy())

    whole = simulation().run()
    assert np.flatnonzero(whole.start_time < 0).tolist() == [1, 3]
    assert whole.attempts is not None
    assert whole.attempts.count(5).tolist() == [2, 0, 1, 0, 1]
    for at in (1, 3, 4, 5):
        assert_same(resumed(simulation, at), whole)


@pytest.mark.parametrize("mode", ["requeue", "cancel", "suspend", "suspend, grace_time=2"])
@examples(0.3)
@given(drawn=rows_and_size(), data=st.data())
def test_goes_on_with_preemption(mode: str, drawn: Any, data: st.DataObject) -> None:
    log = workload(*drawn)
    tiers = data.draw(st.lists(st.integers(1, 3), min_size=len(log), max_size=len(log)))
    log = Workload({**log.columns, "queue": tiers}, machine_size=log.machine_size)

    def simulation() -> Simulation:
        return Simulation(log, make(f"fcfs+easy+preempt(mode={mode})"))

    whole = simulation().run()
    assert_same(resumed(simulation, int(whole.submit_time.min())), whole)
    with suppress(UsageError):  # there is no pass from then on
        assert_same(resumed(simulation, data.draw(st.integers(0, int(whole.end_time.max())))), whole)


@pytest.mark.parametrize("policy", POLICIES)
def test_goes_on_within_a_log(policy: str, tmp_path: Path) -> None:
    log = default_workload(np.random.default_rng(1)).first(400)

    def simulation() -> Simulation:
        return Simulation(log, make(policy))

    whole = simulation().run()
    for at in np.quantile(whole.submit_time, [0.0, 0.4, 0.8], method="lower").tolist():
        assert_same(resumed(simulation, at, tmp_path / "x.npz"), whole)


@pytest.mark.parametrize("policy", ["fcfs+easy", "fcfs+conservative", "sjf+easy+worst-fit", "las"])
def test_failures_and_restarts_go_on(policy: str, tmp_path: Path) -> None:
    """On machines, with failures at random, checkpoints and jobs that are given up."""
    random = np.random.default_rng(5)
    jobs = jobs_on_machines(
        [
            asked(int(at), int(run), cpus=int(cpus))
            for at, run, cpus in zip(
                np.sort(random.integers(0, 2000, 80)),
                random.integers(1, 300, 80),
                random.integers(1, 5, 80),
                strict=True,
            )
        ]
    )
    options: dict[str, Any] = {
        "outages": Failures(mtbf=900, repair=60),
        "restart": Restart(delay=7, limit=4, checkpoint=50, checkpoint_cost=2, cost=3),
        "seed": 4,
    }

    def simulation() -> Simulation:
        return Simulation(jobs, make(policy), Machines.of(4, cpus=4), **options)

    whole = simulation().run()
    assert whole.attempts is not None and whole.attempts.count(len(jobs)).max() > 1
    for at in (0, 400, 1200):
        assert_same(resumed(simulation, at, tmp_path / "x.npz"), whole)


@pytest.mark.parametrize("policy", ["fcfs+easy", "fcfs+conservative", "slurm(usage=cluster)+easy"])
def test_partitions_go_on(policy: str, tmp_path: Path) -> None:
    jobs, cluster, _, _ = shared_case(3)

    def simulation() -> Simulation:
        return Simulation(jobs, make(policy), cluster)

    whole = simulation().run()
    for at in (1, 10, 25):
        result = resumed(simulation, at, tmp_path / "x.npz")
        assert_same(result, whole)
        assert result.started_in is not None and whole.started_in is not None
        assert result.started_in.tolist() == whole.started_in.tolist()


def test_dependencies_and_a_period_go_on() -> None:
    random = np.random.default_rng(2)
    columns: dict[str, Any] = {
        "submit_time": np.sort(random.integers(0, 300, 60)),
        "run_time": random.integers(1, 60, 60),
        "nodes": random.integers(1, 5, 60),
        "preceding": [row if row % 3 == 0 else -1 for row in range(60)],
    }
    jobs = Workload({"id": np.arange(1, 61), **columns}, machine_size=4)

    def simulation() -> Simulation:
        return Simulation(jobs, make("sjf+easy"), dependencies=True, period=7)

    whole = simulation().run()
    for at in (50, 200, 400):
        assert_same(resumed(simulation, at), whole)


def test_observers_see_the_whole_run() -> None:
    seen, again = Timeline(), Timeline()
    Simulation(THREE, make("fcfs+easy"), observers=[seen]).run()
    snapshot = Simulation(THREE, make("fcfs+easy")).snapshot(8)
    Simulation(THREE, make("fcfs+easy"), observers=[again]).resume(snapshot).run()
    assert vars(again).keys() == vars(seen).keys()
    assert repr(vars(again)) == repr(vars(seen))


def test_a_resumed_run_keeps_snapshots_that_begin_with_the_run(tmp_path: Path) -> None:
    log = default_workload(np.random.default_rng(1)).first(200)
    whole = Simulation(log, make("fcfs+conservative")).run()
    first = Simulation(log, make("fcfs+conservative")).snapshot(int(log.submit_time[60]))
    following = Simulation(log, make("fcfs+conservative")).resume(first)
    following.keep_snapshots(tmp_path / "x.npz", every=0)
    assert_same(following.run(), whole)
    second = Snapshot.read(tmp_path / "x.npz")
    assert second.at > first.at and len(second.repeated.passes) > len(first.repeated.passes)
    assert_same(Simulation(log, make("fcfs+conservative")).resume(second).run(), whole)


def test_open_seats_go_on(tmp_path: Path) -> None:
    """Half of the decisions are taken before, and are not asked again."""
    log = default_workload(np.random.default_rng(1)).first(80)

    def finish(simulation: Simulation) -> Result:
        while (decision := simulation.next_decision()) is not None:
            simulation.answer_position(len(decision.options) - 1)
        return simulation.result()

    def simulation() -> Simulation:
        return Simulation(log, Pipeline(External(FCFS()), backfiller=None, window=5))

    whole = finish(simulation())
    part = simulation()
    part.keep_snapshots(tmp_path / "x.npz", every=0)
    for _ in range(len(whole.choices) // 2):
        decision = part.next_decision()
        assert decision is not None
        part.answer_position(len(decision.options) - 1)
    rest = simulation().resume(tmp_path / "x.npz")
    assert 0 < len(rest.choices) <= len(whole.choices) // 2
    result = finish(rest)
    assert_same(result, whole)
    assert result.choices == whole.choices


KILLED = """
import sys, time
from hpcsimkit import *
from hpcsimkit.kernel.observers import Observer
import numpy as np
class Slow(Observer):
    def on_end(self, job, system):
        print(job.id, flush=True)
        time.sleep(0.002)
log = default_workload(np.random.default_rng(1)).first(1500)
simulation = Simulation(log, make("fcfs+conservative"), observers=[Slow()])
simulation.keep_snapshots(sys.argv[1], every=0.05)
simulation.run()
"""


def test_a_run_goes_on_after_kill_9(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    process = subprocess.Popen([sys.executable, "-c", KILLED, file], stdout=subprocess.PIPE)
    until = time.monotonic() + PATIENCE
    while not file.exists() and time.monotonic() < until and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    log = default_workload(np.random.default_rng(1)).first(1500)
    following = Simulation(log, make("fcfs+conservative")).resume(file)
    assert_same(following.run(), Simulation(log, make("fcfs+conservative")).run())


# --- what is refused ----------------------------------------------------------------------------------------


def refused(simulation: Simulation, snapshot: Snapshot | Path) -> str:
    with pytest.raises(HpcsimkitError) as found:
        simulation.resume(snapshot).run()
    assert "\n" not in str(found.value)
    return str(found.value)


def test_another_run_is_refused() -> None:
    snapshot = Simulation(THREE, make("fcfs")).snapshot(5)
    others = {
        "workload": Simulation(THREE.first(2), make("fcfs")),
        "policy": Simulation(THREE, make("sjf")),
        "cluster": Simulation(THREE, make("fcfs"), 5),
        "seed": Simulation(THREE, make("fcfs"), seed=1),
        "options": Simulation(THREE, make("fcfs"), walltime="kill"),
    }
    for what, simulation in others.items():
        assert refused(simulation, snapshot) == (
            f"snapshot: a snapshot of this run is needed, found one of another {what}"
        )


@pytest.mark.parametrize(("name", "what"), [("version", "version of hpcsimkit"), ("code", "code")])
def test_another_version_and_other_code_are_refused(name: str, what: str, tmp_path: Path) -> None:
    snapshot = Simulation(THREE, make("fcfs")).snapshot(5)
    changed = Snapshot(snapshot.at, {**snapshot.run, name: "0"}, snapshot.choices, snapshot.repeated)
    changed.write(tmp_path / "x.npz")
    found = refused(Simulation(THREE, make("fcfs")), tmp_path / "x.npz")
    assert found == f"{tmp_path / 'x.npz'}: a snapshot of this run is needed, found one of another {what}"


def test_the_file_of_a_policy_of_the_user_is_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = Simulation(THREE, Pipeline(Mine())).snapshot(5)
    assert len(snapshot.run["code"].split()) == 2
    monkeypatch.setattr("inspect.getsourcefile", lambda kind: str(tmp_path / "mine.py"))
    (tmp_path / "mine.py").write_text("other")
    assert "another code" in refused(Simulation(THREE, Pipeline(Mine())), snapshot)


class Mine(Order):
    def reset(self, system: Any) -> None:
        self._seen: list[Any] = []
        self._same = self._seen

    def key(self, job: Any) -> int:
        self._seen.append((job, {job.index: {1.5, "x"}}))
        return -job.nodes


class Forgetful(Mine):
    def key(self, job: Any) -> int:
        self._ahead = iter([job])
        return 0


def test_what_a_stage_remembers_is_restored() -> None:
    snapshot = Simulation(THREE, Pipeline(Mine())).snapshot(8)
    simulation = Simulation(THREE, Pipeline(Mine())).resume(snapshot)
    simulation.run()
    order = simulation.system.order
    assert isinstance(order, Mine)
    assert order._same is order._seen and [job.id for job, _ in order._seen] == [1, 2, 3]
    assert order._seen[0][0] is simulation.system.jobs[0]
    assert order._seen[0][1] == {0: {1.5, "x"}}


def test_a_memory_that_cannot_be_written_is_refused_by_name() -> None:
    with pytest.raises(
        UsageError, match=r"^snapshot: Forgetful\(\) keeps .*list_iterator as _ahead, which a"
    ):
        Simulation(THREE, Pipeline(Forgetful()), name="mine").snapshot(5)


class Listening(Mine):
    def key(self, job: Any) -> int:
        self._ahead = FakeRecorder().look
        return 0


def test_a_method_of_what_is_no_stage_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match=r"^snapshot: Listening\(\) keeps a method as _ahead, which a"):
        Simulation(THREE, Pipeline(Listening())).snapshot(5)


def test_it_is_noticed_early_that_no_snapshot_can_be_kept(tmp_path: Path) -> None:
    simulation = Simulation(THREE, Pipeline(Forgetful()))
    simulation.keep_snapshots(tmp_path / "x.npz")
    with pytest.raises(UsageError, match="Forgetful"):
        simulation.run()
    assert simulation.system.now == 0


class FakeRecorder:
    """A recorder whose memories and snapshots are counted."""

    def __init__(self) -> None:
        self.passes, self.looked, self.written, self.now = 0, list[int](), list[float](), 100.0
        self.memories = SimpleNamespace(written=self.look)

    def look(self) -> None:
        self.looked.append(self.passes)


def test_snapshots_are_kept_at_intervals_of_computing_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are due 10 s after the last one; memories are looked at after 1, 2, 4, ... passes, up to 1024."""
    recorder: Any = FakeRecorder()
    monkeypatch.setattr("hpcsimkit.kernel.snapshot.time", SimpleNamespace(monotonic=lambda: recorder.now))
    made = SimpleNamespace(write=lambda path: recorder.written.append(recorder.now))
    keeping = Keeping(Path("x.npz"), 10, lambda _: cast(Snapshot, made))
    for recorder.now in (109.9, 110.0, 119.9, 121.0, 130.9, 131.0):
        keeping(recorder)
    assert recorder.written == [110.0, 121.0, 131.0]
    recorder.looked.clear()
    for recorder.passes in range(1, 5000):
        keeping(recorder)
    assert recorder.looked == [2**power for power in range(11)]


class Watching(Observer):
    def on_decision(self, decision: Any, choice: Any, system: Any) -> None: ...


def test_what_cannot_be_combined(tmp_path: Path) -> None:
    snapshot = Simulation(THREE, make("fcfs")).snapshot(5)
    decided = Snapshot(snapshot.at, snapshot.run, (("order", 0),), snapshot.repeated)
    watched = Simulation(THREE, make("fcfs"), observers=[Watching()])
    assert "Watching needs decisions, which are not repeated" in refused(watched, decided)
    compiled = Simulation(THREE, make("fcfs"), simulator="compiled")
    compiled.keep_snapshots(tmp_path / "x.npz")
    with pytest.raises(UsageError, match="the compiled simulator keeps none"):
        compiled.run()
    with pytest.raises(UsageError, match="a begun run with a past keeps none"):
        Simulation(THREE, make("fcfs"), begun=Begun(12, {0: 0})).snapshot(13)
    over = Simulation(THREE, make("fcfs"))
    over.run()
    with pytest.raises(UsageError, match="the run has begun already"):
        over.resume(snapshot)
    with pytest.raises(UsageError, match="a time before the last pass is needed, found 99 s"):
        Simulation(THREE, make("fcfs")).snapshot(99)
    with pytest.raises(UsageError, match="an interval of 0 s or more is needed, found -1"):
        over.keep_snapshots(tmp_path / "x.npz", every=-1)
    with pytest.raises(UsageError, match="the order seat is open before 5 s"):
        Simulation(THREE, Pipeline(External())).snapshot(5)


def test_a_begun_run_without_a_past_goes_on() -> None:
    def simulation() -> Simulation:
        return Simulation(THREE, make("fcfs"), begun=Begun(6, {0: 0}))

    assert_same(resumed(simulation, 9), simulation().run())


def test_a_trace_of_a_resumed_run_is_that_of_the_whole(tmp_path: Path) -> None:
    with Trace(tmp_path / "whole.jsonl") as trace:
        Simulation(THREE, make("fcfs+easy"), observers=[trace]).run()
    snapshot = Simulation(THREE, make("fcfs+easy")).snapshot(8)
    with Trace(tmp_path / "again.jsonl") as trace:
        Simulation(THREE, make("fcfs+easy"), observers=[trace]).resume(snapshot).run()
    assert (tmp_path / "again.jsonl").read_text() == (tmp_path / "whole.jsonl").read_text()


# --- damaged files ------------------------------------------------------------------------------------------


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    Simulation(THREE, make("fcfs+conservative")).snapshot(8).write(tmp_path / "x.npz")
    return tmp_path / "x.npz"


def changed(file: Path, name: str, value: Any) -> Path:
    arrays = arrays_in(file.read_bytes(), file)
    about = json.loads(str(arrays.pop("about")))
    if name in about:
        about[name] = value
    else:
        arrays[name] = value
    write_arrays(file, about=np.array(json.dumps(about)), **arrays)
    return file


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "hpcsimkit snapshot 0"),
        ("format", None),
        ("at", "x"),
        ("run", {}),
        ("choices", 5),
        ("styles", ["x"]),
        ("state", "0"),
        ("memory", {}),
        ("memory", {"stages": [], "holds": []}),
        ("actions", np.zeros((2, 3), dtype=np.int64)),
        ("actions", np.full((2, 4), 77)),
        ("actions", np.array([[0, 9, 1, 0]])),
        ("actions", np.array([[0, 0, 7, 0]])),
        ("passes", np.zeros((0, 2), dtype=np.int64)),
        ("passes", np.array([[0, -5], [0, 99]])),
        ("passes", np.array([[3, 0]])),
        ("passes", np.array([1.5])),
        ("counts", np.array([2])),
    ],
)
def test_a_damaged_snapshot_is_one_line(saved: Path, name: str, value: Any) -> None:
    changed(saved, name, value)
    assert refused(Simulation(THREE, make("fcfs+conservative")), saved)


@pytest.mark.parametrize(
    "value",
    [
        {"object": "os:_Environ", "state": []},
        {"object": "subprocess:Popen", "state": []},
        {"object": "hpcsimkit.errors:sys", "state": []},
        {"object": "hpcsimkit.nosuch:X", "state": []},
        {"object": "hpcsimkit.jobs.job:Job", "state": 5},
        {"named": "hpcsimkit.kernel.system:attrgetter", "values": []},
        {"enum": "hpcsimkit.kernel.ledger:Mode", "value": 99},
        {"method": "__class__", "of": ["part", 0]},
        {"method": "run", "of": ["system", 0]},
        {"known": ["of", 0, "system", "nosuch"]},
        {"array": 99},
        {"same": 99},
        {"job": 99},
        {"numpy": "O", "value": 1},
        {"nosuch": 1},
        {"generator": {"dict": [["bit_generator", "seed"]]}},
        {},
        [1],
    ],
)
def test_a_memory_names_no_other_code(saved: Path, value: Any) -> None:
    arrays = arrays_in(saved.read_bytes(), saved)
    memory = json.loads(str(arrays["about"]))["memory"]
    memory["stages"][0][1]["_committed"] = value
    loaded = set(sys.modules)
    found = refused(Simulation(THREE, make("fcfs+conservative")), changed(saved, "memory", memory))
    assert "the memory of the policy is damaged" in found
    assert not {name for name in set(sys.modules) - loaded if name.startswith("subprocess")}


def test_other_files_are_no_snapshots(tmp_path: Path) -> None:
    for content in (b"", b"x", b"PK\x03\x04"):
        (tmp_path / "x.npz").write_bytes(content)
        assert "a snapshot is needed, found something else" in refused(
            Simulation(THREE, make("fcfs")), tmp_path / "x.npz"
        )
    Simulation(THREE, make("fcfs")).run().save(tmp_path / "r.npz")
    found = refused(Simulation(THREE, make("fcfs")), tmp_path / "r.npz")
    assert "'hpcsimkit snapshot 1' is needed, found 'hpcsimkit result 2'" in found
    assert "nosuch.npz" in refused(Simulation(THREE, make("fcfs")), tmp_path / "nosuch.npz")
