"""The published simulators' rules by hand: the clock, backfilling, rejections. Rows: submit, run, req, nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.agents.seats import RandomChoice, play
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import StalledError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import EVENT_ORDERS, DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector, Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, FCFS, SJF, WFP3, HoldUnfit
from hpcsimkit.policies.dirlab import FittingCandidates, PublishedEASY, published
from hpcsimkit.policies.dirlab.backfilling import reservation
from hpcsimkit.policies.dirlab.orders import InvertedUNICEF, InvertedWFP3, SmallestSJF
from hpcsimkit.workloads import default_workload
from tests.kernel.helpers import Row, rows_and_size, workload
from tests.kernel.helpers import starts as textbook_starts
from tests.kernel.naive_dirlab import simulate


def starts(rows: list[Row], size: int, policy: Policy, following: int | None = None) -> list[int]:
    scenario = Scenario(workload(rows, size), Setup(event_order=DirlabOrder(following)))
    return scenario.simulation(policy).run().start_time.tolist()


# --- the eight minimal cases ------------------------------------------------------------------------------

COMMIT = [(0, 100, 100, 4), (1, 50, 50, 4), (2, 5, 5, 1)]
NO_EXTRA_NODES = [(0, 100, 100, 6), (1, 50, 50, 8), (2, 500, 500, 2)]
STRICTLY_BEFORE = [(0, 100, 100, 6), (1, 50, 50, 8), (2, 98, 98, 4)]
STALE = [(0, 50, 1000, 4), (0, 500, 500, 4), (1, 100, 100, 10), (60, 700, 700, 4)]
SKIPPED = [(0, 10, 10, 2), (0, 100, 100, 8), (1, 50, 50, 10), (2, 10, 10, 1), (3, 10, 10, 1)]
INVERTED = [(0, 100, 100, 1), (1, 100, 100, 1), (2, 1000, 1000, 1), (3, 10, 10, 1)]
TOGETHER = [(5, 100, 100, 1), (5, 10, 10, 1)]
OVERRUN = [(0, 1000, 100, 6), (1, 50, 50, 8), (200, 10, 10, 2)]
WFP3S = [InvertedWFP3(), WFP3()]
RLS, RLBF = PublishedEASY(), PublishedEASY(skips_after_start=True)


@pytest.mark.parametrize(
    ("rows", "size", "orders", "backfiller", "published_starts", "textbook"),
    [
        pytest.param(COMMIT, 4, [SJF()], None, [0, 100, 150], [0, 105, 100], id="commit"),
        pytest.param(NO_EXTRA_NODES, 10, [FCFS()], RLS, [0, 100, 100], [0, 100, 2], id="no extra nodes"),
        pytest.param(STRICTLY_BEFORE, 10, [FCFS()], RLS, [0, 100, 150], [0, 100, 2], id="strictly before"),
        pytest.param(STALE, 10, [FCFS()], RLS, [0, 0, 760, 60], [0, 0, 500, 600], id="stale reservation"),
        pytest.param(
            SKIPPED, 10, [FCFS()], RLBF, [0, 0, 100, 10, 20], [0, 0, 100, 10, 10], id="list mutation"
        ),
        pytest.param(
            SKIPPED, 10, [FCFS()], RLS, [0, 0, 100, 10, 10], [0, 0, 100, 10, 10], id="no list mutation"
        ),
        pytest.param(INVERTED, 1, WFP3S, None, [0, 100, 200, 1200], [0, 110, 210, 100], id="inverted"),
        pytest.param(TOGETHER, 1, [SJF()], None, [5, 105], [15, 5], id="together"),
        pytest.param(OVERRUN, 10, [FCFS()], RLS, [0, 1000, 1000], [0, 1000, 200], id="overrun"),
    ],
)
def test_minimal_cases(
    rows: list[Row], size: int, orders: list[Any], backfiller: Any, published_starts: list[int],
    textbook: list[int],
) -> None:  # fmt: skip
    assert starts(rows, size, Pipeline(orders[0], backfiller=backfiller, commit=True)) == published_starts
    easy = EASY() if backfiller else None
    assert textbook_starts(workload(rows, size), Pipeline(orders[-1], backfiller=easy)) == textbook


# --- the clock --------------------------------------------------------------------------------------------


def test_a_submission_comes_before_an_end_of_the_same_second() -> None:
    """At 10 B arrives while A still runs, and is kept to; C is shorter, but arrives after it, at 10 too."""
    rows = [(0, 10, 10, 1), (10, 9, 9, 1), (10, 1, 1, 1)]
    assert starts(rows, 1, Pipeline(SJF(), commit=True)) == [0, 10, 19]
    assert starts(rows, 1, Pipeline(SJF())) == [0, 11, 10]


def test_each_end_has_a_pass_of_its_own() -> None:
    """At 10 A ends, and D is backfilled on its node, before B ends and C would have fitted.

    The reservation of C was made for 12, when B is expected to end.
    """
    rows = [(0, 10, 10, 1), (0, 10, 12, 1), (1, 5, 5, 2), (2, 1, 1, 1)]
    assert starts(rows, 2, Pipeline(backfiller=PublishedEASY(), commit=True)) == [0, 0, 11, 10]


def test_ends_of_one_second_come_in_the_order_of_expected_ends_at_the_last_reservation() -> None:
    """A and B end at 10. B is expected to end first, so it does, since C's reservation has sorted them.

    Then two nodes are free, not one, and D (two nodes) is backfilled before C (all three) fits. If A is
    expected to end first, one is free, and then all three.
    """
    rows = [(0, 10, 15, 1), (0, 10, 12, 2), (1, 5, 5, 3), (2, 1, 1, 2)]
    assert starts(rows, 3, Pipeline(backfiller=PublishedEASY(), commit=True)) == [0, 0, 11, 10]
    swapped = [(0, 10, 12, 1), (0, 10, 15, 2), *rows[2:]]
    assert starts(swapped, 3, Pipeline(backfiller=PublishedEASY(), commit=True)) == [0, 0, 10, 15]


class Asks(Inspector):
    """Accepts every job, and asks for the reservation of the first one that does not fit, as encoders do."""

    def accept(self, job: Job, system: System) -> bool:
        for waiting in system.queue:
            if not system.fits(waiting):
                reservation(waiting, system)
                break
        return True


@pytest.mark.parametrize(
    ("rows", "relax"),
    [
        ([(1, 4, 12, 3), (1, 3, 3, 2), (1, 4, 4, 1), (2, 3, 10, 2), (3, 6, 6, 1), (3, 6, 13, 1)], 0.0),
        ([(0, 3, 4, 1), (0, 6, 14, 2), (3, 6, 10, 3), (3, 3, 9, 2), (3, 3, 10, 1)], 0.5),
    ],
)
def test_asking_for_a_reservation_changes_no_schedule(rows: list[Row], relax: float) -> None:
    found = [
        starts(rows, 4, Pipeline(inspector=inspector, backfiller=PublishedEASY(relax=relax)))
        for inspector in (Asks(), Inspector())
    ]
    assert found[0] == found[1]


def test_a_job_is_not_submitted_before_the_one_above_it_in_the_log() -> None:
    assert starts([(5, 1, 1, 1), (3, 1, 1, 1)], 1, Pipeline()) == [5, 6]


def test_zero_length_jobs() -> None:
    assert starts([(0, 0, 1, 2), (0, 0, 1, 2), (0, 3, 3, 2), (0, 1, 1, 2)], 2, Pipeline()) == [0, 0, 0, 3]


def test_options_that_the_rules_do_not_know() -> None:
    jobs = workload(COMMIT, 4)
    for name, value in (("dependencies", True), ("period", 60), ("service_time", lambda *_: 0.0)):
        with pytest.raises(UsageError, match=f"the rules 'dirlab' know no {name}"):
            Simulation(jobs, Pipeline(), event_order=DirlabOrder(), **{name: value})


def test_the_result_says_by_which_rules() -> None:
    assert (
        Simulation(workload(COMMIT, 4), Pipeline(), event_order=DirlabOrder()).run().options["semantics"]
        == "dirlab"
    )


# --- rejections -------------------------------------------------------------------------------------------


class Rejects(Inspector):
    """Rejects job number so-and-so (by default any) so often, and notes when it is asked."""

    def __init__(self, times: int, number: int | None = None) -> None:
        self.times = times
        self.number = number
        self.asked: list[int] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Rejects:
        return self

    def accept(self, job: Job, system: System) -> bool:
        if self.number in (None, job.id):
            self.asked.append(system.now)
            return len(self.asked) > self.times
        return True


def asked(
    rows: list[Row], size: int, times: int, number: int | None = None, following: int | None = None
) -> list[int]:
    inspector = Rejects(times, number)
    starts(rows, size, published("schedinspector", inspector=inspector), following)
    return inspector.asked


def test_a_rejection_lasts_600_seconds_or_until_something_happens() -> None:
    """600, 1200, then B arrives at 1300; B is asked about then too, when A has been accepted."""
    assert asked([(0, 10, 10, 1), (1300, 10, 10, 1)], 2, 3) == [0, 600, 1200, 1300, 1300]


def test_what_happens_in_the_very_600th_second_counts_as_one_event() -> None:
    """At 600 B arrives, and A is asked about once; then it is B's turn."""
    assert asked([(0, 10, 10, 1), (600, 10, 10, 1)], 2, 1) == [0, 600, 600]


