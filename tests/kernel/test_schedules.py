"""Schedules drawn and computed by hand: orders, EASY and its relatives.

Rows are (submission, run time, requested time, nodes). In the charts a line is a node, a column a second,
and jobs are named A, B, C ... in log order.
"""

from __future__ import annotations

import pytest

from hpcsimkit.policies import EASY, FCFS, SJF, LargestFirst, Pipeline
from tests.kernel.helpers import deep, run, starts, workload


def test_strict_fcfs_blocks_everything_behind_the_head() -> None:
    """C fits at 2 and waits for B all the same.

    ::

        ....C
        AAAA...
        AAAABBB
        AAAABBB
    """
    assert starts(workload([(0, 4, 4, 3), (1, 3, 3, 2), (2, 1, 1, 1)], 4), "fcfs") == [0, 4, 4]


@pytest.mark.parametrize(("asked", "start"), [(8, 2), (9, 20)])
def test_easy_first_condition_ends_by_the_shadow_time(asked: int, start: int) -> None:
    """Five nodes; B waits for A until 10, one node is left over then. C wants two.

    ::

        ..CCCCCCCC                 C asks for 8 s: 2 + 8 = 10, the shadow time
        ..CCCCCCCCBBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB       for 9 s: it would end at 11 and take more than what is left over
        AAAAAAAAAABBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB
    """
    rows = [(0, 10, 10, 3), (1, 10, 10, 4), (2, asked, asked, 2)]
    assert starts(workload(rows, 5), "fcfs+easy") == [0, 10, start]


def test_easy_second_condition_takes_only_what_is_left_over() -> None:
    """One node is left over at the shadow time 10: C takes it for long, D finds none.

    ::

        ..CCCCCCCCCCCCCCCCCCCC
        ..........BBBBBBBBBBDDDDDDDDDDDDDDDDDDDD
        AAAAAAAAAABBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB
    """
    rows = [(0, 10, 10, 3), (1, 10, 10, 4), (2, 20, 20, 1), (2, 20, 20, 1)]
    assert starts(workload(rows, 5), "fcfs+easy") == [0, 10, 2, 20]


@pytest.mark.parametrize("limit", [200, 1], ids=["lists", "numpy"])
def test_easy_jobs_that_end_in_time_leave_the_left_over_nodes_to_others(limit: int) -> None:
    """One node is left over at 10. C ends by then and does not use it up: D takes it in the same pass.

    ::

        ..DDDDDDDDDDDDDDDDDDDD
        ..CCCCCCCCBBBBBBBBBB
        ..........BBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB
        AAAAAAAAAABBBBBBBBBB
    """
    rows = [(0, 10, 10, 2), (1, 10, 10, 4), (2, 8, 8, 1), (2, 20, 20, 1)]
    with deep(limit):
        assert starts(workload(rows, 5), "fcfs+easy") == [0, 10, 2, 2]


def test_easy_counts_every_job_that_ends_at_the_shadow_time() -> None:
    """A and B both end at 10: C needs three of six nodes then, so three are left over, not one. D takes two.

    ::

        ..DDDDDDDDDDDDDDDDDDDD
        ..DDDDDDDDDDDDDDDDDDDD
        BBBBBBBBBB
        BBBBBBBBBBCCCCC
        AAAAAAAAAACCCCC
        AAAAAAAAAACCCCC
    """
    rows = [(0, 10, 10, 2), (0, 10, 10, 2), (1, 5, 5, 3), (2, 20, 20, 2)]
    assert starts(workload(rows, 6), "fcfs+easy") == [0, 0, 10, 2]


def test_easy_counts_jobs_started_in_the_same_pass() -> None:
    """All arrive at 0: A starts and is a running job already when B's shadow time 6 is worked out.

    ::

        CCCCCC
        CCCCCC      B (four nodes) follows at 6
        AAAAAA
        AAAAAA
    """
    rows = [(0, 6, 6, 2), (0, 10, 10, 4), (0, 6, 6, 2)]
    assert starts(workload(rows, 4), "fcfs+easy") == [0, 6, 0]


def test_easy_makes_the_reservation_anew_and_modes_tell_how_jobs_started() -> None:
    """A was to end at 10 and ends at 3; by then C was backfilled and B waits for it, still before 10.

    ::

        ..CCCCCBBBBB
        AAA....BBBBB
        AAA....BBBBB
        AAA....BBBBB
    """
    result = run(workload([(0, 3, 10, 3), (1, 5, 5, 4), (2, 5, 5, 1)], 4), "fcfs+easy")
    assert result.start_time.tolist() == [0, 7, 2]
    assert result.mode.tolist() == [1, 2, 3]  # ready, reserved, backfilled


