"""What a sweep found: the table of its cells, statistics and pictures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hpcsimkit.experiments.questions.question import Answer
from hpcsimkit.reports.sweep.pictures import draw_metric
from hpcsimkit.reports.sweep.remarks import remarks_on
from hpcsimkit.reports.sweep.statistics import Statistics
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.reports.sweep.texts import headline
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Swept"]


@dataclass(frozen=True, eq=False, repr=False)
class Swept(Statistics, Answer):
    """Cells of a sweep, with their statistics and pictures.

    Parameters
    ----------
    frame : DataFrame
        A row for each cell: its axes and its metrics.
    data : SweepTable
        The same cells for statistics: with the axes that repeat them, and without copies.
    results : mapping of str to Result
        Results of the first cell of each policy by policy, for plots. Default: none.
    """

    stem = "sweep"
    names = ("cells",)

    frame: pandas.DataFrame
    data: SweepTable
    results: Mapping[str, Result] = field(default_factory=dict)

    @property
    def cells(self) -> SweepTable:
        """The cells for statistics."""
        return self.data

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each cell."""
        return self.frame

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``cells``."""
        return {"cells": self.frame}

    def remarks(self) -> list[str]:
        """Return remarks on the cells: failures, waits that say nothing, and copies."""
        return list(remarks_on(self.cells))

    def figure(self, metric: str | None = None) -> Figure | None:
        """Return the picture of a metric, by default the first one; None if nothing can be drawn."""
        names = [metric] if metric is not None else list(self.cells.metrics[:1])
        pictures = (picture for name in names for picture in draw_metric(self.cells, name))
        picture = next(pictures, None)
        return None if picture is None else picture.figure

    def plot(self, metric: str | None = None) -> Any:
        """Draw the means of a metric, by default the first one, over the values of each numeric axis."""
        import numpy as np

        from hpcsimkit.reports.figures import in_pyplot

        with in_pyplot():
            drawn = self.figure(metric)
        return np.array([] if drawn is None else drawn.axes, dtype=object)

    def lines(self) -> Iterator[str]:
        """Yield the summary and remarks."""
        yield headline(self.cells)
        yield from self.remarks()

    def _repr_html_(self) -> str:
        """Return the summary, the cells and the picture, for notebooks."""
        from hpcsimkit.reports.views import answer_html

        shown = {"summary": self.summary(), f"{len(self.frame)} cells": self.frame}
        return answer_html("Sweep", shown, self.figure)
