"""PPO of a network that begins as a weighted sum of the features, found without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.ranges import Count, NonNegative, Positive, Share
from hpcsimkit.agents.training.cross_entropy import CrossEntropy, CrossEntropySettings
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.on_policy import Batch
from hpcsimkit.agents.training.ppo import PPO, PPOSettings, value_loss
from hpcsimkit.errors import UsageError

__all__ = ["TaughtPPO", "TaughtPPOSettings"]

TEACHER = "teacher"
"""Folder of the teacher's training, inside that of the run."""

LINEAR = ("weight", "bias")
"""Tensors of the teacher's only layer."""


@dataclass(frozen=True)
class TaughtPPOSettings(PPOSettings):
    """Settings of :class:`TaughtPPO`; its network scores rows.

    Parameters
    ----------
    teacher_timesteps : int
        Number of decisions of the teacher's training, besides `total_timesteps`.
    teacher_episodes, teacher_population, teacher_elite : int
        Episodes per network, networks and best networks of a round of the teacher's training.
    teacher_first : tuple of float
        Initial weights of the teacher, the bias last; zeros by default.
    teacher_spread : float
        Initial standard deviation of its weights.
    sharpness : float
        Factor of the teacher's scores in the network; a larger one draws the teacher's choices more often.
    watched : float
        Share of `total_timesteps` in which only the critic learns, from the teacher's policy.
    """

    learning_rate: NonNegative = 1e-3
    gamma: Share = 1.0
    kind: str = "slots"
    activation: str = "relu"
    teacher_timesteps: Count = 300_000
    teacher_episodes: Count = 12
    teacher_population: Count = 24
    teacher_elite: Count = 6
    teacher_first: tuple[float, ...] = ()
    teacher_spread: Positive = 1.0
    sharpness: Positive = 5.0
    watched: Share = 0.1


class TaughtPPO(PPO):
    """Trainer of a network that scores rows: a weighted sum of their features at first, improved by PPO.

    The teacher, the weighted sum, is trained first, by the cross-entropy method, on the same episodes and
    observations. The network begins with weights that make its scores those of the teacher: of two units a
    layer, one has the positive part of the sum and the other the negative part. After some rounds in which
    only the critic learns, PPO changes all weights. Parameters are those of
    :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Attributes
    ----------
    teacher : Agent
        The teacher, after its training.

    Raises
    ------
    UsageError
        In training: the network does not score rows, is not of ``relu``, or has no layer of two units.
    """

    algorithm = "taught-ppo"
    settings: TaughtPPOSettings
    teacher: Agent

    def prepare(self, folder: Path | None, *, resume: bool, tell: Callable[[Report], None]) -> None:
        """Train the teacher."""
        settings = self.settings
        self.check()
        if settings.kind != "slots" or settings.activation != "relu" or min(settings.hidden, default=0) < 2:
            raise UsageError(
                f"{self.algorithm} needs kind='slots', activation='relu' and hidden layers of 2 or more, "
                f"found {settings.kind!r}, {settings.activation!r} and {settings.hidden}"
            )
        of_teacher = CrossEntropySettings(
            total_timesteps=settings.teacher_timesteps,
            episodes=settings.teacher_episodes,
            population=settings.teacher_population,
            elite=settings.teacher_elite,
            spread=settings.teacher_spread,
            inertia=0.5,
            first=settings.teacher_first,
        )
        self.teacher = CrossEntropy(self.env, of_teacher, seed=self.seed).train(
            None if folder is None else folder / TEACHER, resume=resume, tell=tell
        )

    def build(self, seed: int) -> None:
        """Create the networks, the actor with the teacher's scores."""
        super().build(seed)
        first, *middle, last = (each for each in self.networks.actor if isinstance(each, nn.Linear))
        weights, bias = (torch.from_numpy(self.teacher.network.tensors[f"{name}.0"]) for name in LINEAR)
        with torch.no_grad():
            first.weight[:2], first.bias[:2] = torch.cat([weights, -weights]), torch.cat([bias, -bias])
            for layer in middle:
                layer.weight[:2] = torch.eye(2, layer.in_features)
            last.weight.zero_()
            last.weight[0, :2] = self.settings.sharpness * torch.tensor([1.0, -1.0])

    def learn(self, batch: Batch) -> dict[str, float]:
        """Let only the critic learn in the first rounds, and both in the others."""
        if self.steps > self.settings.watched * self.settings.total_timesteps:
            return super().learn(batch)
        losses = [
            self._value(part)
            for _ in range(self.settings.n_epochs)
            for part in batch.rows(self.rng.permutation(len(batch.actions))).parts(self.settings.batch_size)
        ]
        self.check_finite(torch.stack(losses))
        return {"value_loss": float(torch.stack(losses).mean())}

    def _value(self, batch: Batch) -> torch.Tensor:
        """Take one gradient step of the critic; return its loss."""
        values = self.networks.values(batch.observations)
        with torch.no_grad():
            loss, gradient = value_loss(values, batch)
        self.step([values], [gradient * self.settings.vf_coef])
        return loss
