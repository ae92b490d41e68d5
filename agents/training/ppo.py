"""Proximal policy optimisation with masked actions (Schulman et al., 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import Count, NonNegative, Positive
from hpcsimkit.agents.training.on_policy import Batch, OnPolicyTrainer, Settings, normalised
from hpcsimkit.agents.training.returns import NORMALISATIONS
from hpcsimkit.errors import UsageError

__all__ = ["PPO", "PPOSettings", "policy_loss", "value_loss"]

MEASURES = ("policy_loss", "value_loss", "entropy", "approx_kl")


@dataclass(frozen=True)
class PPOSettings(Settings):
    """Settings of PPO.

    Parameters
    ----------
    n_epochs : int
        Number of passes over the steps of a round.
    batch_size : int
        Number of steps in an update (minibatch size).
    clip_range : float
        Clipping range epsilon of the probability ratio.
    clip_range_vf : float, optional
        Clipping range of the value function within a round, as in Stable-Baselines3: a value is clipped to
        this distance from its old value, and a clipped value has no gradient. In units of scaled rewards.
    normalise : {"round", "batch"}
        Scope of the normalisation of advantages to mean 0 and standard deviation 1: all steps of a round,
        or, as in Stable-Baselines3, those of each update.
    target_kl : float, optional
        Threshold of the Kullback-Leibler divergence (estimated by r - 1 - log r) from the policy that
        sampled the round: the first epoch with a larger mean over its updates is the last one. (Stable-
        Baselines3 stops before the first update beyond 1.5 times its threshold; Spinning Up before the first
        pass over the whole round beyond it, and only for the policy.)
    separate_updates : bool
        Whether each update is over all steps, and the `n_epochs` updates of the value function come after
        those of the policy, even if these were stopped, as in Spinning Up. It needs a `value_learning_rate`;
        `batch_size` and `vf_coef` have no effect.
    """

    n_epochs: Count = 10
    batch_size: Count = 512
    clip_range: NonNegative = 0.2
    clip_range_vf: Positive | None = None
    normalise: str = "round"
    target_kl: NonNegative | None = None
    separate_updates: bool = False


class PPO(OnPolicyTrainer):
    """PPO: several epochs of clipped updates from each round."""

    algorithm = "ppo"
    settings: PPOSettings

    def build(self, seed: int) -> None:
        """Make networks and their optimiser."""
        normalise, separate = self.settings.normalise, self.settings.separate_updates
        if separate and (self.settings.value_learning_rate is None or normalise != "round"):
            raise UsageError(f"{self.algorithm} needs a value_learning_rate, and normalise='round'")
        if normalise not in NORMALISATIONS:
            known = ", ".join(NORMALISATIONS)
            raise UsageError(f"{self.algorithm}: normalise needs one of {known}, found {normalise!r}")
        super().build(seed)
        vectors = [group["params"][0] for group in self.optimiser.param_groups]
        self._vectors = [(vector, vector.grad) for vector in vectors]

    def learn(self, batch: Batch) -> dict[str, float]:
        """Run several epochs of updates."""
        return (
            self._learn_separately(batch) if self.settings.separate_updates else self._learn_together(batch)
        )

    def _learn_together(self, batch: Batch) -> dict[str, float]:
        """Update policy and value function from minibatches of the shuffled steps."""
        settings = self.settings
        if settings.normalise == "round":
            batch = batch._replace(advantages=normalised(batch.advantages))
        measures: list[torch.Tensor] = []
        for _ in range(settings.n_epochs):
            order = self.rng.permutation(len(batch.actions))
            epoch = torch.stack([self._update(part) for part in batch.rows(order).parts(settings.batch_size)])
            measures.append(epoch)
            if settings.target_kl is not None and epoch[:, 3].mean() > settings.target_kl:
                break
        self.check_finite(torch.cat(measures))
        means = torch.cat(measures).double().mean(dim=0).tolist()
        return dict(zip(MEASURES, means, strict=True))

    def _update(self, batch: Batch) -> torch.Tensor:
        """Take one gradient step; return the terms of the loss, and the divergence."""
        settings = self.settings
        if settings.normalise == "batch" and len(batch.actions) > 1:
            batch = batch._replace(advantages=normalised(batch.advantages))
        scores = self.networks.scores(batch.observations, batch.valid)
        values = self.networks.values(batch.observations)
        with torch.no_grad():
            measures, of_scores = policy_loss(scores, batch, settings.clip_range, settings.ent_coef)
            loss, of_values = value_loss(values, batch, settings.clip_range_vf)
        self.step((scores, values), (of_scores, of_values * settings.vf_coef))
        policy, entropy, approx_kl = measures
        return torch.stack((policy, loss, entropy, approx_kl))

    def _learn_separately(self, batch: Batch) -> dict[str, float]:
        """Update the policy until it exceeds the divergence threshold, and the critic in all epochs."""
        settings = self.settings
        centred = batch.advantages - batch.advantages.mean()
        batch = batch._replace(advantages=centred / (centred.std() + 1e-8))
        of_policy: list[torch.Tensor] = []
        for _ in range(settings.n_epochs):
            scores = self.networks.scores(batch.observations, batch.valid)
            with torch.no_grad():
                measures, gradient = policy_loss(scores, batch, settings.clip_range, settings.ent_coef)
            of_policy.append(torch.stack(measures))
            self._descend(0, scores, gradient)
            if settings.target_kl is not None and measures[2] > settings.target_kl:
                break
        of_value: list[torch.Tensor] = []
        for _ in range(settings.n_epochs):
            values = self.networks.values(batch.observations)
            with torch.no_grad():
                loss, gradient = value_loss(values, batch, settings.clip_range_vf)
            of_value.append(loss)
            self._descend(1, values, gradient)
        return self._told(torch.stack(of_policy), torch.stack(of_value))

    def _told(self, of_policy: torch.Tensor, of_value: torch.Tensor) -> dict[str, float]:
        """Return the measures of a round to report."""
        self.check_finite(torch.cat([of_policy.flatten(), of_value]))
        first, last = of_policy[0].tolist(), of_policy[-1].tolist()
        return {
            "policy_loss": last[0],
            "value_loss": float(of_value[-1]),
            "entropy": first[1],
            "approx_kl": last[2],
            "passes": float(len(of_policy)),
        }

    def _descend(self, part: int, outputs: torch.Tensor, gradient: torch.Tensor) -> None:
        """Update the policy (0) or the critic (1); Adam skips parameters without a gradient."""
        for number, (vector, moves) in enumerate(self._vectors):
            vector.grad = moves if number == part else None
        moves = self._vectors[part][1]
        moves.zero_()
        torch.autograd.backward([outputs], [gradient])
        length = torch.linalg.vector_norm(moves)
        moves.mul_((self.settings.max_grad_norm / (length + 1e-6)).clamp(max=1.0))
        self.optimiser.step()


def policy_loss(
    scores: torch.Tensor, batch: Batch, clip_range: float, ent_coef: float = 0.0
) -> tuple[tuple[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return the loss terms of the policy, and the gradient with respect to the scores.

    The gradient is explicit, since autograd takes as long as all the other work together.

    Parameters
    ----------
    scores : tensor of shape (steps, actions)
        Scores of the current policy.
    batch : Batch
        Steps, with the log probabilities of their actions at sampling time.
    clip_range : float
        Clipping range epsilon of eq. 7 of the paper.
    ent_coef : float
        Coefficient of the entropy bonus.

    Returns
    -------
    tuple of three tensors
        Minus the clipped surrogate objective (eq. 7), the entropy, and the divergence from the policy that
        sampled the steps; means over the steps.
        tensor of shape (steps, actions)
        Gradient of the loss with respect to the scores.

    Examples
    --------
    Two actions with equal scores; the one taken was half as likely and has a positive advantage. Its
    probability ratio is beyond the clipping range already, so the gradient is zero.

    >>> steps = Batch(*map(torch.tensor, (
    ...     [[0.0]], [[True, True]], [0], [-1.3863], [0.0], [1.0], [0.0])))
    >>> (loss, entropy, approx_kl), gradient = policy_loss(torch.zeros(1, 2), steps, clip_range=0.2)
    >>> round(float(loss), 4), round(float(entropy), 4), round(float(approx_kl), 4), gradient.tolist()
    (-1.2, 0.6931, 0.3069, [[0.0, 0.0]])
    """
    logarithms = masked_log_probabilities(scores, batch.valid)
    probabilities, taken = logarithms.exp(), batch.actions[:, None]
    moved = logarithms.gather(1, taken)[:, 0] - batch.log_probabilities
    ratios = moved.exp()
    gains = ratios * batch.advantages
    clipped = ratios.clamp(1 - clip_range, 1 + clip_range) * batch.advantages
    entropies = -(probabilities * logarithms).sum(dim=1)
    measures = (-torch.minimum(gains, clipped).mean(), entropies.mean(), (ratios - 1 - moved).mean())

    pull = torch.where(gains <= clipped, gains, 0.0)  # d ratio = ratio x d logarithm; none where clipped
    gradient = (probabilities * pull[:, None]).scatter_add_(1, taken, -pull[:, None])
    if ent_coef:
        gradient += ent_coef * probabilities * (logarithms + entropies[:, None])
    return measures, gradient / len(scores)


