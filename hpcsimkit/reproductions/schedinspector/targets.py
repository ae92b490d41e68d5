"""Targets: the paper's gains, the baselines that justify a training, and the training time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.schedinspector.contest import BASE, NOT_COMMITTED, Contest, greedy
from hpcsimkit.reproductions.schedinspector.published_numbers import TABLE_4, improvement
from hpcsimkit.reproductions.schedinspector.tables import AGENTS
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT

__all__ = ["published_targets", "training_target"]

MINUTES = 10.0
PAPERS_MINUTES = 35.0
PAPERS_SEQUENCES = 50
DIGITS = 0.0065
"""Tolerance for truncated digits: 333.196 is printed as 333.19."""


def published_targets(scores: Scores[Contest]) -> Iterator[Target]:
    """Yield the targets for SJF under published semantics: the base's value and the paper's gains."""
    contest = scores.contest
    paper = TABLE_4.get(contest.trace.name)
    where = f"{contest.trace.name}, {_protocol(contest.protocol)}"
    base = scores.mean(BASE)
    if paper is not None:
        same = abs(base - paper.base) < DIGITS if _is_the_published_set(scores) else None
        yield Target(f"{where}: SJF's mean bounded slowdown", paper.base, base, None, same)
    gain = None if paper is None else improvement(paper.base, paper.own)
    for agent in AGENTS:
        for row in (agent, greedy(agent)):
            ours = improvement(base, scores.mean(row))
            met = None if gain is None else ours >= gain
            yield Target(f"{where}: {row}, below SJF by [%]", gain, ours, None, met)
        yield _above_not_committing(scores, agent, where)


def _above_not_committing(scores: Scores[Contest], agent: str, where: str) -> Target:
    """Return the target for an agent's gain over the base without commitment, the part due to learning."""
    rival = scores.standings(agent)[NOT_COMMITTED]
    assert rival.against is not None
    gained, what = -100 * rival.against.relative, f"{where}: {agent}, below SJF that does not commit by [%]"
    if scores.contest.protocol == "whole":  # overlapping sequences are not independent samples
        return Target(what, None, gained, None, None)
    return Target(f"{what}, p < {SIGNIFICANT} by both tests", None, gained, None, rival.is_beaten)


def _is_the_published_set(scores: Scores[Contest]) -> bool:
    """Return whether the sequences are the paper's, all 50, from files with the names in the paper."""
    contest = scores.contest
    return contest.protocol == "whole" and len(contest.sequences.scenarios) == PAPERS_SEQUENCES


def _protocol(protocol: str) -> str:
    return "published test" if protocol == "whole" else "unseen jobs"


def training_target(agents: str, seconds: Sequence[float]) -> Target:
    """Return the target for the longest training time of some agents [min]."""
    longest = max(seconds) / 60
    what = f"longest training of {agents} of a table [min of a core]"
    return Target(what, PAPERS_MINUTES, longest, None, longest <= MINUTES)
