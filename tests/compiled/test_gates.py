"""Gates whose answers depend on the course of the run: equal schedules, and reasons, on both simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled import stopping
from hpcsimkit.compiled.orders import BY_SUBMISSION, KEYS
from hpcsimkit.errors import StalledError, UsageError, WorkloadError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from tests.compiled.test_equality import assert_equal_schedules, long_queue, uncompiled, workloads
from tests.compiled.test_windows import windows_for
from tests.drawn import examples

ORDERS = ["fcfs", "lcfs", "sjf", "saf", "wfp3", "fcfs+window(3)", "f1", "sjf+window(2)"]
BACKFILLING = [
    "none",
    "easy",
    "easy-sjf",
    "easy-saf",
    "greedy",
    "fitting",
    "easy-k(1)",
    "easy-k(3)",
    "conservative",
    "conservative+actual",
    "conservative-replan",
]
GATES = (AfterJobs(), BeginTimes(), Holds(), ArrayLimits())
KINDS = ("after", "afterany", "afterok", "afternotok")
POOLS = {"a": 2, "b": 1}


def dependency(numbers: np.random.Generator, earlier: list[int]) -> str:
    """Return a dependency on earlier jobs, or none."""
    terms = []
    if earlier and numbers.random() < 0.35:
        for _ in range(numbers.integers(1, 4)):
            kind = str(numbers.choice(KINDS))
            delay = "+1" if kind == "after" and numbers.random() < 0.5 else ""
            terms.append(f"{kind}:{numbers.choice(earlier) + 1}{delay}")
    if numbers.random() < 0.15:
        terms.append("singleton")
    return str(numbers.choice([",", "?"])).join(terms)


@st.composite
def gated(draw: Any) -> Workload:
    """Jobs with dependencies on earlier ones, begin times, holds, arrays with limits, and licences."""
    jobs = draw(workloads())
    numbers, count = np.random.default_rng(draw(st.integers(0, 2**32))), len(jobs)
    last = int(jobs.submit_time.max()) + 60
    order = jobs.arrival_order.tolist()
    place = {row: position for position, row in enumerate(order)}
    array = numbers.integers(-1, 3, count)
    limits = numbers.integers(1, 4, 3)
    limited = (array >= 0) & (numbers.random(count) < 0.8)
    columns: dict[str, Any] = {
        "dependency": [dependency(numbers, order[: place[row]]) for row in range(count)],
        "begin_time": np.where(numbers.random(count) < 0.7, -1, numbers.integers(0, last, count)),
        "hold_until": np.where(numbers.random(count) < 0.8, -1, numbers.integers(0, last, count)),
        "array_job": array,
        "array_limit": np.where(limited, limits[array], -1),
        "licenses": [str(numbers.choice(["", "", "a", "a:2", "b", "a,b"])) for _ in range(count)],
        "executable": numbers.integers(0, 2, count),
        "status": numbers.integers(0, 2, count),
    }
    kept = draw(
        st.sets(st.sampled_from(["dependency", "begin_time", "hold_until", "array_limit", "licenses"]))
    )
    for name in {"begin_time", "hold_until"} - kept:
        del columns[name]
    for name in (
        {"dependency", "array_limit", "licenses"} - kept - {draw(st.sampled_from(["dependency", "licenses"]))}
    ):
        del columns[name]
    return Workload({**jobs.columns, **columns}, machine_size=jobs.machine_size)


@pytest.fixture
def little_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run begins again with more space."""
    monkeypatch.setattr(stopping, "SPACE", 0)


def stalls_on_both(jobs: Workload, policy: str, **options: Any) -> str:
    """Check that both simulators refuse a run with the same line, and return it."""
    told = []
    for simulator in ("simpy", "compiled"):
        with pytest.raises(StalledError) as error:
            Simulation(jobs, make(policy), simulator=simulator, **options).run()
        told.append(str(error.value))
    assert told[0] == told[1]
    return told[0]


def check(jobs: Workload, order: str, backfilling: str, calendar: Any, walltime: str) -> None:
    order = order.partition("+")[0] if backfilling == "fitting" else order
    options: dict[str, Any] = {"walltime": walltime}
    if any(gate.columns[0] in jobs.columns for gate in GATES):
        options["gates"] = GATES
    if "licenses" in jobs.columns:
        options["licenses"] = POOLS
    if calendar is not None:
        options["calendar"] = calendar(jobs.machine_size)
    try:
        assert_equal_schedules(jobs, make(f"{order}+{backfilling}"), **options)
    except StalledError:
        stalls_on_both(jobs, f"{order}+{backfilling}", **options)


CASES = given(
    gated(),
    st.sampled_from(ORDERS),
    st.sampled_from(BACKFILLING),
    st.none() | windows_for(),
    st.sampled_from(["run", "kill"]),
)
test_random_gates = uncompiled(pytest.mark.usefixtures("little_space")(examples(8)(CASES(check))))
test_many_random_gates = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


