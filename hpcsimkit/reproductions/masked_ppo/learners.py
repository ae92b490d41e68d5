"""Trained agents as published, one for each training set and metric."""

from __future__ import annotations

from dataclasses import replace

from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import Fixed
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.training.ppo import PPOSettings
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.kernel.decision import External
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family
from hpcsimkit.reproductions.masked_ppo.improved import improved

__all__ = ["METRICS", "SLOTS", "Family", "families", "published"]

SLOTS = 10
"""K of the published code: number of jobs in observation and action space."""

SETTINGS = PPOSettings(
    episodes=1,
    n_steps=2048,
    batch_size=64,
    n_epochs=10,
    clip_range_vf=1.0,
    normalise="batch",
    learning_rate=3e-4,
    gamma=0.99,
    gae_lambda=0.95,
    clip_range=0.2,
    ent_coef=0.0,
    vf_coef=0.5,
    max_grad_norm=0.5,
    hidden=(64, 64),
    activation="tanh",
)
"""Settings of :data:`~hpcsimkit.agents.masked_ppo.settings.PUBLISHED` for the kit's own PPO.

Its update equals that of MaskablePPO (a test compares them) and takes half the time.
"""

METRICS: dict[str, Reward] = {"wait": RunningMeanWait(), "utilisation": RunningUtilisation()}
"""Training rewards by metric."""


def families(beocat: Beocat) -> list[Family]:
    """Return all agents to be trained."""
    return [published(beocat), *([improved(beocat)] if beocat.training_days else [])]


def published(beocat: Beocat) -> Family:
    """Return agents as in the paper and its code."""
    learners = {
        metric: [_published(beocat, metric, number) for number in range(1, beocat.scale.sets + 1)]
        for metric in METRICS
    }
    return Family("published", "trained as in the paper and its code", learners)


def _published(beocat: Beocat, metric: str, number: int) -> Learner:
    machines = len(NINE_MACHINES)
    return Learner(
        name=f"published-{metric}-{number:02}",
        episodes=Fixed(beocat.training_sets[number - 1], NINE_MACHINES),
        policy=Dispatch(External(), slots=SLOTS),
        encoder=RequestsAndMachines(SLOTS, machines),
        mask=JobMachine(SLOTS, machines),
        reward=METRICS[metric],
        trainer="ppo",
        settings=replace(SETTINGS, total_timesteps=beocat.scale.steps),
        seed=1000 * beocat.seed + number,
        skip=False,  # the running mean gives a reward at every step, even without a choice
    )
