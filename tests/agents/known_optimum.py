"""A problem with a known optimum for trainings at their shipped settings: ten jobs at once, each for all nodes.

The shortest first is best, and chance is known. Each episode has jobs of its own, and agents are tested on others: how
far from chance to the optimum has a training come?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hpcsimkit import External, Pipeline, Simulation, Workload
from hpcsimkit.agents.dras.settings import STEADY, dras_environment
from hpcsimkit.agents.seats import RandomChoice, play
from hpcsimkit.agents.spaces.encoders import QueueWindow
from hpcsimkit.agents.spaces.episodes import Generated
from hpcsimkit.agents.spaces.masks import Slots
from hpcsimkit.agents.spaces.rewards import MinusMeanWait
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.policies.one_seat.two_level import TwoLevel

JOBS, NODES, LONGEST = 10, 4, 100
UNSEEN = range(1000, 1100)
"""Seeds of the jobs on which agents are tested."""


class Preset(NamedTuple):
    """A training at the settings that it has if none are given, and for how long."""

    algorithm: str
    decisions: int
    fitting: bool = False
    """Whether the order chooses among jobs that can start, as Q-learning needs."""

    @property
    def of_dras(self) -> bool:
        return self.algorithm.startswith("dras")

    @property
    def settings(self) -> Mapping[str, Any]:
        """What the kit itself sets, for agents of a paper."""
        return STEADY[self.algorithm] if self.of_dras else {}


PRESETS = {
    each.algorithm: each
    for each in (
        Preset("dras-dql", 30_000),
        Preset("dras-pg", 240_000),
        Preset("dras-a2c", 180_000),
        Preset("dras-ppo", 80_000),
        Preset("ppo", 200_000),
        Preset("a2c", 400_000),
        Preset("pg", 500_000),
        Preset("dql", 50_000, fitting=True),
        Preset("cem", 20_000),
        Preset("maskable-ppo", 200_000),
        Preset("sb3-ppo", 300_000),
    )
}


def ten_jobs(rng: np.random.Generator) -> Workload:
    """Ten jobs for the whole machine, all there at once."""
    times = rng.integers(1, LONGEST, JOBS)
    columns = {"submit_time": np.zeros(JOBS), "run_time": times, "nodes": np.full(JOBS, NODES)}
    return Workload(columns, machine_size=NODES)


@cache
def tested() -> list[Workload]:
    return [ten_jobs(np.random.default_rng(seed)) for seed in UNSEEN]


def mean_wait(policy: Any) -> float:
    return float(np.mean([Simulation(jobs, policy).run().wait_time.mean() for jobs in tested()]))


@cache
def bounds() -> tuple[float, float]:
    """The mean wait by chance, and the least possible one."""
    drawn = [
        play(
            Simulation(jobs, Pipeline(order=External(), window=JOBS)),
            RandomChoice(np.random.default_rng(number)),
        )
        for number, jobs in enumerate(tested())
    ]
    return float(np.mean([each.wait_time.mean() for each in drawn])), mean_wait("sjf")


def environment(preset: Preset) -> SchedulingEnv:
    if preset.of_dras:
        paper = dras_environment(Generated(ten_jobs), NODES, LONGEST, window=JOBS)
        parts = paper.episodes, paper.policy, paper.encoder, paper.mask, MinusMeanWait(scale=10)
        return SchedulingEnv(*parts, stage=paper.stage, skip=False)
    seat = Pipeline(order=External(), window=JOBS, fitting=preset.fitting)
    encoder = QueueWindow(JOBS, time_scale=float(LONGEST))
    return SchedulingEnv(Generated(ten_jobs), seat, encoder, Slots(JOBS), MinusMeanWait(scale=LONGEST))


def way(preset: Preset, seed: int, share: float = 1.0) -> float:
    """Return the share of the way from chance to the optimum after a share of a training."""
    trainer = trainer_named(preset.algorithm)
    settings = settings_of(trainer)(total_timesteps=int(share * preset.decisions))
    agent = trainer(environment(preset), replace(settings, **preset.settings), seed=seed).train()
    seat = (
        TwoLevel(agent, JOBS)
        if preset.of_dras
        else Pipeline(order=agent, window=JOBS, fitting=preset.fitting)
    )
    chance, best = bounds()
    return (chance - mean_wait(seat)) / (chance - best)
