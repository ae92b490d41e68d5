"""Random crowded workloads on random machines, and what each job was given as plain dictionaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.results.result import Result
from tests.kernel.machine_helpers import (
    COUNTS,
    RESOURCES,
    Asked,
    clusters,
    countable,
    meets_counts,
    satisfies,
    split_constraint,
)

Given = dict[int, tuple[int, ...]]
"""What a job was given: amounts by number of the machine."""


class Kind(NamedTuple):
    """What the jobs of a case may ask for."""

    spread: tuple[bool, ...] = (False,)
    exclusive: tuple[bool, ...] = (False,)
    nodes: tuple[int, ...] = (1,)
    constraint: tuple[str, ...] = ("",)


KINDS = {
    "one machine": Kind(),
    "some machines": Kind(nodes=(1, 1, 2, 3)),
    "totals": Kind(spread=(True,), nodes=(1, 2)),
    "mixed": Kind(spread=(False, True), nodes=(1, 1, 2)),
    "counts": Kind(exclusive=(False, False, True), nodes=(1, 2, 2, 3), constraint=("", "b", *COUNTS)),
    "whole": Kind(spread=(False, True), exclusive=(False, True), nodes=(1, 1, 2)),
    "anything": Kind(
        spread=(False, False, True),
        exclusive=(False, False, True),
        nodes=(1, 1, 2, 3),
        constraint=("", "", "a", "a&b", "a*1"),
    ),
}


@st.composite
def cases(
    draw: st.DrawFn, kinds: Sequence[str] = tuple(KINDS), *, exact: bool = False, most: int = 10
) -> tuple[Machines, list[Asked]]:
    """Draw machines and jobs: equal instants, zero-length jobs, wrong estimates in both directions."""
    cluster = draw(clusters())
    kind = KINDS[draw(st.sampled_from(sorted(kinds)))]
    last, longest = draw(st.sampled_from([0, 5, 30])), draw(st.sampled_from([3, 12]))
    jobs = []
    for _ in range(draw(st.integers(1, most))):
        took, spread = draw(st.integers(0, longest)), draw(st.sampled_from(kind.spread))
        nodes = draw(st.sampled_from(kind.nodes))
        constraint = countable(draw(st.sampled_from(kind.constraint)), nodes)
        # Of what? Of the machine with most of it, or of all machines.
        there = cluster.capacity.sum(axis=0) if spread else cluster.capacity.max(axis=0)
        jobs.append(
            Asked(
                draw(st.integers(0, last)),
                took,
                max(took, 1) if exact else draw(st.sampled_from([max(took, 1), took + 5, 4, 9])),
                nodes=nodes,
                spread=spread,
                exclusive=draw(st.sampled_from(kind.exclusive)),
                constraint=constraint if not spread else constraint.replace("*1", ""),
                amounts={
                    name: draw(st.integers(0, 1)) * draw(st.integers(0, high))
                    for name, high in zip(RESOURCES, there.tolist(), strict=True)
                },
            )
        )
    return cluster, [job if fits_empty(job, cluster) else smaller(job) for job in jobs]


def exceeding(jobs: Sequence[Asked], seed: int) -> list[Asked]:
    """Return the jobs with run times of up to a minute, two thirds of which exceed the requested time."""
    numbers = np.random.default_rng(seed)
    longer = []
    for job in jobs:
        run = int(job.run * numbers.integers(1, 6))
        requested = max(1, int(run * numbers.choice([0.2, 0.5, 1.5])))
        longer.append(replace(job, run=run, requested=requested))
    return longer


def smaller(job: Asked) -> Asked:
    """Return a job that fits every cluster drawn."""
    return Asked(job.submit, job.run, job.requested, amounts={"cpus": 1, "gpus": 0, "memory": 0})


def fits_empty(job: Asked, cluster: Machines) -> bool:
    """Tell whether machines of which nobody uses anything can take a job."""
    wanted = [job.amounts[name] for name in cluster.resources]
    everywhere, conditions = split_constraint(job.constraint)
    able = [number for number, has in enumerate(cluster.features) if satisfies(has, everywhere)]
    allowed = [cluster.capacity[number].tolist() for number in able]
    if job.spread and any(wanted):
        return bool(allowed) and covers([sum(column) for column in zip(*allowed, strict=True)], wanted)
    able = [number for number in able if covers(cluster.capacity[number].tolist(), wanted)]
    sets = combinations(able, job.nodes)
    return (any(wanted) or job.exclusive) and any(
        meets_counts(some, conditions, cluster.features) for some in sets
    )


def covers(there: Sequence[int], wanted: Sequence[int]) -> bool:
    """Tell whether there is enough of each resource."""
    return all(a >= b for a, b in zip(there, wanted, strict=True))


def given(result: Result) -> list[Given]:
    """Return what each job was given."""
    placements = result.placements
    assert placements is not None
    found: list[Given] = [{} for _ in range(len(result.workload))]
    parts = (placements.job.tolist(), placements.machine.tolist(), placements.amounts.tolist())
    for job, machine, amounts in zip(*parts, strict=True):
        assert machine not in found[job]
        found[job][machine] = tuple(amounts)
    return found
