"""Begin times and holds: equal schedules, and reasons of waiting, on both simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.calendar import Calendar, Window
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.gate import Gate
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds
from hpcsimkit.kernel.simulation import Simulation
from tests.compiled.test_equality import assert_equal_schedules, long_queue, uncompiled, workloads
from tests.compiled.test_stops import preemptors
from tests.drawn import examples

ORDERS = ["fcfs", "lcfs", "sjf", "wfp3", "fcfs+window(3)", "slurm", "random"]
BACKFILLING = ["none", "easy", "easy-noise", "easy++", "fitting", "easy-k(3)", "conservative"]
BOTH = (Holds(), BeginTimes())


@st.composite
def held(draw: Any) -> Workload:
    """Jobs with begin times, holds, or both, some of which are over before they are submitted."""
    jobs = draw(workloads())
    numbers, last = np.random.default_rng(draw(st.integers(0, 2**32))), int(jobs.submit_time.max()) + 60
    columns = draw(st.sampled_from([("begin_time",), ("hold_until",), ("begin_time", "hold_until")]))
    times = {
        name: np.where(numbers.random(len(jobs)) < 0.5, -1, numbers.integers(0, last, len(jobs)))
        for name in columns
    }
    return Workload({**jobs.columns, **times}, machine_size=jobs.machine_size)


OTHERS: Any = st.sampled_from(
    [
        {},
        {},
        {"calendar": Calendar([Window(20, 60, 1), Window(100, 130, 1)])},
        {"outages": Outages([Outage(30, 50), Outage(120, 140, position=0.0)])},
        {"cluster": "machines"},
    ]
)


def check(jobs: Workload, order: str, backfilling: str, preemptor: str, options: Any, seed: int) -> None:
    order = order.partition("+")[0] if backfilling == "fitting" else order
    policy = f"{order}+{backfilling}"
    if "outages" in options:
        simple = order not in ("slurm", "random") and backfilling in ("none", "easy", "easy-k(3)")
        policy = f"{policy}+{preemptor}" if simple else "fcfs+conservative"
    elif "cluster" in options:
        options = {"cluster": Machines.of(jobs.machine_size, cpus=1)}
    assert_equal_schedules(jobs, make(policy), gates=BOTH, seed=seed, **options)


CASES = given(
    held(), st.sampled_from(ORDERS), st.sampled_from(BACKFILLING), preemptors(), OTHERS, st.integers(0, 9)
)
test_random_holds = uncompiled(examples(6)(CASES(check)))
test_many_random_holds = pytest.mark.slow(settings(max_examples=10_000)(CASES(check)))


def test_a_long_queue() -> None:
    """Compiled."""
    jobs = long_queue(1500)
    times = np.random.default_rng(3).integers(-1, 4000, len(jobs))
    held = Workload({**jobs.columns, "begin_time": times}, machine_size=64)
    found, _ = assert_equal_schedules(held, make("fcfs+easy"), gates=(BeginTimes(),))
    assert found.held is not None and (found.start_time >= times).all()


class OwnGate(Gate):
    """A gate of a user's class."""


@pytest.mark.parametrize(
    ("policy", "gates", "reason"),
    [
        ("random", (ArrayLimits(), BeginTimes()), "it knows no RandomOrder() with ArrayLimits"),
        ("fcfs", (OwnGate(),), "it knows no gates, found (OwnGate(),)"),
        ("oracle-srtf", (BeginTimes(),), "it knows no gates"),
    ],
)
def test_refuses_with_the_reason(policy: str, gates: tuple[Gate, ...], reason: str) -> None:
    columns = {"begin_time": [5, -1], "array_job": [1, 1], "array_limit": [1, 1]}
    jobs = Workload({"submit_time": [0, 1], "run_time": [9, 4], "nodes": [3, 2], **columns}, machine_size=8)
    with pytest.raises(UsageError, match="the compiled simulator cannot run this: ") as error:
        Simulation(jobs, make(policy), gates=gates, simulator="compiled").run()
    assert reason in str(error.value)
