"""SchedInspector's trainer, and a faster one; both report the share of rejections."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from hpcsimkit.agents.ranges import Count, NonNegative, Share
from hpcsimkit.agents.training.on_policy import Batch
from hpcsimkit.agents.training.ppo import PPO, PPOSettings
from hpcsimkit.agents.training.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.agents.training.trainer import Round
from hpcsimkit.errors import UsageError

__all__ = ["InspectorSettings", "InspectorTrainer", "PromptInspectorSettings", "PromptInspectorTrainer"]


@dataclass(frozen=True)
class InspectorSettings(SpinningUpSettings):
    """Settings of :class:`InspectorTrainer`: the published ones, with total time steps for about 100 rounds.

    Weights are initialised orthogonally here, by Glorot's method in the published code. (The paper has one
    learning rate of 1e-3, its code 3e-4 for the policy and 1e-3 for the value function.)

    Parameters
    ----------
    longest : int, optional
        Maximum number of decisions in a sequence. A longer one is truncated and discarded, and another one
        replaces it. Its decisions count in `total_timesteps`, so every training ends. Published: ten times
        the 128 jobs of a sequence, for runs without a limit on rejections.
    """

    total_timesteps: int = 3_000_000
    hidden: tuple[int, ...] = (32, 16, 8)
    activation: str = "relu"
    longest: Count | None = 1280


class InspectorTrainer(SpinningUpPPO):
    """Spinning Up's PPO for an agent that accepts or rejects.

    Reports the share of rejections among the decisions of an update, and the share of decisions discarded.
    There is no update from a round without any sequence left.

    Raises
    ------
    UsageError
        In training: the whole first round is discarded, or `longest` is set without whole episodes.
    """

    algorithm = "schedinspector"
    settings: InspectorSettings

    @property
    def throws_away(self) -> bool:
        """Whether sequences that are too long are discarded."""
        return self.settings.longest is not None

    def build(self, seed: int) -> None:
        """Create the networks and their optimiser."""
        if self.throws_away and not self.settings.whole_episodes:
            raise UsageError(f"{self.algorithm}: longest needs whole_episodes")
        super().build(seed)

    def begin_run(self) -> None:
        """Create everything from the seed, with a limit on the decisions of a sequence."""
        if self.throws_away:
            self.env = copy.copy(self.env)
            self.env.max_steps = self.settings.longest
        super().begin_run()

    def round(self) -> Round:
        """Run a rollout, and update from the sequences that are not discarded."""
        before = self.steps
        batch, sums = self._play()
        kept = len(batch.actions)
        if not (kept or before):
            raise UsageError(
                f"{self.algorithm}: no sequence ends within longest = {self.settings.longest} decisions: "
                "more are needed, or shorter sequences"
            )
        measures = self.learn(batch) if kept else {}
        return Round(sums, {**measures, "thrown_away": 1 - kept / (self.steps - before)})

    def learn(self, batch: Batch) -> dict[str, float]:
        """Update from all steps of a round."""
        return {**super().learn(batch), "rejected": _rejected(batch)}


@dataclass(frozen=True)
class PromptInspectorSettings(PPOSettings):
    """Settings of :class:`PromptInspectorTrainer`: half as many sequences per round, and minibatches.

    They were tuned on the logs Lublin-2 and KTH-SP2, by the rules of the published simulators. No table of
    ``reproduce schedinspector`` uses these logs; Lublin-2 is one of the five logs of ``textbook-rules``.
    """

    total_timesteps: int = 1_500_000
    episodes: Count = 50
    whole_episodes: bool = True
    n_epochs: Count = 8
    batch_size: Count = 1024
    learning_rate: NonNegative = 1e-3
    gamma: Share = 1.0
    gae_lambda: Share = 0.97
    hidden: tuple[int, ...] = (32, 16, 8)
    activation: str = "relu"


class PromptInspectorTrainer(PPO):
    """PPO for an agent that accepts or rejects; reports the share of rejections.

    For the dense rewards :class:`~hpcsimkit.agents.spaces.prompt_improvement.PromptImprovement` and
    ``PromptRatio``.
    """

    algorithm = "prompt-inspector"
    settings: PromptInspectorSettings

    def learn(self, batch: Batch) -> dict[str, float]:
        """Update from all steps of a round."""
        return {**super().learn(batch), "rejected": _rejected(batch)}


def _rejected(batch: Batch) -> float:
    """Return the share of decisions that were rejections."""
    return float((batch.actions == 1).double().mean())
