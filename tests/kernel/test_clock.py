"""What happens within an instant, and when jobs end: by hand. Rows: submission, run, requested, nodes."""

from __future__ import annotations

import pytest

from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from tests.kernel.helpers import run, starts, workload


def test_ends_come_before_arrivals() -> None:
    """A ends when B arrives: B need not wait.

    ::

        AAAAABBB
    """
    assert starts(workload([(0, 5, 5, 2), (5, 3, 3, 2)], 2), "fcfs") == [0, 5]


def test_one_pass_after_all_arrivals_of_an_instant() -> None:
    """B comes first in the log, but C is longer and LJF sees both at once."""
    assert starts(workload([(0, 5, 5, 2), (5, 3, 3, 2), (5, 4, 4, 2)], 2), "ljf") == [0, 9, 5]


class StartAll(Policy):
    """Starts what fits, in order of arrival."""

    def schedule(self, system: System) -> None:
        for job in system.queue:
            if system.fits(job):
                system.start(job)


def test_zero_length_jobs_make_a_second_round_of_the_same_instant() -> None:
    """A, B and C need both nodes and take no time: three rounds at 0, D in the fourth."""
    jobs = workload([(0, 0, 5, 2), (0, 0, 5, 2), (0, 0, 5, 2), (0, 3, 3, 2)], 2)
    result = run(jobs, StartAll())
    assert result.start_time.tolist() == [0, 0, 0, 0]
    assert result.end_time.tolist() == [0, 0, 0, 3]
    assert result.passes == 4


def test_zero_length_jobs_take_nodes_while_the_pass_lasts() -> None:
    """Under LJF A (first) takes both nodes for no time; B and C come in the second round."""
    result = run(workload([(0, 0, 9, 2), (0, 4, 4, 1), (0, 4, 4, 1)], 2), "ljf+easy")
    assert result.start_time.tolist() == [0, 0, 0]
    assert result.passes == 2


def test_a_job_past_its_estimate_is_expected_to_end_a_second_from_now() -> None:
    """A asked for 5 s and runs 20. At 6 B's shadow time is 7: C (1 s) ends by then. At 7 it is 8: D (2 s) does not.

    ::

        ......C.............BBBBBDD
        AAAAAAAAAAAAAAAAAAAABBBBB    (x 3)
    """
    rows = [(0, 20, 5, 3), (6, 5, 5, 4), (6, 1, 1, 1), (7, 2, 2, 1)]
    assert starts(workload(rows, 4), "fcfs+easy") == [0, 20, 6, 25]


def test_at_its_very_estimate_too() -> None:
    """At 5 A should be ending and is not: expected at 6, so C (1 s) may start beside it."""
    rows = [(0, 20, 5, 3), (5, 5, 5, 4), (5, 1, 1, 1), (5, 2, 2, 1)]
    assert starts(workload(rows, 4), "fcfs+easy") == [0, 20, 5, 25]


def test_what_is_left_over_grows_with_time_while_a_job_outlives_its_estimate() -> None:
    """A (3 of 6 nodes) outlives 5; B (2 nodes) is to end at 20. C needs 4, D is long, both come at 6.

    At 6 the shadow time is 7, when A's nodes suffice for C and none is left over: D waits. At 19 arrives E, which
    does not fit; but now the shadow time is 20, B ends by then too, two nodes are left over, and D starts.

    ::

        ...................DDDDDDDDDDDDDDDDDDDDEEEEE
        AAAAAAAAAAAAAAAAAAAAAAAAAAAAAACCCCC            C: 4 nodes from 30, E: all from 39
        BBBBBBBBBBBBBBBBBBBB
    """
    rows = [(0, 30, 5, 3), (0, 20, 20, 2), (6, 5, 5, 4), (6, 20, 20, 1), (19, 5, 5, 6)]
    assert starts(workload(rows, 6), "fcfs+easy") == [0, 0, 30, 19, 39]


