"""What stands between a seat and a learner: episodes, encoder, mask, reward.

Four plug-ins, each a base class here. They hold parameters only (a reward holds the sums of the run it
observes), so that they are compared, printed and saved by what their constructors were given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.decision import Decision
from hpcsimkit.observers import Observer
from hpcsimkit.policy import Parameters
from hpcsimkit.scenario import Scenario
from hpcsimkit.system import System

__all__ = ["Encode", "Encoder", "Episodes", "Mask", "Observation", "Reward", "Valid"]

Observation = NDArray[np.float32]
Valid = NDArray[np.bool_]
Encode = Callable[[Decision, Observation], None]
"""Writes what a decision looks like into an array of zeros."""


class Episodes(Parameters):
    """Which scenario comes next?"""

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Return the scenario of the next episode."""
        raise NotImplementedError(f"{type(self).__name__} needs a method sample(rng)")

    def number(self, number: int, rng: np.random.Generator) -> Scenario:
        """Return the scenario of an episode, counted from 0, to learners that play one after the other.

        By default any; where they have an order, the one whose turn it is.
        """
        return self.sample(rng)


class Encoder(Parameters):
    """What does a learner see? A float32 array of a fixed shape."""

    low, high = -np.inf, np.inf
    """Range of all values."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation."""
        raise NotImplementedError(f"{type(self).__name__} needs a property shape")

    def bind(self, system: System) -> Encode:
        """Return what encodes the decisions of one run: ``encode(decision, out)`` with `out` all zeros."""
        raise NotImplementedError(f"{type(self).__name__} needs a method bind(system)")


class Mask(Parameters):
    """How do numbered actions and the options of a decision belong together?"""

    @property
    def actions(self) -> int:
        """How many actions there are."""
        raise NotImplementedError(f"{type(self).__name__} needs a property actions")

    def write(self, decision: Decision, out: Valid) -> None:
        """Write which actions are options now into an array of False, shape (actions,)."""
        raise NotImplementedError(f"{type(self).__name__} needs a method write(decision, out)")

    def position(self, decision: Decision, action: int) -> int:
        """Return the position among the options that an action stands for."""
        return action

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the action that stands for an option."""
        return decision.position(choice)


class Reward(Observer, Parameters):
    """What is a learner paid? An observer that adds up what happens until somebody asks.

    :meth:`take` is called at each decision of the seat, and at the end: it returns what has accrued since
    the last call. Where the sum over an episode is a metric, the docstring says so.
    """

    def take(self, system: System) -> float:
        """Return what has accrued since it was last asked, and forget it."""
        raise NotImplementedError(f"{type(self).__name__} needs a method take(system)")
