"""Command that runs sweeps: an experiment with axes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hpcsimkit.cli.flags import (
    OF_EXPERIMENT,
    RESULTS,
    Limits,
    NoReport,
    Quiet,
    Source,
    examples,
    experiment_of,
    takes,
)
from hpcsimkit.errors import PartlyFailedError, UsageError
from hpcsimkit.io.printable import show

if TYPE_CHECKING:
    from hpcsimkit.experiments.sweep.results import SweepResults
    from hpcsimkit.experiments.sweep.sweep import Sweep
    from hpcsimkit.experiments.sweep.trainings import TrainingSweep


@examples(
    "sweep experiment.toml --out loads --workers 2",
    "sweep -p fcfs+easy -p sjf+easy --axis seed=0:10 --axis load_factor=0.8,1,1.2",
    "sweep KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --axis 'period=4 weeks'",
    "sweep experiment.toml --out loads --shard 3/8",
    "sweep --status loads",
)
@takes(*OF_EXPERIMENT)
def sweep(
    source: Source = None,
    *,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="Axis: a key of an experiment file, generate.KEY or policy.PARAMETER, with its values "
            "separated by commas, or seed=FIRST:COUNT, or period='4 weeks' for windows of a log; repeat the "
            "option for several.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Policy with which the others are compared.  [the first one]"),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Run only the I-th of N parts of the cells, from 1; see --collect.  [all]"
        ),
    ] = None,
    collect: Annotated[
        bool, typer.Option("--collect", help="Run nothing; write the table and the report after all shards.")
    ] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run cells again that failed before.")] = False,
    status: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Only print the state of a sweep in a folder, also while it runs."
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Run more than 20 000 cells.")] = False,
    no_report: NoReport = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Run all combinations of the values of several axes.

    Each combination of a policy and a value of every axis is a cell; the table [sweep] of an experiment file
    or --axis name the axes. In a training file, axes are keys of the training, and each cell trains an agent.
    Writes a row for each cell to OUT/cells.csv and cells.parquet, and a report. The same command resumes an
    interrupted sweep; a failed cell does not stop the others, and makes the exit code 3.
    """
    from hpcsimkit.experiments.console import grouped
    from hpcsimkit.experiments.progress import show_cells
    from hpcsimkit.experiments.sweep.axes import parsed_axis
    from hpcsimkit.experiments.sweep.results import SweepResults, state_lines
    from hpcsimkit.experiments.sweep.sweep import Sweep
    from hpcsimkit.experiments.sweep.sweep_run import SweepRun
    from hpcsimkit.experiments.sweep.trainings import is_training

    if status is not None:
        show(*state_lines(SweepResults(status).state()))
        return
    axes = dict(map(parsed_axis, axis or ()))
    report = False if no_report else None
    found: Sweep | TrainingSweep
    if source is not None and source.suffix == ".toml" and is_training(source):
        given = {"baseline": baseline, **settings}
        given = {name: each for name, each in given.items() if each is not None}
        found = _of_trainings(source, given, axes, report)
    else:
        values = [value for text in axis or () for value in text.partition("=")[2].split(",")]
        named = {"source": source, "baseline": baseline, "named": values, **settings}
        found = experiment_of(Sweep, named, sweep=axes, report=report)
    place = found.out or RESULTS / (f"sweep-{source.stem}" if source else "sweep")
    run = SweepRun(found, place, sys.orig_argv, shard=_shard(shard), confirmed=yes)
    if collect:
        frame = run.collect()
    else:
        with show_cells(quiet=quiet) as tell:
            frame = run.run(retry=retry, tell=tell)
    results = SweepResults(place)
    if not quiet and (shard is None or collect):
        if run.unchanged:
            show(f"all {grouped(len(frame))} cells were finished, and nothing has changed")
        _show_outcome(results, report=found.report, drawn=not run.unchanged)
    elif not quiet and not len(frame):
        show(f"shard {shard} has no cells: the sweep has {len(found)}")
    elif not quiet:
        show(*state_lines(results.state()))
    if failed := int((frame["status"] == "failed").sum()):
        count = f"all {failed}" if failed == len(frame) else f"{failed} of {len(frame)}"
        raise PartlyFailedError(f"{count} cells failed; reasons are in {os.path.relpath(place)}")


def _show_outcome(results: SweepResults, *, report: bool, drawn: bool) -> None:
    """Print what the cells show if the report is new, remarks on them, and where the results are."""
    if report and drawn:
        from hpcsimkit.reports.sweep.table import SweepTable
        from hpcsimkit.reports.sweep.texts import headline

        if text := headline(SweepTable.read(results.place)):
            show(text)
    show(*results.remarks())
    show(f"results: {os.path.relpath(results.place)}/{'report.html' if report else 'cells.csv'}")


def _of_trainings(
    file: Path, given: dict[str, Any], axes: dict[str, Any], report: bool | None
) -> TrainingSweep:
    """Return the sweep of trainings of a file and of options.

    Raises
    ------
    UsageError
        An option does not belong to trainings, or a value is invalid.
    """
    from hpcsimkit.experiments.sweep.trainings import TrainingSweep

    unknown = sorted(set(given) - set(TrainingSweep.model_fields))
    if unknown:
        flag = "-p" if unknown[0] == "policies" else f"--{unknown[0].replace('_', '-')}"
        raise UsageError(f"{flag}: not an option for trainings, and {file} has one")
    base = TrainingSweep.read(file, given.get("allow_code", ()))
    given |= {"sweep": {**base.sweep, **axes}, "report": report}
    return TrainingSweep.with_flags(given, base)


def _shard(text: str | None) -> tuple[int, int]:
    """Return the number of a shard and the number of shards.

    >>> _shard("3/8")
    (3, 8)
    """
    from hpcsimkit.engine.results_folder import WHOLE

    if text is None:
        return WHOLE
    match = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UsageError(f"--shard: I/N with I from 1 to N is needed, found {text!r}")
    return int(match[1]), int(match[2])
