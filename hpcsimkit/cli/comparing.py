"""Commands that compare policies, list them, and plot results."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcsimkit.cli.flags import (
    OF_EXPERIMENT,
    RESULTS,
    Limits,
    NoReport,
    Quiet,
    Source,
    Trace,
    examples,
    experiment_of,
    takes,
)
from hpcsimkit.io.printable import show

__all__ = ["compare", "plot", "policies"]


@examples(
    "compare KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --out kth",
    "compare KTH-SP2.swf.gz -p mymodule:MyPolicy --jobs 5000 --load-factor 1.2",
    "compare --machines machines.csv day.csv -p bfbp -p sjf --placement best-fit",
    "compare kth/experiment.toml --out kth-again",
    "compare shared/experiment.toml --allow-code shared/mine.py",
)
@takes(*OF_EXPERIMENT, trace=Trace)
def compare(
    source: Source = None,
    *,
    no_report: NoReport = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted run in the results folder.")
    ] = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare policies on a workload.

    Simulates each policy, prints a table of metrics and writes a results folder. The default policies are
    fcfs, fcfs+easy, fcfs+conservative, sjf+easy, saf+easy, wfp3+easy, f1+easy and random+easy; on machines
    fcfs, fcfs+easy, sjf+easy, drf+easy, sjf+fitting, drf+fitting and random+fitting.
    Of the built-in workload, --jobs and --nodes set the size, and --seed the random seed.
    """
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.campaign import Campaign
    from hpcsimkit.experiments.experiment import Experiment

    experiment = experiment_of(
        Experiment, {"source": source, **settings}, report=False if no_report else None
    )
    workload = experiment.workload()
    place = experiment.out or next_free(RESULTS / workload.name, resume=resume)
    if not quiet:
        show(*console.loaded(workload, experiment.cluster))
    campaign = Campaign(experiment, workload, place, command=sys.orig_argv)
    with console.show_progress(experiment.policies, len(workload), quiet=quiet) as tell:
        runs = campaign.run(resume=resume, tell=tell)
    if not quiet:
        console.show_comparison(runs)
        page = "/report.html" if experiment.report else ""
        show(f"results: {os.path.relpath(campaign.folder.place)}{page}")


@examples(
    "policies",
    "policies | grep backfilling",
)
def policies() -> None:
    """List the policy names that -p accepts."""
    from hpcsimkit.experiments import registry
    from hpcsimkit.experiments.console import policy_lines

    show(*policy_lines(registry.entries()))


@examples(
    "plot results/lublin-256",
    "plot results/lublin-256 --overview overview.png",
)
def plot(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="Path of a results folder.")],
    overview: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Path of one overview figure to draw instead of the report: .png, .svg or .pdf.",
        ),
    ] = None,
    limit: Limits = None,
    quiet: Quiet = False,
) -> None:
    """Redraw the report of a results folder.

    Reads the tables of the folder; writes its report.html, and each figure into its folder pictures.
    """
    from hpcsimkit.reports.report import draw_overview, plot_results

    written = plot_results(results) if overview is None else [draw_overview(results, overview)]
    if not quiet:
        show(*written)
