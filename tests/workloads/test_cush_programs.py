"""Programs that come back on CuSH's cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.workloads.models.cush import CUSH_KINDS, CushJobSets
from hpcsimkit.workloads.models.cush_programs import CushPrograms


def log_of(jobsets: int, seed: int = 3, **parameters: Any) -> Workload:
    return CushPrograms(**parameters).generate(np.random.default_rng(seed), jobsets)


def test_job_sets_one_after_the_other() -> None:
    w = log_of(5, every=300)
    assert len(w) == 100 and w.labels == {"kind": CUSH_KINDS} and w.resources == ("cpus", "gpus")
    assert w.id.tolist() == list(range(1, 101)) and set(w.column("spread").tolist()) == {1}
    assert (w.submit_time // 300).tolist() == np.repeat(range(5), 20).tolist()
    assert (w.submit_time % 300).max() == 9
    assert w.run_time.tolist() == w.requested_time.tolist()


def test_programs_are_of_one_kind_and_half_of_them_of_each() -> None:
    w = log_of(400, programs=9)
    kinds = dict(zip(w.executable.tolist(), w.column("kind").tolist(), strict=True))
    assert [kinds[program] for program in w.executable.tolist()] == w.column("kind").tolist()
    assert sorted(kinds) == list(range(9)) and sum(kinds.values()) == 4
    assert np.bincount(w.executable) / len(w) == pytest.approx(np.full(9, 1 / 9), abs=0.015)


def test_lengths_and_demands_are_those_of_the_job_sets() -> None:
    """Whatever the program: of both kinds alike, and distributed as in CuSH's sets."""
    w = log_of(1000)
    sets = CushJobSets().generate(np.random.default_rng(8), 1000)
    for column in ("requested_time", "cpus", "gpus"):
        there = np.concatenate([each.column(column) for each in sets])
        for kind in (0, 1):
            found = w.column(column)[w.column("kind") == kind]
            assert found.mean() == pytest.approx(there.mean(), rel=0.03)


def test_run_times_are_a_share_of_the_requests() -> None:
    w = log_of(300, least_used=0.5)
    long = w.requested_time == 20
    assert set(w.run_time[long].tolist()) == set(range(11, 21))
    assert (w.run_time <= w.requested_time).all() and w.run_time.min() == 1
    none = log_of(300, least_used=0.0)
    assert set(none.run_time[none.requested_time == 20].tolist()) == set(range(1, 21))


def test_the_same_log_from_the_same_seed() -> None:
    assert log_of(3).hash == log_of(3).hash != log_of(3, seed=4).hash


@pytest.mark.parametrize("wrong", [{"programs": 0}, {"every": -1}, {"least_used": 1.5}, {"least_used": -0.1}])
def test_parameters_out_of_range(wrong: dict[str, Any]) -> None:
    with pytest.raises(
        UsageError, match=r"^CushPrograms needs programs of at least 1, .* found [-\d., and]+$"
    ):
        log_of(1, **wrong)
