"""Machines: schedules drawn by hand, and every answer compared with what comes out of trying everything.

In the charts a line is a unit of a machine, a column a second, and jobs are named A, B, C ... in log order.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation, with_all
from hpcsimkit.cluster.base import Cluster, Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.request_table import NeedTable
from hpcsimkit.cluster.room import FORBIDDEN, MachineRoom
from hpcsimkit.errors import HpcsimkitError, ScheduleError, UsageError, WorkloadError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job, Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, SJF, Conservative, Greedy
from hpcsimkit.workloads.readers.swf import read_swf
from tests.drawn import examples
from tests.kernel.helpers import deep
from tests.kernel.machine_helpers import (
    Asked,
    asked,
    clusters,
    every,
    jobs_on_machines,
    level_of,
    levels,
    one_job,
    placed,
    requests,
    run_on,
)

FIRST_COME = Pipeline()
WITH_EASY = Pipeline(backfiller=EASY())

TWO = Machines.of(2, cpus=4)

# --- drawn by hand ---------------------------------------------------------------------------------------


def test_jobs_share_a_machine() -> None:
    """Four CPUs on one machine: B fits beside A, C does not and waits for both.

    ::

        ....
        BBBCCCC
        AAACCCC        A and B end at 3
        AAACCCC
    """
    one = Machines.of(1, cpus=4)
    jobs = [asked(0, 3, cpus=2), asked(0, 3, cpus=1), asked(0, 4, cpus=3)]
    assert placed(run_on(one, jobs, FIRST_COME)) == [(0, "node1"), (0, "node1"), (3, "node1")]


def test_free_amounts_of_two_machines_do_not_add_up() -> None:
    """Two are free on each machine, C needs three on one.

    ::

        ........
        ........
        BBBBBBBB       machine 2
        BBBBBBBB
        .....CCC
        .....CCC
        AAAAACCC       machine 1, free at 5
        AAAAA...
    """
    jobs = [asked(0, 5, cpus=2), asked(0, 8, cpus=3), asked(1, 3, cpus=3)]
    assert placed(run_on(TWO, jobs, FIRST_COME)) == [(0, "node1"), (0, "node2"), (5, "node1")]


def test_a_spread_job_takes_what_any_machines_have() -> None:
    """One CPU is free on the first machine, two on the second: together what C needs.

    ::

        .CCC
        .CCC
        BBBB       machine 2
        BBBB
        .CCC
        AAAA       machine 1
        AAAA
        AAAA
    """
    jobs = [asked(0, 4, cpus=3), asked(0, 4, cpus=2), asked(1, 3, cpus=3, spread=True)]
    result = run_on(TWO, jobs, FIRST_COME)
    assert placed(result) == [(0, "node1"), (0, "node2"), (1, "node1 node2")]
    assert result.placements is not None
    assert result.placements.amounts[:, 0].tolist() == [3, 2, 1, 2]


def test_a_job_of_n_nodes_needs_so_much_on_each_of_so_many_machines() -> None:
    """Three machines; B needs 2 CPUs on each of two, C on each of three.

    ::

        BB......CC
        BB......CC       machine 3
        BB......CC
        BB......CC       machine 2
        ........CC
        AAAAAAAACC       machine 1
    """
    three = Machines.of(3, cpus=2)
    jobs = [asked(0, 8, cpus=1), asked(0, 2, cpus=2, nodes=2), asked(0, 2, cpus=2, nodes=3)]
    result = run_on(three, jobs, FIRST_COME)
    assert placed(result) == [(0, "node1"), (0, "node2 node3"), (8, "node1 node2 node3")]
    assert result.amount.tolist() == [1, 4, 6]


def test_an_exclusive_job_has_its_machine_alone_and_takes_all_of_it() -> None:
    """B asks for one CPU of a machine of its own: the second; C finds room beside A only, D nowhere.

    ::

        BBBBDD
        BBBBDD       machine 2, all of it B's
        CCCC..
        AAAAAA       machine 1
    """
    two = Machines.of(2, cpus=2)
    jobs = [
        asked(0, 6, cpus=1), asked(0, 4, cpus=1, exclusive=True), asked(0, 4, cpus=1),
        asked(0, 2, cpus=2, exclusive=True),
    ]  # fmt: skip
    result = run_on(two, jobs, FIRST_COME)
    assert placed(result) == [(0, "node1"), (0, "node2"), (0, "node1"), (4, "node2")]
    assert result.amount.tolist() == [1, 2, 1, 2]


def test_constraints_keep_jobs_to_machines_with_all_features() -> None:
    machines = (
        Machines.of(1, "plain", cpus=4)
        + Machines.of(1, "fast", cpus=4, features=["fast"])
        + Machines.of(1, "both", cpus=4, features=["fast", "big"])
    )
    jobs = [
        asked(0, 5, cpus=4), asked(0, 5, cpus=1, constraint="fast"),
        asked(0, 5, cpus=1, constraint="big&fast"), asked(0, 5, cpus=4, constraint="fast"),
        asked(1, 5, cpus=6, spread=True, constraint=" fast & fast "),
    ]  # fmt: skip
    result = run_on(machines, jobs, FIRST_COME)
    assert placed(result) == [(0, "plain1"), (0, "fast1"), (0, "both1"), (5, "fast1"), (10, "fast1 both1")]


def test_counts_are_of_machines_with_features() -> None:
    """A takes one fast machine and the first other; B needs two fast ones, C one of them: they follow at 5.

    D needs a fast and a big machine: the one that is both stands for one of them only.
    """
    machines = (
        Machines.of(2, "plain", cpus=4)
        + Machines.of(1, "fast", cpus=4, features=["fast"])
        + Machines.of(1, "both", cpus=4, features=["fast", "big"])
    )
    jobs = [
        asked(0, 5, cpus=4, nodes=2, constraint="fast*1"), asked(1, 5, cpus=4, nodes=3, constraint="fast*2"),
        asked(1, 5, cpus=4, nodes=1, constraint="fast*1"),
        asked(2, 5, cpus=4, nodes=2, constraint="[fast*1&big*1]"),
    ]  # fmt: skip
    result = run_on(machines, jobs, FIRST_COME)
    assert placed(result) == [
        (0, "plain1 fast1"), (5, "plain1 fast1 both1"), (10, "fast1"), (15, "fast1 both1"),
    ]  # fmt: skip


def test_a_head_with_counts_keeps_enough_of_the_machines_that_count() -> None:
    """C needs two machines at 10, one of them fast. D may have a plain one for long, E not the fast one.

    ::

        BBBBBBBBBBCCCCC                    fast
        .DDDDDDDDDDDDDDDDDDDDDDDDDDDDDD    plain 2
        AAAAAAAAAACCCCCEEEE                plain 1
    """
    machines = Machines.of(2, "plain", cpus=2) + Machines.of(1, "fast", cpus=2, features=["fast"])
    jobs = [
        asked(0, 10, cpus=2), asked(0, 10, cpus=1, constraint="fast"),
        asked(1, 5, cpus=2, nodes=2, constraint="fast*1"), asked(1, 30, cpus=1), asked(1, 30, cpus=1, constraint="fast"),
    ]  # fmt: skip
    found = placed(run_on(machines, jobs, WITH_EASY))
    assert found == [(0, "plain1"), (0, "fast1"), (10, "plain1 fast1"), (1, "plain2"), (15, "fast1")]


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"nodes": 1, "constraint": "a*2"}, "counts of at most 1 nodes in all needed, found 'a*2'"),
        (
            {"nodes": 4, "constraint": "a*2|b*2"},
            "counts joined by & needed, such as a*2&b*4, found 'a*2|b*2'",
        ),
        ({"spread": True, "constraint": "a*1"}, "a pooled request has no nodes to count, found 'a*1'"),
        (
            {"nodes": 9, "constraint": "&".join(f"a{n}*1" for n in range(9))},
            f"at most 8 counts needed, found 9 in '{'&'.join(f'a{n}*1' for n in range(9))}'",
        ),
    ],
)
def test_counts_that_are_refused(how: dict[str, Any], found: str) -> None:
    with pytest.raises(UsageError) as caught:
        run_on(TWO, [asked(0, 3, cpus=1, **how)], FIRST_COME)
    assert str(caught.value) == found


def test_a_shortage_of_machines_that_count_is_said() -> None:
    machines = Machines.of(2, cpus=4) + Machines.of(1, "fast", cpus=4, features=["fast"])
    with pytest.raises(ScheduleError) as caught:
        run_on(machines, [asked(0, 3, cpus=1, nodes=3, constraint="fast*2")], FIRST_COME)
    assert str(caught.value) == (
        "job 1 needs 3 machines with 1 cpus each, 2 of them with fast; 3 have so much, 1 with fast"
    )


@pytest.mark.parametrize("backfiller", [None, EASY(), Conservative()], ids=str)
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_a_count_of_all_nodes_is_the_constraint(nodes: int, backfiller: Any) -> None:
    machines = Machines.of(4, cpus=4) + Machines.of(4, "fast", cpus=4, features=["fast"])
    rng = np.random.default_rng(nodes)
    rows = [
        (int(at), int(rng.integers(1, 20)), int(rng.integers(1, 5)), bool(rng.integers(2)))
        for at in np.sort(rng.integers(0, 60, 40))
    ]
    found = [
        placed(
            run_on(
                machines,
                [
                    asked(at, run, cpus=cpus, nodes=nodes, constraint=text * fast)
                    for at, run, cpus, fast in rows
                ],
                Pipeline(backfiller=backfiller),
            )
        )
        for text in ("fast", f"fast*{nodes}")
    ]
    assert found[0] == found[1]


def test_gpus_and_memory_are_counted_like_cpus() -> None:
    """Two GPUs: B and C have one each and leave CPUs idle, D waits for one, E needs none."""
    one = Machines.of(1, cpus=8, gpus=2, memory="10 GB")
    jobs = [
        asked(0, 9, cpus=1, memory=6_000_000_000), asked(0, 4, cpus=1, gpus=1, memory=4_000_000_000),
        asked(0, 7, cpus=1, gpus=1), asked(0, 2, cpus=1, gpus=1), asked(0, 1, memory=1),
    ]  # fmt: skip
    assert run_on(one, jobs, FIRST_COME).start_time.tolist() == [0, 0, 0, 4, 4]
    assert run_on(one, jobs, WITH_EASY).start_time.tolist() == [0, 0, 0, 4, 4]


@pytest.mark.parametrize("how", [{}, {"spread": True}, {"nodes": 2}], ids=str)
def test_a_job_that_asks_for_nothing_fits_nowhere(how: dict[str, Any]) -> None:
    """It would occupy nothing: no exclusive job could tell whether it is alone."""
    jobs = [asked(0, 9, cpus=4, exclusive=True), asked(0, 3, **how)]
    with pytest.raises(
        ScheduleError,
        match=r"^job 2 asks for nothing; on machines it needs an amount above 0 of cpus$",
    ):
        run_on(TWO, jobs, WITH_EASY)
    assert TWO.misfits(jobs_on_machines(jobs)).tolist() == [False, True]


def test_a_whole_machine_is_something() -> None:
    jobs = [asked(0, 9, cpus=1), asked(0, 9, exclusive=True), asked(0, 9, exclusive=True, spread=True)]
    result = run_on(TWO, jobs, WITH_EASY)
    assert placed(result) == [(0, "node1"), (0, "node2"), (9, "node1")]
    assert result.amount.tolist() == [1, TWO.capacity[1, 0], TWO.capacity[0, 0]]


def test_easy_on_machines_protects_a_place_for_the_head() -> None:
    """C needs a whole machine; the first is expected to be free at 10. D would be on it for longer, E is not.

    ::

        BBBBBBBBBBBBBBBBBBBB
        BBBBBBBBBBBBBBBBBBBB       machine 2
        ..EEEEEEEECCCCC.....
        AAAAAAAAAACCCCCDDDDD       machine 1
    """
    two = Machines.of(2, cpus=2)
    jobs = [
        asked(0, 10, cpus=1), asked(0, 20, cpus=2), asked(1, 5, cpus=2), asked(2, 30, cpus=1),
        asked(2, 8, cpus=1),
    ]  # fmt: skip
    assert placed(run_on(two, jobs, WITH_EASY))[2:] == [(10, "node1"), (15, "node1"), (2, "node1")]


def test_easy_lets_a_long_job_take_one_of_two_places_of_the_head() -> None:
    """At 10 both machines are expected to be free, C needs one: D may stay on one of them, E must wait.

    ::

        ..........CCCCC
        BBBBBBBBBBCCCCC          machine b
        .DDDDDDDDDDDDDDDDDD
        AAAAAAAAAAEEEEEEEEE      machine a
    """
    two = Machines.of(1, "a", cpus=2, features=["x"]) + Machines.of(1, "b", cpus=2, features=["y"])
    jobs = [
        asked(0, 10, cpus=1, constraint="x"), asked(0, 10, cpus=1, constraint="y"), asked(1, 5, cpus=2),
        asked(1, 30, cpus=1), asked(1, 30, cpus=1),
    ]  # fmt: skip
    assert placed(run_on(two, jobs, WITH_EASY))[2:] == [(10, "b1"), (1, "a1"), (10, "a1")]


def test_easy_with_a_spread_head_counts_totals_only() -> None:
    """B needs 6 of 8 CPUs at 10, two are left over: C may have both of them for long, D none."""
    jobs = [
        asked(0, 10, cpus=3), asked(0, 10, cpus=2), asked(1, 5, cpus=6, spread=True),
        asked(2, 99, cpus=2), asked(2, 99, cpus=1),
    ]  # fmt: skip
    result = run_on(TWO, jobs, WITH_EASY)
    assert placed(result)[2:] == [(10, "node1 node2"), (2, "node2"), (15, "node1")]


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit"])
def test_easy_lets_a_whole_machine_go_that_a_spread_head_can_spare(placement: str, simulator: str) -> None:
    """B needs 15 of 22 CPUs at 20: C may have d, of 4 CPUs, for long; D, on 8 CPUs, must wait."""
    cluster = Machines(list("adbe"), ["cpus"], [[8], [4], [2], [8]])
    jobs = [
        asked(0, 20, cpus=8, exclusive=True), asked(1, 5, cpus=15, spread=True),
        asked(5, 30, cpus=3, exclusive=True), asked(6, 30, cpus=3, exclusive=True),
    ]  # fmt: skip
    result = run_on(cluster, jobs, make(f"fcfs+{placement}+easy"), simulator=simulator)
    assert placed(result)[1:3] == [(20, "a b e"), (5, "d")]
    assert result.start_time[3] == 25


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
@pytest.mark.parametrize(
    ("cpus", "head", "start"),
    [
        ([1, 1, 4], 4, 5),  # 2 CPUs are left, so one on each machine
        ([4, 2, 1], 4, 5),  # 3 CPUs are left, and the head needs only the first machine
        ([4, 2, 1], 5, 25),  # 2 CPUs are left
    ],
)
def test_easy_lets_two_whole_machines_go_that_a_spread_head_can_spare(
    cpus: list[int], head: int, start: int, simulator: str
) -> None:
    cluster = Machines(list("abc"), ["cpus"], [[each] for each in cpus])
    jobs = [
        asked(0, 20, cpus=4, exclusive=True), asked(1, 5, cpus=head, spread=True),
        asked(5, 30, cpus=1, nodes=2, exclusive=True),
    ]  # fmt: skip
    assert run_on(cluster, jobs, WITH_EASY, simulator=simulator).start_time.tolist() == [0, 20, start]


def test_jobs_of_logs_that_know_processors_only_take_cpus_anywhere() -> None:
    log = Workload({"submit_time": [0, 0], "run_time": [5, 5], "nodes": [6, 3]})
    assert placed(run_on(TWO, log, FIRST_COME)) == [(0, "node1 node2"), (5, "node1")]


def test_dependencies_on_machines() -> None:
    jobs = jobs_on_machines(
        [asked(0, 5, cpus=4), asked(0, 5, cpus=3), asked(0, 5, cpus=4, exclusive=True)], preceding=[-1, -1, 2]
    )
    result = run_on(TWO, jobs, WITH_EASY, dependencies=True)
    assert placed(result) == [(0, "node1"), (0, "node2"), (5, "node1")]
    assert result.submit_time.tolist() == [0, 0, 5]


# --- against trying everything ---------------------------------------------------------------------------


@given(st.data())
def test_fits_place_and_holds_agree_with_trying_everything(data: st.DataObject) -> None:
    cluster = data.draw(clusters(most=3))
    nodes, request = data.draw(requests())
    level = data.draw(levels(cluster.capacity))
    before = level.copy()
    job = one_job(request, nodes)
    possible = every(cluster, nodes, request, level)
    found = cluster.place(job, level)
    assert cluster.fits(job, level) == bool(possible) == (found is not None)
    assert cluster.fit_each([job, job], level) == [bool(possible)] * 2
    assert all(cluster.holds(job, each, level) for each in possible)
    if found is not None:
        assert cluster.holds(job, found, level)
        assert request.exclusive or found in possible
        left = level - found
        assert (left >= 0).all() and (left + found == level).all()
    assert (level == before).all()


@given(st.data())
def test_holds_refuses_whatever_is_not_one_of_all_allocations(data: st.DataObject) -> None:
    """Half of them are nearly one of those: an amount is another one, or a machine."""
    cluster = data.draw(clusters(most=3))
    nodes, request = data.draw(requests())
    level = data.draw(levels(cluster.capacity))
    known = every(cluster, nodes, request, level)
    if known and data.draw(st.booleans()):
        like = data.draw(st.sampled_from(known))
        machines, amounts = list(like.machines), [list(row) for row in like.rows]
        place, change = data.draw(st.integers(0, len(machines) - 1)), data.draw(st.sampled_from([-1, 0, 1]))
        if data.draw(st.booleans()):
            machines[place] += change
        else:
            amounts[place][data.draw(st.integers(0, 2))] += change
    else:
        machines = data.draw(st.lists(st.integers(-1, len(cluster)), max_size=3))
        rows = st.lists(st.integers(-1, 4), min_size=3, max_size=3)
        amounts = data.draw(st.lists(rows, min_size=len(machines), max_size=len(machines)))
    allocation = Allocation(machines, np.array(amounts, dtype=np.int64).reshape(-1, 3))
    pairs = sorted(zip(machines, map(tuple, amounts), strict=True))
    possible = [sorted(zip(each.machines, map(tuple, each.rows), strict=True)) for each in known]
    held = cluster.holds(one_job(request, nodes), allocation, level)
    if held and request.spread:  # machines that give nothing are let pass
        pairs = [pair for pair in pairs if any(pair[1])] or pairs[:1]
    assert held == (pairs in possible)


@given(st.data())
def test_needs_judged_together_are_judged_as_one_by_one(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    jobs = [
        one_job(request, nodes) for nodes, request in data.draw(st.lists(requests(), min_size=1, max_size=40))
    ]
    level = data.draw(levels(cluster.capacity))
    numbers = np.array([cluster.size_of(job) for job in jobs], dtype=np.int64)
    expected = [cluster.fits(job, level) for job in jobs]
    assert cluster.needs.fit(numbers, level).tolist() == expected
    assert cluster.fit_each(jobs, level) == expected
    usable = cluster.needs.usable(numbers, level)
    for row, job in enumerate(jobs):
        need = cluster.need(job)
        assert need is cluster.needs.needs[numbers[row]]
        if not (need.spread or need.exclusive or need.quotas):
            assert usable[row].tolist() == need.usable(level).tolist()
            assert cluster.needs.amounts[numbers[row]].tolist() == need.amounts.tolist()


def test_a_table_of_no_needs_judges_none() -> None:
    assert NeedTable(3, 2).fit(np.zeros(0, dtype=np.int64), np.zeros((3, 2), dtype=np.int64)).tolist() == []


def random_releases(data: st.DataObject, cluster: Machines) -> tuple[Any, list[tuple[int, int, Allocation]]]:
    """Draw running jobs with expected ends; returns what is free and the releases by time."""
    level, releases = cluster.capacity, []
    for row in range(data.draw(st.integers(0, 5))):
        nodes, request = data.draw(requests())
        allocation = cluster.place(one_job(request, nodes), level)
        if allocation is not None:
            level = level - allocation
            releases.append((data.draw(st.integers(0, 4)), row, allocation))
    return level, sorted(releases)


@given(st.data())
def test_watch_and_earliest_agree_with_adding_releases_one_by_one(data: st.DataObject) -> None:
    cluster = data.draw(clusters())
    level, releases = random_releases(data, cluster)
    nodes, request = data.draw(requests())
    job = one_job(request, nodes)
    if cluster.fits(job, level) or not cluster.fits(job, cluster.capacity):
        return
    watch, then = cluster.need(job).watch(level), level
    for _, _, allocation in releases:
        then = then + allocation
        fits = cluster.fits(job, then)
        assert watch.add(allocation) == fits
        if fits:
            break
    for soonest in (0, 3):
        at, there = cluster.earliest(job, level, releases, soonest)
        expected_at, expected = Cluster.earliest(cluster, job, level, releases, soonest)
        assert (at, there.tolist()) == (expected_at, expected.tolist())
    assert (with_all(level, [each for *_, each in releases]) == cluster.capacity).all()


@given(st.data())
def test_room_behind_a_head_lets_it_start_in_time(data: st.DataObject) -> None:
    """Wherever a long job is placed within its level, the head fits later; exact for machines of their own."""
    cluster = data.draw(clusters(most=3))
    later = data.draw(levels(cluster.capacity))
    free = data.draw(levels(later))
    (head_nodes, head), (nodes, request) = data.draw(requests()), data.draw(requests())
    head_job, job = one_job(head, head_nodes), one_job(request, nodes, index=1)
    if cluster.fits(head_job, free) or not cluster.fits(head_job, later):
        return
    room = cluster.room(head_job, free, 100, later)
    assert cluster.admits(job, 100, room) == cluster.fits(job, free)
    possible = every(cluster, nodes, request, free)
    harmless = [each for each in possible if cluster.fits(head_job, later - each)]
    within = cluster.within(job, 101, room)
    assert cluster.admits(job, 101, room) == (within is not None)
    if within is not None:
        assert cluster.fits(job, within)
        allowed = every(cluster, nodes, request, np.where(within < 0, 0, within)) if (within >= 0).all() else [
            each for each in possible if all((within[machine] >= 0).all() for machine in each.machines)
        ]  # fmt: skip
        assert all(each in harmless for each in allowed)
        assert all(cluster.holds(job, each, within) for each in allowed)
    own_machines = not cluster.need(head_job).spread and not cluster.need(job).spread
    need = cluster.need(job)
    alone = not need.spread and need.nodes == 1  # a whole machine, but for its amounts
    totals = cluster.need(head_job).by_totals and (not request.exclusive or alone)
    if (own_machines and len(cluster.need(job).counts) < 2) or totals:
        assert (within is not None) == bool(harmless)


def test_a_long_job_of_two_nodes_may_have_a_needed_machine_that_is_free_now() -> None:
    """The head needs one of a and b, a is busy now: the job may have b and c."""
    cluster = Machines(["a", "b", "c"], ["cpus"], [[4], [4], [1]])
    head, job = one_job(Request(("cpus",), (4,))), one_job(Request(("cpus",), (1,)), 2, index=1)
    room = MachineRoom(
        level_of([[0], [2], [1]]),
        10,
        level_of([[4], [4], [1]]),
        level_of([[4], [4], [1]]),
        cluster.need(head),
    )
    within = cluster.within(job, 99, room)
    assert within is not None and cluster.place(job, within) == Allocation([1, 2], [[1], [1]])
    alone = one_job(
        Request(("cpus",), (0,)), index=2
    )  # even what asks for nothing keeps off forbidden machines
    strict = MachineRoom(level_of([[2]]), 10, level_of([[4]]), level_of([[4]]), cluster.need(head))
    single = Machines.of(1, cpus=4)
    assert (
        single.within(
            one_job(Request(("cpus",), (1,))),
            99,
            MachineRoom(level_of([[2]]), 10, level_of([[4]]), level_of([[4]]), single.need(head)),
        )
        is None
    )
    assert FORBIDDEN < 0 and not cluster.need(alone).fits(level_of([[FORBIDDEN]] * 3)) and strict.window == 10


def naive_easy(cluster: Machines, jobs: list[Asked]) -> list[tuple[int, int]]:
    """Return start and machine of jobs of one machine each, by EASY in its simplest form, instant by instant."""
    capacity = [dict(zip(cluster.resources, row, strict=True)) for row in cluster.capacity.tolist()]
    running: dict[int, tuple[int, int, int]] = {}  # machine, expected end, end
    started: dict[int, tuple[int, int]] = {}

    def free(at: int, now: int, extra: tuple[int, int] | None = None) -> list[dict[str, int]]:
        there = [dict(row) for row in capacity]
        inside = {
            row: machine for row, (machine, expected, _) in running.items() if max(expected, now + 1) > at
        }
        if extra is not None:
            inside[extra[0]] = extra[1]
        for row, machine in inside.items():
            for name, amount in jobs[row].amounts.items():
                if name in there[machine]:
                    there[machine][name] -= amount
        return there

    def machine_for(row: int, there: list[dict[str, int]]) -> int | None:
        wanted = jobs[row].amounts.items()
        return next(
            (m for m, has in enumerate(there) if all(has.get(name, 0) >= amount for name, amount in wanted)),
            None,
        )

    def start(row: int, machine: int, now: int) -> None:
        running[row] = (machine, now + (jobs[row].requested or max(jobs[row].run, 1)), now + jobs[row].run)
        started[row] = (now, machine)

    now = min(job.submit for job in jobs)
    while len(started) < len(jobs):
        progress = True
        while progress:  # zero-length jobs end in a further round of the instant
            for row in [row for row, (_, _, end) in running.items() if end <= now]:
                del running[row]
            waiting = [
                row
                for row in sorted(range(len(jobs)), key=lambda r: jobs[r].submit)
                if row not in started and jobs[row].submit <= now
            ]
            before = len(started)
            while waiting and (machine := machine_for(waiting[0], free(now, now))) is not None:
                start(waiting.pop(0), machine, now)
            if waiting:
                head = waiting[0]
                ends = sorted({max(expected, now + 1) for _, expected, _ in running.values()})
                shadow = next(at for at in ends if machine_for(head, free(at, now)) is not None)
                for row in waiting[1:]:
                    there = free(now, now)
                    length = jobs[row].requested or max(jobs[row].run, 1)
                    for machine, has in enumerate(there):
                        if any(has.get(name, 0) < amount for name, amount in jobs[row].amounts.items()):
                            continue
                        if (
                            now + length <= shadow
                            or machine_for(head, free(shadow, now, (row, machine))) is not None
                        ):
                            start(row, machine, now)
                            break
            progress = len(started) > before and any(end <= now for _, _, end in running.values())
        ends = [end for _, _, end in running.values()]
        now = min([*ends, *(job.submit for job in jobs if job.submit > now)], default=now)
    return [started[row] for row in range(len(jobs))]


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Machines, list[Asked]]:
    """Draw machines and jobs of one machine each."""
    cluster = draw(clusters(most=3))
    jobs = []
    for _ in range(draw(st.integers(1, 12))):
        home = cluster.capacity[draw(st.integers(0, len(cluster) - 1))].tolist()
        amounts = {
            name: draw(st.integers(0, high)) for name, high in zip(cluster.resources, home, strict=True)
        }
        if not any(amounts.values()):  # a job needs an amount above 0; some machine has CPUs
            amounts["cpus"] = 1
        run = draw(st.integers(0, 6))
        jobs.append(
            Asked(
                draw(st.integers(0, 6)),
                run,
                max(1, run + draw(st.sampled_from([-2, 0, 0, 3]))),
                amounts=amounts,
            )
        )
    return cluster, jobs


@given(case=crowded(), limit=st.sampled_from([200, 1]))
def test_easy_equals_its_simplest_form(case: tuple[Machines, list[Asked]], limit: int) -> None:
    cluster, jobs = case
    with deep(limit):
        result = run_on(cluster, jobs, WITH_EASY)
    names = {name: number for number, name in enumerate(cluster.names)}
    assert [(at, names[words]) for at, words in placed(result)] == naive_easy(cluster, jobs)


POLICIES: dict[str, Policy] = {
    "fcfs": FIRST_COME,
    "easy": WITH_EASY,
    "sjf+easy": Pipeline(order=SJF(), backfiller=EASY(candidates=FCFS())),
    "greedy": Pipeline(backfiller=Greedy()),
    "fitting": Pipeline(order=SJF(), fitting=True),
    "window": Pipeline(order=SJF(), fitting=True, window=3),
}


def on_each_kind(workload: Workload, policy: Policy, size: int) -> None:
    """Check that homogeneous nodes, one large machine and many small ones give one schedule."""
    expected = Simulation(workload, policy, Nodes(size)).run()
    for cluster in (Machines.of(1, cpus=size), Machines.of(size, cpus=1), Machines.of(size, cores=1)):
        result = Simulation(workload, policy, cluster).run()
        np.testing.assert_array_equal(result.start_time, expected.start_time)
        np.testing.assert_array_equal(result.mode, expected.mode)
        assert result.size == size


@pytest.mark.parametrize("name", POLICIES)
def test_machines_equal_counted_nodes(name: str, shared: Path) -> None:
    log = read_swf(shared / "traces/KTH-SP2-1996-2.1-cln.swf.gz").fitting(100).first(600, skip=5000)
    on_each_kind(log, POLICIES[name], 100)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["easy", "sjf+easy"])
def test_machines_equal_counted_nodes_on_a_whole_log(name: str, shared: Path) -> None:
    log = read_swf(shared / "traces/KTH-SP2-1996-2.1-cln.swf.gz").fitting(100)
    on_each_kind(log, POLICIES[name], 100)


@examples(0.6)
@given(case=crowded(), name=st.sampled_from(sorted(POLICIES)))
def test_nothing_is_given_twice(case: tuple[Machines, list[Asked]], name: str) -> None:
    cluster, jobs = case
    result = run_on(cluster, jobs, POLICIES[name])
    parts = result.placements
    assert parts is not None
    assert (result.start_time >= result.submit_time).all()
    for instant in np.unique(result.start_time):
        runs = (result.start_time <= instant) & (instant < result.end_time)
        used = np.zeros_like(cluster.capacity)
        np.add.at(used, parts.machine[runs[parts.job]], parts.amounts[runs[parts.job]])
        assert (used <= cluster.capacity).all()


# --- allocations and levels ------------------------------------------------------------------------------


def test_levels_stay_as_they_are() -> None:
    level = level_of([[4, 1], [8, 0], [8, 2]])
    for allocation in (Allocation([1], [[3, 0]]), Allocation([0, 2], [[1, 1], [8, 0]])):
        before = level.tolist()
        less = level - allocation
        more = less + allocation
        assert level.tolist() == before == more.tolist() and less is not level and more is not less
        assert less.flags.f_contiguous
    cluster = Machines.of(2, cpus=4)
    with pytest.raises(ValueError, match="read-only"):
        cluster.capacity[0, 0] = 9
    with pytest.raises(ValueError, match="read-only"):
        cluster.need(one_job(Request(("cpus",), (4,)))).amounts[0] = 0


def test_allocations_are_equal_by_what_they_give() -> None:
    one, same = (
        Allocation([0, 2], [[1, 1], [8, 0]], "depth"),
        Allocation(np.array([0, 2]), [(1.0, 1), (8, 0)], "depth"),
    )
    assert one == same and hash(one) == hash(same) and {one: 1}[same] == 1
    assert one != Allocation([0, 2], [[1, 1], [8, 0]]) and one != Allocation(
        [0, 1], [[1, 1], [8, 0]], "depth"
    )
    assert one != Allocation([0, 2], [[8, 0], [1, 1]], "depth") and one != 3
    assert (
        repr(one) == "Allocation([0, 2], [[1, 1], [8, 0]], 'depth')"
        and repr(Allocation([3], [[1]])) == "Allocation([3], [[1]])"
    )


@pytest.mark.parametrize("exclusive", [False, True])
def test_jobs_share_the_allocations_of_one_machine(exclusive: bool) -> None:
    cluster = Machines.of(2, cpus=4)
    need = cluster.need(one_job(Request(("cpus",), (3,), exclusive=exclusive)))
    given = need.take(cluster.capacity, np.array([1, 0]), "depth")
    assert given == Allocation([1], [[4 if exclusive else 3]], "depth")
    assert need.take(cluster.capacity, np.array([1]), "depth") is given
    assert need.take(cluster.capacity, np.array([1]), "breadth") == Allocation([1], given.amounts, "breadth")
    assert need.take(cluster.capacity, np.array([0]), "depth") == Allocation([0], given.amounts, "depth")
    # Other processes make their own: a cluster that has been used is no larger for them.
    sent = pickle.dumps(need)
    for machine in (0, 1):
        need.take(cluster.capacity, np.array([machine]))
    assert len(pickle.dumps(need)) == len(sent)
    assert pickle.loads(sent).take(cluster.capacity, np.array([1]), "depth") == given


@pytest.mark.parametrize("amounts", [[[1.5]], [["x"]], [[float("nan")]], [[None]]])
def test_allocations_need_whole_amounts(amounts: Any) -> None:
    with pytest.raises(UsageError, match="an allocation needs whole amounts, found"):
        Allocation([0], amounts)
    with pytest.raises(TypeError, match="'float' object"):
        Allocation([0.5], [[1]])  # type: ignore[list-item]


# --- machines themselves ---------------------------------------------------------------------------------


def test_machines_add_up() -> None:
    cluster = (
        Machines.of(2, cpus=32, memory="128 GB")
        + Machines.of(2, gpus=4, cpus=8)
        + Machines.of(1, "x7", nics=1)
    )
    assert cluster.resources == ("cpus", "gpus", "memory", "nics")
    assert cluster.names == ("node1", "node2", "node3", "node4", "x71")
    assert cluster.capacity.tolist() == [
        [32, 0, 128 * 10**9, 0], [32, 0, 128 * 10**9, 0], [8, 4, 0, 0], [8, 4, 0, 0], [0, 0, 0, 1],
    ]  # fmt: skip
    assert (len(cluster), cluster.size, cluster.unit) == (5, 80, "cpus")
    assert cluster.amount("gpus").tolist() == [0, 0, 4, 4, 0] and cluster.amount("tapes").tolist() == [0] * 5
    assert repr(cluster) == "Machines(5: 80 cpus, 8 gpus, 256 GB memory, 1 nics)"
    again = cluster + cluster
    assert again.names[5:] == ("node5", "node6", "node7", "node8", "x1") and again.size == 160
    with pytest.raises(TypeError):
        cluster + 3  # type: ignore[operator]


def test_many_machines_add_up_fast() -> None:
    both = Machines.of(5000, cpus=1) + Machines.of(5000, cpus=1)
    assert both.names[-1] == "node10000" and len(set(both.names)) == 10_000


def test_equality_and_copies() -> None:
    cluster = Machines.of(2, cpus=4, features=["x"]) + Machines.of(1, "g", cpus=2, gpus=1)
    job = one_job(Request(("cpus", "gpus"), (1, 1)))
    cluster.need(job)
    for same in (copy.deepcopy(cluster), pickle.loads(pickle.dumps(cluster)), copy.copy(cluster)):
        assert same == cluster and hash(same) == hash(cluster) and repr(same) == repr(cluster)
        assert same.place(job, same.capacity) == cluster.place(job, cluster.capacity)
        assert not same.capacity.flags.writeable and same.capacity.flags.f_contiguous
        assert same.shortage(job, same.capacity) == cluster.shortage(job, cluster.capacity)
    others: list[Any] = [
        Machines.of(2, cpus=4) + Machines.of(1, "g", cpus=2, gpus=1),
        Machines.of(2, "n", cpus=4, features=["x"]) + Machines.of(1, "g", cpus=2, gpus=1),
        Machines.of(2, cpus=4, features=["x"]) + Machines.of(1, "g", cpus=2, gpus=2),
        Nodes(3), None,
    ]  # fmt: skip
    assert all(cluster != other for other in others)


def test_a_copied_run_goes_on_on_copied_machines() -> None:
    """Needs are known by number: a copy must know them by the same ones."""
    cluster = Machines.of(2, cpus=4)
    run_on(cluster, [asked(0, 1, cpus=n) for n in (3, 2, 1)], WITH_EASY)
    copied = copy.deepcopy(cluster)
    assert len(copied.needs) == len(cluster.needs) == 3
    assert [copied.size_of(one_job(Request(("cpus", "gpus", "memory"), (n, 0, 0)))) for n in (1, 2, 3)] == [
        cluster.size_of(one_job(Request(("cpus", "gpus", "memory"), (n, 0, 0)))) for n in (1, 2, 3)
    ]


def test_memory_near_the_limit_does_not_overflow() -> None:
    huge = 10**16
    cluster = Machines(["a", "b"], ["cpus", "memory"], [[1, huge], [1, huge]])
    both = one_job(Request(("memory",), (huge,)), 2)
    spread = one_job(Request(("memory",), (huge + 5,), spread=True))
    assert cluster.totals == (2, 2 * huge)
    for job in (both, spread):
        allocation = cluster.place(job, cluster.capacity)
        assert allocation is not None and cluster.holds(job, allocation, cluster.capacity)
        assert ((cluster.capacity - allocation + allocation) == cluster.capacity).all()
    with pytest.raises(
        UsageError, match="machines need amounts of at most 4611686018427387904 in all, found"
    ):
        Machines.of(500, cpus=1, memory="10 PB")


def test_needs_of_earlier_workloads_cost_later_ones_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning plays thousands of workloads on one cluster."""
    cluster, judged = Machines.of(2, cpus=64), []
    for number in range(50):
        run_on(cluster, [asked(0, 1, cpus=1 + number)], FIRST_COME)
    assert len(cluster.needs) == 50
    fit = NeedTable.fit

    def counting(table: NeedTable, numbers: Any, level: Any) -> Any:
        judged.append(len(numbers))
        return fit(table, numbers, level)

    monkeypatch.setattr(NeedTable, "fit", counting)
    run_on(cluster, [asked(0, 1, cpus=7)], FIRST_COME)
    assert not judged  # known to fit the empty machines
    run_on(cluster, [asked(0, 1, cpus=60)], FIRST_COME)
    assert judged == [1]
    with pytest.raises(ScheduleError, match="needs a machine with 65 cpus"):
        run_on(cluster, [asked(0, 1, cpus=7), asked(0, 1, cpus=65)], FIRST_COME)


