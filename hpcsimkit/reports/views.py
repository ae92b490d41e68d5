"""Objects in notebooks: tables, pictures and diagrams as HTML; and plots by name.

Every text of a log or of a user is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports import plots, workload_plots
from hpcsimkit.reports.availability import plot_availability
from hpcsimkit.reports.figures import (
    axes_of,
    format_duration,
    image_uri,
    in_pyplot,
    new_figure,
    style,
    title,
)
from hpcsimkit.reports.given import Given, results_of
from hpcsimkit.reports.learning_curve import draw_learning_curve, plot_column
from hpcsimkit.reports.page import rendered_page
from hpcsimkit.reports.week import plot_week
from hpcsimkit.reports.zoom import zoom_data
from hpcsimkit.results.metrics import METRICS, measure
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.describe import Description, describe

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = [
    "ZoomChart",
    "agent_html",
    "answer_html",
    "card",
    "description",
    "description_html",
    "image",
    "machines_html",
    "metrics_of",
    "partitions_html",
    "pipeline_html",
    "plot_results",
    "plot_training",
    "plot_workload",
    "result_html",
    "summary_of",
    "table",
    "training_html",
    "workload_html",
]

OF_RESULTS: Mapping[str, Callable[..., Any]] = {
    "wait": plots.plot_wait,
    "wait_tail": plots.plot_wait_tail,
    "slowdown": plots.plot_slowdown,
    "fairness": plots.plot_fairness,
    "start_modes": plots.plot_start_modes,
    "gantt": plots.plot_gantt,
    "queue": plots.plot_queue,
    "busy": plots.plot_busy,
    "availability": plot_availability,
    "week": plot_week,
}
"""Plots of results by name."""

OF_WORKLOADS: Mapping[str, Callable[..., Any]] = {
    "hours": workload_plots.plot_hours,
    "weekdays": workload_plots.plot_weekdays,
    "sizes": workload_plots.plot_sizes,
    "durations": workload_plots.plot_durations,
    "accuracy": workload_plots.plot_accuracy,
    "load": workload_plots.plot_offered_load,
}
"""Plots of workloads by name."""

ROWS = 20
"""Maximum number of rows of a table."""


# --- plots by name ---------------------------------------------------------------------------------------


def plot_results(results: Given, kind: str, ax: Any = None, **options: Any) -> Any:
    """Draw results by the name of a plot, and return the axes."""
    return _named(kind, OF_RESULTS)(results, ax=ax, **options)


def plot_workload(workload: Workload, kind: str | None, ax: Any = None) -> Any:
    """Draw a workload by the name of a plot, or all plots; return the axes."""
    if kind is not None:
        return _named(kind, OF_WORKLOADS)(workload, ax=ax)
    if ax is not None:
        raise UsageError(f"one plot is drawn on given axes: a kind is needed ({', '.join(OF_WORKLOADS)})")
    with in_pyplot():
        figure = workload_plots.draw_workload(workload)
    return np.array(figure.axes, dtype=object)


def _named(kind: str, known: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    if kind not in known:
        raise UsageError(f"unknown plot {kind!r}{nearest(kind, known)}; plots are {', '.join(known)}")
    return known[kind]


def metrics_of(result: Result) -> dict[str, float]:
    """Return all metrics of a result."""
    return measure(result)


def summary_of(result: Result) -> pandas.DataFrame:
    """Return the defined metrics of a result with their units, directions and descriptions."""
    import pandas

    rows = {
        name: (value, METRICS[name].unit, METRICS[name].direction, METRICS[name].summary)
        for name, value in measure(result).items()
        if np.isfinite(value)
    }
    columns = ["value", "unit", "better", "description"]
    frame = pandas.DataFrame.from_dict(rows, orient="index", columns=columns)
    return frame.rename_axis("metric")


def description(workload: Workload) -> Description:
    """Return descriptive statistics of a workload."""
    return describe(workload)


# --- parts of pages --------------------------------------------------------------------------------------


def card(heading: str, rows: Iterable[tuple[str, object]], *parts: str) -> str:
    """Return a heading and a table of facts, escaped, and further parts, which are markup."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(str(name))}</th>"
        f"<td style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in rows
    )
    return f"<div><h4>{escape(heading)}</h4><table>{cells}</table>{''.join(parts)}</div>"


def table(frame: pandas.DataFrame, rows: int = ROWS) -> str:
    """Return the first rows of a table as markup, and how many are left out."""
    text: str = frame.head(rows).to_html(escape=True, border=0, na_rep="", float_format="{:,.4g}".format)
    left_out = len(frame) - rows
    return text + (f"<p>and {left_out:,} more rows</p>" if left_out > 0 else "")


