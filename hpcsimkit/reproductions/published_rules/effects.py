"""Effects of single rules: means on the same sequences, relative to those under published semantics."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reproductions.published_rules.rules import PUBLISHED
from hpcsimkit.reproductions.published_rules.runs import Cell
from hpcsimkit.results.statistics import SIGNIFICANT, Mean, compared, mean_of, ratio_of_means

__all__ = ["Effect", "Floats", "Measured", "effects", "effects_csv"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Effect:
    """Comparison of a scheduler with the published one.

    Parameters
    ----------
    mean : float
        Mean bounded slowdown.
    ratio : Mean
        Ratio of the mean to the published one, with its interval; sequences are paired.
    difference : Mean
        Mean difference from the published scheduler, sequence by sequence.
    p : float
        p-value of the paired t-test of the differences, corrected for all rows (Holm); NaN for the published
        row.
    same : bool
        Whether no sequence differs.
    """

    mean: float
    ratio: Mean
    difference: Mean
    p: float
    same: bool

    def words(self) -> str:
        """Return ratio and interval, bold if the corrected p-value is below 0.05.

        >>> Effect(33.4, Mean(0.1, 0.05, 0.15), Mean(-300.0, -310.0, -290.0), 0.001, False).words()
        '**0.10** [0.05, 0.15]'
        >>> Effect(33.4, Mean(1.0, 1.0, 1.0), Mean(0.0, 0.0, 0.0), 1.0, True).words()
        '='
        """
        if self.same:
            return "="
        ratio, low, high = map(_digits, (self.ratio.mean, self.ratio.low, self.ratio.high))
        ratio = f"**{ratio}**" if self.p < SIGNIFICANT else ratio
        return ratio if np.isnan(self.ratio.low) else f"{ratio} [{low}, {high}]"


def _digits(value: float) -> str:
    """Return a ratio with two decimals, or with two significant digits if it is below 0.1.

    >>> _digits(0.1), _digits(0.0173), _digits(12.345)
    ('0.10', '0.017', '12.35')
    """
    return f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"


def effects(values: Mapping[str, Floats]) -> dict[str, Effect]:
    """Compare all rows with the published one, on the same sequences.

    Examples
    --------
    >>> found = effects({"published": np.array([2.0, 4.0]), "other": np.array([1.0, 3.0])})
    >>> found["other"].mean, round(found["other"].ratio.mean, 3), found["published"].same
    (2.0, 0.667, True)
    """
    base = values[PUBLISHED]
    tests = compared(base, {row: each for row, each in values.items() if row != PUBLISHED})
    return {
        row: Effect(
            mean=float(each.mean()),
            ratio=ratio_of_means(each, base),
            difference=mean_of(each - base),
            p=tests[row].t_test_holm if row in tests else float("nan"),
            same=bool(np.array_equal(each, base)),
        )
        for row, each in values.items()
    }


@dataclass(frozen=True)
class Measured:
    """Measurements of all simulations.

    Parameters
    ----------
    runs : mapping of Cell to mapping of str to array of float, shape (sequences,)
        Mean bounded slowdowns of the published tests, by scheduler.
    seeds : mapping of Cell to mapping of str to array of float, shape (seeds,)
        Means of tests with many seeds, by scheduler.
    whole : bool
        Whether tests have all their sequences, as the comparison with published numbers requires.
    """

    runs: Mapping[Cell, Mapping[str, Floats]]
    seeds: Mapping[Cell, Mapping[str, Floats]]
    whole: bool

    def mean(self, cell: Cell, row: str = PUBLISHED) -> float:
        """Return a mean, or NaN if it was not simulated."""
        values = self.runs.get(cell, {})
        return float(values[row].mean()) if row in values else float("nan")

    def cells(self, code: str, *, backfilling: bool) -> list[Cell]:
        """Return the cells of a code base, by log."""
        return [cell for cell in self.runs if (cell.code, cell.backfilling) == (code, backfilling)]


def effects_csv(measured: Measured) -> bytes:
    """Return all effects as a file of comma-separated values."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        [
            "code",
            "log",
            "order",
            "backfilling",
            "scheduler",
            "sequences",
            "mean_bounded_slowdown",
            "ratio",
            "ratio_low",
            "ratio_high",
            "difference",
            "difference_low",
            "difference_high",
            "p_paired_t_holm",
        ]
    )
    for cell, values in measured.runs.items():
        writer.writerows(_lines(cell, values))
    return file.getvalue().encode()


def _lines(cell: Cell, values: Mapping[str, Floats]) -> Iterable[list[str]]:
    for row, effect in effects(values).items():
        intervals = (astuple(each) for each in (effect.ratio, effect.difference))
        numbers = (effect.mean, *chain(*intervals), effect.p)
        yield [
            cell.code,
            cell.log,
            cell.order,
            "yes" if cell.backfilling else "no",
            row,
            str(len(values[row])),
            *("" if np.isnan(number) else f"{number:.6g}" for number in numbers),
        ]
