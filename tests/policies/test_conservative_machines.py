"""Conservative backfilling and k reservations on machines: by hand, and against a naive simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.base import Cluster, Nodes
from hpcsimkit.cluster.machine_profile import MachineProfile, TotalsProfile
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.profile import LevelProfile, Profile
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job, Request
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Backfiller, Placement, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import FCFS, Conservative, Reservations
from hpcsimkit.policies.placing.placements import WorstFit
from tests.drawn import examples
from tests.kernel import naive_machines
from tests.kernel.helpers import rows_and_size, starts, workload
from tests.kernel.machine_cases import KINDS, cases, exceeding, given
from tests.kernel.machine_helpers import Asked, asked, jobs_on_machines, level_of, one_job, placed, run_on

TWO = Machines(["a", "b"], ["cpus"], [[2], [2]])
CONSERVATIVE = make("fcfs+conservative")
REPLAN = make("fcfs+conservative-replan")


class Prefers(Placement):
    """Takes the machines in an order of its own, whatever reservations hold."""

    def __init__(self, machines: str) -> None:
        self.machines = machines

    def place(self, job: Job, level: Any, system: Any) -> Allocation | None:
        usable = set(system.cluster.usable(job, level).tolist())
        order = [system.cluster.names.index(name) for name in self.machines]
        return system.cluster.need(job).take(level, np.array([each for each in order if each in usable]))


# --- by hand ---------------------------------------------------------------------------------------------


CROSSING = [asked(0, 5, cpus=1), asked(0, 5, cpus=2), asked(1, 5, cpus=2), asked(2, 8, cpus=1)]
"""A, D, B and C, which needs one CPU for 8 s."""


@pytest.mark.parametrize("policy", [CONSERVATIVE, REPLAN, make("fcfs+easy-k(2)")], ids=repr)
def test_a_hole_must_be_on_one_machine_all_the_time(policy: Policy) -> None:
    """B is promised both CPUs of a from 5. So one CPU is always free, but first on a and then on b: C starts at 5.

    ::

        a   AAAAABBBBB
        a   .....BBBBB
        b   DDDDDCCCCCCCC
        b   DDDDD
    """
    assert placed(run_on(TWO, CROSSING, policy)) == [(0, "a"), (0, "b"), (5, "a"), (5, "b")]


def test_easy_promises_some_machine_only() -> None:
    """C starts on a at once, since B can have b at 5."""
    assert placed(run_on(TWO, CROSSING, make("fcfs+easy"))) == [(0, "a"), (0, "b"), (5, "b"), (2, "a")]


def totals(submit: int, run: int, cpus: int) -> Asked:
    return asked(submit, run, cpus=cpus, spread=True)


THREE = Machines(["a", "b", "c"], ["cpus"], [[1], [1], [1]])


def test_totals_need_not_stay_on_one_machine_in_the_plan() -> None:
    """A asked for 1 s of a CPU and takes none; D (two CPUs) is promised 1, so E (one CPU for 2 s) too.

    When A has ended, one CPU is free till 1, and one beside D after that: enough for E.

    ::

        a   EE
        b   BD
        c   CD
    """
    jobs = [totals(0, 0, 1), totals(0, 1, 1), totals(0, 1, 1), totals(0, 1, 2), totals(0, 2, 1)]
    assert placed(run_on(THREE, jobs, CONSERVATIVE))[3:] == [(1, "b c"), (0, "a")]


def test_if_one_job_needs_a_machine_totals_stay_where_they_are_promised() -> None:
    """The same, and F needs a machine for 1 s: D holds a and b from 1 to 2, E c from 1 to 3. F takes A's place."""
    jobs = [
        totals(0, 0, 1), totals(0, 1, 1), totals(0, 1, 1), totals(0, 1, 2), totals(0, 2, 1),
        asked(0, 1, cpus=1),
    ]  # fmt: skip
    assert placed(run_on(THREE, jobs, CONSERVATIVE))[3:] == [(1, "a b"), (1, "c"), (0, "a")]


def test_a_job_that_needs_a_machine_makes_reservations_hold_machines() -> None:
    """Totals T (three CPUs of a and b, 2 each) is promised 4. At 1 comes M, which needs both CPUs of a machine for 4 s.

    M would fit machine b at 3, when C ends, if T could be anywhere at 4. T holds both CPUs of a and one of b
    from 4 to 8, so M is promised b from 8 (a and b are then both free; a comes first).
    """
    jobs = [
        asked(0, 4, cpus=2), asked(0, 3, cpus=2), totals(0, 4, 3), asked(1, 4, cpus=2),
    ]  # fmt: skip
    assert placed(run_on(TWO, jobs, CONSERVATIVE)) == [(0, "a"), (0, "b"), (4, "a b"), (8, "a")]


