"""Slurm as configured whose jobs are stopped for others: equal attempts, placements and reasons on both simulators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.compiled import slurm_stopping, slurm_stops
from hpcsimkit.compiled.slurm_state import EVENTS, MOST_PARTS, PARTS, RUNNING
from hpcsimkit.experiments.advice.futures import Futures
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.policy_run import _refusals
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.begun import Begun, begun_in
from hpcsimkit.kernel.ledger import Mode
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.attempts import Outcome
from hpcsimkit.results.result import Result
from hpcsimkit.slurm.accounts import Qos
from hpcsimkit.slurm.requests import Requests
from tests.compiled.test_equality import uncompiled
from tests.compiled.test_slurm import (
    ACCOUNTS,
    GIB,
    KINDS,
    RESOURCES,
    USERS,
    Day,
    Draws,
    both,
    check_begun_of,
    check_futures_of,
    day_of,
    day_of_slurm,
    read_day,
    small_day,
)
from tests.drawn import examples
from tests.interpreted import interpret

PREEMPTS = {"high": ("low", "normal"), "normal": ("low",), "low": ()}
"""QOS that each QOS may preempt, as a rule."""


def stopping_day(seed: int) -> Day:
    """Return a day on which long jobs of all QOS may be stopped by QOS, or by tiers."""
    day, draws = day_of(seed), Draws(seed + 1)
    made = day.profile
    qos = {
        name: replace(
            made.qos.get(name, Qos(name)),
            preempts=tuple(
                other
                for other in draws.seldom(PREEMPTS.get(name, ()), (), *PREEMPTS.values())
                if other != name != "low"  # no loops
            ),
            mode=draws.one("cluster", "cluster", "requeue", "cancel"),
        )
        for name in ("normal", "high", "low", "part")
    }
    tiers = draws.rng.permutation(4).tolist()
    parts = [
        replace(part, priority=tiers[place] if draws.one(True, True, False) else 1, max_time=None)
        for place, part in enumerate(made.partitions.parts)
    ]
    partitions = replace(made.partitions, parts=parts)
    made = replace(
        made,
        partitions=partitions,
        preempt=draws.one("qos", "partition_prio"),
        preempt_mode=draws.one("requeue", "requeue", "cancel"),
        qos=qos,
        protected=frozenset(draws.seldom([], draws.some(partitions.names))),
        node_weights={name: draws.one(1, 1, 2, 3) for name in made.machines.names},
        clocks=replace(
            made.clocks,
            completing=draws.one(0, 0, 5),
            end_groups=draws.one(True, False),
            defer=draws.one(False, True),
        ),
        limits=draws.seldom(False, True),
    )
    return Day(made, long_jobs(draws, partitions), day.walltime)


def long_jobs(draws: Draws, partitions: Partitions) -> Workload:
    """Return jobs in bursts, with long run times, most of which ask for little else than CPUs."""
    rng, count = draws.rng, int(draws.rng.integers(8, 40))
    lists = (*partitions.names, ",".join(partitions.names), ",".join(draws.some(partitions.names)))
    run_time = rng.choice([5, 61, 300, 300, 1000], count)
    columns = {
        "submit_time": np.cumsum(rng.choice([0, 0, 1, 7, 40, 90], count)) + draws.one(0, 1000),
        "run_time": run_time,
        "requested_time": np.maximum(run_time + rng.choice([-30, 0, 30, 200], count), 1),
        "nodes": np.where(rng.random(count) < 0.3, rng.integers(1, 4, count), 1),
        "cpus": rng.choice([1, 2, 2, 4], count),
        "gpus": rng.choice([0, 0, 0, 0, 1], count),
        "memory": rng.choice([1, 4], count, p=[0.9, 0.1]) * GIB // 4,
        "spread": np.where(rng.random(count) < 0.1, 1, -1),
        "exclusive": np.where(rng.random(count) < 0.1, 1, -1),
        "user": rng.integers(0, len(USERS), count),
        "group": rng.integers(0, len(ACCOUNTS), count),
        "qos": rng.integers(-1, len(KINDS), count),
        "partition": rng.integers(0, len(lists), count),
    }
    labels = {"user": USERS, "group": ACCOUNTS, "qos": KINDS, "partition": lists}
    if draws.seldom(False, True):  # tasks of arrays, which are one record
        columns["id"] = rng.permutation(count) + 1
        labels["id"] = ("", *(f"{place // 3}_{place % 3}" for place in range(count)))
    found = Workload(columns, resources=RESOURCES, labels=labels)
    return found.select(np.flatnonzero(partitions.admitted(found).any(axis=0)))


def run(day: Day, delay: int = 121, begun: Begun | None = None) -> Result:
    """Compare both simulators, and return the result."""
    restart = Restart(preempted="anew", delay=delay)
    return both(day.profile, day.jobs, walltime=day.walltime, restart=restart, begun=begun)


def check(seed: int) -> None:
    run(stopping_day(seed), Draws(seed).one(121, 30, 7, 0))


def with_modes(day: Day, draws: Draws) -> Day:
    """Return a day on which the fate of jobs that are stopped by tiers depends on their partitions."""
    made = day.profile
    modes = {name: draws.one("cancel", "requeue") for name in made.partitions.names}
    return day._replace(profile=replace(made, preempt="partition_prio", preempt_modes=modes))


@pytest.fixture
def little_space(monkeypatch: pytest.MonkeyPatch) -> None:
    """There has to be more space for stopped attempts."""
    monkeypatch.setattr(slurm_stopping, "SPACE", 0)


SEEDS = given(st.integers(0, 2**32))
test_random_days = uncompiled(pytest.mark.usefixtures("little_space")(examples(2)(SEEDS(check))))
test_many_random_days = pytest.mark.slow(settings(max_examples=10_000)(SEEDS(check)))


@uncompiled
@pytest.mark.usefixtures("little_space")
def test_jobs_are_stopped_on_such_days() -> None:
    """Among some days are all kinds of stops: in both loops, for good or not, of jobs that had started in both."""
    found: Counter[str] = Counter()
    for seed in range(50):
        day = stopping_day(seed)
        found.update(kinds_of_stops(day, run(day)))
    assert (
        min(found[kind] for kind in ("main", "backfill", "lost", "again", "twice", "late", "qos", "tiers"))
        > 1
    )


@uncompiled
@pytest.mark.usefixtures("little_space")
def test_machines_of_killed_jobs_take_none_for_some_time() -> None:
    """Nor in plans: with seeds 441, 468 and 471 a job would otherwise be planned there after others are stopped."""
    for seed in range(440, 472):
        day, draws = stopping_day(seed), Draws(seed)
        clocks = replace(day.profile.clocks, completing=draws.one(5, 20))
        run(day._replace(profile=replace(day.profile, clocks=clocks)), draws.one(120, 30))


@uncompiled
@pytest.mark.usefixtures("little_space")
def test_partitions_have_modes_of_preemption_of_their_own() -> None:
    """On some days, jobs of one partition wait again once they are stopped, and those of another one do not."""
    both = 0
    for seed in range(60):
        result = run(with_modes(stopping_day(seed), Draws(seed)))
        if (attempts := result.attempts) is not None:
            of_stopped = np.unique(attempts.job[attempts.outcome == Outcome.PREEMPTED])
            last = {
                job: Outcome(outcome) for job, outcome in zip(attempts.job, attempts.outcome, strict=True)
            }
            both += len({last[job] == Outcome.PREEMPTED for job in of_stopped}) == 2
    assert both > 1


def kinds_of_stops(day: Day, result: Result) -> Iterator[str]:
    """Yield the kinds of what happens in a run."""
    attempts = result.attempts
    if attempts is None:
        return
    stopped = attempts.outcome == Outcome.PREEMPTED
    at = attempts.end_time[stopped]
    for mode, name in ((Mode.READY, "main"), (Mode.BACKFILLED, "backfill")):
        if np.isin(at, attempts.start_time[attempts.mode == mode]).any():
            yield name
    last = np.flatnonzero(np.diff(attempts.job, append=-1))
    yield "lost" if stopped[last].any() else "again"
    if (np.bincount(attempts.job[stopped]) > 1).any():
        yield "twice"
    if day.profile.clocks.completing:
        yield "late"
    yield "qos" if day.profile.preempt == "qos" else "tiers"


@uncompiled
@pytest.mark.parametrize("seed", [*range(5), 5130, 5192])
def test_begun_runs_and_futures(seed: int) -> None:
    """With the last two seeds, all known jobs are submitted after the moment, and others arrive before them."""
    check_begun_of(seed, stopping_day)
    check_futures_of(seed, stopping_day)


@uncompiled
@pytest.mark.parametrize(("seed", "at"), [(2, 1881), (55, 519), (63, 700), (126, 1201), (127, 1256)])
def test_a_future_in_which_all_is_known_is_what_happened(seed: int, at: int) -> None:
    """Jobs that were stopped before wait since they came back, and their users have the usage of all attempts."""
    day = stopping_day(seed)
    clocks = replace(day.profile.clocks, end_groups=False, completing=0, sched_min_interval=1, defer=False)
    tree = Requests(day.profile, day.profile.partitions, day.jobs).associations
    made = replace(day.profile, clocks=clocks, associations=tree)
    options = {**made.options, "walltime": day.walltime, "simulator": "compiled"}
    case = Case.of(day.jobs, made.policy, made.partitions, **options)
    futures = Futures(case, case.run())
    moment, submit_time = futures.moment(at), day.jobs.submit_time
    later = np.argsort(submit_time, kind="stable")[(submit_time <= at).sum() :]
    run_time = np.maximum(day.jobs.run_time[moment.active], futures._elapsed(moment) + 1)
    begun = futures._begun(moment)
    found = futures._starts(moment, begun, run_time, later, submit_time[later])
    assert found.tolist() == futures.next_start(moment).tolist()
    assert len(found)


@pytest.mark.slow
@settings(max_examples=2_000)
@SEEDS
def test_many_random_begun_runs_and_futures(seed: int) -> None:
    check_begun_of(seed, stopping_day)
    check_futures_of(seed, stopping_day)


@uncompiled
def test_a_job_that_limits_hold_for_ever_is_given_up_once_it_was_stopped() -> None:
    """It had started before there were limits: stopped at 5 s, it is due again at 126 s, when no time limit allows it."""
    made, jobs, _ = small_day()
    limited = replace(made.qos["low"], limits={"MaxWall": 5})
    strict = replace(made, qos={**made.qos, "low": limited}, preempt="qos", preempt_mode="requeue")
    times = {"submit_time": [0, 5], "run_time": [200, 9], "requested_time": [200, 9]}
    jobs = jobs.select([0, 1])
    jobs = replace(
        jobs, columns={**jobs.columns, **times, "partition": [0, 0], "nodes": [2, 2], "id": [1, 2]}
    )
    result = run(Day(strict, jobs, "kill"), begun=Begun(1, {0: 0}))
    assert result.attempts is not None
    assert result.held is not None
    assert result.attempts.start_time.tolist() == [0, 5]
    assert result.attempts.end_time.tolist() == [5, 14]
    assert result.attempts.outcome.tolist() == [Outcome.PREEMPTED, Outcome.COMPLETED]
    assert result.killed.tolist() == [True, False]
    assert result.finished.tolist() == [True, True]
    assert result.held.to_frame(jobs).to_numpy().tolist() == [[1, 126, 126, "QOSMaxWallDurationPerJobLimit"]]
    assert _refusals(result) == [
        "1 of 2 jobs given up, as they can never start again: QOSMaxWallDurationPerJobLimit"
    ]


@uncompiled
@pytest.mark.parametrize("seed", [30, 41, 49, 61])
def test_begun_runs_in_which_jobs_that_limits_hold_for_ever_are_stopped(seed: int) -> None:
    given_up = 0
    for found in runs_with_new_limits(seed):
        if found.held is not None:
            given_up += sum(found.held.refused(found.start_time >= 0).values())
    assert given_up


@uncompiled
def test_a_plan_holds_no_less_than_nothing() -> None:
    """Among these runs, jobs with pooled requests are planned on machines of jobs that were stopped for others."""
    assert [*runs_with_new_limits(24)]


def runs_with_new_limits(seed: int) -> Iterator[Result]:
    """Yield runs that begin with what another one without limits had started by three times."""
    day = stopping_day(seed)
    made = replace(day.profile, limits=True, clocks=replace(day.profile.clocks, completing=0))
    before = both(replace(made, limits=False, preempt=""), day.jobs, walltime=day.walltime)
    first, last = int(day.jobs.submit_time.min()), int(day.jobs.submit_time.max())
    for at in (first + 1, (first + last) // 2, last):
        yield both(made, day.jobs, walltime=day.walltime, begun=begun_in(before, at))


@pytest.mark.parametrize("seed", range(0, 50, 2))
def test_jobs_run_on_for_their_grace_times_on_random_days(seed: int) -> None:
    """No stopped job has run for a shorter time; the compiled simulator refuses these days."""
    day, grace = stopping_day(seed), 9
    qos = {name: replace(each, grace_time=grace) for name, each in day.profile.qos.items()}
    made = replace(day.profile, qos=qos, grace_times=dict.fromkeys(day.profile.partitions.names, grace))
    options: dict[str, Any] = {**made.options, "walltime": day.walltime}
    result = Simulation(day.jobs, made.policy, made.partitions, **options).run()
    if result.attempts is not None:
        assert result.simulator == "simpy"
        stopped = result.attempts.outcome == Outcome.PREEMPTED
        assert (result.attempts.end_time - result.attempts.start_time)[stopped].min(initial=grace) == grace


@pytest.mark.parametrize("lacking", [None, "log", "events", "parts"])
def test_there_is_space_for_all_that_an_instant_may_need(
    lacking: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both loops may start all three tickets: 10 starts may be stopped, each start has an event, each stop too."""
    interpret(monkeypatch)
    space = {"log": 1 + 10, "events": 7 + 4 + 6 + 10, "parts": 9 + 2 * 5}
    if lacking:
        space[lacking] -= 1
    counters = {RUNNING: 4, EVENTS: 7, PARTS: 9}
    log = np.zeros((1, space.pop("log")))
    run: Any = SimpleNamespace(counters=counters, **{name: np.zeros(size) for name, size in space.items()})
    attempts = SimpleNamespace(counters={slurm_stops.STOPPED_ATTEMPTS: 1}, log=log)
    stops: Any = SimpleNamespace(attempts=attempts, counters={MOST_PARTS: 5})
    jobs: Any = SimpleNamespace(row=np.zeros(3))
    assert slurm_stops.lacks_space(jobs, run, stops) == (lacking is not None)


