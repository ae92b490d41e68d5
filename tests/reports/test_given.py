"""All plots take a result, several, or a mapping; they return the axes on which they drew."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from hpcsimkit import Simulation, default_workload
from hpcsimkit.errors import UsageError
from hpcsimkit.reports import plots
from hpcsimkit.reports.availability import plot_availability
from hpcsimkit.reports.difference import plot_changes, plot_moves
from hpcsimkit.reports.figures import new_figure
from hpcsimkit.reports.given import only_result, results_of
from hpcsimkit.results.result import Result

TOGETHER = (
    plots.plot_wait, plots.plot_wait_tail, plots.plot_slowdown, plots.plot_fairness, plots.plot_start_modes,
    plots.plot_queue, plots.plot_busy,
)  # fmt: skip
"""Plots of several results on the same axes."""

APART = (plots.plot_gantt, plot_availability)
"""Plots of each result on axes of its own."""


@pytest.fixture(scope="module")
def results() -> list[Result]:
    workload = default_workload(np.random.default_rng(1), jobs=60)
    return [Simulation(workload, name).run() for name in ("fcfs", "fcfs+easy")]


class Kept:
    """An object that keeps results, as a comparison does."""

    def __init__(self, results: dict[str, Result]) -> None:
        self.results = results


@pytest.mark.parametrize("plot", TOGETHER)
def test_several_results_on_the_same_axes(plot: Any, results: list[Result]) -> None:
    pair = results_of(results)
    for given in (results[0], results, pair, Kept(pair), iter(results)):
        ax = plot(given)
        assert isinstance(ax, Axes)
        assert ax.get_figure() is pyplot.gcf(), "pyplot knows it: a notebook shows it"
        pyplot.close("all")
    mine = new_figure().axes[0]
    assert plot(results, mine) is mine
    assert plot(pair, ax=mine) is mine
    assert not pyplot.get_fignums(), "no other figure"


@pytest.mark.parametrize("plot", APART)
def test_each_result_on_axes_of_its_own(plot: Any, results: list[Result]) -> None:
    assert isinstance(plot(results[0]), Axes)
    above, below = plot(results)
    assert above.get_figure() is below.get_figure() is pyplot.gcf()
    assert above.get_title(loc="left") == "fcfs"
    pyplot.close("all")
    mine = new_figure(rows=2).axes
    assert list(plot(results, mine)) == mine
    with pytest.raises(UsageError, match="one axes per result is needed, found 1 for 2"):
        plot(results, mine[0])
    assert not pyplot.get_fignums()


def test_several_results_have_a_legend_on_new_axes_only(results: list[Result]) -> None:
    for plot in (plots.plot_wait, plots.plot_queue, plots.plot_busy):
        legend = plot(results).get_legend()
        assert [text.get_text() for text in legend.get_texts()] == ["fcfs", "fcfs+easy"]
        assert plot(results[0]).get_legend() is None
        assert plot(results, new_figure().axes[0]).get_legend() is None


def test_gantt_charts_of_several_results_show_the_same_busy_window(results: list[Result]) -> None:
    above, below = plots.plot_gantt(results)
    assert above.get_xlim() == below.get_xlim()
    given = plots.plot_gantt(results, window=plots.busy_window(results_of(results)))
    assert above.get_xlim() == given[0].get_xlim()
    assert plots.plot_gantt(results, window=(0, 10))[0].get_xlim() != above.get_xlim()


def test_queues_of_several_results_share_their_axes() -> None:
    """No curve is cut, whichever comes last: here one of a machine on which nobody waits."""
    workload = default_workload(np.random.default_rng(1), jobs=300)
    busy, idle = (Simulation(workload, "fcfs", nodes).run() for nodes in (256, 100_000))
    top = plots.plot_queue(busy).get_ylim()[1]
    assert plots.plot_queue(idle).get_ylim()[1] < top / 2
    for pair in ([busy, idle], [idle, busy]):
        assert plots.plot_queue(pair).get_ylim()[1] == pytest.approx(top, rel=0.1)


def test_differences_of_results(results: list[Result]) -> None:
    for plot in (plot_changes, plot_moves):
        assert isinstance(plot(results), Axes)
        assert isinstance(plot(results_of(results)), Axes)
        with pytest.raises(UsageError, match="need two results, found one"):
            plot(results[0])


def test_equal_names_are_numbered(results: list[Result]) -> None:
    assert list(results_of([results[0]] * 3)) == ["fcfs", "fcfs (2)", "fcfs (3)"]


@pytest.mark.parametrize("given", [5, None, "fcfs", [], {}, [3], {"fcfs": 3}])
def test_something_else_is_refused(given: Any) -> None:
    with pytest.raises(
        UsageError, match="a plot needs a Result, several, or a mapping of them by name, found"
    ):
        results_of(given)


def test_plots_of_one_result_refuse_several(results: list[Result]) -> None:
    with pytest.raises(UsageError, match="one result is needed, found 2: fcfs, fcfs\\+easy"):
        only_result(results)
