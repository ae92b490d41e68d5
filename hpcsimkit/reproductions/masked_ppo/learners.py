"""Who is trained: agents as published, one for each training set and metric."""

from __future__ import annotations

from dataclasses import replace

from hpcsimkit.agents.encoders import RequestsAndMachines
from hpcsimkit.agents.episodes import Fixed
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.masks import JobMachine
from hpcsimkit.agents.ppo import PPOSettings
from hpcsimkit.decision import External
from hpcsimkit.learning import Reward
from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family
from hpcsimkit.reproductions.masked_ppo.improved import improved

__all__ = ["METRICS", "SLOTS", "Family", "families", "published"]

SLOTS = 10
"""K of the published code: so many jobs are seen and offered."""

SETTINGS = PPOSettings(
    episodes=1, rollout=2048, batch=64, epochs=10, clip_value=1.0, normalise="batch", learning_rate=3e-4,
    discount=0.99, trace=0.95, clip=0.2, entropy_weight=0.0, value_weight=0.5, gradient_limit=0.5,
    hidden=(64, 64), activation="tanh",
)  # fmt: skip
"""Those of :data:`~hpcsimkit.agents.masked_ppo.settings.PUBLISHED` for the kit's own PPO.

Its update is that of MaskablePPO (a test compares them) and it takes half the time.
"""

METRICS: dict[str, Reward] = {"wait": RunningMeanWait(), "utilisation": RunningUtilisation()}
"""What agents are trained for."""


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
        settings=replace(SETTINGS, steps=beocat.scale.steps),
        seed=1000 * beocat.seed + number,
        skip=False,  # a running mean is paid at every step, also where there is no choice
    )
