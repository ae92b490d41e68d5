"""Plans of Slurm's backfills that go on with those before them: the schedules of SimPy, which makes each anew."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import slurm_last_plan, slurm_limits, slurm_loop, slurm_places
from hpcsimkit.compiled.needs import EXCLUSIVE, MASK, NODES
from hpcsimkit.compiled.slurm_state import (
    AT,
    BEFORE,
    BEGIN,
    CHOSEN,
    END,
    FIRST_PART,
    FOLLOWING,
    LAST_PLAN,
    LOOKED_AT,
    NEXT,
    PLANNED,
    SINCE,
)
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.slurm.accounts import Qos
from hpcsimkit.slurm.plan import Plan
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.rules import Clocks, Multifactor
from tests.compiled.test_equality import uncompiled
from tests.compiled.test_slurm import Day, Draws, busy, check

SHORTCUTS = {
    (slurm_last_plan, "_has_its_place"): (True, False),
    (slurm_last_plan, "_is_kept"): (True, False),
    (slurm_last_plan, "_is_own"): (True, False),
    (slurm_places, "_fits_as_before"): (True, False),
    (slurm_places, "still_may_start"): (True, False),
    (slurm_places, "may_start"): (True, False),
}
"""Questions whose answers save work, each with the answers that the drawn days should have."""

STEPS = (
    (slurm_last_plan, "_again_on_one"),
    (slurm_last_plan, "_again_on_several"),
    (slurm_last_plan, "_search_from"),
    (slurm_last_plan, "end_last_plan"),
    (slurm_limits, "reason_of"),
)
"""Steps that the drawn days should take besides."""


def crowded(seed: int) -> Day:
    """Return many jobs on few machines, nearly all of which the backfill starts."""
    draws = Draws(seed)
    names = tuple(f"n{number}" for number in range(draws.one(2, 4, 6)))
    machines = Machines(names, ("cpus",), [[draws.one(2, 4)] for _ in names])
    parts = [
        Partition(f"p{number}", machines=draws.some(names), priority=draws.one(1, 1, 2))
        for number in range(draws.one(1, 2, 3))
    ]
    partitions = Partitions(parts, machines)
    limits = {"GrpJobs": draws.one(1, 3)}, {"MaxTRESPU": {"cpus": 4.0}}, {"GrpTRESRunMins": {"cpus": 9.0}}
    made = Slurm(
        "crowded",
        partitions,
        clocks=Clocks(
            bf_interval=draws.one(5, 11),
            bf_resolution=draws.one(1, 7, 20),
            bf_window=draws.one(30, 60, 100, 10**5),
            bf_max_job_test=draws.seldom(0, 6),
            bf_max_job_user=draws.seldom(0, 2),
            sched_interval=draws.one(40, 10**6),
            sched_min_interval=draws.one(2, 10**6),
            end_groups=False,
        ),
        priority=Multifactor(
            age=100,
            fair_share=draws.one(0, 1000),
            max_age=500,
            half_life=100,
            calc_period=draws.one(20, 10**6),
        ),
        qos={"normal": Qos("normal"), "held": Qos("held", limits=draws.one({}, *limits))},
    )
    return Day(made, crowd(draws, partitions), "kill")


def crowd(draws: Draws, partitions: Partitions, often: int = 1, pooled: float = 0.0) -> Workload:
    """Return jobs for it, in series of equal ones, of which some run as long as they may."""
    rng, count = draws.rng, 40
    series = np.repeat(np.arange(count), rng.integers(1, 4, count))[:count]
    limit = rng.choice([5, 9, 20, 40, 60, 130], count)[series]
    columns = {
        "submit_time": np.cumsum(rng.choice([0, 0, 0, 1, 7, 30], count)) // often,
        "run_time": np.where(rng.random(count) < 0.4, limit, rng.integers(1, limit + 3)),
        "requested_time": limit,
        "nodes": np.where(rng.random(count) < 0.3, rng.integers(2, 4, count), 1)[series],
        "cpus": rng.integers(1, 5, count)[series],
        "exclusive": rng.choice([-1, -1, -1, 1], count)[series],
        "user": rng.integers(0, 3, count)[series],
        "group": np.zeros(count, dtype=np.int64),
        "qos": rng.choice([0, 0, 1], count)[series],
        "partition": rng.integers(0, len(partitions.names), count)[series],
    }
    if pooled:
        columns["spread"] = np.where(rng.random(count) < pooled, 1, -1)[series]
    labels = {"user": ("ada", "ben", "cleo"), "group": ("red",), "qos": ("normal", "held")}
    jobs = Workload(columns, resources=("cpus",), labels={**labels, "partition": partitions.names})
    return jobs.select(np.flatnonzero(partitions.admitted(jobs).any(axis=0)))


def counted(patch: pytest.MonkeyPatch, module: Any, name: str, seen: Counter[Any], *, answer: bool) -> None:
    """Count the calls of a function, by their answers."""
    function: Callable[..., Any] = getattr(module, name)

    def counting(*arguments: Any) -> Any:
        found = function(*arguments)
        seen[(name, bool(found)) if answer else name] += 1
        return found

    for each in (slurm_last_plan, slurm_limits, slurm_loop, slurm_places):
        if getattr(each, name, None) is function:
            patch.setattr(each, name, counting)


@uncompiled
def test_crowded_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both simulators agree on days on which each shortcut is taken, and is not."""
    seen: Counter[Any] = Counter()
    for module, name in SHORTCUTS:
        counted(monkeypatch, module, name, seen, answer=True)
    for module, name in STEPS:
        counted(monkeypatch, module, name, seen, answer=False)
    for seed in (
        *range(40),
        351,
    ):  # the last one notices if places of another plan are taken for the last ones
        check(crowded(seed))
    wanted = [(name, answer) for (_, name), answers in SHORTCUTS.items() for answer in answers]
    assert not [each for each in (*wanted, *(name for _, name in STEPS)) if not seen[each]]


