"""SchedInspector's training, which tells how often it rejects."""

from __future__ import annotations

from dataclasses import dataclass

from hpcsimkit.agents.on_policy import Batch
from hpcsimkit.agents.spinning_up import SpinningUpPPO, SpinningUpSettings

__all__ = ["InspectorSettings", "InspectorTrainer"]


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
        rejected = float((batch.actions == 1).double().mean())
        return {**super().learn(batch), "rejected": rejected}
