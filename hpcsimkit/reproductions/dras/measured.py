"""Measurements of a log by policy, over seeds, with the schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.dras.data import Trace
from hpcsimkit.reproductions.dras.methods import ADDED_AGENTS, DRAS, OUTSIDE, Contest
from hpcsimkit.reproductions.dras.runs import REWARD, kept
from hpcsimkit.reproductions.dras.statistics import AXES, longest_large_wait
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.spread import Spread, spread_of
from hpcsimkit.results.result import Result

__all__ = ["Family", "Measured"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Family:
    """A policy, over the seeds of its agents.

    Parameters
    ----------
    name : str
        Name in the tables.
    rows : mapping of str to mapping of str to float
        Measures by row: one row for each seed.
    validations : mapping of str to float
        Validation reward of each agent; empty for untrained policies.
    results : mapping of str to Result
        Schedules by row.
    """

    name: str
    rows: Mapping[str, Mapping[str, float]]
    validations: Mapping[str, float]
    results: Mapping[str, Result]

    def spread(self, measure: str) -> Spread:
        """Return the spread of a measure over seeds."""
        return spread_of(self.over_seeds(measure))

    def over_seeds(self, measure: str) -> Floats:
        """Return a measure of each seed."""
        return np.array([each[measure] for each in self.rows.values()])

    @cached_property
    def large_waits(self) -> Floats:
        """Maximum wait of the largest jobs with each seed [s]."""
        return np.array([longest_large_wait(result) for result in self.results.values()])

    @property
    def validation(self) -> float:
        """Mean validation reward of its agents."""
        return float(np.mean(list(self.validations.values())))

    @property
    def mean_wait(self) -> float:
        """Mean wait, over seeds [h]."""
        return self.spread("mean_wait_time").mean / HOUR

    @property
    def longest_wait(self) -> float:
        """Maximum wait, mean over seeds [d]."""
        return self.spread("max_wait_time").mean / DAY

    @property
    def reward(self) -> float:
        """Reward on the test part, mean over seeds."""
        return self.spread(REWARD).mean

    def same_starts(self, rule: Family) -> list[float]:
        """Return the share of jobs that a rule starts at the same second, for each seed [%]."""
        starts = rule.shown.start_time
        return [100 * float((result.start_time == starts).mean()) for result in self.results.values()]

    @property
    def shown(self) -> Result:
        """Schedule shown in figures: that of the agent with the highest validation reward."""
        if not self.validations:
            return next(iter(self.results.values()))
        return self.results[max(self.validations, key=lambda row: self.validations[row])]


@dataclass(frozen=True)
class Measured:
    """All measurements on the test part of a log.

    Parameters
    ----------
    trace : Trace
        Log of the measurements.
    families : mapping of str to Family
        Measurements by policy.
    rewards : mapping of str to float
        Rewards of untrained policies on the validation month.
    """

    trace: Trace
    families: Mapping[str, Family]
    rewards: Mapping[str, float]

    @classmethod
    def of(cls, validation: Scores[Contest], test: Scores[Contest], store: Store) -> Measured:
        """Load the measurements from the store of outcomes."""
        rewards = {row: validation.mean(row, REWARD) for row in validation.values}
        return cls(test.contest.trace, _families(test, store), rewards)

    @property
    def learned(self) -> list[Family]:
        """Learners of DRAS."""
        return [family for name, family in self.families.items() if name in DRAS]

    @property
    def added_agents(self) -> list[Family]:
        """Agents that the paper lacks."""
        return [family for name, family in self.families.items() if name in ADDED_AGENTS]

    @property
    def best(self) -> Family:
        """Learner of DRAS with the highest validation reward, averaged over seeds."""
        return max(self.learned, key=lambda family: family.validation)

    @property
    def leaders(self) -> list[Family]:
        """Learners with the same validation reward as the best: different learners may schedule alike."""
        most = self.best.validation
        return [family for family in self.learned if np.isclose(family.validation, most, rtol=1e-9, atol=0.0)]

    @property
    def agents(self) -> list[Family]:
        """Trained agents."""
        return [family for family in self.families.values() if family.validations]

    @property
    def faster_rules(self) -> dict[tuple[str, ...], list[str]]:
        """Names of agents by heuristics outside the paper with shorter mean and maximum waits."""
        found: dict[tuple[str, ...], list[str]] = {}
        rules = [self.families[name] for name in OUTSIDE if name in self.families]
        for agent in [*self.learned, *self.added_agents]:
            faster = tuple(
                rule.name
                for rule in rules
                if rule.mean_wait < agent.mean_wait and rule.longest_wait < agent.longest_wait
            )
            found.setdefault(faster, []).append(agent.name)
        return found

    def means(self, families: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the measures of the Kiviat graph, means over seeds, by policy."""
        return {
            name: {measure: self.families[name].spread(measure).mean for measure in AXES}
            for name in families
            if name in self.families
        }


def _families(scores: Scores[Contest], store: Store) -> dict[str, Family]:
    learners = {each.name: each.learner for each in scores.contest.contestants}
    meetings = scores.contest.meetings
    found = {}
    for family, rows in scores.contest.families.items():
        validations = {
            row: float(store.outcome(Training(learner))["best"])
            for row in rows
            if (learner := learners[row]) is not None
        }
        measures = {
            row: {measure: float(values[0]) for measure, values in scores.values[row].items()} for row in rows
        }
        results = {row: kept(store, meetings[row]) for row in rows}
        found[family] = Family(family, measures, validations, results)
    return found