@uncompiled
@pytest.mark.usefixtures("little_space")
def test_many_times_at_which_a_gate_is_asked() -> None:
    """Each start brings the begin of six jobs forward: 36 times to come, more than there is space for at first."""
    leaders = 6
    earlier = "?".join(f"after:{row + 1}+{leaders - row}" for row in range(leaders))  # delays [min]
    jobs = Workload(
        {
            "submit_time": [*range(leaders), *[0] * 6],
            "run_time": [10] * 12,
            "nodes": [1] * 12,
            "dependency": [""] * leaders + [earlier] * 6,
        },
        machine_size=12,
    )
    found, _ = assert_equal_schedules(jobs, make("fcfs+easy"), gates=GATES)
    assert found.start_time.tolist() == [0, 1, 2, 3, 4, 5, *[5 + 60] * 6]


@st.composite
def following(draw: Any) -> Workload:
    """Jobs that are submitted after others, some after a think time, and some begin times or licences."""
    jobs = draw(workloads())
    numbers, count = np.random.default_rng(draw(st.integers(0, 2**32))), len(jobs)
    columns: dict[str, Any] = {
        "preceding": np.where(numbers.random(count) < 0.5, -1, numbers.integers(1, count + 1, count)),
        "think_time": numbers.choice([-1, 0, 5, 60], count),
    }
    if draw(st.booleans()):
        columns["licenses"] = [str(numbers.choice(["", "a", "a:2", "b"])) for _ in range(count)]
    if draw(st.booleans()):
        columns["begin_time"] = np.where(numbers.random(count) < 0.7, -1, numbers.integers(0, 400, count))
    return Workload({**jobs.columns, **columns}, machine_size=jobs.machine_size)


def check_dependencies(jobs: Workload, order: str, backfilling: str, calendar: Any, walltime: str) -> None:
    options: dict[str, Any] = {"dependencies": True, "walltime": walltime}
    if "licenses" in jobs.columns:
        options["licenses"] = POOLS
    if "begin_time" in jobs.columns:
        options["gates"] = (BeginTimes(),)
    if calendar is not None:
        options["calendar"] = calendar(jobs.machine_size)
    order = "sjf" if order == "fcfs" and len(options) > 2 + (calendar is not None) else order
    order = order.partition("+")[0] if backfilling == "fitting" else order
    assert_equal_schedules(jobs, make(f"{order}+{backfilling}"), **options)


DEPENDENT = given(
    following(),
    st.sampled_from(["fcfs", "sjf", "saf", "wfp3", "xfactor+window(3)"]),
    st.sampled_from(BACKFILLING),
    st.none() | windows_for(),
    st.sampled_from(["run", "kill"]),
)
test_random_dependencies = uncompiled(examples(4)(DEPENDENT(check_dependencies)))
test_many_random_dependencies = pytest.mark.slow(settings(max_examples=10_000)(DEPENDENT(check_dependencies)))


def gated_queue(count: int) -> Workload:
    """A long queue with all columns of gates."""
    jobs, numbers = long_queue(count), np.random.default_rng(5)
    array = numbers.integers(-1, 9, count)
    order = jobs.arrival_order.tolist()
    place = {row: position for position, row in enumerate(order)}
    columns: dict[str, Any] = {
        "dependency": [dependency(numbers, order[: place[row]]) for row in range(count)],
        "begin_time": np.where(numbers.random(count) < 0.8, -1, numbers.integers(0, 4000, count)),
        "array_job": array,
        "array_limit": np.where(array >= 0, 2, -1),
        "licenses": [str(numbers.choice(["", "", "a", "a:2", "b"])) for _ in range(count)],
        "executable": numbers.integers(0, 30, count),
        "status": numbers.integers(0, 2, count),
    }
    return Workload({**jobs.columns, **columns}, machine_size=64)


@pytest.mark.parametrize("policy", ["sjf+easy", "fcfs+conservative", "wfp3+easy-k(3)"])
def test_long_queues(policy: str) -> None:
    """Compiled."""
    found, _ = assert_equal_schedules(gated_queue(300), make(policy), gates=GATES, licenses=POOLS)
    assert found.held is not None and len(found.held.reasons) > 3
    assert 50 < (found.start_time >= 0).sum() < 300


@uncompiled
def test_a_dependency_that_fails_does_not_end_the_delay_of_another() -> None:
    """The third job waits until 5 min after the start of the first, although the second one fails at 10 s."""
    columns = {
        "submit_time": [0, 0, 1],
        "run_time": [1000, 10, 5],
        "nodes": [1, 1, 1],
        "status": [1, 0, 1],
        "dependency": ["", "", "after:1+5?afterok:2"],
    }
    jobs = Workload(columns, machine_size=4)
    found, _ = assert_equal_schedules(jobs, make("fcfs+easy"), gates=(AfterJobs(),))
    assert found.start_time.tolist() == [0, 0, 300]


