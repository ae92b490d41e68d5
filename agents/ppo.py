"""Proximal policy optimisation with masked actions (Schulman et al., 2017), in one file."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.on_policy import Batch, OnPolicyTrainer, Settings
from hpcsimkit.agents.returns import NORMALISATIONS
from hpcsimkit.agents.torch_networks import masked_log_probabilities
from hpcsimkit.errors import UsageError

__all__ = ["PPO", "PPOSettings", "policy_loss", "value_loss"]

MEASURES = ("policy_loss", "value_loss", "entropy", "divergence")


@dataclass(frozen=True)
class PPOSettings(Settings):
    """Settings of PPO.

    Parameters
    ----------
    epochs : int
        How often each step is learned from.
    batch : int
        Steps of one update.
    clip : float
        epsilon: how far the probability of an action may move in one round.
    clip_value : float, optional
        How far the value of a state may move in one round, as Stable-Baselines3 does it: what is farther
        from what it was counts as so far, and teaches nothing. In units of scaled rewards.
    normalise : {"round", "batch"}
        Advantages get mean 0 and standard deviation 1 over all steps of a round, or, as in
        Stable-Baselines3, over those of each update.
    target_divergence : float, optional
        After an epoch in which the policy was, on average over its updates, farther than this from the one
        that played (Kullback-Leibler divergence, estimated by r - 1 - log r), no other follows. (Stable-
        Baselines3 stops before the first update that is 1.5 times as far; Spinning Up before the first pass
        over the whole round that is, and only its policy stops.)
    """

    epochs: int = 10
    batch: int = 512
    clip: float = 0.2
    clip_value: float | None = None
    normalise: str = "round"
    target_divergence: float | None = None


class PPO(OnPolicyTrainer):
    """Learns several times from each round, without moving far from the policy that played it."""

    algorithm = "ppo"
    settings: PPOSettings

    def build(self, seed: int) -> None:
        """Make networks and their optimiser."""
        if self.settings.normalise not in NORMALISATIONS:
            raise UsageError(
                f"ppo: normalise needs one of {', '.join(NORMALISATIONS)}, found {self.settings.normalise!r}"
            )
        super().build(seed)

    def learn(self, batch: Batch) -> dict[str, float]:
        """Learn from all steps, in batches of random order, several times."""
        settings = self.settings
        if settings.normalise == "round":
            batch = batch._replace(advantages=_normalised(batch.advantages))
        measures: list[torch.Tensor] = []
        for _ in range(settings.epochs):
            order = self.rng.permutation(len(batch.actions))
            epoch = torch.stack([self._update(part) for part in batch.rows(order).parts(settings.batch)])
            measures.append(epoch)
            if settings.target_divergence is not None and epoch[:, 3].mean() > settings.target_divergence:
                break
        self.check_finite(torch.cat(measures))
        means = torch.cat(measures).double().mean(dim=0).tolist()
        return dict(zip(MEASURES, means, strict=True))

    def _update(self, batch: Batch) -> torch.Tensor:
        """Take a step down the gradient of the loss; returns its parts, and the divergence."""
        settings = self.settings
        if settings.normalise == "batch" and len(batch.actions) > 1:
            batch = batch._replace(advantages=_normalised(batch.advantages))
        scores = self.networks.scores(batch.observations, batch.valid)
        values = self.networks.values(batch.observations)
        with torch.no_grad():
            measures, of_scores = policy_loss(scores, batch, settings.clip, settings.entropy_weight)
            loss, of_values = value_loss(values, batch, settings.clip_value)
        self.step((scores, values), (of_scores, of_values * settings.value_weight))
        policy, entropy, divergence = measures
        return torch.stack((policy, loss, entropy, divergence))


def policy_loss(
    scores: torch.Tensor, batch: Batch, clip: float, entropy_weight: float = 0.0
) -> tuple[tuple[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return how well the policy does now, and where to move scores that it does better.

    The gradient is written out, since torch takes as long to find it as for all else together.

    Parameters
    ----------
    scores : tensor of shape (steps, actions)
        Of the policy as it is now.
    batch : Batch
        The steps, with the log probabilities that their actions had.
    clip : float
        epsilon of eq. 7 of the paper.
    entropy_weight : float
        How much of the entropy is taken off the loss.

    Returns
    -------
    tuple of three tensors
        Minus the clipped surrogate objective (eq. 7), the entropy, and the divergence from the policy that
        played; means over the steps.
    tensor of shape (steps, actions)
        Gradient of the loss in the scores.

    Examples
    --------
    Two actions with equal scores; the one taken was half as likely, and it was good: its probability has
    moved too far already to gain any more.

    >>> steps = Batch(*map(torch.tensor, (
    ...     [[0.0]], [[True, True]], [0], [-1.3863], [0.0], [1.0], [0.0])))
    >>> (loss, entropy, divergence), gradient = policy_loss(torch.zeros(1, 2), steps, clip=0.2)
    >>> round(float(loss), 4), round(float(entropy), 4), round(float(divergence), 4), gradient.tolist()
    (-1.2, 0.6931, 0.3069, [[0.0, 0.0]])
    """
    logarithms = masked_log_probabilities(scores, batch.valid)
    probabilities, taken = logarithms.exp(), batch.actions[:, None]
    moved = logarithms.gather(1, taken)[:, 0] - batch.log_probabilities
    ratios = moved.exp()
    gains = ratios * batch.advantages
    clipped = ratios.clamp(1 - clip, 1 + clip) * batch.advantages
    entropies = -(probabilities * logarithms).sum(dim=1)
    measures = (-torch.minimum(gains, clipped).mean(), entropies.mean(), (ratios - 1 - moved).mean())

    pull = torch.where(gains <= clipped, gains, 0.0)  # d ratio = ratio x d logarithm; none where clipped
    gradient = (probabilities * pull[:, None]).scatter_add_(1, taken, -pull[:, None])
    if entropy_weight:
        gradient += entropy_weight * probabilities * (logarithms + entropies[:, None])
    return measures, gradient / len(scores)


def value_loss(
    values: torch.Tensor, batch: Batch, clip: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean squared error of values, and its gradient in them.

    Parameters
    ----------
    values : tensor of shape (steps,)
        Of the critic as it is now.
    batch : Batch
        The steps, with the values that the critic had given them, and the returns.
    clip : float, optional
        See ``clip_value`` of :class:`PPOSettings`.

    Examples
    --------
    >>> steps = Batch(*[torch.zeros(2)] * 4, values=torch.tensor([1.0, 1.0]), advantages=torch.zeros(2),
    ...     returns=torch.tensor([4.0, 4.0]))
    >>> [part.tolist() for part in value_loss(torch.tensor([1.5, 3.0]), steps)]
    [3.625, [-2.5, -1.0]]
    >>> [part.tolist() for part in value_loss(torch.tensor([1.5, 3.0]), steps, clip=1.0)]
    [5.125, [-2.5, 0.0]]
    """
    believed = values
    if clip is not None:
        believed = batch.values + (values - batch.values).clamp(-clip, clip)
    errors = believed - batch.returns
    gradient = 2 / len(values) * errors
    if clip is not None:
        gradient = torch.where((values - batch.values).abs() <= clip, gradient, 0.0)
    return errors.square().mean(), gradient


def _normalised(advantages: torch.Tensor) -> torch.Tensor:
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)
