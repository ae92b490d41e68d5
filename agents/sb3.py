"""Training with Stable-Baselines3 and sb3-contrib, and what they have learned as an agent of the kit.

Their zip files hold pickles; the kit never loads one. A trained policy becomes an :class:`Agent` by its
arrays alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks import Dense
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.errors import UsageError

__all__ = ["agent_of", "dense_of"]


def agent_of(
    model: Any, env: SchedulingEnv, *, sample: bool = False, about: dict[str, Any] | None = None
) -> Agent:
    """Return the agent that a trained model of Stable-Baselines3 is.

    Parameters
    ----------
    model : BaseAlgorithm
        PPO, A2C, DQN or MaskablePPO with the policy ``MlpPolicy``.
    env : SchedulingEnv
        With the encoder, mask and stage that it was trained with.
    sample : bool
        Draw actions (as in training) or take the best.
    about : dict, optional
        Where it comes from.
    """
    return Agent(env.encoder, env.mask, dense_of(model), env.stage, sample=sample, about=about)


def dense_of(model: Any) -> Dense:
    """Return the layers that lead from observations to actions.

    Raises
    ------
    UsageError
        The policy is made of anything but dense layers with one kind of activation between them.
    """
    from torch import nn

    policy = model.policy
    if hasattr(policy, "q_net"):
        layers = list(policy.q_net.q_net)
    elif hasattr(policy, "mlp_extractor"):
        layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    else:
        layers = []
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    between = {type(layer).__name__.lower() for layer in layers if not isinstance(layer, nn.Linear)}
    if not linear or len(between) > 1 or len(layers) != 2 * len(linear) - 1:
        raise UsageError(
            f"{type(policy).__name__} of {type(model).__name__} is no plain chain of dense layers"
        )
    tensors: dict[str, NDArray[np.float32]] = {}
    for number, layer in enumerate(linear):
        tensors[f"weight.{number}"] = layer.weight.detach().cpu().numpy()
        tensors[f"bias.{number}"] = layer.bias.detach().cpu().numpy()
    return Dense(tensors, activation=between.pop() if between else "tanh")
