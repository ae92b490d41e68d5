"""A problem whose best answer is known, and what it means that a trainer goes on where it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpcsimkit import External, Pipeline, Simulation, Workload
from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Generated
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.trainer import CHECKPOINT, CURVE, LAST, Trainer
from hpcsimkit.envs.environment import SchedulingEnv

JOBS = 12
FEW = 4


def two_classes(rng: np.random.Generator, jobs: int = JOBS) -> Workload:
    """Short and long jobs on a single node, all there at once: shortest first is best."""
    columns = {"submit_time": np.zeros(jobs), "run_time": rng.choice([10, 100], jobs), "nodes": np.ones(jobs)}
    return Workload(columns, machine_size=1)


def few(rng: np.random.Generator) -> Workload:
    return two_classes(rng, FEW)


def env(**changes: Any) -> SchedulingEnv:
    """Twelve jobs; who sits there is asked for the next job as soon as one has started."""
    parts: dict[str, Any] = {
        "episodes": Generated(two_classes),
        "policy": Pipeline(order=External(), window=JOBS),
        "encoder": QueueWindow(JOBS, time_scale=100),
        "mask": Slots(JOBS),
        "reward": MinusMeanWait(scale=100),
    }
    return SchedulingEnv(**{**parts, **changes})


def small_env(**changes: Any) -> SchedulingEnv:
    """Four jobs; who sits there is asked when the node is free, and is paid at once for what it does."""
    parts: dict[str, Any] = {
        "episodes": Generated(few),
        "policy": Pipeline(order=External(), window=FEW, fitting=True),
        "encoder": QueueWindow(FEW, time_scale=100),
        "mask": Slots(FEW),
    }
    return env(**{**parts, **changes})


def seated(agent: Agent, jobs: int = JOBS) -> Pipeline:
    return Pipeline(order=agent, window=jobs, fitting=jobs == FEW)


def mean_wait(scheduler: Any, seeds: range, jobs: int = JOBS) -> float:
    logs = [two_classes(np.random.default_rng(seed), jobs) for seed in seeds]
    return float(np.mean([Simulation(log, scheduler).run().wait_time.mean() for log in logs]))


def without_rates(curve: list[Report]) -> list[str]:
    return [str(report._replace(steps_per_second=0)) for report in curve]


def told_by(trainer: Trainer, **how: Any) -> list[str]:
    """What a trainer tells of its training, without rates."""
    curve: list[Report] = []
    trainer.train(tell=curve.append, **how)
    return without_rates(curve)


class StopError(Exception):
    """Somebody has pulled the plug."""


def goes_on_as_if_never_stopped(
    made: Callable[[], Trainer], last: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Train straight through; train, stop at a report, go on: all that is told and written is the same."""
    monkeypatch.setattr("hpcsimkit.agents.training.trainer.SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole: list[Report] = []
    straight = made().train(folder / "straight", tell=whole.append)
    assert len(whole) > last

    told: list[Report] = []

    def stop(report: Report) -> None:
        told.append(report)
        if len(told) == last:  # told, but not yet in the checkpoint
            raise StopError

    with pytest.raises(StopError):
        made().train(folder / "stopped", tell=stop)
    rest: list[Report] = []
    gone_on = made().train(folder / "stopped", resume=True, tell=rest.append)

    assert without_rates(told) == without_rates(whole[:last])
    assert without_rates(rest) == without_rates(whole[last - 1 :])
    assert gone_on.network == straight.network
    for file in (LAST, "best.hpcsim"):
        assert Agent.load(folder / "straight" / file) == Agent.load(folder / "stopped" / file)
    for file in (CHECKPOINT, CURVE):
        assert (folder / "straight" / file).read_bytes() == (folder / "stopped" / file).read_bytes(), file
    assert len((folder / "straight" / CURVE).read_text().splitlines()) == 1 + len(whole)
