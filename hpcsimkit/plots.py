"""Plots of results and workloads, and the style of figures.

Plots take a result, several, or a mapping of them by name, and ``ax``; they return the axes. A notebook shows
them.

>>> from hpcsimkit import plots
>>> plots.line_styles(["fcfs"])["fcfs"].colour
'#2a1a17'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hpcsimkit.io.lazy_names import LazyNames

if TYPE_CHECKING:
    from hpcsimkit.reports.availability import plot_availability
    from hpcsimkit.reports.difference import plot_changes, plot_moves
    from hpcsimkit.reports.figures import legend_above, line_styles, new_figure, save_figure
    from hpcsimkit.reports.gantt import busy_window, plot_gantt
    from hpcsimkit.reports.plots import (
        plot_fairness,
        plot_heat_map,
        plot_slowdown,
        plot_start_modes,
        plot_values,
        plot_wait,
        plot_wait_tail,
    )
    from hpcsimkit.reports.sweep.plots import plot_intervals, plot_means, plot_ranks
    from hpcsimkit.reports.time_plots import plot_busy, plot_queue, plot_resource
    from hpcsimkit.reports.views import ZoomChart
    from hpcsimkit.reports.week import plot_week
    from hpcsimkit.reports.workload_plots import (
        plot_accuracy,
        plot_durations,
        plot_hours,
        plot_offered_load,
        plot_sizes,
        plot_weekdays,
    )

_NAMES = LazyNames(
    __name__,
    {
        "reports.availability": ("plot_availability",),
        "reports.difference": (
            "plot_changes",
            "plot_moves",
        ),
        "reports.figures": (
            "legend_above",
            "line_styles",
            "new_figure",
            "save_figure",
        ),
        "reports.gantt": (
            "busy_window",
            "plot_gantt",
        ),
        "reports.plots": (
            "plot_fairness",
            "plot_heat_map",
            "plot_slowdown",
            "plot_start_modes",
            "plot_values",
            "plot_wait",
            "plot_wait_tail",
        ),
        "reports.sweep.plots": (
            "plot_intervals",
            "plot_means",
            "plot_ranks",
        ),
        "reports.time_plots": (
            "plot_busy",
            "plot_queue",
            "plot_resource",
        ),
        "reports.views": ("ZoomChart",),
        "reports.week": ("plot_week",),
        "reports.workload_plots": (
            "plot_accuracy",
            "plot_durations",
            "plot_hours",
            "plot_offered_load",
            "plot_sizes",
            "plot_weekdays",
        ),
    },
)

__all__ = [
    "ZoomChart",
    "busy_window",
    "legend_above",
    "line_styles",
    "new_figure",
    "plot_accuracy",
    "plot_availability",
    "plot_busy",
    "plot_changes",
    "plot_durations",
    "plot_fairness",
    "plot_gantt",
    "plot_heat_map",
    "plot_hours",
    "plot_intervals",
    "plot_means",
    "plot_moves",
    "plot_offered_load",
    "plot_queue",
    "plot_ranks",
    "plot_resource",
    "plot_sizes",
    "plot_slowdown",
    "plot_start_modes",
    "plot_values",
    "plot_wait",
    "plot_wait_tail",
    "plot_week",
    "plot_weekdays",
    "save_figure",
]


def __getattr__(name: str) -> Any:
    return _NAMES.load(name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
