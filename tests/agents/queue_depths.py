"""Masked PPO as published at several queue depths (section V of its paper), on days of Beocat."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from hpcsimkit import Simulation
from hpcsimkit.agents.masked_ppo.environments import SETTINGS, published_environment
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.seats import RandomAgent, with_agent
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.training.ppo import PPO
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reproductions.masked_ppo.own import Beocat
from tests.tables import TRACES

DEPTHS = (10, 60, 100, 200, 500)
"""Queue depths of the paper: K."""

SEEDS = range(3)
DECISIONS = 100_000
"""Decisions of a training, a third of the published ones."""

HEADINGS = ("K", "weights", "wait [min]", "lowest and highest seed", "by chance")
SIZES = {"sets": [1], "low": 900, "high": 1100, "least": 300, "large_jobs": 2000, "gpu_jobs": 40}
"""Sizes of the paper's reproduction, with one training set."""


def beocat() -> Beocat:
    """The months of the reproduction."""
    months = [TRACES / f"beocat-2021-{month:02}.csv.gz" for month in (3, 4, 5)]
    return Beocat(months, SimpleNamespace(**SIZES), 0)


def wait(days: list[Workload], depth: int, agent: Any) -> float:
    """Return the mean over days of the mean wait [min]."""
    policy = with_agent(Dispatch(External(), slots=depth), agent)
    runs = (Simulation(jobs, policy, NINE_MACHINES, seed=0).run() for jobs in days)
    return float(np.mean([run.wait_time.mean() for run in runs])) / 60


def rows() -> Iterator[list[str]]:
    """Yield the mean waits on unseen days by queue depth, of agents that are paid for short waits."""
    log = beocat()
    days = [each.workload for each in log.unseen_sequences.scenarios]
    settings = replace(SETTINGS, total_timesteps=DECISIONS)
    for depth in DEPTHS:
        env = published_environment(log.training_sets[0], "wait", depth)
        agents = [PPO(env, settings, seed=seed).train() for seed in SEEDS]
        weights = sum(values.size for values in agents[0].network.tensors.values())
        waits = [wait(days, depth, agent) for agent in agents]
        chance = wait(days, depth, RandomAgent(JobMachine(depth, len(NINE_MACHINES))))
        spread = f"{min(waits):.1f} to {max(waits):.1f}"
        yield [str(depth), f"{weights:,}".replace(",", " "), f"{np.mean(waits):.1f}", spread, f"{chance:.1f}"]
        print(depth, waits, chance, file=sys.stderr, flush=True)
