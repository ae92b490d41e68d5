"""Table of a sweep: its cells, axes and replicates."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.report import SUMMARY

if TYPE_CHECKING:
    from pandas import DataFrame, Series

__all__ = ["ALL", "POLICY", "SweepTable"]

POLICY = "policy"

ALL = ""
"""Name of a level of the index that has one value, so that there is a level to group by without axes."""

MISSING = "-"
"""Value of an axis that a cell does not have."""


@dataclass(frozen=True, eq=False)
class SweepTable:
    """Cells of a finished sweep.

    Parameters
    ----------
    cells : DataFrame
        One row per cell: axes as ordered categories, ``status``, ``reason``, metrics. Metrics of failed cells
        are NaN.
    axes : mapping of str to list
        Values of each axis in their order, numbers or strings; ``policy`` is one of them.
    replicates : tuple of str
        Axes that are repetitions, such as seeds and periods.
    metrics : tuple of str
        Metrics of the report.
    baseline : str
        Policy with which the others are compared.
    """

    cells: DataFrame
    axes: Mapping[str, list[Any]]
    replicates: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> SweepTable:
        """Read ``cells.parquet`` (or ``cells.csv``) and ``sweep.json`` of a sweep.

        Raises
        ------
        UsageError
            The folder is not that of a finished sweep, or a file is damaged.
        WorkloadError
            A file is missing or cannot be read.
        """
        import pandas as pd

        place = Path(folder)
        file = next((f for f in (place / "cells.parquet", place / "cells.csv") if f.is_file()), None)
        if file is None:
            raise UsageError(f"{place}: the folder of a finished sweep is needed, found no cells.parquet")
        try:
            description = place / "sweep.json"
            about = json_value(read_bytes(description, Format.SWEEP_RESULTS).decode(), description)
            content = io.BytesIO(read_bytes(file, Format.TABLE))
            cells = pd.read_parquet(content) if file.suffix == ".parquet" else pd.read_csv(content)
            given = {name: about[name] for name in ("replicates", "metrics", "baseline") if about.get(name)}
            return cls.of(cells, about["axes"], **given)
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            raise UsageError(f"{place}: not the table of a sweep: {error}") from None

    @classmethod
    def of(
        cls,
        cells: DataFrame,
        axes: Mapping[str, Sequence[Any]],
        replicates: Sequence[str] = (),
        metrics: Sequence[str] = (),
        baseline: str = "",
    ) -> SweepTable:
        """Return the table of cells that are already in memory.

        Parameters
        ----------
        cells : DataFrame
            One row per cell: a column for each axis and each metric; ``status`` and ``reason``, if cells
            failed.
        axes : mapping of str to sequence
            Values of each axis in their order. Without ``policy``, all cells count as one policy.
        replicates : sequence of str
            Axes that are repetitions, such as seeds and periods.
        metrics : sequence of str
            Columns to report; by default the metrics of the report of a comparison.
        baseline : str
            Policy with which the others are compared; by default the first one.

        Raises
        ------
        UsageError
            An axis or a metric is not in the table, or the baseline is not among the policies.
        """
        import pandas as pd

        cells = cells.reset_index(drop=True).assign(**{ALL: ""})
        if POLICY not in axes:
            if POLICY not in cells.columns:
                cells[POLICY] = "all cells"
            axes = {POLICY: cells[POLICY].unique().tolist(), **axes}
        for column in (*axes, *replicates, *metrics):
            if column not in cells.columns or (column in replicates and column not in axes):
                raise UsageError(f"{column!r} is no column of cells.parquet, or no axis")
        for axis, listed in axes.items():
            cells[axis] = _values(cells[axis], listed)
        chosen = [name for name in metrics or SUMMARY if name in cells.columns]
        cells[chosen] = cells[chosen].apply(pd.to_numeric)
        if "status" in cells.columns:
            cells.loc[cells["status"] != "done", chosen] = float("nan")
        values = {axis: cells[axis].cat.categories.tolist() for axis in axes}
        baseline = str(baseline or values[POLICY][0])
        if baseline not in values[POLICY]:
            raise UsageError(f"the baseline {baseline!r} is not among {', '.join(values[POLICY])}")
        shown = tuple(name for name in chosen if cells[name].notna().any())
        return cls(cells, values, tuple(replicates), shown, baseline)

    @property
    def policies(self) -> list[str]:
        """Names of the policies, in the order of the axis."""
        return self.axes[POLICY]

    @property
    def settings(self) -> tuple[str, ...]:
        """Axes with several values that are neither the policy nor replicates."""
        others = (axis for axis in self.axes if axis not in (POLICY, *self.replicates))
        return tuple(axis for axis in others if len(self.axes[axis]) > 1)

    @property
    def numeric(self) -> tuple[str, ...]:
        """Settings with numbers as values."""
        return tuple(axis for axis in self.settings if not isinstance(self.axes[axis][0], str))

    @property
    def repetitions(self) -> int:
        """Number of replicates; with a single one, intervals and tests are undefined."""
        return len(self.cells.drop_duplicates(list(self.replicates))) if self.replicates else 1

    @property
    def failed(self) -> DataFrame:
        """Cells that failed, with their axes and reasons."""
        reasons = self.cells.reindex(columns=[*self.axes, "reason"])
        return reasons[self.cells["status"] != "done"] if "status" in self.cells.columns else reasons[:0]

    def replicate_means(self, metric: str, by: Sequence[str] = ()) -> DataFrame:
        """Return the values of a metric by policy: a row for each replicate, and for each value of some axes.

        Values are means over the other settings of a replicate; they are NaN if one of these is undefined or
        failed, since means over different settings cannot be compared. Settings of one replicate are not
        independent, as they share its jobs: statistics count replicates, not cells.

        Parameters
        ----------
        metric : str
            Name of the metric.
        by : sequence of str
            Settings that remain separate. Default: none.

        Returns
        -------
        DataFrame
            A column for each policy; the levels of the index are `ALL`, those of `by` and the replicates.
        """
        groups = self.cells.groupby([ALL, *by, *self.replicates, POLICY], observed=True)[metric]
        table = groups.mean().where(groups.count() == groups.size()).unstack(POLICY)
        table.columns = table.columns.astype(str)
        return table.reindex(columns=self.policies)


def _values(column: Series[Any], listed: Sequence[Any]) -> Series[Any]:
    """Return the values of an axis as ordered categories: numbers if all of them are, otherwise strings."""
    import pandas as pd

    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in listed):
        numbers = pd.to_numeric(column, errors="coerce")
        if numbers.notna().all():
            return numbers.astype(pd.CategoricalDtype(sorted({*listed, *numbers}), ordered=True))
    words = column.astype(object).where(column.notna(), MISSING).map(str)
    order = list(dict.fromkeys([*map(str, listed), *words]))
    return words.astype(pd.CategoricalDtype(order, ordered=True))
