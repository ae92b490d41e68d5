"""SchedInspector's training, and a faster one; both tell how often they reject."""

from __future__ import annotations

import copy
from dataclasses import dataclass

from hpcsimkit.agents.on_policy import Batch
from hpcsimkit.agents.ppo import PPO, PPOSettings
from hpcsimkit.agents.spinning_up import SpinningUpPPO, SpinningUpSettings
from hpcsimkit.agents.trainer import Round
from hpcsimkit.errors import UsageError

__all__ = ["InspectorSettings", "InspectorTrainer", "PromptInspectorSettings", "PromptInspectorTrainer"]


@dataclass(frozen=True)
class InspectorSettings(SpinningUpSettings):
    """Settings of :class:`InspectorTrainer`: the published ones, and steps enough for about 100 rounds.

    First weights are orthogonal here, Glorot's there. (The paper has one learning rate of 1e-3, its code
    has 3e-4 and, for the value, 1e-3.)

    Parameters
    ----------
    longest : int, optional
        A sequence that has not ended with so many decisions is thrown away: nothing of it is learned, and
        another one is played instead. Its decisions count as played (`steps`), so that every training ends.
        Published: ten times the 128 jobs of a sequence, there where nothing else bounds rejections.
    """

    steps: int = 3_000_000
    hidden: tuple[int, ...] = (32, 16, 8)
    activation: str = "relu"
    longest: int | None = 1280


class InspectorTrainer(SpinningUpPPO):
    """Spinning Up's PPO for an agent that accepts or rejects.

    Tells which share of the decisions that it learned from were rejections, and which share of all was thrown
    away. A round of which nothing is left teaches nothing.

    Raises
    ------
    UsageError
        In training: all of the first round is thrown away; or `longest` without whole episodes.
    """

    algorithm = "schedinspector"
    settings: InspectorSettings

    @property
    def throws_away(self) -> bool:
        """Sequences that are too long are."""
        return self.settings.longest is not None

    def build(self, seed: int) -> None:
        """Make networks and their optimiser."""
        if self.throws_away and not self.settings.whole_episodes:
            raise UsageError(f"{self.algorithm}: longest needs whole_episodes")
        super().build(seed)

    def _set_up(self) -> None:
        if self.throws_away:
            self.env = copy.copy(self.env)
            self.env.max_steps = self.settings.longest
        super()._set_up()

    def round(self) -> Round:
        """Play, and learn from what is not thrown away."""
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
        """Learn from all steps of a round."""
        return {**super().learn(batch), "rejected": _rejected(batch)}


@dataclass(frozen=True)
class PromptInspectorSettings(PPOSettings):
    """Settings of :class:`PromptInspectorTrainer`: rounds of half as many sequences, learned from in parts.

    They were found on the logs Lublin-2 and KTH-SP2, by the rules of the published simulators. No table of
    ``reproduce schedinspector`` is about these logs; Lublin-2 is one of the five of ``textbook-rules``.
    """

    steps: int = 1_500_000
    episodes: int = 50
    whole_episodes: bool = True
    epochs: int = 8
    batch: int = 1024
    learning_rate: float = 1e-3
    discount: float = 1.0
    trace: float = 0.97
    hidden: tuple[int, ...] = (32, 16, 8)
    activation: str = "relu"


class PromptInspectorTrainer(PPO):
    """PPO for an agent that accepts or rejects; tells which share it rejected.

    Made for a :class:`~hpcsimkit.agents.prompt_improvement.PromptImprovement`, or its ``PromptRatio``.
    """

    algorithm = "prompt-inspector"
    settings: PromptInspectorSettings

    def learn(self, batch: Batch) -> dict[str, float]:
        """Learn from all steps of a round."""
        return {**super().learn(batch), "rejected": _rejected(batch)}


def _rejected(batch: Batch) -> float:
    """Return the share of decisions that were rejections."""
    return float((batch.actions == 1).double().mean())
