"""Workloads: described and generated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hpcsimkit.commands.flags import (
    RESULTS,
    Jobs,
    LoadFactor,
    MachineFile,
    NodeCount,
    Quiet,
    Size,
    Skip,
    Source,
    Strict,
    examples,
    experiment_of,
)

__all__ = ["describe", "lublin", "mimic"]


@examples(
    "describe KTH-SP2.swf.gz",
    "describe KTH-SP2.swf.gz --skip 10000 --jobs 5000 --out kth.svg",
    "describe --machines machines.csv day.csv",
)
def describe(
    source: Source = None,
    jobs: Jobs = None,
    skip: Skip = None,
    nodes: NodeCount = None,
    machines: MachineFile = None,
    load_factor: LoadFactor = None,
    size: Size = None,
    strict: Strict = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Picture: .png, .svg or .pdf.  [results/<name>.png]"
        ),
    ] = None,
    no_picture: Annotated[bool, typer.Option("--no-picture", help="Draw no picture.")] = False,
    quiet: Quiet = False,
) -> None:
    """Show what is in a log, with a picture.

    Jobs, machine, span, offered load, sizes, run times, estimates, arrivals, what was skipped and why.
    """
    from hpcsimkit.campaigns.on_machines import described

    experiment = experiment_of(locals(), out=None)
    workload = experiment.part(experiment.whole())
    if not quiet:
        print(described(workload, experiment.cluster), flush=True)
    if no_picture:
        return
    from hpcsimkit.campaigns.results_folder import writing
    from hpcsimkit.pictures.figures import save_figure
    from hpcsimkit.pictures.workload_plots import draw_workload

    target = out or RESULTS / f"{workload.name}.png"
    with writing(target.parent):
        target.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw_workload(workload), target)
    if not quiet:
        print(f"\npicture: {target}")


@examples(
    "generate lublin --nodes 256 --jobs 10000 --seed 1 -o x.swf",
    "generate lublin --load 0.9 -o built-in.swf.gz",
)
def lublin(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The log: .swf or .swf.gz.")],
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Size of the machine.  [256]")] = None,
    jobs: Annotated[int | None, typer.Option(metavar="N", help="How many jobs.  [5000]")] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where the model's randomness comes from.  [0]")
    ] = None,
    load: Annotated[
        float | None, typer.Option(metavar="X", help="Offered load to reach.  [the model's own]")
    ] = None,
    no_estimates: Annotated[bool, typer.Option("--no-estimates", help="Jobs request what they run.")] = False,
    quiet: Quiet = False,
) -> None:
    """The model of Lublin and Feitelson.

    Published in 2003; with modelled user estimates.
    """
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.experiment import Generate
    from hpcsimkit.workloads import write_swf

    workload = Generate.of_flags(
        {"nodes": nodes, "jobs": jobs, "seed": seed, "load": load, "estimates": not no_estimates}
    ).workload()
    write_swf(workload, out)
    if not quiet:
        print(*console.loaded(workload), f"written: {out}", sep="\n")


@examples(
    "generate mimic KTH-SP2.swf.gz -o more.swf.gz --picture more.png",
    "generate mimic KTH-SP2.swf.gz --days 60 --divide 4 --jobs 10000 --seed 1 -o x.swf",
)
def mimic(
    log: Annotated[
        Path,
        typer.Argument(
            metavar="LOG", help="What to be like: SWF, a job table (CSV), sacct --parsable2 and others."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The log: .swf, .csv (a job table), or .gz.")
    ],
    jobs: Annotated[int | None, typer.Option(metavar="N", help="How many jobs.  [as many as in LOG]")] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="Where randomness comes from.  [0]")] = None,
    days: Annotated[
        float | None, typer.Option(metavar="X", help="Be like the first so many days only.  [all]")
    ] = None,
    divide: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="A machine with so many times fewer nodes; sizes are rounded up.  [1]"
        ),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw both beside each other: .png, .svg or .pdf.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Jobs like those of a log.

    As many arrive on each weekday and in each hour of the day; sizes, run times and estimates are the log's.
    Bursts, dependencies, and busy and quiet months are not kept.
    """
    from hpcsimkit.campaigns.mimics import MimicOf, in_a_line
    from hpcsimkit.workloads import write_job_table, write_swf

    flags = {"log": str(log), "jobs": jobs, "seed": seed, "days": days, "divide": divide}
    wanted = MimicOf.of_flags(flags)
    original = wanted.original()
    made = wanted.mimic(original)
    written = {"written": out}
    if picture is not None:
        from hpcsimkit.pictures.figures import save_figure
        from hpcsimkit.pictures.likeness import draw_likeness

        written["picture"] = save_figure(draw_likeness(original, made), picture)
    write = write_job_table if ".csv" in out.suffixes[-2:] else write_swf
    write(made, out)
    if not quiet:
        print(in_a_line(original), in_a_line(made), sep="\n")
        print(*(f"{what}: {where}" for what, where in written.items()), sep="\n")