def test_with_nothing_ahead_the_clock_stands_still() -> None:
    assert asked([(7, 10, 10, 1)], 1, 3) == [7, 7, 7, 7]


def test_after_72_rejections_nobody_is_asked() -> None:
    assert len(asked([(7, 10, 10, 1)], 1, 1000)) == 72


def test_without_max_interval_a_job_cannot_be_held_for_ever() -> None:
    with pytest.raises(StalledError):
        starts([(7, 10, 10, 1)], 1, Pipeline(inspector=Rejects(9)))


def test_the_job_that_follows_in_the_log_shortens_the_wait_although_it_never_comes() -> None:
    """A runs until 2000. B is rejected at 100: asked about at 700, or only at 2000 if C is at 700."""
    rows = [(0, 2000, 2000, 1), (100, 10, 10, 1)]
    assert asked(rows, 2, 1, number=2) == [100, 700]
    assert asked(rows, 2, 1, number=2, following=701) == [100, 700]
    assert asked(rows, 2, 1, number=2, following=700) == [100, 2000]


def test_nothing_is_backfilled_on_a_rejection() -> None:
    """HoldUnfit holds B at 1; C would end at 3 and fits. Without the inspector it is backfilled."""
    rows = [(0, 10, 10, 1), (1, 5, 5, 2), (2, 1, 1, 1)]
    held = published("schedinspector", backfilling=True, inspector=HoldUnfit())
    assert starts(rows, 2, held) == [0, 10, 15]
    assert starts(rows, 2, published("schedinspector", backfilling=True)) == [0, 10, 2]


