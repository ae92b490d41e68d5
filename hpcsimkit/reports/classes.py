"""Pictures of mean waits by class of job, and by groups such as queues and users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.reports import plots
from hpcsimkit.reports.figures import format_duration, new_figure, title
from hpcsimkit.reports.picture import WIDTH, Picture
from hpcsimkit.results.breakdown import GROUPS, By, breakdown, classes_of
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

GROUP_NAMES: Mapping[By, str] = {"group": "group (account)", "qos": "QOS"}
"""Display names of groups that differ from the names of their columns."""

TOP = 10
"""Maximum number of groups with a column and a row of their own."""

LONGEST = 16
"""Maximum length of a label beneath a heat map [characters]."""

Waits = Mapping[str, "pandas.DataFrame"]
"""Breakdown under each policy."""


def draw_classes(results: plots.Results) -> Picture:
    """Return the heat maps of mean waits by size and, where they differ, run time, use of GPUs and type."""
    first = next(iter(results.values()))
    ways: dict[By, str] = {
        "size": f"By size of the job [{RESOURCE_NAMES.get(first.unit, first.unit)}]",
        "run_time": "By run time of the job",
        "gpus": "By use of GPUs",
        "kind": "By kind of work",
    }
    kept = {by: heading for by, heading in ways.items() if by == "size" or len(breakdown(first, by)) > 1}
    waits = {heading: {name: breakdown(r, by) for name, r in results.items()} for by, heading in kept.items()}
    return Picture(
        "classes",
        "Mean wait by class of job",
        "Each cell is the mean wait of the jobs of a class (column) under a policy (row); stronger "
        "colour is longer. Read down a column to compare policies, along a row to see whom a policy "
        "favours.",
        "Colours are logarithmic within each table. Run times are those that jobs really had, not the "
        "requested ones.",
        _heat_maps(waits),
    )


def draw_groups(results: plots.Results) -> Picture | None:
    """Return the heat maps of mean waits by groups of the log; None if it has none."""
    groups = groups_of(next(iter(results.values())))
    if not groups:
        return None
    waits = {
        f"By {name}": {policy: breakdown(result, by, top=TOP) for policy, result in results.items()}
        for by, name in groups.items()
    }
    return Picture(
        "groups",
        "Mean wait by group of jobs",
        "As above, for the groups that the log names. The groups with the most node-seconds come first; "
        "all others are one column. The tables below have the numbers of jobs.",
        f"At most {TOP} groups have a column of their own. Colours are logarithmic within each table.",
        _heat_maps(waits),
        tuple((heading, _table(tables)) for heading, tables in waits.items()),
    )


def groups_of(result: Result) -> dict[By, str]:
    """Return the names of the columns with more than one group, without columns equal to a former one."""
    kept: dict[By, NDArray[np.int64]] = {}
    for by in GROUPS:
        _, first, group = np.unique(classes_of(result, by)[0], return_index=True, return_inverse=True)
        first_of_group = first[group]
        if len(first) > 1 and not any(np.array_equal(first_of_group, other) for other in kept.values()):
            kept[by] = first_of_group
    return {by: GROUP_NAMES.get(by, by) for by in kept}


def _heat_maps(waits: Mapping[str, Waits]) -> Figure:
    """Return a figure with a heat map of mean waits for each heading."""
    policies = len(next(iter(waits.values())))
    figure = new_figure(WIDTH, 0.5 + len(waits) * (0.5 + 0.27 * policies), rows=len(waits))
    for ax, (heading, tables) in zip(figure.axes, waits.items(), strict=True):
        classes = list(max(tables.values(), key=len).index)
        values = {
            name: [table.mean_wait_time.get(label, np.nan) for label in classes]
            for name, table in tables.items()
        }
        short = [label.replace(" groups)", ")") for label in classes]
        shown = [label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…" for label in short]
        plots.plot_heat_map(values, shown, ax, formatted=lambda value: format_duration(value, 2))
        title(ax, heading)
    return figure


def _table(tables: Waits) -> pandas.DataFrame:
    """Return numbers of jobs, shares of node-seconds, and mean waits under each policy, as texts."""
    longest = max(tables.values(), key=len)
    frame = longest[["jobs", "area_share"]].rename(columns={"area_share": "node-seconds"})
    frame = frame.assign(**{name: table.mean_wait_time for name, table in tables.items()})
    forms = {"jobs": "{:,}".format, "node-seconds": "{:.1%}".format}
    return frame.apply(lambda column: column.map(forms.get(column.name, format_duration)))
