"""Output of the command line: lines and tables; with rich on a terminal, plain text elsewhere."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.compiled.support import obstacle_of_policy
from hpcsimkit.experiments.parts.on_machines import offered_loads
from hpcsimkit.experiments.parts.registry import make
from hpcsimkit.io.printable import printable, show
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.workloads.describe import load_remark

if TYPE_CHECKING:
    from hpcsimkit.experiments.comparison.policy_run import Run
    from hpcsimkit.experiments.parts.catalogue import Entry

HEADLINES = {
    "mean_wait_time": "mean wait [s]",
    "median_wait_time": "median [s]",
    "p95_wait_time": "95 % [s]",
    "max_wait_time": "max [s]",
    "mean_bounded_slowdown": "mean bounded slowdown",
    "utilisation": "utilisation",
    "gpus_utilisation": "GPU utilisation",
    "gpu_fragmentation": "GPU fragmentation",
    "makespan": "makespan [s]",
}
"""Metrics of the comparison table, with their column headings."""

BEST = "*"

Shown = tuple[Sequence[str], Sequence[Sequence[str]]]
"""Headings and rows of a table."""

WIDER_THAN_ANY_TABLE = 1000


def grouped(number: float) -> str:
    """Return a whole number with spaces as thousands separators.

    >>> grouped(28475)
    '28 475'
    """
    return f"{number:,.0f}".replace(",", " ")


def loaded(workload: Workload, cluster: Machines | None = None) -> Iterator[str]:
    """Yield lines about a workload: its size, the skipped jobs, and its processing steps.

    >>> columns = {"submit_time": [0], "run_time": [9], "nodes": [8]}
    >>> list(loaded(Workload(columns, machine_size=8, skipped={"no run time": 2})))
    ['workload: 1 job kept on 8 nodes, 2 skipped: 2 no run time']
    """
    skipped = sum(workload.skipped.values())
    reasons = "; ".join(f"{grouped(count)} {reason}" for reason, count in workload.skipped.items())
    jobs = f"{grouped(len(workload))} job{'s' * (len(workload) != 1)} kept"
    where = f"{grouped(workload.machine_size or 0)} nodes" if cluster is None else cluster.summary
    left_out = f", {grouped(skipped)} skipped: {reasons}" if skipped else ", none skipped"
    name = workload.name.replace("\n", "\\n")
    yield f"{name}: {jobs} on {where}{_load(workload, cluster)}{left_out}"
    if workload.provenance:
        yield f"  steps: {'; '.join(workload.provenance)}"
    if workload.notes:
        yield "  notes: " + "; ".join(f"{grouped(count)} {note}" for note, count in workload.notes.items())
    if remark := load_remark(workload):
        yield f"  load: {remark}"


def _load(workload: Workload, cluster: Machines | None) -> str:
    """Return the text of the offered load; for machines, that of each resource."""
    if not workload.span:
        return ""
    if cluster is None:
        return f", offered load {workload.offered_load():.2f}"
    loads = offered_loads(workload, cluster).items()
    return f", offered load {', '.join(f'{load:.2f} of {name}' for name, load in loads if load)}"


# --- tables ----------------------------------------------------------------------------------------------


def comparison(
    runs: Sequence[Run], metrics: Iterable[str] | None = None
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of a comparison; a star marks the best values of a column."""
    columns = {name: [run.metrics[name] for run in runs] for name in metrics or HEADLINES}
    defined = {
        name: values
        for name, values in columns.items()
        if metrics or any(value is not None for value in values)
    }
    cells = [_marked(name, values) for name, values in defined.items()]
    rows = [[run.policy, *(column[row] for column in cells)] for row, run in enumerate(runs)]
    return ["policy", *(HEADLINES.get(name) or metric_heading(name) for name in defined)], rows


def _marked(name: str, values: Sequence[float | None]) -> list[str]:
    """Return the values of a column as text; a star marks the best ones if values differ."""
    known = [value for value in values if value is not None]
    better = {"lower": min, "higher": max}.get(METRICS[name].direction if name in METRICS else "none")
    best = math.nan if better is None else better(known, default=math.nan)
    differ = len(set(known)) > 1
    return [f"{BEST if differ and value == best else ' '}{number_text(value)}" for value in values]


def number_text(value: float | None) -> str:
    """Return a number as table text, with four digits or all before the decimal point.

    >>> number_text(2504.3), number_text(26.2634), number_text(None)
    ('2 504', '26.26', '-')
    """
    if value is None:
        return "-"
    return grouped(value) if abs(value) >= 1000 else f"{value:.4g}"


def metric_heading(name: str) -> str:
    """Return the name of a metric with its unit.

    >>> metric_heading("mean_wait_time"), metric_heading("utilisation")
    ('mean_wait_time [s]', 'utilisation')
    """
    unit = METRICS[name].unit if name in METRICS else "1"
    return name if unit == "1" else f"{name} [{unit}]"