@pytest.mark.parametrize("limit", [1, 200])
def test_a_short_job_is_backfilled_behind_a_longer_one_with_the_same_need(limit: int) -> None:
    """B waits for both machines. C would delay it, D behind it asks for the same and does not.

    ::

        AAAAAAAAAABBBBBCCC...
        DDDDD     BBBBB
    """
    jobs = [asked(0, 10, cpus=4), asked(0, 5, cpus=4, nodes=2), asked(0, 20, cpus=4), asked(0, 5, cpus=4)]
    with deep(limit):
        assert run_on(TWO, jobs, WITH_EASY).start_time.tolist() == [0, 10, 15, 0]


@given(st.data())
def test_needs_that_have_not_fitted_fit_once_capacity_has_risen_enough(data: st.DataObject) -> None:
    """The table remembers what has not fitted, and looks only at machines on which capacity has risen since."""
    cluster = data.draw(clusters(most=6))
    asking = data.draw(st.lists(requests(), min_size=1, max_size=6))
    numbers = sorted({cluster.size_of(one_job(request, nodes)) for nodes, request in asking})
    for _ in range(6):
        level = data.draw(levels(cluster.capacity))
        some = set(numbers) - data.draw(st.sets(st.sampled_from(numbers), max_size=1))
        enough = cluster.needs.fit(np.array(sorted(some), dtype=np.int64), level)
        expected = {number for number, fits in zip(sorted(some), enough.tolist(), strict=True) if fits}
        assert cluster.needs.fitting(some, level) == expected


