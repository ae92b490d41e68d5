"""Decisions on pairs of jobs and machines, and all that they show, equal with both simulators."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled.orders import KEYS, ONE_BY_ONE
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.policy import Placement
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import FCFS, SJF, WFP3
from hpcsimkit.policies.one_seat.dispatch import Dispatch, PairDecision
from tests.compiled.test_equality import COLUMNS
from tests.compiled.test_machines import assert_equal_placements
from tests.compiled.test_open_seats import ANSWERS, LIMIT, Witness
from tests.kernel.machine_cases import cases
from tests.kernel.machine_helpers import Asked, asked, jobs_on_machines


def shown(decision: PairDecision) -> list[Any]:
    """Return all that a decision shows."""
    system = decision.system
    return [
        (decision.stage, decision.partition, decision.job, repr(decision)),
        (decision.rows.tolist(), decision.numbers.tolist(), decision.valid.tolist()),
        (decision.valid.dtype, decision.valid.flags.c_contiguous, decision.waiting_and_fitting),
        [(job.index, machine) for job, machine in decision.options],
        (decision.default[0].index, decision.default[1], [job.index for job in decision.jobs]),
        (system.now, system.passes, system.arrivals_left, system.anything_ahead, list(system.ended)),
        (system.free.tolist(), system.free.dtype, system.free.flags.f_contiguous),
        ([job.index for job in system.queue], len(system.queue), system.queue.first().index),
        system.queue.table.tolist(),
        (len(system.running), system.running.overrun(system.now), list(system.running.rows)),
        list(system.running.entries),
        list(system.events),
        [(job.index, system.estimate(job), system.fits(job), job in system.queue) for job in system.jobs],
        [system.given(row) for row in range(len(system.jobs))],
        system.ledger.start_time.tolist(),
        system.ledger.end_time.tolist(),
    ]


def played(
    jobs: Workload, policy: Dispatch, cluster: Machines, simulator: Any, answers: int, walltime: Any
) -> Any:
    """Return all that happens in a run with random answers, and its result."""
    rng, witness = np.random.default_rng(answers), Witness()
    simulation = Simulation(jobs, policy, cluster, walltime=walltime, observers=[witness])
    simulation.pause_with(simulator, [])
    happened: list[Any] = []
    while (decision := simulation.next_decision()) is not None:
        assert isinstance(decision, PairDecision)
        happened.append(shown(decision))
        simulation.answer_position(int(rng.integers(len(decision.options))))
    result = simulation.result()
    assert result.simulator == simulator
    columns = [getattr(result, column).tolist() for column in COLUMNS]
    return [
        *happened,
        witness.seen,
        columns,
        result.passes,
        result.choices,
        result.options,
    ], result.placements


def assert_equal_runs(
    jobs: Workload, policy: Dispatch, cluster: Machines, answers: int, walltime: Any = "run"
) -> None:
    found, placements = played(jobs, policy, cluster, "compiled", answers, walltime)
    reference, expected = played(jobs, policy, cluster, "simpy", answers, walltime)
    for one, other in zip(found, reference, strict=True):
        assert one == other
    assert_equal_placements(placements, expected)


def check(
    case: tuple[Machines, list[Asked]],
    constraints: list[str],
    policy: Dispatch,
    answers: int,
    walltime: Any,
) -> None:
    cluster, wanted = case
    constrained = zip(wanted, [*constraints, *[""] * len(wanted)], strict=False)
    jobs = jobs_on_machines([replace(job, constraint=constraint) for job, constraint in constrained])
    jobs = jobs.without(cluster.misfits(jobs), "fits no machine with its constraint")
    if len(jobs):
        assert_equal_runs(jobs, policy, cluster, answers, walltime)


ORDERS = st.none() | st.sampled_from([order for order in KEYS if order not in ONE_BY_ONE])
POLICIES = st.builds(
    Dispatch,
    st.builds(External, skip=st.booleans()),
    st.sampled_from([1, 2, 5, 128]),
    ORDERS.map(lambda order: order and order()),
    distinct=st.booleans(),
)
CONSTRAINTS = st.lists(st.sampled_from(["", "", "a", "b", "a&b"]), max_size=20)
CASES = given(cases(["one machine"], most=20), CONSTRAINTS, POLICIES, ANSWERS, LIMIT)
test_random_workloads = settings(max_examples=100)(CASES(check))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


@pytest.mark.parametrize("distinct", [False, True])
def test_long_queues(distinct: bool) -> None:
    """Many blocks of waiting jobs, more than there are slots, of few distinct requests."""
    rng, count = np.random.default_rng(3), 150
    cluster = Machines.of(3, cpus=16, memory="64 GB") + Machines.of(1, "gpu", cpus=16, gpus=2, memory="64 GB")
    columns = {
        "submit_time": np.sort(rng.integers(0, 750, count)),
        "run_time": rng.integers(0, 500, count),
        "requested_time": rng.choice([300, 600], count),
        "nodes": np.ones(count),
        "cpus": rng.choice([1, 4, 16], count),
        "gpus": rng.choice([0, 0, 0, 1], count),
        "memory": rng.choice([1, 30], count) * 10**9,
    }
    jobs = Workload(columns, resources=("cpus", "gpus", "memory"))
    assert_equal_runs(
        jobs, Dispatch(External(), slots=40, order=SJF(), distinct=distinct), cluster, answers=1
    )


ONE = jobs_on_machines([asked(0, 5, cpus=1), asked(0, 5, cpus=1)])
TWO = Machines.of(2, cpus=2)


@pytest.mark.parametrize(
    ("jobs", "policy", "cluster", "options", "reason"),
    [
        (ONE, Dispatch(External(), 2, WFP3()), TWO, {}, "the order WFP3() is not compiled with an open seat"),
        (
            ONE,
            Dispatch(External(Placement()), 2),
            TWO,
            {},
            "External(base=Placement()) at the seat of a dispatch",
        ),
        (
            ONE,
            Dispatch(External(), 2),
            4,
            {},
            "a dispatch is compiled on machines only, found Nodes(count=4)",
        ),
        (
            jobs_on_machines([asked(0, 5, cpus=1, nodes=2)]),
            Dispatch(External(), 2, FCFS()),
            TWO,
            {},
            "a dispatch needs jobs that share one machine each",
        ),
        (ONE, Dispatch(External(), 2), TWO, {"period": 5}, "it knows no period, found 5"),
        (ONE, Dispatch(External(), 2), TWO, {"event_order": DirlabOrder()}, "by the rules 'dirlab'"),
    ],
)
def test_what_is_not_compiled(
    jobs: Workload, policy: Dispatch, cluster: Any, options: dict[str, Any], reason: str
) -> None:
    simulation = Simulation(jobs, policy, cluster, **options)
    simulation.pause_with("compiled", [])
    with pytest.raises(UsageError) as error:
        simulation.next_decision()
    assert reason in str(error.value)