Place = tuple[int, list[int]]
"""A time [s] and the machines; none of them after all times if there is no place."""


def naive_place(nodes: Any, number: int, length: int, now: int, before: int) -> Place:
    """Return the first time at which enough machines are free for a length [s], and the first of these.

    Each machine has enough from one of its steps on, but for the jobs that are planned there.
    """
    mask = nodes.levels.needs[number, MASK]
    found = {}
    for place in range(nodes.first_member[mask], nodes.first_member[mask + 1]):
        machine = int(nodes.members[place])
        since = _has_enough_from(nodes, number, machine)
        if since is not None:
            found[machine] = max(now, since), _planned_on(nodes, machine)
    times = {
        time
        for since, planned in found.values()
        for time in (since, *(end for _, end in planned))
        if now <= time < before
    }
    for time in sorted(times):
        free = [
            machine
            for machine, (since, planned) in found.items()
            if since <= time and not any(begin < time + length and end > time for begin, end in planned)
        ]
        if len(free) >= nodes.levels.needs[number, NODES]:
            return time, free[: nodes.levels.needs[number, NODES]]
    return slurm_places.NEVER, []


def _has_enough_from(nodes: Any, number: int, machine: int) -> int | None:
    """Return the beginning of the first step of a machine that has what a job needs [s]; None if none has."""
    slurm_places._want(nodes, number)
    if nodes.levels.needs[number, EXCLUSIVE]:
        slurm_places._want_all(nodes, number, machine)
    step = machine
    while step >= 0:
        if slurm_places._has_wanted(nodes, step):
            return int(nodes.steps[step, AT])
        step = nodes.steps[step, NEXT]
    return None


def _planned_on(nodes: Any, machine: int) -> list[tuple[int, int]]:
    """Return beginning and end of the jobs that this plan has on a machine [s]."""
    found, place = [], nodes.first_planned[machine]
    while place >= 0:
        if place < nodes.counters[PLANNED]:
            found.append((int(nodes.planned[BEGIN, place]), int(nodes.planned[END, place])))
        place = nodes.planned[FOLLOWING, place]
    return found


