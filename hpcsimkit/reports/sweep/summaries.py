"""Summaries of a sweep as data frames: means, paired differences to the baseline, and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.sweep.table import ALL, POLICY, SweepTable
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.statistics import Ranking, means_of, paired, ranking_of

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["differences", "direction_of", "means", "ranks"]

TESTS = ("relative", "t_test", "wilcoxon", "t_test_holm", "wilcoxon_holm")


@lru_cache(maxsize=32)
def means(table: SweepTable, metric: str, by: tuple[str, ...] = ()) -> DataFrame:
    """Return the mean of a metric of each policy, with its interval over replicates.

    Parameters
    ----------
    table : SweepTable
        Cells of the sweep.
    metric : str
        Name of the metric.
    by : tuple of str
        Settings by which rows differ; other settings are averaged within each replicate. Default: none.

    Returns
    -------
    DataFrame
        Columns: those of `by`, ``policy``, ``mean``, ``low``, ``high``, ``replicates``, and ``left_out``, the
        number of replicates with a missing value.

    Examples
    --------
    >>> import pandas as pd
    >>> columns = {"policy": ["a", "a", "b", "b"], "seed": [1, 2, 1, 2], "makespan": [1.0, 3.0, 5.0, 9.0]}
    >>> table = SweepTable.of(pd.DataFrame(columns), {"policy": ["a", "b"], "seed": [1, 2]}, ["seed"])
    >>> means(table, "makespan")[["policy", "mean", "replicates"]].values.tolist()
    [['a', 2.0, 2], ['b', 7.0, 2]]
    """
    groups = [
        ({**setting, POLICY: policy}, group[policy])
        for setting, group in _groups(table, metric, by)
        for policy in table.policies
    ]
    samples = [values[np.isfinite(values)] for _, values in groups]
    rows = [
        {**place, **vars(mean), "replicates": len(sample), "left_out": len(values) - len(sample)}
        for (place, values), sample, mean in zip(groups, samples, means_of(samples), strict=True)
    ]
    return _framed(rows, table, by)


@lru_cache(maxsize=32)
def differences(table: SweepTable, metric: str, by: tuple[str, ...] = ()) -> DataFrame:
    """Return the paired difference of each policy to the baseline, over the replicates that both have.

    Cells that differ only in the policy form a pair. Differences are averaged over the settings of a
    replicate, and tested over replicates; replicates with a missing value are left out and counted.

    Parameters
    ----------
    table : SweepTable
        Cells of the sweep.
    metric : str
        Name of the metric.
    by : tuple of str
        Settings by which rows differ. Default: none.

    Returns
    -------
    DataFrame
        Columns: those of `by`, ``policy``, ``difference``, ``low``, ``high``, ``relative`` to the mean of the
        baseline, ``t_test``, ``wilcoxon`` and ``t_test_holm``, ``wilcoxon_holm`` (corrected for all rows),
        ``wins``, ``ties``, ``losses`` of the policy by replicate if a direction is better, ``replicates``,
        and ``left_out``, the number of replicates with a missing value. No row for a policy without pairs.
    """
    direction = direction_of(metric)
    places, pairs, counts = [], [], []
    for setting, group in _groups(table, metric, by):
        for policy in table.policies:
            both = np.isfinite(group[policy] + group[table.baseline])
            values, base = group[policy][both], group[table.baseline][both]
            if policy == table.baseline or not len(values):
                continue
            places.append({**setting, POLICY: policy})
            pairs.append((values, base))
            counts.append({"replicates": len(values), "left_out": len(both) - len(values)})
    rows = [
        {
            **place,
            "difference": each.difference.mean,
            "low": each.difference.low,
            "high": each.difference.high,
            **{name: getattr(each, name) for name in TESTS},
            **each.counts(direction),
            **count,
        }
        for place, each, count in zip(places, paired(pairs), counts, strict=True)
    ]
    return _framed(rows, table, by)


def ranks(table: SweepTable, metric: str) -> Ranking | None:
    """Return the ranks of the policies with values, over the replicates in which all of them have one.

    The result is None if fewer than three policies or two replicates can be ranked.
    """
    direction = direction_of(metric)
    complete = table.replicate_means(metric).dropna(axis=1, how="all").dropna()
    if direction == "none" or complete.shape[1] < 3 or len(complete) < 2:
        return None
    values = {str(policy): complete[policy].to_numpy(dtype=np.float64) for policy in complete}
    return ranking_of(values, descending=direction == "higher")


def direction_of(metric: str) -> str:
    """Return the better direction of a metric: "lower", "higher" or "none"; none for other columns."""
    return METRICS[metric].direction if metric in METRICS else "none"


def _groups(
    table: SweepTable, metric: str, by: Sequence[str]
) -> Iterator[tuple[dict[str, Any], dict[str, NDArray[np.float64]]]]:
    """Yield the values of settings, and the values of the policies by replicate."""
    for key, group in table.replicate_means(metric, by).groupby(level=[ALL, *by], observed=True):
        setting = dict(zip(by, key[1:] if isinstance(key, tuple) else (), strict=True))
        values = group.to_numpy(dtype=np.float64).T  # faster than frames for thousands of groups
        yield setting, dict(zip(table.policies, values, strict=True))


def _framed(rows: list[dict[str, Any]], table: SweepTable, by: Sequence[str]) -> DataFrame:
    """Return rows as a frame, with settings as ordered categories."""
    import pandas as pd

    return pd.DataFrame(rows).astype({axis: table.cells[axis].dtype for axis in by if rows})
