"""Calendars: nodes that are gone for some time. Rows: submission, run, requested, nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.errors import ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.job_gates import BeginTimes
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from tests.kernel.helpers import Row, run, starts, workload
from tests.kernel.naive_conservative import SCORES, NaiveConservative
from tests.kernel.test_attempts import attempts

DRAIN = Calendar([Window(10, 20, 4)])
"""All four nodes are gone from 10 to 20 s."""


class NaiveCalendar:
    """FCFS, SJF and EASY beside a calendar, second by second; free of the kit's code."""

    def __init__(
        self, jobs: Sequence[Row], size: int, windows: Sequence[tuple[int, int, int]], score: str
    ) -> None:
        self.jobs, self.size, self.windows = jobs, size, windows
        self.score = SCORES[score]
        self.starts = [-1] * len(jobs)
        self.running: set[int] = set()

    def free(self, at: int, now: int) -> int:
        """Nodes that are free at a time, if all running jobs end as expected."""
        gone = sum(nodes for begin, end, nodes in self.windows if begin <= at < end)
        used = sum(
            self.jobs[j][3] for j in self.running if at < max(self.starts[j] + self.jobs[j][2], now + 1)
        )
        return self.size - gone - used

    def fits(self, j: int, at: int, now: int, beside: tuple[int, int] | None = None) -> bool:
        """Whether a job fits from a time on, also beside the head's reservation: start, and number of the job."""
        _, _, asked, nodes = self.jobs[j]
        for each in range(at, at + asked):
            free = self.free(each, now)
            if beside is not None and beside[0] <= each < beside[0] + self.jobs[beside[1]][2]:
                free -= self.jobs[beside[1]][3]
            if free < nodes:
                return False
        return True

    def run(self, easy: bool) -> list[int]:
        jobs, now, again = self.jobs, 0, False
        waiting: list[int] = []
        edges = {at for begin, end, _ in self.windows for at in (begin, end)}
        while -1 in self.starts:
            ended = {j for j in self.running if self.starts[j] + jobs[j][1] == now}
            self.running -= ended
            came = [] if again else [j for j in range(len(jobs)) if jobs[j][0] == now]
            waiting += came
            if waiting and (ended or came or now in edges):
                waiting.sort(key=lambda j: (self.score(jobs[j], now), jobs[j][0], j))
                self.do_pass(waiting, now, easy)
            again = any(not jobs[j][1] for j in self.running)  # they end at once, and cause another pass
            now += not again
        return self.starts

    def do_pass(self, waiting: list[int], now: int, easy: bool) -> None:
        while waiting and self.fits(waiting[0], now, now):
            self.start(waiting.pop(0), now)
        if easy and waiting:
            head, at = waiting[0], now + 1
            while not self.fits(head, at, now):
                at += 1
            for j in waiting[1:]:
                if self.fits(j, now, now, (at, head)):
                    waiting.remove(j)
                    self.start(j, now)

    def start(self, j: int, now: int) -> None:
        self.starts[j] = now
        self.running.add(j)


# --- by hand ---------------------------------------------------------------------------------------------


def test_no_job_runs_into_a_window_by_its_estimate() -> None:
    """At 0 s, the job of 10 s just fits before the window; that of 11 s starts after it."""
    assert starts(workload([(0, 5, 10, 4)], 4), "fcfs", calendar=DRAIN) == [0]
    assert starts(workload([(0, 5, 11, 4)], 4), "fcfs", calendar=DRAIN) == [20]


def test_a_window_that_leaves_enough_nodes_delays_nobody() -> None:
    calendar = Calendar([Window(10, 20, 2)])
    assert starts(workload([(0, 30, 30, 2), (0, 30, 30, 2)], 4), "fcfs", calendar=calendar) == [0, 20]
    assert starts(workload([(0, 30, 30, 2), (0, 10, 10, 2)], 4), "fcfs", calendar=calendar) == [0, 0]


def test_easy_fills_the_time_before_a_window() -> None:
    """The head needs 12 s and waits for 20 s; jobs of up to 10 s run before the window."""
    jobs = workload([(0, 12, 12, 4), (0, 10, 10, 2), (1, 9, 9, 2), (2, 9, 9, 1)], 4)
    assert starts(jobs, "fcfs+easy", calendar=DRAIN) == [20, 0, 1, 32]


def test_a_reservation_after_a_window_is_not_delayed() -> None:
    """Two nodes are gone from 10 s on; the head of three nodes starts at 30 s, so that no longer job may run."""
    calendar = Calendar([Window(10, 30, 2)])
    jobs = workload([(0, 25, 25, 3), (0, 31, 31, 2), (0, 29, 29, 2)], 4)
    assert starts(jobs, "fcfs+easy", calendar=calendar) == [30, 55, 0]
    assert starts(jobs, "fcfs+conservative", calendar=calendar) == [30, 55, 0]


