"""Expressions of a plan: numbers, texts and truths from measured and published values.

An expression is one of Jinja2's sandbox. It knows the variables of its comparison, the methods of
:class:`Quantities`, and nothing else.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.kernel.guard import message_of
from hpcsimkit.reproductions.cells import number, spread_cell
from hpcsimkit.reproductions.papers import PAPERS
from hpcsimkit.reproductions.plans.plan import PublishedTable, paper_files
from hpcsimkit.reproductions.scores import Scores, Standing, Verdict
from hpcsimkit.reproductions.sequences import BSLD
from hpcsimkit.reproductions.targets import same_digits
from hpcsimkit.reproductions.templates import METHODS, sandbox
from hpcsimkit.results.statistics import SIGNIFICANT, Mean, mean_of, ratio_of_means

if TYPE_CHECKING:
    from hpcsimkit.reproductions.plans.parts import Parts


FUNCTIONS = [name.removeprefix("Quantities.") for name in METHODS if name.startswith("Quantities.")]
"""Names of the functions of expressions: those that the sandbox lets them call."""


class Quantities:
    """Functions of the expressions on a comparison; a row is a policy, or a family of agents.

    Examples
    --------
    >>> import numpy as np
    >>> scores = Scores(None, {"ours": {BSLD: np.array([2.0, 4.0])}, "SJF": {BSLD: np.array([3.0, 5.0])}})
    >>> found = Quantities(scores, {})
    >>> found.value("below(mean('ours'), mean('SJF'))", {}), found.text("mean(row)", {"row": "ours"})
    (25.0, '3.00')
    >>> found.value("mean.__func__", {})
    Traceback (most recent call last):
    ...
    hpcsimkit.errors.UsageError: expression "mean.__func__": SecurityError: access to attribute '__func__' \
