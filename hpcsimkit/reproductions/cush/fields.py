"""Baselines that CuSH's paper leaves out, on the job sets of each table 1."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hpcsimkit.reproductions.cush.contest import Contest
from hpcsimkit.reproductions.cush.data import title_of
from hpcsimkit.reproductions.cush.methods import (
    BEST_ALLOCATION,
    HEURISTICS,
    IN_SIGHT,
    OUTSIDE,
    Method,
)
from hpcsimkit.reproductions.cush.runs import NTAT, REWARD, WAIT, Run
from hpcsimkit.reproductions.rivals import Field

__all__ = ["COLUMNS", "fields"]

COLUMNS = {"NTAT": (NTAT, 1.0), "wait": (WAIT, 1.0), "rewards": (REWARD, 1.0)}

KNOWN = (*HEURISTICS, BEST_ALLOCATION, IN_SIGHT)


def fields(contests: Sequence[Contest]) -> list[Field]:
    """Return a field for the training and the unseen job sets of each system, and for each file."""
    of_tables: dict[str, list[Contest]] = {}
    for contest in contests:
        if contest.part in ("learned", "unseen", "given"):
            of_tables.setdefault(_title(contest), []).append(contest)
    return [_field(name, of) for name, of in of_tables.items()]


def _title(contest: Contest) -> str:
    if contest.part == "given":
        return contest.sequences.name
    part = "job sets learned from" if contest.part == "learned" else "unseen job sets"
    return f"{title_of(contest.problem.system)}, {part}"


def _field(name: str, contests: Sequence[Contest]) -> Field:
    """Return the field of the comparisons of one table, each on other job sets."""
    others = [each.family for contest in contests for each in contest.contestants]
    agents = [family for family in dict.fromkeys(others) if family not in (*KNOWN, *OUTSIDE)]
    return Field(name, _runs(contests, KNOWN), _runs(contests, OUTSIDE), _runs(contests, agents), COLUMNS)


def _runs(contests: Sequence[Contest], families: Collection[str]) -> dict[str, list[Run]]:
    """Return the runs of some groups, by row, without those with sampled actions."""
    found: dict[str, list[Run]] = {}
    for contest in contests:
        meetings = contest.meetings
        for each in contest.contestants:
            if each.family in families and not _draws(each):
                found.setdefault(_row(each), []).append(meetings[each.name])
    return found


def _draws(method: Method) -> bool:
    return method.selectors is not None and method.sample


def _row(method: Method) -> str:
    """Return the name of a heuristic, or of the agent of one seed."""
    return method.family if method.family in KNOWN or method.family in OUTSIDE else method.name
