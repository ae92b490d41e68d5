"""Report of a sweep: one page, pictures, and tables as CSV and LaTeX."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.io.documents import json_record
from hpcsimkit.io.files import make_folder, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.figures import format_count, line_styles, save_figure
from hpcsimkit.reports.page import rendered_page, shown_picture, swatch
from hpcsimkit.reports.picture import Picture
from hpcsimkit.reports.sweep.curves import draw_curves
from hpcsimkit.reports.sweep.pictures import draw_metric
from hpcsimkit.reports.sweep.remarks import remarks_on, statistical_remarks
from hpcsimkit.reports.sweep.summaries import differences
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.reports.sweep.texts import Table, headline_table, joined, tables_of, value_text
from hpcsimkit.results.metrics import METRICS

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["write_sweep_report"]

MOST_ROWS = 100
"""Largest number of rows of a table on the page; the files have all of them."""

Sections = Mapping[str, tuple[list[Table], list[Picture]]]


def write_sweep_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the report of a finished sweep into its folder.

    The report is ``report.html``, one self-contained page; ``pictures`` as PNG and SVG, and as PDF with the
    width of one or two columns of a paper; ``tables`` as CSV with all digits and as LaTeX (booktabs).

    Parameters
    ----------
    folder : path
        Folder with ``cells.parquet`` (or ``cells.csv``) and ``sweep.json``.

    Returns
    -------
    list of Path
        Paths of the written files, the page last.

    Raises
    ------
    UsageError
        The folder is not that of a finished sweep, or a file in it is damaged.
    WorkloadError
        A file cannot be written.
    """
    place = Path(folder)
    table = SweepTable.read(place)
    for name in ("pictures", "tables"):
        make_folder(place / name, parents=False)
    remarks = _remarks(table)
    files = list(_table_files(place / "tables", headline_table(table), remarks))
    curves = list(_curves(place, table))
    for kind in ("png", "svg", "pdf"):
        files += _picture_files(place / "pictures", curves, kind)
    sections = {}
    for metric in table.metrics:
        tables, pictures = list(tables_of(table, metric)), [*curves, *draw_metric(table, metric)]
        curves = []
        sections[metric] = tables, pictures
        for each in tables:
            files += _table_files(place / "tables", each, remarks)
        for kind in ("png", "svg"):
            files += _picture_files(place / "pictures", pictures, kind)
        files += _picture_files(place / "pictures", draw_metric(table, metric, paper=True), "pdf")
    page = place / "report.html"
    write_bytes(page, _page(table, sections).encode())
    return [*files, page]


def _curves(place: Path, table: SweepTable) -> Iterator[Picture]:
    """Yield the learning curves of a sweep of trainings."""
    file = json_record(place / "sweep.json", Format.SWEEP_RESULTS).get("curves")
    if isinstance(file, str):
        yield from draw_curves(place, file, table)


def _table_files(place: Path, table: Table, remarks: Sequence[str]) -> Iterator[Path]:
    """Write a table as CSV and as LaTeX, with the remarks as a column and as lines below."""
    data = table.data.assign(remarks=" ".join(remarks)) if remarks and len(table.data) else table.data
    for suffix, text in (("csv", data.to_csv(index=False)), ("tex", _latex(table.shown, remarks))):
        path = place / f"{table.name}.{suffix}"
        write_bytes(path, text.encode())
        yield path


def _latex(shown: DataFrame, remarks: Sequence[str]) -> str:
    """Return a table in LaTeX (booktabs) with lines of remarks as wide as the table."""
    columns = shown.shape[1]
    text = shown.to_latex(index=False, escape=True, column_format="l" + "r" * (columns - 1))
    lines = [
        rf"\multicolumn{{{columns}}}{{p{{\linewidth}}}}{{\footnotesize {_escaped(each)}}} \\" + "\n"
        for each in remarks
    ]
    end = r"\end{tabular}"
    return text.replace(end, "".join(lines) + end)


def _escaped(text: str) -> str:
    """Return a text for LaTeX.

    >>> print(_escaped("50 % of a_b"))
    50 \\% of a\\_b
    """
    for letter in "\\&%$#_{}":
        text = text.replace(letter, r"\textbackslash " if letter == "\\" else f"\\{letter}")
    return text.replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")


def _picture_files(place: Path, pictures: Iterable[Picture], kind: str) -> Iterator[Path]:
    for picture in pictures:
        yield save_figure(picture.figure, place / f"{picture.name}.{kind}")


# --- page ------------------------------------------------------------------------------------------------


def _page(table: SweepTable, sections: Sections) -> str:
    return rendered_page(
        "sweep.html.jinja",
        title=f"Sweep over {joined(list(table.axes))}",
        tiles=list(_tiles(table)),
        remarks=_remarks(table),
        headline=_shown(headline_table(table)),
        swatches={name: swatch(line) for name, line in line_styles(table.policies).items()},
        sections=[
            {
                "name": metric,
                "title": metric.replace("_", " "),
                "about": METRICS.get(metric),
                "remark": _missing(table, metric),
                "pictures": [shown_picture(picture) for picture in pictures],
                "tables": [_shown(each) for each in tables],
            }
            for metric, (tables, pictures) in sections.items()
        ],
        failed=_rows(table.failed),
        failures=len(table.failed),
        facts=list(_facts(table)),
    )


def _shown(table: Table) -> dict[str, Any]:
    return {**table._asdict(), **_rows(table.shown), "files": f"tables/{table.name}.csv, .tex"}


def _rows(frame: DataFrame) -> dict[str, Any]:
    """Return the headings and the first rows of a table, and the number of those left out."""
    return {
        "headings": list(frame.columns),
        "rows": frame.head(MOST_ROWS).astype(str).to_numpy().tolist(),
        "left_out": max(len(frame) - MOST_ROWS, 0),
    }


def _tiles(table: SweepTable) -> Iterator[tuple[str, str]]:
    """Yield the key figures as pairs of value and label."""
    yield f"{len(table.cells):,}", "cells"
    yield f"{len(table.failed):,}", "failed"
    for axis, values in table.axes.items():
        note = ", replicates" if axis in table.replicates else ""
        if len(values) > 1:
            yield f"{len(values):,}", f"values of {axis}{note}"


def _remarks(table: SweepTable) -> list[str]:
    return [*remarks_on(table), *statistical_remarks(table)]


def _missing(table: SweepTable, metric: str) -> str:
    """Return the number of cells without a value that did not fail, and why there are no differences."""
    missing = int(table.cells[metric].isna().sum()) - len(table.failed)
    text = f"Undefined in {format_count(missing, 'cell')} of {len(table.cells):,}. " if missing else ""
    if len(table.policies) > 1 and differences(table, metric, table.logs).empty:
        text += (
            f"No differences are shown: in no replicate have the baseline, {table.baseline}, and another "
            "policy all of their values."
        )
    return text


def _facts(table: SweepTable) -> Iterator[tuple[str, str]]:
    """Yield the axes with their values, and the origin of the cells."""
    for axis, values in table.axes.items():
        more = f" and {len(values) - MOST_ROWS} more" if len(values) > MOST_ROWS else ""
        yield axis, ", ".join(map(value_text, values[:MOST_ROWS])) + more
    yield "replicates", joined(table.replicates) or "none"
    yield "baseline", table.baseline
    if "version" in table.cells.columns:
        yield "version", ", ".join(sorted(set(table.cells["version"].dropna().astype(str))))