def test_the_plan_holds_what_a_job_was_given() -> None:
    """B holds a from 4. D ends early, so that B may take b instead. Then a is free for E until C starts, on both.

    ::

        a   AAAA.EEEEC
        b   DDDDBBBBBC
    """
    jobs = [
        asked(0, 4, cpus=2), asked(0, 4, cpus=2, requested=9), asked(1, 5, cpus=2),
        asked(2, 1, cpus=2, nodes=2), asked(5, 4, cpus=2),
    ]  # fmt: skip
    policy = Pipeline(placement=Prefers("ba"), backfiller=Conservative())
    assert placed(run_on(TWO, jobs, policy)) == [(0, "a"), (0, "b"), (4, "b"), (9, "a b"), (5, "a")]


def test_what_a_job_leaves_to_the_next_one_of_the_same_pass() -> None:
    """B and C hold a and b from 4, when c is free too. B takes c; so C may have a, which B held."""
    jobs = [
        asked(0, 4, cpus=2), asked(0, 4, cpus=2), asked(0, 4, cpus=2, requested=9),
        asked(1, 5, cpus=2), asked(2, 5, cpus=2),
    ]  # fmt: skip
    three = Machines(["a", "b", "c"], ["cpus"], [[2], [2], [2]])
    policy = Pipeline(placement=Prefers("cab"), backfiller=Conservative())
    assert placed(run_on(three, jobs, policy))[3:] == [(4, "c"), (4, "a")]


def test_what_a_job_leaves_by_starting_elsewhere_is_there_when_the_next_one_ends() -> None:
    """B holds b from 4; A ends early, and B takes a instead. When E ends, on time, C moves from 9 to 5 on b."""
    cluster = Machines(["a", "b", "c"], ["cpus", "gpus"], [[2, 0], [2, 0], [0, 1]], [[], ["b"], []])
    jobs = [
        asked(0, 4, cpus=2, requested=9), asked(0, 4, cpus=2), asked(0, 5, gpus=1),
        asked(1, 5, cpus=2), asked(2, 1, cpus=2, constraint="b"),
    ]  # fmt: skip
    assert placed(run_on(cluster, jobs, CONSERVATIVE))[3:] == [(4, "a"), (5, "b")]


def test_when_the_last_job_that_needs_a_machine_has_gone_only_totals_are_promised() -> None:
    """Three machines of one CPU. A needs a machine and takes no time; B and C take totals till 1.

    D (two CPUs) is promised a and b at 1, E (one CPU for 2 s) c at 1. When A has ended, it does not matter which
    CPU E has from 1 on: it starts at 0 on a, and D at 1 on b and c.
    """
    jobs = [
        asked(0, 0, cpus=1), totals(0, 1, 1), totals(0, 1, 1), totals(0, 1, 2), totals(0, 2, 1),
    ]  # fmt: skip
    assert placed(run_on(THREE, jobs, CONSERVATIVE))[3:] == [(1, "b c"), (0, "a")]


def test_going_back_to_totals_while_jobs_end() -> None:
    """All come at 0 on four CPUs. B and C take no time; B is the only one that needs a machine.

    When they have ended, only totals are promised again. The CPU that C had is free once, not twice: D (three
    CPUs) stays at 1, behind A (two), and E (two) moves from 2 to 0.
    """
    jobs = [
        totals(0, 1, 2), asked(0, 0, memory=1), totals(0, 0, 1), totals(0, 1, 3), totals(0, 1, 2),
    ]  # fmt: skip
    result = run_on(Machines.of(1, cpus=4, memory="1 B"), jobs, CONSERVATIVE)
    assert result.start_time.tolist() == [0, 0, 0, 1, 0]


@pytest.mark.parametrize(
    "backfiller", [Conservative(), Reservations(), Reservations(1), Reservations(None)], ids=repr
)
def test_a_place_is_refused_that_another_reservation_needs(backfiller: Backfiller) -> None:
    """C (one CPU, 9 s) may start at 2 on b only: a is promised to B at 4. As full as b, it would be taken first.

    ::

        a   A...BBBBB
        a   AA..BBBBB
        b   DDDDDD
        b   ..CCCCCCCCC
    """
    cluster = Machines(["a", "b"], ["cpus", "gpus"], [[2, 1], [2, 0]])
    jobs = [
        asked(0, 4, cpus=1, gpus=1), asked(0, 6, cpus=1, constraint="slow"),
        asked(1, 5, cpus=2, gpus=1), asked(2, 9, cpus=1),
    ]  # fmt: skip
    slow = Machines(cluster.names, cluster.resources, cluster.amounts, [set(), {"slow"}])
    policy = Pipeline(placement=WorstFit(), backfiller=backfiller)
    assert placed(run_on(slow, jobs, policy)) == [(0, "a"), (0, "b"), (4, "a"), (2, "b")]


