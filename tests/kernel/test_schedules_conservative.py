"""Conservative backfilling drawn and computed by hand: guarantees, compression, due reservations.

Rows are (submission, run time, requested time, nodes); jobs are named A, B, C ... in log order.
"""

from __future__ import annotations

import pytest

from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import Conservative, Pipeline
from tests.kernel.helpers import needs_numba, run, starts, workload


class HoldAt(Inspector):
    """Holds whatever is selected at one instant."""

    def __init__(self, instant: int) -> None:
        self.instant = instant

    def accept(self, job: Job, system: System) -> bool:
        return system.now != self.instant


def test_a_hole_before_a_reservation_is_used() -> None:
    """B is promised 10 to 15. C (8 s) ends by then; D, a second later, finds the node taken and comes after B.

    ::

        ..CCCCCCCCBBBBBDDDDDDDD
        AAAAAAAAAABBBBB          (x 3)
    """
    rows = [(0, 10, 10, 3), (1, 5, 5, 4), (2, 8, 8, 1), (3, 8, 8, 1)]
    assert starts(workload(rows, 4), "fcfs+conservative") == [0, 10, 2, 15]


def test_compression_when_a_job_ends_early() -> None:
    """A is to end at 10 and ends at 4: B moves from 10 to 4, C and D from 15 to 9.

    ::

        AAAABBBBBDDDDD
        AAAABBBBBDDDDD
        AAAABBBBBCCCCC
        AAAABBBBBCCCCC
    """
    rows = [(0, 4, 10, 4), (1, 5, 5, 4), (2, 5, 5, 2), (3, 5, 5, 2)]
    assert starts(workload(rows, 4), "fcfs+conservative") == [0, 4, 9, 9]


TURNS = [(0, 4, 20, 3), (0, 10, 10, 1), (1, 10, 10, 4), (2, 10, 10, 1)]
"""A (to end at 20) ends at 4 beside B; C and D wait, planned [20, 30) and [10, 20)."""


def test_compression_takes_jobs_in_order_and_keeps_the_others_where_they_are() -> None:
    """At 4 it is C's turn first: D's reservation [10, 20) is in the way of all four nodes, C stays at 20. Then D
    moves to 4. At 10 B ends and C moves to 14, behind D.

    ::

        AAAA..........CCCCCCCCCC
        AAAA..........CCCCCCCCCC
        AAAADDDDDDDDDDCCCCCCCCCC
        BBBBBBBBBB....CCCCCCCCCC
    """
    assert starts(workload(TURNS, 4), "fcfs+conservative") == [0, 0, 14, 4]


def test_planning_anew_is_another_algorithm() -> None:
    """The same jobs planned from scratch at 4: C gets [10, 20) as if D had been promised nothing; D follows.

    ::

        AAAA......CCCCCCCCCC
        AAAA......CCCCCCCCCC
        AAAA......CCCCCCCCCC
        BBBBBBBBBBCCCCCCCCCCDDDDDDDDDD
    """
    assert starts(workload(TURNS, 4), "fcfs+conservative-replan") == [0, 0, 10, 20]


def test_a_reservation_that_falls_due_is_an_instant_of_its_own() -> None:
    """B asked for 4 s and runs 7. At 2 C is promised 5 to 8, at 3 D (12 s) 6 to 18.

    At 5 C is due: a pass, although nothing ends or arrives. B is still there and now expected to end at 6, so
    C is planned for 6 to 9, and D fits beside it at once.

    ::

        .....DDDDDDDDD
        .BBBBBBBCCC
        AAAAAA..CCC
    """
    rows = [(0, 6, 6, 1), (1, 7, 4, 1), (2, 3, 3, 2), (3, 9, 12, 1)]
    assert starts(workload(rows, 3), "fcfs+conservative") == [0, 1, 8, 5]


HOUR = 3600


@pytest.mark.parametrize("simulator", ["simpy", pytest.param("compiled", marks=needs_numba)])
def test_a_reservation_falls_due_beside_a_job_that_exceeds_its_estimate(simulator: str) -> None:
    """A asked for 3 h, B for 1 h, and both run for 10 h. C (three nodes) is promised 1 h, D (2 h) 2 h.

    At 1 h B exceeds its estimate: C is now promised a second later, D at 3 h, when A is to end. Nothing ends or arrives
    at 3 h, but two nodes are free and D is due: C is promised 3 h and a second, and D fits beside it.

    ::

        ...DD.....CCC
        AAAAAAAAAACCC
        BBBBBBBBBBCCC
    """
    rows = [(0, 10 * HOUR, 3 * HOUR, 1), (0, 10 * HOUR, HOUR, 1), (0, 60, HOUR, 3), (0, 60, 2 * HOUR, 1)]
    found = starts(workload(rows, 4), "fcfs+conservative", simulator=simulator)
    assert found == [0, 0, 10 * HOUR, 3 * HOUR]


