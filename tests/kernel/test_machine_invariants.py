"""What must hold on machines, for every order, placement and backfilling; and machines against homogeneous nodes."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.reservation import reserve
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import EASY, Conservative
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_swf
from tests.drawn import examples
from tests.kernel import naive_machines
from tests.kernel.helpers import Row, deep, rows_and_size, run, workload
from tests.kernel.machine_cases import KINDS, cases, given
from tests.kernel.machine_helpers import (
    Asked,
    jobs_on_machines,
    meets_counts,
    run_on,
    satisfies,
    split_constraint,
)
from tests.kernel.test_invariants import NAMES, ORACLES, SIMULATES

BACKFILLINGS = [
    "conservative", "conservative-replan", "easy-k(2)", "easy", "easy-sjf", "easy-saf", "easy-bestfit", "easy++",
    "greedy",
]  # fmt: skip

QUICK = [name for name in NAMES["order"] if name not in SIMULATES]

# --- machines against homogeneous nodes ------------------------------------------------------------------------


def same_on_machines(jobs: Workload, name: str, size: int, **options: Any) -> None:
    """Check that homogeneous nodes, one large machine and many small ones give one schedule."""
    expected = run(jobs, name, cluster=size, **options)
    for cluster in (Machines.of(1, cpus=size), Machines.of(size, cpus=1)):
        result = run(jobs, name, cluster=cluster, **options)
        np.testing.assert_array_equal(result.start_time, expected.start_time)
        np.testing.assert_array_equal(result.mode, expected.mode)


@cache
def log(shared: Path, trace: str, size: int) -> Workload:
    return read_swf(shared / f"traces/{trace}.swf.gz").fitting(size)


@pytest.mark.parametrize("backfilling", BACKFILLINGS)
@examples(0.6)
@drawn(
    case=rows_and_size(), order=st.sampled_from(NAMES["order"]), walltime=st.sampled_from(["run", "kill"]),
    limit=st.sampled_from([200, 2]),
)  # fmt: skip
def test_machines_equal_counted_nodes(
    backfilling: str, case: tuple[list[Row], int], order: str, walltime: str, limit: int
) -> None:
    rows, size = case
    with deep(limit):
        same_on_machines(workload(rows, size), f"{order}+{backfilling}", size, walltime=walltime)


@pytest.mark.parametrize("jobs", [150, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        *(f"fcfs+{name}" for name in BACKFILLINGS),
        *(f"{name}+easy" for name in QUICK),
        *(pytest.param(f"{name}+easy", marks=pytest.mark.slow) for name in SIMULATES),
        "binpacking",
    ],
)
def test_machines_equal_counted_nodes_on_a_log(name: str, jobs: int, shared: Path) -> None:
    same_on_machines(log(shared, "KTH-SP2-1996-2.1-cln", 100).first(jobs), name, 100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trace", "name", "size"),
    [
        ("KTH-SP2-1996-2.1-cln", "fcfs+easy", 100),
        ("KTH-SP2-1996-2.1-cln", "fcfs+conservative", 100),
        ("SDSC-SP2-1998-4.2-cln", "fcfs+easy", 128),
    ],
)
def test_machines_equal_counted_nodes_on_whole_logs(trace: str, name: str, size: int, shared: Path) -> None:
    same_on_machines(log(shared, trace, size), name, size)


# --- against the naive simulator ---------------------------------------------------------------------------

KEYS = {"fcfs": lambda job: job.submit, "lcfs": lambda job: -job.submit, "sjf": lambda job: job.estimate}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backfilling", ["none", "easy"])
@examples(0.8)
@drawn(data=st.data(), order=st.sampled_from(sorted(KEYS)), limit=st.sampled_from([200, 2]))
def test_none_and_easy_equal_the_naive_simulator(
    backfilling: str, kind: str, data: st.DataObject, order: str, limit: int
) -> None:
    cluster, jobs = data.draw(cases([kind]))
    expected, places = naive_machines.easy(cluster, jobs, KEYS[order], backfill=backfilling == "easy")
    with deep(limit):
        result = run_on(cluster, jobs, make(f"{order}+{backfilling}"))
    assert result.start_time.tolist() == expected
    assert given(result) == places


# --- rules of the machines ---------------------------------------------------------------------------------


def check_given(result: Result, asked: list[Asked], cluster: Machines) -> None:
    """Every job got what it asked for, where it may be."""
    capacity = cluster.capacity.tolist()
    for job, found in zip(asked, given(result), strict=True):
        everywhere, conditions = split_constraint(job.constraint)
        wanted = [job.amounts[name] for name in cluster.resources]
        assert found and all(satisfies(cluster.features[machine], everywhere) for machine in found)
        assert meets_counts(list(found), conditions, cluster.features)
        if job.exclusive:
            assert all(list(amounts) == capacity[machine] for machine, amounts in found.items())
        in_all = [sum(column) for column in zip(*found.values(), strict=True)]
        if job.spread and not job.exclusive:
            assert in_all == wanted
        elif job.spread:
            assert all(there >= amount for there, amount in zip(in_all, wanted, strict=True))
        else:
            assert len(found) == job.nodes
            for amounts in found.values():
                enough = all(there >= amount for there, amount in zip(amounts, wanted, strict=True))
                assert enough if job.exclusive else list(amounts) == wanted


def check_capacity(result: Result, asked: list[Asked], cluster: Machines) -> None:
    """At no instant is more used than there is, and nobody uses anything beside an exclusive job."""
    begins, ends = result.start_time.tolist(), result.end_time.tolist()
    places = given(result)
    for now in sorted(set(begins)):
        there = [row for row in range(len(asked)) if begins[row] <= now < ends[row]]
        used = np.zeros_like(cluster.capacity)
        users = [0] * len(cluster)
        for row in there:
            for machine, amounts in places[row].items():
                used[machine] += amounts
                users[machine] += 1
        assert (used <= cluster.capacity).all()
        assert all(users[machine] <= 1 for row in there if asked[row].exclusive for machine in places[row])


def longer_when_spread(job: Job, seconds: int, allocation: Any, cluster: Any) -> float:
    """Each machine beyond the first costs a second, and the last machine another two."""
    return len(allocation.machines) - 1 + 2.0 * (max(allocation.machines) == len(cluster) - 1)


@st.composite
def policies(draw: st.DrawFn, *, oracles: bool = True) -> str:
    def names(kind: str) -> list[str]:
        return [name for name in NAMES[kind] if oracles or name not in ORACLES]

    extra = draw(st.sampled_from(["", "+commit", "+window(2)"]))
    order = draw(st.sampled_from(names("order")))
    return "+".join(
        (
            order,
            draw(st.sampled_from(names("placement"))),
            draw(st.sampled_from(names("backfilling"))) + extra,
        )
    )


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "walltime": draw(st.sampled_from(["run", "kill"])),
        "period": draw(st.sampled_from([None, None, 3])),
        "service_time": draw(st.sampled_from([None, longer_when_spread])),
        "seed": draw(st.integers(0, 3)),
    }


@drawn(case=cases(), name=policies(), how=options(), limit=st.sampled_from([200, 2]))
def test_rules_of_the_machines(case: Any, name: str, how: dict[str, Any], limit: int) -> None:
    cluster, asked = case
    with deep(limit):
        result = run_on(cluster, asked, make(name), **how)
    assert (result.start_time >= result.submit_time).all()
    check_given(result, asked, cluster)
    check_capacity(result, asked, cluster)
    if how["service_time"] is None:
        np.testing.assert_array_equal(result.end_time, result.start_time + result.workload.run_time)


@drawn(case=cases(), other=cases(), name=policies(), how=options())
def test_same_seed_same_places_whatever_ran_before(
    case: Any, other: Any, name: str, how: dict[str, Any]
) -> None:
    policy = make(name)
    first = run_on(*case, policy, **how)
    run_on(*other, policy, **{**how, "seed": 9})
    again = run_on(*case, policy, **how)
    assert again.start_time.tolist() == first.start_time.tolist()
    assert given(again) == given(first)


@drawn(
    case=cases(),
    name=policies(oracles=False),
    how=options(),
    row=st.integers(0, 99),
    run_time=st.integers(0, 20),
)
def test_no_clairvoyance(case: Any, name: str, how: dict[str, Any], row: int, run_time: int) -> None:
    """What a job will take changes neither when nor where others start before it ends."""
    cluster, asked = case
    row %= len(asked)
    another = [replace(job, run=run_time) if place == row else job for place, job in enumerate(asked)]
    one = run_on(cluster, asked, make(name), **how)
    two = run_on(cluster, jobs_on_machines(another), make(name), **how)
    until = min(int(one.end_time[row]), int(two.end_time[row]))

    def before(result: Result) -> list[Any]:
        pairs = zip(result.start_time.tolist(), given(result), strict=True)
        return [pair if pair[0] < until else None for pair in pairs]

    assert before(one) == before(two)


# --- promises ------------------------------------------------------------------------------------------------


class PromisingEASY(EASY):
    """EASY that writes down the first reservation of every head."""

    promised: ClassVar[dict[int, int]] = {}

    def fill(self, head: Job, system: System) -> Any:
        self.promised.setdefault(head.index, reserve(head, system)[0])
        return super().fill(head, system)


@pytest.mark.parametrize(
    "name", ["fcfs", "sjf+commit", "laf+commit", "fcfs+easy-sjf", "lcfs+easy-bestfit+commit"]
)
@drawn(case=cases(), placement=st.sampled_from(NAMES["placement"]))
def test_easy_never_delays_the_reserved_job(name: str, case: Any, placement: str) -> None:
    """Where the head stays the head and estimates are upper bounds; wherever jobs are placed."""
    policy = make(f"{name}+{placement}")
    policy.backfiller = PromisingEASY(candidates=policy.backfiller and policy.backfiller.candidates)
    PromisingEASY.promised.clear()
    found = run_on(*case, policy, walltime="kill").start_time.tolist()
    assert all(found[row] <= promise for row, promise in PromisingEASY.promised.items())


@pytest.mark.parametrize("kind", KINDS)
@drawn(
    data=st.data(), order=st.sampled_from(QUICK), placement=st.sampled_from(NAMES["placement"]),
    walltime=st.sampled_from(["run", "kill"]),
)  # fmt: skip
def test_one_reservation_is_easy(
    kind: str, data: st.DataObject, order: str, placement: str, walltime: str
) -> None:
    case = data.draw(cases([kind]))
    easy, one = (
        run_on(*case, make(f"{order}+{placement}+{backfilling}"), walltime=walltime)
        for backfilling in ("easy", "easy-k(1)")
    )
    assert one.start_time.tolist() == easy.start_time.tolist()
    assert one.mode.tolist() == easy.mode.tolist()
    assert given(one) == given(easy)


@pytest.mark.parametrize("backfilling", ["easy-k(1)", "easy-k(2)", "conservative-replan"])
@examples(0.6)
@drawn(case=cases(), placement=st.sampled_from(NAMES["placement"]))
def test_the_first_of_many_reservations_is_kept_too(backfilling: str, case: Any, placement: str) -> None:
    """What EASY would promise to the first blocked job."""
    policy = make(f"fcfs+{placement}+{backfilling}")
    promised: dict[int, int] = {}
    kind = type(policy.backfiller)

    class Promising(kind):  # type: ignore[misc, valid-type]
        def fill(self, head: Job, system: System) -> Any:
            promised.setdefault(head.index, reserve(head, system)[0])
            return super().fill(head, system)

    policy.backfiller = Promising(policy.backfiller.count)
    found = run_on(*case, policy, walltime="kill").start_time.tolist()
    assert all(found[row] <= promise for row, promise in promised.items())


class PromisingConservative(Conservative):
    """Writes down all reservations after each pass."""

    promised: ClassVar[dict[int, list[int]]] = {}

    def plan(self, system: System) -> None:
        super().plan(system)
        for row, slot in self._slots.items():
            self.promised.setdefault(row, []).append(slot.start)


@drawn(
    case=cases(),
    placement=st.sampled_from(NAMES["placement"]),
    order=st.sampled_from(["fcfs", "sjf", "wfp3"]),
)
def test_conservative_keeps_every_promise(case: Any, placement: str, order: str) -> None:
    """A reservation only ever moves forward, and the job starts when it is due; wherever jobs are placed."""
    policy = make(f"{order}+{placement}+conservative")
    policy.backfiller = PromisingConservative()
    PromisingConservative.promised.clear()
    found = run_on(*case, policy, walltime="kill").start_time.tolist()
    for row, promises in PromisingConservative.promised.items():
        assert promises == sorted(promises, reverse=True)
        assert found[row] == promises[-1]


@drawn(case=cases(exact=True))
def test_nobody_waits_longer_than_for_all_that_came_before(case: Any) -> None:
    """Where jobs take what they asked for, and with conservative backfilling: later ones are never in the way."""
    cluster, asked = case
    asked = sorted(asked, key=lambda job: job.submit)
    found = run_on(cluster, asked, make("fcfs+conservative")).start_time.tolist()
    all_ended = 0
    for start, job in zip(found, asked, strict=True):
        assert start <= max(all_ended, job.submit)
        all_ended = max(all_ended, start + max(job.run, 1))


@pytest.mark.parametrize("columns", [{"gpus:a": [1, 0]}, {"gpus": [0, 2], "gpus:a": [1, 0]}])
def test_a_model_counts_as_one_of_any_model(columns: dict[str, list[int]]) -> None:
    """The first job has one of the two GPUs, whether or not it asks for one of any model, too."""
    machines = Machines(["m"], ("cpus", "gpus:a"), [[4, 2]])
    times = {"submit_time": [0, 0], "run_time": [5, 5], "nodes": [1, 1], "cpus": [1, 1]}
    jobs = Workload({**times, **columns}, resources=("cpus", *columns))
    result = Simulation(jobs, make("fcfs"), machines).run()
    assert result.start_time.tolist() == [0, 5 if "gpus" in columns else 0]
    assert result.placements is not None
    assert result.placements.allocation(0).rows == [[1, 1, 1]]
