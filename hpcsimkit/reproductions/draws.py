"""Repeated runs of stochastic policies on each sequence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.engine.task import Tell
from hpcsimkit.reproductions.sequences import OF_PROMISES, Meeting

__all__ = ["Draws", "mean_over_draws"]

SEEDS_APART = 1000
"""Difference between the random seeds of two runs on a sequence."""


@dataclass(frozen=True)
class Draws(Meeting):
    """Several runs of a policy on each sequence with different random seeds; the outcome has their means.

    Parameters
    ----------
    draws : int
        Number of runs on each sequence. Default: 1.
    """

    draws: int = 1

    @property
    def size(self) -> int:
        """Number of decisions, one for each job and run."""
        return self.draws * super().size

    def inputs(self) -> Any:
        """Return the policy, the sequences and the number of runs."""
        return {**super().inputs(), "draws": self.draws}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        return mean_over_draws([self._once(draw, folder, tell) for draw in range(self.draws)])

    def _once(self, draw: int, folder: Path, tell: Tell) -> Any:
        before, once = draw * self.sequences.jobs, replace(self, seed=self.seed + SEEDS_APART * draw)
        return super(Draws, once).run(folder, lambda done: tell(before + done))


def mean_over_draws(outcomes: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return means of measures over several runs for each sequence; delays are means over violations.

    >>> few = {"promises": [4.0], "broken_promises": [1.0], "mean_delay_of_broken": [10.0]}
    >>> many = {"promises": [6.0], "broken_promises": [3.0], "mean_delay_of_broken": [30.0]}
    >>> mean_over_draws([few, many])
    {'promises': [5.0], 'broken_promises': [2.0], 'mean_delay_of_broken': [25.0]}
    """
    values = {name: np.array([outcome[name] for outcome in outcomes]) for name in outcomes[0]}
    means = {name: each.mean(axis=0) for name, each in values.items()}
    _, broken, delay = OF_PROMISES
    if delay in values:
        late = (values[broken] * values[delay]).mean(axis=0)
        means[delay] = np.divide(late, means[broken], out=np.zeros_like(late), where=means[broken] > 0)
    return {name: each.tolist() for name, each in means.items()}