def test_a_job_that_exceeds_its_estimate_keeps_its_nodes() -> None:
    """It runs into the window until 15 s; the other job starts after the window."""
    jobs = workload([(0, 15, 5, 4), (1, 5, 5, 1)], 4)
    assert starts(jobs, "fcfs+easy", calendar=DRAIN) == [0, 20]


def test_nodes_that_the_calendar_takes_are_down_unless_jobs_keep_them() -> None:
    """Two of the three nodes from 10 s on, the third when the job on two of them ends; one until 25 s."""
    calendar = Calendar([Window(10, 20, 3), Window(12, 25, 1)])
    jobs = workload([(0, 15, 5, 2), (2, 30, 30, 1)], 4)
    result = run(jobs, "fcfs+easy", calendar=calendar)
    down = result.downtime
    assert down is not None and result.start_time.tolist() == [0, 20]
    assert list(zip(down.start.tolist(), down.end.tolist(), down.amount.tolist(), strict=True)) == [
        (10, 15, 2),
        (15, 20, 4),
        (20, 25, 1),
    ]


def test_a_run_may_begin_within_a_window() -> None:
    assert starts(workload([(12, 5, 5, 1), (13, 5, 5, 4)], 4), "fcfs", calendar=DRAIN) == [20, 25]


def test_the_clock_stops_after_the_last_job() -> None:
    simulation = Simulation(
        workload([(0, 5, 5, 1)], 4), make("fcfs"), calendar=Calendar([Window(10, 20, 4), Window(90, 99, 4)])
    )
    simulation.run()
    assert simulation.system.now <= 10


def test_jobs_wait_for_the_end_of_a_window_even_if_nothing_runs() -> None:
    """An inspector may hold a job, too, as long as a change is to come."""
    assert starts(workload([(0, 5, 15, 4)], 4), "fcfs+easy+hold-unfit", calendar=DRAIN) == [20]


def test_a_policy_that_starts_a_job_into_a_window_is_refused() -> None:
    class Rash(Policy):
        def schedule(self, system: System) -> None:
            system.start(system.queue.first())

    with pytest.raises(ScheduleError, match=r"job 1 at t=0 s needs 4 nodes; 0 are free until it would end"):
        run(workload([(0, 5, 15, 4)], 4), Rash(), calendar=DRAIN)


def test_a_preemptor_stops_nobody_for_a_job_that_would_run_into_a_window() -> None:
    """The first job is expected to end at 5 s; without it, the second one has three nodes up to 10 s, and from 20 s on."""
    jobs = workload([(0, 30, 5, 2), (1, 20, 20, 3)], 4, queue=[0, 1])
    result = run(jobs, "fcfs+easy+preempt", calendar=Calendar([Window(10, 20, 2)]))
    assert attempts(result) == [[(0, 20), (40, 50)], [(20, 40)]]


def test_a_preemptor_stops_a_job_in_the_way_of_a_window() -> None:
    """Beside the window, two nodes are left: those of the first job."""
    jobs = workload([(0, 30, 30, 2), (1, 20, 20, 2)], 4, queue=[0, 1])
    result = run(jobs, "fcfs+easy+preempt", calendar=Calendar([Window(10, 20, 2)]))
    assert attempts(result) == [[(0, 1), (20, 49)], [(1, 21)]]


def test_wrong_calendars() -> None:
    jobs = workload([(0, 5, 5, 1)], 4)
    for window in (Window(5, 5, 1), Window(0, 5, 0), "x"):
        with pytest.raises(UsageError, match="a calendar needs windows"):
            Calendar([window])  # type: ignore[list-item]
    with pytest.raises(UsageError, match="calendar needs a Calendar, found 5"):
        run(jobs, "fcfs", calendar=5)
    with pytest.raises(
        UsageError, match=r"window from 10 to 20 s: the machines of Machines\(4: 4 cpus\) must"
    ):
        run(jobs, "fcfs", cluster=Machines.of(4, cpus=1), calendar=DRAIN)
    with pytest.raises(UsageError, match="windows at 12 s: 5 nodes are gone or reserved at once, of 4"):
        run(jobs, "fcfs", calendar=Calendar([Window(10, 20, 3), Window(12, 15, 2)]))
    with pytest.raises(UsageError, match="the cluster has homogeneous nodes, found machine 'node1'"):
        run(jobs, "fcfs", calendar=Calendar([Window(10, 20, machines=("node1",))]))
    partitions = Partitions([Partition("a", nodes=4), Partition("b", nodes=4)])
    placed = Workload({**jobs.columns, "partition": [1]}, labels={"partition": ("a", "b")})
    with pytest.raises(UsageError, match="a calendar needs homogeneous nodes or machines"):
        run(placed, "fcfs", cluster=partitions, calendar=DRAIN)
    with pytest.raises(UsageError, match="know no calendar"):
        run(jobs, "fcfs", calendar=DRAIN, event_order=DirlabOrder())


