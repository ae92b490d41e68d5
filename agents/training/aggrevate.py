"""Imitation of a heuristic by the costs of all actions (AggreVaTe: Ross and Bagnell, arXiv:1406.5979)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.networks.numpy_networks import Network
from hpcsimkit.agents.ranges import Count
from hpcsimkit.agents.training.imitation import Imitation, ImitationSettings
from hpcsimkit.agents.training.trainer import Round
from hpcsimkit.envs.episode import Episode
from hpcsimkit.envs.scenario import Scenario

__all__ = ["AggreVaTe", "AggreVaTeSettings"]


@dataclass(frozen=True)
class AggreVaTeSettings(ImitationSettings):
    """Settings of :class:`AggreVaTe`.

    Parameters
    ----------
    n_steps : int
        Number of decisions of each episode at which actions are compared.
    tried : int
        Maximum number of actions compared at a decision, each with a simulation of the whole episode.
    """

    n_steps: Count = 4
    tried: Count = 4


class AggreVaTe(Imitation):
    """Trainer of a network that chooses the actions after which an expert does best.

    Unlike :class:`~hpcsimkit.agents.training.imitation.Imitation` it learns how much an action costs, not
    only whether the expert takes it, and may become better than the expert. Each round runs episodes as
    Imitation does, then draws decisions of them, and valid actions at each. To measure the cost-to-go of an
    action, the episode is simulated again: the same answers up to the decision, the action, then the
    expert's choices to the end. (Where no action represents the expert's choice, the first valid action is
    taken.) The difference
    between the return and the mean over the actions of the decision is recorded; the rewards before the
    decision cancel out. The network maximises the expected difference, over the compared actions of all
    records. Decisions of repeated simulations count as steps. Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.
    """

    algorithm = "aggrevate"
    settings: AggreVaTeSettings

    @property
    def recorded(self) -> tuple[tuple[int, ...], type[np.generic]]:
        """Shape and type of what is recorded at a decision: by how much an action exceeds the mean."""
        return (self.env.mask.actions,), np.float32

    def round(self) -> Round:
        """Run episodes, compare actions at some of their decisions, and update from all records."""
        settings, beta, network = self.settings, self.beta, self.networks.network()
        sums, gains = list[float](), list[float]()
        for _ in range(settings.episodes):
            scenario, taken, total = self._play(network, beta)
            sums.append(total)
            count = min(settings.n_steps, len(taken))
            for place in sorted(self.rng.choice(len(taken), size=count, replace=False).tolist()):
                gains.append(self._compare(scenario, taken[:place], taken[place]))
        losses = [self._learn() for _ in range(settings.updates)]
        return Round(sums, {"loss": float(np.mean(losses)), "gain": float(np.mean(gains)), "beta": beta})

    def _play(self, network: Network, beta: float) -> tuple[Scenario, list[int], float]:
        """Run an episode of the network and the expert; return it, its actions and its return."""
        episode, taken = self.env.begin(self.rng, self.env.reward), list[int]()
        while episode.decision is not None:
            observation, valid = self._seen(episode)
            actions = valid.nonzero()[0]
            action = int(actions[network.scores_of(observation, actions).argmax()])
            if self.rng.random() < beta:
                action = self._experts(episode, valid)
            taken.append(action)
            episode.answer(action)
        self.steps += episode.decisions
        return episode.scenario, taken, episode.reward(self.env.stage)

    def _compare(self, scenario: Scenario, before: list[int], taken: int) -> float:
        """Record the returns of actions at a decision; return by how much the best exceeds the one taken."""
        observation, valid = self._seen(self._repeated(scenario, before))
        others = np.setdiff1d(valid.nonzero()[0], taken)
        count = min(self.settings.tried - 1, len(others))
        tried = [taken, *self.rng.choice(others, size=count, replace=False).tolist()]
        returns = np.array([self._return(scenario, [*before, action]) for action in tried])
        compared, differences = np.zeros_like(valid), np.zeros(len(valid), dtype=np.float32)
        compared[tried], differences[tried] = True, returns - returns.mean()
        self.memory.add(observation[None], compared[None], differences[None])
        return float(returns.max() - returns[0])

    def _return(self, scenario: Scenario, actions: list[int]) -> float:
        """Return the return of an episode that begins with given actions and goes on with the expert's."""
        episode = self._repeated(scenario, actions)
        while episode.decision is not None:
            episode.answer(self._experts(episode, self._seen(episode)[1]))
        self.steps += episode.decisions
        return episode.reward(self.env.stage)

    def _repeated(self, scenario: Scenario, actions: list[int]) -> Episode:
        """Return an episode after given actions."""
        episode = self.env.episode_of(scenario, self.env.reward)
        for action in actions:
            episode.answer(action)
        return episode

    def _seen(self, episode: Episode) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Return the observation and the valid actions at the pending decision."""
        observation = np.zeros(self.env.encoder.shape, dtype=np.float32)
        valid = np.zeros(self.env.mask.actions, dtype=np.bool_)
        episode.write(observation, valid)
        return observation, valid

    def _experts(self, episode: Episode, valid: NDArray[np.bool_]) -> int:
        """Return the action of the expert's choice, or else the first valid one."""
        assert episode.decision is not None
        action = self._wanted_at(episode.decision, valid)
        return action if action >= 0 else int(valid.argmax())

    def _loss(self, logarithms: torch.Tensor, recorded: torch.Tensor) -> torch.Tensor:
        """Return minus the expected difference over the compared actions."""
        return -(logarithms.exp() * recorded).sum(dim=1).mean()
