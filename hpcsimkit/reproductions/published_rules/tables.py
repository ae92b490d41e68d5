"""Tables: published numbers, single rules, untrained policies, seeds, minimal cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.published_rules.effects import Floats, Measured, effects
from hpcsimkit.reproductions.published_rules.minimal_cases import CASES
from hpcsimkit.reproductions.published_rules.published_numbers import (
    AGENTS,
    BACKFILLING_ORDERS,
    BASES,
    READ_ME_ORDERS,
    Base,
    same_digits,
)
from hpcsimkit.reproductions.published_rules.rules import (
    EASY_SJF,
    ESTIMATES,
    GUARDED,
    GUARDED_CHANCE,
    HEAD,
    MEANT,
    PUBLISHED,
    RULES,
    TEXTBOOK,
    UNFIT,
    UNFIT_FREE,
    UNGUARDED,
    UNGUARDED_CHANCE,
)
from hpcsimkit.reproductions.published_rules.runs import AS_CODED, Cell

__all__ = [
    "agents_of",
    "as_coded_table",
    "backfiller_table",
    "cases_table",
    "inspector_table",
    "least_of",
    "read_me_table",
    "recomputed",
    "recomputed_tables",
    "rules_table",
    "seeds_table",
    "share_of_gain",
    "spread_of_ratios",
]

# --- published numbers, recomputed ---------------------------------------------------------------------


def recomputed(base: Base, measured: Measured) -> float:
    """Return the measured mean of a published base scheduler, or NaN if its log is missing."""
    cell = Cell(base.code, base.log, base.order, base.backfilling)
    return measured.mean(cell, ESTIMATES if base.run_times else PUBLISHED)


def recomputed_tables(measured: Measured) -> Iterator[tuple[str, Table]]:
    """Yield a table per source: published numbers, with differing measured ones in brackets."""
    for code, columns in (
        ("schedinspector", [("sjf", False, False)]),
        (
            "rlbackfilling",
            [
                *((order, True, False) for order in BACKFILLING_ORDERS),
                ("fcfs", True, True),
                ("sjf", True, True),
            ],
        ),
        ("rlscheduler", [(order, bf, False) for bf in (False, True) for order in READ_ME_ORDERS]),
    ):
        known = {
            (base.log, base.order, base.backfilling, base.run_times): base
            for base in BASES
            if base.code == code
        }
        logs = dict.fromkeys(base.log for base in BASES if base.code == code)
        rows = [
            [log, *(_beside(known.get((log, *column)), measured) for column in columns)]
            for log in logs
            if any(cell.log == log for cell in measured.runs)
        ]
        yield code, Table(["log", *(_heading(*column) for column in columns)], rows)


def _heading(order: str, backfilling: bool, run_times: bool) -> str:
    return order.upper() + " + EASY" * backfilling + "-AR" * run_times


def _beside(base: Base | None, measured: Measured) -> str:
    if base is None:
        return ""
    ours = recomputed(base, measured)
    return number(base.value) if same_digits(ours, base.value) else f"{number(base.value)} ({number(ours)})"


# --- one rule at a time --------------------------------------------------------------------------------


def rules_table(measured: Measured, code: str, *, backfilling: bool) -> Table:
    """Return the effect of each rule: the ratio of mean bounded slowdowns to the published one."""
    cells = [cell for cell in measured.cells(code, backfilling=backfilling) if HEAD in measured.runs[cell]]
    shown = [row for row in RULES if any(row in measured.runs[cell] for cell in cells)]
    lines = []
    for cell in cells:
        values = {row: each for row, each in measured.runs[cell].items() if row in (PUBLISHED, *shown)}
        found = effects(values)
        words = [found[row].words() if row in found else "" for row in shown]
        lines.append([f"{cell.log} {cell.order.upper()}", number(found[PUBLISHED].mean), *words])
    return Table(["scheduler", PUBLISHED, *shown], lines)


def as_coded_table(measured: Measured) -> Table:
    """Return WFP3 and UNICEF as coded, as meant, and as meant under textbook semantics."""
    lines = []
    for backfilling in (False, True):
        for cell in measured.cells("rlscheduler", backfilling=backfilling):
            if cell.order in AS_CODED:
                found = effects(measured.runs[cell])
                both = [
                    text
                    for row in (MEANT, TEXTBOOK)
                    for text in (number(found[row].mean), found[row].words())
                ]
                name = f"{cell.log} {cell.order.upper()}{' + EASY' * backfilling}"
                lines.append([name, number(found[PUBLISHED].mean), *both])
    return Table(["scheduler", "as coded", "as meant", "ratio", "as meant, textbook", "ratio"], lines)


# --- untrained policies ----------------------------------------------------------------------------------


def share_of_gain(base: float, agent: float | None, other: float) -> float:
    """Return the gain of a policy over the base as a share of the agent's gain [%].

    NaN if no agent was published, or if the agent is not below its base.
    >>> round(share_of_gain(333.19, 27.97, 33.44), 1), share_of_gain(85.63, 105.59, 61.23)
    (98.2, nan)
    """
    if agent is None or agent >= base:
        return float("nan")
    return 100 * (base - other) / (base - agent)


def _share(base: float, agent: float | None, other: float) -> str:
    share = share_of_gain(base, agent, other)
    if np.isnan(share):
        return ""
    return f"{share:.0f} %"


def agents_of(code: str) -> dict[tuple[str, str, bool], float]:
    """Return the means of published agents by log, order and backfilling."""
    return {(each.log, each.order, each.backfilling): each.value for each in AGENTS if each.code == code}


def inspector_table(measured: Measured, *, published: bool) -> Table:
    """Return SchedInspector's bases and agents beside untrained policies.

    Parameters
    ----------
    measured : Measured
        Measurements.
    published : bool
        Whether to show the rows with a published agent, or else all other rows.
    """
    agents = agents_of("schedinspector")
    rows = (UNFIT, UNFIT_FREE, TEXTBOOK)
    lines = []
    for cell in measured.cells("schedinspector", backfilling=False):
        agent = agents.get((cell.log, cell.order, False))
        if (agent is not None) is not published or cell.order == "fcfs":
            continue
        base, (unfit, free, textbook) = measured.mean(cell), (measured.mean(cell, row) for row in rows)
        easy = measured.mean(Cell(cell.code, cell.log, cell.order, True), TEXTBOOK)
        line = [f"{cell.log} {cell.order.upper()}", number(base)]
        line += [number(agent)] * published + list(map(number, (unfit, free, textbook, easy)))
        if published:
            line += [_share(base, agent, unfit), _share(base, agent, textbook)]
        lines.append(line)
    headings = ["base", "committed"] + ["*agent*"] * published
    headings += [UNFIT, UNFIT_FREE, "not committed", "not committed + EASY"]
    return Table(headings + [f"share: {UNFIT}", "share: not committed"] * published, lines)


def backfiller_table(measured: Measured) -> Table:
    """Return RLBackfilling's EASY and agents beside untrained policies."""
    agents = agents_of("rlbackfilling")
    rows = (UNGUARDED_CHANCE, UNGUARDED, GUARDED_CHANCE, GUARDED, TEXTBOOK, EASY_SJF)
    lines = []
    for cell in measured.cells("rlbackfilling", backfilling=True):
        if cell.order not in ("fcfs", "sjf"):
            continue
        base, agent = measured.mean(cell), agents.get((cell.log, cell.order, True))
        means = {row: measured.mean(cell, row) for row in rows}
        shares = [_share(base, agent, means[row]) for row in (UNGUARDED, GUARDED, EASY_SJF)]
        name = f"{cell.log} {cell.order.upper()}"
        lines.append([name, number(base), number(agent), *map(number, means.values()), *shares])
    shared = [f"share: {row}" for row in (UNGUARDED, GUARDED, EASY_SJF)]
    return Table(["base", "published EASY", "*agent*", *rows, *shared], lines)


