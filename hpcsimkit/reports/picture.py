"""Pictures of a report: a figure with its texts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hpcsimkit.reports.figures import new_figure

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0
"""Width of every figure [inches], equal so that the font sizes are equal."""


class Picture(NamedTuple):
    """Figure of the report with its texts.

    Attributes
    ----------
    name : str
        Name of the file, one word.
    title : str
        Title of the figure.
    reading : str
        Explanation of the figure, in a sentence or two.
    caption : str
        Caption with units, and with notes on omitted, thinned or binned data.
    figure : Figure
        Figure to show.
    tables : tuple of (str, pandas.DataFrame)
        Further tables with their titles; cells are texts, the index is the first column.
    """

    name: str
    title: str
    reading: str
    caption: str
    figure: Figure
    tables: tuple[tuple[str, pandas.DataFrame], ...] = ()


def grid_figure(rows: int, columns: int, *, height: float, gap: float, left: float, between: float) -> Figure:
    """Return a figure of many small axes [inches], placed directly because layout solvers are slow."""
    top, bottom, right = 0.55, 0.6, 0.2
    total = top + rows * height + (rows - 1) * gap + bottom
    width = (WIDTH - left - right - (columns - 1) * between) / columns
    place = {
        "left": left / WIDTH,
        "right": 1 - right / WIDTH,
        "top": 1 - top / total,
        "bottom": bottom / total,
        "wspace": between / width,
        "hspace": gap / height,
    }
    return new_figure(WIDTH, total, rows, columns, layout="none", gridspec_kw=place)


def without_time(ax: Axes) -> None:
    """Remove the tick labels and the name of the time axis, which the axes below have."""
    ax.set_xlabel("")
    ax.tick_params(labelbottom=False)
