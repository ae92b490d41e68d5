"""Commands that answer a question about a workload: validate, predict, what-if and explain."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

if TYPE_CHECKING:
    from collections.abc import Callable

    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.questions.question import Answer, Case

OF_CLUSTERS = ("machines", "partitions", "partition_column", "placement", "allow_code")


def _common(usual: str) -> dict[str, Any]:
    """Return the options of all questions; by default the results folder has a usual name."""
    option = typer.Option("--out", "-o", metavar="FOLDER", help=f"Results folder.  [results/{usual}]")
    out = Annotated[str | None, option]
    return {"out": out, "overwrite": Overwrite, "limit": Limits, "quiet": Quiet}


@examples(
    "validate KTH-SP2.swf.gz",
    "validate march.sacct --machines machines.csv --partitions partitions.txt -p slurm+easy",
)
@takes(
    *(name for name in OF_JOBS if name != "load_factor"),
    *OF_CLUSTERS,
    *OF_RUNS,
    **_common("<log>-validated"),
)
def validate(
    source: Source = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME", help="Name of the policy to validate.")
    ] = "fcfs+easy",
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0,
            help="Difference of two waits up to which they are equal, such as the interval of the recorded "
            "scheduler.  [--period, or 60]",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Compare a simulation with the recorded schedule.

    Simulates a policy on a log with recorded waits. Prints the error of the start times, and the waits by
    partition, QOS and size as distributions: means and their ratio, Wasserstein and Kolmogorov-Smirnov
    distance; what explains the errors, as far as the log tells; and a grade of the starts, the waits and the
    use of the machine, with their thresholds. Writes the waits, also by hour of the day, as validation.csv,
    the grades as agreement.csv, the explanation as residue.csv, and a picture of it, the queue and the
    utilisation over time as validation.png.
    """
    from hpcsimkit.experiments.questions.validate import Validated, tolerance_of
    from hpcsimkit.experiments.questions.validate import validate as ask

    experiment, case = _case(policy, {"source": source, "policies": [policy], **options})
    own = {"tolerance": tolerance_of(case, tolerance)}
    usual = f"{case.jobs.name}-validated"
    _answer(experiment, case, Validated, lambda case: ask(case, tolerance=tolerance), own, usual, options)


@examples(
    "predict KTH-SP2.swf.gz",
    "predict march.sacct --machines machines.csv -p slurm+easy --predictor history --predictor boosting",
)
@takes(*OF_JOBS, *OF_CLUSTERS, *OF_RUNS, **_common("<log>-predicted"))
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
    **options: Any,
) -> None:
    """Measure how well run times are predicted.

    Schedules a log with a policy. Each predictor predicts each job when it arrives and learns from it when it
    has ended. Prints the errors of all jobs and of heavy, light and new users. Writes them as
    predictions.csv, and the calibration of the quantiles as predictions.png.
    """
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments.questions.predict import PREDICTORS, Predicted
    from hpcsimkit.experiments.questions.predict import predict as ask
    from hpcsimkit.policies.predicting.catalogue import predictor_named

    names = list(predictor or PREDICTORS)
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise UsageError(f"--predictor: {twice!r} is named twice")
    predictors = {name: predictor_named(name) for name in names}
    experiment, case = _case(policy, {"source": source, "policies": [policy], **options})
    own, usual = {"predictors": names}, f"{case.jobs.name}-predicted"
    _answer(experiment, case, Predicted, lambda case: ask(case, predictors=predictors), own, usual, options)