def least_of(measured: Measured, log: str, row: str, *, backfilling: bool) -> tuple[float, str]:
    """Return the lowest mean of RLScheduler's five base schedulers in a row, and the scheduler's name."""
    means = (
        (measured.mean(Cell("rlscheduler", log, order, backfilling), row), order.upper())
        for order in READ_ME_ORDERS
    )
    return min(means)


def read_me_table(measured: Measured) -> Table:
    """Return RLScheduler's agents beside its best base scheduler, published and textbook."""
    agents = agents_of("rlscheduler")
    lines = []
    for backfilling in (False, True):
        for log in dict.fromkeys(cell.log for cell in measured.cells("rlscheduler", backfilling=backfilling)):
            agent = agents.get((log, "", backfilling))
            both = [least_of(measured, log, row, backfilling=backfilling) for row in (PUBLISHED, TEXTBOOK)]
            words = [f"{number(mean)} ({order})" for mean, order in both]
            times = "" if agent is None else f"{agent / both[1][0]:.2f}"
            lines.append([f"{log}{' + EASY' * backfilling}", number(agent), *words, times])
    return Table(["log", "*agent*", "best as published", "best by the textbook", "*agent* / that"], lines)


# --- seeds ---------------------------------------------------------------------------------------------


def spread_of_ratios(means: Floats) -> float:
    """Return the factor that bounds 95 % of the ratios of two tests of a scheduler with different seeds.

    >>> spread_of_ratios(np.array([100.0, 100.0, 120.0]))
    1.2
    """
    ratios = means[:, None] / means[None, :]
    others = ratios[~np.eye(len(means), dtype=bool)]
    return float(np.percentile(np.maximum(others, 1 / others), 95, method="higher"))