# --- errors ----------------------------------------------------------------------------------------------

WRONG_MACHINES: dict[str, tuple[Callable[[], Machines], str]] = {
    "ragged": (lambda: Machines(["a", "b"], ["cpus"], [[1], [2, 3]]), "machines need amounts of shape"),
    "none": (lambda: Machines([], ["cpus"], []), "machines need amounts of shape"),
    "shape": (lambda: Machines(["a"], ["cpus"], [[1], [2]]), r"found \(2, 1\) for 1 machines and 1 resources"),
    "text": (lambda: Machines(["a"], ["cpus"], np.array([["x"]])), r"machine 'a' needs whole amounts .* found \['x'\]"),
    "nan": (lambda: Machines(["a"], ["cpus"], [[float("nan")]]), r"machine 'a' needs whole .* found \[nan\]"),
    "half": (lambda: Machines(["a", "b"], ["cpus"], [[1.0], [1.5]]), r"machine 'b' needs whole .* found \[1.5\]"),
    "negative": (lambda: Machines(["a"], ["cpus"], [[-1]]), r"machine 'a' needs whole .* from 0 to .* found \[-1\]"),
    "huge": (lambda: Machines(["a"], ["cpus"], [[10**30]]), "machine 'a' needs whole amounts from 0 to 10000000000000000"),
    "machine twice": (lambda: Machines(["a", "a"], ["cpus"], [[1], [1]]), "machine 'a' is listed twice"),
    "resource twice": (lambda: Machines(["a"], ["x", "x"], [[1, 1]]), "resource 'x' is listed twice"),
    "numbers for names": (lambda: Machines([1], ["x"], [[1]]), r"names of machines need to be text, found \[1\]"),  # type: ignore[list-item]
    "one text": (lambda: Machines("a", ["x"], [[1]]), "names of machines need to be text, found 'a'"),
    "features": (lambda: Machines(["a"], ["x"], [[1]], [["y"], []]), "1 machines need as many sets of features, found 2"),
    "feature text": (lambda: Machines.of(1, cpus=1, features="a100"), "features need to be a list of words"),
    "feature &": (lambda: Machines.of(1, cpus=1, features=["a&b"]), "features need to be a list of words without '&', '|', '*' and brackets"),
    "count": (lambda: Machines.of(0, cpus=1), "machines need a count of at least 1, found 0"),
    "bool": (lambda: Machines.of(True, cpus=1), "machines need a count of at least 1, found True"),
    "float": (lambda: Machines.of(2.0, cpus=1), "machines need a count of at least 1, found 2.0"),  # type: ignore[arg-type]
    "name": (lambda: Machines.of(1, 3, cpus=1), "machines need a name of letters, found 3"),  # type: ignore[arg-type]
    "nothing": (lambda: Machines.of(1), "machines need at least one resource, such as cpus=32"),
    "no unit": (lambda: Machines.of(1, memory=128), "memory needs a unit .* found '128'"),
    "unknown unit": (lambda: Machines.of(1, memory="1 XB"), "memory needs a unit .* found unknown unit 'XB'"),
    "minus": (lambda: Machines.of(1, memory="-1 GB"), "memory needs a number and a unit, .* found '-1 GB'"),
    "text cpus": (lambda: Machines.of(1, cpus="4"), "cpus need a whole number of at least 0, found '4'"),
    "bool cpus": (lambda: Machines.of(1, cpus=True), "cpus need a whole number of at least 0, found True"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_MACHINES)
def test_wrong_machines_are_told_in_one_line(name: str) -> None:
    make, problem = WRONG_MACHINES[name]
    with pytest.raises(UsageError, match=problem) as error:
        make()
    assert "\n" not in str(error.value)


MISFITS: dict[str, tuple[Asked, str]] = {
    "too large": (asked(0, 1, cpus=9), "needs a machine with 9 cpus; none has so much"),
    "too many": (asked(0, 1, cpus=8, nodes=3), "needs 3 machines with 8 cpus each; 2 have so much"),
    "one": (asked(0, 1, gpus=1, nodes=2), "needs 2 machines with 1 gpus each; 1 has so much"),
    "total": (asked(0, 1, cpus=21, spread=True), "needs 21 cpus in all; the cluster has 20 cpus"),
    "memory": (asked(0, 1, memory=64_000_000_001, spread=True),
               "needs 64 GB memory in all; the cluster has no memory"),
    "feature": (asked(0, 1, cpus=1, constraint="fast&old"), "needs a machine with 1 cpus that has fast&old; no machine has fast&old"),
    "either": (asked(0, 1, cpus=1, constraint="old|new"), r"needs a machine .*; no machine has old\|new"),
    "gpus of big ones": (asked(0, 1, gpus=1, constraint="big"), "needs a machine with 1 gpus that has big; none has so much"),
    "whole": (asked(0, 1, cpus=9, exclusive=True), "needs a whole machine with 9 cpus; none has so much"),
    "whole total": (asked(0, 1, cpus=17, spread=True, exclusive=True, constraint="big"),
                    "needs 17 cpus in all of whole machines that have big; the cluster has 16 cpus"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_a_job_that_fits_on_no_machine_is_told_in_one_line(name: str) -> None:
    cluster = Machines.of(2, cpus=8, features=["big"]) + Machines.of(
        1, "gpu", cpus=4, gpus=1, features=["fast"]
    )
    job, problem = MISFITS[name]
    with pytest.raises(ScheduleError, match=f"^job 2 {problem}") as error:
        run_on(cluster, [asked(0, 1, cpus=1), job], FIRST_COME)
    assert "\n" not in str(error.value)
    assert cluster.misfits(jobs_on_machines([asked(0, 1, cpus=1), job])).tolist() == [False, True]


def test_gpus_asked_of_a_cluster_without_any() -> None:
    with pytest.raises(
        ScheduleError, match=r"^job 1 needs a machine with 1 cpus, 2 gpus; the cluster has no gpus$"
    ):
        run_on(TWO, [asked(0, 1, cpus=1, gpus=2)], FIRST_COME)
    with pytest.raises(ScheduleError, match=r"^job 1 needs 2 gpus in all; the cluster has no gpus$"):
        run_on(TWO, [asked(0, 1, gpus=2, spread=True)], FIRST_COME)


def test_a_cluster_with_nothing_to_measure_by() -> None:
    with pytest.raises(
        UsageError, match=r"Machines\(1: 2 gpus\) has no cpus, by which utilisation is measured"
    ):
        run_on(Machines.of(1, cpus=0, gpus=2), [asked(0, 1, gpus=1)], FIRST_COME)


class Clumsy(Policy):
    """Starts the second job with an allocation of its own."""

    def __init__(self, allocation: Any) -> None:
        self.allocation = allocation

    def schedule(self, system: Any) -> None:
        first, *others = system.queue
        system.start(first)
        for job in others:
            system.start(job, self.allocation)


@pytest.mark.parametrize(
    "allocation",
    [
        Allocation([0], [[2, 0, 0]]), Allocation([1], [[3, 0, 0]]), Allocation([7], [[2, 0, 0]]),
        Allocation([-1], [[2, 0, 0]]), Allocation([1, 1], [[1, 0, 0], [1, 0, 0]]), Allocation([1], [[2]]),
        Allocation([0, 1], [[1, 0, 0], [1, 0, 0]]), Allocation([], np.zeros((0, 3), int)), 2, "node1",
    ],
)  # fmt: skip
def test_a_wrong_allocation_is_an_error(allocation: Any) -> None:
    cluster = Machines(["a", "b"], ["cpus", "gpus", "memory"], [[4, 1, 1]] * 2)
    jobs = [asked(0, 5, cpus=4), asked(0, 5, cpus=2)]
    with pytest.raises(
        HpcsimkitError, match=r"job 2 at t=0 s: .* does not lie within what is free, or is not"
    ):
        run_on(cluster, jobs, Clumsy(allocation))
    assert placed(run_on(cluster, jobs, Clumsy(Allocation([1], [[2, 0, 0]])))) == [(0, "a"), (0, "b")]


def test_no_machine_gives_less_than_nothing() -> None:
    cluster, job = Machines.of(2, cpus=4), one_job(Request(("cpus",), (2,), spread=True))
    assert cluster.holds(job, Allocation([0, 1], [[1], [1]]), cluster.capacity)
    assert not cluster.holds(job, Allocation([0, 1], [[3], [-1]]), cluster.capacity)


@pytest.mark.parametrize(
    "request_",
    [Request(("cpus",), (1,), exclusive=True), Request(("cpus",), (1,), spread=True, exclusive=True)],
)
def test_a_machine_that_is_not_shared_is_given_whole(request_: Request) -> None:
    cluster, job = Machines.of(2, cpus=4, gpus=2), one_job(request_)
    for amounts, held in (([4, 2], True), ([4, 1], False), ([3, 2], False), ([1, 0], False)):
        assert cluster.holds(job, Allocation([1], [amounts]), cluster.capacity) == held, amounts


def test_allocations_on_many_machines_are_like_others() -> None:
    """They keep their amounts on all machines; what others lack, as machines that a reservation needs, is nothing."""
    cluster, level = Machines.of(3, cpus=2, gpus=4), np.array([[2, 1], [-1, -1], [1, 3]])
    job = one_job(Request(("cpus", "gpus"), (2, 3), spread=True))
    many, known = (
        Allocation.of_level(np.array([[1, 1], [0, 0], [1, 2]])),
        Allocation([0, 2], [[1, 1], [1, 2]]),
    )
    assert many.everywhere is not None
    assert many == known
    for allocation in (many, known):
        assert cluster.holds(job, allocation, level)
        assert not cluster.holds(job, allocation, level - allocation)
        assert (level - allocation).tolist() == [[1, 0], [-1, -1], [0, 1]]
        assert (level - allocation + allocation).tolist() == level.tolist()
    few = Allocation.of_level(np.array([[1, 1]] + 8 * [[0, 0]]))
    assert few.everywhere is None
    assert few == Allocation([0], [[1, 1]])


def test_no_machine_counts_twice_and_none_without_the_features() -> None:
    cluster = Machines(["a", "b", "c"], ["cpus"], [[4]] * 3, [["x"], ["x"], []])
    two, total = one_job(Request(("cpus",), (1,)), 2), one_job(Request(("cpus",), (2,), spread=True))
    fast = one_job(Request(("cpus",), (1,), constraint="x"), 2)
    for job, machines, held in (
        (two, [0, 2], True), (two, [1, 1], False), (two, [2, 0], True), (total, [0, 2], True), (total, [1, 1], False),
        (fast, [0, 1], True), (fast, [0, 2], False), (two, [0, 3], False), (two, [-1, 0], False),
    ):  # fmt: skip
        assert cluster.holds(job, Allocation(machines, [[1], [1]]), cluster.capacity) == held


def test_what_is_free_is_told_in_words() -> None:
    level = TWO.capacity - Allocation([0], [[1]])
    request = Request(("cpus",), (4,), exclusive=True)
    assert TWO.shortage(one_job(request, 2), level) == "needs 2 whole machines with 4 cpus each; 1 is idle"
    assert (
        TWO.shortage(one_job(Request(("cpus",), (4,)), 2), level)
        == "needs 2 machines with 4 cpus each; 1 has so much free"
    )
    assert (
        TWO.shortage(one_job(Request(("cpus",), (8,), spread=True)), level)
        == "needs 8 cpus in all; 7 cpus are free"
    )
    nearly = Machines.of(1, memory="64 GB")
    job = one_job(Request(("memory",), (64_000_000_000,), spread=True))
    assert nearly.shortage(job, nearly.capacity - Allocation([0], [[1_000_000]])) == (
        "needs 64 GB memory in all; 63.999 GB memory are free"
    )


def test_jobs_without_requests_are_shared() -> None:
    job = Job(0, 1, 0, 5, 5, 3)
    assert TWO.need(job) is TWO.need(Job(1, 2, 9, 7, 7, 3)) is not TWO.need(Job(2, 3, 9, 7, 7, 2))
    assert TWO.need(job).text() == "3 cpus in all"


def test_yes_or_no_columns_of_workloads() -> None:
    columns = {"submit_time": [0, 0], "run_time": [1, 1], "nodes": [1, 1], "cpus": [1, 1]}
    jobs = Workload({**columns, "spread": [True, False], "exclusive": [0, -1]}, resources=("cpus",)).jobs
    assert [(job.request.spread, job.request.exclusive) for job in jobs if job.request] == [
        (True, False),
        (False, False),
    ]
    for wrong in (2, -2):
        with pytest.raises(WorkloadError, match=f"job 2: exclusive needs -1 to 1, found {wrong}"):
            Workload({**columns, "exclusive": [1, wrong]}, resources=("cpus",))
    with pytest.raises(WorkloadError, match="column 'nodes' needs whole numbers, found bool"):
        Workload({**columns, "nodes": [True, True]}, resources=("cpus",))


def test_what_is_lacking_is_named_once() -> None:
    """Whether the cluster knows no GPUs, or knows them and none of its machines has one."""
    request = Request(("cpus", "gpus"), (2, 1))
    job = Job(index=0, id=1, submit_time=0, run_time=1, requested_time=1, nodes=1, request=request)
    for cluster in (Machines.of(1, cpus=4), Machines.of(1, cpus=4, gpus=0)):
        text = cluster.shortage(job, cluster.capacity)
        assert text == "needs a machine with 2 cpus, 1 gpus; the cluster has no gpus"
