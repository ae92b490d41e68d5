"""Report of a results folder as one self-contained page, `report.html`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.request import amounts_text
from hpcsimkit.io.files import make_folder, write_bytes
from hpcsimkit.reports.figures import format_duration, format_number, line_styles, save_figure
from hpcsimkit.reports.gallery import draw_comparison, draw_pictures
from hpcsimkit.reports.page import rendered_page, shown_picture, swatch
from hpcsimkit.reports.picture import Picture
from hpcsimkit.reports.saved_results import SavedResults
from hpcsimkit.reports.zoom import zoom_data
from hpcsimkit.results.metrics import METRICS, Metric
from hpcsimkit.results.resource_metrics import RESOURCE_NAMES
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["draw_overview", "plot_results", "write_report"]

SUMMARY = (
    "mean_wait_time",
    "median_wait_time",
    "p95_wait_time",
    "max_wait_time",
    "mean_bounded_slowdown",
    "utilisation",
    "gpus_utilisation",
    "gpu_fragmentation",
    "makespan",
)
"""Metrics of the table at the top; undefined ones are left out."""

MANY = 7
"""Number of columns beyond which their headings stand upright."""

ARROWS = {"lower": "↓", "higher": "↑", "none": ""}

Row = dict[str, Any]


def write_report(folder: str | os.PathLike[str]) -> Path:
    """Write ``report.html`` of a results folder: one self-contained page with all figures.

    Parameters
    ----------
    folder : path
        Path of a results folder; docs/guides/results_folder.md describes its contents.

    Returns
    -------
    Path
        Path of the page.

    Raises
    ------
    UsageError
        The path is not a results folder, or a file in it is missing or damaged.
    WorkloadError
        The page cannot be written.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hpcsimkit import Experiment
    >>> from hpcsimkit.experiments.comparison.campaign import Campaign
    >>> experiment = Experiment(policies=["fcfs"], jobs=50, report=False)
    >>> with TemporaryDirectory() as place:
    ...     _ = Campaign(experiment, experiment.workload(), f"{place}/out").run()
    ...     page = write_report(f"{place}/out").read_text()
    >>> page[:15]
    '<!doctype html>'
    """
    saved = SavedResults.read(folder)
    return _write_page(Path(folder), saved, draw_pictures(saved.results))


def plot_results(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the figures of a results folder as PNG and SVG to its folder ``pictures``, and ``report.html``.

    Returns
    -------
    list of Path
        Paths of the written files, the page last.

    Raises
    ------
    UsageError
        The path is not a results folder, or a file in it is missing, damaged or in the way.
    WorkloadError
        A file cannot be written.
    """
    saved = SavedResults.read(folder)
    place = Path(folder) / "pictures"
    make_folder(place, parents=False)
    pictures = list(draw_pictures(saved.results))
    page = _write_page(Path(folder), saved, pictures)
    files = [
        save_figure(picture.figure, place / f"{picture.name}.{kind}")
        for picture in pictures
        for kind in ("png", "svg")
    ]
    return [*files, page]


