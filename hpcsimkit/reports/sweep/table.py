"""Table of a sweep: its cells, axes and replicates."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.errors import UsageError
from hpcsimkit.io.documents import json_value
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.reports.report import SUMMARY
from hpcsimkit.results.replicates import numbered

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

__all__ = ["ALL", "POLICY", "SweepTable"]

POLICY = "policy"

IDENTITY = ("workload_sha256", "schedule_sha256")
"""Columns that tell which cells are copies: hashes of the jobs, if it is there, and of the start times."""

LOG = "log"

ALL = ""
"""Name of a level of the index that has one value, so that there is a level to group by without axes."""

NUMBER = " schedule"
"""Column with a number for each cell, equal for copies."""

MISSING = "-"
"""Value of an axis that a cell does not have."""


@dataclass(frozen=True, eq=False)
class SweepTable:
    """Cells of a finished sweep.

    Parameters
    ----------
    cells : DataFrame
        One row per cell: axes as ordered categories, ``status``, ``reason``, metrics. Metrics of failed cells
        are NaN. Cells with the same ``schedule_sha256`` are copies, which count once in all statistics.
    axes : mapping of str to list
        Values of each axis in their order, numbers or strings; ``policy`` is one of them.
    replicates : tuple of str
        Axes that are repetitions, such as seeds and periods.
    metrics : tuple of str
        Metrics of the report.
    baseline : str
        Policy with which the others are compared.
    without_seed : tuple of str
        Policies that ran once for all seeds, as their schedules do not depend on it.
    """

    cells: DataFrame
    axes: Mapping[str, list[Any]]
    replicates: tuple[str, ...]
    metrics: tuple[str, ...]
    baseline: str
    without_seed: tuple[str, ...] = ()
    _schedules: dict[tuple[str, ...], DataFrame] = field(default_factory=dict, init=False, repr=False)

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
            names = ("replicates", "metrics", "baseline", "without_seed")
            given = {name: about[name] for name in names if about.get(name)}
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
        without_seed: Sequence[str] = (),
    ) -> SweepTable:
        """Return the table of cells that are already in memory.

        Parameters
        ----------
        cells : DataFrame
            One row per cell: a column for each axis and each metric; ``status`` and ``reason``, if cells
            failed; ``schedule_sha256``, the hash of a result, by which copies are recognised, and
            ``workload_sha256``, if different jobs may have the same start times. A cell without a value of a
            replicate axis belongs to all of its values.
        axes : mapping of str to sequence
            Values of each axis in their order. Without ``policy``, all cells count as one policy.
        replicates : sequence of str
            Axes that are repetitions, such as seeds and periods.
        metrics : sequence of str
            Columns to report; by default the metrics of the report of a comparison.
        baseline : str
            Policy with which the others are compared; by default the first one.
        without_seed : sequence of str
            Policies that ran once for all seeds.

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
            cells[axis] = _values(cells[axis], listed, of_all=axis in replicates)
        chosen = [name for name in metrics or SUMMARY if name in cells.columns]
        cells[chosen] = cells[chosen].apply(pd.to_numeric)
        if "status" in cells.columns:
            cells.loc[cells["status"] != "done", chosen] = float("nan")
        cells[NUMBER] = _numbers(cells)
        values = {axis: cells[axis].cat.categories.tolist() for axis in axes}
        baseline = str(baseline or values[POLICY][0])
        if baseline not in values[POLICY]:
            raise UsageError(f"the baseline {baseline!r} is not among {', '.join(values[POLICY])}")
        shown = tuple(name for name in chosen if cells[name].notna().any())
        return cls(cells, values, tuple(replicates), shown, baseline, tuple(without_seed))

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
    def logs(self) -> tuple[str, ...]:
        """The axis of logs, if there are several: on different machines seconds have no common mean."""
        return tuple(axis for axis in self.settings if axis == LOG)

    @property
    def conditions(self) -> tuple[str, ...]:
        """Settings that differ in more than a parameter of policies: loads, logs, machines and so on."""
        return tuple(axis for axis in self.settings if not axis.startswith(f"{POLICY}."))

    @cached_property
    def repetitions(self) -> int:
        """Largest number of replicates of a policy; with a single one, intervals and tests are undefined."""
        if not self.replicates:
            return 1
        schedules = self.replicate_schedules(self.logs)
        numbers = schedules.where(schedules >= 0).groupby(level=[ALL, *self.logs], observed=True).nunique()
        return max(1, int(numbers.to_numpy().max(initial=1)))

    @cached_property
    def copies(self) -> DataFrame:
        """Cells with the schedule of an earlier cell of the same policy and settings, if such are known."""
        others = [axis for axis in self.axes if axis not in self.replicates]
        return self.cells[self.cells.duplicated([*others, NUMBER])]

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
        groups = self._groups(by)[metric]
        return self._wide(groups.mean().where(groups.count() == groups.size()))

    def replicate_schedules(self, by: Sequence[str] = ()) -> DataFrame:
        """Return the numbers of the schedules behind `replicate_means`: equal ones are copies of each other.

        A replicate with several settings has as many schedules, and is a copy if all of them are.

        Parameters
        ----------
        by : sequence of str
            Settings that remain separate. Default: none.

        Returns
        -------
        DataFrame
            Numbers of schedules, in the form of `replicate_means`; -1 for a policy without cells.
        """
        by = tuple(by)
        if by not in self._schedules:
            schedules = self._groups(by)[NUMBER].agg(tuple)
            numbers = schedules.copy()
            numbers[:] = numbered(schedules.tolist())
            self._schedules[by] = self._wide(numbers).fillna(-1).astype(np.int64)
        return self._schedules[by]

    def _wide(self, values: Series[Any]) -> DataFrame:
        """Return values by replicate and policy with a column for each policy."""
        table = values.unstack(POLICY)
        table.columns = table.columns.astype(str)
        return table.reindex(columns=self.policies)

    def _groups(self, by: Sequence[str]) -> Any:
        """Return the cells of each policy in each replicate, in the order of their other settings."""
        return self._repeated.groupby([ALL, *by, *self.replicates, POLICY], observed=True)

    @cached_property
    def _repeated(self) -> DataFrame:
        """Cells, of which those without a value of a replicate axis are there for each of its values."""
        import pandas as pd

        cells = self.cells
        for axis in self.replicates:
            of_all = cells[axis].isna()
            if of_all.any():
                every = pd.DataFrame({axis: pd.Series(self.axes[axis], dtype=cells[axis].dtype)})
                repeated = cells[of_all].drop(columns=axis).merge(every, how="cross")
                cells = pd.concat([cells[~of_all], repeated], ignore_index=True)
        return cells.sort_values(list(self.settings), kind="stable") if self.settings else cells


