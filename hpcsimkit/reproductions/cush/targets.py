"""What is to be reached: heuristics as in table 1, an NTAT below theirs, right placements, in two hours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hpcsimkit.reproductions.cush.classes import share_suited
from hpcsimkit.reproductions.cush.data import title_of
from hpcsimkit.reproductions.cush.measured import Measured
from hpcsimkit.reproductions.cush.methods import BEST_ALLOCATION, CUSH, EVOLVED_IN_SIGHT, HEURISTICS, TRAINED
from hpcsimkit.reproductions.cush.published_numbers import GAINS, TABLE_1
from hpcsimkit.reproductions.cush.runs import NTAT, WAIT
from hpcsimkit.reproductions.sequences import SIGNIFICANT
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.workloads.cush import CUSH_KINDS

__all__ = ["HOURS", "Longest", "file_targets", "gain_targets", "placement_targets", "time_target"]

NEAR = 0.10
"""Relative distance from the paper that is near enough."""

SUITED = 99.0
"""Share of a kind's jobs that are to be placed as suits them [%]."""

HOURS = 2.0
"""A training takes no longer, on a machine of 2 cores [h]."""


def file_targets(name: str, measured: Measured) -> Iterator[Target]:
    """Yield how near the heuristics on the job sets of a file come to table 1."""
    paper = TABLE_1[measured.problem.system]
    for family in HEURISTICS:
        published = paper[family]
        for words, measure, value in (("NTAT", NTAT, published.ntat), ("wait", WAIT, published.wait)):
            ours = measured.mean(family, measure)
            what = f"{name}: {family}, {words} (within {100 * NEAR:g} %)"
            yield Target(what, value, ours, None, abs(ours / value - 1) <= NEAR)


def gain_targets(unseen: Measured) -> Iterator[Target]:
    """Yield by how much who has learned is below the best heuristic, and SJF with the best allocation.

    On job sets that nobody was trained on. The paper's gain is CuSH's, over the best heuristic.
    """
    system = unseen.problem.system
    needed = GAINS[system]
    for family in unseen.learned:
        if family == EVOLVED_IN_SIGHT:  # it shows what can be known
            continue
        for rival, standing in unseen.against(family).items():
            if rival == family:
                continue
            gains = unseen.gain(family, rival)
            who = rival if rival == BEST_ALLOCATION else f"{rival}, the best heuristic"
            what = (
                f"{title_of(system)}, unseen job sets: {family}, NTAT below that of {who}, by [%] "
                f"(needed: {needed:g}, p < {SIGNIFICANT})"
            )
            ours, spread = float(gains.mean()), float(gains.std(ddof=1)) if len(gains) > 1 else None
            paper = needed if family == CUSH and rival != BEST_ALLOCATION else None
            yield Target(what, paper, ours, spread, ours >= needed and standing.is_beaten)


def placement_targets(unseen: Measured) -> Iterator[Target]:
    """Yield which share of each kind's jobs the policy selector places as suits them [%]."""
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


class Longest(NamedTuple):
    """The training that took longest.

    Parameters
    ----------
    name : str
        Of what.
    seconds : float
        How long [s of a core].
    """

    name: str
    seconds: float


def time_target(longest: Longest) -> Target:
    """Return how long the longest training took: on one core, so on two no longer."""
    hours = longest.seconds / 3600
    what = f"longest training, {longest.name} [h of one core] (at most {HOURS:g}, on 2 cores)"
    return Target(what, None, hours, None, hours <= HOURS)