def draw_overview(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Write one wide figure of a results folder, as in the README: wait times, a busy window and metrics.

    Parameters
    ----------
    folder : path
        Path of a results folder.
    path : path
        Path of the figure: .png, .svg or .pdf.

    Raises
    ------
    UsageError
        The path is not a results folder, a file in it is missing or damaged, or `path` has another suffix.
    WorkloadError
        The figure cannot be written.
    """
    saved = SavedResults.read(folder)
    return save_figure(draw_comparison(saved.results, saved.metrics), path)


def _write_page(folder: Path, saved: SavedResults, pictures: Iterable[Picture]) -> Path:
    target = folder / "report.html"
    write_bytes(target, _page(saved, pictures).encode())
    return target


def _page(saved: SavedResults, pictures: Iterable[Picture]) -> str:
    """Return the page rendered from the template."""
    rows = _metrics(saved.metrics)
    return rendered_page(
        "report.html.jinja",
        title=f"Scheduling policies on {saved.provenance['workload']['name']}",
        subtitle=_subtitle(saved.provenance),
        tiles=list(_tiles(saved)),
        pictures=[shown_picture(picture) for picture in pictures],
        metrics=rows,
        summary=[row for row in rows if row["name"] in SUMMARY],
        cell=_cell,
        policies=_policies(saved),
        many=MANY,
        zoom=zoom_data(saved.results),
        notes=[
            (name, note)
            for name, about in saved.provenance["policies"].items()
            for note in about.get("notes", ())
        ],
        trimmed=_trimmed(saved.provenance.get("options", {})),
        facts=list(_facts(saved)),
        remarks=list(_remarks(saved.provenance["workload"])),
        experiment=saved.experiment,
    )


# --- the top -------------------------------------------------------------------------------------------


def _subtitle(provenance: Mapping[str, Any]) -> str:
    number, version = len(provenance["policies"]), provenance.get("version", "")
    policies = "1 policy" if number == 1 else f"{number} policies"
    return f"{policies}, simulated with hpcsimkit {version}"


def _tiles(saved: SavedResults) -> Iterator[tuple[str, str]]:
    """Yield the key figures as pairs of value and label."""
    result = next(iter(saved.results.values()))
    yield f"{len(result):,}", "jobs"
    yield _machine(result)
    yield format_duration(result.workload.span), "of submissions"
    yield from _offered_load(saved)
    for metric, label, formatted in (
        ("mean_wait_time", "shortest mean wait", format_duration),
        ("mean_bounded_slowdown", "lowest mean bounded slowdown", format_number),
    ):
        values = {name: value for name, m in saved.metrics.items() if (value := m.get(metric)) is not None}
        if len(values) > 1:
            best = min(values, key=lambda name: values[name])
            yield best, f"{label}: {formatted(values[best])}"


def _machine(result: Result) -> tuple[str, str]:
    if result.placements is None:
        return f"{result.size:,}", "nodes"
    cluster = result.placements.cluster
    return f"{len(cluster):,}", f"machines: {amounts_text(cluster.resources, cluster.totals)}"


def _offered_load(saved: SavedResults) -> Iterator[tuple[str, str]]:
    """Yield the offered load; for machines, that of the resource with the highest load."""
    machines = saved.provenance.get("machines")
    if not machines:
        load = next(iter(saved.results.values())).workload.offered_load()
        yield format_number(load, 3), "offered load"
    elif loads := machines.get("offered_load"):
        most = max(loads, key=lambda name: loads[name])
        yield format_number(loads[most], 3), f"offered load of {RESOURCE_NAMES.get(most, most)}"


# --- metrics -------------------------------------------------------------------------------------------


def _metrics(values: Mapping[str, Mapping[str, float | None]]) -> list[Row]:
    """Return a row for each computed metric of `METRICS`, with its values and its best value."""
    rows = []
    saved = sorted({name for metrics in values.values() for name in metrics})
    for name in dict.fromkeys([*METRICS, *saved]):
        # The report of a folder may be drawn again where the code of the user's metrics is not imported.
        metric = METRICS.get(name) or Metric(name, "1", "", "none", "", lambda result, selection: math.nan)
        of_policy = {policy: metrics.get(name) for policy, metrics in values.items()}
        if all(value is None for value in of_policy.values()):
            continue
        rows.append(
            {
                "name": name,
                "label": name.replace("_", " "),
                "unit": "" if metric.unit == "1" else metric.unit,
                "arrow": ARROWS[metric.direction],
                "summary": metric.summary,
                "formula": metric.formula,
                "values": of_policy,
                "best": _best(of_policy.values(), metric.direction),
            }
        )
    return rows


def _best(values: Iterable[float | None], direction: str) -> float | None:
    """Return the best value; None if no direction is better, or all values are equal."""
    known = [value for value in values if value is not None]
    if direction == "none" or not known or math.isclose(min(known), max(known), rel_tol=1e-12):
        return None
    return min(known) if direction == "lower" else max(known)


def _cell(metric: Row, policy: str) -> Markup:
    """Return the table cell of a value: marked if it is the best, with all digits as a tooltip."""
    from markupsafe import Markup

    value, unit = metric["values"][policy], metric["unit"]
    if value is None:
        return Markup(f"<td>{format_number(None)}</td>")
    exact = f"{value:,.10g} {unit}".strip()
    exact += f" = {format_duration(value)}" if unit == "s" and value >= 60 else ""
    best = metric["best"] is not None and math.isclose(value, metric["best"])
    mark = ' class="best"' if best else ""
    text = f"{value:,.0f}" if unit == "jobs" else format_number(value, padded=True)
    return Markup(f'<td{mark} title="{exact}">{text}</td>')


# --- where it comes from -------------------------------------------------------------------------------


def _policies(saved: SavedResults) -> list[Row]:
    styles = line_styles(saved.results)
    return [
        {
            "name": name,
            "swatch": swatch(styles[name]),
            "parts": about.get("policy", ""),
            "passes": f"{about.get('passes', 0):,}",
            "hash": about.get("schedule_sha256", ""),
        }
        for name, about in saved.provenance["policies"].items()
    ]


def _trimmed(options: Mapping[str, Any]) -> str:
    warmup, cooldown = options.get("warmup", 0), options.get("cooldown", 0)
    if not (warmup or cooldown):
        return ""
    left_out = f"the first {format_duration(warmup)} and the last {format_duration(cooldown)}"
    return f"Metrics leave out {left_out} of the submissions; pictures show all jobs."


def _facts(saved: SavedResults) -> Iterator[tuple[str, str]]:
    """Yield the label and value of each fact that determined the results."""
    provenance = saved.provenance
    workload = provenance["workload"]
    versions = {"hpcsimkit": provenance.get("version"), "Python": provenance.get("python")}
    versions |= provenance.get("packages", {})
    options = {name: value for name, value in provenance.get("options", {}).items() if _plain(value)}
    for label, value in (
        ("workload", workload["name"]),
        ("log", workload.get("log")),
        ("log, SHA-256", workload.get("log_sha256")),
        ("jobs, SHA-256", workload.get("hash")),
        ("made by", "; ".join(workload.get("steps", []))),
        ("load", workload.get("load_remark")),
        ("seed", provenance.get("seed")),
        ("options", ", ".join(f"{name} = {value}" for name, value in options.items())),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
    ):
        if value is not None and value != "":
            yield label, str(value)


def _plain(value: Any) -> bool:
    return value is not None and not isinstance(value, dict | list)


def _remarks(workload: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield headings with rows (reason, number of jobs), for skipped and for noted jobs."""
    for key, heading, nothing in (
        ("skipped", "Skipped jobs", "no job was skipped"),
        ("notes", "Data repairs", ""),
    ):
        rows = [(reason, f"{count:,}") for reason, count in workload.get(key, {}).items()]
        if rows or nothing:
            yield heading, rows or [(nothing, "0")]
