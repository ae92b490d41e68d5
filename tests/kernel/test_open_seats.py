"""Open seats by hand: what is offered, what may be declined, what a wrong answer gets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.cluster.opaque import Level
from hpcsimkit.errors import PolicyError, ScheduleError, UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, SJF, Conservative, Greedy, LargestFirst
from hpcsimkit.results.result import Result
from tests.kernel.helpers import run, workload
from tests.kernel.test_invariants import options, policies, workloads

ROWS = [(0, 10, 10, 3), (1, 5, 5, 4), (2, 8, 8, 1), (2, 7, 7, 1), (2, 9, 9, 1)]
"""Four nodes: A runs to 10, B is the head with shadow time 10, C and D would end by then, E would not."""


def drive(jobs: Workload, policy: Pipeline, answer: Callable[[Decision], Any], **how: Any) -> Result:
    simulation = Simulation(jobs, policy, **how)
    while (decision := simulation.next_decision()) is not None:
        simulation.answer(answer(decision))
    return simulation.result()


def asked(jobs: Workload, policy: Pipeline, answer: Callable[[Decision], Any]) -> list[Any]:
    """Return stage, time, job in question and offers (job numbers where they are jobs) of each decision."""
    seen: list[Any] = []

    def note(decision: Decision) -> Any:
        offers = [getattr(option, "id", option) for option in decision.options]
        seen.append((decision.stage, decision.system.now, decision.job and decision.job.id, offers))
        return answer(decision)

    drive(jobs, policy, note)
    return seen


def default(decision: Decision) -> Any:
    return decision.default


def last(decision: Decision) -> Any:
    return decision.options[-1]


def test_order_seat_offers_the_queue_in_the_order_behind_it() -> None:
    """Unlike a closed order, the seat is asked for one job too."""
    seen = asked(workload(ROWS, 4), Pipeline(order=External(SJF())), default)
    assert seen[:3] == [("order", 0, None, [1]), ("order", 1, None, [2]), ("order", 2, None, [2, 4, 3, 5])]


def test_order_seat_has_arrival_order_behind_it_by_default() -> None:
    seen = asked(workload(ROWS, 4), Pipeline(order=External()), default)
    assert seen[2] == ("order", 2, None, [2, 3, 4, 5])


def test_window_limits_the_menu_to_those_that_waited_longest_in_policy_order() -> None:
    seen = asked(workload(ROWS, 4), Pipeline(order=External(SJF()), window=3), default)
    assert seen[2] == ("order", 2, None, [2, 4, 3])


@pytest.mark.parametrize(("window", "offers"), [(None, [3, 4]), (1, [3])])
def test_backfiller_seat_offers_what_easy_admits(window: int | None, offers: list[int]) -> None:
    seen = asked(workload(ROWS, 4), Pipeline(backfiller=External(), window=window), default)
    assert seen[0] == ("backfiller", 2, 2, offers)


def test_limited_candidates_leave_the_selection_alone() -> None:
    """A job before the three is the head: it is not the first of those that the limit would leave."""
    rows = [(0, 10, 10, 3), (1, 9, 9, 2), (2, 5, 5, 4), (2, 7, 7, 1), (2, 8, 8, 1)]
    policy = Pipeline(SJF(), backfiller=External(), max_candidates=1)
    assert asked(workload(rows, 4), policy, default)[0] == ("backfiller", 2, 3, [4])
    policy.window = 1
    assert asked(workload(rows, 4), policy, default)[0] == ("backfiller", 2, 2, [4])


def test_rows_of_the_jobs_offered() -> None:
    jobs = workload([(0, 9, 9, 4), (1, 5, 5, 3), (1, 5, 5, 2)], 4)
    simulation = Simulation(jobs, Pipeline(order=External(decline=True)))
    simulation.answer(simulation.next_decision().options[0])  # type: ignore[union-attr]
    decision = simulation.next_decision()
    assert decision is not None
    assert decision.rows.tolist() == [1, 2]
    assert len(decision.options) == 3, "the last one declines"
    inspected = Simulation(jobs, Pipeline(inspector=External())).next_decision()
    with pytest.raises(PolicyError, match=r"among jobs is needed, found Decision\('inspector'"):
        assert inspected.rows is None  # type: ignore[union-attr]


def test_backfiller_seat_offers_what_its_base_admits() -> None:
    seen = asked(workload(ROWS, 4), Pipeline(backfiller=External(Greedy())), default)
    assert seen[0] == ("backfiller", 2, 2, [3, 4, 5])
    seen = asked(workload(ROWS, 4), Pipeline(backfiller=External(EASY(candidates=SJF()))), default)
    assert seen[0] == ("backfiller", 2, 2, [4, 3])


def test_backfiller_choices_are_carried_out() -> None:
    """D (7 s) instead of C (8 s), as EASY-SJF would.

    ::

        ..DDDDDDD.BBBBBCCCCCCCC
        AAAAAAAAAABBBBB              E (one node) beside C
    """
    result = drive(workload(ROWS, 4), Pipeline(backfiller=External()), last)
    assert result.start_time.tolist() == [0, 10, 15, 2, 15]
    assert result.choices[0] == ("backfiller", 1)


def test_declining_to_backfill() -> None:
    """None comes last and starts nothing more in this pass."""
    policy = Pipeline(backfiller=External(decline=True))
    assert asked(workload(ROWS, 4), policy, default)[0] == ("backfiller", 2, 2, [3, 4, None])
    assert drive(workload(ROWS, 4), policy, last).start_time.tolist() == [0, 10, 15, 15, 15]


def test_declining_to_select_while_something_is_ahead() -> None:
    """At 0 B is to come; at 5 nothing is ahead, until B has been chosen; at 6 B has ended."""
    policy = Pipeline(order=External(decline=True))
    jobs = workload([(0, 10, 10, 1), (5, 1, 1, 1)], 4)
    offers = [(now, offered) for _, now, _, offered in asked(jobs, policy, last)]
    assert offers == [(0, [1, None]), (5, [1, 2]), (5, [1, None]), (6, [1])]
    assert drive(jobs, policy, last).start_time.tolist() == [6, 5]


@pytest.mark.parametrize("fitting", [False, True])
def test_declining_to_select_for_so_long_at_most(fitting: bool) -> None:
    """As above, but who declined is asked again two seconds later if nothing happens before that.

    ::

        declined at 0, 2, 4   B comes at 5 and is chosen, A declined; at 6 B has ended and A must go on
    """
    policy = Pipeline(order=External(decline=True), max_interval=2, fitting=fitting)
    jobs = workload([(0, 10, 10, 1), (5, 1, 1, 1)], 4)
    offers = [(now, offered) for _, now, _, offered in asked(jobs, policy, last)]
    assert offers == [(0, [1, None]), (2, [1, None]), (4, [1, None]), (5, [1, 2]), (5, [1, None]), (6, [1])]
    assert drive(jobs, policy, last).start_time.tolist() == [6, 5]


def test_who_declined_may_start_a_job_when_asked_again() -> None:
    """A runs to 4. B, declined at 1, is taken at 3; without an interval nobody asks before A has ended."""
    jobs = workload([(0, 4, 4, 2), (1, 9, 9, 2)], 4)

    def at_three(decision: Decision) -> Any:
        return decision.options[0] if decision.system.now in (0, 3) else last(decision)

    policy = Pipeline(order=External(decline=True), max_interval=2)
    assert drive(jobs, policy, at_three).start_time.tolist() == [0, 3]
    assert drive(jobs, Pipeline(order=External(decline=True)), at_three).start_time.tolist() == [0, 4]


def test_declining_the_only_job_and_holding_it_are_the_same() -> None:
    """Each time B is declined, at 1 and as A ends at 3, it is asked about three seconds later."""
    jobs = workload([(0, 3, 3, 4), (1, 20, 20, 4), (30, 1, 1, 4)], 4)

    def later(decision: Decision) -> Any:
        yes = decision.system.now % 5 == 0 or len(decision.options) == 1
        return decision.options[0] if yes else last(decision)

    policies = [
        Pipeline(order=External(decline=True), max_interval=3),
        Pipeline(inspector=External(), max_interval=3),
    ]
    seen = [[(now, len(offers)) for _, now, _, offers in asked(jobs, policy, later)] for policy in policies]
    assert seen[0] == seen[1]
    assert seen[0] == [(now, 2) for now in (0, 1, 3, 4, 6, 7, 9, 10)] + [(30, 1)]
    assert drive(jobs, policies[0], later).start_time.tolist() == [0, 10, 30]


@given(jobs=workloads(), how=options(), data=st.data(), interval=st.integers(1, 4), fitting=st.booleans())
def test_who_declined_is_asked_again_in_time(
    jobs: Workload, how: dict[str, Any], data: st.DataObject, interval: int, fitting: bool
) -> None:
    """So many seconds after it declined at most, since those whom it was offered still wait and fit."""
    policy = Pipeline(order=External(decline=True), max_interval=interval, fitting=fitting)
    declined: list[int] = []

    def draw(decision: Decision) -> Any:
        if declined:
            assert decision.system.now - declined.pop() <= interval
        choice = decision.options[data.draw(st.integers(0, 3)) % len(decision.options)]
        if choice is None:
            declined.append(decision.system.now)
        return choice

    drive(jobs, policy, draw, **{**how, "period": None})
    assert not declined


def test_inspector_seat_may_hold_only_while_something_is_ahead() -> None:
    """A is held at 0, as B is to come; at 5 nothing is ahead and A must go on. B is held until A ends at 15."""
    jobs = workload([(0, 10, 10, 2), (5, 1, 1, 2)], 4)
    policy = Pipeline(inspector=External())
    offers = [(now, job, offered) for _, now, job, offered in asked(jobs, policy, last)]
    assert offers == [(0, 1, [True, False]), (5, 1, [True]), (5, 2, [True, False]), (15, 2, [True])]
    assert drive(jobs, policy, last).start_time.tolist() == [5, 15]


def test_placement_seat() -> None:
    seen = asked(workload(ROWS, 4), Pipeline(placement=External(), backfiller=EASY()), default)
    assert seen[:2] == [("placement", 0, 1, [3]), ("placement", 2, 3, [1])]


def test_wrong_answers() -> None:
    simulation = Simulation(workload(ROWS, 4), Pipeline(order=External(), inspector=External()))
    with pytest.raises(UsageError, match="no pending decision"):
        simulation.answer(None)
    decision = simulation.next_decision()
    assert decision is not None
    for wrong in (None, True, 1, simulation.system.jobs[3], object(), "x"):
        with pytest.raises(UsageError, match="has no option"):
            simulation.answer(wrong)
    assert simulation.next_decision() is decision  # still the same question
    simulation.answer(decision.options[0])
    with pytest.raises(UsageError, match="not over"):
        simulation.result()


def test_an_equal_job_is_an_answer() -> None:
    simulation = Simulation(workload(ROWS, 4), Pipeline(backfiller=External()))
    decision = simulation.next_decision()
    assert decision is not None
    simulation.answer(decision.options[0]._replace())
    assert simulation.system.start_time(decision.options[0]) == 2


def test_an_equal_array_is_an_answer() -> None:
    """Who opens a seat of its own may offer arrays."""
    simulation = Simulation(workload(ROWS, 4), Pipeline(External()))
    simulation.next_decision()
    offered = partial(Decision, "own", simulation.system, None, default=lambda: None)
    decision = offered(lambda: [np.array([1, 2]), np.array([2, 1])])
    assert decision.position([2, 1]) == 1
    assert decision.position(np.array([2, 1])) == 1
    with pytest.raises(UsageError, match="has no option"):
        decision.position(np.array([2, 2]))
    assert offered(lambda: [3, (1, 2)]).position(np.array([1, 2])) == 1


def test_answer_after_answer() -> None:
    """The next question must be fetched before it can be answered, unless the same pass asks it."""
    simulation = Simulation(workload(ROWS, 4), Pipeline(order=External()))
    first = simulation.next_decision()
    assert first is not None
    simulation.answer(first.options[0])
    with pytest.raises(UsageError, match="no pending decision"):
        simulation.answer(first.options[0])


def test_running_an_open_pipeline() -> None:
    with pytest.raises(UsageError, match="the order seat is open"):
        Simulation(workload(ROWS, 4), Pipeline(order=External())).run()


def test_a_pipeline_whose_seats_are_never_asked_runs() -> None:
    jobs = workload([(0, 1, 1, 4), (5, 1, 1, 4)], 4)
    assert Simulation(jobs, Pipeline(backfiller=External())).run().start_time.tolist() == [0, 5]


class Nowhere(Placement):
    """Finds no place for anybody."""

    def place(self, job: Job, level: Level, system: System) -> None:
        return None


def test_a_placement_that_finds_no_place_is_an_error() -> None:
    with pytest.raises(ScheduleError, match=r"^Nowhere\(\) for job 1 at t=0 s must find a place, it fits"):
        drive(workload(ROWS, 4), Pipeline(order=External(decline=True), placement=Nowhere()), default)


@pytest.mark.parametrize("seat", ["order", "inspector", "placement", "backfiller"])
@given(jobs=workloads(), name=policies(), how=options(), decline=st.booleans())
def test_default_answers_give_the_closed_pipelines_schedule(
    seat: str, jobs: Workload, name: str, how: dict[str, Any], decline: bool
) -> None:
    closed, opened = run(jobs, name, **how), make(name)
    if seat == "backfiller" and opened.backfiller is None:
        return
    setattr(opened, seat, External(getattr(opened, seat), decline=decline))
    found = drive(jobs, opened, default, **how)
    assert found.start_time.tolist() == closed.start_time.tolist()
    assert found.mode.tolist() == closed.mode.tolist()


@given(jobs=workloads(), how=options(), data=st.data(), decline=st.booleans())
def test_any_answers_give_a_schedule_and_options_are_never_empty(
    jobs: Workload, how: dict[str, Any], data: st.DataObject, decline: bool
) -> None:
    backfiller = data.draw(st.sampled_from([None, Greedy(), EASY(), Conservative()]))
    policy = Pipeline(
        External(LargestFirst(), decline=decline), External(), External(), External(backfiller, decline=decline),
        commit=data.draw(st.booleans()), max_interval=data.draw(st.sampled_from([None, 2])),
    )  # fmt: skip

    def draw(decision: Decision) -> Any:
        assert len(decision.options) > 0
        return decision.options[data.draw(st.integers(0, 5)) % len(decision.options)]

    result = drive(jobs, policy, draw, **how)
    assert (result.start_time >= result.submit_time).all()


def test_an_equal_copy_of_a_job_with_a_request_is_an_answer() -> None:
    columns = {"submit_time": [0, 0], "run_time": [5, 5], "nodes": [1, 1], "cpus": [1, 2]}
    asked = Workload(columns, machine_size=4, resources=("cpus",))
    simulation = Simulation(asked, Pipeline(order=External()))
    decision = simulation.next_decision()
    assert decision is not None
    assert decision.position(decision.options[1]._replace()) == 1
    with pytest.raises(UsageError, match="has no option"):
        decision.position(decision.options[1]._replace(request=decision.options[0].request))