@examples(
    "what-if KTH-SP2.swf.gz --set nodes+=20",
    "what-if march.sacct --machines machines.csv --partitions partitions.txt --set gpu.nodes+=20",
    "what-if march.sacct --partitions partitions.txt --set long.max_time=2d --set short.order=sjf",
)
@takes(*OF_JOBS, *OF_CLUSTERS, *OF_RUNS, **_common("<log>-what-if"))
def what_if(
    source: Source = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARTITION.KEY=VALUE",
            help="Change: nodes, max_nodes, priority, max_time, default_time, order, or a limit such as "
            "in_use.gpus of a partition, or policy=NAME; += and -= add and subtract; repeat the option for "
            "several.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME", help="Name of the policy before the change.")
    ] = "fcfs+easy",
    **options: Any,
) -> None:
    """Compare a cluster with a changed one.

    Simulates the same jobs before and after changes of the cluster, of the orders of partitions, or of the
    policy. Prints the mean waits of all jobs and by partition, QOS, account and user, and their differences
    with confidence intervals by blocks of weeks. Writes them as what-if.csv.
    """
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments.questions.what_if import WhatIf, changed_case, compared

    if not changes:
        raise UsageError("at least one change is needed, such as --set gpu.nodes+=20")
    named = [text.partition("=")[2] for text in changes]
    given = {"source": source, "policies": [policy], "named": named, **options}
    experiment, case = _case(policy, given, every=True)
    try:
        changed = changed_case(case, changes)
    except UsageError as error:
        raise UsageError(f"--set: {error}") from None
    own, usual = {"set": changes}, f"{case.jobs.name}-what-if"
    _answer(experiment, case, WhatIf, lambda case: compared(case, changed), own, usual, options)


@examples(
    "explain inspector.hpcsim KTH-SP2.swf.gz --within sjf",
    "explain sjf+hold-unfit KTH-SP2.swf.gz --jobs 5000",
)
@takes(*OF_JOBS, "allow_code", *OF_RUNS, **_common("<inspector>-explained"))
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
    **options: Any,
) -> None:
    """Show which selections an inspector rejects.

    Schedules a log with it, and compares the distribution of each feature over all decisions with that over
    the rejections. The columns low and high are the shares of rejections among the quarter of decisions with
    the lowest and the highest values of a feature. Writes the distributions as a figure, explanation.png,
    and as a table, explanation.csv.
    """
    from hpcsimkit.experiments.questions.explain import MODEL, Explained, inspecting
    from hpcsimkit.experiments.questions.explain import explain as ask
    from hpcsimkit.experiments.source import sha256_of

    name = inspecting(inspector, within)
    # code named on the command line is trusted, not that in the model
    experiment, case = _case(name, {"source": source, "inspector": inspector, "within": within, **options})
    own: dict[str, Any] = {"policies": [name]}
    if inspector.endswith(MODEL):
        own["inspector"] = f"{Path(inspector).name} ({sha256_of(inspector)[:8]})"
    usual = f"{Path(inspector).stem}-explained"
    _answer(experiment, case, Explained, lambda case: ask(case, inspector), own, usual, options)


def _case(policy: str, arguments: dict[str, Any], *, every: bool = False) -> tuple[Experiment, Case]:
    """Return the experiment of some arguments, and its case with a policy."""
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.questions.question import Case

    experiment = experiment_of(Experiment, {**arguments, "out": None})
    return experiment, Case.of(experiment, policy, every=every)


def _answer(
    experiment: Experiment,
    case: Case,
    kind: type[Answer],
    ask: Callable[[Case], Answer],
    own: dict[str, Any],
    usual: str,
    options: dict[str, Any],
) -> None:
    """Ask a question, write the files of the answer, and print it; `own` are settings of the question."""
    from hpcsimkit.experiments.console import loaded
    from hpcsimkit.experiments.progress import show_policies
    from hpcsimkit.experiments.questions.question import Place, answered

    quiet = bool(options["quiet"])
    if not quiet:
        show(*loaded(case.jobs, experiment.cluster))
    place = Place(options["out"], RESULTS / usual, sys.orig_argv, bool(options["overwrite"]))
    with show_policies([case.name], len(case.jobs), quiet=quiet) as tell:
        watched = case.watched(lambda jobs: tell(case.name, jobs))
        answer, folder = answered(watched, kind, ask, {**experiment.settings(), **own}, place)
        tell("", 0)
    if not quiet:
        show(*answer.lines(), f"results: {os.path.relpath(folder)}/{kind.files()[-1]}")
