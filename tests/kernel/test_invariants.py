"""What must hold on every workload, for every policy of the registry: random workloads look for a way around it."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit.experiments.parts.catalogue import entries
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.reservation import reserve
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.helpers import deep, rows_and_size, run, starts, workload

INSTALLED = [entry for entry in entries() if entry.name != "boosting" or find_spec("sklearn")]
NAMES = {
    kind: [entry.name for entry in INSTALLED if entry.kind == kind] for kind in {e.kind for e in INSTALLED}
}
EXTRAS = ["", "+commit", "+window(2)", "+hold-unfit", "+commit+window(3)"]
OWN_ESTIMATES = {"easy-ar", "easy-noise", "easy++"}
SIMULATES = ("looking-ahead", "guarded")
"""The orders that simulate other orders: seconds a run, so not drawn among the others."""

ORACLES = ("oracle-sjf", "oracle-saf", "easy-ar", "easy-noise", "actual", "noisy")


@st.composite
def policies(draw: st.DrawFn, oracles: bool = True) -> str:
    """Draw a pipeline by name: any order with any backfilling, options, estimates."""

    def names(kind: str) -> list[str]:
        return [name for name in NAMES[kind] if oracles or name not in ORACLES]

    order = draw(st.sampled_from(names("order")))
    backfilling = draw(st.sampled_from(names("backfilling")))
    extra = draw(st.sampled_from(EXTRAS))
    if backfilling not in OWN_ESTIMATES and draw(st.booleans()):
        extra += "+" + draw(st.sampled_from(names("estimates")))
    return f"{order}+{backfilling}{extra}"


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "walltime": draw(st.sampled_from(["run", "kill"])),
        "dependencies": draw(st.booleans()),
        "period": draw(st.sampled_from([None, None, 3])),
        "seed": draw(st.integers(0, 3)),
    }


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    rows, size = draw(rows_and_size())
    jobs = len(rows)

    def column(values: st.SearchStrategy[int]) -> list[int]:
        return draw(st.lists(values, min_size=jobs, max_size=jobs))

    return workload(
        rows, size,
        user=column(st.integers(-1, 2)), queue=column(st.integers(0, 1)),
        preceding=column(st.sampled_from([-1, -1, 1, 2, 3, 4])), think_time=column(st.integers(-1, 3)),
    )  # fmt: skip


class Capacity(Observer):
    """Counts nodes by itself, at every event."""

    def on_begin(self, system: System) -> None:
        self.busy = 0
        self.told: list[tuple[str, int]] = []

    def on_submit(self, job: Job, system: System) -> None:
        self.told.append(("submit", job.id))
        assert system.now == job.submit_time

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        self.told.append(("start", job.id))
        self.busy += job.nodes
        assert self.busy <= system.cluster.size
        assert self.busy + system.free == system.cluster.size
        assert system.now >= job.submit_time

    def on_end(self, job: Job, system: System) -> None:
        self.told.append(("end", job.id))
        self.busy -= job.nodes
        assert system.now == system.start_time(job) + job.run_time
        assert self.busy + system.free == system.cluster.size


def check_schedule(result: Result, told: list[tuple[str, int]]) -> None:
    """Each job is submitted, started and ended once, in that order; node-seconds are conserved."""
    jobs = result.workload
    assert sorted(told) == sorted(
        (what, job) for what in ("submit", "start", "end") for job in jobs.id.tolist()
    )
    place = {what: row for row, what in enumerate(told)}
    for job in jobs.id.tolist():
        assert place["submit", job] < place["start", job] < place["end", job]
    assert (result.start_time >= result.submit_time).all()
    assert (result.end_time == result.start_time + jobs.run_time).all()
    timeline = result.timeline()
    used = float(np.dot(timeline.busy[:-1], np.diff(timeline.time))) if len(timeline) else 0.0
    assert used == float(np.dot(jobs.run_time, jobs.nodes))
    assert (timeline.busy <= result.size).all()


@given(jobs=workloads(), name=policies(), how=options(), limit=st.sampled_from([200, 2]))
def test_rules_of_the_machine(jobs: Workload, name: str, how: dict[str, Any], limit: int) -> None:
    told = Capacity()
    with deep(limit):
        result = run(jobs, name, observers=[told], **how)
    check_schedule(result, told.told)
    if how["period"]:
        assert not (result.start_time % how["period"]).any()
    if not how["dependencies"]:
        np.testing.assert_array_equal(result.submit_time, jobs.submit_time)


@given(jobs=workloads(), other=workloads(), name=policies(), how=options())
def test_same_seed_same_schedule_whatever_ran_before(
    jobs: Workload, other: Workload, name: str, how: dict[str, Any]
) -> None:
    """A policy object may be used again: a run leaves nothing in it."""
    policy = make(name)
    before = repr(policy)
    first = starts(jobs, policy, **how)
    run(other, policy, **{**how, "seed": 9})
    assert starts(jobs, policy, **how) == first == starts(jobs, name, **how)
    assert repr(policy) == before


def test_another_seed_another_schedule() -> None:
    """Random orders and noise follow the seed: not all of ten seeds agree."""
    equals = workload([(0, 5, 9, 2)] * 6 + [(1, 3, 3, 1)] * 6, 3)
    backfilled = workload([(0, 10, 10, 3), (1, 5, 5, 4), (2, 6, 6, 1)], 4)
    for name, jobs in {"random": equals, "random-fit": equals, "fcfs+easy-noise(5)": backfilled}.items():
        assert len({tuple(starts(jobs, name, seed=seed)) for seed in range(10)}) > 1


class PromisingEASY(EASY):
    """EASY that writes down the first reservation of every head."""

    promised: ClassVar[dict[int, int]] = {}

    def fill(self, head: Job, system: System) -> Any:
        self.promised.setdefault(head.index, reserve(head, system)[0])
        return super().fill(head, system)


@pytest.mark.parametrize(
    "name", ["fcfs", "sjf+commit", "laf+commit", "wfp3+commit", "fcfs+easy-sjf", "lcfs+easy-bestfit+commit"]
)
@examples(0.8)
@given(drawn=rows_and_size())
def test_easy_never_delays_the_reserved_job(name: str, drawn: Any) -> None:
    """Where the head stays the head (FCFS, or committed to) and jobs are killed at their estimates."""
    policy = make(name)
    policy.backfiller = PromisingEASY(candidates=policy.backfiller and policy.backfiller.candidates)
    PromisingEASY.promised.clear()
    found = starts(workload(*drawn), policy, walltime="kill")
    assert all(found[row] <= promise for row, promise in PromisingEASY.promised.items())


@given(drawn=rows_and_size(exact=True, shortest=1))
def test_conservative_with_exact_estimates_starts_nobody_later_than_strict_fcfs(drawn: Any) -> None:
    """By induction: when FCFS starts a job, all before it have started in both, and ended no later here."""
    jobs = workload(*drawn)
    strict = starts(jobs, "fcfs")
    assert all(a <= b for a, b in zip(starts(jobs, "fcfs+conservative"), strict, strict=True))


def earlier_starts(found: Result, before: int) -> list[int | None]:
    return [start if start < before else None for start in found.start_time.tolist()]


def disagreement(jobs: Workload, name: str, row: int, run_time: int, how: dict[str, Any]) -> bool:
    """Tell whether another run time of one job changes a start before the job's end."""
    changed = np.array(jobs.run_time)
    changed[row] = run_time
    another = Workload({**jobs.columns, "run_time": changed}, machine_size=jobs.machine_size)
    one, two = run(jobs, name, **how), run(another, name, **how)
    until = min(int(one.end_time[row]), int(two.end_time[row]))
    return earlier_starts(one, until) != earlier_starts(two, until)


