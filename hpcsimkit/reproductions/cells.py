"""Table cells, and the table of standings, shared by the pages of several reproductions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.experiments.tables import Table
from hpcsimkit.reproductions.scores import Standing
from hpcsimkit.results.statistics import Comparison, Mean, p_value_text


def number(value: float | None) -> str:
    """Return a mean with two decimal places, as in papers.

    >>> number(333.1956), number(None), number(float("nan"))
    ('333.20', '', '')
    """
    return "" if value is None or not math.isfinite(value) else f"{value:.2f}"


def spread_cell(values: NDArray[np.float64], by: float = 1.0, form: Callable[[float], str] = number) -> str:
    """Return the text of a mean over seeds with minimum and maximum; for equal values, of the number only.

    >>> spread_cell(np.array([1.0, 2.0, 6.0])), spread_cell(np.array([3.0]), by=2)
    ('3.00 (1.00 to 6.00)', '6.00')
    """
    mean, least, most = (form(float(each) * by) for each in (values.mean(), values.min(), values.max()))
    return mean if least == most else f"{mean} ({least} to {most})"


def standings_table(rows: Mapping[str, Standing], one: str) -> Table:
    """Return a table of means with intervals, and of differences between one policy and the others.

    Parameters
    ----------
    rows : mapping of str to Standing
        Rows returned by :func:`~hpcsimkit.reproductions.scores.standings`.
    one : str
        Name in the heading of the policy that is compared with the others.

    Examples
    --------
    >>> from hpcsimkit.reproductions.scores import standings
    >>> values = {"a": np.array([1.0, 2.0, 4.0]), "b": np.array([2.0, 4.0, 5.0])}
    >>> for row in standings_table(standings(values, "a"), "a")[1]:
    ...     print(*filter(None, row), sep=" | ")
    a | 2.33 | 1.33 to 4.00
    b | 3.67 | 2.00 to 4.67 | -1.33 | -36.4 % | 0.0572 | 0.25
    """
    headings = ["scheduler", "mean", "95 % interval", f"{one} minus it", "relative"]
    headings += ["p, paired t", "p, Wilcoxon"]
    return Table(headings, [[name, *_cells(standing)] for name, standing in rows.items()])


def mean_cells(mean: Mean) -> list[str]:
    """Return the cells of a mean and of its interval.

    >>> mean_cells(Mean(2.0, 1.5, 2.25))
    ['2.00', '1.50 to 2.25']
    """
    return [number(mean.mean), f"{number(mean.low)} to {number(mean.high)}"]


def _cells(standing: Standing) -> list[str]:
    beside = [""] * 4 if standing.against is None else comparison_cells(standing.against)
    return [*mean_cells(standing.mean), *beside]


def comparison_cells(found: Comparison) -> list[str]:
    """Return the cells of a difference, its share of the other mean, and both corrected p-values."""
    difference, relative = f"{found.difference.mean:+.2f}", per_cent(found.relative)
    return [difference, relative, p_value_text(found.t_test_holm), p_value_text(found.wilcoxon_holm)]


def per_cent(share: float) -> str:
    """Return a relative difference as a percentage.

    >>> per_cent(-0.1234), per_cent(0.5)
    ('-12.3 %', '+50.0 %')
    """
    return f"{100 * share:+.1f} %"
