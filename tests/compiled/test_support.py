"""Simulations that the compiled simulator takes, and how it refuses the others."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.limited import limited
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import loading, loop, support
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.experiments.comparison.campaign import Campaign
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import PolicyRun
from hpcsimkit.experiments.console import policy_lines
from hpcsimkit.experiments.parts.catalogue import entries
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel import simulators, verified_capacity
from hpcsimkit.kernel.begun import Begun
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.observers import Timeline
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.recording import Progress
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.backfill.backfilling import Reservations
from hpcsimkit.policies.slurm import SlurmMultifactor
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import write_swf

FOUR = Machines.of(1, cpus=4)
LIMITED = limited(FOUR, {"cpus": 4})
BILLED = Partitions([Partition("all", default=True, billing={"cpus": 2})], FOUR)
TWO = Partitions([Partition("a", nodes=4, default=True), Partition("b", nodes=4)])


BY_USAGE = Pipeline(SJF(), backfiller=EASY(SlurmMultifactor()))


@pytest.fixture
def jobs() -> Workload:
    return Workload({"submit_time": [0, 1, 2], "run_time": [9, 4, 5], "nodes": [3, 2, 1]}, machine_size=4)


class Own(SJF):
    """An order of a user, about which nothing is known."""


class OwnOrder(DirlabOrder):
    """An order of events of a user."""


@pytest.mark.parametrize(
    ("policy", "parameters", "reason"),
    [
        ("lcfs+easy", {"dependencies": True}, "it knows no LCFS() with Dependencies()"),
        ("fcfs+easy", {"period": 60}, "no period"),
        ("fcfs+easy", {"event_order": DirlabOrder()}, "backfiller EASY()"),
        ("fcfs", {"event_order": OwnOrder()}, "no order of events 'dirlab'"),
        ("fcfs", {"event_order": DirlabOrder(), "cluster": FOUR}, "homogeneous nodes only"),
        ("fcfs+round-robin", {"cluster": FOUR}, "the placement RoundRobin() is not compiled"),
        ("fcfs", {"cluster": LIMITED}, "no LimitedMachines"),
        ("fcfs", {"cluster": FOUR, "begun": Begun(5, {0: 3, 1: 3})}, "the running jobs do not fit"),
        ("fcfs", {"cluster": FOUR, "begun": Begun(5, {0: 3}, {0: 3})}, "the running jobs do not fit"),
        ("fcfs+easy", {"cluster": TWO, "period": 60}, "no period over several partitions"),
        ("slurm+easy", {"cluster": BILLED}, "no billing of partitions"),
        (BY_USAGE, {"cluster": BILLED}, "no billing of partitions"),
        ("fcfs+easy", {"observers": [Timeline()]}, "Timeline observes events"),
        ("fcfs+hold-unfit", {}, "inspector"),
        ("fcfs+commit", {}, "commits"),
        ("fcfs+published-easy", {}, "backfiller"),
        (Pipeline(backfiller=Reservations(0)), {}, "number of reservations is 0"),
        ("sjf+easy+actual(reservations=false)", {}, "estimates Actual(reservations=False)"),
        ("sjf+fitting+window(3)", {}, "window"),
        ("recorded", {}, "no plain pipeline"),
        (Pipeline(order=Own()), {}, "order Own()"),
        (Pipeline(order=External()), {}, "order External()"),
    ],
)
def test_refuses_with_the_reason(jobs: Workload, policy: Any, parameters: Any, reason: str) -> None:
    if policy == "recorded":
        jobs = Workload({**jobs.columns, "recorded_wait_time": np.zeros(3)}, machine_size=4)
    policy = make(policy) if isinstance(policy, str) else policy
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(jobs, policy, simulator="compiled", **parameters).run()
    assert reason in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("begun", [Begun(5, {0: 3, 1: 3}), Begun(5, {0: 3}, {0: 2})])
def test_refuses_running_jobs_that_do_not_fit(jobs: Workload, begun: Begun) -> None:
    with pytest.raises(UsageError, match="the running jobs do not fit"):
        Simulation(jobs, make("fcfs"), begun=begun, simulator="compiled").run()
    with pytest.raises(ScheduleError):
        Simulation(jobs, make("fcfs"), begun=begun).run()


@pytest.mark.parametrize("begun", [None, Begun(5, {0: 3})])
def test_auto_takes_runs_once_they_are_many(
    jobs: Workload, begun: Begun | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "least_jobs", lambda kind: 5 * (len(jobs) + loading.BESIDE_JOBS))
    results = [Simulation(jobs, make("fcfs"), begun=begun).run() for _ in range(6)]
    assert [result.simulator for result in results] == ["simpy"] * 4 + ["compiled"] * 2
    assert len({result.hash for result in results}) == 1


@pytest.mark.parametrize("policy", ["looking-ahead+easy", "guarded(sjf, weeks=0.001, every=100)+easy"])
def test_policies_with_trials(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(4)
    busy = Workload(
        {
            "submit_time": np.sort(numbers.integers(0, 9000, 150)),
            "run_time": numbers.integers(1, 700, 150),
            "requested_time": numbers.integers(1, 900, 150),
            "nodes": numbers.integers(1, 9, 150),
        },
        machine_size=8,
    )
    taken = []
    real = support.run
    monkeypatch.setattr(support, "run", lambda simulation: taken.append(1) or real(simulation))
    monkeypatch.setattr(loading, "least_jobs", lambda kind: 0)
    compiled = Simulation(busy, make(policy)).run()
    assert len(taken) > 20
    monkeypatch.setattr(simulators, "LOADERS", [])
    assert Simulation(busy, make(policy)).run().hash == compiled.hash


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("fcfs", {}),
        ("sjf+easy", {}),
        ("fcfs+conservative", {}),
        ("wfp3+greedy", {"begun": Begun(30, {3: 29, 0: 3})}),
        ("fcfs+published-easy", {"event_order": DirlabOrder()}),
    ],
)
def test_the_positions_of_starts_and_ends_in_time(
    policy: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They spare the verification the sorting."""
    monkeypatch.setattr(verified_capacity, "_peak", None)
    numbers = np.random.default_rng(5)
    columns = {
        "submit_time": np.sort(numbers.integers(0, 900, 200)),
        "run_time": numbers.choice([0, 1, 9, 40, 70], 200),
        "nodes": numbers.integers(1, 9, 200),
    }
    columns["submit_time"][:4] = 0
    columns["run_time"][:4], columns["nodes"][:4] = 40, 4
    jobs = Workload({**columns, "requested_time": columns["run_time"] + 5}, machine_size=8)
    simulation = Simulation(jobs, make(policy), simulator="compiled", **options)
    simulation.run()
    result, positions = support.run(simulation)
    assert positions is not None
    times, changes = np.empty((2, 400), dtype=np.int64)
    times[positions], changes[positions] = (result.start_time, result.end_time), (jobs.nodes, -jobs.nodes)
    assert sorted(positions.ravel().tolist()) == list(range(400))
    assert (np.diff(times) >= 0).all()
    assert np.cumsum(changes).max() <= 8