def test_compression_moves_a_job_to_another_machine() -> None:
    """B asked for 9 s and ends at 3: C, promised a from 5, starts on b."""
    jobs = [asked(0, 5, cpus=2), asked(0, 3, cpus=2, requested=9), asked(1, 4, cpus=2)]
    assert placed(run_on(TWO, jobs, CONSERVATIVE)) == [(0, "a"), (0, "b"), (3, "b")]


def test_a_job_that_outlives_its_estimate_delays_others() -> None:
    """A asked for 3 s and takes 6: B, promised 3, waits; C (2 s) fits on b beside it all the time."""
    jobs = [
        asked(0, 6, cpus=2, requested=3), asked(0, 9, cpus=1), asked(1, 4, cpus=2), asked(4, 2, cpus=1),
    ]  # fmt: skip
    assert placed(run_on(TWO, jobs, CONSERVATIVE)) == [(0, "a"), (0, "b"), (6, "a"), (4, "b")]


def test_a_job_that_runs_longer_where_it_was_placed_delays_others_only_that_much() -> None:
    """Every job takes 2 s more than asked for on machine b. D is promised b at 5 and starts when it is free, at 7."""
    jobs = [asked(0, 5, cpus=2), asked(0, 5, cpus=2), asked(1, 3, cpus=2), asked(2, 3, cpus=2)]
    result = run_on(
        TWO,
        jobs,
        CONSERVATIVE,
        service_time=lambda job, seconds, allocation, cluster: 2 * allocation.machines[0],
    )
    assert placed(result) == [(0, "a"), (0, "b"), (5, "a"), (7, "b")]
    assert result.end_time.tolist() == [5, 7, 8, 12]


def test_an_exclusive_job_waits_for_a_whole_machine_and_holds_it() -> None:
    """C wants a machine for itself: a at 6, since B has b till 9. D (one CPU, 3 s) ends by then; E (4 s) does not."""
    jobs = [
        asked(0, 6, cpus=1), asked(0, 9, cpus=2), asked(1, 2, cpus=1, exclusive=True),
        asked(2, 3, cpus=1), asked(3, 4, cpus=1),
    ]  # fmt: skip
    assert placed(run_on(TWO, jobs, CONSERVATIVE)) == [(0, "a"), (0, "b"), (6, "a"), (2, "a"), (8, "a")]


def test_an_open_seat_is_offered_what_is_due_and_may_place_it_where_nobody_is_delayed() -> None:
    policy = Pipeline(placement=External(WorstFit()), backfiller=Conservative())
    jobs = [asked(0, 4, cpus=1), asked(0, 6, cpus=1), asked(1, 5, cpus=2), asked(2, 1, cpus=1)]
    simulation = Simulation(jobs_on_machines(jobs), policy, TWO)
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(decision.options[0])
    assert placed(simulation.result()) == [(0, "b"), (0, "a"), (4, "b"), (2, "a")]


def test_an_open_backfiller_seat_over_reservations() -> None:
    """Taking the last candidate offered, whatever it is, keeps the first job's reservation of machine a at 4."""
    policy = Pipeline(order=FCFS(), backfiller=External(Reservations(count=None)))
    jobs = [
        asked(0, 4, cpus=2), asked(0, 1, cpus=1), asked(0, 9, cpus=1), asked(1, 5, cpus=2),
        asked(1, 9, cpus=1), asked(1, 9, cpus=1), asked(1, 3, cpus=1),
    ]  # fmt: skip
    simulation = Simulation(jobs_on_machines(jobs), policy, TWO)
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(decision.options[-1])
    found = placed(simulation.result())
    assert found[3] == (4, "a")
    assert found[6] == (1, "b")


# --- against the naive simulator -------------------------------------------------------------------------

ORDERS = {
    "fcfs": lambda job: job.submit,
    "lcfs": lambda job: -job.submit,
    "sjf": lambda job: job.estimate,
}


