"""Tables: the paper's numbers beside the measured ones, reservation violations, agents on other logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hpcsimkit.experiments.console import grouped
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.contests import Scores
from hpcsimkit.reproductions.rlbackfilling.contest import (
    CHANCE,
    EASY_AR,
    EASY_SJF,
    PUBLISHED_EASY,
    UNGUARDED_SHORTEST,
    Contest,
    agent_row,
    of_log,
    row,
)
from hpcsimkit.reproductions.rlbackfilling.data import Way
from hpcsimkit.reproductions.rlbackfilling.noise import ORDERS
from hpcsimkit.reproductions.rlbackfilling.published_numbers import TABLE_4, TABLE_5, Row4
from hpcsimkit.reproductions.sequences import OF_PROMISES, Standing
from hpcsimkit.results.statistics import p_value_text

__all__ = [
    "cross_table",
    "duels_table",
    "noise_table",
    "promises_table",
    "summary_table",
    "table_4",
    "trainings_table",
]


def table_4(contests: Sequence[Scores[Contest]], way: Way, further: Sequence[Way] = ()) -> Table:
    """Return mean bounded slowdowns with the paper's in italics, one row per log and base scheduler.

    Parameters
    ----------
    contests : sequence of Scores
        Scores, one for each log.
    way : Way
        Training protocol of the agent shown beside the paper's.
    further : sequence of Way
        Training protocols of further agents.
    """
    headings = [
        "log, base scheduler",
        "*EASY*",
        "EASY",
        "*EASY-AR*",
        "EASY-AR",
        "*agent*",
        "agent, drawn",
        "agent, greedy",
        *map(str, further),
    ]
    rows = [PUBLISHED_EASY, EASY_AR, agent_row(way), agent_row(way, greedy=True), *map(agent_row, further)]
    lines = []
    for scores in contests:
        name = scores.contest.trace.name
        for order, paper in _published_rows(name).items():
            ours = [number(scores.mean(row(order, each))) for each in rows]
            pairs = [cell for each in zip(map(number, paper), ours, strict=False) for cell in each]
            lines.append([f"{name}, {order.upper()}", *pairs, *ours[3:]])
    return Table(headings, lines)


def _published_rows(name: str) -> dict[str, tuple[float, ...]]:
    """Return the paper's EASY, EASY-AR and agent by base scheduler; NaN for missing numbers."""
    paper, none = TABLE_4.get(name, Row4(*[float("nan")] * 8)), float("nan")
    return {
        "fcfs": (paper.fcfs, paper.fcfs_ar, paper.fcfs_agent),
        "sjf": (paper.sjf, paper.sjf_ar, paper.sjf_agent),
        "wfp3": (paper.wfp3, none, none),
        "f1": (paper.f1, none, none),
    }


def summary_table(contests: Sequence[Scores[Contest]], orders: Sequence[str], way: Way) -> Table:
    """Return the key numbers: an agent, EASY, the best simple rules, reservation violations."""
    headings = [
        "log, base scheduler",
        "published EASY",
        "agent, drawn",
        "below EASY",
        "agent, greedy",
        "random agent",
        "shortest, unguarded",
        EASY_SJF,
        "promises the agent breaks",
    ]
    lines = []
    for scores in contests:
        for order in orders:
            easy, agent = row(order, PUBLISHED_EASY), row(order, agent_row(way))
            others = (agent_row(way, greedy=True), CHANCE, UNGUARDED_SHORTEST, EASY_SJF)
            means = [scores.mean(row(order, each)) for each in others]
            made, broken, _ = _promises(scores, agent)
            lines.append(
                [
                    f"{scores.contest.trace.name}, {order.upper()}",
                    number(scores.mean(easy)),
                    number(scores.mean(agent)),
                    f"{100 * (1 - scores.mean(agent) / scores.mean(easy)):.1f} %",
                    *map(number, means),
                    f"{100 * broken / made:.1f} %" if made else "",
                ]
            )
    return Table(headings, lines)


