"""Targets: the paper's numbers and gains, and the baselines that an agent must beat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.rlbackfilling.contest import (
    EASY_AR,
    EASY_SJF,
    GUARDED_SHORTEST,
    PUBLISHED_EASY,
    UNGUARDED_SHORTEST,
    Contest,
    agent_row,
    row,
)
from hpcsimkit.reproductions.rlbackfilling.data import Way
from hpcsimkit.reproductions.rlbackfilling.published_numbers import LEAST_GAIN, SEEDS, TABLE_4
from hpcsimkit.reproductions.sequences import Standing
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.statistics import SIGNIFICANT

__all__ = ["agent_targets", "base_targets", "fair_duels", "training_target"]

MINUTES = 60.0
PUBLISHED_SEQUENCES = 10
DIGITS = 0.0065
"""Tolerance for truncated digits: 103.436 is printed as 103.43."""


def base_targets(scores: Scores[Contest]) -> Iterator[Target]:
    """Yield targets for the columns of table 4 without training, on the published sequences."""
    contest = scores.contest
    name = contest.trace.name
    paper = TABLE_4[name]
    whole = name in SEEDS and len(contest.sequences.scenarios) == PUBLISHED_SEQUENCES
    known = {
        row("fcfs", PUBLISHED_EASY): paper.fcfs,
        row("fcfs", EASY_AR): paper.fcfs_ar,
        row("sjf", PUBLISHED_EASY): paper.sjf,
        row("sjf", EASY_AR): paper.sjf_ar,
        row("wfp3", PUBLISHED_EASY): paper.wfp3,
        row("f1", PUBLISHED_EASY): paper.f1,
    }
    for each, value in known.items():
        if each in scores.values and value == value:
            ours = scores.mean(each)
            met = bool(abs(ours - value) < DIGITS) if whole else None
            yield Target(f"{name}, published test: {each}, mean bounded slowdown", value, ours, None, met)


def agent_targets(scores: Scores[Contest], orders: Sequence[str], way: Way) -> Iterator[Target]:
    """Yield targets for the gains of agents over published EASY and over the baselines.

    The paper claims its gain for FCFS; with other base schedulers it is stated for comparison.
    """
    contest = scores.contest
    test = "published test" if contest.protocol == "published" else "unseen jobs"
    where = f"{contest.trace.name}, {test}"
    for order in orders:
        base = scores.mean(row(order, PUBLISHED_EASY))
        for greedy in way.greedy:
            agent = row(order, agent_row(way, greedy=greedy))
            gain = 100 * (1 - scores.mean(agent) / base)
            met = bool(gain >= LEAST_GAIN) if order == "fcfs" else None
            what = f"{where}: {agent}, below {order.upper()} + {PUBLISHED_EASY} by [%]"
            yield Target(what, _published_gain(contest.trace.name, order), gain, None, met)
            rivals = scores.standings(agent, [row(order, UNGUARDED_SHORTEST), row(order, EASY_SJF)])
            for name, rival in rivals.items():
                if rival.against is not None:
                    what = f"{where}: {agent}, below {name} by [%], p < {SIGNIFICANT} by both tests"
                    yield Target(what, None, -100 * rival.against.relative, None, rival.is_beaten)


def _published_gain(name: str, order: str) -> float | None:
    """Return the gain of the paper's agent over EASY [%], or None if the paper has no such number."""
    paper = TABLE_4.get(name)
    pairs = {"fcfs": (paper.fcfs, paper.fcfs_agent), "sjf": (paper.sjf, paper.sjf_agent)} if paper else {}
    if order not in pairs:
        return None
    base, agent = pairs[order]
    return 100 * (1 - agent / base)


def fair_duels(scores: Scores[Contest], order: str, way: Way) -> dict[str, dict[str, Standing]]:
    """Compare agents with baselines under the same restrictions.

    Guarded agents are compared with a guarded rule, unguarded ones with an unguarded rule, and both with
    textbook EASY with SJF candidates.

    Returns
    -------
    dict of str to dict of str to Standing
        Comparisons by agent (sampling and greedy) and baseline; p-values are corrected for the two baselines.
    """
    shortest = GUARDED_SHORTEST if way.mode == "guarded" else UNGUARDED_SHORTEST
    rivals = [row(order, shortest), row(order, EASY_SJF)]
    agents = [row(order, agent_row(way, greedy=greedy)) for greedy in way.greedy]
    return {agent: scores.standings(agent, rivals) for agent in agents}


def training_target(seconds: Sequence[float]) -> Target:
    """Return the target for the longest training time [min]."""
    longest = max(seconds) / 60
    return Target("longest training [min of a core]", None, longest, None, longest <= MINUTES)