class Asks(Inspector):
    """Records when it is asked about which job, and rejects job 2 at one instant."""

    def __init__(self, asked: list[tuple[int, int]], rejects_at: int = -1) -> None:
        self.asked = asked
        self.rejects_at = rejects_at

    def __deepcopy__(self, memo: object) -> Asks:
        return self  # the run's own copy records here

    def accept(self, job: Job, system: System) -> bool:
        self.asked.append((system.now, job.id))
        if job.id == 2 and system.now == self.rejects_at:
            system.reject(job)
        return True


def test_a_reservation_that_was_moved_up_causes_no_pass_at_its_old_time() -> None:
    """B is promised 10 and starts at 4, as A ends early; C is promised 20, then 14. Nothing happens at 10.

    ::

        AAAABBBBBBBBBBBBBBBBCC
    """
    asked: list[tuple[int, int]] = []
    policy = Pipeline(inspector=Asks(asked), backfiller=Conservative())
    rows = [(0, 4, 10, 1), (1, 16, 10, 1), (2, 2, 2, 1)]
    assert starts(workload(rows, 1), policy) == [0, 4, 20]
    assert asked == [(0, 1), (1, 2), (2, 2), (4, 2), (4, 3), (14, 3), (20, 3)]


def test_the_reservation_of_a_rejected_job_causes_no_pass() -> None:
    """A asked for 10 s and runs 30. B, promised 10, is rejected at 2, when C is promised 15: there is a pass then."""
    asked: list[tuple[int, int]] = []
    policy = Pipeline(inspector=Asks(asked, rejects_at=2), backfiller=Conservative())
    rows = [(0, 30, 10, 1), (1, 5, 5, 1), (2, 2, 2, 1)]
    assert starts(workload(rows, 1), policy) == [0, -1, 30]
    assert asked == [(0, 1), (1, 2), (2, 2), (2, 3), (15, 3), (30, 3)]


def test_a_zero_length_job_frees_its_reservation_in_the_same_instant() -> None:
    """A asked for 9 s and takes none: B, planned at 9, starts at 0 in the second round."""
    assert starts(workload([(0, 0, 9, 2), (0, 3, 3, 2)], 2), "fcfs+conservative") == [0, 0]


def test_start_modes() -> None:
    """A starts at once, B as promised (it was the first that could not start), C in a hole before B."""
    rows = [(0, 10, 10, 3), (1, 5, 5, 4), (2, 8, 8, 1)]
    assert run(workload(rows, 4), "fcfs+conservative").mode.tolist() == [1, 2, 3]


HELD = [(0, 10, 10, 4), (1, 10, 10, 4), (2, 5, 5, 1), (40, 5, 5, 1)]
"""B is promised 10, C 20, and nothing happens between 20 and 40."""


def test_a_job_held_when_its_reservation_is_due_is_planned_anew() -> None:
    """B is held at 10, when it is due. Asked again three seconds later it starts, and C follows at 23."""
    policy = Pipeline(inspector=HoldAt(10), backfiller=Conservative(), max_interval=3)
    assert starts(workload(HELD, 4), policy) == [0, 13, 23, 40]


def test_a_job_held_without_being_asked_again_waits_for_the_next_event() -> None:
    """B is held at 10; the next thing that happens is D's arrival at 40: then B is first."""
    rows = [HELD[0], HELD[1], HELD[3]]
    policy = Pipeline(inspector=HoldAt(10), backfiller=Conservative())
    assert starts(workload(rows, 4), policy) == [0, 40, 50]


def test_an_open_order_seat_that_declines_keeps_nobody_waiting_for_ever() -> None:
    rows = [HELD[0], HELD[1], HELD[3]]
    simulation = Simulation(
        workload(rows, 4), Pipeline(order=External(decline=True), backfiller=Conservative())
    )
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(None if decision.system.now == 10 else decision.options[0])
    assert simulation.result().start_time.tolist() == [0, 40, 50]


def test_predictions_that_are_outlived_keep_nobody_waiting_for_ever() -> None:
    """User 1's jobs take 1 s, C of the same user 50 s: the plan made by the prediction of 1 s does not hold.

    C starts at 10 and is believed to end at 11, then at 71; D (5 s) and E, predicted 1 s each, follow at 60 and 65.
    """
    rows = [(0, 1, 100, 4), (1, 1, 100, 4), (10, 50, 100, 4), (11, 5, 100, 4), (12, 1, 100, 4)]
    jobs = workload(rows, 4, user=[1] * 5)
    assert starts(jobs, "fcfs+conservative+last-two") == [0, 1, 10, 60, 65]


def test_passes_at_intervals_only() -> None:
    """B could start at 10 and is passed over until 14, the next multiple of 7; C likewise until 28."""
    rows = [(0, 10, 10, 4), (1, 10, 10, 4), (2, 5, 5, 1)]
    assert starts(workload(rows, 4), "fcfs+conservative", period=7) == [0, 14, 28]