def duels_table(duels: Mapping[str, Mapping[str, Standing]]) -> Table:
    """Return agents with a few baselines of each, and the significance of the agent's advantage.

    Parameters
    ----------
    duels : mapping of str to mapping of str to Standing
        Comparisons by agent and baseline.
    """
    headings = ["agent", "rival", "agent minus rival", "relative", "p, paired t", "p, Wilcoxon", "better"]
    lines = []
    for agent, rivals in duels.items():
        for rival, standing in rivals.items():
            if (found := standing.against) is not None:
                difference, relative = f"{found.difference.mean:+.2f}", f"{100 * found.relative:+.1f} %"
                tests = p_value_text(found.t_test_holm), p_value_text(found.wilcoxon_holm)
                lines.append(
                    [agent, rival, difference, relative, *tests, "yes" if standing.is_beaten else "no"]
                )
    return Table(headings, lines)


def promises_table(scores: Scores[Contest], order: str) -> Table:
    """Return the guaranteed start times and the reservation violations of each row."""
    headings = ["scheduler", "promises", "broken", "share", "mean delay [min]"]
    lines = []
    for name in scores.contest.rows(order):
        made, broken, delay = _promises(scores, name)
        share = f"{100 * broken / made:.1f} %" if made else ""
        lines.append([name, _count(made), _count(broken), share, f"{delay / 60:.1f}" if broken else ""])
    return Table(headings, lines)


def _count(value: float) -> str:
    """Return a formatted number of reservations, which may be a mean over runs."""
    return f"{value:.0f}" if value == round(value) else f"{value:.1f}"


def _promises(scores: Scores[Contest], name: str) -> tuple[float, float, float]:
    """Return the numbers of reservations and of violations of a row, and the mean delay [s]."""
    made, broken, delay = (scores.of(name, measure) for measure in OF_PROMISES)
    total = float(broken.sum())
    return float(made.sum()), total, float((broken * delay).sum()) / max(total, 1.0)


def cross_table(contests: Sequence[Scores[Contest]], order: str, way: Way) -> Table:
    """Return the results of agents on other logs, one row per test log, the paper's numbers in italics."""
    names = [scores.contest.trace.name for scores in contests]
    paper = TABLE_5.get(order, {})
    lines = []
    for scores in contests:
        home = scores.contest.trace.name
        line = [home, number(scores.mean(row(order, PUBLISHED_EASY)))]
        for name in names:
            what = agent_row(way) if name == home else of_log(name)
            line += [number(paper.get(home, {}).get(name)), number(scores.mean(row(order, what)))]
        lines.append(line)
    headings = [cell for name in names for cell in (f"*of {name}*", f"of {name}")]
    return Table(["tested on", "published EASY", *headings], lines)


def noise_table(
    values: Mapping[tuple[str, str], float], levels: Sequence[str], rules: Sequence[str]
) -> Table:
    """Return mean bounded slowdowns by source of estimates; the best of each column is bold.

    Parameters
    ----------
    values : mapping of (str, str) to float
        Mean bounded slowdowns by level of noise and row.
    levels : sequence of str
        Rows of the table: levels of noise.
    rules : sequence of str
        EASY variants.
    """
    columns = [row(order, each) for each in rules for order in ORDERS]
    best = {name: min(values[level, name] for level in levels) for name in columns}
    lines = [[level, *_bold(values, level, best)] for level in levels]
    return Table(["estimates", *columns], lines)


def _bold(values: Mapping[tuple[str, str], float], level: str, best: Mapping[str, float]) -> Iterator[str]:
    for name, least in best.items():
        text = number(values[level, name])
        yield f"**{text}**" if values[level, name] == least else text


def trainings_table(trainings: Mapping[str, tuple[Curve, float]]) -> Table:
    """Return decisions, minutes and rewards of trainings, from learning curves and times [s] by agent."""
    lines = []
    for name, (curve, seconds) in trainings.items():
        tenth = max(1, len(curve["reward"]) // 10)
        rewards = (f"{part.mean():.3f}" for part in (curve["reward"][:tenth], curve["reward"][-tenth:]))
        lines.append([name, grouped(int(curve["steps"][-1])), f"{seconds / 60:.1f}", *rewards])
    return Table(["agent", "decisions", "minutes", "reward, first tenth", "reward, last tenth"], lines)