@uncompiled
def test_a_job_that_is_held_for_ever() -> None:
    """The second one has to wait for the first, its namesake, which has to wait for it."""
    columns = {"dependency": ["afterany:2", "singleton"], "user": [1, 1], "executable": [1, 1]}
    jobs = Workload({"submit_time": [0, 1], "run_time": [5, 5], "nodes": [1, 1], **columns}, machine_size=2)
    assert "job 1 is held by a gate" in stalls_on_both(jobs, "fcfs", gates=(AfterJobs(),))


@uncompiled
def test_a_start_closes_the_gate_for_those_behind_it_in_the_same_pass() -> None:
    """One licence: job 2 leaves the queue in the pass in which job 1 starts; job 3 takes its place at once."""
    columns = {
        "licenses": ["a", "a", ""],
        "submit_time": [0, 0, 0],
        "run_time": [9, 9, 9],
        "nodes": [1, 2, 1],
    }
    found, _ = assert_equal_schedules(Workload(columns, machine_size=2), make("fcfs+easy"), licenses={"a": 1})
    assert found.start_time.tolist() == [0, 9, 0] and found.passes == 2
    assert found.held is not None and found.held.reason.tolist() == ["Licenses"]


@uncompiled
def test_what_may_never_start_is_rejected_with_those_that_follow() -> None:
    columns = {"dependency": ["", "afternotok:1", "afterok:2"], "submit_time": [0, 0, 0]}
    jobs = Workload({**columns, "run_time": [9, 5, 5], "nodes": [1, 1, 1]}, machine_size=2)
    found, reference = assert_equal_schedules(jobs, make("fcfs"), gates=(AfterJobs(),))
    assert found.start_time.tolist() == [0, -1, -1]
    assert found.end_time.tolist() == [9, -1, -1] == reference.end_time.tolist()


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        (
            "fcfs",
            {"restart": Restart(delay=1)},
            "it knows no AfterJobs and ArrayLimits where jobs may be stopped",
        ),
        (
            "fcfs",
            {"cluster": Machines.of(2, cpus=64)},
            "it knows AfterJobs and ArrayLimits on homogeneous nodes only",
        ),
        ("random", {}, "it knows no RandomOrder() with AfterJobs and ArrayLimits"),
        ("fcfs+easy++", {}, "with AfterJobs and ArrayLimits"),
        ("fcfs+easy-noise", {}, "it knows no Noisy() with AfterJobs and ArrayLimits"),
        ("fcfs", {"dependencies": True}, "it knows no Dependencies() beside AfterJobs()"),
        ("oracle-srtf", {}, "it knows no gates"),
        ("fcfs", {"gates": (ArrayLimits(), ArrayLimits())}, "it knows no gates"),
        (
            "f1",
            {"gates": (), "dependencies": True, "dependency": None},
            "it knows no F1() with Dependencies()",
        ),
        (
            "published-wfp3+easy",
            {"gates": (), "dependencies": True, "dependency": None},
            "it knows no InvertedWFP3() with Dependencies()",
        ),
        (
            "fcfs",
            {"gates": (ArrayLimits(),), "dependencies": True, "dependency": None},
            "it knows no FCFS() with Dependencies() and other gates",
        ),
    ],
)
def test_refuses_with_the_reason(policy: str, options: dict[str, Any], reason: str) -> None:
    columns = dict(gated_queue(9).columns)
    if "dependency" in options:
        del columns["dependency"]
    options = {"gates": GATES, **{name: each for name, each in options.items() if name != "dependency"}}
    jobs = Workload(columns, labels=gated_queue(9).labels, machine_size=64)
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(jobs, make(policy), simulator="compiled", **options).run()
    assert reason in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("order", KEYS, ids=lambda order: order.__name__)
def test_orders_whose_keys_depend_on_submissions_are_known(order: Any) -> None:
    columns = {
        "submit_time": [5, 7, 40],
        "run_time": [3, 9, 2],
        "requested_time": [9, 30, 3],
        "nodes": [1, 2, 4],
    }
    sooner, later = Workload(columns), Workload({**columns, "submit_time": [50, 70, 4000]})
    keys = [np.array(KEYS[order](jobs)) for jobs in (sooner, later)]
    assert np.array_equal(*keys) == (order not in BY_SUBMISSION)


def test_wrong_dependencies_are_the_same_error() -> None:
    jobs = Workload(
        {"submit_time": [0], "run_time": [9], "nodes": [1], "dependency": ["afterok:7"]}, machine_size=2
    )
    errors = []
    for simulator in ("simpy", "compiled"):
        with pytest.raises(WorkloadError) as error:
            Simulation(jobs, make("fcfs"), gates=(AfterJobs(),), simulator=simulator).run()
        errors.append(str(error.value))
    assert errors[0] == errors[1]