def value_loss(
    values: torch.Tensor, batch: Batch, clip_range: float | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the mean squared error of the values, and its gradient with respect to them.

    Parameters
    ----------
    values : tensor of shape (steps,)
        Values of the current critic.
    batch : Batch
        Steps, with the old values of the critic, and the returns.
    clip_range : float, optional
        Clipping range; see ``clip_range_vf`` of :class:`PPOSettings`.

    Examples
    --------
    >>> steps = Batch(*[torch.zeros(2)] * 4, values=torch.tensor([1.0, 1.0]), advantages=torch.zeros(2),
    ...     returns=torch.tensor([4.0, 4.0]))
    >>> [part.tolist() for part in value_loss(torch.tensor([1.5, 3.0]), steps)]
    [3.625, [-2.5, -1.0]]
    >>> [part.tolist() for part in value_loss(torch.tensor([1.5, 3.0]), steps, clip_range=1.0)]
    [5.125, [-2.5, 0.0]]
    """
    believed = values
    if clip_range is not None:
        believed = batch.values + (values - batch.values).clamp(-clip_range, clip_range)
    errors = believed - batch.returns
    gradient = 2 / len(values) * errors
    if clip_range is not None:
        gradient = torch.where((values - batch.values).abs() <= clip_range, gradient, 0.0)
    return errors.square().mean(), gradient
