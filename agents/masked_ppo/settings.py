"""Training settings of the masked-PPO scheduler, from its published code."""

from __future__ import annotations

from collections.abc import Mapping

from hpcsimkit.agents.training.sb3 import SB3Settings

__all__ = ["PUBLISHED", "SETTINGS"]

PUBLISHED = SB3Settings(
    total_timesteps=300_000,
    episodes=1,
    hidden=(64, 64),
    activation="tanh",
    options={
        "learning_rate": 3e-4,
        "n_steps": 2048,
        "batch_size": 64,
        "n_epochs": 10,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_range": 0.2,
        "clip_range_vf": 1.0,  # published as ``True``, which Stable-Baselines3 uses as the number 1
        "normalize_advantage": True,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
    },
)
"""MaskablePPO as published: one environment, two hidden layers of 64 each for policy and value function.

The number of steps is that of the paper (the default of the code is 100 000); the paper uses seed 1 and
samples actions in evaluations. With rewards around minus some hundred thousand seconds, a critic that may
move by 1 per update learns next to nothing; that is part of the published set-up.
"""

SETTINGS: Mapping[str, SB3Settings] = {"masked-ppo": PUBLISHED}
"""Settings of the algorithm ``maskable-ppo``, by publication."""
