"""Statistics of replicates: intervals and tests by hand and against scipy's, ranks against a published example."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from hpcsimkit.results.statistics import (
    Mean,
    Ranking,
    compared,
    holm,
    mean_of,
    p_values,
    paired,
    ranking_of,
    ratio_of_means,
)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.02, 0.03, 0.04]) == pytest.approx([0.04, 0.06, 0.06, 0.06])
    assert holm([0.04, 0.001]) == pytest.approx([0.04, 0.002])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("t_test", "wilcoxon", "both"), [(0.04, 0.04, True), (0.04, 0.06, False), (0.06, 0.04, False)]
)
def test_a_difference_is_significant_by_both_tests(t_test: float, wilcoxon: float, both: bool) -> None:
    found = compared(np.array([1.0, 2.0]), {"b": np.array([2.0, 3.0])})["b"]
    assert replace(found, t_test_holm=t_test, wilcoxon_holm=wilcoxon).is_significant is both


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_is_between_the_value_and_bonferroni(ps: list[float]) -> None:
    corrected = holm(ps)
    for p, after in zip(ps, corrected, strict=True):
        assert p <= after <= min(1.0, p * len(ps)) + 1e-12
    assert [corrected[place] for place in np.argsort(ps)] == sorted(corrected)


def test_means_and_tests_are_scipys() -> None:
    rng = np.random.default_rng(1)
    agent, others = (
        rng.exponential(size=30),
        {name: rng.exponential(size=30) + shift for name, shift in (("a", 0), ("b", 1))},
    )
    found = compared(agent, others)
    for name, other in others.items():
        assert found[name].t_test == pytest.approx(stats.ttest_rel(agent, other).pvalue)
        assert found[name].wilcoxon == pytest.approx(stats.wilcoxon(agent, other).pvalue)
        assert found[name].relative == pytest.approx((agent.mean() - other.mean()) / other.mean())
    assert found["b"].t_test_holm == pytest.approx(2 * found["b"].t_test)


@pytest.mark.parametrize("count", [2, 5, 30])
def test_intervals_are_scipys_bootstrap(count: int) -> None:
    """Bias-corrected and accelerated, 9999 resamples, seed 0; of ratios sequences are drawn as pairs."""
    slowdowns = 1 + np.random.default_rng(2).lognormal(1, 2, count)
    others = 1 + np.random.default_rng(3).lognormal(1, 2, count)

    def ratio(one: Any, other: Any, axis: int) -> Any:
        return one.mean(axis=axis) / other.mean(axis=axis)

    for found, columns, statistic, value in (
        (mean_of(slowdowns), [slowdowns], np.mean, slowdowns.mean()),
        (mean_of(slowdowns - others), [slowdowns - others], np.mean, (slowdowns - others).mean()),
        (ratio_of_means(slowdowns, others), [slowdowns, others], ratio, slowdowns.mean() / others.mean()),
    ):
        wanted = stats.bootstrap(
            columns, statistic, n_resamples=9999, confidence_level=0.95, method="BCa", paired=True,
            rng=np.random.default_rng(0),
        ).confidence_interval  # fmt: skip
        assert (found.mean, found.low, found.high) == pytest.approx((value, wanted.low, wanted.high))


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=8), st.sampled_from([1.0, 1e-9]))
@settings(max_examples=60)
def test_intervals_stay_within_what_was_seen(tail: list[float], scale: float) -> None:
    """So no slowdown is believed to be below 1, whatever its tail."""
    slowdowns = 1 + scale * np.array(tail)
    found = mean_of(slowdowns)
    slack = 1e-9 * slowdowns.max()
    assert slowdowns.min() - slack <= found.low <= found.mean + slack
    assert found.mean - slack <= found.high <= slowdowns.max() + slack


def test_intervals_of_one_sequence_and_of_equal_ones() -> None:
    alone = mean_of(np.array([7.0]))
    assert alone.mean == 7 and np.isnan([alone.low, alone.high]).all()
    assert mean_of(np.full(5, 3.0)) == Mean(3.0, 3.0, 3.0)
    assert mean_of(np.zeros(5)) == Mean(0.0, 0.0, 0.0)
    assert ratio_of_means(np.full(3, 6.0), np.full(3, 2.0)) == Mean(3.0, 3.0, 3.0)
    assert np.isnan(ratio_of_means(np.ones(1), np.ones(1)).low)


def test_a_heavy_tail_makes_a_lopsided_interval() -> None:
    """Student's t said -11 to 49 of such slowdowns."""
    slowdowns = np.array([1.0, 1.2, 1.1, 2.0, 1.5, 110.0])
    low, _ = stats.t.interval(0.95, 5, slowdowns.mean(), stats.sem(slowdowns))
    found = mean_of(slowdowns)
    assert low < 1 <= found.low and found.high - found.mean > found.mean - found.low > 0


