"""Has an agent learned? Its own reward in validation, beside chance and the best constant action."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.seats import ConstantAction, Observe, RandomAgent, Watched
from hpcsimkit.agents.training.behaviour import Behaviour
from hpcsimkit.envs.interfaces import Mask, Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.training.data import RANDOM
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.results.statistics import Comparison, compared, p_value_text

__all__ = ["Verdict", "verdict_on"]

CONSTANTS = 10
"""Number of actions, the first ones, that are tried as constants beside the agent's commonest one."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """Own rewards of an agent and of its baselines on the same windows, and its behaviour there.

    Parameters
    ----------
    agent : array of float, shape (windows,)
        Rewards of the agent.
    rivals : mapping of str to array of float, shape (windows,)
        Rewards of chance and of the best constant action, by name.
    behaviour : Behaviour
        Choices of the agent.
    """

    agent: Floats
    rivals: Mapping[str, Floats]
    behaviour: Behaviour

    @property
    def comparisons(self) -> Mapping[str, Comparison]:
        """Paired comparisons with the baselines over the windows."""
        return compared(self.agent, self.rivals)

    @property
    def is_learned(self) -> bool:
        """Whether the agent earns significantly more than each rival (corrected p-values below 0.05)."""
        return all(each.difference.mean > 0 and each.is_significant for each in self.comparisons.values())

    def lines(self) -> Iterator[str]:
        """Yield what the agent does, what it earns beside its baselines, and maybe a warning."""
        yield self._choices()
        against = ", ".join(
            f"{name} {self.rivals[name].mean():.4g} (p = {_p(each)})"
            for name, each in self.comparisons.items()
        )
        word = "learned" if self.is_learned else "not shown to have learned"
        yield f"{word}: mean reward in validation {self.agent.mean():.4g}; {against}"
        if self.behaviour.warning:
            yield f"warning: {self.behaviour.warning}"

    def _choices(self) -> str:
        """Return how often the agent has a choice, and what it chooses then."""
        behaviour = self.behaviour
        shares = behaviour.measures()
        told = {
            "agreement": "as the heuristic",
            "commonest": f"action {behaviour.commonest}",
            "evenness": "of the largest possible entropy",
        }
        parts = [f"{100 * shares[name]:.1f} % {text}" for name, text in told.items() if name in shares]
        of = f"{grouped(behaviour.choices)} of {grouped(behaviour.decisions)} decisions"
        return f"choices: {of}" + (f"; {', '.join(parts)}" if behaviour.choices else "")

    def record(self) -> dict[str, Any]:
        """Return the verdict for JSON."""
        return {
            "is_learned": self.is_learned,
            "choices": self.behaviour.choices,
            "decisions": self.behaviour.decisions,
            "shares": {name: _plain(share) for name, share in self.behaviour.measures().items()},
            "reward": float(self.agent.mean()),
            "rivals": {
                name: {"reward": float(self.rivals[name].mean()), "p_value": _plain(_of(each))}
                for name, each in self.comparisons.items()
            },
        }


def verdict_on(
    agent: Agent,
    behaviour: Behaviour,
    scenarios: Sequence[Scenario],
    seat: Callable[[Answering], Policy],
    reward: Callable[[], Reward],
) -> Verdict:
    """Simulate an agent and its baselines on the same windows.

    Parameters
    ----------
    agent : Agent
        The agent.
    behaviour : Behaviour
        Watcher of its choices, as in a validation before.
    scenarios : sequence of Scenario
        The windows.
    seat : callable
        Function that returns the policy with a holder at the agent's seat.
    reward : callable
        Function that returns a new reward of the agent.
    """

    def earned(holder: Answering) -> Floats:
        return np.array([_earned(holder, scenario, seat, reward()) for scenario in scenarios])

    mask, decline = agent.mask, agent.decline
    constants = {
        action: earned(ConstantAction(mask, action, decline=decline))
        for action in {*range(min(CONSTANTS, _actions(mask))), behaviour.commonest}
    }
    best = max(constants, key=lambda action: (constants[action].mean(), -action))
    rivals = {RANDOM: earned(RandomAgent(mask, decline=decline)), f"always action {best}": constants[best]}
    return Verdict(earned(agent), rivals, behaviour)


class _Earnings:
    """Watcher that adds up the reward of a run as an episode does; that of a warm-up does not count."""

    def __init__(self, reward: Reward, begin: int | None) -> None:
        self.reward = reward
        self.begin = begin
        self.total = 0.0
        self.counts = begin is None

    def bind(self, system: System) -> Observe:
        """Return the function that takes the reward at each choice."""
        return self._observe

    def _observe(self, decision: Decision, position: int) -> None:
        early = self.begin is not None and decision.system.now < self.begin
        if len(decision.options) > 1 and not early:
            self.take(decision.system)

    def take(self, system: System) -> None:
        """Take the reward since the last choice; that of the warm-up does not count."""
        paid = float(self.reward.take(system))
        self.total += paid if self.counts else 0.0
        self.counts = True


def _earned(
    holder: Answering, scenario: Scenario, seat: Callable[[Answering], Policy], reward: Reward
) -> float:
    """Return the reward of a holder of the seat in a window."""
    earnings = _Earnings(reward, scenario.learn_from)
    simulation = scenario.simulation(seat(Watched(holder, earnings)), [reward])
    simulation.run()
    earnings.take(simulation.system)
    return earnings.total


def _actions(mask: Mask) -> int:
    return int(mask.actions)


def _of(comparison: Comparison) -> float:
    """Return the larger one of the corrected p-values of both tests."""
    return max(comparison.t_test_holm, comparison.wilcoxon_holm)


def _p(comparison: Comparison) -> str:
    return p_value_text(_of(comparison))


def _plain(number: float) -> float | None:
    return number if np.isfinite(number) else None