@pytest.mark.parametrize(("name", "modes"), [("fcfs", [1, 1, 1]), ("fcfs+greedy", [1, 1, 3])])
def test_without_reservations_no_job_is_reserved(name: str, modes: list[int]) -> None:
    """B is the first job that does not fit, and starts in its turn: nothing was reserved for it."""
    assert run(workload([(0, 3, 10, 3), (1, 5, 5, 4), (2, 5, 5, 1)], 4), name).mode.tolist() == modes


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fcfs+easy", [0, 10, 2, 15]), ("sjf+easy", [0, 10, 15, 2]), ("fcfs+easy-sjf", [0, 10, 15, 2])],
)
def test_easy_tries_candidates_in_order(name: str, expected: list[int]) -> None:
    """One node is free until B starts at 10; C wants 8 s, D 7 s: whoever is first leaves no time for the other.

    ::

        ..CCCCCCCCBBBBBDDDDDDD          ..DDDDDDD.BBBBBCCCCCCCC
        AAAAAAAAAABBBBB                 AAAAAAAAAABBBBB
        AAAAAAAAAABBBBB                 AAAAAAAAAABBBBB
        AAAAAAAAAABBBBB                 AAAAAAAAAABBBBB
        in policy order (FCFS)          shortest first
    """
    rows = [(0, 10, 10, 3), (1, 5, 5, 4), (2, 8, 8, 1), (2, 7, 7, 1)]
    assert starts(workload(rows, 4), name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("fcfs+easy", [0, 10, 2, 6, 2]), ("fcfs+easy-bestfit", [0, 10, 6, 2, 6])],
)
def test_easy_best_fit_tries_the_largest_first(name: str, expected: list[int]) -> None:
    """Two of five nodes are free until 10: first C and E (one node each), then D (two), or the other way round.

    ::

        ..EEEEDDDDBBBBB                 ..DDDDEEEEBBBBB
        ..CCCCDDDDBBBBB                 ..DDDDCCCCBBBBB
        AAAAAAAAAABBBBB  (x 3)          AAAAAAAAAABBBBB  (x 3)
    """
    rows = [(0, 10, 10, 3), (1, 5, 5, 5), (2, 4, 4, 1), (2, 4, 4, 2), (2, 4, 4, 1)]
    assert starts(workload(rows, 5), name) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("fcfs+greedy", [0, 10, 2, 4, 6]), ("fcfs+easy", [0, 4, 6, 6, 10])]
)
def test_greedy_starves_whom_easy_protects(name: str, expected: list[int]) -> None:
    """B needs all three nodes; jobs that fit keep coming.

    ::

        ..CCCCEEEEBB          ....BBCCCCEEEE
        AAAADDDD..BB          AAAABBDDDD
        AAAADDDD..BB          AAAABBDDDD
        greedy                EASY
    """
    rows = [(0, 4, 4, 2), (1, 2, 2, 3), (2, 4, 4, 1), (4, 4, 4, 2), (6, 4, 4, 1)]
    assert starts(workload(rows, 3), name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("fcfs+easy", [0, 10, 33, 3]),
        ("fcfs+easy-k(1)", [0, 10, 33, 3]),
        ("fcfs+easy-k(2)", [0, 10, 20, 25]),
        ("fcfs+conservative-replan", [0, 10, 20, 25]),
        ("fcfs+conservative", [0, 10, 20, 25]),
    ],
)
def test_a_second_reservation_protects_the_second_job(name: str, expected: list[int]) -> None:
    """D would run from 3 to 33 beside B on the node that B leaves over, and delay C (all four nodes) to 33.

    ::

        ..........BBBBBBBBBBCCCCCDDDD...
        ..........BBBBBBBBBBCCCCC
        AAAAAAAAAABBBBBBBBBBCCCCC
        AAAAAAAAAA..........CCCCC
    """
    rows = [(0, 10, 10, 2), (1, 10, 10, 3), (2, 5, 5, 4), (3, 30, 30, 1)]
    assert starts(workload(rows, 4), name) == expected


