"""Slurm as configured: equal schedules, placements and reasons on both simulators."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import slurm_arrays, slurm_loop
from hpcsimkit.compiled.slurm_futures import SlurmFutures
from hpcsimkit.compiled.slurm_state import CALCULATED_AT, LISTED
from hpcsimkit.errors import ScheduleError, StalledError, UsageError
from hpcsimkit.experiments.advice import futures as futures_module
from hpcsimkit.experiments.advice.futures import Futures
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun, begun_at, begun_in, begun_of
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.accounts import Association, Associations, Qos
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.queue import Waiting
from hpcsimkit.slurm.requests import Requests
from hpcsimkit.slurm.rules import Clocks, Multifactor
from hpcsimkit.slurm.scheduler import SlurmScheduler
from hpcsimkit.workloads import read_sacct
from tests.benchmarks import slurm
from tests.compiled.test_equality import assert_equal_schedules, uncompiled
from tests.compiled.test_machines import assert_equal_placements
from tests.drawn import examples

RESOURCES = ("cpus", "gpus", "memory")
USERS, ACCOUNTS, KINDS = ("ada", "ben", "cleo", "dan"), ("red", "blue", "green"), ("normal", "high", "low")
GIB = 2**30


class Day(NamedTuple):
    """A cluster as its Slurm is configured, its jobs and options of a run."""

    profile: Slurm
    jobs: Workload
    walltime: str


class Draws:
    """Random choices, most of which are the first one."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *values: Any) -> Any:
        """Return one of some values."""
        return values[int(self.rng.integers(len(values)))]

    def seldom(self, default: Any, *values: Any) -> Any:
        """Return the first value, or one of the others in a quarter of the cases."""
        return self.one(*values) if self.rng.random() < 0.25 else default

    def some(self, values: tuple[str, ...], least: int = 1) -> list[str]:
        """Return some of the values, in order."""
        count = int(self.rng.integers(least, len(values) + 1))
        return [values[place] for place in sorted(self.rng.permutation(len(values))[:count].tolist())]


def amounts(draw: Draws) -> dict[str, float]:
    """Limited amounts of a resource or two."""
    made = {
        "cpus": draw.one(4.0, 8.0, 16.0),
        "gpus": draw.one(1.0, 2.0),
        "memory": draw.one(2.0, 6.0) * GIB,
        "nodes": draw.one(1.0, 2.0, 3.0),
        "billing": draw.one(3.5, 9.0),
        "license/x": 0.0,
    }
    names = draw.rng.permutation(len(made))[: 1 + int(draw.rng.random() < 0.3)].tolist()
    return {name: made[name] for name in (list(made)[place] for place in names)}


def minutes(draw: Draws) -> dict[str, float]:
    """Limited amounts times minutes."""
    return {name: amount * draw.one(0.5, 3.0) for name, amount in amounts(draw).items()}