@uncompiled
@pytest.mark.parametrize(
    ("partition", "nodes", "cpus", "end"),
    [
        # Three CPUs of four are wanted: the jobs give 1, 1 and 2, and the last of them comes first then.
        (1, [1, 1, 1, 1], [1, 1, 2, 3], [10, 99, 10]),
        # All of both nodes is wanted: the second job has more of them than the first, which is needed all the same.
        (0, [1, 2, 2, 2], [1, 1, 2, 4], [10, 10, 10]),
    ],
)
def test_jobs_to_stop_are_looked_at_again_in_another_order(
    partition: int, nodes: list[int], cpus: list[int], end: list[int]
) -> None:
    made, jobs, _ = small_day()
    stops = replace(made, preempt="qos", preempt_mode="cancel")
    jobs = jobs.select([0, 0, 0, 1])
    columns = {
        "submit_time": [0, 0, 0, 10],
        "run_time": [99] * 4,
        "requested_time": [99] * 4,
        "id": [1, 2, 3, 4],
        "partition": [partition] * 4,
        "nodes": nodes,
        "cpus": cpus,
        "qos": [0, 0, 0, 1],
    }
    result = run(Day(stops, replace(jobs, columns={**jobs.columns, **columns}), "kill"))
    assert result.start_time.tolist() == [0, 0, 0, 10]
    assert result.end_time.tolist() == [*end, 109]


def test_jobs_to_stop_are_sorted(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the rank of their QOS, then the smaller ones, then the earlier ones; as many as there are."""
    interpret(monkeypatch)
    rng = np.random.default_rng(5)
    for count in range(6):
        rank, part_count, first_ticket = (
            rng.integers(0, 2, count),
            rng.integers(1, 3, count),
            rng.permutation(count),
        )
        rules = SimpleNamespace(by_tier=0, kind=np.arange(count), rank=rank)
        candidates = np.concatenate([rng.permutation(count), [9, 9]])
        jobs: Any = SimpleNamespace(first_ticket=first_ticket)
        run: Any = SimpleNamespace(part=np.zeros(count, dtype=int), part_count=part_count)
        stops: Any = SimpleNamespace(rules=rules, candidates=candidates)
        slurm_stops._sort_candidates(jobs, run, stops, count)
        assert candidates.tolist() == [*np.lexsort([first_ticket, part_count, rank]), 9, 9]


def test_the_shared_day(shared: Path, tmp_path: Path) -> None:
    """Compiled: the day of a real Slurm, with its preemption."""
    made = day_of_slurm(shared, tmp_path)
    assert len(both(made, read_day(shared, made))) > 300