def test_refuses_without_numba(jobs: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="numba is not installed"):
        Simulation(jobs, make("fcfs"), simulator="compiled").run()


def test_refuses_numbers_that_would_overflow() -> None:
    columns = {"submit_time": [0, 0], "run_time": [1, 10**11], "nodes": [1, 2**31], "requested_time": [9, 9]}
    jobs = Workload(columns, machine_size=2**31)
    with pytest.raises(UsageError, match="too large"):
        Simulation(jobs, make("saf"), simulator="compiled").run()


def test_auto_takes_what_it_can_run(jobs: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    real = support.run
    monkeypatch.setattr(support, "run", lambda simulation: taken.append(1) or real(simulation))
    monkeypatch.setattr(loading, "least_jobs", lambda kind: 3 + loading.BESIDE_JOBS)
    Simulation(jobs.first(2), make("fcfs")).run()
    assert not taken
    Simulation(jobs, make("fcfs"), observers=[Progress(quiet=True)]).run()
    assert taken
    Simulation(jobs, make("fcfs+published-easy")).run()
    Simulation(jobs, make("fcfs"), simulator="simpy").run()
    assert len(taken) == 1


@pytest.fixture
def nothing_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache, empty as in a new installation and a new process."""
    monkeypatch.setattr(loading, "CACHE", tmp_path)
    monkeypatch.setattr(loading, "KINDS", {})
    monkeypatch.setattr(loading, "SEEN", Counter())
    return tmp_path


def pretend_compiled(cache: Path, kind: str) -> None:
    (cache / kind).mkdir()
    (cache / kind / "simulate.compiled").touch()


@pytest.mark.parametrize("stock", [False, True])
@pytest.mark.parametrize(
    ("kind", "seconds", "slowness"),
    [
        ("listing", 5, 1),
        ("listing-plan", 8, 5),
        ("listing-machines", 10, 5),
        ("listing-machines-plan", 13, 5),
    ],
)
def test_auto_weighs_the_cost_of_loading(
    kind: str,
    seconds: int,
    slowness: int,
    stock: bool,
    nothing_compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "is_tested", lambda: not stock)
    assert loading.least_jobs(kind) == (1 + stock) * seconds * 100_000 // slowness
    pretend_compiled(nothing_compiled, kind)
    assert loading.least_jobs(kind) == 20_000 // slowness
    monkeypatch.setitem(loading.KINDS, kind, print)
    assert loading.least_jobs(kind) == round(loading.SETTING_UP * 100_000) // slowness


def test_the_first_command_compiles_nothing(nothing_compiled: Path, tmp_path: Path) -> None:
    """SimPy simulates its 40 000 jobs in less time than it would take to compile anything."""
    experiment = Experiment()
    jobs = experiment.workload()
    for policy in experiment.policies:
        assert not support.takes(Simulation(jobs, make(policy)))
    with support.announced(Simulation(jobs, make(policy)) for policy in experiment.policies):
        assert not any(support.takes(Simulation(jobs, make(policy))) for policy in experiment.policies)
    assert not loading.KINDS


@pytest.mark.parametrize(("least", "compiled"), [(360, 3), (361, 0)])
def test_a_comparison_announces_its_runs(
    least: int, compiled: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs of 20 jobs, and 100 for the set-up of each: worth it from the first one, or not at all."""
    monkeypatch.setattr(loading, "SEEN", Counter())
    monkeypatch.setattr(loading, "least_jobs", lambda kind: least)
    experiment = Experiment(jobs=20, policies=["fcfs", "sjf", "saf", "fcfs+hold-unfit"], report=False)
    runs = Campaign(experiment, experiment.workload(), tmp_path / "out").run()
    assert [run.simulator for run in runs] == ["compiled"] * compiled + ["simpy"] * (4 - compiled)
    assert not +loading.ANNOUNCED


def test_finished_runs_are_not_announced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "SEEN", Counter())
    monkeypatch.setattr(loading, "least_jobs", lambda kind: 360)
    experiment = Experiment(jobs=20, policies=["fcfs", "sjf", "saf"], report=False, simulator="auto")
    workload = experiment.workload()
    real = PolicyRun.run

    def failing(task: PolicyRun, *arguments: Any) -> Any:
        if task.policy == "sjf":
            raise UsageError("stop here")
        return real(task, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PolicyRun, "run", failing)
        with pytest.raises(UsageError, match="stop here"):
            Campaign(experiment, workload, tmp_path / "out").run()
    monkeypatch.setattr(loading, "SEEN", Counter())
    runs = Campaign(experiment, workload, tmp_path / "out").run(resume=True)
    assert [run.simulator for run in runs] == ["compiled", "simpy", "simpy"]


