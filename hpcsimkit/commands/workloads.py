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

__all__ = ["describe", "lublin"]


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
