"""Gates with conservative backfilling equal a naive simulator of their page, and keep their promises everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.outages import Outage, Outages
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs import queue
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.after_jobs import AfterJobs
from hpcsimkit.kernel.begun import begun_in
from hpcsimkit.kernel.gate import Gate, Held
from hpcsimkit.kernel.job_gates import ArrayLimits, BeginTimes, Holds, licenses_in
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.helpers import Row, workload
from tests.kernel.naive_gates import NaiveGatedConservative, Term, Wishes
from tests.kernel.test_attempts import attempts, situations

GATES = (AfterJobs(), BeginTimes(), Holds(), ArrayLimits())


@st.composite
def wishes_for(draw: st.DrawFn, rows: Sequence[Row]) -> tuple[list[Wishes], dict[str, int]]:
    """Draw what gates read of some jobs: other jobs only if they come earlier, so that there are no cycles."""
    pools = {"a": draw(st.integers(1, 3)), "b": draw(st.integers(1, 2))}
    order = sorted(range(len(rows)), key=lambda j: (rows[j][0], j))
    limits = draw(st.lists(st.integers(1, 2), min_size=2, max_size=2))
    found = []
    for j in range(len(rows)):
        earlier = order[: order.index(j)]
        terms: list[Term] = []
        if draw(st.integers(0, 3)) == 0 and earlier:
            kinds = st.sampled_from(["after", "afterany", "afterok", "afternotok"])
            terms = [
                Term(draw(kinds), draw(st.sampled_from(earlier))) for _ in range(draw(st.integers(1, 3)))
            ]
            terms = [
                each._replace(delay=draw(st.sampled_from([0, 60]))) if each.kind == "after" else each
                for each in terms
            ]
        if draw(st.integers(0, 5)) == 0:
            terms.append(Term("singleton"))
        asks = draw(st.sampled_from([{}, {}, {}, {"a": 1}, {"a": 2}, {"b": 1}, {"a": 1, "b": 1}]))
        array = draw(st.sampled_from([-1, -1, 0, 1]))
        found.append(
            Wishes(
                tuple(terms),
                any_of=draw(st.booleans()),
                begin=draw(st.sampled_from([-1, -1, -1, 0, 20, 45])),
                hold=draw(st.sampled_from([-1, -1, -1, -1, 30])),
                array=array,
                limit=-1 if array < 0 or draw(st.integers(0, 4)) == 0 else limits[array],
                licenses={name: min(number, pools[name]) for name, number in asks.items()},
                name=draw(st.integers(0, 1)),
                failed=draw(st.sampled_from([False, False, True])),
            )
        )
    return found, pools


def columns_of(wishes: Sequence[Wishes]) -> dict[str, Any]:
    """Return the columns of a workload with these wishes."""

    def text(term: Term) -> str:
        delay = f"+{term.delay // 60}" if term.delay else ""
        return term.kind if term.kind == "singleton" else f"{term.kind}:{term.other + 1}{delay}"

    return {
        "dependency": [("?" if wish.any_of else ",").join(map(text, wish.terms)) for wish in wishes],
        "begin_time": [wish.begin for wish in wishes],
        "hold_until": [wish.hold for wish in wishes],
        "array_job": [wish.array for wish in wishes],
        "array_limit": [wish.limit for wish in wishes],
        "licenses": [",".join(f"{name}:{number}" for name, number in w.licenses.items()) for w in wishes],
        "executable": [wish.name for wish in wishes],
        "user": [1] * len(wishes),
        "status": [0 if wish.failed else 1 for wish in wishes],
    }


def held_in(result: Result) -> dict[int, list[tuple[int, int, str]]]:
    """Return beginning, end and reason of the intervals of each job, but the empty ones of rejected jobs."""
    found: dict[int, list[tuple[int, int, str]]] = {}
    if result.held is not None:
        columns = (result.held.job, result.held.start, result.held.end, result.held.reason)
        for job, start, end, reason in zip(*(column.tolist() for column in columns), strict=True):
            if end > start:
                found.setdefault(job, []).append((start, end, reason))
    return found


@st.composite
def gated_logs(draw: st.DrawFn) -> tuple[list[Row], int, list[Wishes], dict[str, int]]:
    rows, size = draw(situations())[:2]
    return rows, size, *draw(wishes_for(rows))


def check_conservative(drawn: tuple[list[Row], int, list[Wishes], Mapping[str, int]]) -> None:
    rows, size, wishes, pools = drawn
    naive = NaiveGatedConservative(rows, size, wishes, pools)
    naive.run()
    jobs = workload(rows, size, **columns_of(wishes))
    result = Simulation(jobs, make("fcfs+conservative"), gates=GATES, licenses=pools).run()
    assert result.start_time.tolist() == naive.schedule.starts
    assert result.passes == len(naive.schedule.passes)


@given(drawn=gated_logs())
@examples(4)
def test_conservative_equals_a_naive_simulator(drawn: Any) -> None:
    check_conservative(drawn)


@pytest.mark.slow
@given(drawn=gated_logs())
@settings(max_examples=10_000)
def test_conservative_equals_a_naive_simulator_at_length(drawn: Any) -> None:
    check_conservative(drawn)


# --- invariants --------------------------------------------------------------------------------------------

POLICIES = (
    "fcfs",
    "sjf+easy",
    "wfp3+easy-k(count=3)",
    "fcfs+conservative",
    "fcfs+conservative-replan",
    "fcfs+greedy",
    "oracle-srtf",
    "las",
)


def clusters(rows: list[Row], size: int) -> list[Any]:
    """Return clusters that can run the same jobs."""
    return [
        size,
        Machines.of(size, cpus=1),
        Partitions([Partition("p", nodes=size), Partition("q", nodes=size)]),
    ]


@given(drawn=gated_logs(), policy=st.sampled_from(POLICIES), kind=st.integers(0, 2))
@examples(4)
def test_what_gates_promise_holds_for_every_policy_and_cluster(
    drawn: tuple[list[Row], int, list[Wishes], dict[str, int]], policy: str, kind: int
) -> None:
    rows, size, wishes, pools = drawn
    columns: dict[str, Any] = columns_of(wishes)
    jobs = workload(rows, size, **columns)
    if kind == 2:
        partition = [j % 2 for j in range(len(rows))]
        jobs = Workload(
            {**jobs.columns, "partition": partition}, labels={**jobs.labels, "partition": ("p", "q")}
        )
    result = Simulation(jobs, make(policy), clusters(rows, size)[kind], gates=GATES, licenses=pools).run()
    keeps_its_promises(result, wishes, pools)


def keeps_its_promises(result: Result, wishes: list[Wishes], pools: Mapping[str, int]) -> None:
    """Check every start against the gates, from the finished schedule."""
    spans = {j: each for j, each in enumerate(attempts(result)) if result.finished[j]}
    running = [(j, *span) for j, each in spans.items() for span in each if span[1] > span[0]]
    for j, start, _ in running:
        wish = wishes[j]
        assert start >= max(wish.begin, wish.hold)
        if wish.limit >= 0:
            before = [i for i, begin, end in running if begin < start < end and wishes[i].array == wish.array]
            assert len(before) < wish.limit
        beside = [i for i, begin, end in running if begin <= start < end]
        for name in wish.licenses:
            assert sum(wishes[i].licenses.get(name, 0) for i in beside) <= pools[name]
    for j, each in spans.items():
        for start, end, _ in held_in(result).get(j, ()):
            assert all(not start < begin < end for begin, _ in each)
    for j, each in spans.items():
        for term in wishes[j].terms if not wishes[j].any_of else ():
            if term.kind == "afterok":
                assert not wishes[term.other].failed and each[0][0] >= spans[term.other][-1][1]


@given(drawn=gated_logs(), easy=st.booleans(), share=st.floats(0, 1))
@examples(2)
def test_a_begun_run_goes_on_as_the_whole_run(
    drawn: tuple[list[Row], int, list[Wishes], dict[str, int]], easy: bool, share: float
) -> None:
    rows, size, wishes, pools = drawn
    rows = [
        (submit, max(run, 1), *rest) for submit, run, *rest in rows
    ]  # the past has no order at an instant
    jobs = workload(rows, size, **columns_of(wishes))
    policy = make("fcfs+easy" if easy else "fcfs")
    options: dict[str, Any] = {"gates": GATES, "licenses": pools}
    whole = Simulation(jobs, policy, **options).run()
    ran = sorted(set(whole.start_time[whole.finished].tolist()))
    if ran:
        at = ran[min(int(share * len(ran)), len(ran) - 1)]
        again = Simulation(jobs, policy, begun=begun_in(whole, at), **options).run()
        assert again.start_time.tolist() == whole.start_time.tolist()
        assert held_in(again) == held_in(whole)


class EachLicence(Gate):
    """Licences the plain way: about every job that is due, the gate is asked again after every event."""

    columns = ("licenses",)

    def __init__(self, pools: Mapping[str, int]) -> None:
        self.pools = pools

    def reset(self, workload: Workload) -> None:
        texts, column = workload.labels["licenses"], workload.column("licenses").tolist()
        self.asked = [licenses_in(texts[number]) if number >= 0 else {} for number in column]
        self.due: dict[int, Job] = {}
        self.holding: dict[int, Job] = {}

    def holds(self, job: Job, system: System) -> Held | None:
        self.due[job.index] = job
        for name, number in self.asked[job.index].items():
            if sum(self.asked[row].get(name, 0) for row in self.holding) + number > self.pools[name]:
                return Held("Licenses")
        return None

    def after_start(self, job: Job, system: System) -> Iterable[Job]:
        self.holding[job.index] = self.due.pop(job.index)
        return list(self.due.values())

    def after_stop(self, job: Job, system: System) -> Iterable[Job]:
        del self.holding[job.index]
        return list(self.due.values())

    after_end = after_stop


@pytest.mark.parametrize("policy", ["fcfs", "sjf+easy", "wfp3+easy", "fcfs+conservative", "random+easy"])
@given(seed=st.integers(0, 2**32))
@examples(0.4)
def test_licences_equal_the_plain_way(policy: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    columns = {
        "submit_time": np.sort(rng.integers(0, 60, count)),
        "run_time": rng.integers(0, 15, count) * rng.integers(0, 2, count),
        "nodes": rng.integers(1, 5, count),
        "licenses": rng.integers(-1, 4, count),
        "begin_time": np.maximum(rng.integers(-50, 50, count), -1),
    }
    columns["requested_time"] = columns["run_time"] + rng.integers(1, 9, count)
    labels = {"licenses": ("a", "a:2", "b", "a,b:2")}
    jobs, pools = Workload(columns, labels=labels, machine_size=6), {"a": 3, "b": 2}
    outages = Outages([Outage(int(start), int(start) + 5, nodes=3) for start in (10, 30)])
    options: dict[str, Any] = {"outages": outages} if seed % 2 else {}
    together = {"gates": (BeginTimes(),), "licenses": pools}
    with mock.patch.object(queue, "MANY", 2):
        found = Simulation(jobs, make(policy), **options, **together, simulator="simpy").run()
    plain = Simulation(jobs, make(policy), **options, gates=(BeginTimes(), EachLicence(pools))).run()
    assert attempts(found) == attempts(plain)
    for name in ("job", "start", "end", "reason"):
        held = (getattr(result.held, name, np.empty(0)).tolist() for result in (found, plain))
        assert next(held) == next(held)
    assert found.passes == plain.passes
