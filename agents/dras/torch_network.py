"""The networks of DRAS for training, in torch; see :mod:`hpcsimkit.agents.dras.network` for inference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from hpcsimkit.agents.dras.network import SLOPE, JobValues, RowFilter

__all__ = ["JobValuesNetwork", "RowFilterNetwork"]

FIRST_SCORES = 0.01
"""Scale of the initial output weights, so that all jobs begin with almost equal scores."""

linear, leaky_relu = nn.functional.linear, nn.functional.leaky_relu


class RowFilterNetwork(nn.Module):
    """A filter over rows of two features, and two wide layers: scores of actions, and optionally a value.

    Its parameters have the names and shapes of :class:`~hpcsimkit.agents.dras.network.RowFilter`.

    Parameters
    ----------
    rows : int
        Number of rows in an observation.
    hidden : sequence of int
        Sizes of the two wide layers.
    actions : int
        Number of actions.
    values : bool
        Whether one more output is the state value.

    Examples
    --------
    >>> network = RowFilterNetwork(4460, (4000, 1000), actions=50, values=True)
    >>> sum(weights.numel() for weights in network.parameters())
    21891054
    """

    acting: type[RowFilter] = RowFilter

    def __init__(self, rows: int, hidden: Sequence[int], actions: int, *, values: bool = False) -> None:
        super().__init__()
        self.actions = actions
        first, second = hidden
        self.filter = nn.Linear(2, 1)
        layers = [
            nn.Linear(rows, first, bias=False),
            nn.Linear(first, second, bias=False),
            nn.Linear(second, actions + values),
        ]
        self.weight = nn.ParameterList([layer.weight for layer in layers])
        self.bias = nn.ParameterDict({"2": layers[2].bias})
        with torch.no_grad():
            layers[2].weight[:actions] *= FIRST_SCORES
            layers[2].bias.zero_()

    def filtered(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the filter's output for each row, shape (batch, rows)."""
        return self.filter(observations)[..., 0]

    def behind(self, first: torch.Tensor) -> torch.Tensor:
        """Return the outputs, given the pre-activations of the first wide layer."""
        second = leaky_relu(linear(leaky_relu(first, SLOPE), self.weight[1]), SLOPE)
        return linear(second, self.weight[2], self.bias["2"])

    def outputs(self, observations: torch.Tensor) -> torch.Tensor:
        """Return all outputs, shape (batch, outputs)."""
        return self.behind(linear(self.filtered(observations), self.weight[0]))

    def network(self) -> RowFilter:
        """Return a copy of the current network, in numpy."""
        return self.acting({name: _array(values) for name, values in self.state_dict().items()})

    def shared(self) -> RowFilter:
        """Return a numpy network that shares memory with the weights and follows their updates; CPU only."""
        return self.acting({name: values.detach().numpy() for name, values in self.state_dict().items()})

    def take_over(self, tensors: Mapping[str, NDArray[np.float32]]) -> None:
        """Load the weights of a numpy network."""
        self.load_state_dict({name: torch.from_numpy(values.copy()) for name, values in tensors.items()})


class JobValuesNetwork(RowFilterNetwork):
    """Q-network for one job and all nodes at a time; see :class:`~hpcsimkit.agents.dras.network.JobValues`.

    Parameters
    ----------
    rows : int
        Number of rows of a job and all nodes: 2 + N.
    hidden : sequence of int
        Sizes of the two wide layers.

    Examples
    --------
    >>> network = JobValuesNetwork(4362, (4000, 1000))
    >>> sum(weights.numel() for weights in network.parameters())
    21449004
    """

    acting = JobValues

    def __init__(self, rows: int, hidden: Sequence[int]) -> None:
        super().__init__(rows, hidden, 1)

    def outputs(self, observations: torch.Tensor) -> torch.Tensor:
        """Return the Q-value of the job in each slot, shape (batch, slots)."""
        slots = (observations.shape[1] - self.weight[0].shape[1] + 2) // 2
        everyone = torch.ones((len(observations), slots), dtype=torch.bool, device=observations.device)
        return self.where(observations, everyone)

    def where(self, observations: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
        """Return the Q-values of the valid slots, 0 for the others; bool and float, (batch, slots).

        The time is proportional to the number of valid slots.
        """
        steps, slots = valid.nonzero(as_tuple=True)
        values = torch.zeros(valid.shape, dtype=observations.dtype, device=observations.device)
        return values.index_put((steps, slots), self.of_jobs(observations, steps, slots))

    def of_jobs(self, observations: torch.Tensor, steps: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Return the Q-values of jobs given by observation and slot, shape (jobs,)."""
        first = self.weight[0]
        rows = self.filtered(observations)
        nodes = first.shape[1] - 2
        of_jobs = rows[:, :-nodes].reshape(len(rows), -1, 2)[steps, slots]
        alone = linear(rows[:, -nodes:], first[:, 2:])
        return self.behind(linear(of_jobs, first[:, :2]) + alone[steps])[:, 0]


def _array(values: torch.Tensor) -> NDArray[np.float32]:
    return values.detach().cpu().numpy().copy()
