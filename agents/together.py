"""Several seats of one pipeline that learn at the same time, from episodes that they play together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.on_policy import Batch, OnPolicyTrainer
from hpcsimkit.agents.returns import advantages_and_targets
from hpcsimkit.agents.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.episode import Player
from hpcsimkit.learning import Episodes
from hpcsimkit.policy import Policy
from hpcsimkit.turns import TurnTaking

__all__ = ["Together"]

Floats = NDArray[np.float32]


@dataclass
class _Trail:
    """What a seat did in an episode: a step for each of its decisions."""

    observations: list[Floats] = field(default_factory=list)
    valid: list[NDArray[np.bool_]] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def earn(self, reward: float) -> None:
        """Add what has come in since the last decision; what came before the first is nobody's merit."""
        if self.rewards:
            self.rewards[-1] += reward


class Together:
    """Learners on several seats who play whole episodes together; after each round each learns from its own.

    Nothing is written on the way: what is stopped is lost. To train one seat after the other instead, put the
    agent that is done on its seat and train the next one by a :class:`~hpcsimkit.agents.trainer.Trainer`.

    Parameters
    ----------
    episodes : Episodes
        What they play.
    policy : Policy
        With the seats left open.
    players : mapping of str to Player
        By stage, each with a reward of its own.
    settings : mapping of str to SpinningUpSettings
        By stage: how each learns. The ``episodes`` of the first one are played in a round.
    seed : int
        Where all chance comes from.
    attempts : int
        As of :class:`~hpcsimkit.turns.TurnTaking`.

    Examples
    --------
    An order and an inspector, paid for the same thing:

    >>> from hpcsimkit.agents.encoders import QueueWindow
    >>> from hpcsimkit.agents.episodes import Fixed
    >>> from hpcsimkit.agents.masks import AcceptReject, Slots
    >>> from hpcsimkit.agents.rewards import MinusMeanWait
    >>> from hpcsimkit.agents.schedinspector.features import InspectorFeatures
    >>> from hpcsimkit.decision import External
    >>> from hpcsimkit.pipeline import Pipeline
    >>> from hpcsimkit.workload import Workload
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> seats = Pipeline(order=External(), inspector=External(), window=3)
    >>> players = {"order": Player(QueueWindow(3), Slots(3), MinusMeanWait()),
    ...            "inspector": Player(InspectorFeatures(), AcceptReject(), MinusMeanWait())}
    >>> how = SpinningUpSettings(episodes=2, epochs=1, hidden=(4,))
    >>> agents = Together(Fixed(w), seats, players, dict.fromkeys(players, how), seed=1).train(rounds=1)
    >>> {stage: agent.stage for stage, agent in agents.items()}
    {'order': 'order', 'inspector': 'inspector'}
    """

    def __init__(
        self, episodes: Episodes, policy: Policy, players: Mapping[str, Player],
        settings: Mapping[str, SpinningUpSettings], *, seed: int = 0, attempts: int = 1000,
    ) -> None:  # fmt: skip
        self.episodes = episodes
        self.policy = policy
        self.players = dict(players)
        self.settings = dict(settings)
        self.seed = seed
        self.attempts = attempts

    def train(
        self, rounds: int, tell: Callable[[int, Mapping[str, float]], None] = lambda number, sums: None
    ) -> dict[str, Agent]:
        """Play and learn so many rounds.

        Parameters
        ----------
        rounds : int
            How many.
        tell : callable
            Is told the number of each round, from 1, and what an episode of it earned each stage on average.

        Returns
        -------
        dict of str to Agent
            By stage.
        """
        torch.set_num_threads(1)
        table = TurnTaking(self.episodes, self.policy, self.players, attempts=self.attempts)
        streams = np.random.SeedSequence(self.seed).spawn(1 + len(self.players))
        table.rng = np.random.default_rng(streams[0])
        learners = {
            stage: self._learner(stage, stream)
            for stage, stream in zip(self.players, streams[1:], strict=True)
        }
        count = next(iter(self.settings.values())).episodes
        for number in range(1, rounds + 1):
            trails = [self._play(table, learners) for _ in range(count)]
            for stage, learner in learners.items():
                self._learn(learner, [trail[stage] for trail in trails])
            sums = {
                stage: float(np.mean([sum(trail[stage].rewards) for trail in trails])) for stage in learners
            }
            tell(number, sums)
        return {
            stage: Agent(player.encoder, player.mask, learners[stage].network(), stage)
            for stage, player in self.players.items()
        }

    def _learner(self, stage: str, stream: np.random.SeedSequence) -> SpinningUpPPO:
        """Return who learns a seat, with new networks."""
        player = self.players[stage]
        env = SchedulingEnv(
            self.episodes, self.policy, player.encoder, player.mask, player.reward, stage=stage
        )  # fmt: skip
        learner = SpinningUpPPO(env, self.settings[stage], seed=self.seed)
        weights, actions = (int(each) for each in stream.generate_state(2))
        learner.rng, learner.steps = np.random.default_rng(actions), 0
        learner.build(weights)
        return learner

    def _play(self, table: TurnTaking, learners: Mapping[str, OnPolicyTrainer]) -> dict[str, _Trail]:
        """Play an episode; returns what each seat did."""
        actors = {stage: learner.network() for stage, learner in learners.items()}
        trails = {stage: _Trail() for stage in learners}
        table.reset()
        for stage in table.agent_iter():
            observation, reward, over, _, info = table.last()
            trail = trails[stage]
            trail.earn(reward)
            if over:
                table.step(None)
                continue
            valid = info["action_mask"]
            action, logarithm = learners[stage].act(actors[stage], observation[None], valid[None])
            trail.observations.append(observation)
            trail.valid.append(valid)
            trail.actions.append(int(action[0]))
            trail.log_probabilities.append(float(logarithm[0]))
            trail.rewards.append(0.0)
            table.step(int(action[0]))
        return trails

    def _learn(self, learner: SpinningUpPPO, trails: list[_Trail]) -> None:
        """Learn from what a seat did in the episodes in which it was asked."""
        batches = [_worth(learner, trail) for trail in trails if trail.actions]
        if sum(len(batch.actions) for batch in batches) > 1:
            batch = Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))
            learner.steps += len(batch.actions)
            learner.learn(batch)


def _worth(learner: SpinningUpPPO, trail: _Trail) -> Batch:
    """Reckon what the actions of an episode were worth."""
    settings, observations = learner.settings, np.array(trail.observations, dtype=np.float32)
    rewards = np.array(trail.rewards, dtype=np.float32)[:, None] * np.float32(settings.reward_scale)
    values = learner.networks.value_network().many(observations)
    over = np.zeros(rewards.shape, dtype=np.bool_)
    over[-1] = True
    advantages, targets = advantages_and_targets(
        (rewards, values, over, np.zeros(1, dtype=np.float32), settings.discount), settings.trace,
        settings.value_trace,
    )  # fmt: skip
    columns = (
        observations, np.array(trail.valid), np.array(trail.actions, dtype=np.int64),
        np.array(trail.log_probabilities, dtype=np.float32), values[:, 0], advantages[:, 0],
        targets[:, 0],
    )  # fmt: skip
    return Batch(*(torch.from_numpy(np.ascontiguousarray(each)).to(learner.device) for each in columns))
