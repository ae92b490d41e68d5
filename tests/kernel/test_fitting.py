"""The option `fitting`: among the jobs that fit now, the first of the order; nobody blocks anybody."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.agents.seats import RandomChoice, Replay, default_choice, play
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.errors import StalledError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobColumns
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector, Order
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, SJF, LargestFirst
from hpcsimkit.policies.placing.placements import BestFit, FirstFit, RandomPlacement
from tests.kernel.helpers import deep, rows_and_size, starts, workload
from tests.kernel.machine_helpers import Asked, asked, clusters, jobs_on_machines, placed, requests, run_on


class Longest(Order):
    """Longest request first, scored anew at each pass."""

    def scores(self, jobs: JobColumns, now: int) -> np.ndarray[Any, Any]:
        return -jobs.requested_time.astype(float)


class HoldOdd(Inspector):
    """Holds jobs with odd numbers for their first five seconds."""

    def accept(self, job: Job, system: System) -> bool:
        return job.id % 2 == 0 or system.now >= job.submit_time + 5 or not system.anything_ahead


class RejectOdd(Inspector):
    def accept(self, job: Job, system: System) -> bool:
        if job.id % 2:
            system.reject(job)
        return True


# --- by hand ---------------------------------------------------------------------------------------------


def test_nobody_blocks_anybody() -> None:
    """B does not fit beside A; C and D behind it do, in the order of their lengths. B starves meanwhile.

    ::

        .DDDD.
        .CCCCC
        AAAAAA
        AAAAAABBB  (three of four nodes)
    """
    rows = [(0, 6, 6, 2), (1, 3, 3, 3), (1, 5, 5, 1), (1, 4, 4, 1), (2, 9, 9, 2)]
    assert starts(workload(rows, 4), Pipeline(fitting=True)) == [0, 6, 1, 1, 9]
    assert starts(workload(rows, 4), Pipeline(order=SJF(), fitting=True)) == [0, 6, 1, 1, 9]
    assert starts(workload(rows, 4), Pipeline(order=LargestFirst(), fitting=True)) == [0, 6, 1, 1, 9]
    assert starts(workload(rows, 4), Pipeline(order=Longest(), fitting=True)) == [0, 15, 1, 1, 6]


def test_a_window_hides_those_who_came_later() -> None:
    """Of B and C, which wait longest and do not fit beside A, the window of two cannot see past.

    At 6 it lets C start, then D and E are seen before B, which is longer than either.
    """
    rows = [(0, 6, 6, 3), (1, 5, 5, 2), (1, 4, 4, 2), (1, 1, 1, 1), (2, 2, 2, 1)]
    assert starts(workload(rows, 4), Pipeline(order=SJF(), fitting=True)) == [0, 6, 6, 1, 2]
    assert starts(workload(rows, 4), Pipeline(order=SJF(), fitting=True, window=2)) == [0, 8, 6, 6, 6]
    assert starts(workload(rows, 4), Pipeline(order=SJF(), fitting=True, window=3)) == [0, 6, 6, 1, 2]


def test_a_held_job_ends_the_pass_and_is_asked_about_again() -> None:
    rows = [(0, 30, 30, 1), (0, 9, 9, 1), (0, 9, 9, 1), (0, 9, 9, 1)]
    jobs = workload(rows, 4, id=[8, 1, 2, 4])
    assert starts(jobs, Pipeline(inspector=HoldOdd(), fitting=True, max_interval=2)) == [0, 6, 6, 6]
    assert starts(jobs, Pipeline(inspector=HoldOdd(), fitting=True, max_rejections=0)) == [0, 0, 0, 0]
    assert starts(jobs, Pipeline(inspector=HoldOdd(), fitting=True)) == [0, 30, 30, 30]


class Never(Inspector):
    def accept(self, job: Job, system: System) -> bool:
        return False


def test_holding_for_ever_is_an_error() -> None:
    with pytest.raises(
        StalledError, match="job 1 at t=0 s is held although nothing runs and nothing is to come"
    ):
        starts(workload([(0, 1, 1, 1)], 2), Pipeline(inspector=Never(), fitting=True))


@pytest.mark.parametrize("window", [None, 1, 2, 5])
def test_a_rejected_job_takes_no_room(window: int | None) -> None:
    """Jobs 1 and 3 are refused: 2 and 4 start at once, unless a window of one shows 3 until it fits."""
    rows = [(0, 9, 9, 3), (0, 9, 9, 2), (0, 9, 9, 4), (0, 9, 9, 2)]
    policy = Pipeline(inspector=RejectOdd(), fitting=True, window=window)
    for limit in (200, 1):
        with deep(limit):
            expected = [-1, 0, -1, 9 if window == 1 else 0]
            assert starts(workload(rows, 4), policy) == expected
            jobs = [asked(0, 9, cpus=nodes) for *_, nodes in rows]
            assert run_on(Machines.of(1, cpus=4), jobs, policy).start_time.tolist() == expected


def test_fitting_and_what_needs_a_head_exclude_each_other() -> None:
    for options in ({"commit": True}, {"backfiller": EASY()}, {"backfiller": External()}):
        with pytest.raises(
            UsageError,
            match=r"^with 'fitting' no job blocks others: nothing to commit to or to backfill behind$",
        ):
            starts(workload([(0, 1, 1, 1)], 2), Pipeline(fitting=True, **options))


# --- menus -----------------------------------------------------------------------------------------------


def menus(simulation: Simulation) -> list[tuple[str, int, list[Any]]]:
    """Answer as the heuristic would; returns what was asked when, with the numbers of the jobs offered."""
    asked_for: list[tuple[str, int, list[Any]]] = []

    def answer(decision: Decision) -> Any:
        offered = [getattr(option, "id", option) for option in decision.options]
        asked_for.append((decision.stage, decision.system.now, offered))
        return decision.default

    play(simulation, answer)
    return asked_for


def test_an_open_order_sees_fitting_jobs_only() -> None:
    rows = [(0, 6, 6, 2), (1, 3, 3, 3), (1, 5, 5, 1), (1, 4, 4, 1), (2, 9, 9, 2)]
    found = menus(Simulation(workload(rows, 4), Pipeline(order=External(SJF()), fitting=True)))
    assert found == [
        ("order", 0, [1]), ("order", 1, [4, 3]), ("order", 1, [3]), ("order", 6, [2, 5]), ("order", 9, [5]),
    ]  # fmt: skip


def test_an_open_order_in_a_window_with_an_inspector_and_the_right_to_decline() -> None:
    rows = [(0, 6, 6, 2), (1, 3, 3, 3), (1, 5, 5, 1), (1, 4, 4, 1), (2, 9, 9, 2)]
    policy = Pipeline(order=External(SJF(), decline=True), inspector=External(), fitting=True, window=2)
    found = menus(Simulation(workload(rows, 4), policy))
    yes_or_no = [True, False]
    assert found == [
        ("order", 0, [1, None]), ("inspector", 0, yes_or_no),
        ("order", 1, [3, None]), ("inspector", 1, yes_or_no),
        ("order", 1, [4, None]), ("inspector", 1, yes_or_no),
        ("order", 6, [2, 5]), ("inspector", 6, [True]),  # nothing runs and nothing is to come
        ("order", 9, [5]), ("inspector", 9, [True]),
    ]  # fmt: skip


def test_declining_ends_the_pass() -> None:
    """Who declines whenever he may starts one job at a time, the last of the order when he must."""
    rows = [(0, 6, 6, 2), (1, 3, 3, 1), (2, 5, 5, 1)]
    policy = Pipeline(order=External(decline=True), fitting=True)
    result = play(Simulation(workload(rows, 4), policy), lambda decision: decision.options[-1])
    assert result.start_time.tolist() == [10, 7, 2]


# --- any case --------------------------------------------------------------------------------------------

ORDERS: dict[str, Order] = {"fcfs": FCFS(), "sjf": SJF(), "longest": Longest()}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Machines, list[Asked]]:
    """Draw machines and jobs of all sorts."""
    cluster, jobs = draw(clusters()), []
    for _ in range(draw(st.integers(1, 10))):
        nodes, request = draw(requests())
        amounts = {name: request.amount(name) for name in cluster.resources}
        jobs.append(
            asked(draw(st.integers(0, 5)), draw(st.integers(0, 5)), nodes=nodes, spread=request.spread,
                  exclusive=request.exclusive, constraint=request.constraint, **amounts)
        )  # fmt: skip
    return cluster, jobs


class JobByJob(Pipeline):
    """The same in its simplest form."""

    def schedule(self, system: System) -> None:
        while (job := next((job for job in self._seen(system) if system.fits(job)), None)) is not None:
            system.start(job)

    def _seen(self, system: System) -> list[Job]:
        ordered = list(system.queue)
        if not self.window:
            return ordered
        joined = sorted(ordered, key=lambda job: (job.submit_time, job.index))[: self.window]
        return [job for job in ordered if job in joined]


@given(
    case=cases(),
    order=st.sampled_from(sorted(ORDERS)),
    window=st.sampled_from([None, 1, 2, 4]),
    limit=st.sampled_from([200, 1]),
)
def test_fitting_equals_its_simplest_form(
    case: tuple[Machines, list[Asked]], order: str, window: int | None, limit: int
) -> None:
    cluster, jobs = case
    log = jobs_on_machines(jobs)
    log = log.without(cluster.misfits(log), "fits nowhere")
    with deep(limit):
        found = run_on(cluster, log, Pipeline(ORDERS[order], fitting=True, window=window))
        expected = run_on(cluster, log, JobByJob(ORDERS[order], fitting=True, window=window))
    assert placed(found) == placed(expected)


@given(
    case=rows_and_size(),
    order=st.sampled_from(sorted(ORDERS)),
    window=st.sampled_from([None, 1, 3]),
    limit=st.sampled_from([200, 1]),
)
def test_fitting_on_counted_nodes_equals_its_simplest_form(
    case: tuple[Any, int], order: str, window: int | None, limit: int
) -> None:
    jobs = workload(*case)
    with deep(limit):
        found = starts(jobs, Pipeline(ORDERS[order], fitting=True, window=window))
        assert found == starts(jobs, JobByJob(ORDERS[order], fitting=True, window=window))


@given(
    case=cases(),
    order=st.sampled_from(sorted(ORDERS)),
    window=st.sampled_from([None, 1, 3]),
    seed=st.integers(0, 99),
)
def test_open_seats_offer_what_fits_and_nothing_else(
    case: tuple[Machines, list[Asked]], order: str, window: int | None, seed: int
) -> None:
    """Random answers start only what fits; the default answers are the closed pipeline's; replay repeats."""
    cluster, jobs = case
    log = jobs_on_machines(jobs)
    log = log.without(cluster.misfits(log), "fits nowhere")
    options: dict[str, Any] = {"fitting": True, "window": window, "max_interval": 3}
    closed = Pipeline(ORDERS[order], HoldOdd(), BestFit(), **options)
    opened = Pipeline(External(ORDERS[order]), External(HoldOdd()), External(BestFit()), **options)
    expected = run_on(cluster, log, closed)
    assert placed(play(Simulation(log, opened, cluster), default_choice)) == placed(expected)

    chance = RandomChoice(np.random.default_rng(seed))

    def answer(decision: Decision) -> Any:
        if decision.stage == "order":
            system = decision.system
            seen = system.queue.oldest(window or len(system.queue))
            came = sorted(system.queue, key=lambda job: (job.submit_time, job.index))[:window]
            assert seen == [job for job in system.queue if job in came]
            offered = [job for job in decision.options if job is not None]
            assert offered == [job for job in seen if system.fits(job)]
        return chance(decision)

    free = Pipeline(External(ORDERS[order], decline=True), External(), External(RandomPlacement()), **options)
    played = play(Simulation(log, free, cluster, seed=seed), answer)
    assert (played.start_time >= played.submit_time).all()
    again = play(Simulation(log, free, cluster, seed=seed), Replay(played.choices))
    assert placed(again) == placed(played)


def test_first_fit_as_a_placement_is_what_machines_do_anyway() -> None:
    cluster = Machines.of(3, cpus=4)
    jobs = [asked(n % 4, 3 + n % 5, cpus=1 + n % 4) for n in range(40)]
    plain = run_on(cluster, jobs, Pipeline(order=SJF(), fitting=True))
    assert placed(plain) == placed(
        run_on(cluster, jobs, Pipeline(order=SJF(), placement=FirstFit(), fitting=True))
    )


def test_the_oldest_are_those_who_came_first_whoever_asked_before() -> None:
    """The longer a job the earlier it came: in policy order the oldest stand last."""
    log = jobs_on_machines([asked(0, 9 - number, cpus=1) for number in range(5)])
    decision = Simulation(log, Pipeline(External(SJF())), Machines.of(1, cpus=1)).next_decision()
    assert decision is not None
    queue = decision.system.queue
    for limit in (1, 3, 5, 2):
        found = queue.oldest(limit)
        assert [job.index for job in found] == list(range(limit))[::-1]
        found.clear()
        assert len(queue.oldest(limit)) == limit
    decision.system.start(log.jobs[1])
    assert [job.index for job in queue.oldest(2)] == [2, 0]
