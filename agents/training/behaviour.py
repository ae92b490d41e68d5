"""What an agent does: how often it has a choice, how often it agrees with the heuristic, how sure it is."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.model_agent import ScoringAgent
from hpcsimkit.agents.seats import Observe
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Decision
from hpcsimkit.kernel.system import System

__all__ = ["Behaviour", "evenness"]

CONSTANT = 0.99
"""Share of choices of one action from which an agent is called constant."""

UNIFORM = 0.95
"""Evenness from which a policy is called uniform."""

FIRST = 10
"""Number of actions, the first ones, whose shares are measures of their own."""


class Behaviour:
    """Watcher of the choices of an agent; see :class:`~hpcsimkit.agents.seats.Watched`.

    A decision is forced if a single option, or a single action of the mask, is valid; the others are choices.

    Parameters
    ----------
    agent : ScoringAgent
        The agent.
    learns_policy : bool
        Whether its scores are logits of a policy, and not values of actions. Default: True.
    """

    def __init__(self, agent: ScoringAgent, *, learns_policy: bool = True) -> None:
        self.agent = agent
        self.learns_policy = learns_policy
        self.decisions = self._agreeing = 0
        self._evenness = self._by_chance = 0.0
        self.taken: Counter[int] = Counter()
        self._of_heuristic: Counter[int] = Counter()

    def bind(self, system: System) -> Observe:
        """Return the function that counts the decisions of a run."""
        return self._observe

    def _observe(self, decision: Decision, position: int) -> None:
        self.decisions += 1
        if len(decision.options) == 1 or len(self.agent.scores) == 1:
            return
        mask, default = self.agent.mask, decision.default
        self.taken[mask.action(decision, decision.options[position])] += 1
        self._agreeing += position == decision.position(default)
        self._by_chance += 1 / len(self.agent.scores)
        with suppress(UsageError):  # the heuristic sees more jobs than there are slots
            self._of_heuristic[mask.action(decision, default)] += 1
        self._evenness += evenness(self.agent.scores)

    @property
    def choices(self) -> int:
        """Number of decisions that were not forced."""
        return self.taken.total()

    @property
    def commonest(self) -> int:
        """The action that is taken most often in choices; 0 if there are none."""
        return max(self.taken, key=lambda action: (self.taken[action], -action), default=0)

    def measures(self) -> dict[str, float]:
        """Return shares for a learning curve; NaN without any decision or choice.

        ``forced`` is the share of forced decisions; in choices, ``agreement`` is the share in which the agent
        chooses as the heuristic behind the seat, ``chance`` that of a uniform choice among the valid actions,
        and ``constant`` that of the constant action that agrees most often. ``commonest`` is the share of the
        action that it takes most often, ``action_0`` and so on those of the first ten actions, and
        ``evenness`` the mean entropy of its policy as a share of the largest possible one.
        """
        choices = self.choices or math.nan
        shares = {
            "forced": 1 - self.choices / (self.decisions or math.nan),
            "agreement": self._agreeing / choices,
            "chance": self._by_chance / choices,
            "constant": max(self._of_heuristic.values(), default=0) / choices,
            "commonest": self.taken[self.commonest] / choices,
        }
        for action in range(min(FIRST, int(self.agent.mask.actions))):
            shares[f"action_{action}"] = self.taken[action] / choices
        return {**shares, "evenness": self._evenness / choices} if self.learns_policy else shares

    @property
    def warning(self) -> str:
        """Warning of a constant or a uniform policy; empty if it is neither."""
        shares = self.measures()
        if shares["commonest"] >= CONSTANT:
            return (
                f"the agent takes action {self.commonest} in {100 * shares['commonest']:.1f} % of its "
                f"{self.choices} choices in validation, as a constant would"
            )
        if shares.get("evenness", 0.0) >= UNIFORM:
            return (
                f"the policy is still uniform: its entropy in validation is {100 * shares['evenness']:.1f} % "
                "of the largest possible one"
            )
        return ""


def evenness(scores: NDArray[np.float64]) -> float:
    """Return the entropy of the softmax of two scores or more, as a share of the largest possible one.

    >>> round(evenness(np.array([2.0, 2.0, 2.0])), 3), round(evenness(np.array([9.0, -np.inf])), 3)
    (1.0, 0.0)
    """
    weights = np.exp(scores - scores.max())
    shares = weights[weights > 0] / weights.sum()
    return float(-(shares * np.log(shares)).sum() / math.log(len(scores))) + 0.0
