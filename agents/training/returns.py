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


def mean_returns(
    rewards: Floats, played: Flags, over: Flags, gamma: float, group: int | None = None
) -> Floats:
    """Return the mean of the discounted returns from each move on, over the episodes of a group.

    Parameters
    ----------
    rewards, over, gamma
        Parameters of :func:`discounted_returns`; all episodes end.
    played : array of bool, shape (moves, episodes)
        Whether a decision was taken; only such decisions count in the mean.
    group : int, optional
        Number of neighbouring episodes in a group; by default all.

    Examples
    --------
    Two groups of two episodes. One episode ends with the first move:

    >>> rewards = np.array([[1, 3, 10, 4], [2, 6, 20, 0]], dtype=np.float32)
    >>> played = np.array([[True] * 4, [True, True, True, False]])
    >>> over = np.array([[False, False, False, True], [True, True, True, False]])
    >>> mean_returns(rewards, played, over, 0.5, group=2).tolist()
    [[4.0, 4.0, 12.0, 12.0], [4.0, 4.0, 20.0, 0.0]]
    >>> mean_returns(rewards, played, over, 0.5)[0].tolist()
    [8.0, 8.0, 8.0, 8.0]
    """
    moves, episodes = played.shape
    none_after = np.zeros(episodes, dtype=np.float32)
    returns = discounted_returns(rewards, over, none_after, gamma)
    size = episodes if group is None else group
    sums, counts = (
        each.reshape(moves, -1, size).sum(axis=2, dtype=np.float32, where=played.reshape(moves, -1, size))
        for each in (returns, played)
    )
    return (sums / np.maximum(counts, 1)).repeat(size, axis=1) * played


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
