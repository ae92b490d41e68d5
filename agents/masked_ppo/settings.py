"""How the masked-PPO scheduler was trained, by the numbers of its published code."""

from __future__ import annotations

from collections.abc import Mapping

from hpcsimkit.agents.sb3 import SB3Settings

__all__ = ["PUBLISHED", "SETTINGS"]

PUBLISHED = SB3Settings(
    steps=300_000,
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
        "clip_range_vf": 1.0,  # published as ``True``, which Stable-Baselines3 takes for the number
        "normalize_advantage": True,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
    },
)
"""MaskablePPO as published: one environment, two hidden layers of 64 for policy and for value.

The steps are those of the paper (the code's own default is 100 000), which seeds with 1 and draws actions
when it evaluates. With rewards of minus some hundred thousand seconds, a critic that may move by 1 an update
learns next to nothing: part of what was published.
"""

SETTINGS: Mapping[str, SB3Settings] = {"masked-ppo": PUBLISHED}
"""Settings of the algorithm ``maskable-ppo`` by the name of who published them."""