def image(figure: Figure, description: str) -> str:
    """Return a figure as markup."""
    look = "style='max-width:100%;background:#fefefe'"
    return f"<p><img alt='{escape(description, quote=True)}' {look} src='{image_uri(figure)}'></p>"


# --- objects ---------------------------------------------------------------------------------------------


def workload_html(workload: Workload) -> str:
    """Return the size, the load, the first jobs and a picture of a workload."""
    load = workload.offered_load() if workload.span else float("nan")
    skipped = sum(workload.skipped.values())
    rows = [
        ("Jobs", f"{len(workload):,}" + (f", {skipped:,} skipped" if skipped else "")),
        ("Machine", "unknown" if workload.machine_size is None else f"{workload.machine_size:,} nodes"),
        *([("Resources", ", ".join(workload.resources))] if workload.resources else []),
        ("Submitted within", format_duration(workload.span)),
        ("Offered load", f"{load:.3g}" if np.isfinite(load) else "unknown"),
    ]
    parts = [table(workload.head())]
    if len(workload):
        parts.append(image(workload_plots.draw_workload(workload), f"plots of {workload.name}"))
    return card(f"Workload {workload.name}", rows, *parts)


def result_html(result: Result, rows: Iterable[tuple[str, str]]) -> str:
    """Return the facts of a result, a busy window and the queue."""
    parts = []
    if result.finished.any():
        figure = new_figure(9.0, 4.4, rows=2, height_ratios=(2, 1))
        allocations, queue = figure.axes
        title(plots.plot_gantt(result, allocations), "A busy window")
        title(plots.plot_queue(result, queue), "Jobs waiting")
        parts.append(image(figure, f"Gantt chart and queue of {result.policy}"))
    return card(f"{result.policy} on {result.workload.name}", rows, *parts)


def description_html(found: Description) -> str:
    """Return the sections of a description as tables beside each other."""
    shown = {name: rows for name, rows in found.to_dict().items() if name != "name" and rows}
    cards = "".join(card(name, rows.items()) for name, rows in shown.items())
    return f"<h4>{escape(found.name)}</h4><div style='display:flex;flex-wrap:wrap;gap:0 2em'>{cards}</div>"


def answer_html(
    kind: str, tables: Mapping[str, pandas.DataFrame], figure: Callable[[], Figure | None]
) -> str:
    """Return the tables of an answer and its picture, if there is one."""
    drawn = figure()
    shown = [f"<h5>{escape(name)}</h5>{table(frame)}" for name, frame in tables.items()]
    return card(kind, (), *shown, *([] if drawn is None else [image(drawn, f"picture of {kind}")]))


def agent_html(agent: Any, model: str) -> str:
    """Return what an agent sees and answers, and facts of its training."""
    rows = [
        ("Seat", agent.stage),
        ("Model", model),
        ("Observations", repr(agent.encoder)),
        ("Actions", repr(agent.mask)),
        ("Choice", "sampled" if agent.sample else "best valid action"),
        *(
            (f"Training: {name}", value)
            for name, value in agent.trained.items()
            if not isinstance(value, dict)
        ),
    ]
    return card(type(agent).__name__, rows)


def plot_training(trainer: Any, ax: Any = None) -> Any:
    """Draw the rewards of a training over its steps, and return the axes."""
    curve = _curve_of(trainer)
    own = axes_of(ax, 7.5, 2.5)
    with style():
        plot_column(curve, "reward", own)
        own.set(xlabel=f"training {trainer.unit}", ylabel="reward of the episodes")
    return own


def training_html(trainer: Any) -> str:
    """Return the settings of a training, its state, and its learning curve."""
    settings = trainer.plain_settings()
    curve = _curve_of(trainer)
    rows = [
        ("Steps", f"{curve['steps'][-1]:,.0f} of {trainer.total:,}" if len(curve["steps"]) else "not begun"),
        *((name, value) for name, value in settings.items() if not isinstance(value, dict)),
    ]
    drawn = [image(draw_learning_curve(curve, None), "learning curve")] if len(curve["steps"]) > 1 else []
    return card(f"{type(trainer).__name__} ({trainer.algorithm})", rows, *drawn)


def _curve_of(trainer: Any) -> dict[str, NDArray[np.float64]]:
    """Return the steps, rewards and measures of the rounds of a training."""
    reports = getattr(trainer, "curve", [])
    names = dict.fromkeys(name for report in reports for name in report.measures)
    return {
        "steps": np.array([float(report.steps) for report in reports]),
        "reward": np.array([report.reward for report in reports]),
        **{name: np.array([report.measures.get(name, np.nan) for report in reports]) for name in names},
    }


