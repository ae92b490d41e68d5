"""Targets: heuristics as in table 1, a lower NTAT than theirs, suitable placements, two hours."""

from __future__ import annotations

from collections.abc import Iterator

from hpcsimkit.reproductions.cush.classes import share_suited
from hpcsimkit.reproductions.cush.data import title_of
from hpcsimkit.reproductions.cush.measured import Measured
from hpcsimkit.reproductions.cush.methods import CUSH, EVOLVED_IN_SIGHT, HEURISTICS, TRAINED
from hpcsimkit.reproductions.cush.published_numbers import GAINS, TABLE_1
from hpcsimkit.reproductions.cush.runs import NTAT, WAIT
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT
from hpcsimkit.workloads.models.cush import CUSH_KINDS

__all__ = ["file_targets", "gain_targets", "placement_targets", "time_target"]

NEAR = 0.10
"""Maximum relative deviation from the paper."""

SUITED = 99.0
"""Minimum share of a type's jobs with the suitable placement style [%]."""

HOURS = 2.0
"""Maximum time of a training on a machine of 2 cores [h]."""


def file_targets(name: str, measured: Measured) -> Iterator[Target]:
    """Yield the deviations from table 1 of the heuristics on the job sets of a file."""
    paper = TABLE_1[measured.problem.system]
    for family in HEURISTICS:
        published = paper[family]
        for words, measure, value in (("NTAT", NTAT, published.ntat), ("wait", WAIT, published.wait)):
            ours = measured.mean(family, measure)
            what = f"{name}: {family}, {words} (within {100 * NEAR:g} %)"
            yield Target(what, value, ours, None, abs(ours / value - 1) <= NEAR)


_TITLES = {0: ", the best heuristic of the paper", 2: ", the best heuristic of the kit"}
"""Descriptions of some baselines, by their positions."""


def gain_targets(unseen: Measured) -> Iterator[Target]:
    """Yield the reductions of agents' NTAT relative to the baselines, on unseen job sets.

    The paper's gain is CuSH's, over the best heuristic of its table.
    """
    system = unseen.problem.system
    needed = GAINS[system]
    for family in unseen.learned:
        if family == EVOLVED_IN_SIGHT:  # a bound on CuSH's information, not a competitor
            continue
        for rival, standing in unseen.against(family).items():
            if rival == family:
                continue
            gains = unseen.gain(family, rival)
            who = f"{rival}{_TITLES.get(unseen.rivals.index(rival), '')}"
            what = (
                f"{title_of(system)}, unseen job sets: {family}, NTAT below that of {who}, by [%] "
                f"(needed: {needed:g}, p < {SIGNIFICANT})"
            )
            ours, spread = float(gains.mean()), float(gains.std(ddof=1)) if len(gains) > 1 else None
            paper = needed if family == CUSH and rival == unseen.best else None
            yield Target(what, paper, ours, spread, ours >= needed and standing.is_beaten)


def placement_targets(unseen: Measured) -> Iterator[Target]:
    """Yield the shares of each type's jobs that the policy selector places suitably [%]."""
    for family in unseen.learned:
        if family not in TRAINED:
            continue
        for kind in CUSH_KINDS:
            share = 100 * share_suited(unseen.values[family], kind)
            what = (
                f"{title_of(unseen.problem.system)}, unseen job sets: {family}, {kind} jobs placed as suits "
                f"them [%] (at least {SUITED:g})"
            )
            yield Target(what, None, share, None, share >= SUITED)


def time_target(name: str, seconds: float) -> Target:
    """Return the target for the longest training: its time on one core, an upper bound for two."""
    hours = seconds / 3600
    what = f"longest training, {name} [h of one core] (at most {HOURS:g}, on 2 cores)"
    return Target(what, None, hours, None, hours <= HOURS)
