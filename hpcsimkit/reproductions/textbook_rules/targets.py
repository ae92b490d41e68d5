"""Targets: a learned row is significantly better on three logs, and trainings stay short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpcsimkit.reproductions.targets import Target
from hpcsimkit.reproductions.textbook_rules.verdicts import Judged
from hpcsimkit.results.statistics import SIGNIFICANT

__all__ = ["MINUTES", "logs_target", "training_targets"]

LOGS_NEEDED = 3

MINUTES: Mapping[str, float | None] = {"inspectors": 10.0, "backfillers": 60.0, "both": None}
"""Maximum time of a training [min of a core], or None if there is no limit."""


def logs_target(logs: Sequence[Judged]) -> Target:
    """Return the target for the number of logs on which a learned row beats the better heuristic."""
    found = sum(bool(log.better) for log in logs)
    what = (
        f"logs on which a learned row beats the better heuristic, p < {SIGNIFICANT} by both tests "
        f"(needed: {LOGS_NEEDED}; tested: {len(logs)})"
    )
    return Target(what, None, float(found), None, found >= LOGS_NEEDED)


def training_targets(seconds: Mapping[str, Sequence[float]]) -> Iterator[Target]:
    """Yield the longest training time of each group [min]; pairs have no limit."""
    for who, limit in MINUTES.items():
        longest = max(seconds[who]) / 60
        met = None if limit is None else longest <= limit
        bound = f", at most {limit:g}" if limit is not None else ""
        yield Target(f"longest training of {who} [min of a core{bound}]", None, longest, None, met)
