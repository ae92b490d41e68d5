"""SchedInspector's training, and a faster one; both tell how often they reject."""

from __future__ import annotations

from dataclasses import dataclass

from hpcsimkit.agents.on_policy import Batch
from hpcsimkit.agents.ppo import PPO, PPOSettings
from hpcsimkit.agents.spinning_up import SpinningUpPPO, SpinningUpSettings

__all__ = ["InspectorSettings", "InspectorTrainer", "PromptInspectorSettings", "PromptInspectorTrainer"]


@dataclass(frozen=True)
class InspectorSettings(SpinningUpSettings):
    """Settings of :class:`InspectorTrainer`: the published ones, and steps enough for about 100 rounds.

    First weights are orthogonal here, Glorot's there. (The paper has one learning rate of 1e-3, its code
    has 3e-4 and, for the value, 1e-3.)
    """

    steps: int = 3_000_000
    hidden: tuple[int, ...] = (32, 16, 8)
    activation: str = "relu"


class InspectorTrainer(SpinningUpPPO):
    """Spinning Up's PPO for an agent that accepts or rejects; tells which share it rejected."""

    algorithm = "schedinspector"
    settings: InspectorSettings

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

    Made for a :class:`~hpcsimkit.agents.prompt_improvement.PromptImprovement`.
    """

    algorithm = "prompt-inspector"
    settings: PromptInspectorSettings

    def learn(self, batch: Batch) -> dict[str, float]:
        """Learn from all steps of a round."""
        return {**super().learn(batch), "rejected": _rejected(batch)}


def _rejected(batch: Batch) -> float:
    """Return the share of decisions that were rejections."""
    return float((batch.actions == 1).double().mean())
