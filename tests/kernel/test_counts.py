"""Counts in constraints: crowded random cases against the naive simulators, and every answer by trying everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.policies import Reservations
from tests.kernel import naive_machines
from tests.kernel.machine_cases import fits_empty, given
from tests.kernel.machine_helpers import (
    RESOURCES,
    Asked,
    asked,
    countable,
    every,
    jobs_on_machines,
    run_on,
)

CONSTRAINTS = ["", "a", "b", "a*1", "a*2", "b*1", "a*1&b*1", "[a*2&b*1]", "b&a*1", "(a|b)*2&a*1"]
CASES = 50


def crowded(seed: int, jobs: int = 14) -> tuple[Machines, list[Asked]]:
    """Return machines with few features, and jobs of several nodes that fit the empty machines."""
    rng = np.random.default_rng(seed)
    features = [[word for word in "ab" if rng.random() < 0.45] for _ in range(5)]
    names = [f"m{number}" for number in range(5)]
    cluster = Machines(names, RESOURCES, [[int(rng.integers(1, 4)), 0, 0] for _ in names], features)
    found: list[Asked] = []
    while len(found) < jobs:
        nodes = int(rng.integers(1, 5))
        constraint = countable(str(rng.choice(CONSTRAINTS)), nodes)
        run, cpus = int(rng.integers(1, 12)), int(rng.choice([1, 1, 2, 3]))
        exclusive = bool(rng.random() < 0.2)
        job = asked(
            int(rng.integers(0, 12)), run, cpus=cpus, nodes=nodes, constraint=constraint, exclusive=exclusive
        )
        if fits_empty(job, cluster):
            found.append(replace(job, requested=run + int(rng.choice([0, 0, 3, -1])) or 1))
    return cluster, found


@pytest.mark.parametrize("name", ["fcfs", "sjf+easy", "fcfs+easy", "fcfs+easy-k(2)", "fcfs+conservative"])
def test_schedules_equal_the_naive_simulator(name: str) -> None:
    order, _, backfilling = name.partition("+")
    key = (lambda job: job.submit) if order == "fcfs" else (lambda job: job.estimate)
    for seed in range(CASES):
        cluster, jobs = crowded(seed)
        policy = make(name)
        if backfilling == "conservative":
            killed = [replace(job, run=min(job.run, job.requested or job.run)) for job in jobs]
            expected, places, *_ = naive_machines.conservative(cluster, killed)
            result = run_on(cluster, jobs, policy, walltime="kill")
        else:
            policy.backfiller = Reservations(2) if backfilling == "easy-k(2)" else policy.backfiller
            expected, places = (
                naive_machines.reservations(cluster, jobs, 2, key)
                if backfilling == "easy-k(2)"
                else naive_machines.easy(cluster, jobs, key, backfill=bool(backfilling))
            )
            result = run_on(cluster, jobs, policy)
        assert (result.start_time.tolist(), given(result)) == (expected, places), seed


def test_jobs_behind_a_head_by_trying_everything() -> None:
    """No long job takes what the head needs; with a single count or none, each that could start may."""
    waiting = refused = 0
    for seed in range(20 * CASES):
        cluster, jobs = crowded(seed, jobs=2)
        rng = np.random.default_rng(seed)
        later = np.asfortranarray(cluster.capacity * (rng.random((5, 1)) < 0.8))
        free = np.asfortranarray(later * (rng.random((5, 1)) < 0.7))
        head, job = jobs_on_machines(jobs).jobs
        if cluster.fits(head, free) or not cluster.fits(head, later) or not cluster.fits(job, free):
            continue
        assert job.request is not None
        possible = every(cluster, job.nodes, job.request, free)
        harmless = [each for each in possible if cluster.fits(head, later - each)]
        within = cluster.within(job, 101, cluster.room(head, free, 100, later))
        if within is not None:
            allowed = [each for each in possible if all((within[m] >= 0).all() for m in each.machines)]
            assert allowed and all(each in harmless for each in allowed), seed
            assert cluster.place(job, within) in allowed
        if len(cluster.need(job).counts) < 2:
            assert (within is not None) == bool(harmless), seed
        waiting += 1
        refused += within is None
    assert waiting > 100 and 20 < refused < waiting


@pytest.mark.parametrize("name", ["best-fit", "worst-fit", "breadth-first", "round-robin"])
def test_a_placement_takes_the_best_machines_that_meet_the_counts(name: str) -> None:
    """Of all sets, in the order of the placement: the first one."""
    for seed in range(CASES):
        cluster, jobs = crowded(seed, jobs=1)
        (job,) = jobs_on_machines(jobs).jobs
        assert job.request is not None
        plain = job._replace(nodes=1, request=job.request._replace(constraint=""))
        policy = make(f"fcfs+{name}")
        result = run_on(cluster, jobs, policy)
        ranks = rank_of(cluster, plain, name)
        sets = [
            sorted(ranks[m] for m in each.machines)
            for each in every(cluster, job.nodes, job.request, cluster.capacity)
        ]
        assert sorted(ranks[m] for m in given(result)[0]) == min(sets), seed


def rank_of(cluster: Machines, job: object, name: str) -> dict[int, int]:
    """Return the rank of each machine for a part of a job, on empty machines."""
    cpus = cluster.capacity[:, 0]
    left = np.maximum(cpus - job.request.amounts[0], 0) / cpus * (not job.request.exclusive)  # type: ignore[attr-defined]
    scores = {"best-fit": left, "worst-fit": -left, "breadth-first": cpus * 0, "round-robin": cpus * 0}[name]
    return {machine: rank for rank, machine in enumerate(np.argsort(scores, kind="stable").tolist())}


def test_counts_in_partitions() -> None:
    """Two partitions without common machines: the schedules of each alone, with counts of its own machines."""
    for seed in range(CASES // 10):
        parts = [crowded(seed), crowded(seed + 1000)]
        machines = Machines.joined([cluster for cluster, _ in parts])
        names = [machines.names[:5], machines.names[5:]]
        cluster = Partitions([Partition(n, machines=m) for n, m in zip("ab", names, strict=True)], machines)
        logs = [
            jobs_on_machines(sorted(jobs, key=lambda job: job.submit), partition=[number] * len(jobs))
            for number, (_, jobs) in enumerate(parts)
        ]
        logs = [replace(log, labels={**log.labels, "partition": ("a", "b")}) for log in logs]
        together = logs[0].merge(logs[1])
        for name in ("fcfs+easy", "sjf+best-fit+conservative"):
            found = run_on(cluster, together, make(name))
            for number, ((alone, _), log) in enumerate(zip(parts, logs, strict=True)):
                expected = run_on(alone, log, make(name))
                rows = np.flatnonzero(together.partition == number)
                assert found.start_time[rows].tolist() == expected.start_time.tolist(), (seed, name)
