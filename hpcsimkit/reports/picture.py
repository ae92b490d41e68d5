"""Pictures of a report: a figure with its texts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["WIDTH", "Picture"]

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
