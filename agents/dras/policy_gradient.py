"""DRAS-PG: policy gradients with the mean past return as the baseline; and Decima-PG, on one level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.dras.torch_network import RowFilterNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.ranges import NonNegative
from hpcsimkit.agents.training.trainer import State

__all__ = [
    "DrasPG",
    "DrasPGSettings",
    "PastReturns",
    "PastScale",
    "choices_among",
    "entropy_of",
    "policy_gradient_loss",
]


@dataclass(frozen=True)
class DrasPGSettings(DrasSettings):
    """Settings of DRAS-PG.

    Parameters
    ----------
    ent_coef : float
        Coefficient of the policy's entropies [nats] in the loss. (In the paper there is no such term.)
    scaled : bool
        Whether advantages are divided by their standard deviation so far, the loss is a mean, and decisions
        with a single valid action are left out. (The paper says nothing of it.) Default: False.
    """

    ent_coef: NonNegative = 0.0
    scaled: bool = False


class PastReturns:
    """Baseline b_k: the mean return from the k-th decision on, over all past updates.

    Examples
    --------
    >>> past = PastReturns()
    >>> past.baseline(2).tolist()
    [0.0, 0.0]
    >>> past.add([6.0, 2.0]); past.add([4.0])
    >>> past.baseline(3).tolist()
    [5.0, 2.0, 0.0]
    """

    def __init__(self, sums: Sequence[float] = (), counts: Sequence[int] = ()) -> None:
        self.sums = list(sums)
        self.counts = list(counts)

    def baseline(self, steps: int) -> NDArray[np.float64]:
        """Return the baseline of each of a number of decisions; 0 without a past return."""
        means = [total / count for total, count in zip(self.sums, self.counts, strict=True)][:steps]
        return np.array(means + [0.0] * (steps - len(means)))

    def add(self, returns: Sequence[float]) -> None:
        """Add the returns of an update."""
        missing = len(returns) - len(self.sums)
        if missing > 0:
            self.sums += [0.0] * missing
            self.counts += [0] * missing
        for place, value in enumerate(returns):
            self.sums[place] += value
            self.counts[place] += 1


class PastScale:
    """Mean and standard deviation of all past returns.

    Examples
    --------
    >>> past = PastScale()
    >>> past.add([2.0, 6.0])
    >>> past.mean, round(past.deviation, 3)
    (4.0, 2.828)
    """

    def __init__(self, count: int = 0, mean: float = 0.0, squares: float = 0.0) -> None:
        self.count = count
        self.mean = mean
        self.squares = squares

    def add(self, returns: Iterable[float]) -> None:
        """Add returns (Welford's method)."""
        for value in returns:
            self.count += 1
            away = value - self.mean
            self.mean += away / self.count
            self.squares += away * (value - self.mean)

    @property
    def deviation(self) -> float:
        """Standard deviation; 1 for fewer than two returns, or equal ones."""
        variance = self.squares / (self.count - 1) if self.count > 1 else 0.0
        return sqrt(variance) if variance > 0 else 1.0


def choices_among(steps: Steps) -> tuple[Steps, torch.Tensor]:
    """Return the decisions with several valid actions, and which these are: bool, shape (steps,)."""
    choices = steps.valid.sum(dim=1) > 1
    kept = steps._replace(
        observations=steps.observations[choices], valid=steps.valid[choices], actions=steps.actions[choices]
    )
    return kept, choices


def entropy_of(scores: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """Return the entropy of the policy over the valid actions [nats], shape (steps,).

    >>> entropy_of(torch.zeros(1, 3), torch.tensor([[True, True, False]])).exp().round(decimals=4).tolist()
    [2.0]
    """
    logarithms = masked_log_probabilities(scores, valid)
    return -(logarithms.exp() * logarithms).sum(dim=1)


def policy_gradient_loss(scores: torch.Tensor, steps: Steps, advantages: torch.Tensor) -> torch.Tensor:
    """Return minus the sum of log probability times advantage over the decisions (eq. 4).

    Parameters
    ----------
    scores : tensor of shape (steps, actions)
        Scores of the current policy.
    steps : Steps
        Decisions since the last update.
    advantages : tensor of shape (steps,)
        Advantages of the actions over the baseline.

    Examples
    --------
    One of two equally likely actions was taken, with an advantage of 3: the loss is 3 log 2.

    >>> steps = Steps(*[torch.zeros(0)] * 6)._replace(
    ...     valid=torch.tensor([[True, True, False]]), actions=torch.tensor([1]))
    >>> round(float(policy_gradient_loss(torch.zeros(1, 3), steps, torch.tensor([3.0]))), 4)
    2.0794
    """
    logarithms = masked_log_probabilities(scores, steps.valid)
    return -(logarithms.gather(1, steps.actions[:, None])[:, 0] * advantages).sum()


class DrasPG(DrasTrainer):
    """Policy gradient with the mean return of past updates as the baseline (eq. 4).

    In training, actions are sampled from the softmax over the jobs of the window; agents take the best
    action.
    """

    algorithm = "dras-pg"
    settings: DrasPGSettings

    def build(self, seed: int) -> None:
        """Create the network, and an empty baseline."""
        super().build(seed)
        self.past, self.scale = PastReturns(), PastScale()

    def make(self) -> RowFilterNetwork:
        """Return a network with a score per slot."""
        return RowFilterNetwork(self.env.encoder.shape[0], self.hidden, self.env.mask.actions)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Sample an action."""
        return self.drawn(network, seen, actions)

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step; with `scaled` and without a choice among the decisions, none."""
        returns = steps.returns(self.settings.gamma)
        baseline = torch.from_numpy(self.past.baseline(len(returns))).to(returns)
        self.past.add(returns.tolist())
        advantages = returns - baseline
        if self.settings.scaled:
            self.scale.add(advantages.tolist())
            steps, choices = choices_among(steps)
            advantages = advantages[choices] / self.scale.deviation
        return self._improve(steps, advantages) if len(advantages) else {}

    def _improve(self, steps: Steps, advantages: torch.Tensor) -> dict[str, float]:
        """Take one gradient step; return the measures."""
        settings, count = self.settings, len(advantages)
        scores = self.networks.outputs(steps.observations)
        policy = policy_gradient_loss(scores, steps, advantages)
        loss = policy
        if settings.ent_coef:
            loss = policy - settings.ent_coef * entropy_of(scores, steps.valid).sum()
        self.descend(loss / count if settings.scaled else loss)
        return {"loss": policy.item()}

    def state(self) -> State:
        """Return the baseline, and the scale of the advantages."""
        about = {"sums": self.past.sums, "counts": self.past.counts, "scale": dict(vars(self.scale))}
        return State({}, about)

    def restore(self, state: State) -> None:
        """Restore the baseline, and the scale of the advantages."""
        self.past = PastReturns(state.about["sums"], state.about["counts"])
        self.scale = PastScale(**state.about.get("scale", {}))