@pytest.mark.parametrize("kind", KINDS)
@drawn(data=st.data(), order=st.sampled_from(sorted(ORDERS)))
def test_equals_the_naive_simulator(kind: str, data: st.DataObject, order: str) -> None:
    cluster, jobs = data.draw(cases([kind]))
    killed = [replace(job, run=min(job.run, job.requested)) for job in jobs]
    expected, places, promised, _ = naive_machines.conservative(cluster, killed, ORDERS[order])
    result = run_on(cluster, jobs, make(f"{order}+conservative"), walltime="kill")
    assert result.start_time.tolist() == expected
    assert given(result) == places
    assert all(start <= promise for start, promise in zip(expected, promised, strict=True))


@pytest.mark.parametrize("share", [1.6, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_naive_simulator_beside_jobs_that_exceed(kind: str, share: float) -> None:
    exceeded = []

    @examples(share)
    @drawn(case=cases([kind], most=14), order=st.sampled_from(sorted(ORDERS)), seed=st.integers(0, 2**32))
    def check(case: tuple[Machines, list[Asked]], order: str, seed: int) -> None:
        cluster, jobs = case[0], exceeding(case[1], seed)
        expected, places, _, passes = naive_machines.conservative(cluster, jobs, ORDERS[order])
        result = run_on(cluster, jobs, make(f"{order}+conservative"), simulator="simpy")
        assert result.start_time.tolist() == expected
        assert given(result) == places
        exceeded.append(passes > 0)

    check()
    assert sum(exceeded) > 0.25 * len(exceeded)


@pytest.mark.parametrize("kind", KINDS)
@examples(0.8)
@drawn(data=st.data(), order=st.sampled_from(sorted(ORDERS)), count=st.sampled_from([None, 1, 2]))
def test_reservations_equal_the_naive_simulator(
    kind: str, data: st.DataObject, order: str, count: int | None
) -> None:
    cluster, jobs = data.draw(cases([kind]))
    expected, places = (
        naive_machines.easy(cluster, jobs, ORDERS[order])
        if count == 1
        else naive_machines.reservations(cluster, jobs, count, ORDERS[order])
    )
    policy = make(order)
    policy.backfiller = Reservations(count)
    result = run_on(cluster, jobs, policy)
    assert result.start_time.tolist() == expected
    assert given(result) == places


def test_the_naive_ones_by_hand() -> None:
    """As in the first tests of this file."""
    jobs = [replace(job, requested=job.run) for job in CROSSING]
    places = [{0: (1,)}, {1: (2,)}, {0: (2,)}, {1: (1,)}]
    assert naive_machines.conservative(TWO, jobs) == ([0, 0, 5, 5], places, [0, 0, 5, 5], 0)
    assert naive_machines.reservations(TWO, jobs, 2) == ([0, 0, 5, 5], places)
    assert naive_machines.easy(TWO, jobs) == ([0, 0, 5, 2], [{0: (1,)}, {1: (2,)}, {1: (2,)}, {0: (1,)}])


# --- any cluster -----------------------------------------------------------------------------------------


class Pairs(Cluster[Any, Any]):
    """A cluster of a user's own: nodes of two colours, counted; a job takes its nodes of the colour there is more of.

    The least it can do: what an abstract cluster asks for, nothing faster.
    """

    def __init__(self, red: int, blue: int) -> None:
        self.colours = np.array([red, blue])

    @property
    def capacity(self) -> Any:
        return self.colours

    @property
    def size(self) -> int:
        return int(self.colours.sum())

    def place(self, job: Job, level: Any) -> Any:
        colour = int(np.argmax(level))
        return np.eye(2, dtype=int)[colour] * job.nodes if level[colour] >= job.nodes else None

    def holds(self, job: Job, allocation: Any, level: Any) -> bool:
        return sorted(allocation.tolist()) == [0, job.nodes] and bool((allocation <= level).all())

    def common(self, level: Any, other: Any) -> Any:
        return np.minimum(level, other)

    def main_amount(self, job: Job, allocation: Any) -> int:
        return int(allocation.sum())

    def asked(self, job: Job) -> int:
        return job.nodes

    def share(self, level: Any) -> float:
        return float(level.sum()) / self.size

    def shortage(self, job: Job, level: Any) -> str:
        return f"needs {job.nodes} nodes of one colour; {level.tolist()} are free"


@pytest.mark.parametrize("name", ["conservative", "conservative-replan", "easy-k(2)"])
def test_a_cluster_of_your_own(name: str) -> None:
    """As on two machines of two CPUs, in the first test."""
    rows = [(0, 5, 5, 1), (0, 5, 5, 2), (1, 5, 5, 2), (2, 8, 8, 1)]
    assert starts(workload(rows, 4), f"fcfs+{name}", cluster=Pairs(2, 2)) == [0, 0, 5, 5]


@drawn(rows_and_size(), st.sampled_from(["conservative", "conservative-replan", "easy-k(2)"]))
def test_a_cluster_of_your_own_with_one_colour_is_counted_nodes(case: Any, name: str) -> None:
    rows, size = case
    jobs = workload(rows, size)
    assert starts(jobs, f"fcfs+{name}", cluster=Pairs(size, 0)) == starts(jobs, f"fcfs+{name}")


# --- profiles --------------------------------------------------------------------------------------------

MACHINES = Machines(["a", "b", "c"], ["cpus", "gpus"], [[4, 0], [4, 2], [2, 2]], [[], ["x"], ["x"]])


@st.composite
def reservations(draw: st.DrawFn) -> list[tuple[Job, int, int]]:
    """Draw jobs, when they are asked to start at the earliest, and how long they take."""
    found = []
    for index in range(draw(st.integers(1, 9))):
        spread, exclusive = draw(st.booleans()), draw(st.integers(0, 4)) == 0
        amounts = (draw(st.integers(0, 6 if spread else 2)), draw(st.integers(0, 2)))
        request = Request(("cpus", "gpus"), amounts, spread, exclusive, draw(st.sampled_from(["", "", "x"])))
        job = one_job(request, draw(st.integers(1, 2)), index=index)
        if not MACHINES.fits(job, MACHINES.capacity):
            job = one_job(index=index)
        found.append((job, draw(st.integers(0, 12)), draw(st.integers(1, 9))))
    return found


@drawn(reservations(), st.data(), st.sampled_from([4, 64]))
def test_the_fast_profile_is_the_plain_one(jobs: Any, data: st.DataObject, room: int) -> None:
    """Both put jobs at the same earliest holes, move them back alike, and forget the past alike."""
    with mock.patch("hpcsimkit.cluster.machine_profile.FEWEST", room):
        same_profiles(jobs, data)


def same_profiles(jobs: Any, data: st.DataObject) -> None:
    empty = level_of(MACHINES.capacity.tolist())
    fast, plain = MachineProfile(MACHINES, 0, empty), LevelProfile(MACHINES, 0, empty)
    slots = []
    for job, after, duration in jobs:
        start, allocation = plain.earliest(job, duration, after)
        assert fast.earliest(job, duration, after) == (start, allocation)
        for profile in (fast, plain):
            profile.occupy(start, start + duration, allocation)
        slots.append((job, duration, start, allocation))
    now = data.draw(st.integers(0, min(start for *_, start, _ in slots)))
    fast.advance(now), plain.advance(now)
    gone = data.draw(st.integers(0, len(slots) - 1))
    _, duration, start, allocation = slots.pop(gone)
    fast.release(start, start + duration, allocation), plain.release(start, start + duration, allocation)
    for job, duration, start, allocation in slots:
        sooner = plain.earlier(job, start, duration, allocation, until=start)
        for until in range(now + 1, start + 1):
            found = sooner if sooner[0] < until else (start, allocation)
            assert fast.earlier(job, start, duration, allocation, until) == found
            assert plain.earlier(job, start, duration, allocation, until) == found
        assert sooner[0] < start or sooner == (start, allocation)
        assert fast.fits(job, duration) == plain.fits(job, duration)
        np.testing.assert_array_equal(fast.level(duration, empty, None), plain.level(duration, empty, None))
    for at in range(now, plain.times[-1] + 2):
        fast.advance(at), plain.advance(at)
        assert fast.begin == plain.begin == at
        np.testing.assert_array_equal(fast.level(1, empty), plain.level(1, empty))


@drawn(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 12), st.integers(1, 9)), min_size=1, max_size=12))
def test_totals_are_counted_like_nodes(jobs: list[tuple[int, int, int]]) -> None:
    cluster = Machines(["a", "b", "c"], ["cpus"], [[4], [3], [2]])
    totals, nodes = TotalsProfile(cluster, 0, cluster.capacity), Profile(0, 9)
    plain = LevelProfile(Nodes(9), 0, 9)
    for index, (size, after, duration) in enumerate(jobs):
        job = one_job(None, size, index=index)
        start, count = nodes.earliest(job, duration, after)
        assert plain.earliest(job, duration, after) == (start, count) == (start, size)
        assert nodes.fits(job, duration) == totals.fits(job, duration) == plain.fits(job, duration)
        found, allocation = totals.earliest(job, duration, after)
        assert found == start and allocation.totals == (size,)
        totals.occupy(start, start + duration, allocation)
        nodes.occupy(start, start + duration, size)
        plain.occupy(start, start + duration, size)
    assert nodes.times == plain.times and nodes.levels == plain.levels
