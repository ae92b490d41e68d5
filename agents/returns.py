"""From rewards to what actions were worth: discounted returns and advantages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["NORMALISATIONS", "advantages_and_targets", "discounted_returns", "generalised_advantages"]

NORMALISATIONS = ("round", "batch")
"""Over which steps PPO brings advantages to mean 0 and standard deviation 1."""

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]


def discounted_returns(rewards: Floats, over: Flags, after: Floats, discount: float) -> Floats:
    """Return what is earned from each step on, later rewards discounted.

    Parameters
    ----------
    rewards : array of float32, shape (steps, episodes)
        Earned at each step.
    over : array of bool, shape (steps, episodes)
        Whether the episode ended with the step.
    after : array of float32, shape (episodes,)
        What is believed to come after the last step of those that have not ended.
    discount : float
        In [0, 1].

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
        following = rewards[step] + discount * np.where(over[step], 0, following)
        returns[step] = following
    return returns


def generalised_advantages(
    rewards: Floats, values: Floats, over: Flags, after: Floats, discount: float, trace: float
) -> Floats:
    """Return by how much each action was better than expected (Schulman et al., GAE, ICLR 2016, eq. 16).

    Parameters
    ----------
    rewards, over, after, discount
        As in :func:`discounted_returns`.
    values : array of float32, shape (steps, episodes)
        What was expected at each step.
    trace : float
        lambda, in [0, 1]: 0 looks one step ahead, 1 to the end.

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
        surprise = rewards[step] + discount * goes_on * expected - values[step]
        following = surprise + discount * trace * goes_on * following
        advantages[step], expected = following, values[step]
    return advantages


def advantages_and_targets(
    earned: tuple[Floats, Floats, Flags, Floats, float], trace: float, value_trace: float | None
) -> tuple[Floats, Floats]:
    """Return how much better actions were than expected, and what a critic is to expect after this.

    Parameters
    ----------
    earned : tuple
        Rewards, values, over, after and discount of :func:`generalised_advantages`.
    trace : float
        lambda of the advantages.
    value_trace : float, optional
        lambda of what the critic learns; by default the same.

    Examples
    --------
    >>> rewards, values = np.array([[[0], [4]], [[1], [1]]], dtype=np.float32)
    >>> earned = rewards, values, np.array([[False], [True]]), np.zeros(1, dtype=np.float32), 1.0
    >>> [each[:, 0].tolist() for each in advantages_and_targets(earned, 0.0, 1.0)]
    [[0.0, 3.0], [4.0, 4.0]]
    """
    advantages = surprises = generalised_advantages(*earned, trace)
    if value_trace is not None:
        surprises = generalised_advantages(*earned, value_trace)
    return advantages, surprises + earned[1]