def test_logs_with_and_without_users_are_compiled_once(jobs: Workload) -> None:
    """A column that is absent is shown as one number, repeated: for numba another type of array."""
    users = Workload({**jobs.columns, "user": np.array([3, 1, 2])}, machine_size=4)
    for each in (jobs, users):
        Simulation(each, make("fcfs+easy"), simulator="compiled").run()
    assert len(loading.KINDS["sizes"].overloads) == 1  # type: ignore[attr-defined]


def test_what_has_been_compiled_is_loaded_without_the_tables_of_numba(jobs: Workload, tmp_path: Path) -> None:
    """They take longer to load than the function, which needs none of them; compiling loads them."""
    expected = Simulation(jobs, make("fcfs"), simulator="compiled").run()
    write_swf(jobs, tmp_path / "jobs.swf")
    code = (
        "import sys; from hpcsimkit import Simulation, make, read_swf; "
        "result = Simulation(read_swf('jobs.swf'), make('fcfs'), simulator='compiled').run(); "
        "print(result.start_time.tolist(), 'numba.np.arraymath' in sys.modules)"
    )
    folder = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=folder, check=True, capture_output=True
    )
    assert found.stdout.decode() == f"{expected.start_time.tolist()} False\n"


def test_ready_is_what_auto_takes_at_once(
    jobs: Workload, nothing_compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "LOADING", len(jobs) * loading.IN_THE_KERNEL)
    simulation = Simulation(jobs, make("fcfs"))
    assert not support.is_ready(simulation)
    pretend_compiled(nothing_compiled, "sizes")
    assert support.is_ready(simulation)
    assert not support.is_ready(Simulation(jobs.first(len(jobs) - 1), make("fcfs")))
    assert not support.is_ready(Simulation(jobs, make("fcfs"), simulator="simpy"))
    assert not support.is_ready(Simulation(jobs, make("fcfs+round-robin")))


