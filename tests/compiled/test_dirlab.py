"""Schedules by the rules of the published simulators, equal with both programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.agents.rlbackfilling.settings import backfilling_environment
from hpcsimkit.compiled import loading, support
from hpcsimkit.compiled.orders import KEYS
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF, WFP3, RandomOrder
from hpcsimkit.policies.dirlab import ORDERS, FittingCandidates, PublishedEASY, published
from hpcsimkit.policies.oracles import Actual
from hpcsimkit.policies.predictions import LastTwo
from hpcsimkit.workloads import default_workload
from hpcsimkit.workloads.dirlab import read_published
from tests.compiled.test_equality import assert_equal_results, workloads

CONSTANT = st.sampled_from(list(KEYS)).map(lambda order: order())
PIPELINES = st.builds(
    Pipeline,
    CONSTANT,
    backfiller=st.none()
    | st.builds(
        PublishedEASY,
        st.none() | CONSTANT,
        relax=st.sampled_from([0.0, 0.1, 1.5]),
        skips_after_start=st.booleans(),
    ),
    commit=st.booleans(),
    estimates=st.sampled_from([None, Actual()]),
)

PUBLISHED = [
    published("rlbackfilling", "fcfs", backfilling=True, candidates=SJF()),
    published("schedinspector", "sjf", backfilling=True),
    published("rlscheduler", "f1", backfilling=True),
]


def check_random(jobs: Workload, policy: Pipeline, walltime: str) -> None:
    assert_equal_results(jobs, policy, walltime=walltime, event_order=DirlabOrder())


CASES = given(workloads(), PIPELINES, st.sampled_from(["run", "kill"]))
test_random_workloads = settings(max_examples=200)(CASES(check_random))
test_many_random_workloads = pytest.mark.slow(settings(max_examples=20_000)(CASES(check_random)))


@pytest.mark.parametrize("policy", [Pipeline(backfiller=PublishedEASY()), *PUBLISHED], ids=repr)
def test_many_jobs_end_together(policy: Pipeline) -> None:
    """Most ends share their instant with others, and many jobs wait, so that their order matters."""
    numbers = np.random.default_rng(8)
    for _ in range(60):
        columns = {
            "submit_time": np.cumsum(numbers.integers(0, 2, 50)),
            "run_time": numbers.integers(1, 6, 50),
            "requested_time": numbers.integers(1, 9, 50),
            "nodes": numbers.integers(1, 9, 50),
        }
        check_random(Workload(columns, machine_size=8), policy, "run")


@pytest.mark.slow
@pytest.mark.parametrize("log", ["lublin-1.swf", "SDSC-SP2-1998-4.2-cln.swf.gz", "HPC2N-2002-2.2-cln.swf.gz"])
@pytest.mark.parametrize(
    ("code", "order"),
    [(code, order) for code, names in ORDERS.items() for order in names if order != "multifactor"],
)
def test_a_real_log(code: Any, order: str, log: str, shared: Path) -> None:
    jobs = read_published(shared / "traces" / log, code).first(10_000)
    for policy in (
        published(code, order),
        published(code, order, backfilling=True),
        published(code, order, backfilling=True, candidates=SJF()),
    ):
        assert_equal_results(jobs, policy, event_order=DirlabOrder())


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Pipeline(WFP3()), r"the order WFP3\(\) is not compiled"),
        (Pipeline(RandomOrder()), r"the order RandomOrder\(\) is not compiled"),
        (published("schedinspector", "multifactor"), r"the order RecordedMultifactor\(\) is not compiled"),
        (published("rlscheduler", "sjf", inspector=Inspector()), "inspector"),
        (Pipeline(backfiller=FittingCandidates()), r"the backfiller FittingCandidates\(\) is not compiled"),
        (Pipeline(backfiller=PublishedEASY(WFP3())), r"the order of candidates WFP3\(\) is not compiled"),
        (Pipeline(estimates=LastTwo()), r"the estimates LastTwo\(\) is not compiled"),
        (Pipeline(window=3), "'fitting' or a window"),
        (Pipeline(fitting=True), "'fitting' or a window"),
    ],
)
def test_refuses_with_the_reason(policy: Pipeline, reason: str) -> None:
    jobs = Workload({"submit_time": [0], "run_time": [9], "nodes": [3]}, machine_size=4)
    simulation = Simulation(jobs, policy, event_order=DirlabOrder(), simulator="compiled")
    with pytest.raises(UsageError, match=f"the compiled simulator cannot run this: .*{reason}"):
        simulation.run()


def test_baselines_of_a_training_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once they have enough jobs together; observations and rewards remain the same."""
    log = default_workload(np.random.default_rng(3), jobs=900, load=1.1)
    taken, real = [], support.run
    monkeypatch.setattr(support, "run", lambda simulation: taken.append(1) or real(simulation))

    def played(least: int) -> list[Any]:
        monkeypatch.setattr(loading, "least_jobs", lambda kind: least)
        environment, found = backfilling_environment(log), []
        for seed in range(3):
            found.append(environment.reset(seed=seed)[0])
            over = False
            while not over:
                observation, reward, over, _, _ = environment.step(0)
                found += [observation, reward]
        return found

    by_kernel = played(2**62)
    assert not taken
    for one, other in zip(by_kernel, played(0), strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(taken) >= 3