def machines_html(machines: Machines) -> str:
    """Return the kinds of machines, with their numbers and resources."""
    import pandas

    kinds: dict[tuple[Any, ...], list[str]] = {}
    for name, amounts, features in zip(
        machines.names, machines.capacity.tolist(), machines.features, strict=True
    ):
        kinds.setdefault((*amounts, ", ".join(sorted(features))), []).append(name)
    shown = pandas.DataFrame(
        [(_range(names), len(names), *kind) for kind, names in kinds.items()],
        columns=["machines", "count", *machines.resources, "features"],
    )
    totals = [(name, f"{total:,}") for name, total in zip(machines.resources, machines.totals, strict=True)]
    return card(machines.summary, totals, table(shown))


def _range(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]}"


def partitions_html(partitions: Partitions) -> str:
    """Return the partitions with their limits."""
    import pandas

    rows = [
        {
            "partition": part.name + (" (default)" if part.default else ""),
            "nodes or machines": repr(view.cluster),
            "priority": part.priority,
            "max time": format_duration(part.max_time),
            "max nodes": "-" if part.max_nodes is None else part.max_nodes,
            "order": "-" if part.order is None else str(part.order),
        }
        for part, view in zip(partitions.parts, partitions.views, strict=True)
    ]
    count = f"{len(rows)} partition{'s' * (len(rows) != 1)}"
    return card(count, [("Jobs name them in", partitions.column)], table(pandas.DataFrame(rows), 100))


def pipeline_html(pipeline: Any, seats: Iterable[str]) -> str:
    """Return a diagram of the seats of a pipeline; empty seats are left out, open ones are dashed."""
    from hpcsimkit.kernel.pipeline import Pipeline

    texts = {seat: _stage_text(pipeline, seat) for seat in seats}
    boxes = [_box(seat, texts[seat], _is_open(pipeline, seat)) for seat in PASS if texts.get(seat)]
    chain = ARROW.join([*boxes, _box("start", "the job", False)])
    blocked = [_box(seat, texts[seat], _is_open(pipeline, seat)) for seat in BLOCKED if texts.get(seat)]
    beside = ARROW.join(blocked) or _box("wait", "no backfilling", False)
    options = [
        (name, getattr(pipeline, name))
        for name in OPTIONS
        if getattr(pipeline, name, None) not in (None, False)
    ]
    lines = [
        f"<p style='margin:.4em 0'>Next job: {chain}</p>",
        f"<p style='margin:.4em 0'>If it does not fit: {beside}</p>",
    ]
    kind = type(pipeline).__name__
    return card(kind if kind != Pipeline.__name__ else "Pipeline", options, *lines)


ARROW = "<span style='padding:0 .4em'>&rarr;</span>"

PASS = ("order", "gate", "inspector", "estimates", "placement")
"""Stages that the next job passes, in their order."""

BLOCKED = ("preemptor", "backfiller", "tester")
"""Stages that decide if it does not fit."""

OPTIONS = ("commit", "fitting", "window", "max_candidates", "max_interval", "max_rejections")


def _stage_text(pipeline: Any, seat: str) -> str:
    stage = getattr(pipeline, seat, None)
    if stage is None:
        return repr(pipeline.queue_order) if seat == "order" else ""
    return repr(stage)


def _is_open(pipeline: Any, seat: str) -> bool:
    return bool(getattr(getattr(pipeline, seat, None), "open", False))


def _box(seat: str, text: str, is_open: bool) -> str:
    edge = "dashed" if is_open else "solid"
    look = f"display:inline-block;border:1px {edge};border-radius:.4em;padding:.2em .6em;margin:.1em 0"
    note = " (open)" if is_open else ""
    return f"<span style='{look}'><b>{escape(seat)}</b>{note} {escape(text)}</span>"


class ZoomChart:
    """Gantt chart of all jobs that zooms: in a notebook, or saved as a page that needs no network.

    Parameters
    ----------
    results : Result, several, or mapping of str to Result
        Schedules, among which the chart lets the reader choose.
    """

    def __init__(self, results: Given) -> None:
        self.results = results_of(results)

    def page(self) -> str:
        """Return the chart as a page of HTML.

        Raises
        ------
        UsageError
            No job ran.
        """
        data = zoom_data(self.results)
        if not data:
            raise UsageError("a chart of all jobs needs jobs that ran, found none")
        return rendered_page("chart.html.jinja", title=", ".join(self.results), zoom=data)

    def save(self, path: Any) -> Path:
        """Write the chart as a page of HTML.

        Raises
        ------
        WorkloadError
            The file cannot be written.
        """
        write_bytes(path, self.page().encode())
        return Path(path)

    def __repr__(self) -> str:
        return f"<ZoomChart of {', '.join(self.results)}: shown in a notebook, or save('chart.html')>"

    def _repr_html_(self) -> str:
        look = "style='width:100%;height:34rem;border:0'"
        return f"<iframe {look} title='schedule' srcdoc=\"{escape(self.page(), quote=True)}\"></iframe>"
