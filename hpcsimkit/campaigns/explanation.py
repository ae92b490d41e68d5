"""What an inspector does: what it was asked on a log, what it saw, and what it rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.decision import Answering, Decision
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Encoder
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policy import Inspector, Policy
from hpcsimkit.scenario import Scenario
from hpcsimkit.system import System

__all__ = ["Explanation", "explained"]

Floats = NDArray[np.float64]

POINTS = 201
"""Of the distributions in the table, at equal distances from 0 to 1."""

HEADINGS = ("feature", "median", "rejected", "distance", "low", "high")
"""Of the table: medians of all and of rejected decisions, and the rest of :class:`Explanation`'s rows."""


@dataclass
class Record:
    """What was asked, a row a decision, and what was answered."""

    seen: list[NDArray[np.float32]] = field(default_factory=list)
    rejected: list[bool] = field(default_factory=list)


class Watched(Answering):
    """Lets an inspector answer, and writes down what it was asked.

    Parameters
    ----------
    inspector : Inspector or Answering
        Who answers.
    encoder : Encoder
        What is written down.
    record : Record
        Where; copies of this seat share it.
    """

    def __init__(self, inspector: Any, encoder: Encoder, record: Record) -> None:
        super().__init__()
        self.inspector = inspector
        self.encoder = encoder
        self.record = record

    def __deepcopy__(self, memory: dict[int, Any]) -> Watched:
        return Watched(self.inspector, self.encoder, self.record)

    def reset(self, system: System) -> None:
        """Prepare for a run."""
        self.inspector.reset(system)
        self._encode = self.encoder.bind(system)

    def answer(self, decision: Decision) -> int:
        """Return what the inspector answers; what it had no choice about is not written down."""
        options = decision.options
        seen = np.zeros(self.encoder.shape, dtype=np.float32)
        self._encode(decision, seen)
        if isinstance(self.inspector, Answering):
            position = self.inspector.answer(decision)
        else:
            assert decision.job is not None
            position = options.index(self.inspector.accept(decision.job, decision.system))
        if len(options) > 1:
            self.record.seen.append(seen)
            self.record.rejected.append(options[position] is False)
        return position


@dataclass(frozen=True)
class Explanation:
    """What an inspector saw, and what it rejected.

    Parameters
    ----------
    names : sequence of str
        Of the features.
    seen : array of float, shape (decisions, features)
        Their values at each decision.
    rejected : array of bool, shape (decisions,)
        What was answered.
    """

    names: Sequence[str]
    seen: Floats
    rejected: NDArray[np.bool_]

    @property
    def ratio(self) -> float:
        """Rejections, as a share of all decisions."""
        return float(self.rejected.mean())

    def distributions(self, feature: int, at: Floats) -> tuple[Floats, Floats]:
        """Return the shares of all decisions, and of the rejected ones, with a feature up to some values.

        >>> found = Explanation(["a"], np.array([[0.1], [0.4], [0.9]]), np.array([False, True, True]))
        >>> [shares.round(2).tolist() for shares in found.distributions(0, np.array([0.2, 0.5]))]
        [[0.33, 0.67], [0.0, 0.5]]
        """
        values = self.seen[:, feature]
        return _shares(values, at), _shares(values[self.rejected], at)

    def rows(self) -> list[list[str]]:
        """Return a row for each feature, below the headings `HEADINGS`.

        The distance is the largest one between the two distributions (Kolmogorov and Smirnov's), *low* and
        *high* the share of rejections among the quarter of decisions with the lowest and highest values.
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
            self.names[number], f"{np.median(values):.3f}", f"{median:.3f}", f"{distance:.2f}",
            *(f"{100 * share:.1f} %" for share in shares),
        ]  # fmt: skip

    def table(self) -> bytes:
        """Return the distributions as CSV: feature, value, and the shares of decisions up to it."""
        at = np.linspace(0, 1, POINTS)
        lines = ["feature,value,all,rejected"]
        for number, name in enumerate(self.names):
            columns = (at, *self.distributions(number, at))
            lines += [
                ",".join([name, *(f"{each:.6g}" for each in row)]) for row in zip(*columns, strict=True)
            ]
        return ("\n".join(lines) + "\n").encode()


def explained(policy: Policy, scenario: Scenario) -> Explanation:
    """Let a pipeline with an inspector schedule, and write down what that one is asked.

    Parameters
    ----------
    policy : Policy
        A pipeline whose inspector is an agent or a heuristic.
    scenario : Scenario
        What is scheduled.

    Raises
    ------
    UsageError
        There is no inspector, or it is never asked.
    """
    if not isinstance(policy, Pipeline) or not isinstance(policy.inspector, Inspector | Answering):
        raise UsageError(f"a pipeline with an inspector is needed, found {policy!r}")
    inspector = policy.inspector
    encoder = inspector.encoder if isinstance(inspector, Agent) else None
    if not isinstance(encoder, InspectorFeatures):
        encoder = InspectorFeatures(longest_time=int(scenario.workload.requested_time.max(initial=1)))
    record = Record()
    policy.inspector = Watched(inspector, encoder, record)
    scenario.simulation(policy).run()
    policy.inspector = inspector
    if not record.seen:
        raise UsageError(f"{scenario.workload.name}: {inspector!r} was never asked")
    seen = np.array(record.seen, dtype=np.float64)
    return Explanation(encoder.names, seen, np.array(record.rejected, dtype=np.bool_))


def _shares(values: Floats, at: Floats) -> Floats:
    """Return the share of values up to each of some; 0 where there are no values."""
    return np.searchsorted(np.sort(values), at, side="right") / max(len(values), 1)
