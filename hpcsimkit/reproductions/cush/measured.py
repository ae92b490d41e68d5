"""Measurements of CuSH by group of policies and by class of jobs, and the tables and targets made of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH
from hpcsimkit.reproductions.cells import Table, number, spread_cell, spread_of
from hpcsimkit.reproductions.plans.plan import PublishedTable
from hpcsimkit.reproductions.scores import Scores, Standing, standings
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.resource_metrics import locality_penalty, normalised_turnaround
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import SIGNIFICANT
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = [
    "LENGTHS",
    "MEASURED",
    "SIZES",
    "SUMS",
    "Measured",
    "both_ways",
    "class_sums",
    "drawing",
    "file_targets",
    "gain_targets",
    "mean_of_class",
    "placement_targets",
    "share_suited",
    "time_target",
]

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]
"""Values by measure."""

NTAT, WAIT, REWARD = "mean_ntat", "mean_wait_time", "reward"
MEASURED = (NTAT, WAIT, "mean_response_time")
"""Measures of each run, of :data:`~hpcsimkit.results.metrics.METRICS`; `REWARD` is the mean return."""

CUSH, BEST_ALLOCATION = "CuSH", "SJF (best allocation)"
EVOLVED_IN_SIGHT = "Evolved (best allocation, in sight)"
EVOLVED_ON_ALL = "Evolved (best allocation, whole queue)"
SELECTORS, ALLOCATIONS = ("FCFS", "SJF", "DRF", "Rand"), ("DF", "BF")
"""Parts of the names of the paper's heuristics."""

NEAR, SUITED, HOURS = 0.10, 99.0, 2.0
"""Targets: maximum relative deviation from the paper, minimum share of suitable placements [%], and maximum
time of a training on a machine of 2 cores [h]."""

# --- classes of jobs ------------------------------------------------------------------------------------

LENGTHS: Mapping[str, float] = {"short": 5, "medium short": 10, "medium long": 15, "long": np.inf}
"""Maximum requested time of each class [steps]."""

SIZES: Mapping[str, float] = {"small": 0.25, "medium small": 0.5, "medium large": 0.75, "large": np.inf}
"""Maximum share of all CPUs, or of all GPUs, of each class."""

SUMS = tuple(
    f"{quantity}, {name}"
    for names, quantities in (
        (LENGTHS, ("jobs", "wait", "ntat")),
        (SIZES, ("jobs", "penalty")),
        (CUSH_KINDS, ("jobs", "suited")),
    )
    for name in names
    for quantity in quantities
)
"""Keys of the sums over the jobs of each class."""


def class_sums(result: Result, styles: Sequence[str]) -> dict[str, float]:
    """Return sums over the jobs of each class, and their numbers, by `SUMS`.

    Parameters
    ----------
    result : Result
        Result of a run on machines, with a locality model.
    styles : sequence of str, shape (jobs,)
        Placement style of each job: :data:`~hpcsimkit.kernel.locality.DEPTH` or
        :data:`~hpcsimkit.kernel.locality.BREADTH`.
    """
    workload, ones = result.workload, np.ones(len(result))
    assert result.placements is not None
    total = result.placements.cluster.amount
    shares = np.max([workload.column(name) / total(name).sum() for name in ("cpus", "gpus")], axis=0)
    length = np.searchsorted(list(LENGTHS.values()), workload.requested_time)
    size, kind = np.searchsorted(list(SIZES.values()), shares), workload.column("kind")
    suited = np.array(styles) == np.where(kind == COMPUTE_BOUND, DEPTH, BREADTH)
    of = (
        (LENGTHS, length, {"jobs": ones, "wait": result.wait_time, "ntat": normalised_turnaround(result)}),
        (SIZES, size, {"jobs": ones, "penalty": locality_penalty(result)}),
        (CUSH_KINDS, kind, {"jobs": ones, "suited": suited}),
    )
    return {
        f"{quantity}, {name}": float(values[which == place].sum())
        for names, which, sums in of
        for place, name in enumerate(names)
        for quantity, values in sums.items()
    }


def mean_of_class(values: Values, quantity: str, name: str) -> float:
    """Return the mean over all jobs of a class; NaN if there are none.

    >>> values = {"jobs, short": np.array([1.0, 3.0]), "wait, short": np.array([6.0, 2.0])}
    >>> mean_of_class(values, "wait", "short")
    2.0
    """
    jobs = values[f"jobs, {name}"].sum()
    return float(values[f"{quantity}, {name}"].sum() / jobs) if jobs else float("nan")


def share_suited(values: Values, kind: str) -> float:
    """Return the share of a type's jobs with the suitable placement style [%]."""
    return 100 * mean_of_class(values, "suited", kind)


