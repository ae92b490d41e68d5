"""Commands that compare policies, list them and other parts, and plot results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import OF_EXPERIMENT, NoReport, Overwrite, Resume, Source, takes, takes_only
from hpcsimkit.cli.output import QUIET, RESULTS, say, say_results
from hpcsimkit.experiments.consent import experiment_of
from hpcsimkit.io.printable import show, warn


@examples(
    "compare KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --out kth",
    "compare KTH-SP2.swf.gz -p mymodule:MyPolicy --jobs 5000 --load-factor 1.2",
    "compare --machines machines.csv day.csv -p bfbp -p sjf --placement best-fit",
    "compare kth/experiment.toml --out kth-again",
    "compare shared/experiment.toml --allow-code shared/mine.py",
)
@takes(
    *OF_EXPERIMENT,
    source=Source,
    trace=switch("--trace", "Write all events of a policy to OUT/traces/<policy>.jsonl."),
    snapshots=option(
        int,
        "S",
        "Interval of computing time [s] at which the state of a run is saved, from which --resume goes on; "
        "0: after every pass.  [unset]",
    ),
    no_report=NoReport,
    resume=Resume,
    overwrite=Overwrite,
)
def compare(*, no_report: bool, resume: bool, overwrite: bool, **settings: Any) -> None:
    """Compare policies on a workload.

    Simulates each policy, prints a table of metrics and writes a results folder. The default policies are
    fcfs, fcfs+easy, fcfs+conservative, sjf+easy, saf+easy, wfp3+easy, f1+easy and random+easy; on machines
    fcfs, fcfs+easy, sjf+easy, drf+easy, sjf+fitting, drf+fitting and random+fitting.
    Of the built-in workload, --jobs and --nodes set the size, and --seed the random seed.
    """
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.comparison.campaign import Campaign
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.progress import show_runs

    experiment = experiment_of(Experiment, settings, report=False if no_report else None)
    workload = experiment.workload()
    place = experiment.out or next_free(RESULTS / workload.name, resume=resume)
    say(*console.loaded(workload, experiment.cluster))
    campaign = Campaign(experiment, workload, place, command=sys.orig_argv)
    with show_runs(dict.fromkeys(experiment.policies, len(workload)), quiet=QUIET.get()) as tell:
        runs = campaign.run(resume=resume, overwrite=overwrite, tell=tell)
    if not QUIET.get():
        console.show_comparison(runs, experiment.metrics)
    say_results(campaign.folder.place / ("report.html" if experiment.report else ""))


@examples("policies")
def policies() -> None:
    """List the policy names that -p accepts: the name of `parts policies` before version 1.0."""
    warn("`policies` has become `parts policies`; the former name works until version 1.1")
    parts(kind="policies", as_json=False)


@examples(
    "parts",
    "parts policies",
    "parts encoder",
    "parts algorithm --json",
)
@takes_only(
    kind=argument(
        str | None,
        "[KIND]",
        "Kind of the parts: policies for all names that -p accepts, or encoder, mask, reward, network, "
        "episodes, algorithm, order, metric, reader, machines and others.  [all]",
    ),
    as_json=switch("--json", "Print a JSON array instead of a table."),
)
def parts(*, kind: str | None, as_json: bool) -> None:
    """List policies and other parts of experiments by name.

    A line has kind, name, the distribution that provides the part, and a description; `parts policies` marks
    names that the compiled simulator knows instead. Distributions other than hpcsimkit announce parts by
    entry points.
    """
    import json
    from dataclasses import asdict

    from hpcsimkit.experiments.console import part_lines, policy_lines
    from hpcsimkit.experiments.parts.catalogue import parts as parts_of

    found = parts_of(kind)
    if as_json:
        show(json.dumps([asdict(part) for part in found], indent=1))
    elif found:
        show(*(policy_lines if kind == "policies" else part_lines)(found))


@examples(
    "plot results/lublin-256",
    "plot results/lublin-256 --overview overview.png",
)
@takes(
    results=argument(Path, "RESULTS", "Path of a results folder."),
    overview=option(
        Path, "FILE", "Path of one overview figure to draw instead of the report: .png, .svg or .pdf."
    ),
)
def plot(*, results: Path, overview: Path | None) -> None:
    """Redraw the report of a results folder.

    Reads the tables of the folder; writes its report.html, and each figure into its folder pictures.
    """
    from hpcsimkit.reports.report import draw_overview, plot_results

    say(*(plot_results(results) if overview is None else [draw_overview(results, overview)]))
