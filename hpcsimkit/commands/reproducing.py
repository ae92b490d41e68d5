"""Published experiments, done again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from hpcsimkit.commands.flags import RESULTS, Quiet, examples

__all__ = ["reproduce"]


@examples(
    "reproduce masked-ppo beocat-2021-03.csv.gz beocat-2021-04.csv.gz beocat-2021-05.csv.gz --quick",
    "reproduce masked-ppo beocat-2021-0*.csv.gz --out masked-ppo --workers 2",
    "reproduce dras ALCF-Theta-2022.swf.gz HPC2N-2002-2.2-cln.swf.gz --out dras",
    "reproduce cush --quick",
)
def reproduce(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM",
            help="A name. What is done again: cush, dras, masked-ppo, published-rules, rlbackfilling, "
            "schedinspector, textbook-rules.",
        ),
    ],
    logs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="LOG ...",
            help="The logs that it is about; of cush none, or files of job sets (CSV) called ...sierra... or "
            "...summit...",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, in less than 10 minutes on 2 cores.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Theta in full size, instead of a tenth (dras only).")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Do so many tasks at a time.  [as many as cores]"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Where all randomness comes from.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<system>]"),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Do a published experiment again, from the logs to its tables.

    Says what it will do and how long it will take; the same command goes on where an interrupted one was.
    Writes report.md with tables and pictures, and targets.json: what was to be reached, and was it? A folder
    is of one seed, scale and set of logs. What another version of the kit has done is done again; the old is
    kept beside it.
    """
    from hpcsimkit.campaigns.training_parts import require_packages

    require_packages()
    from hpcsimkit.errors import UsageError
    from hpcsimkit.reproductions.catalogue import reproduction_named
    from hpcsimkit.reproductions.reproduction_run import REPORT, ReproductionRun
    from hpcsimkit.reproductions.targets import targets_table

    for flag, value, least in (("--workers", workers, 1), ("--seed", seed, 0)):
        if value is not None and value < least:
            raise UsageError(f"{flag} must be greater than or equal to {least}, found {value}")
    kind = reproduction_named(system)
    if not logs and kind.needs_logs:
        raise UsageError(f"{system} needs {kind.logs_needed}")
    chosen = [flag for flag, given in (("full", full),) if given]
    for flag in chosen:
        if flag not in kind.flags:
            raise UsageError(f"{system} knows no --{flag}")
    place = out or RESULTS / "-".join([system, *chosen, *["quick"] * quick])
    reproduction = kind(logs or (), quick=quick, seed=seed, chosen=chosen)
    run = ReproductionRun(reproduction, place, system, workers or os.cpu_count() or 1)
    say = (lambda line: None) if quiet else (lambda line: print(line, flush=True))
    conclusion = run.run(quiet=quiet, say=say)
    if not quiet:
        print(targets_table(conclusion.targets))
        print(f"results: {os.path.relpath(place)}/{REPORT}")