@uncompiled
def test_each_place_is_the_earliest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places that are searched, and those that are kept from the last plan, are those of a search of all machines."""
    searched, kept = slurm_loop.place_like_last, slurm_loop.is_alike
    compared: Counter[str] = Counter()

    def searching(nodes: Any, number: int, ticket: int, length: int, now: int, before: int) -> int:
        wanted = naive_place(nodes, number, length, now, before)
        time = searched(nodes, number, ticket, length, now, before)
        chosen = range(nodes.counters[CHOSEN] if time < slurm_places.NEVER else 0)
        assert (time, [int(nodes.chosen[place, 0]) for place in chosen]) == wanted
        compared["searched"] += 1
        return time

    def keeping(nodes: Any, number: int, ticket: int, length: int, now: int) -> bool:
        entry, plan = int(nodes.counters[LOOKED_AT]), nodes.plans[nodes.counters[LAST_PLAN]]
        wanted = naive_place(nodes, number, length, now, int(nodes.counters[BEFORE]))
        if not kept(nodes, number, ticket, length, now):
            return False
        parts = nodes.plan_parts[nodes.counters[LAST_PLAN]]
        machines = parts[plan[FIRST_PART, entry] : plan[FIRST_PART, entry + 1]]
        assert (int(plan[SINCE, entry]), [int(machine) for machine in machines]) == wanted
        compared["kept"] += 1
        return True

    monkeypatch.setattr(slurm_loop, "place_like_last", searching)
    monkeypatch.setattr(slurm_loop, "is_alike", keeping)
    for seed in range(60, 100):
        check(crowded(seed))
    assert min(compared["searched"], compared["kept"]) > 200


def in_groups(seed: int) -> Day:
    """Return a crowded day on which running jobs end in groups, on more machines, some with pooled requests."""
    draws, made = Draws(seed), crowded(seed)
    names = tuple(f"n{number}" for number in range(draws.one(2, 5, 9)))
    machines = Machines(names, ("cpus",), [[draws.one(2, 4)] for _ in names])
    parts = [Partition(f"p{number}", machines=draws.some(names)) for number in range(draws.one(1, 2))]
    partitions = Partitions(parts, machines)
    jobs = crowd(draws, partitions, often=len(names), pooled=draws.one(0.0, 0.0, 0.4))
    clocks = replace(made.profile.clocks, end_groups=True, bf_resolution=draws.one(1, 1, 7))
    return Day(replace(made.profile, partitions=partitions, clocks=clocks), jobs, draws.one("kill", "run"))


def late(seed: int) -> Day:
    """Return a crowded day on which many jobs run for longer than they asked for."""
    made, jobs, _ = crowded(seed)
    longer = np.where(np.arange(len(jobs)) % 3 == 0, jobs.run_time + 40, jobs.run_time)
    return Day(made, replace(jobs, columns={**jobs.columns, "run_time": longer}), "run")


@uncompiled
@pytest.mark.parametrize(("day", "days"), [(crowded, 12), (late, 12), (in_groups, 15), (busy, 40)])
def test_each_planned_place_is_that_of_simpy(
    day: Callable[[int], Day], days: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of plans that are made anew before they come true, and of jobs that the window leaves out."""
    planning, reserving, placing = slurm_loop._plan, slurm_loop.reserve, Plan.first_place
    expected: dict[tuple[int, int, int], list[Place]] = defaultdict(list)
    compared: Counter[str] = Counter()
    found: list[Place] = []

    def expecting(plan: Plan, ticket: Any, length: int, now: int) -> Any:
        start, allocation = placing(plan, ticket, length, now)
        expected[now, ticket.job.index, ticket.part].append((start, list(allocation.machines)))
        return start, allocation

    def reserved(clocks: Any, nodes: Any, start: int, end: int, now: int) -> None:
        found.append((int(start), [int(nodes.chosen[place, 0]) for place in range(nodes.counters[CHOSEN])]))
        reserving(clocks, nodes, start, end, now)

    def planned(clocks: Any, factors: Any, jobs: Any, *others: Any) -> Any:
        *_, ticket, now = others
        found.clear()
        starts = planning(clocks, factors, jobs, *others)
        known = expected[int(now), int(jobs.row[ticket]), int(jobs.part[ticket])]
        if found:
            assert found[0] in known
            compared["planned"] += 1
        elif (
            starts or clocks.end_groups
        ):  # without groups, those that keep their places are not reserved anew
            assert any(start == now if starts else start > now + clocks.bf_window for start, _ in known)
            compared["starts" if starts else "beyond"] += 1
        return starts

    monkeypatch.setattr(Plan, "first_place", expecting)
    monkeypatch.setattr(slurm_loop, "_plan", planned)
    monkeypatch.setattr(slurm_loop, "reserve", reserved)
    for seed in range(200, 200 + days):
        expected.clear()
        check(day(seed))
    assert min(compared["planned"], compared["starts"]) > 60


@pytest.mark.slow
@uncompiled
def test_many_crowded_days() -> None:
    for seed in range(1000, 6000):
        check(crowded(seed))
