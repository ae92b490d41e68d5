"""The frame of reproductions: sequences that share no job, and what is measured of runs on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcsimkit import Workload
from hpcsimkit.engine.store import Store
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import EASY, SJF, Greedy
from hpcsimkit.policies.dirlab import published
from hpcsimkit.reproductions.sequences import (
    MEASURES,
    OF_PROMISES,
    Contestant,
    Meeting,
    SequenceSet,
    starts_apart,
)
from hpcsimkit.workloads import default_workload

LOG = default_workload(np.random.default_rng(4), jobs=400, load=1.2)


@given(
    first=st.integers(0, 500), jobs=st.integers(1, 60), more=st.integers(0, 600), count=st.integers(1, 40),
    seed=st.integers(0, 9),
)  # fmt: skip
def test_sequences_share_no_job(first: int, jobs: int, more: int, count: int, seed: int) -> None:
    end = first + jobs + more
    starts = starts_apart(first, end, jobs=jobs, count=count, seed=seed)
    taken = [row for start in starts for row in range(start, start + jobs)]
    assert len(taken) == len(set(taken))
    assert first <= min(taken) <= max(taken) < end
    assert len(starts) == min(count, (end - first) // jobs)
    assert starts_apart(first, end, jobs=jobs, count=count + 5, seed=seed)[: len(starts)] == starts


def test_seeds_draw_others() -> None:
    drawn = {tuple(starts_apart(0, 1000, jobs=10, count=5, seed=seed)) for seed in range(5)}
    assert len(drawn) == 5


def test_no_room_for_any() -> None:
    message = r"^sequences of 11 jobs from row 5 to 15 are needed, there is no room$"
    with pytest.raises(UsageError, match=message):
        starts_apart(5, 15, jobs=11, count=1, seed=0)


def test_fewer_sequences_than_asked_for_are_told() -> None:
    starts = starts_apart(100, 400, jobs=120, count=5, seed=1)
    found = SequenceSet.of("rest", LOG, starts, 120)
    assert found.jobs == 240
    assert found.words(2) == "2 sequences of 120"
    assert found.words(5) == "2 sequences of 120 (not 5: no more lie side by side)"
    assert SequenceSet.of("rest", LOG, starts[:1], 120).words(1) == "1 sequence of 120"


# --- what is measured --------------------------------------------------------------------------------------


def meeting(policy: Pipeline, *, promises: bool, rules: str = "textbook") -> Meeting:
    """Two sequences. In the first, blocked jobs could start at 9 s and 109 s, and do so 43 s and 23 s later."""
    late = {
        "submit_time": [0, 1, 2, 100, 101, 102], "run_time": [9, 9, 50, 9, 9, 30], "nodes": [3, 4, 1] * 2
    }  # fmt: skip
    idle = {"submit_time": [0, 20], "run_time": [9, 9], "nodes": [4, 4]}
    scenarios = [
        Scenario(Workload(columns, machine_size=4), Setup(event_order=DirlabOrder()))
        for columns in (late, idle)
    ]
    who = Contestant("greedy", policy, rules=rules)  # type: ignore[arg-type]
    return Meeting(who, SequenceSet("both", scenarios), promises=promises)


def test_broken_promises_are_counted_sequence_by_sequence(tmp_path: Path) -> None:
    store, told = Store(tmp_path), []
    task = meeting(Pipeline(backfiller=Greedy()), promises=True)
    store.perform(task, told.append)
    outcome = store.outcome(task)
    assert told == [6, 8]
    assert tuple(outcome) == task.measures == MEASURES + OF_PROMISES
    assert outcome["promises"] == [2, 0]
    assert outcome["broken_promises"] == [2, 0]
    assert outcome["mean_delay_of_broken"] == [33, 0]
    assert outcome["mean_wait_time"] == [(51 + 31) / 6, 0]

    task = meeting(Pipeline(backfiller=EASY()), promises=True)
    outcome = task.run(tmp_path, lambda done: None)
    assert (outcome["promises"], outcome["broken_promises"]) == ([4, 0], [0, 0])


def test_promises_are_counted_only_if_asked_for(tmp_path: Path) -> None:
    without = meeting(Pipeline(backfiller=Greedy()), promises=False)
    assert tuple(without.run(tmp_path, lambda done: None)) == without.measures == MEASURES
    store = Store(tmp_path)
    store.perform(without, lambda done: None)
    assert store.has(without)
    assert not store.has(meeting(Pipeline(backfiller=Greedy()), promises=True)), "it says more"


@pytest.mark.parametrize("rules", ["dirlab", "textbook"])
def test_counting_promises_changes_nothing_else(tmp_path: Path, rules: str) -> None:
    policy = published("rlbackfilling", "sjf", backfilling=True)
    if rules == "textbook":
        policy = Pipeline(SJF(), backfiller=EASY())
    sequences = SequenceSet.of("log", LOG, [0, 200], 200)
    who = Contestant("easy", policy, rules=rules)  # type: ignore[arg-type]
    plain, counted = (
        Meeting(who, sequences, promises=promises).run(tmp_path, lambda done: None)
        for promises in (False, True)
    )
    assert {name: counted[name] for name in MEASURES} == plain
    assert min(counted["promises"]) > 10
