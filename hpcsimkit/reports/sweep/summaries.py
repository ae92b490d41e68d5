"""Summaries of a sweep as data frames: means, differences and ratios to the baseline, and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports.sweep.table import ALL, POLICY, SweepTable
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.replicates import distinct
from hpcsimkit.results.statistics import Mean, Ranking, means_of, paired, ranking_of, ratio_of_means

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["differences", "direction_of", "mean_ratios", "means", "ranks", "ratios"]

Floats = NDArray[np.float64]

TESTS = ("relative", "t_test", "wilcoxon", "t_test_holm", "wilcoxon_holm")


@lru_cache(maxsize=32)
def means(table: SweepTable, metric: str, by: tuple[str, ...] = ()) -> DataFrame:
    """Return the mean of a metric of each policy, with its interval over replicates; copies count once.

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
        ({**setting, POLICY: policy}, *group.sample([policy]))
        for setting, group in _groups(table, metric, by)
        for policy in table.policies
    ]
    samples = [sample[0] for _, sample, _ in groups]
    rows = [
        {**place, **vars(mean), "replicates": len(sample), "left_out": left_out}
        for (place, _, left_out), sample, mean in zip(groups, samples, means_of(samples), strict=True)
    ]
    return _framed(rows, table, by)


@lru_cache(maxsize=32)
def differences(table: SweepTable, metric: str, by: tuple[str, ...] = ()) -> DataFrame:
    """Return the paired difference of each policy to the baseline, over the replicates that both have.

    Cells that differ only in the policy form a pair. Differences are averaged over the settings of a
    replicate, and tested over replicates; replicates with a missing value are left out and counted. Copies of
    a schedule, of the policy or of the baseline, are one replicate.

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
            (values, base), left_out = group.sample([policy, table.baseline])
            if policy == table.baseline or not len(values):
                continue
            places.append({**setting, POLICY: policy})
            pairs.append((values, base))
            counts.append({"replicates": len(values), "left_out": left_out})
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

    Of several logs, the replicates of each are ranked: ranks have no unit. The result is None if fewer than
    three policies or two replicates can be ranked.
    """
    direction = direction_of(metric)
    groups = [group for _, group in _groups(table, metric, table.logs)]
    policies = [
        name for name in table.policies if any(np.isfinite(group.values[name]).any() for group in groups)
    ]
    if direction == "none" or len(policies) < 3:
        return None
    samples = [group.sample(policies) for group in groups]
    values = np.concatenate([sample for sample, _ in samples], axis=1)
    if values.shape[1] < 2:
        return None
    ranking = ranking_of(dict(zip(policies, values, strict=True)), descending=direction == "higher")
    return replace(ranking, left_out=sum(left_out for _, left_out in samples))


@lru_cache(maxsize=32)
def ratios(table: SweepTable, metric: str) -> DataFrame:
    """Return the ratio of each policy to the baseline, and its rank, under each condition.

    A condition is a log, a load, or another combination of settings that differ in more than a parameter of
    policies. Ratios and ranks of different machines have a common mean, seconds have none.

    Returns
    -------
    DataFrame
        Columns: the conditions, ``policy``, ``ratio`` of the means over the replicates that both have (NaN if
        the mean of the baseline is 0), its interval ``low``, ``high``, ``rank`` of the mean among the
        policies (1 is best; NaN if no direction is better), ``replicates``, and ``undefined``: whether the
        baseline is 0. No row for a policy without a value there.
    """
    rows, by = [], table.conditions
    for setting, group in _groups(table, metric, by):
        places = _ranks_of(group, direction_of(metric))
        for policy in table.policies:
            (values, base), _ = group.sample([policy, table.baseline])
            if not len(values):
                continue
            undefined = not base.any()
            ratio = Mean(np.nan, np.nan, np.nan) if undefined else ratio_of_means(values, base)
            place = {"rank": places.get(policy, np.nan), "replicates": len(values), "undefined": undefined}
            rows.append(
                {
                    **setting,
                    POLICY: policy,
                    "ratio": ratio.mean,
                    "low": ratio.low,
                    "high": ratio.high,
                    **place,
                }
            )
    return _framed(rows, table, by)


