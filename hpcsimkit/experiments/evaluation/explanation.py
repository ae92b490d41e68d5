"""Explanations of inspectors: observations and rejections in a run on a log."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.seats import Observe, Watched
from hpcsimkit.envs.interfaces import Encoder
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.decision import Answering, Decision
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Inspector, Policy
from hpcsimkit.kernel.system import System

if TYPE_CHECKING:
    import pandas

Floats = NDArray[np.float64]

POINTS = 201
"""Number of points of the distributions in the table, equally spaced from 0 to 1."""

HEADINGS = ("feature", "median", "rejected", "distance", "low", "high")
"""Headings of the table: medians of all and of rejected decisions, and further columns of its rows."""


@dataclass
class Record:
    """Record of decisions from a time on: observations and rejections, one row each."""

    encoder: Encoder
    begin: int | None = None
    seen: list[NDArray[np.float32]] = field(default_factory=list)
    rejected: list[bool] = field(default_factory=list)

    def bind(self, system: System) -> Observe:
        """Return the function that records the decisions of a run."""
        encode = self.encoder.bind(system)

        def observe(decision: Decision, position: int) -> None:
            if len(decision.options) == 1 or (self.begin is not None and system.now < self.begin):
                return
            seen = np.zeros(self.encoder.shape, dtype=np.float32)
            encode(decision, seen)
            self.seen.append(seen)
            self.rejected.append(decision.options[position] is False)

        return observe


@dataclass(frozen=True)
class Explanation:
    """Observations and rejections of an inspector.

    Parameters
    ----------
    names : sequence of str
        Names of the features.
    seen : array of float, shape (decisions, features)
        Values of the features at each decision.
    rejected : array of bool, shape (decisions,)
        Whether the inspector rejected the selected job.
    """

    names: Sequence[str]
    seen: Floats
    rejected: NDArray[np.bool_]

    @property
    def ratio(self) -> float:
        """Share of rejections among all decisions."""
        return float(self.rejected.mean())

    def distributions(self, feature: int, at: Floats) -> tuple[Floats, Floats]:
        """Return the distribution functions of a feature at some values, over all and rejected decisions.

        >>> found = Explanation(["a"], np.array([[0.1], [0.4], [0.9]]), np.array([False, True, True]))
        >>> [shares.round(2).tolist() for shares in found.distributions(0, np.array([0.2, 0.5]))]
        [[0.33, 0.67], [0.0, 0.5]]
        """
        values = self.seen[:, feature]
        return _shares(values, at), _shares(values[self.rejected], at)

    def rows(self) -> list[list[str]]:
        """Return a row for each feature, in the columns of `HEADINGS`.

        The distance is the Kolmogorov-Smirnov distance between the two distributions; *low* and *high* are
        the shares of rejections among the quarter of decisions with the lowest and highest values.
        """
        return [self._row(number) for number in range(len(self.names))]

    def _row(self, number: int) -> list[str]:
        values, rejected = self.seen[:, number], self.rejected
        low, high = np.quantile(values, [0.25, 0.75])
        every, refused = self.distributions(number, np.unique(values))
        median = float(np.median(values[rejected])) if rejected.any() else float("nan")
        shares = (float(rejected[values <= low].mean()), float(rejected[values >= high].mean()))
        distance = float(np.abs(every - refused).max())
        return [
            self.names[number],
            f"{np.median(values):.3f}",
            f"{median:.3f}",
            f"{distance:.2f}",
            *(f"{100 * share:.1f} %" for share in shares),
        ]

    def table(self) -> pandas.DataFrame:
        """Return the distributions: feature, value, and the shares of decisions up to it."""
        import pandas

        at = np.linspace(0, 1, POINTS)
        rows = (
            (name, *row)
            for number, name in enumerate(self.names)
            for row in zip(at, *self.distributions(number, at), strict=True)
        )
        return pandas.DataFrame(rows, columns=["feature", "value", "all", "rejected"])


def explained(
    policy: Policy,
    scenario: Scenario,
    name: str | None = None,
    *,
    observers: Sequence[Observer] = (),
    begin: int | None = None,
) -> Explanation:
    """Run a pipeline with an inspector, and return its decisions, from a time on if given."""
    if not isinstance(policy, Pipeline) or not isinstance(policy.inspector, Inspector | Answering):
        raise UsageError(f"a pipeline with an inspector is needed, found {policy!r}")
    inspector = policy.inspector
    encoder = inspector.encoder if isinstance(inspector, Agent) else None
    if not isinstance(encoder, InspectorFeatures):
        encoder = InspectorFeatures(longest_time=int(scenario.workload.requested_time.max(initial=1)))
    record = Record(encoder, begin)
    watched = copy(policy)
    watched.inspector = Watched(inspector, record)
    scenario.simulation(watched, observers, name).run()
    if not record.seen:
        raise UsageError(f"{scenario.workload.name}: {inspector!r} was never asked")
    seen = np.array(record.seen, dtype=np.float64)
    return Explanation(encoder.names, seen, np.array(record.rejected, dtype=np.bool_))


def _shares(values: Floats, at: Floats) -> Floats:
    """Return the empirical distribution function of values at some points; 0 if there are no values."""
    return np.searchsorted(np.sort(values), at, side="right") / max(len(values), 1)