@given(
    jobs=workloads(), name=policies(oracles=False), how=options(), row=st.integers(0, 99),
    run_time=st.integers(0, 20),
)  # fmt: skip
def test_no_clairvoyance(jobs: Workload, name: str, how: dict[str, Any], row: int, run_time: int) -> None:
    """What a job will take changes nothing before it ends."""
    assert not disagreement(jobs, name, row % len(jobs), run_time, how)


@pytest.mark.parametrize(
    "name", ["oracle-sjf", "oracle-saf", "fcfs+easy-ar", "fcfs+easy-noise", "fcfs+easy+actual"]
)
def test_oracles_are_clairvoyant(name: str) -> None:
    """C's run time decides whether C (one node) goes before B: the check above does see it."""
    order = [(0, 10, 10, 2), (1, 5, 9, 2), (1, 4, 9, 2)]
    backfilled = [(0, 10, 10, 1), (1, 5, 5, 2), (2, 3, 9, 1)]
    rows = order if name.startswith("oracle") else backfilled
    assert disagreement(workload(rows, 2), name, 2, 30, {})


@given(jobs=workloads(), name=policies(), how=options())
def test_a_run_that_was_driven_in_steps_is_the_run(jobs: Workload, name: str, how: dict[str, Any]) -> None:
    """Without open seats there is nothing to ask, and asking for the result twice changes nothing."""
    simulation = Simulation(jobs, make(name), **how)
    assert simulation.next_decision() is None
    assert simulation.next_decision() is None
    assert simulation.result().hash == simulation.run().hash == run(jobs, name, **how).hash