def mean_ratios(table: SweepTable, metric: str) -> DataFrame:
    """Return the geometric mean of the ratios of each policy, and its average rank, over all conditions.

    Returns
    -------
    DataFrame
        Columns: ``policy``, ``geometric_mean`` of the defined ratios (NaN without any), average ``rank``,
        ``conditions`` with a defined ratio, ``undefined``: conditions in which the baseline is 0, and
        ``left_out``: those without a value of the policy or of the baseline.
    """
    import pandas as pd
    from scipy import stats

    found, rows = ratios(table, metric), []
    by = list(table.conditions)
    conditions = len(table.cells.drop_duplicates(by)) if by else 1
    for policy in table.policies:
        own = found[found[POLICY] == policy] if len(found) else found.reindex(columns=["ratio", "rank"])
        known = own["ratio"].dropna().to_numpy(dtype=np.float64)
        with np.errstate(divide="ignore"):  # of a ratio of 0
            mean = float(stats.gmean(known)) if len(known) else np.nan
        counts = {"conditions": len(known), "undefined": len(own) - len(known)}
        rank = float(own["rank"].mean()) if len(own) else np.nan
        rows.append(
            {
                POLICY: policy,
                "geometric_mean": mean,
                "rank": rank,
                **counts,
                "left_out": conditions - len(own),
            }
        )
    return pd.DataFrame(rows)


def _ranks_of(group: _Group, direction: str) -> dict[str, float]:
    """Return the rank of the mean of each policy with values, over the replicates in which all have one."""
    from scipy import stats

    policies = [name for name, values in group.values.items() if np.isfinite(values).any()]
    values, _ = group.sample(policies) if policies else (np.empty((0, 0)), 0)
    if direction == "none" or not values.size:
        return {}
    sign = -1 if direction == "higher" else 1
    return dict(zip(policies, stats.rankdata(sign * values.mean(axis=1)).tolist(), strict=True))


def direction_of(metric: str) -> str:
    """Return the better direction of a metric: "lower", "higher" or "none"; none for other columns."""
    return METRICS[metric].direction if metric in METRICS else "none"


class _Group(NamedTuple):
    """Values of the policies in each repetition, and the numbers of their schedules."""

    values: dict[str, Floats]
    schedules: dict[str, NDArray[np.int64]]

    def sample(self, policies: Sequence[str]) -> tuple[Floats, int]:
        """Return values on the replicates in which all of some policies have one, and the number of others.

        Repetitions that are copies for one of the policies are one replicate. The shape of the values is
        (policies, replicates).
        """
        values, schedules = (np.array([column[name] for name in policies]) for column in self)
        known = np.isfinite(values).all(axis=0)
        return distinct(values[:, known], schedules[:, known]), int(np.count_nonzero(~known))


def _groups(table: SweepTable, metric: str, by: Sequence[str]) -> Iterator[tuple[dict[str, Any], _Group]]:
    """Yield the values of settings, and the values and schedules of the policies by repetition."""
    schedules = table.replicate_schedules(by).to_numpy().T
    first = 0
    for key, group in table.replicate_means(metric, by).groupby(level=[ALL, *by], observed=True):
        setting = dict(zip(by, key[1:] if isinstance(key, tuple) else (), strict=True))
        values = group.to_numpy(dtype=np.float64).T  # faster than frames for thousands of groups
        numbers = schedules[:, first : first + len(group)]  # in the order of the same levels
        first += len(group)
        yield (
            setting,
            _Group(
                dict(zip(table.policies, values, strict=True)),
                dict(zip(table.policies, numbers, strict=True)),
            ),
        )


def _framed(rows: list[dict[str, Any]], table: SweepTable, by: Sequence[str]) -> DataFrame:
    """Return rows as a frame, with settings as ordered categories."""
    import pandas as pd

    return pd.DataFrame(rows).astype({axis: table.cells[axis].dtype for axis in by if rows})
