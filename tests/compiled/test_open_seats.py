"""Decisions, observations, rewards and schedules at an open seat, equal with both simulators."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.compiled.orders import KEYS
from hpcsimkit.errors import HpcsimkitError, PolicyError, StalledError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import Decision, External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.stalls import IDLE_WAKES
from hpcsimkit.policies.dirlab import FittingCandidates, PublishedEASY
from hpcsimkit.policies.oracles import Actual
from hpcsimkit.policies.predictions import ShortestPredicted
from tests.compiled.test_equality import COLUMNS, workloads

ORDERS = st.none() | st.sampled_from(list(KEYS)).map(lambda order: order())
ESTIMATES = st.sampled_from([None, Actual()])
CANDIDATES = st.none() | st.builds(ShortestPredicted) | ORDERS
LIMITS = {
    "max_interval": st.none() | st.sampled_from([1, 5, 600]),
    "max_rejections": st.none() | st.integers(0, 3),
}
FITTING = st.builds(
    FittingCandidates,
    guarded=st.booleans(),
    relax=st.sampled_from([0.0, 0.1, 1.5]),
    slots=st.sampled_from([1, 2, 128]),
)


WINDOWS = st.none() | st.sampled_from([1, 3, 16])


def opened(base: Any) -> Any:
    return st.builds(External, base, decline=st.booleans(), skip=st.booleans())


def at_order(backfillers: Any, commit: Any) -> Any:
    parts = {"backfiller": backfillers, "commit": commit, "window": WINDOWS, "estimates": ESTIMATES}
    return st.builds(Pipeline, opened(ORDERS), **parts, **LIMITS)


def at_inspector(backfillers: Any, commit: Any) -> Any:
    parts = {
        "inspector": opened(st.none() | st.just(Inspector())),
        "backfiller": backfillers,
        "commit": commit,
    }
    return st.builds(Pipeline, ORDERS, **parts, estimates=ESTIMATES, **LIMITS)


def at_backfiller(bases: Any, commit: Any) -> Any:
    parts = {"backfiller": opened(bases), "commit": commit, "window": WINDOWS, "estimates": ESTIMATES}
    return st.builds(Pipeline, ORDERS, **parts, max_candidates=WINDOWS, **LIMITS)


NEVER = st.just(False)
BY_EASY = st.builds(EASY, CANDIDATES)
BY_PUBLICATION = st.builds(
    PublishedEASY, ORDERS, relax=st.sampled_from([0.0, 0.5]), skips_after_start=st.booleans()
)
TEXTBOOK = st.one_of(
    at_backfiller(st.none() | BY_EASY | FITTING, NEVER),
    at_inspector(st.none() | BY_EASY, NEVER),
    at_order(st.none() | BY_EASY, NEVER),
)
PUBLISHED = st.one_of(
    at_backfiller(FITTING, st.booleans()),
    at_inspector(st.none(), st.booleans()),
    at_inspector(BY_PUBLICATION, st.just(True)),
    at_order(st.none(), st.booleans()),
    at_order(BY_PUBLICATION, st.just(True)),
)


class Witness(Observer):
    """Record of everything that an observer may be told by a compiled run."""

    reads_compiled = True

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_begin(self, system: Any) -> None:
        self.seen.append(("begin", system.now, system.seed, system.stands_still))

    def on_submit(self, job: Any, system: Any) -> None:
        self.seen.append(("submit", system.now, job.index))

    def on_start(self, job: Any, allocation: Any, system: Any) -> None:
        self.seen.append(("start", system.now, job.index, allocation))

    def on_end(self, job: Any, system: Any) -> None:
        self.seen.append(("end", system.now, job.index, system.start_time(job), system.given(job.index)))

    def on_finish(self, system: Any) -> None:
        self.seen.append(
            (
                "finish",
                system.now,
                *(getattr(system.ledger, each).tolist() for each in ("start_time", "end_time", "mode")),
            )
        )


def shown(decision: Decision, order: bool) -> list[Any]:
    """Return all that a decision shows; an order's default reads the queue once more."""
    system = decision.system
    rows = [
        option if option is None or isinstance(option, bool) else option.index for option in decision.options
    ]
    default = decision.default
    return [
        decision.stage,
        decision.partition,
        None if decision.job is None else decision.job.index,
        rows,
        default if isinstance(default, bool) else default.index,
        (system.now, system.free, system.passes, system.arrivals_left, system.anything_ahead),
        [job.index for job in system.queue],
        (
            len(system.queue),
            system.queue.first().index,
            len(system.running),
            system.running.overrun(system.now),
        ),
        [(job.index, system.estimate(job), system.fits(job), job in system.queue) for job in system.jobs],
        [system.estimator.prediction(job) for job in system.jobs],
        list(system.running.entries),
        list(system.running.rows),
        dict(system.holds),
        system.ledger.start_time.tolist(),
        system.ledger.end_time.tolist(),
        repr(decision),
    ]


