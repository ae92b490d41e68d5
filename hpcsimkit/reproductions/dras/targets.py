"""Targets: a shorter mean wait than rules and an optimiser, without starvation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.console import grouped
from hpcsimkit.reproductions.dras.measured import Family, Measured
from hpcsimkit.reproductions.dras.methods import DRAS, FCFS, OPTIMIZATION
from hpcsimkit.reproductions.dras.overhead import Overhead
from hpcsimkit.reproductions.dras.tables import PUBLISHED
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.spread import spread_of
from hpcsimkit.reproductions.targets import Target

__all__ = ["speed_targets", "waiting_targets"]

Floats = NDArray[np.float64]

LEAST_GAIN = 20.0
"""Minimum reduction of the mean wait [%]."""

LONGEST, LONGEST_LARGE = 1.5, 2.0
"""Maximum ratios to FCFS/EASY's maximum wait, for all jobs and for the largest ones."""


def waiting_targets(measured: Measured, agents: Family) -> Iterator[Target]:
    """Yield the agents' reductions of mean wait on a log, and their ratios of maximum waits.

    Numbers are means over seeds. The paper's claims concern Theta and its own learners; all others are stated
    for comparison.
    """
    rivals = measured.families
    judged = measured.trace.is_theta and agents.name in DRAS
    where = f"{measured.trace.name}: {agents.name}"
    waits = agents.over_seeds("mean_wait_time")
    for rival in (FCFS, OPTIMIZATION):
        gains = 100 * (1 - over(waits, rivals[rival].spread("mean_wait_time").mean))
        what = f"{where}, mean wait shorter than {rival}'s by [%] (needed: {LEAST_GAIN:g})"
        yield _target(
            what,
            PUBLISHED["claims"].number("DRAS", "better"),
            gains,
            bool(gains.mean() >= LEAST_GAIN) if judged else None,
        )
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
    """Return the quotients of values by a number, or NaN if it is 0, as for waits on an underloaded machine.

    >>> over(np.array([3.0, 6.0]), 2.0).tolist(), over(np.array([3.0]), 0.0).tolist()
    ([1.5, 3.0], [nan])
    """
    return values / by if by else np.full(len(values), np.nan)


def _target(what: str, paper: float | None, values: Floats, met: bool | None) -> Target:
    """Return a target for a mean over seeds, with its standard deviation if there are several."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return Target(what, paper, float(values.mean()), spread, met)


def speed_targets(
    learner: Learner, seconds: float, overheads: Sequence[tuple[Overhead, Mapping[str, float]]]
) -> Iterator[Target]:
    """Yield the longest training time [h], and the update times of the largest networks [s].

    The paper's hours are for Theta in full size and for more decisions; they are no target for smaller runs.
    """
    decisions = grouped(learner.settings.total_timesteps)
    what = f"longest training, {learner.name}, {decisions} decisions [h of a core]"
    yield Target(what, PUBLISHED["claims"].number("DRAS", "training"), seconds / 3600, None, None)
    largest = max(task.nodes for task, _ in overheads)
    for task, found in overheads:
        if task.nodes == largest:
            limit, took = PUBLISHED["update"].number(task.algorithm, "seconds"), found["update"]
            what = f"an update of {task.algorithm} on {largest} nodes [s of a core]"
            yield Target(what, limit, took, None, took <= limit)
