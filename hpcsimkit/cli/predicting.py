"""Command that measures how well run times can be predicted."""

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

__all__ = ["predict"]

PREDICTORS = ("requested", "last-two", "history", "regression", "mixture")
"""Default predictors: those that need no extra."""


@examples(
    "predict KTH-SP2.swf.gz",
    "predict march.sacct --machines machines.csv -p slurm+easy --predictor history --predictor boosting",
)
@takes(
    *OF_JOBS,
    *("machines", "partitions", "partition_column", "placement", "allow_code"),
    *OF_RUNS,
)
def predict(
    source: Source = None,
    policy: Annotated[
        str,
        typer.Option("--policy", "-p", metavar="NAME", help="Name of the policy that schedules the jobs."),
    ] = "fcfs+easy",
    predictor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name of a predictor: requested, last-two, history, regression, mixture or boosting; repeat "
            "the option for several.  [all but boosting]",
        ),
    ] = None,
    *,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<log>-predicted]"),
    ] = None,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Measure how well run times are predicted.

    Schedules a log with a policy. Each predictor predicts each job when it arrives and learns from it when it
    has ended. Prints the errors of all jobs and of heavy, light and new users. Writes them as
    predictions.csv, and the calibration of the quantiles as predictions.png.
    """
    from hpcsimkit.engine.recorded_files import RecordedFiles
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.comparison.policy_run import simulated
    from hpcsimkit.experiments.progress import show_policies
    from hpcsimkit.io.files import write_bytes
    from hpcsimkit.policies.predicting.catalogue import predictor_named
    from hpcsimkit.policies.predicting.quality import Forecasts, quality_table
    from hpcsimkit.reports.figures import save_figure
    from hpcsimkit.reports.prediction_plots import draw_predictions

    names = list(predictor or PREDICTORS)
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise UsageError(f"--predictor: {twice!r} is named twice")
    forecasts = Forecasts({name: predictor_named(name) for name in names})
    experiment = experiment_of(Experiment, {"source": source, "policies": [policy], **settings})
    workload = experiment.workload()
    if not quiet:
        show(*console.loaded(workload, experiment.cluster))
    settings_of_files = {**experiment.settings(), "predictors": names}
    files = RecordedFiles(("predictions.csv", "predictions.png"), settings_of_files, sys.orig_argv)
    found = experiment.policy_named(policy)
    place = files.checked(out, RESULTS / f"{workload.name}-predicted", overwrite=overwrite)
    with show_policies([policy], len(workload), quiet=quiet) as tell:
        simulated(
            policy,
            found,
            experiment,
            workload,
            lambda jobs: tell(policy, jobs),
            place / "trace.jsonl",
            [forecasts],
        )
        tell("", 0)
    table = quality_table(forecasts, workload)
    files.begin()
    write_bytes(place / "predictions.csv", table.to_csv(index=False, lineterminator="\n").encode())
    save_figure(draw_predictions(table), place / "predictions.png")
    files.record()
    if not quiet:
        _show(table)
        show(f"results: {os.path.relpath(place)}/predictions.png")


def _show(table: Any) -> None:
    """Print the measures for all jobs, and the errors by class of users."""
    from hpcsimkit.experiments.console import number_text, plain_table

    measures = list(table.columns[3:9])
    everyone = table[table["users"] == "all"]
    rows = [[row[0], *map(number_text, row[1:])] for row in everyone[["predictor", *measures]].values]
    show(plain_table(["predictor", *measures], rows))
    errors = table.pivot(index="predictor", columns="users", values=measures[0])
    classes = [users for users in table["users"].unique() if users != "all"]
    rows = [[name, *map(number_text, errors.loc[name, classes])] for name in everyone["predictor"]]
    show("", plain_table([measures[0], *(f"{users} users" for users in classes)], rows))
