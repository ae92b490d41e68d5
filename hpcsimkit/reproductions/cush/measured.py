"""Measurements on job sets by group: agents with several seeds are averaged on each set."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.cush.contest import Contest
from hpcsimkit.reproductions.cush.data import title_of
from hpcsimkit.reproductions.cush.methods import (
    BEST_ALLOCATION,
    CUSH,
    EVOLVED_ON_ALL,
    HEURISTICS,
    IN_SIGHT,
    LEARNED,
    OUTSIDE,
)
from hpcsimkit.reproductions.cush.published_numbers import GAINS
from hpcsimkit.reproductions.cush.runs import NTAT
from hpcsimkit.reproductions.sequences import Standing, standings

__all__ = ["FAMILIES", "Measured", "both_ways", "drawing"]

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]
"""Values by measure."""

FAMILIES = (CUSH, *HEURISTICS, BEST_ALLOCATION, IN_SIGHT, *OUTSIDE, *LEARNED[1:])
"""Groups in the order of tables."""


@dataclass(frozen=True)
class Measured:
    """Measurements on job sets.

    Parameters
    ----------
    problem : CushProblem
        Cluster and observation.
    values : mapping of str to mapping of str to array of float, shape (job sets,)
        Values by group and measure, averaged over the agents on a set.
    agents : mapping of str to mapping of str to array of float, shape (agents,)
        Values by group and measure, averaged over the sets of an agent.
    """

    problem: CushProblem
    values: Mapping[str, Values]
    agents: Mapping[str, Values]

    @classmethod
    def of(cls, scores: Sequence[Scores[Contest]], drawn: Collection[str]) -> Measured:
        """Combine the comparisons of one problem.

        Parameters
        ----------
        scores : sequence of Scores
            Scores of the comparisons: several if agents of different seeds have their own job sets.
        drawn : collection of str
            Groups compared with sampled actions.
        """
        met = {family: _met(family, scores, drawn) for family in FAMILIES}
        values = {family: _over_sets(contests) for family, contests in met.items() if contests}
        agents = {family: _over_agents(contests) for family, contests in met.items() if contests}
        return cls(scores[0].contest.problem, values, agents)

    @property
    def sets(self) -> int:
        """Number of job sets."""
        return len(self.values[BEST_ALLOCATION][NTAT])

    @property
    def learned(self) -> list[str]:
        """Groups of agents."""
        return [family for family in self.values if family in LEARNED]

    def mean(self, family: str, measure: str = NTAT) -> float:
        """Return the mean of a measure of a group, over all sets."""
        return float(self.values[family][measure].mean())

    @cached_property
    def best(self) -> str:
        """Heuristic row of the paper with the lowest mean NTAT."""
        return min(HEURISTICS, key=self.mean)

    @cached_property
    def best_outside(self) -> str:
        """Heuristic outside the paper with the lowest mean NTAT."""
        return min(OUTSIDE, key=self.mean)

    @property
    def title(self) -> str:
        """Name of the system in texts."""
        return title_of(self.problem.system)

    @property
    def published_gain(self) -> float:
        """Reduction of CuSH's NTAT relative to the best heuristic in the paper [%]."""
        return GAINS[self.problem.system]

    def is_ahead(self, family: str) -> bool:
        """Return whether a group has a lower mean NTAT than the best heuristic outside the paper."""
        return self.mean(family) < self.mean(self.best_outside)

    @property
    def ahead(self) -> list[str]:
        """Groups of agents ahead of it that select among as many jobs as CuSH."""
        return [family for family in self.learned if family != EVOLVED_ON_ALL and self.is_ahead(family)]

    @property
    def rivals(self) -> tuple[str, str, str]:
        """Baselines of the targets."""
        return self.best, BEST_ALLOCATION, self.best_outside

    def against(self, family: str) -> dict[str, Standing]:
        """Compare a group with its baselines by NTAT, set by set; p-values are corrected for all of them."""
        rows = {name: self.values[name][NTAT] for name in (*self.rivals, family)}
        return standings(rows, family)

    def gain(self, family: str, rival: str) -> Floats:
        """Return the reduction of each agent's NTAT relative to a baseline [%]."""
        found: Floats = 100 * (1 - self.agents[family][NTAT] / self.mean(rival))
        return found


Met = Sequence[Mapping[str, Values]]
"""Values of the rows of a group, comparison by comparison."""


def _met(family: str, scores: Sequence[Scores[Contest]], drawn: Collection[str]) -> Met:
    """Return the comparisons that include a group."""
    rows = [each.contest.families(drawn).get(family, []) for each in scores]
    return [{row: each.values[row] for row in of} for each, of in zip(scores, rows, strict=True) if of]


def _over_sets(contests: Met) -> dict[str, Floats]:
    """Return measures set by set, in the order of comparisons: means over the rows of each."""
    return {
        measure: np.concatenate(
            [np.mean([row[measure] for row in rows.values()], axis=0) for rows in contests]
        )
        for measure in _measures(contests)
    }


def _over_agents(contests: Met) -> dict[str, Floats]:
    """Return measures agent by agent: means over all sets of each agent."""
    names = list(dict.fromkeys(name for rows in contests for name in rows))
    of_agent = {name: [rows[name] for rows in contests if name in rows] for name in names}
    return {
        measure: np.array(
            [np.concatenate([values[measure] for values in of_agent[name]]).mean() for name in names]
        )
        for measure in _measures(contests)
    }


def _measures(contests: Met) -> list[str]:
    return list(next(iter(contests[0].values())))


def both_ways(validation: Scores[Contest]) -> dict[str, tuple[float, float]]:
    """Return the mean validation NTAT of each group of CuSH agents, with greedy and with sampled actions."""
    drawn = [family for family in validation.contest.families() if family in LEARNED]
    return {
        family: (_mean(validation, ()).get(family, np.nan), _mean(validation, drawn).get(family, np.nan))
        for family in drawn
    }


def _mean(validation: Scores[Contest], drawn: Collection[str]) -> dict[str, float]:
    families = validation.contest.families(drawn)
    return {
        family: float(np.mean([validation.mean(row, NTAT) for row in rows]))
        for family, rows in families.items()
    }


def drawing(ways: Mapping[str, tuple[float, float]]) -> frozenset[str]:
    """Return the groups with a lower NTAT if actions are sampled, from the output of :func:`both_ways`.

    >>> sorted(drawing({"CuSH": (3.0, 3.5), "CuSH (fresh job sets)": (3.2, 3.1)}))
    ['CuSH (fresh job sets)']
    """
    return frozenset(family for family, (best, drawn) in ways.items() if drawn < best)
