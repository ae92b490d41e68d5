"""Command that compares a simulated schedule with the recorded one."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from hpcsimkit.cli.flags import (
    OF_JOBS,
    OF_RUNS,
    RESULTS,
    Limits,
    Overwrite,
    Quiet,
    Source,
    examples,
    experiment_of,
    takes,
)
from hpcsimkit.io.printable import show

__all__ = ["validate"]

HEADINGS = ("waits", "jobs", "recorded [s]", "simulated [s]", "ratio", "Wasserstein [s]", "KS")

OF_MARKS = ("agreement", "measure", "value", "good", "fair", "grade")

FILES = ("validation.csv", "agreement.csv", "residue.csv", "validation.png")


@examples(
    "validate KTH-SP2.swf.gz",
    "validate march.sacct --machines machines.csv --partitions partitions.txt -p slurm+easy",
)
@takes(
    *(name for name in OF_JOBS if name != "load_factor"),
    *("machines", "partitions", "partition_column", "placement", "allow_code"),
    *OF_RUNS,
)
def validate(
    source: Source = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME", help="Name of the policy to validate.")
    ] = "fcfs+easy",
    *,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Difference of two waits up to which they are equal, such as the interval of the recorded "
            "scheduler.  [--period, or 60]",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<log>-validated]"),
    ] = None,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare a simulation with the recorded schedule.

    Simulates a policy on a log with recorded waits. Prints the error of the start times, and the waits by
    partition, QOS and size as distributions: means and their ratio, Wasserstein and Kolmogorov-Smirnov
    distance; what explains the errors, as far as the log tells; and a grade of the starts, the waits and the
    use of the machine, with their thresholds. Writes the waits, also by hour of the day, as validation.csv,
    the grades as agreement.csv, the explanation as residue.csv, and a picture of it, the queue and the
    utilisation over time as validation.png.
    """
    from hpcsimkit.engine.recorded_files import RecordedFiles
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.comparison.policy_run import simulated
    from hpcsimkit.io.files import write_bytes
    from hpcsimkit.reports.figures import save_figure
    from hpcsimkit.reports.validation import draw_validation
    from hpcsimkit.results.residue import Residue
    from hpcsimkit.results.validation import TOLERANCE, Validation

    experiment = experiment_of(Experiment, {"source": source, "policies": [policy], **settings})
    workload = experiment.workload()
    if not quiet:
        show(*console.loaded(workload, experiment.cluster))
    allowed = (experiment.setup.period or TOLERANCE) if tolerance is None else tolerance
    files = RecordedFiles(FILES, {**experiment.settings(), "tolerance": allowed}, sys.orig_argv)
    found = experiment.policy_named(policy)
    place = files.checked(out, RESULTS / f"{workload.name}-validated", overwrite=overwrite)
    result = simulated(policy, found, experiment, workload, lambda jobs: None, place / "trace.jsonl")
    validation = Validation(result, allowed)
    residue = Residue(validation, experiment.scheduled)
    files.begin()
    tables = {"validation": validation.table, "agreement": _of_marks(validation), "residue": residue.table}
    for name, table in tables.items():
        write_bytes(place / f"{name}.csv", table.to_csv(index=False, lineterminator="\n").encode())
    heading = f"{policy} on {workload.name}: {_in_words(validation)}"
    save_figure(draw_validation(residue, heading), place / "validation.png")
    files.record()
    if not quiet:
        _show(policy, validation, residue)
        show(f"results: {os.path.relpath(place)}/validation.png")


def _show(policy: str, validation: Any, residue: Any) -> None:
    """Print the table of waits, the errors of the start times, what explains them, and the grade."""
    from hpcsimkit.experiments.console import grouped, number_text, plain_table

    table = validation.table
    rows = [
        [row.group if row.by == "all" else f"{row.by} {row.group}", grouped(row.jobs)]
        + [number_text(value if value == value else None) for value in row[3:]]
        for row in table[table["by"] != "hour"].itertuples(index=False)
    ]
    median, most, near = validation.summary.values()
    show(plain_table(HEADINGS, rows))
    show(
        f"start times: {number_text(median)} s off in the median, {number_text(most)} s at 90 %; "
        f"{100 * near:.1f} % of {grouped(len(validation.error))} jobs within 10 min"
    )
    _show_residue(residue)
    marks = [
        [row.part, row.measure, *map(number_text, (row.value, row.good, row.fair)), row.grade]
        for row in _of_marks(validation).itertuples(index=False)
    ]
    show(plain_table(OF_MARKS, marks))
    show(f"agreement of {policy} with the record: {_in_words(validation)}")


def _of_marks(validation: Any) -> Any:
    """Return the measures of the agreement with their thresholds and grades, a row for each."""
    import pandas

    rows = [(*mark, mark.grade) for mark in validation.marks]
    return pandas.DataFrame(rows, columns=["part", "measure", "value", "good", "fair", "grade"])


def _in_words(validation: Any) -> str:
    """Return the grade, those of its parts, and the tolerance of waits."""
    parts = ", ".join(f"{part} {grade}" for part, grade in validation.grades.items())
    return f"{validation.grade} ({parts}; waits up to {validation.tolerance:g} s apart are equal)"


def _show_residue(residue: Any) -> None:
    """Print what explains the errors of the start times, if there are any."""
    from hpcsimkit.experiments.console import grouped, plain_table
    from hpcsimkit.results.residue import CAUSES

    rows = [
        [CAUSES.get(row.cause, row.cause), grouped(row.jobs), f"{row.share:.1%}"]
        for row in residue.table.itertuples(index=False)
        if f"{row.share:.1%}" != "0.0%"
    ]
    if rows:
        show(plain_table(("what explains the errors", "jobs > 10 min off", "share of the error"), rows))
    for sentence in residue.sentences():
        show(sentence)
