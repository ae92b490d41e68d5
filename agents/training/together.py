"""Simultaneous training of several agents, on several seats of one pipeline, from shared episodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.model_file import read_model, write_model
from hpcsimkit.agents.training.old_names import current_names
from hpcsimkit.agents.training.on_policy import Batch, OnPolicyTrainer
from hpcsimkit.agents.training.returns import advantages_and_targets
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.agents.training.stopping import Stopping
from hpcsimkit.agents.training.trainer import (
    CHECKPOINT,
    SECONDS_BETWEEN_CHECKPOINTS,
    arrays_of,
    below,
    put_arrays,
)
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.episode import Player
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.turns import TurnTaking
from hpcsimkit.errors import UsageError
from hpcsimkit.io.interruption import Stopped
from hpcsimkit.kernel.policy import Policy

__all__ = ["Together"]

Floats = NDArray[np.float32]
Tell = Callable[[int, Mapping[str, float]], None]


@dataclass
class _Trail:
    """Steps of one seat in an episode, one per decision."""

    observations: list[Floats] = field(default_factory=list)
    valid: list[NDArray[np.bool_]] = field(default_factory=list)
    actions: list[int] = field(default_factory=list)
    log_probabilities: list[float] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    def earn(self, reward: float) -> None:
        """Add the reward since the last decision; a reward before the first decision is dropped."""
        if self.rewards:
            self.rewards[-1] += reward


class Together:
    """Trainer of agents on several seats in the same episodes, each from its own steps.

    With a folder, an interrupted run can be resumed from its checkpoint, bit for bit. To train one seat after
    the other instead, put the finished agent on its seat and train the next one with a
    :class:`~hpcsimkit.agents.training.trainer.Trainer`.

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
    seed : int
        Random seed of the whole training run.
    attempts : int
        Maximum number of attempts; see :class:`~hpcsimkit.envs.turns.TurnTaking`.

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
    >>> agents = Together(Fixed(w), seats, players, dict.fromkeys(players, how), seed=1).train(rounds=1)
    >>> {stage: agent.stage for stage, agent in agents.items()}
    {'order': 'order', 'inspector': 'inspector'}
    """

    def __init__(
        self,
        episodes: Episodes,
        policy: Policy,
        players: Mapping[str, Player],
        settings: Mapping[str, SpinningUpSettings],
        *,
        seed: int = 0,
        attempts: int = 1000,
    ) -> None:
        self.episodes = episodes
        self.policy = policy
        self.players = dict(players)
        self.settings = dict(settings)
        self.seed = seed
        self.attempts = attempts

    def train(
        self,
        rounds: int,
        tell: Tell = lambda number, sums: None,
        *,
        folder: Path | None = None,
        resume: bool = False,
    ) -> dict[str, Agent]:
        """Train for a number of rounds.

        Parameters
        ----------
        rounds : int
            Number of rounds.
        tell : callable
            Callback after each round; called with its number, from 1, and each stage's mean return. A resumed
            run first repeats the calls for its former rounds.
        folder : Path, optional
            Folder of the checkpoint, written after the first round, every few minutes, at the end, and at an
            interruption.
        resume : bool
            Whether to resume from the folder's checkpoint, if there is one.

        Returns
        -------
        dict of str to Agent
            Trained agents by stage.

        Raises
        ------
        UsageError
            The checkpoint belongs to another training run.
        Stopped
            Ctrl-C, or SIGTERM. With a folder, the current round is finished and a checkpoint written first.
        """
        torch.set_num_threads(1)
        self._set_up()
        if resume and folder is not None and (folder / CHECKPOINT).exists():
            self._restore(folder / CHECKPOINT)
        for number, sums in enumerate(self._sums, start=1):
            tell(number, sums)
        self._run(rounds, folder, tell)
        return {
            stage: Agent(player.encoder, player.mask, self._learners[stage].network(), stage)
            for stage, player in self.players.items()
        }

    def _set_up(self) -> None:
        """Create the environment and the learners from the seed."""
        self._table = TurnTaking(self.episodes, self.policy, self.players, attempts=self.attempts)
        streams = np.random.SeedSequence(self.seed).spawn(1 + len(self.players))
        self._table.rng = np.random.default_rng(streams[0])
        self._learners = {
            stage: self._learner(stage, stream)
            for stage, stream in zip(self.players, streams[1:], strict=True)
        }
        self._sums: list[dict[str, float]] = []

    def _run(self, rounds: int, folder: Path | None, tell: Tell) -> None:
        """Run the remaining rounds; with a folder, an interruption takes effect at the end of a round."""
        written = float("-inf")
        with nullcontext(Stopping()) if folder is None else Stopping() as stopping:
            while len(self._sums) < rounds:
                self._sums.append(self._round())
                number = len(self._sums)
                tell(number, self._sums[-1])
                late = time.monotonic() - written > SECONDS_BETWEEN_CHECKPOINTS
                if folder is not None and (late or stopping.asked or number == rounds):
                    self._write(folder / CHECKPOINT)
                    written = time.monotonic()
                if stopping.asked:
                    raise Stopped(number=stopping.number)

    def _round(self) -> dict[str, float]:
        """Run episodes and update from them; return each stage's mean return."""
        count = next(iter(self.settings.values())).episodes
        trails = [self._play(self._table, self._learners) for _ in range(count)]
        for stage, learner in self._learners.items():
            self._learn(learner, [trail[stage] for trail in trails])
        return {
            stage: float(np.mean([sum(trail[stage].rewards) for trail in trails])) for stage in self._learners
        }

    # --- checkpoints ---------------------------------------------------------------------------------

    def _write(self, path: Path) -> None:
        """Write the complete state of the run; no episode is open between rounds."""
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {
            f"{stage}.{name}": values
            for stage, learner in self._learners.items()
            for name, values in arrays_of(learner.networks, learner.optimiser).items()
        }
        about = {
            "trainer": self._identity(),
            "sums": self._sums,
            "rng": _words(self._table.rng),
            "learners": {
                stage: {"steps": learner.steps, "rng": _words(learner.rng)}
                for stage, learner in self._learners.items()
            },
        }
        write_model(path, tensors, about)

    def _restore(self, path: Path) -> None:
        """Resume from a checkpoint."""
        tensors, about = read_model(path)
        identity = self._identity()
        if current_names(about.get("trainer"), identity) != identity:
            raise UsageError(f"{path}: a checkpoint of this training is needed, found another one's")
        self._sums = about["sums"]
        self._table.rng.bit_generator.state = json.loads(about["rng"])
        for stage, learner in self._learners.items():
            put_arrays(below(stage, tensors), learner.networks, learner.optimiser)
            learner.steps = about["learners"][stage]["steps"]
            learner.rng.bit_generator.state = json.loads(about["learners"][stage]["rng"])

    def _identity(self) -> dict[str, Any]:
        """Return the parameters that a checkpoint must match to be resumed from."""
        players = {
            stage: [repr(part) for part in (player.encoder, player.mask, player.reward)]
            for stage, player in self.players.items()
        }
        settings = {stage: asdict(each) for stage, each in self.settings.items()}
        about = {"seed": self.seed, "policy": repr(self.policy), "players": players, "settings": settings}
        return dict(json.loads(json.dumps(about)))

    # --- a round -------------------------------------------------------------------------------------

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

    def _play(self, table: TurnTaking, learners: Mapping[str, OnPolicyTrainer]) -> dict[str, _Trail]:
        """Run an episode; return the steps of each seat."""
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
        """Update from the steps of a seat, skipping episodes without a decision of it."""
        batches = [_worth(learner, trail) for trail in trails if trail.actions]
        if sum(len(batch.actions) for batch in batches) > 1:
            batch = Batch(*(torch.cat(parts) for parts in zip(*batches, strict=True)))
            learner.steps += len(batch.actions)
            learner.learn(batch)


def _words(rng: np.random.Generator) -> str:
    """Return the state of a generator as JSON text; its integers are too large for other JSON readers."""
    return json.dumps(rng.bit_generator.state)


def _worth(learner: SpinningUpPPO, trail: _Trail) -> Batch:
    """Compute advantages and value targets of an episode."""
    settings, observations = learner.settings, np.array(trail.observations, dtype=np.float32)
    rewards = np.array(trail.rewards, dtype=np.float32)[:, None] * np.float32(settings.reward_scale)
    values = learner.networks.value_network().many(observations)
    over = np.zeros(rewards.shape, dtype=np.bool_)
    over[-1] = True
    advantages, targets = advantages_and_targets(
        (rewards, values, over, np.zeros(1, dtype=np.float32), settings.gamma),
        settings.gae_lambda,
        settings.value_gae_lambda,
    )
    columns = (
        observations,
        np.array(trail.valid),
        np.array(trail.actions, dtype=np.int64),
        np.array(trail.log_probabilities, dtype=np.float32),
        values[:, 0],
        advantages[:, 0],
        targets[:, 0],
    )
    return Batch(*(torch.from_numpy(np.ascontiguousarray(each)).to(learner.device) for each in columns))
