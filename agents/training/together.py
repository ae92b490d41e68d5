"""Simultaneous training of several agents, on several seats of one pipeline, from shared episodes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.ranges import Count, check_ranges
from hpcsimkit.agents.training.on_policy import Batch, decision_columns
from hpcsimkit.agents.training.returns import advantages_and_targets
from hpcsimkit.agents.training.rollout import Rollout
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.agents.training.trainer import Learned, Round, State, Trainer, Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.turns import TurnTaking
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.policy import Policy

__all__ = ["Together", "TogetherSettings"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class TogetherSettings(SpinningUpSettings):
    """Settings of :class:`Together` in training files; each seat may have other ones.

    Parameters
    ----------
    rounds : int
        Number of rounds, each with an update of every seat; `total_timesteps` has no effect.
    """

    rounds: Count = 100


class Together(Trainer[dict[str, Agent]]):
    """Trainer of agents on several seats in the same episodes, each from its own steps.

    Steps are counted in episodes. The reward in reports is the mean return of the first seat; those of the
    others are measures. To train one seat after the other instead, put the finished agent on its seat and
    train the next one with a :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Parameters
    ----------
    episodes : Episodes
        Source of scenarios.
    policy : Policy
        Policy with the seats left open.
    players : mapping of str to Player
        Encoder, mask and reward by stage.
    settings : mapping of str to SpinningUpSettings
        Training settings by stage. The first stage's ``episodes`` is the number of episodes in a round.
    rounds : int
        Number of rounds.
    seed : int
        Random seed of the whole training run.
    attempts : int
        Maximum number of attempts; see :class:`~hpcsimkit.envs.turns.TurnTaking`.
    validate, validate_every
        Parameters of :class:`~hpcsimkit.agents.training.trainer.Trainer`.

    Examples
    --------
    An order and an inspector with the same reward:

    >>> from hpcsimkit.agents.spaces.encoders import QueueWindow
    >>> from hpcsimkit.agents.spaces.episodes import Fixed
    >>> from hpcsimkit.agents.spaces.masks import AcceptReject, Slots
    >>> from hpcsimkit.agents.spaces.rewards import MinusMeanWait
    >>> from hpcsimkit.agents.schedinspector.features import InspectorFeatures
    >>> from hpcsimkit.kernel.decision import External
    >>> from hpcsimkit.kernel.pipeline import Pipeline
    >>> from hpcsimkit.jobs.workload import Workload
    >>> w = Workload({"submit_time": [0] * 3, "run_time": [90, 10, 50], "nodes": [1] * 3}, machine_size=1)
    >>> seats = Pipeline(order=External(), inspector=External(), window=3)
    >>> players = {"order": Player(QueueWindow(3), Slots(3), MinusMeanWait()),
    ...            "inspector": Player(InspectorFeatures(), AcceptReject(), MinusMeanWait())}
    >>> how = SpinningUpSettings(episodes=2, n_epochs=1, hidden=(4,))
    >>> trainer = Together(Fixed(w), seats, players, dict.fromkeys(players, how), rounds=1, seed=1)
    >>> {stage: agent.stage for stage, agent in trainer.train().items()}
    {'order': 'order', 'inspector': 'inspector'}
    """

    algorithm = "together"
    unit = "episodes"
    file_settings = TogetherSettings
    """Settings in training files, from which those of each seat are made."""

    settings: Mapping[str, SpinningUpSettings]

    def __init__(  # noqa: PLR0913 - keywords
        self,
        episodes: Episodes,
        policy: Policy,
        players: Mapping[str, Player],
        settings: Mapping[str, SpinningUpSettings],
        *,
        rounds: int,
        seed: int = 0,
        attempts: int = 1000,
        validate: Callable[[dict[str, Agent]], float | Validated] | None = None,
        validate_every: int = 10,
    ) -> None:
        super().__init__(dict(settings), seed=seed, validate=validate, validate_every=validate_every)
        self.episodes = episodes
        self.policy = policy
        self.players = dict(players)
        self.all_rounds = rounds
        self.attempts = attempts

    def check(self) -> None:
        """Check the settings of all seats; raise a UsageError if one is out of range."""
        for stage, each in self.settings.items():
            check_ranges(each, stage)
            if each.group > 1:
                raise UsageError(f"{stage}: agents that learn together cannot have groups of episodes")

    @property
    def episodes_per_round(self) -> int:
        """Number of episodes in a round."""
        return next(iter(self.settings.values())).episodes

    @property
    def total(self) -> int:
        """Number of episodes in the whole run."""
        return self.all_rounds * self.episodes_per_round

    @property
    def simulators(self) -> Counter[str]:
        """Number of episodes begun on each simulator, since the process began or resumed the training."""
        return self._table.simulators

    def begin_run(self) -> None:
        """Create the environment and the learners from the seed."""
        self._table = TurnTaking(self.episodes, self.policy, self.players, attempts=self.attempts)
        streams = np.random.SeedSequence(self.seed).spawn(1 + len(self.players))
        self._table.rng = np.random.default_rng(streams[0])
        self._learners = {
            stage: self._learner(stage, stream)
            for stage, stream in zip(self.players, streams[1:], strict=True)
        }

    def _learner(self, stage: str, stream: np.random.SeedSequence) -> SpinningUpPPO:
        """Return the learner of a seat, with newly initialised networks."""
        player = self.players[stage]
        env = SchedulingEnv(
            self.episodes, self.policy, player.encoder, player.mask, player.reward, stage=stage
        )
        learner = SpinningUpPPO(env, self.settings[stage], seed=self.seed)
        weights, actions = (int(each) for each in stream.generate_state(2))
        learner.rng, learner.steps = np.random.default_rng(actions), 0
        learner.build(weights)
        return learner

    def agents(self) -> dict[str, Agent]:
        """Return the current agents by stage."""
        about = {"algorithm": self.algorithm, "seed": self.seed, "steps": self.steps}
        settings = self.plain_settings()
        return {
            stage: Agent(
                player.encoder,
                player.mask,
                self._learners[stage].network(),
                stage,
                about={**about, "settings": settings[stage]},
            )
            for stage, player in self.players.items()
        }

    def loaded(self, seat: str, file: Path) -> Agent:
        """Return the agent of a seat from its file, with the encoder and mask of the seat."""
        return Agent.load(file, encoder=self.players[seat].encoder, mask=self.players[seat].mask)

    def outcome(self, agents: dict[str, Agent]) -> dict[str, Agent]:
        """Return the agents."""
        return agents

    def learned(self) -> Learned:
        """Return the networks of all seats, and their optimisers."""
        return {stage: (each.networks, each.optimiser) for stage, each in self._learners.items()}

    def state(self) -> State:
        """Return counters and random number generators; no episode is open between rounds."""
        rngs = {stage: _words(learner.rng) for stage, learner in self._learners.items()}
        steps = {stage: learner.steps for stage, learner in self._learners.items()}
        return State({}, {"rng": _words(self._table.rng), "rngs": rngs, "steps": steps})

    def restore(self, state: State) -> None:
        """Restore counters and random number generators."""
        self._table.rng.bit_generator.state = json.loads(state.about["rng"])
        for stage, learner in self._learners.items():
            learner.steps = state.about["steps"][stage]
            learner.rng.bit_generator.state = json.loads(state.about["rngs"][stage])

    def identity(self) -> dict[str, Any]:
        """Return the parameters that a checkpoint must match to be resumed from."""
        players = {
            stage: [repr(part) for part in (player.encoder, player.mask, player.reward)]
            for stage, player in self.players.items()
        }
        return {"policy": repr(self.policy), "players": players, "settings": self.plain_settings()}

    def plain_settings(self) -> dict[str, Any]:
        """Return the settings of each stage as JSON data."""
        return dict(json.loads(json.dumps({stage: asdict(each) for stage, each in self.settings.items()})))

    # --- a round -------------------------------------------------------------------------------------

    def round(self) -> Round:
        """Run episodes and update from them."""
        played = [self._play() for _ in range(self.episodes_per_round)]
        for stage, learner in self._learners.items():
            batches = [batch for episode in played if (batch := episode[stage][0]) is not None]
            if sum(len(batch.actions) for batch in batches) > 1:
                batch = Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))
                learner.steps += len(batch.actions)
                learner.learn(batch)
        self.steps += len(played)
        first, *others = self._learners
        means = {stage: float(np.mean([episode[stage][1] for episode in played])) for stage in others}
        return Round([episode[first][1] for episode in played], means)

    def _play(self) -> dict[str, tuple[Batch | None, float]]:
        """Run an episode; return the steps of each seat, None without any, and its return.

        A reward before the first decision of a seat is dropped.
        """
        table, learners = self._table, self._learners
        actors = {stage: learner.network() for stage, learner in learners.items()}
        rollouts = {
            stage: Rollout(decision_columns(player.encoder, player.mask))
            for stage, player in self.players.items()
        }
        rewards: dict[str, list[float]] = {stage: [] for stage in learners}
        table.reset()
        for stage in table.agent_iter():
            observation, reward, over, _, info = table.last()
            if rewards[stage]:
                rewards[stage][-1] += reward
            if over:
                table.step(None)
                continue
            seen, valid = observation[None], info["action_mask"][None]
            action, logarithm = learners[stage].act(actors[stage], seen, valid)
            rollouts[stage].add(seen, valid, action, logarithm)
            rewards[stage].append(0.0)
            table.step(int(action[0]))
        return {
            stage: (_steps(learner, rollouts[stage], rewards[stage]), sum(rewards[stage]))
            for stage, learner in learners.items()
        }


def _words(rng: np.random.Generator) -> str:
    """Return the state of a generator as JSON text; its integers are too large for other JSON readers."""
    return json.dumps(rng.bit_generator.state)


def _steps(learner: SpinningUpPPO, rollout: Rollout, rewards: list[float]) -> Batch | None:
    """Compute advantages and value targets of an episode; return its steps."""
    if not len(rollout):
        return None
    settings, (observations, *done) = learner.settings, rollout.taken()
    earned = np.array(rewards, dtype=np.float32)[:, None] * np.float32(settings.reward_scale)
    values = learner.networks.value_network().many(observations)
    over = np.zeros(earned.shape, dtype=np.bool_)
    over[-1] = True
    advantages, targets = advantages_and_targets(
        (earned, values, over, np.zeros(1, dtype=np.float32), settings.gamma),
        settings.gae_lambda,
        settings.value_gae_lambda,
    )
    columns = (observations, *done, values[:, 0], advantages[:, 0], targets[:, 0])
    return Batch(*(torch.from_numpy(np.ascontiguousarray(each)).to(learner.device) for each in columns))