def test_kill_ends_jobs_at_the_requested_time() -> None:
    """A would run 20 s and asked for 5; C runs exactly what it asked for and is not killed.

    ::

        AAAAABCCC
    """
    result = run(workload([(0, 20, 5, 4), (1, 1, 2, 4), (2, 3, 3, 4)], 4), "fcfs", walltime="kill")
    assert result.start_time.tolist() == [0, 5, 6]
    assert result.end_time.tolist() == [5, 6, 9]
    assert result.killed.tolist() == [True, False, False]


def test_period_wakes_at_multiples_on_the_logs_clock() -> None:
    """Passes at 110, 120, 130: A arrives at 103 and starts at 110, ends at 114; B starts at 120."""
    jobs = workload([(103, 4, 4, 4), (104, 1, 1, 4), (130, 1, 1, 4)], 4)
    assert starts(jobs, "fcfs", period=10) == [110, 120, 130]
    assert starts(jobs, "fcfs", period=1) == starts(jobs, "fcfs") == [103, 107, 130]


def test_period_takes_arrivals_ends_and_zero_length_jobs_of_the_instant_together() -> None:
    """At 10 A ends, B arrives and takes no time; its second round is at a multiple too: C starts at 10."""
    jobs = workload([(0, 10, 10, 2), (10, 0, 1, 2), (10, 5, 5, 2)], 2)
    assert starts(jobs, "fcfs", period=5) == [0, 10, 10]


@pytest.mark.parametrize("policy", ["fcfs", "sjf+easy", "wfp3+conservative", "random+greedy"])
def test_no_jobs_is_a_run_too(policy: str) -> None:
    result = run(workload([], 4), policy)
    assert len(result) == 0
    assert result.passes == 0


def test_long_times_stay_exact() -> None:
    """A second is a second 3000 years on."""
    jobs = workload([(10**11 - 1, 10**11, 10**11, 1), (10**11, 1, 1, 1)], 1)
    assert starts(jobs, "fcfs+easy") == [10**11 - 1, 2 * 10**11 - 1]


def test_a_planned_pass_replaces_the_one_before() -> None:
    """A (0 s to 20 s) and B, at 3 s, wait. The plans are 9, then 5, then 9 again, then 12; the call at 7 remains."""
    plans = {0: 9, 3: 5, 5: 9, 7: 12, 12: None}
    seen = []

    class Plans(Policy):
        def schedule(self, system: System) -> None:
            seen.append(system.now)
            if system.now == 0:
                system.start(system.queue.first())
                system.wake(7)
            if system.now in plans:
                system.wake(plans[system.now], planned=True)
            if system.now == 20:
                for job in system.queue:
                    system.start(job)

    assert starts(workload([(0, 20, 20, 1), (0, 1, 1, 1), (3, 1, 1, 1)], 4), Plans()) == [0, 20, 20]
    assert seen == [0, 3, 5, 7, 12, 20]


def test_a_plan_may_return_to_an_earlier_time() -> None:
    """9, then 5, then 9 again: one pass at 9, although two were scheduled."""
    plans: dict[int, int | None] = {0: 9, 3: 5, 5: 9, 9: None}
    seen = []

    class Plans(Policy):
        def schedule(self, system: System) -> None:
            seen.append(system.now)
            if system.now in plans:
                system.wake(plans[system.now], planned=True)
            for job in list(system.queue) if system.now in (0, 20, 21) else ():
                if system.fits(job):
                    system.start(job)

    assert starts(workload([(0, 20, 20, 1), (0, 1, 1, 1), (3, 1, 1, 1)], 1), Plans()) == [0, 20, 21]
    assert seen == [0, 3, 5, 9, 20, 21]


def test_wake_up_calls_are_instants() -> None:
    """The policy starts nothing before it is woken at 7."""

    class Late(Policy):
        def schedule(self, system: System) -> None:
            if system.now < 7:
                system.wake(7)
                system.wake(7)
                return
            for job in system.queue:
                if system.fits(job):
                    system.start(job)

    result = run(workload([(0, 5, 5, 1), (3, 5, 5, 1)], 2), Late())
    assert result.start_time.tolist() == [7, 7]
    assert result.passes == 3  # at 0, 3 and 7
