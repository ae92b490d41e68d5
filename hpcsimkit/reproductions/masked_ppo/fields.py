"""The kit's heuristics on the nine machines, on the test days and on the unseen days."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import EASY, SAF, SJF, SRF, UNICEF, WFP3, BestFit, Conservative, XFactor
from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS, Contestant, Playing, file_name
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.scores import WAIT
from hpcsimkit.reproductions.rivals import Field

__all__ = ["RULES", "fields"]

ORACLE = "Oracle SJF"
"""Row excluded from the baselines, as it knows actual run times."""

ORDERS = (SJF, SAF, SRF, XFactor, UNICEF, WFP3)

RULES: Mapping[str, Pipeline] = {
    **{
        f"{order.__name__}/EASY + best fit": Pipeline(order(), placement=BestFit(), backfiller=EASY())
        for order in ORDERS
    },
    **{
        f"{order.__name__} + best fit": Pipeline(order(), placement=BestFit(), fitting=True)
        for order in ORDERS
        if order is not SJF
    },
    "FCFS/EASY(SJF) + best fit": Pipeline(placement=BestFit(), backfiller=EASY(SJF())),
    "SJF/conservative + best fit": Pipeline(SJF(), placement=BestFit(), backfiller=Conservative()),
}
"""Heuristics beyond the paper's and the page's; those without EASY use greedy list scheduling."""


def fields(beocat: Beocat, plays: Sequence[Playing]) -> list[Field]:
    """Return a field for each set of days; all policies run on all days."""
    known = {row: [play] for row, play in _untrained(plays).items() if row != ORACLE}
    rules = {
        row: [Playing(Contestant(file_name(row), row, rule), beocat.all_days)] for row, rule in RULES.items()
    }
    learned: dict[str, list[Playing]] = {}
    for play in plays:
        if play.contestant.learner is not None:
            learned.setdefault(play.contestant.row, []).append(play)
    columns = {"mean wait [min]": (WAIT, 1.0)}
    sets = {"days of the test": beocat.test_days, "unseen days": beocat.unseen_days}
    return [
        Field(name, known, rules, learned, columns, partial(waits_on, frozenset(map(str, days))))
        for name, days in sets.items()
    ]


def _untrained(plays: Sequence[Playing]) -> dict[str, Playing]:
    return {play.contestant.row: play for play in plays if play.contestant.row in (*BASELINES, *CONTROLS)}


def waits_on(days: frozenset[str], outcome: Sequence[Sequence[Any]]) -> dict[str, list[float]]:
    """Return the mean waits on some days, averaged over runs.

    >>> waits_on(frozenset({"d2"}), [["d1", 0, 1.0], ["d2", 0, 4.0], ["d2", 1, 6.0]])
    {'wait': [5.0]}
    """
    runs: dict[str, list[float]] = {}
    for day, _, wait, *_ in outcome:
        if day in days:
            runs.setdefault(day, []).append(wait)
    return {WAIT: [float(np.mean(runs[day])) for day in sorted(runs)]}
