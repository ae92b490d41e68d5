"""Policies: compared, listed, and their results drawn."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hpcsimkit.commands.flags import (
    RESULTS,
    Jobs,
    LoadFactor,
    LocalityName,
    MachineFile,
    NodeCount,
    PlacementName,
    Quiet,
    Semantics,
    Size,
    Skip,
    Source,
    Strict,
    Walltime,
    examples,
    experiment_of,
)

__all__ = ["compare", "plot", "policies"]


@examples(
    "compare KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --out kth",
    "compare KTH-SP2.swf.gz -p mymodule:MyPolicy --jobs 5000 --load-factor 1.2",
    "compare --machines machines.csv day.csv -p bfbp -p sjf --placement best-fit",
    "compare kth/experiment.toml --out kth-again",
)
def compare(
    source: Source = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="A policy to simulate; once for each. `policies` lists them.",
        ),
    ] = None,
    jobs: Jobs = None,
    skip: Skip = None,
    nodes: NodeCount = None,
    machines: MachineFile = None,
    placement: PlacementName = None,
    locality: LocalityName = None,
    load_factor: LoadFactor = None,
    walltime: Walltime = None,
    size: Size = None,
    dependencies: Annotated[
        bool | None,
        typer.Option("--dependencies", help="Jobs wait for their preceding job (SWF fields 17, 18)."),
    ] = None,
    period: Annotated[
        int | None, typer.Option(metavar="S", help="Schedule only every so many seconds.")
    ] = None,
    semantics: Semantics = None,
    warmup: Annotated[
        float | None,
        typer.Option(metavar="S", help="Metrics leave out so many seconds after the first submission."),
    ] = None,
    cooldown: Annotated[
        float | None,
        typer.Option(metavar="S", help="Metrics leave out so many seconds before the last submission."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where all randomness comes from.  [0]")
    ] = None,
    strict: Strict = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Results folder.  [results/<name of the workload>]"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Simulate so many policies at a time.  [1]")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Draw no pictures.")] = False,
    trace: Annotated[
        bool | None, typer.Option("--trace", help="Write every event to OUT/traces/<policy>.jsonl.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compare policies on a workload.

    Simulates each, prints a table and writes a results folder. Without -p it takes
    fcfs, fcfs+easy, fcfs+conservative, sjf+easy, saf+easy, wfp3+easy, f1+easy and random+easy; on machines
    fcfs, fcfs+easy, sjf+easy, drf+easy, sjf+fitting, drf+fitting and random+fitting.
    On the built-in workload, --jobs, --nodes and --seed say how large it is and how it is made.
    """
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.campaign import Campaign
    from hpcsimkit.campaigns.results_folder import next_free

    experiment = experiment_of(locals(), report=False if no_report else None)
    workload = experiment.workload()
    place = experiment.out or next_free(RESULTS / workload.name, resume=resume)
    if not quiet:
        print(*console.loaded(workload, experiment.cluster), sep="\n", flush=True)
    campaign = Campaign(experiment, workload, place, command=sys.orig_argv)
    with console.show_progress(experiment.policies, len(workload), quiet=quiet) as tell:
        runs = campaign.run(resume=resume, tell=tell)
    if not quiet:
        console.show_comparison(runs)
        page = "/report.html" if experiment.report else ""
        print(f"results: {os.path.relpath(campaign.folder.place)}{page}")


@examples(
    "policies",
    "policies | grep backfilling",
)
def policies() -> None:
    """List the names that -p understands."""
    from hpcsimkit import registry
    from hpcsimkit.campaigns.console import policy_lines

    print(*policy_lines(registry.entries()), sep="\n")


@examples(
    "plot results/lublin-256",
    "plot results/lublin-256 --overview overview.png",
)
def plot(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")],
    overview: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw one wide picture instead: .png, .svg or .pdf.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw a report again.

    Reads the tables of a results folder; writes its report.html, and each picture into its folder pictures.
    """
    from hpcsimkit.pictures.report import draw_overview, plot_results

    written = plot_results(results) if overview is None else [draw_overview(results, overview)]
    if not quiet:
        print(*written, sep="\n")