def _numbers(cells: DataFrame) -> NDArray[np.int64]:
    """Return a number for each cell, equal for the same schedule of the same jobs, different if unknown."""
    columns = [
        cells[name].astype(object).fillna("").astype(str) for name in IDENTITY if name in cells.columns
    ]
    if IDENTITY[-1] not in cells.columns:
        return numbered([None] * len(cells))
    keys = zip(*columns, strict=True)
    return numbered([key if key[-1] else None for key in keys])


def _values(column: Series[Any], listed: Sequence[Any], *, of_all: bool) -> Series[Any]:
    """Return the values of an axis as ordered categories: numbers if all of them are, otherwise strings.

    A cell without a value has the value `MISSING`, or none if it belongs to all of them.
    """
    import pandas as pd

    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in listed):
        numbers = pd.to_numeric(column, errors="coerce")
        if (numbers.notna() | (column.isna() & of_all)).all():
            return numbers.astype(pd.CategoricalDtype(sorted({*listed, *numbers.dropna()}), ordered=True))
    words = column.astype(object).where(column.notna(), None if of_all else MISSING)
    words = words.map(str, na_action="ignore")
    order = list(dict.fromkeys([*map(str, listed), *words.dropna()]))
    return words.astype(pd.CategoricalDtype(order, ordered=True))
