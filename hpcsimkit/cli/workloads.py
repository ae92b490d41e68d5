"""Commands that describe and generate workloads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import argument, examples, option, switch
from hpcsimkit.cli.flags import OF_JOBS, Seed, Source, takes
from hpcsimkit.cli.output import RESULTS, say
from hpcsimkit.experiments.consent import experiment_of


@examples(
    "describe KTH-SP2.swf.gz",
    "describe KTH-SP2.swf.gz --skip 10000 --jobs 5000 --out kth.svg",
    "describe --machines machines.csv day.csv",
    "describe --machines nodes.txt --partitions partitions.txt march.sacct",
)
@takes(
    *(*OF_JOBS, "machines", "partitions", "slurm", "partition_column", "allow_code"),
    source=Source,
    out=option(
        Path,
        "FILE",
        "Path of the figure: .png, .svg or .pdf.  [results/<name>.png]",
        *("--out", "-o"),
    ),
    no_picture=switch("--no-picture", "Draw no figure."),
)
def describe(*, out: Path | None, no_picture: bool, **settings: Any) -> None:
    """Summarise a log, with a figure.

    Prints the number of jobs, the machine, the time span, the offered load, the distributions of sizes, run
    times, estimates and arrivals, and the number of skipped jobs with the reasons. With partitions, the notes
    name their rules that are not simulated.
    """
    from hpcsimkit.experiments.comparison.experiment import JobsOfExperiment
    from hpcsimkit.experiments.questions.describe import describe as ask

    answer = ask(experiment_of(JobsOfExperiment, settings))
    say(*answer.lines())
    if no_picture:
        return
    from hpcsimkit.engine.lock import writing
    from hpcsimkit.reports.figures import save_figure

    target = out or RESULTS / f"{answer.workload.name}.png"
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    save_figure(answer.figure(), target)
    say(f"\npicture: {target}")


@examples(
    "generate lublin --nodes 256 --jobs 10000 --seed 1 -o x.swf",
    "generate lublin --load 0.9 -o built-in.swf.gz",
)
@takes(
    nodes=option(int, "N", "Number of nodes of the cluster, 2 or more.  [256]"),
    jobs=option(int, "N", "Number of jobs, 1 or more.  [5000]"),
    seed=Seed,
    load=option(float, "X", "Offered load, above 0.  [auto]"),
    out=option(Path, "FILE", "Path of the log: .swf or .swf.gz.", "--out", "-o", required=True),
    no_estimates=switch("--no-estimates", "Set requested times to the run times; model no estimates."),
)
def lublin(*, out: Path, no_estimates: bool, **flags: Any) -> None:
    """Generate a workload by the model of Lublin and Feitelson (2003).

    User estimates of run times are modelled too.
    """
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.generate import Generate
    from hpcsimkit.workloads import write_swf

    workload = Generate.of_flags({**flags, "estimates": not no_estimates}).workload()
    write_swf(workload, out)
    say(*console.loaded(workload), f"written: {out}")


@examples(
    "generate mimic KTH-SP2.swf.gz -o more.swf.gz --picture more.png",
    "generate mimic KTH-SP2.swf.gz --days 60 --divide 4 --jobs 10000 --seed 1 -o x.swf",
)
@takes(
    log=argument(
        Path, "LOG", "Path of the original log: SWF, job table (CSV), output of sacct --parsable2 and others."
    ),
    out=option(
        Path,
        "FILE",
        "Path of the generated log: .swf, .csv (a job table), or .gz.",
        *("--out", "-o"),
        required=True,
    ),
    jobs=option(int, "N", "Number of jobs, 1 or more.  [auto]"),
    seed=Seed,
    days=option(float, "X", "Length of the first part of LOG to model [days], above 0.  [all]"),
    divide=option(int, "N", "Divisor of the cluster size and of all job sizes, which are rounded up.  [1]"),
    picture=option(Path, "FILE", "Path of a figure that compares both logs: .png, .svg or .pdf."),
)
def mimic(*, log: Path, out: Path, picture: Path | None, **flags: Any) -> None:
    """Generate a statistical clone of a log.

    Arrival rates by weekday and hour of the day, and the distributions of sizes, run times and estimates are
    those of the log. Bursts, dependencies, and busy and quiet months are not reproduced.
    """
    from hpcsimkit.errors import UsageError
    from hpcsimkit.experiments.mimics import MimicOf, in_a_line
    from hpcsimkit.workloads import write_job_table, write_swf

    if out.exists() and log.exists() and out.samefile(log):
        raise UsageError(f"{out}: it is the original log; another --out keeps it")
    wanted = MimicOf.of_flags({"log": str(log), **flags})
    original = wanted.original()
    made = wanted.mimic(original)
    written = {"written": out}
    if picture is not None:
        from hpcsimkit.reports.figures import save_figure
        from hpcsimkit.reports.likeness import draw_likeness

        written["picture"] = save_figure(draw_likeness(original, made), picture)
    write = write_job_table if ".csv" in out.suffixes[-2:] else write_swf
    write(made, out)
    say(in_a_line(original), in_a_line(made), *(f"{what}: {where}" for what, where in written.items()))
