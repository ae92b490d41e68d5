"""Commands that train agents and evaluate them against heuristics."""

from __future__ import annotations

import sys
from os.path import relpath
from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import (
    OF_CLUSTERS,
    OF_JOBS,
    OF_RUNS,
    AllowCode,
    Overwrite,
    Resume,
    of,
    results_in,
    takes,
)
from hpcsimkit.cli.output import QUIET, RESULTS, say, say_results
from hpcsimkit.experiments.consent import allowed_code, experiment_of


@examples(
    "train",
    "train training.toml --out agent",
    "train training.toml --out agent --resume",
    "train KTH-SP2.swf.gz --algorithm a2c --steps 200000",
)
@takes(
    source=argument(
        Path | None,
        "FILE",
        "Path of a training file (.toml), or of a log to train on with default settings.  "
        "[the built-in workload]",
    ),
    algorithm=option(str, "NAME", "Learning algorithm: ppo, a2c, pg ...  [ppo]"),
    total_timesteps=option(
        int,
        "N",
        "Total number of decisions (steps) to train on.  [100000]",
        *("--total-timesteps", "--steps"),
    ),
    allow_code=AllowCode,
    **of(*OF_RUNS),
    out=results_in("<log>-<algorithm>"),
    resume=switch("--resume", "Resume an interrupted training in the results folder."),
    overwrite=Overwrite,
)
def train(*, source: Path | None, resume: bool, overwrite: bool, **options: Any) -> None:
    """Train an agent for a seat of a scheduler.

    A seat is a decision point, such as the order of the jobs or the placement. Shows the progress,
    validates at intervals on jobs outside the training set, and writes a folder with the agents
    (best.hpcsim, last.hpcsim), the learning curve, and all settings and seeds to repeat the training.
    A finished training is not repeated in its folder, except with --overwrite.
    """
    from hpcsimkit.errors import require_packages
    from hpcsimkit.experiments.parts.learner_parts import PACKAGES

    require_packages("training", "rl", *PACKAGES)
    from hpcsimkit.experiments.console import loaded
    from hpcsimkit.experiments.progress import show_training
    from hpcsimkit.experiments.training.problem_run import rank_of_process, run_of
    from hpcsimkit.experiments.training.training import Training

    training = Training.of_source(source, {**options, "allow_code": allowed_code(options)})
    run = run_of(training, RESULTS, sys.orig_argv, resume=resume)
    QUIET.set(QUIET.get() or rank_of_process() > 0)
    place = run.folder.place
    if run.finished and not overwrite:
        run.folder.settle()
        say(f"{relpath(place)}: this training is finished, nothing is trained; --overwrite trains it again")
        return
    say(*(line for each in run.workloads for line in loaded(each, training.simulated.cluster)))
    with show_training(training, quiet=QUIET.get()) as tell:
        trained = run.run(resume=resume, overwrite=overwrite, tell=tell)
    if trained is not None:
        say(trained.summary)
        say_results(f"{place}{run.product}")


@examples(
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz --skip 20000",
    "evaluate agent/best.hpcsim KTH-SP2.swf.gz -p fcfs+easy -p saf+easy --sequences 100 --jobs 1000",
)
@takes(
    model=argument(str, "MODEL", "Path of a trained agent (.hpcsim)."),
    source=argument(
        str | None,
        "LOG",
        "Path of a log (SWF, job table in CSV, output of sacct --parsable2 and others; plain or .gz).  "
        "[the built-in workload]",
    ),
    policies=option(
        list[str],
        "NAME",
        "Name of a baseline policy; repeat the option for several.  [fcfs+easy, sjf+easy]",
        *("--policy", "-p"),
    ),
    sequences=option(int, "N", "Number of sampled sequences, 1 or more.  [50]"),
    jobs=option(int, "N", "Number of consecutive jobs of a sequence.  [256]"),
    warmup=option(
        int, "N", "Number of jobs before a sequence that fill the cluster; metrics leave them out.  [0]"
    ),
    metrics=option(
        list[str],
        "NAME",
        "Metric to compare, by name or module:Name; repeat the option for several.  [auto]",
        *("--metric", "-m"),
    ),
    parts=option(str, "MODULE", "Module or file.py to import, with the agent's encoder and mask.  [none]"),
    within=option(str, "NAME", "Policy whose seat the agent takes.  [auto]"),
    sample=option(
        bool,
        None,
        "Actions: sampled from the agent's distribution, or the best one.  [auto]",
        "--sample/--greedy",
    ),
    workers=option(int, "N", "Number of sequences simulated in parallel, 1 or more.  [1]"),
    out=results_in("<model>-on-<log>"),
    **of(*(name for name in OF_JOBS if name != "jobs"), *OF_CLUSTERS, "engine", *OF_RUNS),
    resume=Resume,
    overwrite=Overwrite,
)
def evaluate(*, resume: bool, overwrite: bool, **settings: Any) -> None:
    """Compare an agent with heuristics on sampled job sequences.

    All policies, the heuristic behind the agent's seat, and a random agent on that seat are simulated on the
    same sequences, which share no jobs if the log is long enough. Shows means with 95 % confidence intervals
    (BCa bootstrap), and the difference between the agent and each other policy with p-values of the paired
    t-test and of Wilcoxon's signed-rank test, corrected by Holm's method; a star marks those below 0.05. Then
    shows where the agent differs: from the best heuristic by classes of jobs and hours of submission, and
    from the heuristic behind the seat in its choices. Use --skip to leave out the jobs that the agent was
    trained on.
    """
    from hpcsimkit.engine.results_folder import next_free
    from hpcsimkit.experiments.console import loaded
    from hpcsimkit.experiments.evaluation.evaluation import Contest, Evaluation
    from hpcsimkit.experiments.progress import show_runs
    from hpcsimkit.experiments.questions.evaluate import EvaluationRun

    evaluation = experiment_of(Evaluation, settings)
    contest = Contest(evaluation, evaluation.source().workload())
    about = filter(None, [contest.about, contest.warning])
    say(*loaded(contest.workload, contest.source.cluster), *about)
    usual = RESULTS / f"{Path(evaluation.model).stem}-on-{contest.workload.name}"
    run = EvaluationRun(contest, evaluation.out or next_free(usual, resume=resume), command=sys.orig_argv)
    with show_runs(
        {task.name: task.size for task in run.question.tasks}, "sequences", quiet=QUIET.get()
    ) as tell:
        answer = run.run(resume=resume, overwrite=overwrite, tell=tell)
    say(*answer.lines())
    say_results(run.folder.place / "report.html")
