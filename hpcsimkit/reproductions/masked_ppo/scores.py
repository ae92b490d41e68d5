"""Measurements of all runs, in the order of days."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MEASURES", "UTILISATION", "WAIT", "WEIGHTED", "Scores"]

Floats = NDArray[np.float64]

WAIT, UTILISATION, WEIGHTED = MEASURES = ("wait", "utilisation", "weighted")
"""Mean wait [min], the paper's utilisation [%], and the one weighted by time and capacity [%]."""


@dataclass(frozen=True)
class Scores:
    """Measurements of all runs.

    Parameters
    ----------
    days : sequence of str
        Days of the measurements.
    rows : mapping of str to array of float, shape (runs, days, 3)
        Runs of each row of the tables, with measures in the order of `MEASURES`.
    """

    days: Sequence[str]
    rows: Mapping[str, Floats]

    @classmethod
    def of(cls, outcomes: Iterable[tuple[str, Sequence[Sequence[Any]]]], days: Sequence[str]) -> Scores:
        """Gather outcomes of tasks: pairs of a row, and its ``[day, seed, wait, utilisation, weighted]``.

        >>> scores = Scores.of([("a", [["d1", 0, 1.0, 2.0, 3.0], ["d2", 0, 5.0, 6.0, 7.0]])], ["d2", "d1"])
        >>> scores.values("a", "wait").tolist()
        [[5.0, 1.0]]
        """
        rows: dict[str, list[Floats]] = {}
        for row, outcome in outcomes:
            runs: dict[int, dict[str, Sequence[float]]] = {}
            for day, seed, *measured in outcome:
                runs.setdefault(seed, {})[day] = measured
            rows.setdefault(row, []).extend(np.array([run[day] for day in days]) for run in runs.values())
        return cls(days, {row: np.stack(runs) for row, runs in rows.items()})

    def on(self, days: Sequence[str]) -> Scores:
        """Return the scores of some days."""
        places = [self.days.index(day) for day in days]
        return Scores(days, {row: values[:, places] for row, values in self.rows.items()})

    def values(self, row: str, measure: str) -> Floats:
        """Return the values of a measure, shape (runs, days)."""
        return self.rows[row][:, :, MEASURES.index(measure)]

    def by_day(self, row: str, measure: str) -> Floats:
        """Return the mean over runs, shape (days,)."""
        return self.values(row, measure).mean(axis=0)

    def mean(self, row: str, measure: str) -> float:
        """Return the mean over runs and days."""
        return float(self.values(row, measure).mean())

    def spread(self, row: str, measure: str) -> float | None:
        """Return the standard deviation of the means of runs, or None for a single run."""
        of_runs = self.values(row, measure).mean(axis=1)
        return float(of_runs.std(ddof=1)) if len(of_runs) > 1 else None
