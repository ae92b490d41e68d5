"""Commands that answer a question about a workload: validate, predict, what-if, explain and advise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import OF_CLUSTERS, OF_JOBS, OF_RUNS, Overwrite, Source, results_in, takes
from hpcsimkit.cli.output import QUIET, RESULTS, say, say_results
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.consent import experiment_of
from hpcsimkit.io.units import is_whole_number

if TYPE_CHECKING:
    from hpcsimkit.experiments.comparison.case import Case
    from hpcsimkit.experiments.questions.question import OfCases

OF_ENGINES = ("workers", "engine")
OF_QUESTIONS = (*OF_JOBS, *OF_CLUSTERS, *OF_RUNS, *OF_ENGINES)
USUAL = "fcfs+easy"
USUAL_TEXT = f"With --slurm, as-configured is the default.  [{USUAL}]"


def _of_policy(role: str = "that schedules the jobs") -> Any:
    return option(str, "NAME", f"Name of the policy {role}. {USUAL_TEXT}", *("--policy", "-p"))


def _common(usual: str) -> dict[str, Any]:
    """Return the log and options of all questions; by default the results folder has a usual name."""
    return {"source": Source, "out": results_in(usual), "overwrite": Overwrite}


@examples(
    "validate KTH-SP2.swf.gz",
    "validate march.sacct --slurm /etc/slurm",
    "validate march.sacct --slurm /etc/slurm --calibrate",
    "validate march.sacct --machines machines.csv --partitions partitions.txt -p slurm+easy",
)
@takes(
    *(name for name in OF_QUESTIONS if name != "load_factor"),
    policy=_of_policy("to validate"),
    tolerance=option(
        float,
        "SECONDS",
        "Difference of two waits up to which they are equal, such as the interval of the recorded "
        "scheduler.  [scheduling interval, or 60]",
        least=0,
    ),
    calibrate=switch(
        "--calibrate",
        "Instead, try values of the clocks and of the plan: choose those that are nearest to the record on "
        "the first half of the jobs, and judge them on the second. With --slurm these are bf_interval, "
        "bf_max_job_test, default_queue_depth and sched_interval, else the scheduling interval and the "
        "backfilling. Writes calibration.csv and calibration.png.",
    ),
    **_common("<log>-validated"),
)
def validate(*, tolerance: float | None, calibrate: bool, **options: Any) -> None:
    """Compare a simulation with the recorded schedule.

    Simulates a policy on a log with recorded waits. Prints the error of the start times, and the waits by
    partition, QOS and size as distributions: means and their ratio, Wasserstein and Kolmogorov-Smirnov
    distance; the waits by cause (limits, resources, priority and others); what explains the errors, as far
    as the log tells; and a grade of the starts, the waits and the use of the machine, with their thresholds.
    Writes the waits, also by hour of the day, as validation.csv, their causes, also by partition, QOS,
    account and size, as causes.csv, the grades as agreement.csv, the explanation of the errors as
    residue.csv, and a picture of it, the queue and the utilisation over time as validation.png.
    """
    from hpcsimkit.experiments.questions.calibrate import CalibrationQuestion
    from hpcsimkit.experiments.questions.validate import ValidationQuestion

    case = _case(options)
    kind, usual = (CalibrationQuestion, "calibrated") if calibrate else (ValidationQuestion, "validated")
    _answer(kind(case=case, tolerance=tolerance), f"{case.jobs.name}-{usual}", options)


@examples(
    "predict KTH-SP2.swf.gz",
    "predict march.sacct --machines machines.csv -p slurm+easy --predictor history --predictor boosting",
)
@takes(
    *OF_QUESTIONS,
    policy=_of_policy(),
    predictor=option(
        list[str],
        "NAME",
        "Name of a predictor: requested, last-two, history, regression, mixture or boosting; repeat the "
        "option for several.  [all but boosting]",
    ),
    **_common("<log>-predicted"),
)
def predict(*, predictor: list[str] | None, **options: Any) -> None:
    """Measure the accuracy of run-time predictions.

    Schedules a log with a policy. Each predictor predicts each job when it arrives and learns from it when it
    has ended. Prints the errors of all jobs and of heavy, light and new users. Writes them as
    predictions.csv, and the calibration of the quantiles as predictions.png.
    """
    from hpcsimkit.experiments.questions.predict import PREDICTORS, PredictionQuestion

    case = _case(options)
    question = PredictionQuestion(case=case, predictors=predictor or PREDICTORS)
    _answer(question, f"{case.jobs.name}-predicted", options)


@examples(
    "what-if KTH-SP2.swf.gz --set nodes+=20",
    "what-if march.sacct --machines machines.csv --partitions partitions.txt --set gpu.nodes+=20",
    "what-if march.sacct --partitions partitions.txt --set long.max_time=2d --set short.order=sjf",
    "what-if march.sacct --slurm conf --set short.split=cpu --set short.max_time=1h",
)
@takes(
    *OF_QUESTIONS,
    changes=option(
        list[str],
        "PARTITION.KEY=VALUE",
        "Change: nodes, machines, max_nodes, priority, max_time, default_time, order, or a limit such as "
        "in_use.gpus of a partition, or policy=NAME; added, split, merged or removed=PARTITION, which gives "
        "or takes the jobs, such as debug.merged=cpu; with --slurm, a value of Slurm, such as "
        "slurm.bf_interval=60 or slurm.qos.high.MaxJobsPU=5; += and -= add and subtract; repeat the option "
        "for several.",
        "--set",
    ),
    policy=_of_policy("before the change"),
    **_common("<log>-what-if"),
)
def what_if(*, changes: list[str] | None, **options: Any) -> None:
    """Measure the effect of a change of the cluster.

    Simulates the same jobs before and after changes of the cluster, of its partitions, of their orders, or
    of the policy. Prints the mean waits of all jobs and by partition, QOS, account and user, and their
    differences with confidence intervals by blocks of weeks. Writes them as what-if.csv.
    """
    from hpcsimkit.experiments.questions.what_if import ChangeQuestion

    if not changes:
        raise UsageError("at least one change is needed, such as --set gpu.nodes+=20")
    named = [text.partition("=")[2] for text in changes]
    case = _case({**options, "named": named}, every=True)
    try:
        question = ChangeQuestion(case=case, changes=changes)
    except UsageError as error:
        raise UsageError(f"--set: {error}") from None
    _answer(question, f"{case.jobs.name}-what-if", options)


@examples(
    "explain inspector.hpcsim KTH-SP2.swf.gz --within sjf",
    "explain sjf+hold-unfit KTH-SP2.swf.gz --jobs 5000",
)
@takes(
    *(*OF_JOBS, "allow_code", *OF_RUNS, *OF_ENGINES),
    inspector=argument(
        str,
        "INSPECTOR",
        "Path of a trained agent (.hpcsim), or name of a policy with an inspector.",
    ),
    within=option(str, "NAME", "Policy whose selections the agent inspects.  [auto]"),
    **_common("<inspector>-explained"),
)
def explain(*, inspector: str, within: str | None, **options: Any) -> None:
    """Analyse the rejections of an inspector.

    Schedules a log with it, and compares the distribution of each feature over all decisions with that over
    the rejections. The columns low and high are the shares of rejections among the quarter of decisions with
    the lowest and the highest values of a feature. Writes the distributions as a figure, explanation.png,
    and as a table, explanation.csv.
    """
    from hpcsimkit.experiments.questions.explain import ExplanationQuestion, inspecting

    case = _case({**options, "inspector": inspector, "within": within}, inspecting(inspector, within))
    _answer(ExplanationQuestion(case=case, inspector=inspector), f"{Path(inspector).stem}-explained", options)


@examples(
    "advise KTH-SP2.swf.gz --at 20000000",
    'advise march.sacct --machines machines.csv --at 2024-03-20T12:00:00 --what-if "nodes=4,time=2:00:00"',
    "advise --queue squeue.json --history march.sacct --slurm /etc/slurm",
)
@takes(
    *OF_QUESTIONS,
    at=option(
        str, "TIME", "Time: seconds of the log's clock, or a date; by default the last submission.  [auto]"
    ),
    policy=_of_policy(),
    requests=option(
        list[str],
        "REQUEST",
        "Hypothetical request, such as nodes=4,time=2:00:00; repeat the option for several.  [none]",
        "--what-if",
    ),
    queue=option(
        str, "FILE", "Live queue: output of squeue --json, scontrol show job or sacct --parsable2.  [none]"
    ),
    history=option(str, "LOG", "Log of the jobs that have ended, beside a queue.  [auto]"),
    recorded=switch("--recorded", "Jobs have started until then as the log records, not as simulated."),
    **_common("<log>-advice"),
    futures=option(int, "N", "Number of simulated futures, 1 or more.", least=1),
    calibration=option(
        int, "N", "Number of earlier times at which the windows are calibrated; 0 for none.", least=0
    ),
)
def advise(
    *,
    source: Path | None,
    at: str | None,
    futures: int = 200,
    calibration: int = 40,
    requests: list[str] | None,
    queue: str | None,
    history: str | None,
    recorded: bool,
    **options: Any,
) -> None:
    """Predict the start times of waiting jobs.

    Simulates a log, and from a time of it many futures, with run times and arrivals drawn from its past.
    Prints for each waiting job the times before which it starts with a probability of 10, 50 and 90 %,
    calibrated at earlier times of the log, and the start if all jobs ran as long as requested. Writes them as
    windows.csv, windows.json and advice.png. With the live queue of Slurm (--queue), the futures begin with
    the jobs that run and wait in it, and the log has those that have ended.
    """
    from hpcsimkit.experiments.questions.advise import AdviceQuestion

    if history is not None and (source is not None or queue is None):
        raise UsageError("--history names the log beside a --queue, in place of a log as the argument")
    if queue is not None and recorded:
        raise UsageError("--recorded is for a log: jobs of a --queue have started as it says")
    case = _case({**options, "source": source or history or queue})
    when = int(at) if at is not None and is_whole_number(at.removeprefix("-")) else at
    about: dict[str, Any] = {"futures": futures, "calibration": calibration, "requests": requests or ()}
    question = (
        AdviceQuestion(case=case, at=when, recorded=recorded, **about)
        if queue is None
        else AdviceQuestion.of_queue(case, queue, when, **about)
    )
    _answer(question, f"{case.jobs.name}-advice", options)


def _case(arguments: dict[str, Any], inspecting: str | None = None, *, every: bool = False) -> Case:
    """Return the case of the arguments: of the policy that the user named, or of one with an inspector."""
    from hpcsimkit.experiments.comparison.case import Case
    from hpcsimkit.experiments.comparison.experiment import Experiment, JobsOfExperiment
    from hpcsimkit.experiments.source import CONFIGURED

    arguments = {**arguments, "out": None}
    if inspecting is not None:  # the file of the model names code, not the user
        return Case.of(experiment_of(Experiment, arguments), inspecting, every=every)
    policy = arguments["policy"]
    if policy is None:
        policy = USUAL if experiment_of(JobsOfExperiment, arguments).slurm is None else CONFIGURED
    return Case.of(experiment_of(Experiment, {**arguments, "policies": [policy]}), policy, every=every)


def _answer(question: OfCases, usual: str, options: dict[str, Any]) -> None:
    """Ask a question, write the files of the answer, and print it."""
    from hpcsimkit.experiments.console import loaded
    from hpcsimkit.experiments.progress import show_runs
    from hpcsimkit.experiments.questions.question import Place, answered

    say(*loaded(question.case.jobs, question.case.source.cluster))
    place = Place(options["out"], RESULTS / usual, sys.orig_argv, bool(options["overwrite"]))
    with show_runs({task.name: task.size for task in question.tasks}, "runs", quiet=QUIET.get()) as tell:
        answer, folder = answered(question, place, tell)
    say(*answer.lines())
    say_results(folder / answer.files()[-1])