def seeds_table(measured: Measured) -> Table:
    """Return the variation of the means of published tests over seeds."""
    known = {
        (base.code, base.log, base.order, base.backfilling): base.value
        for base in BASES
        if not base.run_times
    }
    lines = []
    for cell, values in measured.seeds.items():
        means, textbook = values[PUBLISHED], values[TEXTBOOK]
        paper = known.get((cell.code, cell.log, cell.order, cell.backfilling))
        spread = float(means.std(ddof=1))
        low, high = np.percentile(textbook / means, [2.5, 97.5])
        below = "" if paper is None else f"{np.count_nonzero(means < paper)} of {len(means)}"
        lines.append(
            [
                f"{cell.log} {cell.order.upper()}{' + EASY' * cell.backfilling}",
                number(float(means.mean())),
                number(spread),
                f"{100 * spread / means.mean():.0f} %",
                number(float(means.min())),
                number(float(means.max())),
                number(paper),
                below,
                f"{spread_of_ratios(means):.2f}",
                f"{textbook.mean() / means.mean():.2f}",
                f"{low:.2f} to {high:.2f}",
            ]
        )
    return Table(
        [
            "scheduler",
            "mean over seeds",
            "standard deviation",
            "of the mean",
            "least",
            "most",
            "*paper*",
            "seeds below it",
            "two seeds differ by a factor of",
            "textbook / published",
            "95 % of seeds",
        ],
        lines,
    )


# --- minimal cases -------------------------------------------------------------------------------------


def cases_table() -> Table:
    """Return the minimal cases with their start times."""
    lines = []
    for case in CASES:
        jobs = " ".join(f"({', '.join(map(str, job))})" for job in case.jobs)
        scheduler = case.order.upper() + " + EASY" * case.backfilling
        starts = [
            _times(result.start_time.tolist()) for result in (case.by_published_rules, case.by_the_textbook)
        ]
        lines.append([f"{case.name}: {case.rule}", scheduler, str(case.nodes), jobs, *starts])
    return Table(["case", "scheduler", "nodes", "jobs", "starts, published", "starts, textbook"], lines)


def _times(times: Sequence[int]) -> str:
    return ", ".join(map(str, times))
