"""Inspectors, explained by what they saw and did."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hpcsimkit.commands.flags import (
    RESULTS,
    Jobs,
    LoadFactor,
    NodeCount,
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

__all__ = ["explain"]

MODEL = ".hpcsim"


@examples(
    "explain inspector.hpcsim KTH-SP2.swf.gz --within sjf",
    "explain sjf+hold-unfit KTH-SP2.swf.gz --jobs 5000",
)
def explain(
    inspector: Annotated[
        str,
        typer.Argument(
            metavar="INSPECTOR", help="A trained agent (a file .hpcsim), or a policy with an inspector."
        ),
    ],
    source: Source = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The policy whose selections an agent inspects.  [its training's]"),
    ] = None,
    jobs: Jobs = None,
    skip: Skip = None,
    nodes: NodeCount = None,
    load_factor: LoadFactor = None,
    walltime: Walltime = None,
    semantics: Semantics = None,
    size: Size = None,
    strict: Strict = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where all randomness comes from.  [0]")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Results folder.  [results/<inspector>-explained]"
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Show what an inspector rejects.

    Schedules a log with it and compares what it saw at all decisions with what it saw where it rejected. Low
    and high are the shares of rejections among the quarter of decisions with the lowest and highest values
    of a feature. Writes the distributions as a picture, explanation.png, and as a table, explanation.csv.
    """
    from hpcsimkit.agents.agent import Agent
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.explanation import HEADINGS, explained
    from hpcsimkit.campaigns.results_folder import writing
    from hpcsimkit.campaigns.training_data import Rules
    from hpcsimkit.files import write_bytes
    from hpcsimkit.pictures.explanation import draw_explanation
    from hpcsimkit.pictures.figures import save_figure
    from hpcsimkit.scenario import Scenario

    name = inspector
    if inspector.endswith(MODEL):
        trained = (Agent.load(inspector).about or {}).get("training", {})
        name = f"{within or trained.get('policy', 'fcfs+easy')}+agent:{inspector}"
    experiment = experiment_of(locals())
    policy, workload = experiment.policy(name), experiment.workload()
    rules = Rules(experiment.cluster, experiment.walltime, experiment.service_time, experiment.semantics)
    if not quiet:
        print(*console.loaded(workload, experiment.cluster), sep="\n", flush=True)
    found = explained(policy, rules.applied(Scenario(workload, experiment.cluster, experiment.seed)))
    place = Path(out) if out else RESULTS / f"{Path(inspector).stem}-explained"
    with writing(place):
        place.mkdir(parents=True, exist_ok=True)
    figure = draw_explanation(found, f"{inspector} on {workload.name}")
    save_figure(figure, place / "explanation.png")
    write_bytes(place / "explanation.csv", found.table())
    if not quiet:
        print(console.plain_table(HEADINGS, found.rows()))
        print(f"{name}: {console.grouped(len(found.rejected))} decisions, {100 * found.ratio:.1f} % rejected")
        print(f"results: {os.path.relpath(place)}/explanation.png")
