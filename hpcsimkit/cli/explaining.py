"""Command that explains an inspector by the features of its decisions."""

from __future__ import annotations

import os
import sys
from pathlib import Path
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

__all__ = ["explain"]

MODEL = ".hpcsim"


@examples(
    "explain inspector.hpcsim KTH-SP2.swf.gz --within sjf",
    "explain sjf+hold-unfit KTH-SP2.swf.gz --jobs 5000",
)
@takes(*OF_JOBS, "allow_code", *OF_RUNS)
def explain(
    inspector: Annotated[
        str,
        typer.Argument(
            metavar="INSPECTOR",
            help="Path of a trained agent (.hpcsim), or name of a policy with an inspector.",
        ),
    ],
    source: Source = None,
    within: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Policy whose selections the agent inspects.  [that of its training]"
        ),
    ] = None,
    *,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Results folder.  [results/<inspector>-explained]"
        ),
    ] = None,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Show which selections an inspector rejects.

    Schedules a log with it, and compares the distribution of each feature over all decisions with that over
    the rejections. The columns low and high are the shares of rejections among the quarter of decisions with
    the lowest and the highest values of a feature. Writes the distributions as a figure, explanation.png,
    and as a table, explanation.csv.
    """
    from hpcsimkit.agents.agent import Agent
    from hpcsimkit.engine.recorded_files import RecordedFiles
    from hpcsimkit.envs.scenario import Scenario
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.evaluation.explanation import HEADINGS, explained
    from hpcsimkit.experiments.source import sha256_of
    from hpcsimkit.io.files import write_bytes
    from hpcsimkit.kernel.watchdog import Watchdog
    from hpcsimkit.reports.explanation import draw_explanation
    from hpcsimkit.reports.figures import save_figure

    name, is_model = inspector, inspector.endswith(MODEL)
    if is_model:
        agent = Agent.load(inspector)
        if agent.stage != "inspector":
            raise UsageError(f"{inspector}: an inspector is needed, its seat is {agent.stage}")
        name = f"{within or agent.trained.get('policy', 'fcfs+easy')}+agent:{inspector}"
    elif within is not None:
        raise UsageError(f"--within needs a trained agent ({MODEL}), found {inspector!r}")
    # code named on the command line is trusted, not that in the model
    named = {"source": source, "inspector": inspector, "within": within}
    experiment = experiment_of(Experiment, named | settings)
    policy, workload = experiment.policy_named(name), experiment.workload()
    model = {"inspector": f"{Path(inspector).name} ({sha256_of(inspector)[:8]})"} if is_model else {}
    settings_of_files = {**experiment.settings(), "policies": [name], **model}
    files = RecordedFiles(("explanation.csv", "explanation.png"), settings_of_files, sys.orig_argv)
    place = files.checked(out, RESULTS / f"{Path(inspector).stem}-explained", overwrite=overwrite)
    if not quiet:
        show(*console.loaded(workload, experiment.cluster))
    with Watchdog():
        scenario = Scenario(workload, experiment.setup)
        found = explained(policy, scenario, name)
    files.begin()
    figure = draw_explanation(found, f"{inspector} on {workload.name}")
    save_figure(figure, place / "explanation.png")
    write_bytes(place / "explanation.csv", found.table())
    files.record()
    if not quiet:
        show(console.plain_table(HEADINGS, found.rows()))
        show(f"{name}: {console.grouped(len(found.rejected))} decisions, {100 * found.ratio:.1f} % rejected")
        show(f"results: {os.path.relpath(place)}/explanation.png")
