"""Commands that train agents and evaluate them against heuristics."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcsimkit.cli.flags import (
    OF_RUNS,
    RESULTS,
    AllowCode,
    Limits,
    Overwrite,
    Quiet,
    Resume,
    allowed_code,
    examples,
    takes,
)
from hpcsimkit.io.printable import show

if TYPE_CHECKING:
    from hpcsimkit.experiments.training.training import Training
    from hpcsimkit.experiments.training.training_run import TrainingFiles


@examples(
    "train",
    "train training.toml --out agent",
    "train training.toml --out agent --resume",
    "train KTH-SP2.swf.gz --algorithm a2c --steps 200000",
)
@takes(*OF_RUNS)
def train(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="Path of a training file (.toml), or of a log to train on with default settings.  "
            "[the built-in workload]",
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="Learning algorithm: ppo, a2c, pg ...  [ppo]")
    ] = None,
    total_timesteps: Annotated[
        int | None,
        typer.Option(
            "--total-timesteps",
            "--steps",
            metavar="N",
            help="Total number of decisions (steps) to train on.  [100000]",
        ),
    ] = None,
    allow_code: AllowCode = None,
    *,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<log>-<algorithm>]"),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume an interrupted training in the results folder.")
    ] = False,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Train an agent for a seat of a scheduler.

    A seat is a decision point, such as the order of the jobs or the placement. Shows the progress,
    validates at intervals on jobs outside the training set, and writes a folder with the agents
    (best.hpcsim, last.hpcsim), the learning curve, and all settings and seeds to repeat the training.
    A finished training is not repeated in its folder, except with --overwrite.
    """
    from hpcsimkit.errors import require_packages
    from hpcsimkit.experiments.parts.learner_parts import PACKAGES

    require_packages("training", "rl", *PACKAGES)
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.progress import show_training
    from hpcsimkit.experiments.training.training import Training
    from hpcsimkit.experiments.training.training_run import TrainingRun

    flags: dict[str, Any] = {
        "algorithm": algorithm,
        "total_timesteps": total_timesteps,
        "out": out,
        "allow_code": allowed_code({"algorithm": algorithm, "allow_code": allow_code}),
        **options,
    }
    if source is not None and source.suffix == ".toml":
        training = Training.with_flags(flags, Training.read(source, flags["allow_code"]))
    else:
        training = Training.with_flags({**flags, "log": None if source is None else str(source)})
    if training.own_problem is not None:
        _train_on_problem(training, resume=resume, overwrite=overwrite, quiet=quiet)
        return
    workloads = training.workloads()
    place = training.out or next_free(RESULTS / f"{workloads[0].name}-{training.algorithm}", resume=resume)
    run = TrainingRun(training, workloads, place, command=sys.orig_argv)
    if run.finished and not overwrite:
        _leave_finished(run, quiet=quiet)
        return
    if not quiet:
        for workload in workloads:
            show(*console.loaded(workload, training.simulated.cluster))
    with show_training(training, quiet=quiet) as tell:
        trained = run.run(resume=resume, overwrite=overwrite, tell=tell)
    if not quiet:
        show(trained.summary)
        show(f"results: {os.path.relpath(run.folder.place)}/best.hpcsim")


def _train_on_problem(training: Training, *, resume: bool, overwrite: bool, quiet: bool) -> None:
    """Train by an algorithm that brings its own problem; only the first of several workers reports."""
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments.progress import show_training
    from hpcsimkit.experiments.training.problem_run import ProblemRun, rank_of_process

    quiet = quiet or rank_of_process() > 0
    run = ProblemRun(
        training, training.out or next_free(RESULTS / training.algorithm, resume=resume), sys.orig_argv
    )
    if run.finished and not overwrite:
        _leave_finished(run, quiet=quiet)
        return
    with show_training(training, quiet=quiet) as tell:
        trained = run.run(resume=resume, overwrite=overwrite, tell=tell)
    if trained is not None and not quiet:
        show(trained.summary)
        show(f"results: {os.path.relpath(run.folder.place)}")


def _leave_finished(run: TrainingFiles, *, quiet: bool) -> None:
    """Print that there is nothing to train; tidy up after a process that was killed at the very end."""
    run.folder.settle()
    if not quiet:
        place = os.path.relpath(run.folder.place)
        show(f"{place}: this training is finished, nothing is trained; --overwrite trains it again")


@examples(
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz --skip 20000",
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz -p fcfs+easy -p saf+easy --sequences 100 --jobs 1000",
)
@takes(
    *("skip", "reader", "nodes", "machines", "placement", "load_factor", "size", "strict"),
    *("allow_code", "engine"),
    *OF_RUNS,
)
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="Path of a trained agent (.hpcsim).")],
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="LOG",
            help="Path of a log (SWF, job table in CSV, output of sacct --parsable2 and others; plain or "
            ".gz).  [the built-in workload]",
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="Name of a baseline policy; repeat the option for several.  [fcfs+easy and sjf+easy]",
        ),
    ] = None,
    sequences: Annotated[
        int | None, typer.Option(metavar="N", help="Number of sampled sequences, 1 or more.  [50]")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", help="Number of consecutive jobs of a sequence.  [256]")
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Number of jobs before a sequence that fill the cluster; metrics leave them out.  [0]",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            "-m",
            metavar="NAME",
            help="Metric to compare, by name or module:Name; repeat the option for several.  [that of the "
            "training]",
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="Module or file.py to import, with the agent's encoder and mask.  [those of hpcsimkit]",
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Policy whose seat the agent takes.  [that of its training]"),
    ] = None,
    sample: Annotated[
        bool | None,
        typer.Option(
            "--sample/--greedy",
            help="Actions: sampled from the agent's distribution, or the best one.  [that of the model file]",
        ),
    ] = None,
    *,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of sequences simulated in parallel, 1 or more.  [1]"),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<model>-on-<log>]"),
    ] = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare an agent with heuristics on sampled job sequences.

    All policies, the heuristic behind the agent's seat, and a random agent on that seat are simulated on the
    same sequences, which share no jobs if the log is long enough. Shows means with 95 % confidence intervals
    (BCa bootstrap), and the difference between the agent and each other policy with p-values of the paired
    t-test and of Wilcoxon's signed-rank test, corrected by Holm's method; a star marks those below 0.05. Then
    shows where the agent differs: from the best heuristic by classes of jobs and hours of submission, and
    from the heuristic behind the seat in its choices. Use --skip to leave out the jobs that the agent was
    trained on.
    """
    arguments = locals() | settings
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.evaluation.evaluation import Contest, Evaluation
    from hpcsimkit.experiments.progress import show_evaluation
    from hpcsimkit.experiments.questions.evaluate import EvaluationRun

    flags = {name: value for name, value in arguments.items() if name in Evaluation.model_fields}
    evaluation = Evaluation.of_flags({**flags, "log": source, "allow_code": allowed_code(arguments)})
    workload = evaluation.source().workload()
    contest = Contest(evaluation, workload)
    if not quiet:
        about = filter(None, [contest.about, contest.warning])
        show(*console.loaded(workload, contest.source.cluster), *about)
    place = evaluation.out or next_free(RESULTS / f"{Path(model).stem}-on-{workload.name}", resume=resume)
    run = EvaluationRun(contest, place, command=sys.orig_argv)
    with show_evaluation(evaluation.sequences, contest.jobs_of_sequence, quiet=quiet) as tell:
        answer = run.run(resume=resume, overwrite=overwrite, tell=tell)
    if not quiet:
        show(*answer.lines())
        show(f"results: {os.path.relpath(run.folder.place)}/report.html")