def limits(draw: Draws, *, of_qos: bool) -> dict[str, Any]:
    """Limits of a QOS or an association."""
    made: dict[str, Any] = {}
    each = ["GrpTRES", "GrpTRESRunMins", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins", "GrpJobs", "MaxWall"]
    each += ["MaxTRESPU", "MaxTRESPA", "MaxJobsPU", "MaxJobsPA", "MinTRES"] if of_qos else ["MaxJobs"]
    for name in each:
        if draw.rng.random() > 0.12:
            continue
        if name.endswith("Mins"):
            made[name] = minutes(draw)
        elif name == "MinTRES":
            made[name] = {"cpus": 2.0}
        elif "TRES" in name:
            made[name] = amounts(draw)
        else:
            made[name] = draw.one(30, 70) if name == "MaxWall" else draw.one(1, 2, 3, None)
    return made


def associations(draw: Draws) -> Associations:
    """Accounts below the root and below each other, and their users; some are absent."""
    each = [Association("root", parent=-1, limits=limits(draw, of_qos=False))]
    for name in draw.some(ACCOUNTS, 0):
        above = draw.seldom(0, *(place for place, one in enumerate(each) if not one.user))
        each.append(Association(name, "", above, draw.one(1, 2, 5, 0), limits(draw, of_qos=False)))
        account = len(each) - 1
        for user in draw.some(USERS, 0):
            each.append(Association(name, user, account, draw.one(1, 1, 3, 0), limits(draw, of_qos=False)))
    return Associations(tuple(each))


def multifactor(draw: Draws) -> Multifactor:
    """Parameters of the priority."""
    flags = ("NO_FAIR_TREE", "MAX_TRES", "ACCRUE_ALWAYS", "SMALL_RELATIVE_TO_TIME", "NO_NORMAL_PART")
    return Multifactor(
        basic=draw.seldom(False, True),
        age=draw.one(0, 50, 1000),
        fair_share=draw.one(0, 100, 1000),
        size=draw.one(0, 70),
        partition=draw.one(0, 100),
        qos=draw.one(0, 100),
        tres=draw.seldom({}, {"cpus": 50.0, "memory": 20.0, "gpus": 9.0}),
        max_age=draw.one(40, 1000),
        half_life=draw.one(0, 30, 500),
        calc_period=draw.one(7, 20, 60),
        favor_small=draw.seldom(False, True),
        dampening=draw.one(1.0, 2.0),
        flags=frozenset(flag for flag in flags if draw.rng.random() < 0.2),
    )


def clocks(draw: Draws) -> Clocks:
    """Clocks of short days, and how far the loops look."""
    depths = {
        name: draw.seldom(0, 1, 2, 4)
        for name in (
            *("bf_max_job_part", "bf_max_job_user", "bf_max_job_user_part", "bf_max_job_assoc"),
            *("bf_max_job_start", "partition_job_depth"),
        )
    }
    return Clocks(
        bf_interval=draw.one(5, 11, 30, 0),
        bf_resolution=draw.one(1, 7, 20),
        bf_window=draw.one(50, 10**5),
        bf_max_job_test=draw.seldom(0, 1, 3),
        default_queue_depth=draw.seldom(100, 0, 2),
        sched_interval=draw.one(13, 60),
        sched_min_interval=draw.one(1, 3),
        defer=draw.seldom(False, True),
        **depths,
    )


def cluster(draw: Draws) -> Partitions:
    """Machines of several kinds, in partitions that share them."""
    count = int(draw.rng.integers(1, 7))
    capacity = [[draw.one(2, 4, 8), draw.one(0, 0, 2), draw.one(2, 8) * GIB] for _ in range(count)]
    names = tuple(f"n{number}" for number in range(count))
    features = [draw.some(("fat", "new"), 0) for _ in names]
    machines = Machines(names, RESOURCES, capacity, features=features)
    billing = {"cpus": 1.0, "memory": 0.3, "gpus": 2.5}
    parts = [
        Partition(
            f"p{number}",
            machines=draw.some(names),
            priority=draw.one(1, 1, 2, 3),
            billing=draw.seldom({}, billing),
            max_time=draw.seldom(None, 60),
        )
        for number in range(int(draw.rng.integers(1, 5)))
    ]
    return Partitions(parts, machines)


def jobs(draw: Draws, partitions: Partitions) -> Workload:
    """Jobs of all forms, in bursts; those that no partition admits are left out."""
    count = int(draw.rng.integers(1, 36))
    rng = draw.rng
    names = partitions.names
    lists = tuple(dict.fromkeys(",".join(draw.some(names)) for _ in range(4))) + names
    run_time = rng.choice([0, 1, 5, 9, 40, 61, 300], count)
    several = rng.random(count) < 0.3
    columns = {
        "submit_time": np.cumsum(rng.choice([0, 0, 1, 2, 7, 40], count)) + draw.one(0, 1000),
        "run_time": run_time,
        "requested_time": np.maximum(run_time + rng.choice([-30, -3, 0, 1, 30], count), 1),
        "nodes": np.where(several, rng.integers(1, 4, count), 1),
        "cpus": rng.integers(1, 5, count),
        "gpus": rng.choice([0, 0, 0, 1, 2], count),
        "memory": rng.choice([1, 2, 5], count) * GIB // 4,
        "spread": rng.choice([-1, -1, -1, 1], count),
        "exclusive": rng.choice([-1, -1, -1, 1], count),
        "constraint": rng.choice([-1, -1, -1, 0, 1], count),
        "user": rng.integers(-1, len(USERS), count),
        "group": rng.integers(-1, len(ACCOUNTS), count),
        "qos": rng.integers(-1, len(KINDS), count),
        "partition": rng.integers(0, len(lists), count),
    }
    if draw.seldom(False, True):
        columns["id"] = rng.permutation(count) + 1
    labels = {
        "user": USERS,
        "group": ACCOUNTS,
        "qos": KINDS,
        "partition": lists,
        "constraint": ("fat", "new"),
    }
    found = Workload(columns, resources=RESOURCES, labels=labels)
    return found.select(np.flatnonzero(partitions.admitted(found).any(axis=0)))


def day_of(seed: int) -> Day:
    """Return a cluster, its configuration and jobs."""
    draws = Draws(seed)
    partitions = cluster(draws)
    qos = {
        name: Qos(
            name,
            priority=draws.one(0, 10),
            limits=limits(draws, of_qos=True),
            over_partition=draws.seldom(False, True),
            usage_factor=draws.seldom(1.0, 0.5, 2.0),
        )
        for name in (*draws.some(KINDS, 0), "part")
    }
    profile = Slurm(
        "drawn",
        partitions,
        factors={name: draws.one(1, 5, 20) for name in draws.some(partitions.names, 0)},
        partition_qos={name: draws.one("part", *KINDS) for name in draws.some(partitions.names, 0)},
        clocks=clocks(draws),
        priority=multifactor(draws),
        qos=qos,
        associations=associations(draws),
        limits=not draws.seldom(False, True),
    )
    return Day(profile, jobs(draws, partitions), draws.one("kill", "run"))


def busy(seed: int) -> Day:
    """Return a day of all kinds of jobs and limits that has more jobs at a time than others."""
    made, jobs, walltime = day_of(seed)
    sooner = jobs.submit_time // 5
    return Day(made, replace(jobs, columns={**jobs.columns, "submit_time": sooner}), walltime)


def both(profile: Slurm, workload: Workload, **options: Any) -> Result:
    """Compare both simulators, and return the result."""
    found, reference = assert_equal_schedules(
        workload, profile.policy, cluster=profile.partitions, **{**profile.options, **options}
    )
    assert_equal_placements(found.placements, reference.placements)
    np.testing.assert_array_equal(found.started_in, reference.started_in)
    assert found.started_in.dtype == reference.started_in.dtype
    return found


def check(day: Day) -> None:
    both(day.profile, day.jobs, walltime=day.walltime)


@pytest.fixture
def little_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of held jobs has to grow."""
    monkeypatch.setattr(slurm_arrays, "ENTRIES", 1)


CASES = given(st.integers(0, 2**32).map(day_of))
test_random_days = uncompiled(pytest.mark.usefixtures("little_space")(examples(1)(CASES(check))))
test_many_random_days = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


@uncompiled
def test_each_order_and_fair_share_is_that_of_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of jobs that could not start in any order."""
    calculating, sorting = slurm_loop.calculate, slurm_loop.put_in_order
    expecting, listing = Waiting.calculate, Waiting.in_order
    expected: dict[int, Any] = {}
    orders: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
    compared: Counter[str] = Counter()

    def expect(waiting: Waiting, now: int) -> bool:
        due = expecting(waiting, now)
        expected[now] = np.array(waiting._fair)
        return due

    def listed(waiting: Waiting) -> Any:
        order = tuple(listing(waiting))
        orders.add((waiting._at, order))
        return iter(order)

    def calculate(clocks: Any, factors: Any, run: Any, now: int) -> bool:
        due = calculating(clocks, factors, run, now)
        np.testing.assert_allclose(run.fair, expected[int(now)], rtol=1e-12)
        compared["fair shares"] += len(set(run.fair.tolist())) > 2
        return due

    def put_in_order(jobs: Any, factors: Any, run: Any, stops: Any) -> None:
        sorting(jobs, factors, run, stops)
        tickets = run.listed[: run.counters[LISTED]]
        order = tuple(zip(jobs.row[tickets].tolist(), jobs.part[tickets].tolist(), strict=True))
        assert (int(run.counters[CALCULATED_AT]), order) in orders
        compared["orders"] += len(order) > 2

    monkeypatch.setattr(Waiting, "calculate", expect)
    monkeypatch.setattr(Waiting, "in_order", listed)
    monkeypatch.setattr(slurm_loop, "calculate", calculate)
    monkeypatch.setattr(slurm_loop, "put_in_order", put_in_order)
    for seed in range(300, 340):
        expected.clear()
        orders.clear()
        check(busy(seed))
    assert min(compared.values()) > 200


@uncompiled
@pytest.mark.parametrize(("exclusive", "start"), [(-1, 5), (1, 200)])
def test_a_job_for_whole_nodes_waits_for_open_nodes_that_are_busy(exclusive: int, start: int) -> None:
    """The first partition is closed, and with it n1. The fourth job is too large for n2, which another one uses.

    If it is for whole nodes, it closes the second partition all the same, and the last job waits.
    """
    machines = Machines(("n1", "n2"), ("cpus",), [[4], [2]])
    parts = Partitions([Partition("a", priority=1), Partition("b", machines=["n1"], priority=2)], machines)
    columns = {
        "submit_time": [0, 0, 5, 5, 5], "run_time": [100] * 5, "requested_time": [100] * 5, "nodes": [1] * 5,
        "cpus": [4, 1, 4, 4, 1], "exclusive": [-1, -1, -1, exclusive, -1], "partition": [1, 0, 1, 0, 0],
    }  # fmt: skip
    jobs = Workload(columns, resources=("cpus",), labels={"partition": ("a", "b")})
    clocks = Clocks(bf_interval=0, sched_min_interval=1)
    found = both(Slurm("small", parts, clocks=clocks), jobs, walltime="kill")
    assert found.start_time[-1] == start


# --- begun runs --------------------------------------------------------------------------------------------


def check_begun_of(seed: int, made: Callable[[int], Day]) -> None:
    """A run goes on from a time: with all jobs, or with those that had not ended, as advice needs it."""
    draws, day = Draws(seed), made(seed)
    if not len(day.jobs):
        return
    whole = both(replace(day.profile, preempt=""), day.jobs, walltime=day.walltime)
    first, last = int(day.jobs.submit_time.min()), int(day.jobs.submit_time.max())
    at = int(draws.rng.integers(first, last + 1))
    given = begun_in(whole, at)
    found = both(day.profile, day.jobs, walltime=day.walltime, begun=given)
    begun = list(given.started)
    np.testing.assert_array_equal(found.start_time[begun], whole.start_time[begun])
    if draws.one(True, False):  # the choice of machines and partitions is that of the run
        bare = replace(given, allocations={}, partitions=draws.one({}, given.partitions))
        both_or_neither(day, begun=bare)
    else:
        both_or_neither(day, begun=replace(given, before="another run", started=delayed(draws, given)))


def delayed(draws: Draws, given: Begun) -> dict[int, int]:
    """Starts of which some come later, when there may be no room."""
    return {
        row: min(start + draws.seldom(0, 5, 30), given.at) if start <= given.at else start
        for row, start in given.started.items()
    }


def both_or_neither(day: Day, **options: Any) -> None:
    """Compare both simulators, which may both refuse."""
    options = {**day.profile.options, "walltime": day.walltime, **options}
    message = error_of(day, **options, simulator="simpy")
    if message:
        assert error_of(day, **options, simulator="compiled") == message
    else:
        both(day.profile, day.jobs, **options)


def error_of(day: Day, **options: Any) -> str:
    """Return the message of a run that is not possible; empty if it is."""
    try:
        Simulation(day.jobs, day.profile.policy, day.profile.partitions, **options).run()
    except (ScheduleError, StalledError) as error:
        return str(error)
    return ""


def check_begun(seed: int) -> None:
    check_begun_of(seed, day_of)


BEGUN = given(st.integers(0, 2**32))
test_random_begun_runs = uncompiled(examples(1)(BEGUN(check_begun)))
test_many_random_begun_runs = pytest.mark.slow(settings(max_examples=5_000)(BEGUN(check_begun)))


@uncompiled
def test_what_is_given_and_ends_at_once_delays_no_first_pass() -> None:
    """At 7 s, a given job of 0 s has both nodes; the first main loop is at that time, and the next 60 s later or at 60 s."""
    made, jobs, _ = small_day()
    slow = replace(made, clocks=Clocks(sched_min_interval=60, bf_interval=0))
    changed = {"submit_time": [0, 1], "run_time": [0, 9], "nodes": [2, 2], "partition": [0, 0], "id": [1, 2]}
    jobs = replace(jobs.select([0, 2]), columns={**jobs.select([0, 2]).columns, **changed})
    found = both(slow, jobs, begun=Begun(7, {0: 7}))
    assert found.start_time.tolist() == [7, 60]


@uncompiled
@pytest.mark.parametrize("before", ["", "another run"])
@pytest.mark.parametrize("started", [{0: 7, 1: 7}, {1: 7, 0: 7}, {0: 3, 1: 3}, {0: 3, 1: 5}, {0: 7}, {1: 6}])
@pytest.mark.parametrize("run_time", [[0, 9], [2, 9], [9, 9]])
def test_given_jobs_that_need_the_same_nodes(
    run_time: list[int], started: dict[int, int], before: str
) -> None:
    """Both need all nodes: the second one has them once the first has ended, or the run is not possible."""
    made, jobs, _ = small_day()
    slow = replace(made, clocks=Clocks(sched_min_interval=60, bf_interval=0))
    changed = {
        "submit_time": [0, 1],
        "run_time": run_time,
        "nodes": [2, 2],
        "partition": [0, 0],
        "id": [1, 2],
    }
    jobs = replace(jobs.select([0, 2]), columns={**jobs.select([0, 2]).columns, **changed})
    both_or_neither(Day(slow, jobs, "run"), begun=Begun(7, started, before=before))


@uncompiled
def test_no_pass_is_made_if_no_job_waits_when_the_past_is_over() -> None:
    """The given job ends at 20 s, when the policy takes over, and the next job comes at 30 s."""
    made, jobs, _ = small_day()
    columns = {"submit_time": [0, 30], "run_time": [20, 9], "requested_time": [20, 9], "id": [1, 2]}
    jobs = replace(jobs.select([0, 1]), columns={**jobs.select([0, 1]).columns, **columns})
    for before in ("", "another run"):
        found = both(made, jobs, begun=Begun(20, {0: 0}, before=before))
        assert found.start_time.tolist() == [0, 30]


# --- futures -----------------------------------------------------------------------------------------------


def check_futures_of(seed: int, made: Callable[[int], Day]) -> None:
    """Futures of one moment, which share jobs and past and end early, are runs from that moment on."""
    draws, day = Draws(seed), made(seed)
    if not len(day.jobs):
        return
    tree = Requests(day.profile, day.profile.partitions, day.jobs).associations  # of all users of the log
    profile = replace(day.profile, associations=tree)
    options = {**profile.options, "walltime": day.walltime}
    case = Case.of(day.jobs, profile.policy, profile.partitions, **options)
    recorded = draws.one(True, False)
    at = draws.one(*day.jobs.submit_time.tolist()) + draws.one(0, 1, 30)
    live_at = draws.one(None, at)  # at which all jobs to come are known
    futures = Futures(case, case.run(), recorded=recorded, live_at=live_at)
    moment = futures.moment(at)
    if not len(moment.waiting):
        return
    begun = futures._begun(moment)
    policy = futures._policy
    assert isinstance(policy, SlurmScheduler)
    futures.__dict__["_slurm"] = SlurmFutures(
        policy.profile, profile.partitions, day.jobs, case.setup.restart
    )
    prepared = futures._prepared(moment, begun)
    assert prepared is not None
    longest = futures._longest(moment)
    for _ in range(3):
        rows = draws.rng.integers(0, len(day.jobs), draws.one(0, 3, 20))
        later = at + 1 + np.sort(draws.rng.integers(0, 100, len(rows)))
        run_time = np.maximum(longest - draws.rng.integers(0, 50, len(longest)), futures._elapsed(moment) + 1)
        found = prepared.starts(*futures._coming(moment, run_time, rows, later))
        try:
            expected = futures._starts(moment, begun, run_time, rows, later)
        except StalledError:
            continue  # all jobs that are asked for may have started before
        np.testing.assert_array_equal(found, expected)


def check_futures(seed: int) -> None:
    check_futures_of(seed, busy)


test_random_futures = uncompiled(examples(1)(given(st.integers(0, 2**32))(check_futures)))
test_many_random_futures = pytest.mark.slow(
    settings(max_examples=2_000)(given(st.integers(0, 2**32))(check_futures))
)


@uncompiled
def test_futures_of_a_queue_in_which_all_jobs_begin_later() -> None:
    """No main loop is made at the time itself, as no job waits: the next one may follow at once."""
    made, jobs, _ = small_day()
    made = replace(made, clocks=Clocks(sched_min_interval=60, bf_interval=0))
    jobs = jobs.select([0, 2])
    times = {"submit_time": [0, 21], "run_time": [50, 9], "requested_time": [50, 9], "id": [1, 2]}
    jobs = replace(jobs, columns={**jobs.columns, **times, "nodes": [1, 1]})
    case = Case.of(jobs, made.policy, made.partitions, **made.options)
    futures = Futures(case, case.run(), live_at=20)
    moment = futures.moment(20)
    assert (moment.running.tolist(), moment.waiting.tolist()) == ([0], [1])
    shared = SlurmFutures(made, made.partitions, jobs, case.setup.restart)
    futures.__dict__["_slurm"] = shared
    prepared = futures._prepared(moment, futures._begun(moment))
    assert prepared is not None
    none = np.zeros(0, dtype=np.int64)
    found = prepared.starts(*futures._coming(moment, np.array([50, 9]), none, none))
    assert found is not None and found.tolist() == [21]


@uncompiled
def test_futures_begin_with_an_arrival_if_all_known_jobs_begin_later() -> None:
    """The arrival of 25 s has both nodes until 34 s; the next main loop is 60 s after the first, which starts it."""
    made, jobs, _ = small_day()
    made = replace(made, clocks=Clocks(sched_min_interval=60, bf_interval=0))
    jobs = jobs.select([0])
    times = {"submit_time": [40], "run_time": [9], "requested_time": [9], "nodes": [2], "id": [1]}
    jobs = replace(jobs, columns={**jobs.columns, **times})
    case = Case.of(jobs, made.policy, made.partitions, **made.options)
    futures = Futures(case, case.run(), live_at=20)
    moment = futures.moment(20)
    begun = futures._begun(moment)
    futures.__dict__["_slurm"] = SlurmFutures(made, made.partitions, jobs, case.setup.restart)
    prepared = futures._prepared(moment, begun)
    assert prepared is not None
    for submit_time, expected in ([25], [85]), ([], [40]), ([25], [85]):
        rows, times = np.zeros(len(submit_time), dtype=np.int64), np.array(submit_time, dtype=np.int64)
        found = prepared.starts(*futures._coming(moment, np.array([9]), rows, times))
        assert found is not None and found.tolist() == expected
        assert futures._starts(moment, begun, np.array([9]), rows, times).tolist() == expected


def test_futures_of_a_crowd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled: the futures that `advise` draws, by runs of their own and from the state that they share."""
    made, jobs = slurm.profile(), slurm.busy(100, 300)
    found = []
    for shared_past in (True, False):
        case = Case.of(jobs, made.policy, made.partitions, **made.options)
        futures = Futures(case, case.run())
        monkeypatch.setattr(futures_module, "taking", lambda _, taken=shared_past: taken or None)
        moment = futures.moment(int(jobs.submit_time.max()))
        assert (futures._prepared(moment, futures._begun(moment)) is None) != shared_past
        found.append([*futures.draw(moment, 2, np.random.default_rng(1))])
    np.testing.assert_array_equal(*found)
    assert len(found[0][0]) > 30


# --- larger runs -------------------------------------------------------------------------------------------


def test_a_crowd() -> None:
    """Compiled: 80 nodes in five partitions with limits, where many wait, in series of equal requests."""
    made = slurm.profile()
    made = replace(made, priority=replace(made.priority, half_life=20_000))
    found = both(made, slurm.busy(100, 450))
    assert (found.mode == 3).sum() > 100 and found.held is not None
    assert found.wait_time[found.start_time >= 0].mean() > 600


def test_the_shared_day(shared: Path, tmp_path: Path) -> None:
    """Compiled: the day of a real Slurm, but for its preemption."""
    made = day_of_slurm(shared, tmp_path).changed({"PreemptMode": "OFF"})
    found = both(made, read_day(shared, made))
    assert found.held is not None and len(found) > 300


def day_of_slurm(shared: Path, folder: Path) -> Slurm:
    """Return the cluster of a real Slurm."""
    for file in sorted((shared / "slurm/day").glob("sacctmgr*")):
        shutil.copyfile(file, folder / file.name)
    for name in ("slurm.conf", "gres.conf"):
        shutil.copyfile(shared / "slurm/cluster" / f"{name}.in", folder / name)
    return Slurm.read(folder)


def read_day(shared: Path, made: Slurm) -> Workload:
    """Return the jobs of its day that a partition admits."""
    jobs = made.partitions.with_rules(read_sacct(shared / "slurm/day/day.sacct"))
    jobs = jobs.without(made.partitions.missing(jobs) != "", "of no partition")
    return jobs.select(np.flatnonzero(made.partitions.admitted(jobs).any(axis=0)))


# --- what is refused ---------------------------------------------------------------------------------------


def refusal(profile: Slurm, jobs: Workload, **options: Any) -> str:
    """Return why the compiled simulator cannot run jobs; by default SimPy takes them."""
    options = {**profile.options, **options}
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(jobs, profile.policy, profile.partitions, simulator="compiled", **options).run()
    return str(error.value).partition("this: ")[2]


def small_day() -> Day:
    """Some jobs of two QOS in two partitions."""
    machines = Machines(("n1", "n2"), ("cpus",), [[4], [4]])
    parts = Partitions([Partition("a", priority=1), Partition("b", machines=["n2"], priority=2)], machines)
    columns = {"submit_time": [0, 1, 2], "run_time": [9, 9, 9], "nodes": [1, 1, 2], "cpus": [4, 4, 4]}
    labels = {"partition": ("a", "b"), "qos": ("low", "high")}
    jobs = Workload(
        {**columns, "partition": [0, 1, 0], "qos": [0, 1, 0], "requested_time": [9, 9, 9]},
        resources=("cpus",), labels=labels,
    )  # fmt: skip
    qos = {"low": Qos("low"), "high": Qos("high", preempts=("low",))}
    return Day(Slurm("small", parts, qos=qos), jobs, "kill")


def test_what_it_does_not_know_is_refused_by_name() -> None:
    made, jobs, _ = small_day()
    assert "it knows no checkpoints of Slurm as configured" in refusal(
        made, jobs, restart=Restart(checkpoint=60)
    )
    assert "it knows no period, found 60" in refusal(made, jobs, period=60)
    held = replace(jobs, columns={**jobs.columns, "preceding": [-1, 1, -1]})
    assert "it knows no dependencies, found True" in refusal(made, held, dependencies=True)
    licensed = replace(
        jobs, columns={**jobs.columns, "licenses": [0, 0, 0]}, labels={**jobs.labels, "licenses": ("x:1",)}
    )
    assert "it knows no licenses" in refusal(made, licensed, licenses={"x": 1})
    steep = replace(made, priority=Multifactor(age=2**40))
    assert refusal(steep, jobs) == "its priorities are too large"


def test_one_partition_over_the_whole_cluster_begins_with_running_jobs() -> None:
    made, jobs, _ = small_day()
    machines = made.machines
    one = replace(
        made,
        partitions=Partitions(
            [
                Partition("a"),
            ],
            machines,
        ),
        qos={"low": Qos("low", limits={"GrpJobs": 2})},
    )
    jobs = jobs.select([0, 2, 2, 0])
    jobs = replace(
        jobs, columns={**jobs.columns, "submit_time": [0, 0, 1, 1], "id": [1, 2, 3, 4], "partition": [0] * 4}
    )
    whole = both(one, jobs)
    rest, begun = begun_at(whole, 3)
    found = both(one, rest, begun=begun)
    np.testing.assert_array_equal(found.start_time, whole.start_time)
    both(one, jobs.select([0, 1]), begun=begun_of(whole, 3, np.array([0, 1])))
