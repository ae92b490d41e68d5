"""Depth or breadth first: what an open seat is offered, and what suits the kind of work, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from hpcsimkit.agents.seats import default_choice, play
from hpcsimkit.cluster.allocation import Allocation
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import Level
from hpcsimkit.jobs.job import UNKNOWN, Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Answering, Decision, External
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH, NETWORK_BOUND
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.placing.placements import BreadthFirst, DepthFirst
from hpcsimkit.policies.placing.styles import STYLES, DepthOrBreadth, SuitsKind

THREE = Machines.of(3, cpus=2, gpus=2)


def spread(*jobs: tuple[int, int, int]) -> Workload:
    """Jobs of 9 s that come at 0, 1, ...; each asks for CPUs and GPUs of any machines, and is of a kind."""
    columns = {
        "submit_time": range(len(jobs)), "run_time": [9] * len(jobs), "nodes": [1] * len(jobs),
        "cpus": [job[0] for job in jobs], "gpus": [job[1] for job in jobs], "spread": [1] * len(jobs),
        "kind": [job[2] for job in jobs],
    }  # fmt: skip
    return Workload(columns, resources=("cpus", "gpus"))


def gives(allocation: Any) -> tuple[str, dict[int, list[int]]]:
    """Return the style of an allocation, and what each machine gives."""
    return allocation.style, dict(zip(allocation.machines, allocation.amounts.tolist(), strict=True))


def offers(jobs: Workload, cluster: Machines = THREE) -> list[list[Any]]:
    """Return what the seat is offered for each job, each placed breadth-first."""
    simulation = Simulation(jobs, Pipeline(placement=External(DepthOrBreadth())), cluster)
    seen = []
    while (decision := simulation.next_decision()) is not None:
        assert decision.stage == "placement"
        seen.append([gives(option) for option in decision.options])
        simulation.answer_position(1)
    return seen


def test_both_styles_are_offered_depth_first_to_begin_with() -> None:
    """The first leaves, breadth-first, a CPU on each machine and a GPU on the first two.

    One CPU is left on each machine, and one GPU on each but the first. Two CPUs and two GPUs come from two
    machines at least; if the first gives a CPU, one of the others need not, and it is three.
    """
    first, second = offers(spread((3, 4, 0), (2, 2, 0)))
    assert first == [
        (DEPTH, {0: [2, 2], 1: [1, 2]}),
        (BREADTH, {0: [1, 2], 1: [1, 1], 2: [1, 1]}),
    ]
    assert second == [(DEPTH, {1: [1, 1], 2: [1, 1]}), (BREADTH, {0: [1, 0], 1: [1, 1], 2: [0, 1]})]


def test_both_are_offered_even_if_there_is_no_difference() -> None:
    assert offers(spread((6, 6, 0))) == [
        [(style, {k: [2, 2] for k in range(3)}) for style in (DEPTH, BREADTH)]
    ]
    assert offers(spread((1, 0, 0))) == [[(style, {0: [1, 0]}) for style in (DEPTH, BREADTH)]]


def test_nothing_is_offered_for_who_does_not_fit() -> None:
    """The second needs five CPUs of six, one of which is taken until 9."""
    simulation = Simulation(
        spread((2, 0, 0), (5, 0, 0)), Pipeline(placement=External(DepthOrBreadth())), THREE
    )
    asked = []
    while (decision := simulation.next_decision()) is not None:
        asked.append((decision.system.now, decision.job and decision.job.id, len(decision.options)))
        system = decision.system
        if system.now == 0:
            waiting = system.jobs[1]
            none = system.cluster.capacity - system.cluster.capacity
            assert not DepthOrBreadth().options(waiting, none, system)
        simulation.answer_position(0)
    assert asked == [(0, 1, 2), (9, 2, 2)]


def test_an_offer_is_worked_out_when_it_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[str] = []

    class Noted(Placement):
        def __init__(self, style: Placement) -> None:
            self.style = style

        def place(self, job: Job, level: Level, system: System) -> Allocation | None:
            placed.append(type(self.style).__name__)
            return self.style.place(job, level, system)

    monkeypatch.setattr("hpcsimkit.policies.placing.styles.STYLES", tuple(map(Noted, STYLES)))
    simulation = Simulation(spread((3, 4, 0)), Pipeline(placement=External(DepthOrBreadth())), THREE)
    decision = simulation.next_decision()
    assert decision is not None
    assert len(decision.options) == 2 and placed == []
    simulation.answer_position(1)
    assert simulation.next_decision() is None
    assert placed == ["BreadthFirst"]


def test_options_are_a_sequence_like_any_other() -> None:
    simulation = Simulation(spread((3, 4, 0)), Pipeline(placement=External(DepthOrBreadth())), THREE)
    decision = simulation.next_decision()
    assert decision is not None
    options = decision.options
    assert [gives(option)[0] for option in options] == [DEPTH, BREADTH]
    assert gives(options[-1])[0] == BREADTH
    assert [gives(option)[0] for option in options[:1]] == [DEPTH]
    with pytest.raises(IndexError):
        options[2]
    assert [decision.position(option) for option in options] == [0, 1], "equal ones, each worked out anew"


@pytest.mark.parametrize("position", [0, 1])
def test_who_always_answers_the_same_is_that_placement(position: int) -> None:
    """Asked from outside or sitting there: the machines are those of the closed pipeline."""

    class Same(Answering):
        def answer(self, decision: Decision) -> int:
            return position

    jobs = spread((3, 4, 0), (2, 1, 1), (1, 1, 0), (6, 6, 1), (2, 5, 0))
    closed = Simulation(jobs, Pipeline(placement=(DepthFirst(), BreadthFirst())[position]), THREE)
    closed.run()
    inside = Simulation(jobs, Pipeline(placement=Same(DepthOrBreadth())), THREE)
    inside.run()
    outside = Simulation(jobs, Pipeline(placement=External(DepthOrBreadth())), THREE)
    play(outside, lambda decision: decision.options[position])
    expected = closed.system.allocations
    assert expected is not None
    assert expected == inside.system.allocations == outside.system.allocations
    assert closed.system.ledger.starts == inside.system.ledger.starts == outside.system.ledger.starts


def test_closed_or_by_default_it_is_depth_first() -> None:
    jobs = spread((3, 4, 1), (2, 1, 1), (6, 6, 1))
    expected = Simulation(jobs, Pipeline(placement=DepthFirst()), THREE)
    expected.run()
    closed = Simulation(jobs, Pipeline(placement=DepthOrBreadth()), THREE)
    closed.run()
    opened = Simulation(jobs, Pipeline(placement=External(DepthOrBreadth())), THREE)
    play(opened, default_choice)
    assert expected.system.allocations == closed.system.allocations == opened.system.allocations


def test_on_counted_nodes_both_are_the_number_of_nodes() -> None:
    jobs = Workload({"submit_time": [0], "run_time": [9], "nodes": [3]}, machine_size=4)
    decision = Simulation(jobs, Pipeline(placement=External(DepthOrBreadth()))).next_decision()
    assert decision is not None
    assert list(decision.options) == [3, 3]


@pytest.mark.parametrize(
    ("kind", "style", "machines"),
    [
        (COMPUTE_BOUND, DEPTH, {0: [2, 2], 1: [1, 2]}),
        (NETWORK_BOUND, BREADTH, {0: [1, 2], 1: [1, 1], 2: [1, 1]}),
        (UNKNOWN, BREADTH, {0: [1, 2], 1: [1, 1], 2: [1, 1]}),
    ],
)
def test_what_suits_the_kind(kind: int, style: str, machines: dict[int, list[int]]) -> None:
    simulation = Simulation(spread((3, 4, kind)), Pipeline(placement=SuitsKind()), THREE)
    simulation.run()
    assert gives(simulation.system.given(0)) == (style, machines)


def test_what_suits_the_kind_finds_no_place_where_there_is_none() -> None:
    simulation = Simulation(spread((3, 4, 0), (4, 0, 1)), Pipeline(placement=SuitsKind()), THREE)
    simulation.run()
    assert simulation.system.ledger.starts == [0, 9]
