"""Measurements of a log by policy, over seeds, with the schedules; and the names of the policies."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.store import Store
from hpcsimkit.reports.figures import DAY, HOUR
from hpcsimkit.reproductions.cells import Spread, spread_of
from hpcsimkit.reproductions.dras.runs import REWARD, kept, reserves
from hpcsimkit.reproductions.learners import Training
from hpcsimkit.reproductions.rivals import RULES
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import Contestant
from hpcsimkit.results.result import Result

__all__ = [
    "ADDED_AGENTS",
    "ADDED_RULES",
    "CHANCE",
    "DRAS",
    "DRAWN",
    "FAMILIES",
    "FCFS",
    "LARGE",
    "OPTIMIZATION",
    "Family",
    "Measured",
    "behaving",
    "family_of",
    "longest_large_wait",
    "outside",
]

Floats = NDArray[np.float64]

FCFS, OPTIMIZATION, SJF_EASY, CHANCE = "FCFS/EASY", "Optimization", "SJF/EASY", "Random, two levels"
ADDED_RULES = (SJF_EASY, CHANCE, "Shortest, two levels", "Largest, two levels")
ADDED_AGENTS = ("DRAS-DQL, paid for short waits", "Evolved, two levels")
DRAS = ("DRAS-DQL", "DRAS-PG", "DRAS-A2C", "DRAS-PPO")
DRAWN = tuple(f"{family}, drawn" for family in DRAS[1:])
"""Learners with sampled actions, as in training and in the paper; the scores of DRAS-DQL are values."""

FAMILIES = (FCFS, OPTIMIZATION, "BinPacking", "Random", "Decima-PG", *DRAS)
"""Rows of the paper."""

LARGE = 0.2
"""Share of the nodes from which a job counts as one of the largest."""


def outside(rows: Collection[str] = RULES) -> list[str]:
    """Return the rows of further heuristics of the kit."""
    return [name for name in rows if name in RULES and name not in (FCFS, SJF_EASY)]


def slots(rows: Collection[str]) -> list[str]:
    """Return the rows of constant slots, except slot 0, which is FCFS/EASY."""
    return [name for name in rows if name.startswith("Slot ")]


def behaving(rows: Collection[str]) -> list[str]:
    """Return the rows of the comparison of agents with constant slots, in the order of its table."""
    return [name for name in (FCFS, CHANCE, *slots(rows), *DRAS, *DRAWN) if name in rows]


def family_of(who: Contestant) -> str:
    """Return the name of a policy in the tables: agents with several seeds, which are numbered, share it."""
    return who.name if who.learner is None else who.name.rpartition(" ")[0]


def longest_large_wait(result: Result) -> float:
    """Return the maximum wait of jobs that request a fifth of the nodes or more [s].

    NaN if there are none.
    """
    waits = result.wait_time[result.amount >= LARGE * result.size]
    return float(waits.max()) if len(waits) else float("nan")


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
    reserves : bool
        Whether jobs that do not fit get reservations.
    """

    name: str
    rows: Mapping[str, Mapping[str, float]]
    validations: Mapping[str, float]
    results: Mapping[str, Result]
    reserves: bool

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
    def best_row(self) -> str:
        """Row of the agent with the highest validation reward, or else the first one."""
        return max(self.validations or self.rows, key=lambda row: self.validations.get(row, 0.0))

    @property
    def shown(self) -> Result:
        """Schedule shown in figures."""
        return self.results[self.best_row]


@dataclass(frozen=True)
class Measured:
    """All measurements on the test part of a log.

    Parameters
    ----------
    trace : MonthlyLog
        Log of the measurements.
    families : mapping of str to Family
        Measurements by policy.
    rewards : mapping of str to float
        Rewards of untrained policies on the validation month.
    """

    trace: Any  # a log split by months, of the module that imports this one
    families: Mapping[str, Family]
    rewards: Mapping[str, float]

    @classmethod
    def of(cls, validation: Scores, test: Scores, store: Store) -> Measured:
        """Load the measurements from the store of outcomes."""
        rewards = {row: validation.mean(row, REWARD) for row in validation.values}
        rows: dict[str, list[Contestant]] = {}
        for each in test.contest.contestants:
            rows.setdefault(family_of(each), []).append(each)
        families = {name: _family(name, of_family, test, store) for name, of_family in rows.items()}
        return cls(test.contest.trace, families, rewards)

    def among(self, names: Sequence[str]) -> list[Family]:
        """Return the policies of some names that were measured, in this order."""
        return [self.families[name] for name in names if name in self.families]

    def means(self, names: Sequence[str], measures: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return the means of some measures over seeds, by policy."""
        return {
            family.name: {measure: family.spread(measure).mean for measure in measures}
            for family in self.among(names)
        }

    @property
    def learned(self) -> list[Family]:
        """Learners of DRAS."""
        return self.among(DRAS)

    @property
    def added_agents(self) -> list[Family]:
        """Agents that the paper lacks."""
        return self.among(ADDED_AGENTS)

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
        for agent in [*self.learned, *self.added_agents]:
            faster = tuple(
                rule.name
                for rule in self.among(outside())
                if rule.mean_wait < agent.mean_wait and rule.longest_wait < agent.longest_wait
            )
            found.setdefault(faster, []).append(agent.name)
        return found

    @property
    def best_constant(self) -> str:
        """Row of the constant slot with the highest reward on the validation month."""
        return max([FCFS, *slots(self.rewards)], key=lambda row: self.rewards[row])

    def has_learned(self, family: Family) -> bool:
        """Return whether every seed's test reward exceeds those of random and best constant slots."""
        bound = max(self.families[row].reward for row in (CHANCE, self.best_constant))
        return bool((family.over_seeds(REWARD) > bound).all())

    @property
    def better_than_constant(self) -> list[str]:
        """Names of the learners of DRAS, with best and with sampled actions, that have learned."""
        return [
            name
            for name, family in self.families.items()
            if name in (*DRAS, *DRAWN) and self.has_learned(family)
        ]


def _family(name: str, rows: Sequence[Contestant], scores: Scores, store: Store) -> Family:
    meetings = scores.contest.meetings
    return Family(
        name,
        {
            row.name: {measure: float(values[0]) for measure, values in scores.values[row.name].items()}
            for row in rows
        },
        {
            row.name: float(store.outcome(Training(row.learner))["best"])
            for row in rows
            if row.learner is not None
        },
        {row.name: kept(store, meetings[row.name]) for row in rows},
        reserves(rows[0].policy),
    )