def played(jobs: Workload, policy: Pipeline, simulator: Any, answers: int, **options: Any) -> list[Any]:
    """Return all that happens in a run with random answers, to its end or its error."""
    rng, witness = np.random.default_rng(answers), Witness()
    simulation = Simulation(jobs, policy, observers=[witness], **options)
    simulation.pause_with(simulator, [])
    happened: list[Any] = []
    try:
        while (decision := simulation.next_decision()) is not None and len(happened) < 300:
            happened.append(shown(decision, policy.order is not None))
            choice = int(rng.integers(len(decision.options)))
            simulation.answer_position(choice)
    except HpcsimkitError as error:
        return [*happened, type(error), str(error), witness.seen]
    if decision is not None:
        return [*happened, witness.seen]
    result = simulation.result()
    assert result.simulator == ("compiled" if simulator == "compiled" else "simpy")
    columns = [getattr(result, column).tolist() for column in COLUMNS]
    return [*happened, witness.seen, columns, result.passes, result.choices, result.options]


def check_equal(jobs: Workload, policy: Pipeline, answers: int, **options: Any) -> None:
    reference = played(jobs, policy, "simpy", answers, **options)
    found = played(jobs, policy, "compiled", answers, **options)
    for one, other in zip(found, reference, strict=True):
        assert one == other


def check_textbook(jobs: Workload, policy: Pipeline, answers: int, walltime: Any) -> None:
    check_equal(jobs, policy, answers, walltime=walltime)


def check_published(
    jobs: Workload, policy: Pipeline, answers: int, walltime: Any, following: int | None
) -> None:
    check_equal(jobs, policy, answers, walltime=walltime, event_order=DirlabOrder(following))


ANSWERS, LIMIT = st.integers(0, 2**32), st.sampled_from(["run", "kill"])
TEXTBOOK_CASES = given(workloads(), TEXTBOOK, ANSWERS, LIMIT)
PUBLISHED_CASES = given(workloads(), PUBLISHED, ANSWERS, LIMIT, st.none() | st.sampled_from([0, 50, 10_000]))
test_textbook_seats = settings(max_examples=200)(TEXTBOOK_CASES(check_textbook))
test_published_seats = settings(max_examples=200)(PUBLISHED_CASES(check_published))
test_many_textbook_seats = pytest.mark.slow(settings(max_examples=10_000)(TEXTBOOK_CASES(check_textbook)))
test_many_published_seats = pytest.mark.slow(settings(max_examples=10_000)(PUBLISHED_CASES(check_published)))


def accepting(job: int, simulation: Simulation) -> int:
    """Accept one job only; return the number of decisions until the simulation gives up."""
    made = 0
    with contextlib.suppress(StalledError):
        while (decision := simulation.next_decision()) is not None:
            made += 1
            assert decision.job is not None
            simulation.answer_position(0 if decision.job.id == job else 1)
    return made


def test_requested_passes_in_vain_are_counted_from_the_last_start() -> None:
    """The second job is rejected for ever, after the first one: both simulators give up at the same time."""
    jobs = Workload({"submit_time": [0, 0], "run_time": [5, 5], "nodes": [1, 1]}, machine_size=1)
    simulators: Any = ("simpy", "compiled")
    found = []
    for simulator in simulators:
        policy = Pipeline(inspector=External(), max_interval=7, max_rejections=2 * IDLE_WAKES)
        simulation = Simulation(jobs, policy, event_order=DirlabOrder())
        simulation.pause_with(simulator, [])
        found.append(accepting(int(jobs.id[0]), simulation))
    assert found[0] == found[1]
    assert IDLE_WAKES < found[0] < IDLE_WAKES + 9


class FailsLate(Observer):
    """An observer that fails once a job has ended."""

    reads_compiled = True

    def on_end(self, job: Any, system: Any) -> None:
        raise ValueError(f"job {job.id}")


@pytest.mark.parametrize("simulator", ["simpy", "compiled"])
def test_errors_name_the_time_of_what_went_wrong(simulator: Any) -> None:
    """Those of an observer that of the event it hears of; what an agent does between decisions, that of the last."""
    jobs = Workload({"submit_time": [0, 3, 3], "run_time": [9, 5, 5], "nodes": [2, 2, 2]}, machine_size=2)
    simulation = Simulation(jobs, Pipeline(External()), name="mine", observers=[FailsLate()])
    simulation.pause_with(simulator, [])
    for now in (0, 3):
        decision = simulation.next_decision()
        assert decision is not None and simulation.guard.subject == f"mine at t={now} s"
        simulation.answer(decision.default)
    with pytest.raises(PolicyError, match=r"^mine at t=9 s, in FailsLate for job 1: ValueError: job 1"):
        simulation.next_decision()
