"""PPO of a network that first imitates a weighted sum of the features, found without gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import Count, NonNegative, Positive, Share
from hpcsimkit.agents.training.cross_entropy import CrossEntropy, CrossEntropySettings
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.agents.training.on_policy import Batch
from hpcsimkit.agents.training.ppo import MEASURES, PPO, PPOSettings, value_loss

__all__ = ["TaughtPPO", "TaughtPPOSettings"]

TEACHER = "teacher"
"""Folder of the teacher's training, inside that of the run."""


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
    taught : float
        Share of `total_timesteps` in which the network imitates the teacher; PPO has the others.
    teaching_rate : float
        Learning rate of the imitation.
    """

    learning_rate: NonNegative = 1e-3
    gamma: Share = 1.0
    kind: str = "slots"
    teacher_timesteps: Count = 300_000
    teacher_episodes: Count = 12
    teacher_population: Count = 24
    teacher_elite: Count = 6
    teacher_first: tuple[float, ...] = ()
    teacher_spread: Positive = 1.0
    taught: Share = 0.1
    teaching_rate: Positive = 3e-3


class TaughtPPO(PPO):
    """Trainer of a network that scores rows: taught by a weighted sum of their features, then by PPO.

    The teacher is trained first, by the cross-entropy method, on the same episodes and observations. The
    network then learns its choices in the states that the network itself visits (DAgger without the expert's
    share: Ross, Gordon and Bagnell, AISTATS 2011), and the critic the returns. From there PPO improves it.
    Parameters are those of :class:`~hpcsimkit.agents.training.seat_trainer.SeatTrainer`.

    Attributes
    ----------
    teacher : Agent
        The teacher, after its training.
    """

    algorithm = "taught-ppo"
    settings: TaughtPPOSettings
    teacher: Agent

    def prepare(self, folder: Path | None, *, resume: bool, tell: Callable[[Report], None]) -> None:
        """Train the teacher."""
        settings = self.settings
        self.check()
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

    def learn(self, batch: Batch) -> dict[str, float]:
        """Imitate the teacher in the first rounds; improve by PPO in the others."""
        is_taught = self.steps <= self.settings.taught * self.settings.total_timesteps
        rate = self.settings.teaching_rate if is_taught else self.settings.learning_rate
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        return self._imitate(batch) if is_taught else super().learn(batch)

    def _imitate(self, batch: Batch) -> dict[str, float]:
        """Descend the cross-entropy of the teacher's choices, and the error of the values."""
        settings = self.settings
        seen, valid = batch.observations.cpu().numpy(), batch.valid.cpu().numpy()
        scores = self.teacher.network.many(seen, valid)[:, : valid.shape[1]]
        wanted = torch.from_numpy(np.where(valid, scores, -np.inf).argmax(axis=1)).to(self.device)
        choices = batch._replace(actions=wanted)
        measures = []
        for _ in range(settings.n_epochs):
            order = self.rng.permutation(len(wanted))
            measures += [self._copy(part) for part in choices.rows(order).parts(settings.batch_size)]
        self.check_finite(torch.stack(measures))
        means = torch.stack(measures).double().mean(dim=0).tolist()
        return dict(zip(MEASURES, means, strict=True))

    def _copy(self, batch: Batch) -> torch.Tensor:
        """Take one gradient step towards the teacher's choices; return the measures of PPO."""
        scores = self.networks.scores(batch.observations, batch.valid)
        values = self.networks.values(batch.observations)
        with torch.no_grad():
            logarithms = masked_log_probabilities(scores, batch.valid)
            probabilities, taken = logarithms.exp(), batch.actions[:, None]
            loss = -logarithms.gather(1, taken).mean()
            entropy = -(probabilities * logarithms).sum(dim=1).mean()
            of_scores = probabilities.scatter_add(
                1, taken, -torch.ones_like(taken, dtype=probabilities.dtype)
            )
            error, of_values = value_loss(values, batch)
        self.step((scores, values), (of_scores / len(taken), of_values * self.settings.vf_coef))
        return torch.stack((loss, error, entropy, torch.zeros(())))