def test_differences_that_say_nothing_or_all() -> None:
    assert p_values(np.zeros(5)) == (1.0, 1.0)
    assert np.isnan(p_values(np.array([3.0]))).all()
    assert p_values(np.full(8, -2.0)) == (0.0, pytest.approx(2 / 2**8))


def test_undefined_p_values_do_not_count() -> None:
    assert holm([np.nan, 0.04, 0.01]) == pytest.approx([np.nan, 0.04, 0.02], nan_ok=True)
    assert np.isnan(holm([np.nan, np.nan])).all()


def test_pairs_of_several_lengths_are_corrected_together() -> None:
    long, short = np.array([1.0, 2.0, 3.0, 4.0, 9.0]), np.array([1.0, 2.0, 4.0])
    rise = np.array([0.5, 1.0, 1.5, 2.5, 3.0])
    found = paired([(long + rise, long), (short + short**2 - 3, short), (short[:1], short[:1])])
    assert found[0].t_test_holm == pytest.approx(2 * found[0].t_test)
    assert found[1].wilcoxon_holm == max(found[1].wilcoxon, 2 * found[0].wilcoxon)
    assert np.isnan(found[2].t_test_holm) and found[2].difference.mean == 0


# --- ranks -----------------------------------------------------------------------------------------------

DEMSAR = {
    name: np.array(values.split(), dtype=float)
    for name, values in {
        "C4.5": "0.763 0.599 0.954 0.628 0.882 0.936 0.661 0.583 0.775 1 0.940 0.619 0.972 0.957",
        "C4.5+m": "0.768 0.591 0.971 0.661 0.888 0.931 0.668 0.583 0.838 1 0.962 0.666 0.981 0.978",
        "C4.5+cf": "0.771 0.590 0.968 0.654 0.886 0.916 0.609 0.563 0.866 1 0.965 0.614 0.9751 0.946",
        "C4.5+m+cf": "0.798 0.569 0.967 0.657 0.898 0.931 0.685 0.625 0.875 1 0.962 0.669 0.975 0.970",
    }.items()
}
"""Areas under the curve on 14 data sets (Demsar 2006, table 6), 0.975 of C4.5+cf as the higher one, as in its ranks."""


def test_ranks_and_critical_difference_of_a_published_example() -> None:
    """Demsar 2006: average ranks 3.143, 2.000, 2.893, 1.964; chi-squared 9.28 before ties; CD 1.25 of q 2.569."""
    found = ranking_of(DEMSAR, descending=True)
    assert found.left_out == 0
    assert list(found.ranks) == ["C4.5+m+cf", "C4.5+m", "C4.5+cf", "C4.5"]
    assert [round(rank, 3) for rank in found.ranks.values()] == [1.964, 2.0, 2.893, 3.143]
    chi_squared = 12 * 14 / (4 * 5) * (sum(rank**2 for rank in found.ranks.values()) - 4 * 5**2 / 4)
    assert chi_squared == pytest.approx(9.28, abs=0.01)
    assert 0.01 < found.friedman < stats.chi2.sf(chi_squared, 3) < 0.05
    assert found.critical_difference == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert found.groups == [tuple(found.ranks)]


@pytest.mark.parametrize(("policies", "q"), [(3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_critical_values_are_those_of_the_published_table(policies: int, q: float) -> None:
    found = ranking_of({str(name): np.full(6, 1.0) for name in range(policies)})
    assert found.critical_difference / np.sqrt(policies * (policies + 1) / 36) == pytest.approx(q, abs=1e-3)
    assert found.friedman == 1 and set(found.ranks.values()) == {(policies + 1) / 2}


def test_friedman_by_hand() -> None:
    """Ranks 1, 2, 3 on all of 4 replicates: chi-squared 12 / (4 * 3 * 4) * (16 + 64 + 144) - 3 * 4 * 4 = 8."""
    found = ranking_of({"c": np.arange(4) + 20.0, "a": np.arange(4.0), "b": np.arange(4) + 10.0})
    assert found.ranks == {"a": 1, "b": 2, "c": 3} and found.replicates == 4
    assert found.friedman == pytest.approx(stats.chi2.sf(8, 2))


@pytest.mark.parametrize(
    ("ranks", "groups"),
    [
        ([1.0, 1.5, 2.4, 3.9], [("a", "b"), ("b", "c")]),
        ([1.0, 1.2, 1.4, 3.9], [("a", "b", "c")]),
        ([1.0, 2.5, 4.0, 4.5], [("c", "d")]),
        ([1.0, 2.5, 4.0, 6.0], []),
        ([1.0, 2.0, 3.0, 4.0], [("a", "b"), ("b", "c"), ("c", "d")]),
    ],
)
def test_groups_are_the_largest_ones(ranks: list[float], groups: list[tuple[str, ...]]) -> None:
    assert Ranking(dict(zip("abcd", ranks, strict=True)), 9, 0.01, 1.0).groups == groups