# --- passes that can start nothing are skipped -------------------------------------------------------------


class EveryCandidate(FittingCandidates):
    """The same, examined at every pass."""

    def skip(self, system: System) -> bool:
        return False


class EveryPass(PublishedEASY):
    """The same, examined at every pass."""

    def skip(self, system: System) -> bool:
        return False


BUSY = default_workload(np.random.default_rng(4), jobs=300, load=1.2)


@pytest.mark.parametrize("semantics", ["textbook", "dirlab"])
@pytest.mark.parametrize("settings", [{}, {"guarded": True}, {"decline": True}, {"commit": True}])
def test_skipped_passes_have_no_decision(semantics: Any, settings: dict[str, bool]) -> None:
    played, scenario = [], Scenario(BUSY, Setup(event_order=EVENT_ORDERS[semantics]()))
    for kind in (FittingCandidates, EveryCandidate):
        seat = External(kind(guarded="guarded" in settings), decline="decline" in settings)
        simulation = scenario.simulation(Pipeline(SJF(), backfiller=seat, commit="commit" in settings))
        result = play(simulation, RandomChoice(np.random.default_rng(1)))
        played.append((result.choices, result.start_time.tolist(), result.mode.tolist()))
    assert played[0] == played[1] and len(played[0][0]) > 30


