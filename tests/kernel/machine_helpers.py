"""What tests on machines share: jobs in words, random clusters and requests, and answers by trying everything."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, permutations, product
from typing import Any

import numpy as np
from hypothesis import strategies as st

from hpcsimkit.cluster.allocation import Allocation, MachineLevel
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.jobs.job import Job, Request
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.result import Result

RESOURCES = ("cpus", "gpus", "memory")


@dataclass
class Asked:
    """A job: when it comes, how long it runs and believes to run, and what it asks for."""

    submit: int
    run: int
    requested: int | None = None
    nodes: int = 1
    spread: bool = False
    exclusive: bool = False
    constraint: str = ""
    kind: int = -1
    amounts: dict[str, int] = field(default_factory=dict)


def asked(submit: int, run: int, *, cpus: int = 0, gpus: int = 0, memory: int = 0, **options: Any) -> Asked:
    """Return a job that asks for so much."""
    return Asked(submit, run, amounts={"cpus": cpus, "gpus": gpus, "memory": memory}, **options)


def jobs_on_machines(jobs: Sequence[Asked], **columns: Any) -> Workload:
    """Make a workload; job numbers are 1, 2, ..."""
    labels = tuple(dict.fromkeys(job.constraint for job in jobs if job.constraint))
    amounts = {name: [job.amounts[name] for job in jobs] for name in RESOURCES}
    return Workload(
        {
            "submit_time": [job.submit for job in jobs],
            "run_time": [job.run for job in jobs],
            "requested_time": [job.requested or max(job.run, 1) for job in jobs],
            "nodes": [job.nodes for job in jobs],
            "kind": [job.kind for job in jobs],
            "spread": [int(job.spread) for job in jobs],
            "exclusive": [int(job.exclusive) for job in jobs],
            "constraint": [labels.index(job.constraint) if job.constraint else -1 for job in jobs],
            **amounts,
            **columns,
        },
        resources=RESOURCES,
        labels={"constraint": labels},
    )  # fmt: skip


def run_on(cluster: Machines, jobs: Sequence[Asked] | Workload, policy: Policy, **options: Any) -> Result:
    """Simulate."""
    workload = jobs if isinstance(jobs, Workload) else jobs_on_machines(jobs)
    return Simulation(workload, policy, cluster, **options).run()


def placed(result: Result) -> list[tuple[int, str]]:
    """Return when and on which machines each job started."""
    assert result.placements is not None
    return list(zip(result.start_time.tolist(), result.placements.words(), strict=True))


def one_job(request: Request | None = None, nodes: int = 1, *, index: int = 0, kind: int = -1) -> Job:
    """Return a job that has just come and runs for ten seconds."""
    return Job(index, index + 1, 0, 10, 10, nodes, request=request, kind=kind)


def level_of(rows: Sequence[Sequence[int]]) -> MachineLevel:
    """Return a level in the layout in which clusters keep theirs."""
    return np.asfortranarray(np.array(rows, dtype=np.int64))


# --- constraints -----------------------------------------------------------------------------------------

COUNTS = ("a*1", "a*2", "a*1&b*1", "b&a*1", "(a|b)*1&a*1", "[a*1&b*2]")
"""Constraints with counts, for up to three nodes."""


def satisfies(features: Collection[str], constraint: str) -> bool:
    """Tell whether a machine has all words, or any of words in parentheses."""
    words = filter(None, map(str.strip, constraint.strip("[]").split("&")))
    return all(any(word in features for word in each.strip("()").split("|")) for each in words)


def split_constraint(constraint: str) -> tuple[str, list[str]]:
    """Return the part for all nodes, and one condition for each node that is counted."""
    terms = constraint.strip("[]").split("&")
    pairs = [term.split("*") for term in terms if "*" in term]
    return "&".join(term for term in terms if "*" not in term), [
        word for word, n in pairs for _ in range(int(n))
    ]


def countable(constraint: str, nodes: int) -> str:
    """Return a constraint, or none if it counts more nodes."""
    return constraint if len(split_constraint(constraint)[1]) <= nodes else ""


def meets_counts(
    machines: Sequence[int], conditions: Sequence[str], features: Sequence[Collection[str]]
) -> bool:
    """Tell whether there is a machine of its own for each condition, by trying everything."""
    return any(
        all(
            satisfies(features[machine], condition)
            for machine, condition in zip(some, conditions, strict=True)
        )
        for some in permutations(machines, len(conditions))
    )


# --- random cases ----------------------------------------------------------------------------------------


@st.composite
def clusters(draw: st.DrawFn, most: int = 4) -> Machines:
    """Draw a few small machines, some without anything of a resource, some with features."""
    count = draw(st.integers(1, most))
    rows = [[draw(st.integers(0, high)) for high in (4, 2, 3)] for _ in range(count)]
    rows[draw(st.integers(0, count - 1))][0] = 4
    features = [draw(st.sets(st.sampled_from("ab"))) for _ in range(count)]
    return Machines([f"m{number}" for number in range(count)], RESOURCES, rows, features)


@st.composite
def requests(draw: st.DrawFn, *, spread: bool | None = None, simple: bool = False) -> tuple[int, Request]:
    """Draw a number of nodes and a request, often of something that is not asked for, seldom a strange one."""
    names = RESOURCES if simple or draw(st.integers(0, 9)) else (*RESOURCES, "nics")
    amounts = tuple(draw(st.integers(0, 4)) * draw(st.integers(0, 1)) for _ in names)
    nodes = draw(st.integers(1, 3))
    spread = draw(st.booleans()) if spread is None else spread
    plain = ["", "", "", "a", "a&b", "c"]
    constraint = "" if simple else draw(st.sampled_from(plain if spread else [*plain, *COUNTS]))
    exclusive = not simple and draw(st.integers(0, 3)) == 0
    return nodes, Request(names, amounts, spread, exclusive, countable(constraint, nodes))


@st.composite
def levels(draw: st.DrawFn, within: MachineLevel) -> MachineLevel:
    """Draw a level; machines are often untouched."""
    rows = [
        row if draw(st.booleans()) else [draw(st.integers(0, amount)) for amount in row]
        for row in within.tolist()
    ]
    return level_of(rows)


# --- by trying everything --------------------------------------------------------------------------------


def every_allocation(
    cluster: Machines, nodes: int, request: Request, level: MachineLevel
) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    """Yield all (machines, amounts) that give a job what it asks for, by the words of `Request` alone."""
    wanted = [request.amount(name) for name in cluster.resources]
    if any(request.amount(name) for name in request.resources if name not in cluster.resources):
        return
    if not (any(wanted) or request.exclusive):
        return
    everywhere, conditions = split_constraint(request.constraint)
    rows, whole = level.tolist(), cluster.capacity.tolist()
    can = [
        machine
        for machine in range(len(cluster))
        if satisfies(cluster.features[machine], everywhere)
        and (not request.exclusive or rows[machine] == whole[machine])
    ]
    if not request.spread or not any(wanted):
        for chosen in combinations(can, 1 if request.spread else nodes):
            if meets_counts(chosen, conditions, cluster.features) and all(
                has >= wants for machine in chosen for has, wants in zip(rows[machine], wanted, strict=True)
            ):
                given = [whole[machine] if request.exclusive else wanted for machine in chosen]
                yield chosen, tuple(map(tuple, given))
        return
    for count in range(1, len(can) + 1):
        for chosen in combinations(can, count):
            yield from _every_split(chosen, rows, wanted, exclusive=request.exclusive)


def _every_split(
    chosen: tuple[int, ...], rows: list[list[int]], wanted: list[int], *, exclusive: bool
) -> Iterator[tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]]:
    if exclusive:
        given = tuple(tuple(rows[machine]) for machine in chosen)
        if all(sum(column) >= wants for column, wants in zip(zip(*given, strict=True), wanted, strict=True)):
            yield chosen, given
        return
    shares = [
        [
            split
            for split in product(*(range(rows[machine][k] + 1) for machine in chosen))
            if sum(split) == wants
        ]
        for k, wants in enumerate(wanted)
    ]
    for columns in product(*shares):
        given = tuple(zip(*columns, strict=True))
        if all(map(any, given)):
            yield chosen, given


def every(cluster: Machines, nodes: int, request: Request, level: MachineLevel) -> list[Allocation]:
    """Return :func:`every_allocation` as allocations."""
    return [Allocation(*given) for given in every_allocation(cluster, nodes, request, level)]