def test_what_is_gone_when_the_run_begins_is_gone_before_the_first_outage() -> None:
    """The outage finds no node that it could take; at 5 s, it comes before the window of that instant."""
    jobs = workload([(0, 1, 1, 1), (5, 1, 1, 1)], 3)
    calendar = Calendar([Window(0, 1, 3), Window(5, 6, 3)])
    outages = Outages([Outage(0, 3, 3), Outage(5, 8, 3)])
    assert run(jobs, "fcfs", calendar=calendar, outages=outages).start_time.tolist() == [1, 8]


# --- against naive simulators ----------------------------------------------------------------------------


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """Draw jobs for four nodes, crowded around one to three windows; some exceed their estimates."""
    times = st.integers(0, 30)
    windows = []
    for _ in range(draw(st.integers(1, 3))):
        begin = draw(times)
        windows.append((begin, begin + draw(st.integers(1, 12)), draw(st.integers(1, 4))))
    while max(sum(n for b, e, n in windows if b <= at < e) for at in range(50)) > 4:
        windows.pop()
    rows = []
    for _ in range(draw(st.integers(1, 9))):
        took = draw(st.integers(0, 12))
        asked = max(1, took + draw(st.sampled_from([0, 0, 3, 9, -3])))
        rows.append((draw(times), took, asked, draw(st.integers(1, 4))))
    return sorted(rows, key=lambda row: row[0]), windows


def assert_equal(case: tuple[list[Row], list[tuple[int, int, int]]], policy: str) -> None:
    rows, windows = case
    calendar = Calendar([Window(*window) for window in windows])
    order, _, filler = policy.partition("+")
    found = starts(workload(rows, 4), policy, calendar=calendar)
    if filler == "conservative":
        expected = NaiveConservative(rows, 4, SCORES[order], windows=windows).run().starts
    else:
        expected = NaiveCalendar(rows, 4, windows, order).run(easy=bool(filler))
    assert found == expected, (rows, windows)


POLICIES = ("fcfs", "sjf", "fcfs+easy", "sjf+easy", "wfp3+easy", "fcfs+conservative", "wfp3+conservative")


@pytest.mark.parametrize("policy", POLICIES)
@given(cases())
def test_schedules_equal_naive_ones(policy: str, case: tuple[list[Row], list[tuple[int, int, int]]]) -> None:
    assert_equal(case, policy)


@given(cases())
def test_a_window_is_a_phantom_job_in_the_plan(case: tuple[list[Row], list[tuple[int, int, int]]]) -> None:
    """Two jobs are in the plan first: three nodes until 10 s, then three until 20 s, which fit no earlier."""
    rows = case[0]
    phantoms: list[Row] = [(0, 10, 10, 3), (0, 10, 10, 3)]
    calendar = Calendar([Window(0, 10, 3), Window(10, 20, 3)])
    beside = starts(workload([*phantoms, *rows], 4), "fcfs+conservative", walltime="kill")
    assert beside == [
        0,
        10,
        *starts(workload(rows, 4), "fcfs+conservative", calendar=calendar, walltime="kill"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "fcfs+easy", "sjf+easy", "fcfs+conservative"])
@given(case=cases())
@settings(max_examples=10_000)
def test_ten_thousand_schedules_equal_naive_ones(
    policy: str, case: tuple[list[Row], list[tuple[int, int, int]]]
) -> None:
    assert_equal(case, policy)


@pytest.mark.parametrize("policy", ["fcfs", "sjf+easy", "fcfs+conservative"])
@given(cases())
def test_an_empty_calendar_changes_nothing(
    policy: str, case: tuple[list[Row], list[tuple[int, int, int]]]
) -> None:
    jobs = workload(case[0], 4)
    plain, empty = run(jobs, policy), run(jobs, policy, calendar=Calendar())
    assert plain.options == empty.options and plain.passes == empty.passes
    assert np.array_equal(plain.start_time, empty.start_time)


def test_windows_begin_while_a_gate_holds_the_only_job() -> None:
    """It may start from 30 s on, within the second window."""
    jobs = workload([(0, 5, 5, 4)], 4, begin_time=[30])
    calendar = Calendar([Window(10, 20, 4), Window(25, 50, 1)])
    assert starts(jobs, "fcfs", calendar=calendar, gates=(BeginTimes(),)) == [50]