# --- groups of policies ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Measurements on job sets by group: agents with several seeds are averaged on each set.

    Parameters
    ----------
    problem : CushProblem
        Cluster and observation.
    groups : mapping of str to list of str
        Groups with measurements: the paper's heuristics (``paper``), further ones (``added``, ``outside``),
        and agents with CuSH's networks (``trained``) and others (``evolved``).
    values : mapping of str to mapping of str to array of float, shape (job sets,)
        Values by group and measure, averaged over the agents on a set.
    agents : mapping of str to mapping of str to array of float, shape (agents,)
        Values by group and measure, averaged over the sets of an agent.
    """

    problem: CushProblem
    groups: Mapping[str, Sequence[str]]
    values: Mapping[str, Values]
    agents: Mapping[str, Values]

    @classmethod
    def of(cls, scores: Sequence[Scores], drawn: Collection[str]) -> Measured:
        """Combine the comparisons of one problem.

        Parameters
        ----------
        scores : sequence of Scores
            Scores of the comparisons: several if agents of different seeds have their own job sets.
        drawn : collection of str
            Groups compared with sampled actions; all others are compared with greedy actions.
        """
        first = scores[0].contest
        families = sorted(first.families(), key=lambda family: family != CUSH)  # CuSH is the first row
        met = {family: _met(family, scores, drawn) for family in families}
        met = {family: contests for family, contests in met.items() if contests}
        groups = {
            group: [family for family in met if family in first.families(group)]
            for group in ("paper", "added", "outside", "trained", "evolved")
        }
        values = {family: _over_sets(contests) for family, contests in met.items()}
        agents = {family: _over_agents(contests) for family, contests in met.items()}
        return cls(first.variables["problem"], groups, values, agents)

    @property
    def sets(self) -> int:
        """Number of job sets."""
        return len(self.values[BEST_ALLOCATION][NTAT])

    @property
    def learned(self) -> list[str]:
        """Groups of agents."""
        return [*self.groups["trained"], *self.groups["evolved"]]

    def mean(self, family: str, measure: str = NTAT) -> float:
        """Return the mean of a measure of a group, over all sets."""
        return float(self.values[family][measure].mean())

    @cached_property
    def best(self) -> str:
        """Heuristic row of the paper with the lowest mean NTAT."""
        return min(self.groups["paper"], key=self.mean)

    @cached_property
    def best_outside(self) -> str:
        """Heuristic outside the paper with the lowest mean NTAT."""
        return min(self.groups["outside"], key=self.mean)

    @property
    def title(self) -> str:
        """Name of the system in texts."""
        return self.problem.system.capitalize()

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
        return standings({name: self.values[name][NTAT] for name in (*self.rivals, family)}, family)

    def gain(self, family: str, rival: str) -> Floats:
        """Return the reduction of each agent's NTAT relative to a baseline [%]."""
        found: Floats = 100 * (1 - self.agents[family][NTAT] / self.mean(rival))
        return found

    @property
    def ratios(self) -> dict[str, float]:
        """Ratios to CuSH's NTAT of selectors with their better allocation, and of SJF with the best one."""
        means = {
            selector: min(self.mean(f"{selector} {each}") for each in ALLOCATIONS) for selector in SELECTORS
        }
        means[BEST_ALLOCATION] = self.mean(BEST_ALLOCATION)
        return {name: mean / self.mean(CUSH) for name, mean in means.items()}

    # --- tables -----------------------------------------------------------------------------------------

    def table_1(self, paper: PublishedTable) -> Table:
        """Return a row per group, with the paper's numbers in italics; the lowest NTAT and wait are bold.

        For agents with several seeds, cells show the mean and the range.
        """
        columns = {"NTAT": NTAT, "wait": WAIT, "rewards": REWARD}
        known = (CUSH, *self.groups["paper"])
        lines = []
        for family in self.values:
            cells = [family if family in known else f"*{family}*"]
            for column, measure in zip(paper.columns, columns.values(), strict=True):
                cells += [number(paper.number(family, column)), self._cell(family, measure)]
            lines.append(cells)
        return Table(["", *(cell for name in columns for cell in (f"*{name}, paper*", name))], lines)

    def _cell(self, family: str, measure: str) -> str:
        cell = spread_cell(spread_of(self.agents[family][measure]))
        least = min(self.mean(each, measure) for each in self.values)
        is_best = measure != REWARD and number(self.mean(family, measure)) == number(least)
        return f"**{cell}**" if is_best else cell

    def in_short_table(self, learned: Measured) -> Table:
        """Return a row per group of agents: NTAT on training job sets and on these, and beside baselines."""
        beside = ("to the paper's best", f"to {BEST_ALLOCATION}", "to the kit's best")
        headings = ["", "NTAT, learned from", *beside, "NTAT, unseen", *beside]
        return Table(
            headings,
            [[family, *learned._beside(family), *self._beside(family)] for family in self.learned],
        )

    def _beside(self, family: str) -> Iterator[str]:
        yield number(self.mean(family))
        found = self.against(family)
        for rival in self.rivals:
            against = found[rival].against
            assert against is not None
            yield f"{100 * against.relative:+.1f} %{'*' * found[rival].is_beaten}"