def test_reservations_are_made_anew_even_if_only_a_job_that_does_not_fit_arrives() -> None:
    """SJF with two reservations: B [10, 12) leaves one node, C [12, 18) none, so D (20 s) may not start at 3.

    At 5 arrives E, which does not fit now. It is shorter than C, so the second reservation is E's, [12, 15),
    and beside that one D finds its node: it starts at 5, C after it.

    ::

        .....DDDDDDDDDDDDDDDDDDDDCCCCCC
        AAAAAAAAAABBEEE..........CCCCCC
        AAAAAAAAAABBEEE..........CCCCCC
        AAAAAAAAAABB.............CCCCCC
    """
    rows = [(0, 10, 10, 3), (1, 2, 2, 3), (2, 6, 6, 4), (3, 20, 20, 1), (5, 3, 3, 2)]
    assert starts(workload(rows, 4), "sjf+easy-k(2)") == [0, 10, 25, 5, 12]
    assert starts(workload(rows, 4), "sjf+conservative-replan") == [0, 10, 15, 21, 12]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Pipeline(order=SJF()), [0, 10, 2]),
        (Pipeline(order=SJF(), commit=True), [0, 10, 15]),
        (Pipeline(order=SJF(), backfiller=EASY(), commit=True), [0, 10, 2]),
    ],
)
def test_commit_keeps_to_the_selected_job(policy: Pipeline, expected: list[int]) -> None:
    """B is selected at 1 and does not fit; C, shorter, arrives at 2 and would.

    ::

        ..C.......BBBBB          ..........BBBBBC
        AAAAAAAAAABBBBB          AAAAAAAAAABBBBB
        SJF                      committed to B
    """
    assert starts(workload([(0, 10, 10, 3), (1, 5, 5, 4), (2, 1, 1, 1)], 4), policy) == expected


@pytest.mark.parametrize("backfilling", ["easy", "easy-k(1)"])
def test_commitment_is_what_is_reserved_for(backfilling: str) -> None:
    """LJF commits to B at 1; C is longer and would be first, but the reservation stays with B, whom C would delay.

    ::

        ..........BBBBBBBBBBBBBBBBBBBBCCC...
        AAAAAAAAAABBBBBBBBBBBBBBBBBBBB         (x 3)
    """
    rows = [(0, 10, 10, 3), (1, 20, 20, 4), (3, 30, 30, 1)]
    assert starts(workload(rows, 4), f"ljf+{backfilling}+commit") == [0, 10, 30]


@pytest.mark.parametrize(("name", "expected"), [("sjf", [0, 19, 11, 10]), ("sjf+window(2)", [0, 19, 10, 18])])
def test_window_selects_among_those_that_waited_longest(name: str, expected: list[int]) -> None:
    """One job runs at a time. At 10 the window of two holds B (9 s) and C (8 s), and D (1 s) only later.

    ::

        AAAAAAAAAACCCCCCCCDBBBBBBBBB
    """
    rows = [(0, 10, 10, 4), (1, 9, 9, 4), (2, 8, 8, 4), (3, 1, 1, 4)]
    assert starts(workload(rows, 4), name) == expected


@pytest.mark.parametrize("order", ["wfp3", "unicef", "xfactor", "slurm"])
@pytest.mark.parametrize("backfilling", ["none", "easy", "greedy"])
def test_commit_with_orders_that_change(order: str, backfilling: str) -> None:
    """All rank A first at 0, then B is selected and kept; C arrives at 2 and fits beside A.

    ::

        ..CCC            with backfilling: 2 + 3 = 5, when A ends
        ..CCCBBBBBB
        AAAAABBBBBB
        AAAAABBBBBB
    """
    rows = [(0, 5, 5, 2), (0, 6, 6, 3), (2, 3, 3, 2)]
    jobs = workload(rows, 4, user=[1, 2, 3], queue=[1, 1, 1])
    expected = [0, 5, 11] if backfilling == "none" else [0, 5, 2]
    assert starts(jobs, f"{order}+{backfilling}+commit") == expected


def test_same_instant_ties_keep_the_order_of_the_log() -> None:
    """Three equal jobs arrive at once and run one after the other, under any order."""
    jobs = workload([(5, 2, 2, 1)] * 3, 1)
    for order in (FCFS(), SJF(), LargestFirst()):
        assert starts(jobs, Pipeline(order=order)) == [5, 7, 9]
    for order in ("lcfs", "wfp3", "unicef", "xfactor", "f1"):
        assert starts(jobs, order) == [5, 7, 9]


def test_unsorted_logs_run_by_submission_and_report_in_log_order() -> None:
    """The log's first row arrives last.

    ::

        BBBBBCCCAAAA
    """
    result = run(workload([(8, 4, 4, 1), (0, 5, 5, 1), (1, 3, 3, 1)], 1, id=[7, 8, 9]), "fcfs")
    assert result.start_time.tolist() == [8, 0, 5]
    assert result.workload.id.tolist() == [7, 8, 9]
