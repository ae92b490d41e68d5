"""The interface between a seat and a learning agent: episodes, encoder, mask and reward.

Each of the four has a base class here. They hold parameters only (a reward also holds the sums of the run it
observes), so that they can be compared, printed and saved by their constructor arguments.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError, lacking
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.parameters import Parameters
from hpcsimkit.kernel.system import System

__all__ = [
    "Encode",
    "Encoder",
    "Episodes",
    "Mask",
    "Observation",
    "Reward",
    "Valid",
    "actions_of",
    "sampled",
    "shape_of",
]

MOST_NUMBERS = 10**8
"""Maximum number of elements of an observation, and of actions of a mask; more are treated as a mistake."""

Observation = NDArray[np.float32]
Valid = NDArray[np.bool_]
Encode = Callable[[Decision, Observation], None]
"""Function that writes the encoding of a decision into an array of zeros."""


class Episodes(Parameters):
    """Distribution or sequence of scenarios for training episodes."""

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Return the scenario of the next episode."""
        raise lacking(self, "a method sample(rng)")

    def number(self, number: int, rng: np.random.Generator) -> Scenario:
        """Return the scenario of an episode, counted from 0, for agents that run episodes in sequence.

        By default it is sampled; ordered episodes return the one with this number.
        """
        return self.sample(rng)


class Encoder(Parameters):
    """Encoder of decisions into observations: float32 arrays of a fixed shape."""

    low, high = -np.inf, np.inf
    """Lower and upper bound of all values."""

    reads_compiled = False
    """Whether it reads only what a compiled run shows (:class:`~hpcsimkit.compiled.shown.Shown`).

    A class declares it for itself: it is not inherited.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the observation."""
        raise lacking(self, "a property shape")

    def bind(self, system: System) -> Encode:
        """Return the encoder of one run: ``encode(decision, out)`` with `out` all zeros."""
        raise lacking(self, "a method bind(system)")


class Mask(Parameters):
    """Mapping between numbered actions and the options of a decision."""

    reads_compiled = False
    """Whether it reads only what a compiled run shows (:class:`~hpcsimkit.compiled.shown.Shown`).

    A class declares it for itself: it is not inherited.
    """

    @property
    def actions(self) -> int:
        """Number of actions."""
        raise lacking(self, "a property actions")

    def write(self, decision: Decision, out: Valid) -> None:
        """Write the validity of each action into an array of False, shape (actions,)."""
        raise lacking(self, "a method write(decision, out)")

    def position(self, decision: Decision, action: int) -> int:
        """Return the position among the options that an action represents."""
        return action

    def action(self, decision: Decision, choice: Any) -> int:
        """Return the action that represents an option."""
        return decision.position(choice)


class Reward(Observer, Parameters):
    """Reward of an agent: an observer that accumulates a quantity of the run.

    :meth:`take` is called at each decision of the seat and at the end; it returns the amount accumulated
    since the last call. If the sum over an episode is a metric, the docstring says so. With a warm-up, what
    has accumulated before the first decision is discarded: the sum then lacks that part, which does not
    depend on the agent.
    """

    reads_compiled = False
    """Whether a compiled run (:class:`~hpcsimkit.compiled.shown.Shown`) shows all that it reads.

    Callbacks of submissions, starts and ends come in their order, but not before the next decision: the time
    and the data of the job are those of the event, the rest of the state is that of the decision. Apart from
    them, only those of the begin and the finish of the run are called. A class declares it for itself: it is
    not inherited.
    """

    def take(self, system: System) -> float:
        """Return the reward accumulated since the last call, and reset it."""
        raise lacking(self, "a method take(system)")


# --- validation of user-defined components before a run ----------------------------------------------------


def shape_of(encoder: Encoder) -> tuple[int, ...]:
    """Return the shape of an encoder's observations.

    Raises
    ------
    UsageError
        The shape is not that of a valid array.
    PolicyError
        The encoder raised an exception.

    Examples
    --------
    >>> class Empty(Encoder):
    ...     shape = (0, 3)
    >>> shape_of(Empty())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: Empty(): shape needs whole numbers of at least 1, ... at most, found (0, 3)
    """
    with guarded(f"the encoder {type(encoder).__name__}"):
        found = encoder.shape
        numbers = _whole(*found) if isinstance(found, tuple | list) else ()
        if not (numbers and min(numbers) >= 1 and math.prod(numbers) <= MOST_NUMBERS):
            raise UsageError(
                f"{encoder!r}: shape needs whole numbers of at least 1, {MOST_NUMBERS} in all at most, "
                f"found {found!r}"
            )
        return numbers


def actions_of(mask: Mask) -> int:
    """Return the number of actions of a mask.

    Raises
    ------
    UsageError
        The number is invalid.
    PolicyError
        The mask raised an exception.
    """
    with guarded(f"the mask {type(mask).__name__}"):
        found = mask.actions
        number = _whole(found)
        if not number or not 1 <= number[0] <= MOST_NUMBERS:
            raise UsageError(
                f"{mask!r}: actions needs a whole number from 1 to {MOST_NUMBERS}, found {found!r}"
            )
        return number[0]


def _whole(*values: Any) -> tuple[int, ...]:
    """Return whole numbers as Python integers, or an empty tuple if one of them is not a whole number."""
    try:
        return tuple(map(operator.index, values))
    except TypeError:
        return ()


def sampled(episodes: Episodes, rng: np.random.Generator, number: int | None = None) -> Scenario:
    """Return the scenario of the next episode, or of the episode with a number.

    Raises
    ------
    UsageError
        The returned object is not a Scenario.
    PolicyError
        The episodes raised an exception.
    """
    with guarded(f"the episodes {type(episodes).__name__}"):
        found = episodes.sample(rng) if number is None else episodes.number(number, rng)
        if not isinstance(found, Scenario):
            raise UsageError(f"{episodes!r}: a Scenario is needed of each episode, found {found!r}")
        return found