Met = Sequence[Mapping[str, Values]]
"""Values of the rows of a group, comparison by comparison."""


def _met(family: str, scores: Sequence[Scores], drawn: Collection[str]) -> Met:
    """Return the comparisons that include a group, with sampled or greedy actions of two networks."""
    found = []
    for each in scores:
        rows = each.contest.families().get(family, [])
        trained = family in each.contest.families("trained")
        rows = [row for row in rows if not trained or row.sample == (family in drawn)]
        if rows:
            found.append({row.name: each.values[row.name] for row in rows})
    return found


def _over_sets(contests: Met) -> dict[str, Floats]:
    """Return measures set by set, in the order of comparisons: means over the rows of each."""
    return {
        measure: np.concatenate(
            [np.mean([row[measure] for row in rows.values()], axis=0) for rows in contests]
        )
        for measure in next(iter(contests[0].values()))
    }


def _over_agents(contests: Met) -> dict[str, Floats]:
    """Return measures agent by agent: means over all sets of each agent."""
    names = list(dict.fromkeys(name for rows in contests for name in rows))
    of_agent = {name: [rows[name] for rows in contests if name in rows] for name in names}
    return {
        measure: np.array(
            [np.concatenate([values[measure] for values in of_agent[name]]).mean() for name in names]
        )
        for measure in next(iter(contests[0].values()))
    }


def both_ways(validation: Scores) -> dict[str, tuple[float, float]]:
    """Return the mean validation NTAT of each group of CuSH agents, with greedy and with sampled actions."""

    def mean(family: str, drawn: Collection[str]) -> float:
        rows = [row for met in _met(family, [validation], drawn) for row in met.values()]
        return float(np.mean([row[NTAT].mean() for row in rows])) if rows else float("nan")

    return {
        family: (mean(family, ()), mean(family, [family]))
        for family in validation.contest.families("trained")
    }


def drawing(ways: Mapping[str, tuple[float, float]]) -> frozenset[str]:
    """Return the groups with a lower NTAT if actions are sampled, from the output of :func:`both_ways`.

    >>> sorted(drawing({"CuSH": (3.0, 3.5), "CuSH (fresh job sets)": (3.2, 3.1)}))
    ['CuSH (fresh job sets)']
    """
    return frozenset(family for family, (best, drawn) in ways.items() if drawn < best)


# --- targets ----------------------------------------------------------------------------------------------


def file_targets(name: str, measured: Measured, paper: PublishedTable) -> Iterator[Target]:
    """Yield the deviations from table 1 of the heuristics on the job sets of a file."""
    for family in measured.groups["paper"]:
        for words, column, measure in (("NTAT", "ntat", NTAT), ("wait", "wait", WAIT)):
            value, ours = paper.number(family, column), measured.mean(family, measure)
            what = f"{name}: {family}, {words} (within {100 * NEAR:g} %)"
            yield Target(what, value, ours, None, abs(ours / value - 1) <= NEAR)


def gain_targets(unseen: Measured, needed: float) -> Iterator[Target]:
    """Yield the reductions of agents' NTAT relative to the baselines, on unseen job sets.

    The gain needed [%] is the paper's: CuSH's, over the best heuristic of its table.
    """
    titles = ("the best heuristic of the paper", "", "the best heuristic of the kit")
    for family in unseen.learned:
        if family == EVOLVED_IN_SIGHT:  # a bound on CuSH's information, not a competitor
            continue
        against = unseen.against(family)
        for rival, title in zip(unseen.rivals, titles, strict=True):
            gains = unseen.gain(family, rival)
            who = ", ".join(filter(None, [rival, title]))
            what = (
                f"{unseen.title}, unseen job sets: {family}, NTAT below that of {who}, by [%] "
                f"(needed: {needed:g}, p < {SIGNIFICANT})"
            )
            ours, spread = float(gains.mean()), float(gains.std(ddof=1)) if len(gains) > 1 else None
            paper = needed if family == CUSH and rival == unseen.best else None
            yield Target(what, paper, ours, spread, ours >= needed and against[rival].is_beaten)


def placement_targets(unseen: Measured) -> Iterator[Target]:
    """Yield the shares of each type's jobs that the policy selector places suitably [%]."""
    for family in unseen.groups["trained"]:
        for kind in CUSH_KINDS:
            share = share_suited(unseen.values[family], kind)
            what = (
                f"{unseen.title}, unseen job sets: {family}, {kind} jobs placed as suits "
                f"them [%] (at least {SUITED:g})"
            )
            yield Target(what, None, share, None, share >= SUITED)


def time_target(name: str, seconds: float) -> Target:
    """Return the target for the longest training: its time on one core, an upper bound for two."""
    hours = seconds / 3600
    what = f"longest training, {name} [h of one core] (at most {HOURS:g}, on 2 cores)"
    return Target(what, None, hours, None, hours <= HOURS)
