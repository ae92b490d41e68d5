"""DRAS-PG: policy gradients with the mean past return as the baseline; and Decima-PG, on one level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from hpcsimkit.agents.dras.torch_network import RowFilterNetwork
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer, Floats, Scoring, Steps
from hpcsimkit.agents.networks.torch_networks import masked_log_probabilities
from hpcsimkit.agents.training.trainer import State

__all__ = ["DrasPG", "DrasPGSettings", "PastReturns", "policy_gradient_loss"]


@dataclass(frozen=True)
class DrasPGSettings(DrasSettings):
    """Settings of DRAS-PG: only the common ones."""


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
        self.past = PastReturns()

    def make(self) -> RowFilterNetwork:
        """Return a network with a score per slot."""
        return RowFilterNetwork(self.env.encoder.shape[0], self.hidden, self.env.mask.actions)

    def choose(self, network: Scoring, seen: Floats, actions: NDArray[np.intp]) -> int:
        """Sample an action."""
        return self.drawn(network, seen, actions)

    def learn(self, steps: Steps) -> dict[str, float]:
        """Take one gradient step."""
        returns = steps.returns(self.settings.gamma)
        baseline = torch.from_numpy(self.past.baseline(len(returns))).to(returns)
        loss = policy_gradient_loss(self.networks.outputs(steps.observations), steps, returns - baseline)
        self.descend(loss)
        self.past.add(returns.tolist())
        return {"loss": loss.item()}

    def state(self) -> State:
        """Return the baseline."""
        return State({}, {"sums": self.past.sums, "counts": self.past.counts})

    def restore(self, state: State) -> None:
        """Restore the baseline."""
        self.past = PastReturns(state.about["sums"], state.about["counts"])
