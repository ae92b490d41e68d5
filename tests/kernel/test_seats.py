"""Open seats: whoever answers as the heuristic would gets the heuristic's schedule, start for start."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit.agents.seats import Answer, RandomChoice, Replay, default_choice, play
from hpcsimkit.cluster.opaque import Allocation, Level
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Admission, Inspector, Order, Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies.backfill.backfilling import EASY
from hpcsimkit.policies.orders import SJF
from hpcsimkit.workloads.readers.swf import read_swf

KTH = ("KTH-SP2-1996-2.1-cln.swf.gz", 100)
SDSC = ("SDSC-SP2-1998-4.2-cln.swf.gz", 128)


class ByArrival(Order):
    """First come, first served, also among jobs of one instant."""

    def key(self, job: Job) -> tuple[int, int]:
        return job.submit_time, job.index


class Balanced(Inspector):
    """Holds a job that is wider than what is idle and has waited less than an hour."""

    def accept(self, job: Job, system: System) -> bool:
        return job.nodes <= system.free or system.now - job.submit_time >= 3600 or not system.anything_ahead


class Eager(Admission):
    """Skips a job that is wider than what is idle and has waited less than an hour."""

    def admits(self, job: Job, system: System) -> bool:
        return job.nodes <= system.free or system.now - job.submit_time >= 3600 or not system.anything_ahead


class Everywhere(Placement):
    """Places a job where there are enough nodes, as a stage of its own."""

    def place(self, job: Job, level: Level, system: System) -> Allocation | None:
        return job.nodes if job.nodes <= level else None


# What each seat would have to answer, worked out from the options and the state alone.


def shortest_request(decision: Decision) -> Job:
    return min(decision.options, key=lambda job: (job.requested_time, job.submit_time, job.index))


def balanced(decision: Decision) -> bool:
    system, job = decision.system, decision.job
    assert job is not None
    if len(decision.options) == 1:
        return True
    return not (job.nodes > system.free and system.now < job.submit_time + 3600)


def the_only_one(decision: Decision) -> Any:
    (allocation,) = decision.options
    return allocation


def first(decision: Decision) -> Job:
    return decision.options[0]


Seat = tuple[Callable[[], Pipeline], Callable[[], Pipeline], dict[str, Answer]]
SEATS: dict[str, Seat] = {
    "order": (
        lambda: Pipeline(order=SJF(), backfiller=EASY()),
        lambda: Pipeline(order=External(SJF()), backfiller=EASY()),
        {"order": shortest_request},
    ),
    "order of heads only": (
        lambda: Pipeline(order=SJF(), backfiller=EASY(candidates=ByArrival())),
        lambda: Pipeline(order=External(), backfiller=EASY()),
        {"order": shortest_request},
    ),
    "inspector": (
        lambda: Pipeline(inspector=Balanced(), backfiller=EASY(), max_interval=600),
        lambda: Pipeline(inspector=External(), backfiller=EASY(), max_interval=600),
        {"inspector": balanced},
    ),
    "placement": (
        lambda: Pipeline(placement=Everywhere(), backfiller=EASY()),
        lambda: Pipeline(placement=External(), backfiller=EASY()),
        {"placement": the_only_one},
    ),
    "backfiller": (
        lambda: Pipeline(order=SJF(), backfiller=EASY()),
        lambda: Pipeline(order=SJF(), backfiller=External()),
        {"backfiller": first},
    ),
    "gate": (
        lambda: Pipeline(gate=Eager(), backfiller=EASY(), max_interval=600),
        lambda: Pipeline(gate=External(), backfiller=EASY(), max_interval=600),
        {"gate": balanced},
    ),
    "all": (
        lambda: Pipeline(SJF(), Balanced(), Everywhere(), EASY(), max_rejections=3),
        lambda: Pipeline(External(SJF()), External(), External(), External(), max_rejections=3),
        {"order": shortest_request, "inspector": balanced, "placement": the_only_one, "backfiller": first},
    ),
}
"""For each seat the closed pipeline, the one with the seat open, and the answers."""


def check_parity(seat: str, workload: Workload) -> None:
    closed, opened, answers = SEATS[seat]
    expected = Simulation(workload, closed()).run()
    found = play(Simulation(workload, opened()), lambda decision: answers[decision.stage](decision))
    assert {stage for stage, _ in found.choices} == set(answers)
    np.testing.assert_array_equal(found.start_time, expected.start_time)
    np.testing.assert_array_equal(found.mode, expected.mode)


@pytest.fixture(scope="module")
def slice_of_kth(shared: Path) -> Workload:
    return read_swf(shared / "traces" / KTH[0]).fitting(KTH[1]).first(2000, skip=5000)


@pytest.mark.parametrize("seat", SEATS)
def test_parity_on_a_slice(seat: str, slice_of_kth: Workload) -> None:
    check_parity(seat, slice_of_kth)


@pytest.mark.slow
@pytest.mark.parametrize("seat", SEATS)
def test_parity_on_whole_kth(seat: str, shared: Path) -> None:
    check_parity(seat, read_swf(shared / "traces" / KTH[0]).fitting(KTH[1]))


@pytest.mark.slow
@pytest.mark.parametrize("seat", SEATS)
def test_parity_on_10_000_jobs_of_sdsc(seat: str, shared: Path) -> None:
    check_parity(seat, read_swf(shared / "traces" / SDSC[0]).fitting(SDSC[1]).first(10_000))


@pytest.mark.parametrize("walltime", ["run", "kill"])
def test_default_choice_is_the_closed_pipeline(walltime: Any, slice_of_kth: Workload) -> None:
    closed = Simulation(slice_of_kth, Pipeline(SJF(), Balanced(), None, EASY()), walltime=walltime).run()
    seats = Pipeline(External(SJF()), External(Balanced()), External(), External(EASY()))
    opened = play(Simulation(slice_of_kth, seats, walltime=walltime), default_choice)
    assert opened.hash == closed.hash


# --- random play and replay ------------------------------------------------------------------------------


def everything_open() -> Pipeline:
    return Pipeline(External(decline=True), External(), External(), External(decline=True), max_interval=300)


def play_at_random(workload: Workload, seed: int) -> Simulation:
    simulation = Simulation(workload, everything_open())
    play(simulation, RandomChoice(np.random.default_rng(seed)))
    return simulation


def test_replay_gives_the_random_play_again(slice_of_kth: Workload) -> None:
    workload = slice_of_kth.first(500)
    played = play_at_random(workload, seed=1).result()
    again = play(Simulation(workload, everything_open()), Replay(played.choices))
    for name in ("start_time", "end_time", "mode"):
        assert getattr(again, name).tobytes() == getattr(played, name).tobytes()
    assert again.choices == played.choices
    assert {stage for stage, _ in played.choices} == {"order", "inspector", "placement", "backfiller"}


def test_chance_follows_the_seed(slice_of_kth: Workload) -> None:
    workload = slice_of_kth.first(200)
    one, again, other = (play_at_random(workload, seed).result() for seed in (1, 1, 2))
    assert one.choices == again.choices
    assert one.hash == again.hash != other.hash


def test_random_choice_draws_every_option_alike() -> None:
    class Six:
        options = (1, 2, 3, 4, 5, 6)

    chooser = RandomChoice(np.random.default_rng(3))
    drawn = np.bincount([chooser(Six()) for _ in range(6000)], minlength=7)  # type: ignore[arg-type]
    assert drawn[0] == 0
    assert (abs(drawn[1:] - 1000) < 150).all()


TWO = Workload({"submit_time": [0, 0], "run_time": [9, 4], "nodes": [4, 4]}, machine_size=4)


@pytest.mark.parametrize(
    ("choices", "problem"),
    [
        ([("order", 1)], r"the record ends after 1 choices, at Decision\('order', t=0 s, 1 options\)"),
        ([("order", 2)], r"choice 1 of the record is option 2 of the order seat; it does not fit Decision"),
        ([("order", -1)], r"choice 1 of the record is option -1 of the order seat"),
        ([("backfiller", 0)], r"choice 1 of the record is option 0 of the backfiller seat"),
    ],
)
def test_replay_of_another_run_is_an_error(choices: list[tuple[str, int]], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        play(Simulation(TWO, Pipeline(order=External())), Replay(choices))
