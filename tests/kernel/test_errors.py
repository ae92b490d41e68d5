"""Policies that break the rules: one line that says which job, when, and what was needed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.opaque import Level
from hpcsimkit.errors import HpcsimkitError, PolicyError, ScheduleError, StalledError, UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Backfiller, Inspector, Order, Placement, Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, SJF
from tests.kernel.helpers import starts, workload

ROWS = [(5, 10, 10, 3), (7, 10, 10, 3), (8, 2, 2, 1)]
"""Four nodes: job 1 runs from 5, job 2 does not fit beside it, job 3 does."""


class OwnPolicy(Policy):
    """Runs a function as its pass."""

    def __init__(self, act: Callable[[System], Any]) -> None:
        self.act = act

    def schedule(self, system: System) -> Any:
        return self.act(system)


def start_twice(system: System) -> None:
    job = system.queue.first()
    system.start(job)
    system.start(job)


def start_the_future(system: System) -> None:
    system.start(system.jobs[2])


def start_what_ended(system: System) -> None:
    if system.now < 15:
        return start_all(system)
    return system.start(system.jobs[0])


def start_all(system: System) -> None:
    for job in system.queue:
        if system.fits(job):
            system.start(job)


def start_blindly(system: System) -> None:
    for job in system.queue:
        system.start(job)


def take_too_little(system: System) -> None:
    system.start(system.queue.first(), 1)


def take_what_is_gone(system: System) -> None:
    for job in system.queue:
        system.start(job, job.nodes)


def start_rejected(system: System) -> None:
    job = system.queue.first()
    system.reject(job)
    system.start(job)


def reject_twice(system: System) -> None:
    job = system.queue.first()
    system.reject(job)
    system.reject(job)


def wake_the_past(system: System) -> None:
    system.wake(system.now)


def raise_something(system: System) -> None:
    raise KeyError("no such\nthing")


def do_nothing(system: System) -> None:
    return None


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (start_twice, ScheduleError, "job 1 at t=5 s cannot start: it must be waiting; it started at t=5 s"),
        (
            start_the_future,
            ScheduleError,
            "job 3 at t=5 s cannot start: it must be waiting; it is submitted at t=8 s",
        ),
        (
            start_what_ended,
            ScheduleError,
            "job 1 at t=15 s cannot start: it must be waiting; it started at t=5 s",
        ),
        (start_blindly, ScheduleError, "job 2 at t=7 s needs 3 nodes; 1 are free"),
        (take_too_little, ScheduleError, "job 1 at t=5 s: 1 does not lie within what is free, or is not"),
        (take_what_is_gone, ScheduleError, "job 2 at t=7 s needs 3 nodes; 1 are free"),
        (start_rejected, ScheduleError, "job 1 at t=5 s cannot start: it must be waiting; it was rejected"),
        (reject_twice, ScheduleError, "job 1 at t=5 s .*rejected"),
        (wake_the_past, ScheduleError, "t=5 s"),
        (do_nothing, StalledError, "stalled at t=8 s: 3 jobs wait.* job 1 needs 3 nodes; 4 are free"),
    ],
)
def test_broken_rules(act: Callable[[System], Any], error: type[HpcsimkitError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        starts(workload(ROWS, 4), OwnPolicy(act))
    assert "\n" not in str(caught.value)
    assert not re.match(r"at t=\d+ s: .* t=\d+ s", str(caught.value)), "the time is told once"


def test_a_broken_rule_without_a_time_gets_the_time_of_the_run() -> None:
    def breaks(system: System) -> None:
        raise ScheduleError("job 7 is no job of this run")

    with pytest.raises(ScheduleError, match=r"^at t=5 s: job 7 is no job of this run$"):
        starts(workload(ROWS, 4), OwnPolicy(breaks))


def test_what_a_policy_raises_becomes_one_line_with_time_and_place() -> None:
    with pytest.raises(PolicyError) as caught:
        starts(workload(ROWS, 4), OwnPolicy(raise_something))
    line = str(caught.value)
    assert re.search(r"t=5 s\b.*KeyError: .*no such.*thing.*\(.*test_errors\.py:\d+\)$", line)
    assert "\n" not in line


class KeyRaises(Order):
    def key(self, job: Job) -> Any:
        return 1 / (job.id - 2)


class ScoresRaise(Order):
    def scores(self, jobs: Any, now: int) -> Any:
        return jobs.nodes / "2"


class Ambitious(Exception):  # noqa: N818 - it is the user's
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


class KeyRaisesItsOwn(Order):
    def key(self, job: Job) -> Any:
        raise Ambitious(1, 2)


class InspectorRaises(Inspector):
    def accept(self, job: Job, system: System) -> bool:
        raise ValueError("no")


class PlacementRaises(Placement):
    def place(self, job: Job, level: Level, system: System) -> Any:
        raise ValueError("no")


class FillRaises(Backfiller):
    def fill(self, head: Job, system: System) -> Any:
        raise ValueError("no")


@pytest.mark.parametrize(
    ("policy", "time", "what"),
    [
        (Pipeline(order=KeyRaises()), 7, "ZeroDivisionError: division by zero"),
        (Pipeline(order=ScoresRaise()), 8, "UFuncNoLoopError|UFuncTypeError|TypeError"),
        (Pipeline(order=KeyRaisesItsOwn()), 5, "Ambitious: 1 and 2"),
        (Pipeline(inspector=InspectorRaises()), 5, "ValueError: no"),
        (Pipeline(placement=PlacementRaises()), 5, "ValueError: no"),
        (Pipeline(backfiller=FillRaises()), 7, "ValueError: no"),
    ],
    ids=lambda value: repr(value) if isinstance(value, Policy) else "",
)
def test_what_a_stage_raises_names_the_line_of_the_stage(policy: Policy, time: int, what: str) -> None:
    with pytest.raises(PolicyError, match=rf"t={time} s\b.*({what}).*test_errors\.py:\d+") as caught:
        starts(workload(ROWS, 4), policy)
    assert "\n" not in str(caught.value)


class NotANumber(Order):
    def key(self, job: Job) -> float:
        return float("nan")


class ScoresOf(Order):
    """Returns whatever a function makes of the number of jobs."""

    def __init__(self, make: Callable[[int], Any]) -> None:
        self.make = make

    def scores(self, jobs: Any, now: int) -> Any:
        return self.make(len(jobs))


def test_a_key_that_is_not_a_number() -> None:
    with pytest.raises(ScheduleError, match=r"job 1 at t=5 s: .*not a number"):
        starts(workload(ROWS, 4), Pipeline(order=NotANumber()))


@pytest.mark.parametrize(
    "make",
    [lambda n: np.full(n, np.nan), lambda n: np.zeros(n + 1), lambda n: np.zeros((n, 1)), lambda n: 0.0],
    ids=["nan", "too many", "two dimensions", "one number"],
)
def test_scores_of_the_wrong_shape(make: Callable[[int], Any]) -> None:
    """Two jobs wait from 8 on; a single one needs no scores."""
    with pytest.raises(ScheduleError, match="t=8 s: needs one score for each of 2 jobs"):
        starts(workload(ROWS, 4), Pipeline(order=ScoresOf(make)))


def test_infinite_scores_are_scores() -> None:
    assert starts(workload(ROWS, 4), Pipeline(order=ScoresOf(lambda n: np.full(n, -np.inf)))) == [5, 15, 15]


class Yields(Backfiller):
    """Yields jobs that may not start."""

    def __init__(self, which: str) -> None:
        self.which = which

    def fill(self, head: Job, system: System) -> Any:
        if self.which == "head":
            yield head
        for job in system.queue:
            if job is not head:
                yield from [job, job]


@pytest.mark.parametrize(
    ("which", "message"),
    [
        ("head", "job 2 at t=7 s needs 3 nodes; 1 are free"),
        ("twice", "job 3 at t=8 s cannot start: .*started at t=8 s"),
    ],
)
def test_backfillers_are_watched_too(which: str, message: str) -> None:
    with pytest.raises(ScheduleError, match=message):
        starts(workload(ROWS, 4), Pipeline(backfiller=Yields(which)))


def test_a_job_larger_than_the_machine() -> None:
    with pytest.raises(ScheduleError, match=r"^job 2 needs 9 nodes; the cluster has 4$"):
        Simulation(workload([(0, 1, 1, 4), (0, 1, 1, 9)], 4), Pipeline())
    assert starts(workload([(0, 1, 1, 4), (0, 1, 1, 9)], 4), Pipeline(), cluster=9) == [0, 1]


@pytest.mark.parametrize(
    ("option", "value"),
    [("walltime", "maybe"), ("period", 0), ("period", -3), ("period", 1.5), ("period", "3"), ("seed", -1),
     ("cluster", 0), ("cluster", 2.0), ("cluster", True), ("cluster", "4")],
)  # fmt: skip
def test_options_not_understood(option: str, value: Any) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(value))):
        starts(workload(ROWS, 4), Pipeline(), **{option: value})


def test_no_machine_size() -> None:
    with pytest.raises(UsageError, match="no machine size"):
        Simulation(workload(ROWS, None), Pipeline())  # type: ignore[arg-type]


@pytest.mark.parametrize("policy", [None, 5, Pipeline])
def test_what_is_no_policy(policy: Any) -> None:
    with pytest.raises(
        UsageError, match=r"a policy, a stage of a pipeline or the name of a policy is needed"
    ):
        Simulation(workload(ROWS, 4), policy)


def test_a_name_that_is_no_policy() -> None:
    with pytest.raises(UsageError, match="fcfss"):
        Simulation(workload(ROWS, 4), "fcfss")


@pytest.mark.parametrize(
    "policy",
    [
        lambda: Pipeline(order=SJF),
        lambda: Pipeline(backfiller=EASY),
        lambda: Pipeline(order=EASY()),
        lambda: Pipeline(backfiller=SJF()),
        lambda: Pipeline(window=0),
        lambda: Pipeline(window=-1),
        lambda: Pipeline(inspector=Inspector(), max_interval=0),
    ],
    ids=["class order", "class backfiller", "easy as order", "order as backfiller", "window 0", "window -1", "interval 0"],
)  # fmt: skip
def test_pipelines_that_make_no_sense_say_so(policy: Callable[[], Pipeline]) -> None:
    """One line that names what was wrong, before or at the first pass; never a schedule."""
    with pytest.raises(HpcsimkitError, match=r"order|backfiller|window|max_interval") as caught:
        starts(workload(ROWS, 4), policy())
    assert isinstance(caught.value, UsageError)


def test_a_copy_of_a_job_is_the_job() -> None:
    """Policies that plan ahead hold jobs of the workload they were given; equal is good enough."""

    def start_copies(system: System) -> None:
        for job in system.queue:
            if system.fits(job):
                system.start(job._replace())

    assert starts(workload(ROWS, 4), OwnPolicy(start_copies)) == [5, 15, 8]


def test_schedule_must_be_written() -> None:
    with pytest.raises(UsageError, match=r"needs a method schedule\(system\)"):
        starts(workload(ROWS, 4), Policy())
    with pytest.raises(UsageError, match=r"needs a method fill\(head, system\)"):
        starts(workload(ROWS, 4), Pipeline(backfiller=Backfiller()))
