"""Statistics for a paper: metrics, breakdowns, paired tests, ranks, and the reports that contain them.

>>> from hpcsimkit import stats
>>> stats.METRICS["makespan"].unit
's'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.io.lazy_names import LazyNames

if TYPE_CHECKING:
    from hpcsimkit.reports.report import write_report
    from hpcsimkit.reports.saved_results import SavedResults
    from hpcsimkit.reports.sweep.report import write_sweep_report
    from hpcsimkit.reports.sweep.summaries import differences, mean_ratios, means, ranks, ratios
    from hpcsimkit.reports.sweep.table import SweepTable
    from hpcsimkit.reports.sweep.texts import headline
    from hpcsimkit.results.breakdown import breakdown
    from hpcsimkit.results.difference import compare_results, summarize_moves
    from hpcsimkit.results.metrics import METRICS, Metric, measure
    from hpcsimkit.results.statistics import Comparison, Mean, Ranking

_NAMES = LazyNames(
    __name__,
    {
        "reports.report": ("write_report",),
        "reports.saved_results": ("SavedResults",),
        "reports.sweep.report": ("write_sweep_report",),
        "reports.sweep.summaries": (
            "differences",
            "mean_ratios",
            "means",
            "ranks",
            "ratios",
        ),
        "reports.sweep.table": ("SweepTable",),
        "reports.sweep.texts": ("headline",),
        "results.breakdown": ("breakdown",),
        "results.difference": (
            "compare_results",
            "summarize_moves",
        ),
        "results.metrics": (
            "METRICS",
            "Metric",
            "measure",
        ),
        "results.statistics": (
            "Comparison",
            "Mean",
            "Ranking",
        ),
    },
)

__all__ = [
    "METRICS",
    "Comparison",
    "Mean",
    "Metric",
    "Ranking",
    "SavedResults",
    "SweepTable",
    "breakdown",
    "compare_results",
    "differences",
    "headline",
    "mean_ratios",
    "means",
    "measure",
    "ranks",
    "ratios",
    "summarize_moves",
    "write_report",
    "write_sweep_report",
]


def __getattr__(name: str) -> Any:
    return _NAMES.load(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
