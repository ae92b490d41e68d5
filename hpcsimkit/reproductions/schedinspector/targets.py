"""What is to be reached: the paper's gains, and what an inspector must beat to be worth its training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpcsimkit.reproductions.schedinspector.contest import BASE, GREEDY, INSPECTOR, NOT_COMMITTED
from hpcsimkit.reproductions.schedinspector.published_numbers import TABLE_4, improvement
from hpcsimkit.reproductions.schedinspector.tables import SIGNIFICANT, Scores
from hpcsimkit.reproductions.sequences import BSLD, standings
from hpcsimkit.reproductions.targets import Target

__all__ = ["honest_targets", "published_targets", "training_target"]

LOGS_TO_WIN = 3
MINUTES = 10.0
PAPERS_MINUTES = 35.0
DIGITS = 0.0065
"""333.196 is printed as 333.19."""


def published_targets(scores: Scores) -> Iterator[Target]:
    """Yield what is to be reached on SJF by the published rules: the base's value, the paper's gain."""
    contest = scores.contest
    paper = TABLE_4.get(contest.trace.name)
    where = f"{contest.trace.name}, {_protocol(contest.protocol)}"
    base = scores.mean(BASE)
    if paper is not None:
        same = abs(base - paper.base) < DIGITS if _is_the_published_set(scores) else None
        yield Target(f"{where}: SJF's mean bounded slowdown", paper.base, base, None, same)
    gain = None if paper is None else improvement(paper.base, paper.own)
    for row in (INSPECTOR, GREEDY):
        ours = improvement(base, scores.mean(row))
        met = None if gain is None else ours >= gain
        yield Target(f"{where}: {row}, below SJF by [%]", gain, ours, None, met)
    against = standings({name: scores.of(name) for name in scores.values}, INSPECTOR)[NOT_COMMITTED].against
    assert against is not None
    won = against.difference.mean < 0 and against.t_test_holm < SIGNIFICANT
    what = f"{where}: below SJF that does not commit by [%], p < {SIGNIFICANT}"
    yield Target(what, None, -100 * against.relative, None, bool(won))


def _is_the_published_set(scores: Scores) -> bool:
    """Tell whether the sequences are the paper's: the log of that name that everybody has, all 50."""
    contest = scores.contest
    return (contest.trace.name, contest.protocol, len(contest.sequences.scenarios)) == ("Lublin", "whole", 50)


def _protocol(protocol: str) -> str:
    return "published test" if protocol == "whole" else "unseen jobs"


def honest_targets(contests: Sequence[Scores]) -> Iterator[Target]:
    """Yield on how many logs an inspector beats the best heuristic of its class by the textbook's rules."""
    for order in dict.fromkeys(scores.contest.order for scores in contests):
        those = [scores for scores in contests if scores.contest.order == order]
        for row in (INSPECTOR, GREEDY):
            wins = sum(scores.beats(row, BASE, BSLD) for scores in those)
            what = (
                f"textbook rules, {order.upper()} + EASY with SJF candidates: logs of {len(those)} on which "
                f"{row} is below it, p < {SIGNIFICANT}"
            )
            yield Target(what, None, float(wins), None, wins >= LOGS_TO_WIN)


def training_target(seconds: Sequence[float]) -> Target:
    """Return how long the longest training took [min]."""
    longest = max(seconds) / 60
    what = "longest training of a table [min of a core]"
    return Target(what, PAPERS_MINUTES, longest, None, longest <= MINUTES)
