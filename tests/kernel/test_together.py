"""Attempts, outages, windows, gates and preemption together equal a naive simulator, on any cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpcsimkit.cluster import calendar, outages
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.restart import Restart
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import EASY, FCFS, SJF, Pipeline
from hpcsimkit.policies.preempting.preemptors import PreemptLowerTiers
from hpcsimkit.results.result import Result
from tests.drawn import examples
from tests.kernel.naive_gates import Wishes
from tests.kernel.naive_state import Job, Level, Outage, Part, Rank, Rules, Window
from tests.kernel.naive_together import Together
from tests.kernel.test_attempts import attempts
from tests.kernel.test_gates_naive import GATES, columns_of, held_in, wishes_for

KINDS = ("nodes", "machines", "partitions", "counted partitions")


class Asked(NamedTuple):
    """What a job asks for."""

    submit: int
    run: int
    asked: int
    nodes: int
    amounts: tuple[int, ...]
    partitions: tuple[int, ...]
    tier: int


class Case(NamedTuple):
    """A run with all features that the kind of the cluster knows."""

    kind: str
    empty: Level
    parts: list[tuple[tuple[int, ...], int]]
    """Machines and priority of each partition."""
    jobs: list[Asked]
    rules: Rules
    policy: Rank
    kill: bool
    wishes: list[Wishes]
    pools: dict[str, int]
    outages: list[Outage]
    windows: list[Window]

    @property
    def counted(self) -> bool:
        return self.kind == "nodes"


# --- drawing ---------------------------------------------------------------------------------------------


@st.composite
def rules_drawn(draw: st.DrawFn) -> Rules:
    every = draw(st.sampled_from([None, None, 1, 3, 7]))
    return Rules(
        anew=draw(st.booleans()),
        delay=draw(st.sampled_from([0, 0, 3])),
        limit=draw(st.sampled_from([None, None, None, 0, 1])),
        checkpoint=every,
        checkpoint_cost=0 if every is None else draw(st.integers(0, 3)),
        cost=draw(st.sampled_from([0, 0, 2])),
    )


@st.composite
def clusters(draw: st.DrawFn, kind: str) -> tuple[Level, list[tuple[tuple[int, ...], int]]]:
    """Draw what is on each machine, and the machines and the priority of each partition."""
    if kind == "nodes":
        return [(draw(st.integers(1, 6)),)], [((0,), 0)]
    count = draw(st.integers(1, 4))
    if kind == "counted partitions":
        return [(draw(st.integers(1, 4)),) for _ in range(count)], [
            ((number,), draw(st.integers(0, 1))) for number in range(count)
        ]
    empty: Level = [(draw(st.integers(1, 4)), draw(st.integers(1, 3))) for _ in range(count)]
    if kind == "machines":
        return empty, [(tuple(range(count)), 0)]
    some = st.sets(st.integers(0, count - 1), min_size=1).map(lambda found: tuple(sorted(found)))
    return empty, [(draw(some), draw(st.integers(0, 1))) for _ in range(draw(st.integers(1, 3)))]


@st.composite
def jobs_for(
    draw: st.DrawFn, kind: str, empty: Level, parts: list[Any], horizon: int, *, first: bool
) -> Asked:
    """Draw a job that fits one of the partitions that it names, and is admitted to these only."""
    taken = draw(st.integers(0, horizon // 2))
    asked = max(1, int(taken * draw(st.sampled_from([1, 1, 1.5, 3, 0.5]))))
    named = draw(st.sets(st.integers(0, len(parts) - 1), min_size=1))
    base = parts[min(named)][0]
    if kind in ("nodes", "counted partitions"):
        nodes, amounts = 1, (draw(st.integers(1, empty[base[0]][0])),)
    else:
        nodes = draw(st.integers(1, len(base)))
        most = [min(empty[number][k] for number in base) for k in (0, 1)]
        amounts = draw(st.integers(1, most[0])), draw(st.integers(0, most[1]))
    fits = [
        number
        for number in sorted(named)
        if sum(all(a >= b for a, b in zip(empty[m], amounts, strict=True)) for m in parts[number][0]) >= nodes
    ]
    submit = 0 if first else draw(st.integers(0, horizon))
    return Asked(submit, taken, asked, nodes, amounts, tuple(fits), draw(st.integers(0, 2)))


@st.composite
def outages_for(draw: st.DrawFn, kind: str, empty: Level, horizon: int) -> Outage:
    start = draw(st.integers(0, horizon + horizon // 2))
    end, drain = start + draw(st.integers(1, horizon // 2)), draw(st.sampled_from([False, False, True]))
    if kind == "nodes":
        position = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
        return Outage(start, end, nodes=draw(st.integers(1, empty[0][0])), position=position, drain=drain)
    machines = draw(st.sets(st.integers(0, len(empty) - 1), min_size=1))
    return Outage(start, end, tuple(sorted(machines)), drain=drain)


@st.composite
def windows_for(draw: st.DrawFn, kind: str, empty: Level, jobs: int, horizon: int) -> Window:
    start = draw(st.integers(0, horizon + horizon // 4))
    end = start + draw(st.integers(1, horizon // 3))
    if kind == "nodes":
        return Window(start, end, nodes=draw(st.integers(1, empty[0][0])))
    machines = tuple(sorted(draw(st.sets(st.integers(0, len(empty) - 1), min_size=1))))
    open_to = draw(st.just(set[int]()) | st.sets(st.integers(0, jobs - 1), max_size=3))
    return Window(start, end, machines, open_to=tuple(sorted(open_to)))


def most_at_once(listed: Sequence[Outage] | Sequence[Window]) -> int:
    return max(sum(each.nodes for each in listed if each.start <= at < each.end) for at in range(90))


@st.composite
def cases(draw: st.DrawFn, kind: str) -> Case:
    empty, parts = draw(clusters(kind))
    count = draw(st.integers(3, 10))
    horizon = draw(st.sampled_from([8, 16, 40]))  # a short one has more events at the same instants
    jobs = [draw(jobs_for(kind, empty, parts, horizon, first=not number)) for number in range(count)]
    rules, easy = draw(rules_drawn()), draw(st.booleans())
    preempts = draw(st.booleans())
    modes = ["requeue", "requeue", "cancel"] + ["suspend"] * 2 * (kind in ("nodes", "machines"))
    mode = draw(st.sampled_from(modes)) if preempts else "requeue"
    grace = draw(st.sampled_from([0, 0, 0, 2, 6])) if preempts else 0
    policy = Rank(draw(st.booleans()), easy, preempts, mode, grace)
    gated = draw(st.sampled_from([True, True, False]))
    wishes, pools = draw(wishes_for([each[:4] for each in jobs])) if gated else ([Wishes()] * count, {})
    some_outages = (
        [] if kind == "counted partitions" else draw(st.lists(outages_for(kind, empty, horizon), max_size=4))
    )
    some_windows = draw(st.lists(windows_for(kind, empty, count, horizon), max_size=3))
    if kind == "counted partitions":
        some_windows = []
    for listed in (some_outages, some_windows) if kind == "nodes" else ():
        while most_at_once(listed) > empty[0][0]:
            listed.pop()
    return Case(
        kind,
        empty,
        parts,
        jobs,
        rules,
        policy,
        draw(st.booleans()),
        wishes,
        pools,
        some_outages,
        some_windows,
    )


# --- both simulators -------------------------------------------------------------------------------------


def by_hand(case: Case) -> Together:
    """Simulate naively."""
    killed = [case.kill and job.run > job.asked for job in case.jobs]
    jobs = [
        Job(
            number,
            job.submit,
            job.asked if cut else job.run,
            job.asked,
            job.nodes,
            job.tier,
            amounts=job.amounts,
            partitions=job.partitions,
        )
        for number, (job, cut) in enumerate(zip(case.jobs, killed, strict=True))
    ]
    wishes = [wish._replace(failed=wish.failed or cut) for wish, cut in zip(case.wishes, killed, strict=True)]
    naive = Together(
        jobs,
        case.empty,
        [Part(machines, priority) for machines, priority in case.parts],
        case.rules,
        case.policy,
        wishes,
        case.pools,
        case.outages,
        case.windows,
        counted=case.counted,
    )
    naive.simulate()
    return naive


def workload_of(case: Case) -> Workload:
    jobs, many = case.jobs, case.kind == "counted partitions"
    columns: dict[str, Any] = {
        "submit_time": [job.submit for job in jobs],
        "run_time": [job.run for job in jobs],
        "requested_time": [job.asked for job in jobs],
        "nodes": [job.amounts[0] if case.counted or many else job.nodes for job in jobs],
        "queue": [job.tier for job in jobs],
    }
    columns |= columns_of(case.wishes)
    columns["group"] = list(range(len(jobs)))  # windows are reserved for some of them
    labels: dict[str, tuple[str, ...]] = {}
    if "partitions" in case.kind:
        names = [",".join(f"p{number}" for number in job.partitions) for job in jobs]
        labels["partition"] = tuple(dict.fromkeys(names))
        columns["partition"] = [labels["partition"].index(name) for name in names]
    if case.counted or many:
        return Workload(columns, labels=labels)
    resources = {name: [job.amounts[k] for job in jobs] for k, name in enumerate(("cpus", "memory"))}
    return Workload(columns | resources, labels=labels, resources=("cpus", "memory"))


def cluster_of(case: Case) -> Any:
    if case.counted:
        return case.empty[0][0]
    if case.kind == "counted partitions":
        return Partitions(
            [
                Partition(f"p{n}", nodes=row[0], priority=part[1])
                for n, (row, part) in enumerate(zip(case.empty, case.parts, strict=True))
            ]
        )
    names = [f"m{number}" for number in range(len(case.empty))]
    machines = Machines(names, ("cpus", "memory"), [list(row) for row in case.empty])
    if case.kind == "machines":
        return machines
    return Partitions(
        [
            Partition(f"p{n}", machines=tuple(names[each] for each in part[0]), priority=part[1])
            for n, part in enumerate(case.parts)
        ],
        machines=machines,
    )


def by_the_kit(case: Case) -> Result:
    rank, kind = case.policy, case.kind
    policy = Pipeline(
        SJF() if rank.sjf else FCFS(),
        backfiller=EASY() if rank.easy else None,
        preemptor=PreemptLowerTiers(mode=rank.mode, grace_time=rank.grace) if rank.preempts else None,  # type: ignore[arg-type]
    )
    options: dict[str, Any] = {"restart": Restart("anew" if case.rules.anew else "continue", *case.rules[1:])}  # type: ignore[arg-type]
    if case.outages:
        nodes = [(o.nodes, ()) if kind == "nodes" else (1, o.machines) for o in case.outages]
        options["outages"] = outages.Outages(
            [
                outages.Outage(o.start, o.end, *where, o.position, o.drain)
                for o, where in zip(case.outages, nodes, strict=True)
            ]
        )
    if case.windows:
        options["calendar"] = calendar.Calendar(
            [
                calendar.Window(w.start, w.end, w.nodes)
                if kind == "nodes"
                else calendar.Window(w.start, w.end, machines=w.machines, accounts=w.open_to)
                for w in case.windows
            ]
        )
    if case.pools:
        options |= {"gates": GATES, "licenses": case.pools}
    if case.kill:
        options["walltime"] = "kill"
    return Simulation(workload_of(case), policy, cluster_of(case), **options).run()


def machines_of(result: Result) -> list[list[tuple[int, ...]]]:
    """Return the machines of each attempt of each job."""
    each = result.by_attempt
    assert each.placements is not None
    found: list[list[tuple[int, ...]]] = [[] for _ in range(len(result))]
    rows = range(len(result)) if result.attempts is None else result.attempts.job.tolist()
    of_attempt: dict[int, list[int]] = {}
    for attempt, machine in zip(each.placements.job.tolist(), each.placements.machine.tolist(), strict=True):
        of_attempt.setdefault(attempt, []).append(machine)
    for attempt, row in enumerate(rows):
        found[row].append(tuple(sorted(of_attempt.get(attempt, []))))
    return found


def check(case: Case) -> None:
    naive, result = by_hand(case), by_the_kit(case)
    expected = [job.attempts for job in naive.jobs]
    ran = result.finished.tolist()
    assert [spans if there else [] for spans, there in zip(attempts(result), ran, strict=True)] == expected
    assert {row for row, there in enumerate(ran) if not there} == naive.rejected
    assert held_in(result) == naive.intervals.listed()
    if case.kind in ("machines", "partitions"):
        places = [found if there else [] for found, there in zip(machines_of(result), ran, strict=True)]
        assert places == [job.places for job in naive.jobs]
    if case.policy.mode != "suspend":  # where passes go on after the last job
        assert result.passes == naive.passes


def test_the_grace_of_an_attempt_that_another_partition_has_stopped_is_over() -> None:
    """Both partitions are the same machine; each has granted job 5 a grace when the other one stops it."""
    soon = [Asked(0, 0, 1, 1, (1, 0), (0,), 0) for _ in range(4)]
    jobs = [*soon, Asked(0, 0, 1, 1, (1, 0), (1,), 1), Asked(0, 2, 2, 1, (1, 0), (0,), 0)]
    jobs.append(Asked(0, 0, 1, 1, (1, 0), (0,), 1))
    policy = Rank(sjf=False, easy=False, preempts=True, mode="requeue", grace=2)
    parts, wishes = [((0,), 0), ((0,), 0)], [Wishes() for _ in jobs]
    rules = Rules(anew=False, delay=0, limit=None, checkpoint=1, checkpoint_cost=1, cost=0)
    case = Case("partitions", [(1, 1)], parts, jobs, rules, policy, False, wishes, {}, [], [])
    check(case)
    assert by_the_kit(case).end_time.tolist() == [0, 0, 0, 0, 3, 3, 2]


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@examples(4)
def test_all_features_together_equal_a_naive_simulator(kind: str, data: st.DataObject) -> None:
    check(data.draw(cases(kind)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
@settings(max_examples=10_000)
def test_ten_thousand_cases_equal_a_naive_simulator(kind: str, data: st.DataObject) -> None:
    check(data.draw(cases(kind)))