of 'method' object is unsafe.
    """

    def __init__(
        self,
        scores: Scores,
        tables: Mapping[str, PublishedTable],
        others: Callable[[], Iterable[Scores]] = list,
    ) -> None:
        self.scores = scores
        self.tables = tables
        self.others = others

    def value(self, expression: str, variables: Mapping[str, Any]) -> Any:
        """Return the value of an expression.

        Raises
        ------
        UsageError
            It is none, or fails.
        """
        from jinja2 import Undefined

        functions = {name: getattr(self, name) for name in FUNCTIONS}
        if taken := sorted(functions.keys() & variables.keys()):
            raise UsageError(f"a variable has the name of a function of expressions: {taken[0]!r}")
        try:
            found = _compiled(expression)(**{**variables, **functions})
            if isinstance(found, Undefined):
                str(found)  # raises what is wrong: an unknown name, or an attribute that is not safe
            return found
        except Exception as error:
            raise UsageError(f'expression "{expression}": {message_of(error)}') from None

    def text(self, expression: str, variables: Mapping[str, Any]) -> str:
        """Return the text of an expression; numbers have two decimals, NaN and None are empty."""
        value = self.value(expression, variables)
        return number(value) if value is None or isinstance(value, float) else str(value)

    # --- functions ------------------------------------------------------------------------------------------

    def matching(self, pattern: str) -> list[str]:
        """Return the rows whose names match a regular expression as a whole."""
        contest, rows = self.scores.contest, self.scores.values
        families = contest.families() if contest is not None else {}
        return [row for row in families or rows if re.fullmatch(pattern, row)]

    def has(self, row: str) -> bool:
        """Return whether a row was measured."""
        return bool(self.scores.members(row))

    def mean(self, row: str, measure: str = BSLD) -> float:
        """Return the mean of a measure over all agents and sequences of a row; NaN if it does not exist."""
        return self.scores.mean(row, measure)

    def interval(self, row: str, *, minus: str = "", over: str = "") -> Mean:
        """Return the mean of a row, or its difference from or ratio to that of another, with its interval.

        Sequences are paired.
        """
        values = self.scores.of(row)
        if over:
            return ratio_of_means(values, self.scores.of(over))
        return mean_of(values - self.scores.of(minus) if minus else values)

    def spread(self, row: str, measure: str = BSLD) -> float | None:
        """Return the standard deviation over the agents of a row; None for a single one."""
        means = self.scores.of_agents(row, measure)
        return float(means.std(ddof=1)) if len(means) > 1 else None

    def cell(self, row: str, measure: str = BSLD, by: float = 1.0) -> str:
        """Return the mean of a row; of several agents also the least and the largest."""
        return spread_cell(self.scores.of_agents(row, measure), by) if self.has(row) else ""

    def best_of(self, rows: Iterable[str], measure: str = BSLD, *, highest: bool = False) -> str:
        """Return the row with the lowest mean, or with the highest one."""
        known = [row for row in rows if self.has(row)]
        return (max if highest else min)(known, key=lambda row: self.mean(row, measure))

    def worst(self, row: str, measure: str) -> float:
        """Return the lowest mean of the agents of a row."""
        return float(self.scores.of_agents(row, measure).min())

    def rank(self, row: str, rows: Iterable[str], measure: str = BSLD) -> int:
        """Return the place of a row among some by its mean, from 0; equal ones stay in their order."""
        return sorted(rows, key=lambda each: self.mean(each, measure)).index(row)

    def below(self, value: float, base: float) -> float:
        """Return how far a value is below a base [%]; NaN of a base of 0, as of waits that no job has."""
        return 100 * (base - value) / base if base else math.nan

    def promises(self, row: str) -> Sequence[float]:
        """Return the numbers of reservations and of violations of a row, and the mean delay [s]."""
        return self.scores.promises(row)

    def against(
        self, row: str, rival: str, rivals: Sequence[str] | None = None, measure: str = BSLD
    ) -> Standing:
        """Compare a row with a rival; p-values are corrected for the number of `rivals`, by default one."""
        return self.scores.standings(row, rivals or [rival], measure)[rival]

    def verdicts(self, rival: str, rows: Sequence[str], measure: str = BSLD) -> dict[str, Verdict]:
        """Compare rows with a rival, by row; p-values are corrected for the number of rows."""
        return self.scores.verdicts(rival, rows, measure)

    def published(self, table: str, row: Any, column: Any) -> float:
        """Return a published number, of this paper or of a ``paper:table``; NaN if there is none."""
        paper, _, name = table.rpartition(":")
        tables = paper_files(PAPERS[paper])[1] if paper else self.tables
        return tables[name].number(str(row), str(column))

    def at(self, comparison: str = "", **variables: Any) -> Quantities:
        """Return the functions on another comparison of the log, or on one with other values of variables."""
        contest = self.scores.contest
        wanted = {**contest.variables, **variables}
        named = [] if comparison else contest.plan.each
        compared = [name for name in named if isinstance(wanted[name], str | int | float)]
        for other in self.others():
            there = other.contest
            same = there.protocol == (comparison or contest.protocol) and there.trace is contest.trace
            if same and all(there.variables.get(name) == wanted[name] for name in compared):
                return Quantities(other, self.tables, self.others)
        return Quantities(Scores(None, {}), self.tables)

    def effect(self, row: str, base: str, rows: Sequence[str]) -> str:
        """Return the ratio of a row to a base with its interval, ``=`` if no sequence differs.

        It is bold if the p-value of the paired t-test, corrected for `rows`, is below 0.05.
        """
        if not self.has(row):
            return ""
        if np.array_equal(self.scores.of(row), self.scores.of(base)):
            return "="
        found, rivals = (
            self.interval(row, over=base),
            [each for each in rows if self.has(each) and each != base],
        )
        against = self.scores.standings(base, rivals)[row].against
        ratio, low, high = map(_digits, (found.mean, found.low, found.high))
        ratio = f"**{ratio}**" if against is not None and against.t_test_holm < SIGNIFICANT else ratio
        return ratio if math.isnan(found.low) else f"{ratio} [{low}, {high}]"

    def same_digits(self, ours: float, paper: float) -> bool:
        """Return whether two numbers have the same two decimals, rounded or truncated."""
        return same_digits(ours, paper)


def _digits(value: float) -> str:
    """Return a ratio with two decimals, or with two significant digits if it is below 0.1.

    >>> _digits(0.1), _digits(0.0173), _digits(12.345)
    ('0.10', '0.017', '12.35')
    """
    return f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"


@cache
def _compiled(expression: str) -> Any:
    return sandbox().compile_expression(expression, undefined_to_none=False)


def variables_of(scores: Scores, parts: Parts, contests: Sequence[Scores]) -> Parts:
    """Return the parts of an expression: the variables of the comparison, and those of all on other logs.

    ``log`` and ``about`` are the log and its name with the base scheduler, ``test`` the words on the test and
    ``sequences`` the number of its sequences, ``rows`` the rows, ``agents`` those of agents, ``groups`` those
    of each group, and ``logs`` the names of all logs.
    """
    contest = scores.contest
    families = contest.families()
    groups = {each.group for each in contest.rows.values()}
    family_of = {each.name: family for family, of in families.items() for each in of}
    known = {
        "log": contest.trace,
        "about": contest.about,
        "label": contest.label,
        "test": contest.plan.test or contest.plan.words,
        "sequences": len(contest.sequences.scenarios),
        "rows": list(dict.fromkeys(family_of.get(row, row) for row in scores.values)),
        "groups": defaultdict(list, {name: list(contest.families(name)) for name in groups}),
        "agents": [row for row, of in families.items() if of[0].learner is not None],
        "logs": list(dict.fromkeys(each.contest.trace.name for each in contests)),
    }
    return parts.beside(known)
