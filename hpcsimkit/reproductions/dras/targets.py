"""What is to be reached: a shorter mean wait than rules and an optimiser have, and nobody starves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.campaigns.console import grouped
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import DRAS, FCFS, OPTIMIZATION
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.published_numbers import HOURS_OF_TRAINING, MOST_BETTER, SECONDS_OF_UPDATE
from hpcsimkit.reproductions.dras.statistics import spread_of
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.targets import Target

__all__ = ["speed_targets", "waiting_targets"]

Floats = NDArray[np.float64]

LEAST_GAIN = 20.0
"""By so much the mean wait must be shorter [%]."""

LONGEST, LONGEST_LARGE = 1.5, 2.0
"""So many times FCFS/EASY's maximum wait, of all jobs and of the largest ones, is not too long."""


def waiting_targets(measured: Measured, agents: Family) -> Iterator[Target]:
    """Yield what agents gain in mean wait on a log, and what it costs those who wait longest.

    Numbers are means over seeds. The paper speaks of Theta, and of its own learners: all others are stated
    for comparison.
    """
    rivals = measured.families
    judged = measured.trace.is_theta and agents.name in DRAS
    where = f"{measured.trace.name}: {agents.name}"
    waits = agents.over_seeds("mean_wait_time")
    for rival in (FCFS, OPTIMIZATION):
        gains = 100 * (1 - over(waits, rivals[rival].spread("mean_wait_time").mean))
        what = f"{where}, mean wait shorter than {rival}'s by [%] (needed: {LEAST_GAIN:g})"
        yield _target(what, MOST_BETTER, gains, bool(gains.mean() >= LEAST_GAIN) if judged else None)
    rule = rivals[FCFS]
    pairs = {
        "maximum wait": (agents.over_seeds("max_wait_time"), rule.spread("max_wait_time"), LONGEST),
        "maximum wait of the largest jobs": (agents.large_waits, spread_of(rule.large_waits), LONGEST_LARGE),
    }
    for what, (ours, theirs, limit) in pairs.items():
        ratios = over(ours, theirs.mean)
        words = f"{where}, {what}, times FCFS/EASY's (at most {limit:g})"
        yield _target(words, None, ratios, bool(ratios.mean() <= limit) if judged else None)


def over(values: Floats, by: float) -> Floats:
    """Return values over another one; not a number if that is 0, as waits are where there is room for all.

    >>> over(np.array([3.0, 6.0]), 2.0).tolist(), over(np.array([3.0]), 0.0).tolist()
    ([1.5, 3.0], [nan])
    """
    return values / by if by else np.full(len(values), np.nan)


def _target(what: str, paper: float | None, values: Floats, met: bool | None) -> Target:
    """Return a target about a mean over seeds, with its standard deviation where there are several."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return Target(what, paper, float(values.mean()), spread, met)


def speed_targets(
    learner: Learner, seconds: float, overheads: Sequence[tuple[Overhead, Mapping[str, float]]]
) -> Iterator[Target]:
    """Yield how long the longest training took [h], and updates of the largest networks [s].

    The paper's hours are of Theta in full size, and of more decisions: they are no target for less.
    """
    decisions = grouped(learner.settings.steps)
    what = f"longest training, {learner.name}, {decisions} decisions [h of a core]"
    yield Target(what, HOURS_OF_TRAINING, seconds / 3600, None, None)
    largest = max(task.nodes for task, _ in overheads)
    for task, found in overheads:
        if task.nodes == largest:
            limit, took = SECONDS_OF_UPDATE[task.algorithm], found["update"]
            what = f"an update of {task.algorithm} on {largest} nodes [s of a core]"
            yield Target(what, limit, took, None, took <= limit)