def doubled(values: Any) -> None:
    for place in range(len(values)):
        values[place] *= 2


@pytest.mark.parametrize("terminal", [True, False])
def test_a_line_on_a_terminal_when_it_compiles(
    terminal: bool, nothing_compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where files are in the folder, but not for these types; and not when it is loaded."""
    monkeypatch.setattr(loading, "CACHE", tmp_path / "version")
    monkeypatch.setattr(loop, "simulate", doubled)
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", stream)
    for kind in (np.int64, np.int64, np.float64):
        loading.KINDS.clear()
        loading.load("sizes")(np.zeros(3, dtype=kind))
    assert loading.is_compiled("sizes")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2 * terminal
    assert all(line.startswith("compiling the simulator") for line in lines)


def test_the_list_of_policies_has_a_mark_for_compiled_ones() -> None:
    marked = {line.split()[0].rstrip(",") for line in policy_lines(entries()) if re.search(r"  C  \w", line)}
    known = "fcfs wfp3 slurm easy easy-k conservative greedy fitting last-two first-fit best-fit worst-fit"
    assert set(known.split()) <= marked
    assert not marked & {"published-easy", "commit", "round-robin", "bfbp"}


def test_provenance_has_the_simulator(tmp_path: Path) -> None:
    for simulator in ("simpy", "compiled"):
        experiment = Experiment(jobs=20, policies=["fcfs+easy"], simulator=simulator, report=False)
        Campaign(experiment, experiment.workload(), tmp_path / simulator).run()
        facts = json.loads((tmp_path / simulator / "provenance.run.json").read_text())
        assert facts["policies"]["fcfs+easy"]["simulator"] == simulator


def test_a_saved_result_has_the_simulator(jobs: Workload, tmp_path: Path) -> None:
    Simulation(jobs, make("fcfs"), simulator="compiled").run().save(tmp_path / "r.npz")
    assert Result.load(tmp_path / "r.npz").simulator == "compiled"


def test_a_refusal_names_the_policy_once(tmp_path: Path) -> None:
    experiment = Experiment(jobs=20, policies=["fcfs+published-easy"], simulator="compiled", report=False)
    with pytest.raises(UsageError, match=r"^fcfs\+published-easy: the compiled simulator cannot run this: "):
        Campaign(experiment, experiment.workload(), tmp_path / "out").run()


def test_state_after_a_compiled_run(jobs: Workload) -> None:
    simulation = Simulation(jobs, make("fcfs"), simulator="compiled")
    result = simulation.run()
    assert simulation.run() is result
    assert simulation.system.ledger.starts == result.start_time.tolist()


def test_one_partition_over_the_whole_cluster(jobs: Workload) -> None:
    jobs = Workload({**jobs.columns, "partition": np.zeros(3)}, labels={"partition": ("a",)})
    compiled, plain = (
        Simulation(jobs, make("fcfs"), Partitions([Partition("a", nodes=4)]), simulator=simulator).run()
        for simulator in ("compiled", "simpy")
    )
    assert compiled.hash == plain.hash
    assert compiled.started_in is not None
    assert plain.started_in is not None
    assert compiled.started_in.tolist() == plain.started_in.tolist() == ["a"] * 3


@pytest.mark.usefixtures("interpreted")
def test_no_jobs() -> None:
    none = Workload({"submit_time": [], "run_time": [], "nodes": []}, machine_size=4)
    assert len(Simulation(none, make("fcfs+easy++"), simulator="compiled").run()) == 0


def test_unknown_simulator(jobs: Workload) -> None:
    with pytest.raises(UsageError, match="simulator needs 'auto', 'simpy' or 'compiled'"):
        Simulation(jobs, make("fcfs"), simulator="fast")  # type: ignore[arg-type]