def plain_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a plain-text table: the first column is left-aligned, the others are right-aligned.

    >>> print(plain_table(["policy", "wait"], [["fcfs", "12"], ["fcfs+easy", "*7"]]))
    policy     wait
    fcfs         12
    fcfs+easy    *7
    """
    lines = [headings, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    padded = (
        [
            line[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
        ]
        for line in lines
    )
    return "\n".join("  ".join(cells).rstrip() for cells in padded)


def comparison_parts(runs: Sequence[Run], metrics: Iterable[str] | None = None) -> Iterator[str | Shown]:
    """Yield lines and tables, as headings and rows, of a comparison.

    A row of metrics for each run, by default the usual ones; the best of each column is marked. With
    partitions, a second table has the mean wait in each; with gates, a table has the share of the wait by
    reason.
    """
    headings, rows = comparison(runs, metrics)
    yield headings, rows
    if any(cell.startswith(BEST) for row in rows for cell in row):
        yield f"{BEST} best of its column"
    if all(run.metrics.get("max_wait_time") == 0 for run in runs):
        yield "load: no job waits under any policy; raise --load-factor to separate policies"
    yield from (f"{run.policy}: {note}" for run in runs for note in run.notes)
    partitions = list(dict.fromkeys(name for run in runs for name in run.waits))
    if partitions:
        rows = [[run.policy, *(number_text(run.waits.get(name)) for name in partitions)] for run in runs]
        yield "mean wait [s] by the partition in which jobs started"
        yield ["policy", *partitions], rows
    reasons = sorted({reason for run in runs for reason in run.held})
    if reasons:
        rows = [[run.policy, *(f"{100 * run.held.get(each, 0.0):.1f} %" for each in reasons)] for run in runs]
        yield "share of the wait by the reason for which gates held jobs; the rest was spent in the queue"
        yield ["policy", *reasons], rows


def comparison_lines(runs: Sequence[Run], metrics: Iterable[str] | None = None) -> Iterator[str]:
    """Yield the lines of a comparison."""
    for part in comparison_parts(runs, metrics):
        yield part if isinstance(part, str) else plain_table(*part)


def show_comparison(runs: Sequence[Run], metrics: Iterable[str] | None = None) -> None:
    """Print a comparison, with tables of rich on a terminal."""
    for part in comparison_parts(runs, metrics):
        show(part) if isinstance(part, str) else _show_table(*part)


def _show_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if sys.stdout.isatty():
        _show_on_terminal(headings, rows)
    else:
        show(plain_table(headings, rows))


def _show_on_terminal(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print the table with rich; a narrow terminal wraps lines, but no number is truncated."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        words = re.sub(r" (?!%)", "\n", heading)
        table.add_column(Text(words), justify="right" if number else "left")
    for row in rows:
        cells = map(printable, row)
        table.add_row(*(Text(cell, style="bold green" if cell.startswith(BEST) else "") for cell in cells))
    Console(width=WIDER_THAN_ANY_TABLE).print(table)


def policy_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a line for each registered name of a policy or a component, by kind."""
    yield from _aligned(
        [(_names(entry), entry.kind, "C" * _is_compiled(entry), _plain(entry.summary)) for entry in entries]
    )
    yield ""
    yield "C: also compiled (--simulator), if all parts of the pipeline are; some on identical nodes only."
    yield "Join an order with what else there is: sjf+easy. Parameters go in parentheses: 'easy-k(4)'."
    yield "Your own: -p mymodule:MyPolicy or -p path/file.py:MyPolicy, alone or joined."


def _is_compiled(entry: Entry) -> bool:
    """Return whether the compiled simulator knows a name, by itself or as a part of a pipeline."""
    alone = entry.kind in ("order", "pipeline", "policy")
    others = "fcfs+easy" if entry.kind == "tester" else "fcfs"  # tests need reservations
    return (
        entry.kind != "plug-in"
        and obstacle_of_policy(make(entry.name if alone else f"{others}+{entry.name}")) is None
    )


def part_lines(entries: Sequence[Entry]) -> Iterator[str]:
    """Yield a line for each part: kind, name, the distribution that provides it, and its description."""
    yield from _aligned(
        [(entry.kind, _names(entry), entry.origin, _plain(entry.summary)) for entry in entries]
    )


def _names(entry: Entry) -> str:
    return ", ".join((entry.name, *entry.aliases))


def _plain(text: str) -> str:
    """Return a text without markup: ``:class:`F1` `` is F1, and two backquotes are none."""
    return re.sub(r":\w+:`~?([^`]*)`", r"\1", text).replace("``", "")


def _aligned(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield a line for each row, with all columns but the last padded to the same width."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:-1]
    for *cells, last in rows:
        padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]
        yield "  ".join([*padded, last]).rstrip()
