"""Each shortcut of the kernel against simulators that take none, on workloads drawn so that it is taken.

Every test counts how often the shortcut was taken: without that, it could pass by never taking it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.queue import JobQueue, ScoredQueue
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Estimator
from hpcsimkit.kernel.reservation import EASY
from hpcsimkit.kernel.settling import SettlingBackfiller
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import FCFS, Conservative
from tests.kernel import naive, naive_machines
from tests.kernel.helpers import Row, deep, run, starts, workload
from tests.kernel.machine_cases import given
from tests.kernel.machine_helpers import RESOURCES, Asked, jobs_on_machines
from tests.kernel.naive_conservative import NaiveConservative, wfp3
from tests.kernel.test_naive import ORDERS

Drawn = tuple[list[Row], int]


def crowd(seed: int, jobs: int = 40, overruns: float = 0.3, apart: int = 1) -> Drawn:
    """Return jobs that arrive one by one, faster than they end, so that most passes find a blocked head.

    Parameters
    ----------
    seed : int
        Seed of the draw.
    jobs : int
        Number of jobs.
    overruns : float
        Share of jobs that run for longer than they request.
    apart : int
        Most seconds from an arrival to the next, to which at least half of them come at once for 0.
    """
    numbers = np.random.default_rng(seed)
    size = int(numbers.integers(3, 9))
    submit = np.cumsum(numbers.integers(0, apart + 2, jobs)).tolist()
    rows = []
    for at in submit:
        long = numbers.random() < 0.4
        run = int(numbers.integers(8, 40) if long else numbers.integers(0, 8))
        share = numbers.uniform(0.2, 0.9) if numbers.random() < overruns else numbers.uniform(1, 2)
        nodes = int(numbers.integers(1, size + 1) if long else numbers.integers(1, 3))
        rows.append((at, run, max(1, int(run * share)), nodes))
    return rows, size


def behind_a_head(seed: int, overruns: bool = False) -> Drawn:
    """Return jobs of which a large one waits for a long one, and small ones arrive meanwhile, one by one.

    The requested times of these are as long as the wait at some time. With `overruns`, the long job runs for longer
    than it requests, and so do some others.
    """
    numbers = np.random.default_rng(seed)
    size = int(numbers.integers(4, 8))
    rows, now = [], 0
    for _ in range(3):
        wait = int(numbers.integers(30, 60))
        free = int(numbers.integers(2, size - 1))
        rows.append((now, wait, int(wait * (0.4 if overruns else 1)), size - free))
        rows.append((now + 1, int(numbers.integers(5, 20)), 20, int(numbers.integers(free + 1, size + 1))))
        at = now + 2
        while at < now + wait + 10:
            requested = int(numbers.choice([1, 2, 5, 10, 20, 40, 80]))
            late = overruns and numbers.random() < 0.3
            run = int(requested * numbers.uniform(0.5, 1)) + late * int(numbers.integers(1, 9))
            rows.append((at, run, requested, int(numbers.integers(1, 3))))
            at += int(numbers.integers(1, 6))
        now = at + 10
    return rows, size


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Counter[str]]]:
    """Return a function that counts the calls of a method, by a word for each: its name by default."""
    counts: Counter[str] = Counter()

    def watch(kind: type, name: str, word: Callable[..., str | None] | None = None) -> Counter[str]:
        original = getattr(kind, name)

        def counted(self: Any, *arguments: Any) -> Any:
            before = dict(vars(self)) if hasattr(self, "__dict__") else {}
            answer = original(self, *arguments)
            said = name if word is None else word(before, answer, *arguments)
            if said is not None:
                counts[said] += 1
            return answer

        monkeypatch.setattr(kind, name, counted)
        return counts

    yield watch
    counts.clear()


# --- settled states and newcomers -------------------------------------------------------------------------


@pytest.mark.parametrize("backfilling", ["easy", "greedy"])
def test_passes_on_a_settled_state_are_skipped(backfilling: str, taken: Any) -> None:
    skipped = taken(SettlingBackfiller, "skip", lambda _, answer, system: f"{answer}")
    simulate = {"easy": naive.easy, "greedy": naive.greedy}[backfilling]
    for seed in range(60):
        (rows, size), order = crowd(seed, overruns=0.3 * (seed % 2)), sorted(ORDERS)[seed % len(ORDERS)]
        expected = simulate(rows, size, ORDERS[order])
        assert starts(workload(rows, size), f"{order}+{backfilling}") == expected, seed
    assert min(skipped["True"], skipped["False"]) > 100


def admitted(before: dict[str, Any], answer: Any, head: Job, system: System) -> str:
    kept = "kept" if before["_room"] is not None else "new"
    return f"{kept} room, {'admitted' if answer else 'not admitted'}"


def test_a_single_newcomer_is_checked_alone(taken: Any) -> None:
    """Its window is as long as it is now, not as it was when the room was made."""
    newcomers = taken(EASY, "_newcomer", admitted)
    for seed in range(60):
        (rows, size), order = behind_a_head(seed), ("fcfs", "laf")[seed % 2]
        assert starts(workload(rows, size), f"{order}+easy") == naive.easy(rows, size, ORDERS[order]), seed
    assert min(newcomers[f"{room} room, admitted"] for room in ("kept", "new")) > 20
    assert min(newcomers[f"{room} room, not admitted"] for room in ("kept", "new")) > 20


def overdue(before: dict[str, Any], answer: Any, head: Job, system: System) -> str | None:
    """Tell a call of `fill` that would check a newcomer alone, were no job beyond its estimate."""
    alone = before["settled"] == system.version and len(system.newcomers) == 1 and before["_head"] is head
    late = system.running.overrun(system.now)
    return f"{'late' if late else 'in time'}" if alone else None


def test_a_newcomer_is_not_checked_alone_beside_an_overrun(taken: Any) -> None:
    """The shadow time moves with the clock then."""
    alone = taken(EASY, "fill", overdue)
    for seed in range(60):
        (rows, size), order = behind_a_head(seed, overruns=True), ("fcfs", "laf")[seed % 2]
        assert starts(workload(rows, size), f"{order}+easy") == naive.easy(rows, size, ORDERS[order]), seed
    assert min(alone["late"], alone["in time"]) > 100


class Grows(Estimator):
    """The requested time, and half as long again as it has run for a job that exceeds it."""

    corrects = True

    def correct(self, job: Job, elapsed: int) -> int:
        return grown((0, 0, 0, 0), elapsed)


def grown(job: Row, elapsed: int) -> int:
    return elapsed + elapsed // 2 + 1


def test_a_corrected_estimate_ends_a_settled_state(taken: Any) -> None:
    corrected = taken(System, "expect")
    skipped = taken(SettlingBackfiller, "skip", lambda _, answer, system: f"{answer}")
    for seed in range(300, 340):
        rows, size = crowd(seed, overruns=0.5, apart=2)
        policy = Pipeline(FCFS(), backfiller=EASY(), estimates=Grows())
        assert starts(workload(rows, size), policy) == naive.easy(rows, size, correct=grown), seed
    assert min(corrected["expect"], skipped["True"]) > 100


# --- the plan of conservative backfilling -------------------------------------------------------------------


def test_a_plan_is_made_anew_after_corrected_estimates_only(taken: Any) -> None:
    """Without overruns or holds, it is kept from pass to pass and compressed."""
    counts = taken(Conservative, "plan")
    taken(Conservative, "_make_anew")
    taken(Conservative, "_compress", lambda before, _, system: "moved" if until(before, system) else None)
    for seed in range(60):
        rows, size = crowd(seed, overruns=0.3 * (seed % 2))
        expected = NaiveConservative(rows, size, correct=grown).run()
        found = run(workload(rows, size), Pipeline(FCFS(), backfiller=Conservative(), estimates=Grows()))
        assert found.start_time.tolist() == expected.starts, seed
        assert found.passes == len(expected.passes), seed
    assert counts["plan"] - counts["_make_anew"] > 500
    assert min(counts["moved"], counts["_make_anew"]) > 100


def until(before: dict[str, Any], system: System) -> bool:
    """Tell whether some capacity was freed before its expected end."""
    return any(
        system.ledger.expected_end_of(row) > system.now for row in system.ended[before["_seen_ends"] :]
    )


# --- queues ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [200, 8, 2])
@pytest.mark.parametrize("shallow", [40, 3])
def test_scores_are_kept_when_a_job_leaves(
    shallow: int, limit: int, taken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpcsimkit.jobs.queue.SHALLOW", shallow)
    kept = taken(ScoredQueue, "remove", lambda before, *_: type(before["_scores"]).__name__)
    with deep(limit):
        for seed in range(8):
            rows, size = crowd(seed, apart=seed % 3)
            assert starts(workload(rows, size), "wfp3+easy") == naive.easy(rows, size, score=wfp3), seed
    assert kept["ndarray" if shallow == 3 else "list"] > 40


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_a_long_queue_loses_its_front_by_an_offset(order: str, taken: Any) -> None:
    """And its table is maintained, not made anew."""
    counts = taken(JobQueue, "_leave_in_front")
    taken(JobQueue, "_mirror_insert")
    taken(JobQueue, "_mirror_delete")
    with deep(3):
        for seed in range(8):
            rows, size = crowd(seed, jobs=60, apart=seed % 2)
            assert starts(workload(rows, size), f"{order}+easy") == naive.easy(rows, size, ORDERS[order]), (
                seed
            )
    assert min(counts[name] for name in ("_leave_in_front", "_mirror_insert", "_mirror_delete")) > 20


def in_window(before: dict[str, Any], answer: Any, limit: int) -> str:
    cached = before["_oldest"] is not None and before["_oldest"][0] == limit
    return "kept" if cached else "new"


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_the_oldest_jobs_are_kept_until_one_leaves(order: str, taken: Any) -> None:
    oldest = taken(JobQueue, "oldest", in_window)
    for seed in range(8):
        rows, size = crowd(seed)
        found = starts(workload(rows, size), f"{order}+easy+window(3)")
        assert found == naive.easy(rows, size, ORDERS[order], window=3), seed
    assert oldest["kept"] > 20


def test_the_plain_loop_is_for_pipelines_with_a_blocked_head(taken: Any) -> None:
    """Others run in full, also on homogeneous nodes without any open seat."""
    full = taken(Pipeline, "_run_in_full")
    for seed in range(10):
        (rows, size), order = crowd(seed), sorted(ORDERS)[seed % len(ORDERS)]
        policy = make(order).order
        assert starts(workload(rows, size), Pipeline(policy, backfiller=EASY())) == naive.easy(
            rows, size, ORDERS[order]
        ), seed
        assert not full
        fitting = starts(workload(rows, size), Pipeline(policy, fitting=True))
        assert fitting == naive.greedy(rows, size, ORDERS[order]), seed
        assert full.pop("_run_in_full") > 20


@pytest.mark.parametrize("order", sorted(ORDERS))
def test_jobs_that_fit_are_kept_while_the_window_and_the_level_stay(order: str, taken: Any) -> None:
    asked = taken(Pipeline, "_fitting_jobs")
    taken(Nodes, "fit_each")
    for seed in range(8):
        rows, size = crowd(seed)
        policy = Pipeline(make(order).order, fitting=True, window=3)
        assert starts(workload(rows, size), policy) == naive.greedy(rows, size, ORDERS[order], window=3), seed
    assert asked["_fitting_jobs"] - asked["fit_each"] > 40


# --- machines ---------------------------------------------------------------------------------------------


def machine_crowd(seed: int) -> tuple[Machines, list[Asked]]:
    """Return jobs of few kinds on a few machines: equal requests follow each other."""
    numbers = np.random.default_rng(seed)
    cluster = Machines([f"m{number}" for number in range(3)], RESOURCES, [[4, 1, 4]] * 3)
    kinds = [
        {"cpus": int(numbers.integers(1, 5)), "gpus": int(numbers.integers(0, 2)), "memory": 0}
        for _ in range(3)
    ]
    rows, _ = crowd(seed, jobs=25, overruns=0.2 * (seed % 2))
    return cluster, [
        Asked(submit, run, requested, nodes=int(numbers.integers(1, 3)), amounts=dict(kinds[seed % k]))
        for (submit, run, requested, _), k in zip(
            rows, numbers.integers(1, 4, len(rows)).tolist(), strict=True
        )
    ]


def test_needs_without_room_are_not_tried_again(taken: Any) -> None:
    def full(before: dict[str, Any], answer: int, candidates: Any, first: int, room: Any, known: Any) -> str:
        tried = [(number, estimate > room.window) for _, number, estimate in candidates[first:answer]]
        return "twice" if len(set(tried)) < len(tried) else "once"

    tried = taken(Machines, "_next", full)
    for seed in range(40):
        cluster, jobs = machine_crowd(seed)
        expected, allocations = naive_machines.easy(cluster, jobs)
        result = run(jobs_on_machines(jobs), "fcfs+easy", cluster=cluster)
        assert result.start_time.tolist() == expected, seed
        assert given(result) == allocations, seed
    assert tried["twice"] > 20


# --- simultaneous submissions ---------------------------------------------------------------------------------


def test_jobs_that_follow_others_arrive_in_the_order_of_the_log() -> None:
    """Also among those that are submitted at the same instant without a preceding job."""
    simultaneous = 0
    for seed in range(40):
        numbers = np.random.default_rng(seed)
        rows, size = crowd(seed, jobs=20)
        preceding = [
            -1 if n < 3 or numbers.random() < 0.3 else int(numbers.integers(1, n)) for n in range(20)
        ]
        think = numbers.integers(1, 4, len(rows)).tolist()
        jobs = workload(rows, size, preceding=preceding, think_time=think)
        result = run(jobs, "fcfs+easy", dependencies=True)
        submitted = result.submit_time.tolist()
        seen = [(at, *row[1:]) for at, row in zip(submitted, rows, strict=True)]
        assert result.start_time.tolist() == naive.easy(seen, size), seed
        simultaneous += len(submitted) - len(set(submitted))
    assert simultaneous > 100
