"""Agents: trained, and evaluated against heuristics."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from hpcsimkit.commands.flags import (
    RESULTS,
    LoadFactor,
    LocalityName,
    MachineFile,
    NodeCount,
    PlacementName,
    Quiet,
    Semantics,
    Size,
    Skip,
    Strict,
    Walltime,
    examples,
)

__all__ = ["evaluate", "train"]


@examples(
    "train",
    "train training.toml --out agent",
    "train training.toml --out agent --resume",
    "train KTH-SP2.swf.gz --algorithm a2c --steps 200000",
)
def train(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="What is trained (.toml), or the log to train on with everything else by default; without "
            "one, the built-in workload.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(metavar="NAME", help="How to learn: ppo, a2c, pg ...  [ppo]")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(metavar="N", help="Decisions to learn from, in all.  [100000]")
    ] = None,
    semantics: Semantics = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where all randomness comes from.  [0]")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<log>-<algorithm>]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted training.")] = False,
    quiet: Quiet = False,
) -> None:
    """Train an agent for a seat of a scheduler.

    Shows how it goes, validates now and then on jobs that are not trained on, and writes a folder with the
    agents (best.hpcsim, last.hpcsim), the learning curve and all it takes to do the same again.
    """
    from hpcsimkit.campaigns.training_parts import require_packages

    require_packages()
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.results_folder import next_free
    from hpcsimkit.campaigns.training import Training
    from hpcsimkit.campaigns.training_progress import show_training
    from hpcsimkit.campaigns.training_run import TrainingRun

    flags: dict[str, object] = {
        "algorithm": algorithm, "steps": steps, "semantics": semantics, "seed": seed, "out": out,
    }  # fmt: skip
    if source is not None and source.suffix == ".toml":
        training = Training.with_flags(flags, Training.read(source))
    else:
        training = Training.with_flags({**flags, "log": None if source is None else str(source)})
    workloads = training.workloads()
    place = training.out or next_free(RESULTS / f"{workloads[0].name}-{training.algorithm}", resume=resume)
    if not quiet:
        for workload in workloads:
            print(*console.loaded(workload, training.simulated.cluster), sep="\n", flush=True)
    run = TrainingRun(training, workloads, place, command=sys.orig_argv)
    with show_training(training, quiet=quiet) as tell:
        trained = run.run(resume=resume, tell=tell)
    if not quiet:
        print(trained.summary)
        print(f"results: {os.path.relpath(run.folder.place)}/best.hpcsim")


@examples(
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz --skip 20000",
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz -p fcfs+easy -p saf+easy --sequences 100 --jobs 1000",
)
def evaluate(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A trained agent: a file .hpcsim.")],
    source: Annotated[
        str | None,
        typer.Argument(metavar="LOG", help="A log, as for compare; without one, the built-in workload."),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="What it is compared with; once for each.  [fcfs+easy and sjf+easy]",
        ),
    ] = None,
    sequences: Annotated[
        int | None, typer.Option(metavar="N", help="How many sequences of jobs are sampled.  [50]")
    ] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="Jobs of each, by submission.  [256]")] = None,
    warmup: Annotated[
        int | None,
        typer.Option(metavar="N", help="Jobs before them, which fill the machine and do not count.  [0]"),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="What is compared; once for each.  [that of the training]"
        ),
    ] = None,
    parts: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE",
            help="Module or file.py with the agent's encoder and mask, if they are your own: it is imported.",
        ),
    ] = None,
    within: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The policy whose seat the agent takes.  [that of the training]"),
    ] = None,
    sample: Annotated[
        bool | None,
        typer.Option("--sample/--greedy", help="Draw actions, or take the best.  [as the model says]"),
    ] = None,
    skip: Skip = None,
    nodes: NodeCount = None,
    machines: MachineFile = None,
    placement: PlacementName = None,
    locality: LocalityName = None,
    load_factor: LoadFactor = None,
    walltime: Walltime = None,
    semantics: Semantics = None,
    size: Size = None,
    strict: Strict = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where all randomness comes from.  [0]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Simulate so many sequences at a time.  [1]")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<model>-on-<log>]"),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compare an agent with heuristics, and with chance, on sampled sequences of jobs.

    All of them meet on the same sequences, no two of which share a job if the log is long enough. Shows
    means with 95 % confidence intervals, and what the agent makes better or worse than each other with
    p-values of the paired t-test and of Wilcoxon's signed-rank test, corrected by Holm's method; a star
    marks those below 0.05. --skip keeps jobs out that the agent was trained on.
    """
    arguments = locals()
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.evaluation import Contest, Evaluation
    from hpcsimkit.campaigns.evaluation_run import EvaluationRun, verdict_table
    from hpcsimkit.campaigns.results_folder import next_free
    from hpcsimkit.campaigns.training_progress import show_evaluation

    flags = {name: value for name, value in arguments.items() if name in Evaluation.model_fields}
    evaluation = Evaluation.of_flags({**flags, "log": source})
    workload = evaluation.experiment().workload()
    contest = Contest(evaluation, workload)
    if not quiet:
        about = filter(None, [contest.about, contest.warning])
        print(*console.loaded(workload, contest.experiment.cluster), *about, sep="\n", flush=True)
    place = evaluation.out or next_free(RESULTS / f"{Path(model).stem}-on-{workload.name}", resume=resume)
    run = EvaluationRun(contest, place, command=sys.orig_argv)
    with show_evaluation(evaluation.sequences, contest.jobs_of_sequence, quiet=quiet) as tell:
        verdicts = run.run(resume=resume, tell=tell)
    if not quiet:
        print(*map(verdict_table, verdicts), sep="\n\n")
        print("p-values are corrected by Holm's method; * below 0.05")
        print(f"results: {os.path.relpath(run.folder.place)}/evaluation.json")