@pytest.mark.parametrize("settings", [{}, {"skips_after_start": True}, {"relax": 0.5}, {"candidates": SJF()}])
@pytest.mark.parametrize("commit", [False, True])
def test_skipped_passes_start_nothing(commit: bool, settings: dict[str, Any]) -> None:
    found, expected = (
        Scenario(BUSY, Setup(event_order=DirlabOrder()))
        .simulation(Pipeline(backfiller=kind(**settings), commit=commit))
        .run()
        for kind in (PublishedEASY, EveryPass)
    )
    assert found.start_time.tolist() == expected.start_time.tolist()
    assert found.mode.tolist() == expected.mode.tolist()


def test_a_job_left_out_of_a_pass_starts_at_the_next_arrival() -> None:
    """The second candidate is left out at 10; nothing has started or ended by 15, when a large job arrives."""
    rows = [*SKIPPED, (15, 1, 1, 10)]
    assert starts(rows, 10, Pipeline(backfiller=RLBF, commit=True)) == [0, 0, 100, 10, 15, 150]


# --- against lists sorted again and again -----------------------------------------------------------------


@given(
    crowd=rows_and_size(max_jobs=20), unit=st.sampled_from([1, 1, 100, 400]), by_size=st.booleans(),
    backfilling=st.booleans(), skips=st.booleans(), relax=st.sampled_from([0.0, 0.0, 0.5]),
    tenths=st.integers(0, 9), salt=st.integers(0, 99), later=st.none() | st.integers(0, 20),
)  # fmt: skip
def test_equals_a_literal_simulator(
    crowd: tuple[list[Row], int], unit: int, by_size: bool, backfilling: bool, skips: bool, relax: float,
    tenths: int, salt: int, later: int | None,
) -> None:  # fmt: skip
    rows, size = crowd
    rows = sorted(((submit * unit, run * unit, asked * unit, nodes) for submit, run, asked, nodes in rows))
    jobs: Workload = workload(rows, size)
    order = SmallestSJF() if by_size else FCFS()
    following = None if later is None else rows[-1][0] + later * unit

    def rejects(step: int, job: Job) -> bool:
        return (17 * step + 31 * job.id + salt) % 10 < tenths

    expected, steps = simulate(
        jobs.jobs, size, order.key, backfilling=backfilling, skips=skips, relax=relax, rejects=rejects,
        following=following,
    )  # fmt: skip
    backfiller = PublishedEASY(relax=relax, skips_after_start=skips) if backfilling else None
    policy = Pipeline(order, External(), None, backfiller, commit=True, max_interval=600, max_rejections=72)
    simulation = Scenario(jobs, Setup(event_order=DirlabOrder(following))).simulation(policy)
    step = 0
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(not rejects(step, decision.job))
        step += 1
    assert simulation.result().start_time.tolist() == expected
    assert step == steps


# --- orders -----------------------------------------------------------------------------------------------


def test_inverted_unicef_puts_jobs_of_one_processor_last() -> None:
    rows = [(0, 10, 10, 2), (1, 10, 10, 1), (2, 10, 10, 2)]
    assert starts(rows, 2, Pipeline(InvertedUNICEF())) == [0, 20, 10]


def test_unknown_orders_and_code_bases_are_named() -> None:
    with pytest.raises(UsageError, match="known are fcfs, sjf, sqf, f1, wfp3, unicef, f2, f3, f4"):
        published("rlscheduler", "lcfs")
    with pytest.raises(UsageError, match="known are rlscheduler, schedinspector, rlbackfilling"):
        published("rlsched")
