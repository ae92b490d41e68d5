"""PPO in a single file with the interface of CleanRL's: ``env_id`` is all that it knows of an environment.

Written for these tests: vectors of ``gymnasium.make(env_id)`` with episode statistics, a network over the product of
the shape of observations, generalised advantages, clipped updates. With ``masked``, invalid actions have no
probability; the environments are asked for ``action_masks``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


@dataclass
class Args:
    """Arguments of a training."""

    env_id: str = "CartPole-v1"
    masked: bool = False
    seed: int = 1
    total_timesteps: int = 512
    learning_rate: float = 2.5e-3
    num_envs: int = 2
    num_steps: int = 64
    gamma: float = 1.0
    gae_lambda: float = 0.95
    num_minibatches: int = 4
    update_epochs: int = 4
    clip_coef: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5


def make_env(env_id: str) -> Any:
    """Return a function that makes an environment with statistics."""

    def thunk() -> Any:
        return gym.wrappers.RecordEpisodeStatistics(gym.make(env_id))

    return thunk


def layer_init(layer: Any, std: float = float(np.sqrt(2))) -> Any:
    """Return a layer with orthogonal weights."""
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    """Actor and critic."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        inputs = int(np.array(envs.single_observation_space.shape).prod())
        self.critic = nn.Sequential(
            layer_init(nn.Linear(inputs, 64)), nn.Tanh(), layer_init(nn.Linear(64, 1), std=1.0)
        )
        self.actor = nn.Sequential(
            layer_init(nn.Linear(inputs, 64)),
            nn.Tanh(),
            layer_init(nn.Linear(64, envs.single_action_space.n), std=0.01),
        )

    def get_value(self, x: Any) -> Any:
        return self.critic(x)

    def get_action_and_value(self, x: Any, mask: Any = None, action: Any = None) -> Any:
        logits = self.actor(x)
        if mask is not None:
            logits = logits.masked_fill(~mask, -1e8)
        probs = Categorical(logits=logits)
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


def masks_of(envs: Any, args: Args) -> Any:
    """Return the masks of all environments, if the training uses them."""
    return torch.tensor(np.stack(envs.call("action_masks"))) if args.masked else None


def train(args: Args) -> tuple[Agent, list[float]]:
    """Return the agent and the returns of the episodes in their order."""
    torch.manual_seed(args.seed)
    envs = gym.vector.SyncVectorEnv([make_env(args.env_id) for _ in range(args.num_envs)])
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    agent = Agent(envs)
    optimizer = torch.optim.Adam(agent.parameters(), lr=args.learning_rate, eps=1e-5)
    next_obs = torch.Tensor(envs.reset(seed=args.seed)[0])
    next_done, returns = torch.zeros(args.num_envs), []
    for _ in range(args.total_timesteps // (args.num_envs * args.num_steps)):
        rows = []
        for _ in range(args.num_steps):
            obs, done, mask = next_obs, next_done, masks_of(envs, args)
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(obs, mask)
            seen, reward, terminations, truncations, infos = envs.step(action.numpy())
            next_done = torch.Tensor(np.logical_or(terminations, truncations))
            next_obs = torch.Tensor(seen)
            mask = torch.ones(1) if mask is None else mask
            rows.append((obs, action, logprob, torch.Tensor(reward), done, value.flatten(), mask))
            if "episode" in infos:
                returns += [
                    float(r) for r, over in zip(infos["episode"]["r"], infos["_episode"], strict=True) if over
                ]
        learn(agent, optimizer, rows, next_obs, next_done, args)
    envs.close()
    return agent, returns


def learn(agent: Agent, optimizer: Any, rows: Any, next_obs: Any, next_done: Any, args: Args) -> None:
    """Update the networks by a rollout."""
    obs, actions, logprobs, rewards, dones, values, masks = map(torch.stack, zip(*rows, strict=True))
    advantages, last = torch.zeros_like(rewards), torch.zeros(args.num_envs)
    with torch.no_grad():
        next_value = agent.get_value(next_obs).flatten()
    for t in reversed(range(args.num_steps)):
        goes_on = 1.0 - (next_done if t == args.num_steps - 1 else dones[t + 1])
        following = next_value if t == args.num_steps - 1 else values[t + 1]
        delta = rewards[t] + args.gamma * following * goes_on - values[t]
        advantages[t] = last = delta + args.gamma * args.gae_lambda * goes_on * last
    b_returns = (advantages + values).flatten()
    b_obs, b_actions, b_logprobs, b_advantages = (
        obs.flatten(0, 1),
        actions.flatten(),
        logprobs.flatten(),
        advantages.flatten(),
    )
    b_masks = masks.flatten(0, 1) if args.masked else None
    for _ in range(args.update_epochs):
        for rows_of in torch.randperm(len(b_actions)).chunk(args.num_minibatches):
            mask = None if b_masks is None else b_masks[rows_of]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                b_obs[rows_of], mask, b_actions[rows_of]
            )
            ratio = (newlogprob - b_logprobs[rows_of]).exp()
            gain = b_advantages[rows_of]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
            policy_loss = torch.max(
                -gain * ratio, -gain * ratio.clamp(1 - args.clip_coef, 1 + args.clip_coef)
            ).mean()
            value_loss = 0.5 * (newvalue.flatten() - b_returns[rows_of]).square().mean()
            loss = policy_loss - args.ent_coef * entropy.mean() + args.vf_coef * value_loss
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), args.max_grad_norm)
            optimizer.step()
