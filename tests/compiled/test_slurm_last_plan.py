"""Plans of Slurm's backfills that go on with those before them: the schedules of SimPy, which makes each anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partition, Partitions
from hpcsimkit.compiled import slurm_last_plan, slurm_limits, slurm_loop, slurm_places
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.slurm.accounts import Qos
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.rules import Clocks, Multifactor
from tests.compiled.test_equality import uncompiled
from tests.compiled.test_slurm import Day, Draws, check

SHORTCUTS = {
    (slurm_last_plan, "_has_its_place"): (True, False),
    (slurm_last_plan, "_is_kept"): (True, False),
    (slurm_last_plan, "_is_own"): (True, False),
    (slurm_places, "_fits_as_before"): (True, False),
    (slurm_places, "still_may_start"): (True, False),
    (slurm_places, "may_start"): (True, False),
}
"""Questions whose answers save work, each with the answers that the drawn days should have."""

STEPS = (
    (slurm_last_plan, "_again_on_one"),
    (slurm_last_plan, "_again_on_several"),
    (slurm_last_plan, "_search_from"),
    (slurm_last_plan, "_end_last_plan"),
    (slurm_limits, "reason_of"),
)
"""Steps that the drawn days should take besides."""


def crowded(seed: int) -> Day:
    """Return many jobs on few machines, nearly all of which the backfill starts."""
    draws = Draws(seed)
    names = tuple(f"n{number}" for number in range(draws.one(2, 4, 6)))
    machines = Machines(names, ("cpus",), [[draws.one(2, 4)] for _ in names])
    parts = [
        Partition(f"p{number}", machines=draws.some(names), priority=draws.one(1, 1, 2))
        for number in range(draws.one(1, 2, 3))
    ]
    partitions = Partitions(parts, machines)
    limits = {"GrpJobs": draws.one(1, 3)}, {"MaxTRESPU": {"cpus": 4.0}}, {"GrpTRESRunMins": {"cpus": 9.0}}
    made = Slurm(
        "crowded",
        partitions,
        clocks=Clocks(
            bf_interval=draws.one(5, 11),
            bf_resolution=draws.one(1, 7, 20),
            bf_window=draws.one(30, 60, 100, 10**5),
            bf_max_job_test=draws.seldom(0, 6),
            bf_max_job_user=draws.seldom(0, 2),
            sched_interval=draws.one(40, 10**6),
            sched_min_interval=draws.one(2, 10**6),
            end_groups=False,
        ),
        priority=Multifactor(
            age=100,
            fair_share=draws.one(0, 1000),
            max_age=500,
            half_life=100,
            calc_period=draws.one(20, 10**6),
        ),
        qos={"normal": Qos("normal"), "held": Qos("held", limits=draws.one({}, *limits))},
    )
    return Day(made, crowd(draws, partitions), "kill")


def crowd(draws: Draws, partitions: Partitions) -> Workload:
    """Return jobs for it, in series of equal ones, of which some run as long as they may."""
    rng, count = draws.rng, 40
    series = np.repeat(np.arange(count), rng.integers(1, 4, count))[:count]
    limit = rng.choice([5, 9, 20, 40, 60, 130], count)[series]
    columns = {
        "submit_time": np.cumsum(rng.choice([0, 0, 0, 1, 7, 30], count)),
        "run_time": np.where(rng.random(count) < 0.4, limit, rng.integers(1, limit + 3)),
        "requested_time": limit,
        "nodes": np.where(rng.random(count) < 0.3, rng.integers(2, 4, count), 1)[series],
        "cpus": rng.integers(1, 5, count)[series],
        "exclusive": rng.choice([-1, -1, -1, 1], count)[series],
        "user": rng.integers(0, 3, count)[series],
        "group": np.zeros(count, dtype=np.int64),
        "qos": rng.choice([0, 0, 1], count)[series],
        "partition": rng.integers(0, len(partitions.names), count)[series],
    }
    labels = {"user": ("ada", "ben", "cleo"), "group": ("red",), "qos": ("normal", "held")}
    jobs = Workload(columns, resources=("cpus",), labels={**labels, "partition": partitions.names})
    return jobs.select(np.flatnonzero(partitions.admitted(jobs).any(axis=0)))


def counted(patch: pytest.MonkeyPatch, module: Any, name: str, seen: Counter[Any], *, answer: bool) -> None:
    """Count the calls of a function, by their answers."""
    function: Callable[..., Any] = getattr(module, name)

    def counting(*arguments: Any) -> Any:
        found = function(*arguments)
        seen[(name, bool(found)) if answer else name] += 1
        return found

    for each in (slurm_last_plan, slurm_limits, slurm_loop, slurm_places):
        if getattr(each, name, None) is function:
            patch.setattr(each, name, counting)


@uncompiled
def test_crowded_days(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both simulators agree on days on which each shortcut is taken, and is not."""
    seen: Counter[Any] = Counter()
    for module, name in SHORTCUTS:
        counted(monkeypatch, module, name, seen, answer=True)
    for module, name in STEPS:
        counted(monkeypatch, module, name, seen, answer=False)
    for seed in range(40):
        check(crowded(seed))
    wanted = [(name, answer) for (_, name), answers in SHORTCUTS.items() for answer in answers]
    assert not [each for each in (*wanted, *(name for _, name in STEPS)) if not seen[each]]


@pytest.mark.slow
@uncompiled
def test_many_crowded_days() -> None:
    for seed in range(1000, 6000):
        check(crowded(seed))
