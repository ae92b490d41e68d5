"""Targets: the paper's claims, and the baselines that a trained agent must beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcsimkit.reproductions.masked_ppo.contest import BASELINES, CONTROLS
from hpcsimkit.reproductions.masked_ppo.published_numbers import LOWER_THAN_BFBP, TABLES
from hpcsimkit.reproductions.masked_ppo.scores import UTILISATION, WAIT, Scores
from hpcsimkit.reproductions.masked_ppo.statistics import judged
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT

__all__ = ["baseline_targets", "family_targets"]

POINTS = 0.1
"""Allowed deficit of utilisation relative to BFBP's [percentage points]."""

BEATEN = ("SJF", *CONTROLS)
"""Baselines that a trained agent must beat in mean wait."""


def baseline_targets(scores: Scores) -> Iterator[Target]:
    """Yield the paper's baselines beside ours; days differ, so only their order can be reproduced."""
    for measure, unit in ((WAIT, "min"), (UTILISATION, "%")):
        paper = TABLES[measure]
        for row in BASELINES:
            ours = scores.mean(row, measure)
            yield Target(
                f"{row}: {measure} [{unit}], {len(scores.days)} days (paper: 23 others)",
                paper[row],
                ours,
                None,
                None,
            )
    waits = {row: scores.mean(row, WAIT) for row in BASELINES}
    in_order = sorted(BASELINES, key=lambda row: waits[row])
    as_published = sorted(BASELINES, key=lambda row: TABLES[WAIT][row])
    agree = sum(one == other for one, other in zip(in_order, as_published, strict=True))
    what = f"baselines in the order {' < '.join(as_published)} by wait [places]"
    yield Target(what, float(len(as_published)), float(agree), None, agree == len(as_published))


def family_targets(
    name: str, rows: tuple[str, str], test: Scores, unseen: Scores, others: Sequence[str]
) -> Iterator[Target]:
    """Yield the targets of a group of agents.

    Parameters
    ----------
    name : str
        Name of the group.
    rows : tuple of two str
        Rows of its agents for wait and for utilisation.
    test, unseen : Scores
        Scores on the two sets of days.
    others : sequence of str
        Rows to compare the agents with; p-values are corrected for their number.
    """
    for_wait, for_utilisation = rows
    for days, scores in (("test", test), ("unseen", unseen)):
        below = _below_bfbp(scores, for_wait)
        yield Target(
            f"{name}: wait below BFBP's by 16.9 %, {days} days [%]",
            LOWER_THAN_BFBP,
            below[0],
            below[1],
            below[0] >= LOWER_THAN_BFBP,
        )
    verdict = judged(unseen, WAIT, for_wait, tuple(BASELINES), others)
    for other in BEATEN:
        found = verdict.paired[other]
        less = found.difference.mean < 0
        what = f"{name}: wait below that of {other}, unseen days [%]"
        yield Target(what, None, -100 * found.relative, None, less)
        tests = {"paired t-test": found.t_test_holm, "Wilcoxon's test": found.wilcoxon_holm}
        for test_name, p in tests.items():
            what = f"{name}: p < {SIGNIFICANT} against {other}, {test_name}, Holm"
            yield Target(what, None, p, None, less and p < SIGNIFICANT)
    for days, scores in (("test", test), ("unseen", unseen)):
        gap = scores.mean(for_utilisation, UTILISATION) - scores.mean("BFBP", UTILISATION)
        yield Target(
            f"{name}: utilisation at most {POINTS} points below BFBP's, {days} days [points]",
            -0.02,
            gap,
            scores.spread(for_utilisation, UTILISATION),
            gap >= -POINTS,
        )


def _below_bfbp(scores: Scores, row: str) -> tuple[float, float | None]:
    """Return the reduction of mean wait relative to BFBP's, and its spread between agents [%]."""
    bfbp, spread = scores.mean("BFBP", WAIT), scores.spread(row, WAIT)
    return 100 * (1 - scores.mean(row, WAIT) / bfbp), None if spread is None else 100 * spread / bfbp
