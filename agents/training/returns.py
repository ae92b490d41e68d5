"""Discounted returns and generalised advantages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

NORMALISATIONS = ("round", "batch")
"""Scopes over which PPO normalises advantages to mean 0 and standard deviation 1."""

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def discounted_returns(rewards: Floats, over: Flags, after: Floats, gamma: float) -> Floats:
    """Return the discounted return from each step on.

    Parameters
    ----------
    rewards : array of float32, shape (steps, episodes)
        Reward of each step.
    over : array of bool, shape (steps, episodes)
        Whether the episode ended with the step.
    after : array of float32, shape (episodes,)
        Value estimate of the state after the last step, for episodes that have not ended.
    gamma : float
        Discount factor gamma, in [0, 1].

    Examples
    --------
    >>> rewards = np.array([[1], [2], [4]], dtype=np.float32)
    >>> over = np.array([[False], [True], [False]])
    >>> discounted_returns(rewards, over, np.array([8], dtype=np.float32), 0.5)[:, 0].tolist()
    [2.0, 2.0, 8.0]
    """
    returns = np.zeros_like(rewards)
    following = after
    for step in range(len(rewards) - 1, -1, -1):
        following = rewards[step] + gamma * np.where(over[step], 0, following)
        returns[step] = following
    return returns


def generalised_advantages(
    rewards: Floats, values: Floats, over: Flags, after: Floats, gamma: float, gae_lambda: float
) -> Floats:
    """Return the generalised advantages (Schulman et al., GAE, ICLR 2016, eq. 16).

    Parameters
    ----------
    rewards, over, after, gamma
        Parameters of :func:`discounted_returns`.
    values : array of float32, shape (steps, episodes)
        Value estimate of each step's state.
    gae_lambda : float
        GAE parameter lambda, in [0, 1]: 0 is the one-step advantage, 1 the return minus the value.

    Examples
    --------
    >>> rewards, over = np.array([[1], [2]], dtype=np.float32), np.array([[False], [False]])
    >>> values, after = np.array([[3], [4]], dtype=np.float32), np.array([6], dtype=np.float32)
    >>> generalised_advantages(rewards, values, over, after, 0.5, 0.5)[:, 0].tolist()
    [0.25, 1.0]
    """
    advantages = np.zeros_like(rewards)
    following, expected = np.zeros_like(after), after
    for step in range(len(rewards) - 1, -1, -1):
        goes_on = ~over[step]
        surprise = rewards[step] + gamma * goes_on * expected - values[step]
        following = surprise + gamma * gae_lambda * goes_on * following
        advantages[step], expected = following, values[step]
    return advantages


def advantages_and_targets(
    earned: tuple[Floats, Floats, Flags, Floats, float], gae_lambda: float, value_gae_lambda: float | None
) -> tuple[Floats, Floats]:
    """Return the advantages of the actions, and the value targets of the critic.

    Parameters
    ----------
    earned : tuple
        Rewards, values, over, after and gamma of :func:`generalised_advantages`.
    gae_lambda : float
        GAE parameter lambda of the advantages.
    value_gae_lambda : float, optional
        GAE parameter lambda of the value targets; by default the same.

    Examples
    --------
    >>> rewards, values = np.array([[[0], [4]], [[1], [1]]], dtype=np.float32)
    >>> earned = rewards, values, np.array([[False], [True]]), np.zeros(1, dtype=np.float32), 1.0
    >>> [each[:, 0].tolist() for each in advantages_and_targets(earned, 0.0, 1.0)]
    [[0.0, 3.0], [4.0, 4.0]]
    """
    advantages = surprises = generalised_advantages(*earned, gae_lambda)
    if value_gae_lambda is not None:
        surprises = generalised_advantages(*earned, value_gae_lambda)
    return advantages, surprises + earned[1]
