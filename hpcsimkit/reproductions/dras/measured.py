"""What was measured on a log, by method: over seeds, and the schedules themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.dras.data import Trace
from hpcsimkit.reproductions.dras.methods import ADDED_AGENTS, DRAS, Contest
from hpcsimkit.reproductions.dras.runs import REWARD, kept
from hpcsimkit.reproductions.dras.statistics import AXES, Spread, longest_large_wait, spread_of
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.tasks import Shelf
from hpcsimkit.result import Result

__all__ = ["Family", "Measured"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A method, over the seeds of its agents.

    Parameters
    ----------
    name : str
        What tables call it.
    rows : mapping of str to mapping of str to float
        Measures by row: one for each seed.
    validations : mapping of str to float
        What each agent earned on the month to choose by; of who has learned.
    results : mapping of str to Result
        The schedules.
    """

    name: str
    rows: Mapping[str, Mapping[str, float]]
    validations: Mapping[str, float]
    results: Mapping[str, Result]

    def spread(self, measure: str) -> Spread:
        """Return a measure over seeds, in short."""
        return spread_of(self.over_seeds(measure))

    def over_seeds(self, measure: str) -> Floats:
        """Return a measure of each seed."""
        return np.array([each[measure] for each in self.rows.values()])

    @cached_property
    def large_waits(self) -> Floats:
        """How long the largest jobs wait at most with each seed [s]."""
        return np.array([longest_large_wait(result) for result in self.results.values()])

    @property
    def validation(self) -> float:
        """What its agents earned on the month to choose by, in the mean."""
        return float(np.mean(list(self.validations.values())))

    @property
    def shown(self) -> Result:
        """The schedule that pictures show: of the agent that earned most on the month to choose by."""
        if not self.validations:
            return next(iter(self.results.values()))
        return self.results[max(self.validations, key=lambda row: self.validations[row])]


@dataclass(frozen=True)
class Measured:
    """A log with all that was measured on what is tested on.

    Parameters
    ----------
    trace : Trace
        The log.
    families : mapping of str to Family
        By method.
    rewards : mapping of str to float
        What those earn on the month to choose by who have not learned.
    """

    trace: Trace
    families: Mapping[str, Family]
    rewards: Mapping[str, float]

    @classmethod
    def of(cls, validation: Scores[Contest], test: Scores[Contest], shelf: Shelf) -> Measured:
        """Take it from the shelf."""
        rewards = {row: validation.mean(row, REWARD) for row in validation.values}
        return cls(test.contest.trace, _families(test, shelf), rewards)

    @property
    def learned(self) -> list[Family]:
        """The learners of DRAS."""
        return [family for name, family in self.families.items() if name in DRAS]

    @property
    def added_agents(self) -> list[Family]:
        """Agents that the paper does not have."""
        return [family for name, family in self.families.items() if name in ADDED_AGENTS]

    @property
    def best(self) -> Family:
        """Which of them earned most on the month to choose by, in the mean over seeds."""
        return max(self.learned, key=lambda family: family.validation)

    @property
    def leaders(self) -> list[Family]:
        """Those who earned as much as the best there: learners may come to schedule alike."""
        most = self.best.validation
        return [family for family in self.learned if np.isclose(family.validation, most, rtol=1e-9, atol=0.0)]

    def means(self, families: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the measures of the Kiviat graph, means over seeds, by method."""
        return {
            name: {measure: self.families[name].spread(measure).mean for measure in AXES}
            for name in families
            if name in self.families
        }


def _families(scores: Scores[Contest], shelf: Shelf) -> dict[str, Family]:
    learners = {each.name: each.learner for each in scores.contest.contestants}
    meetings = scores.contest.meetings
    found = {}
    for family, rows in scores.contest.families.items():
        validations = {
            row: float(shelf.outcome(Training(learner))["best"])
            for row in rows
            if (learner := learners[row]) is not None
        }
        measures = {
            row: {measure: float(values[0]) for measure, values in scores.values[row].items()} for row in rows
        }
        results = {row: kept(shelf, meetings[row]) for row in rows}
        found[family] = Family(family, measures, validations, results)
    return found
