"""Command that runs sweeps: an experiment with axes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import examples, name_in_table, option, switch
from hpcsimkit.cli.flags import OF_EXPERIMENT, NoReport, Source, takes
from hpcsimkit.cli.output import QUIET, RESULTS, say
from hpcsimkit.io.printable import show


@examples(
    "sweep experiment.toml --out loads --workers 2",
    "sweep -p fcfs+easy -p sjf+easy --axis seed=0:10 --axis load_factor=0.8,1,1.2",
    "sweep KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --axis 'period=4 weeks'",
    "sweep experiment.toml --out loads --shard 3/8",
    "sweep --status loads",
)
@takes(
    source=Source,
    axis=option(
        list[str],
        "KEY=VALUES",
        "Axis: a key of an experiment file, generate.KEY, policy.PARAMETER or question.KEY, with its values "
        "separated by commas, or seed=FIRST:COUNT, or period='4 weeks' for windows of a log; repeat the "
        "option for several.",
    ),
    question=name_in_table(
        "Question to ask in each cell: describe, validate, predict, what-if, advise, explain or evaluate, "
        "with its keys as axes.  [none]"
    ),
    baseline=option(str, "NAME", "Baseline of all comparisons; by default the first policy.  [auto]"),
    shard=option(str, "I/N", "Run only the I-th of N parts of the cells, from 1; see --collect.  [all]"),
    **OF_EXPERIMENT,
    collect=switch("--collect", "Run nothing; write the table and the report after all shards."),
    resume=switch("--resume", "Resume an interrupted sweep; every sweep does, also without it."),
    retry=switch("--retry", "Run cells again that failed before."),
    status=option(Path, "FOLDER", "Only print the state of a sweep in a folder, also while it runs."),
    yes=switch("--yes", "Run more than 20 000 cells."),
    no_report=NoReport,
)
def sweep(
    *,
    source: Path | None,
    collect: bool,
    retry: bool,
    status: Path | None,
    yes: bool,
    no_report: bool,
    **settings: Any,
) -> None:
    """Run all combinations of the values of several axes.

    Each combination of a policy and a value of every axis is a cell; the table [sweep] of an experiment file
    or --axis name the axes. In a training file, axes are keys of the training, and each cell trains an agent.
    Writes a row for each cell to OUT/cells.csv and cells.parquet, and a report. The same command resumes an
    interrupted sweep; a failed cell does not stop the others, and makes the exit code 3.
    """
    from hpcsimkit.experiments.progress import show_cells
    from hpcsimkit.experiments.sweep.axes import parsed_axis
    from hpcsimkit.experiments.sweep.results import SweepResults, state_lines
    from hpcsimkit.experiments.sweep.sweep_run import SweepRun, shard_of
    from hpcsimkit.experiments.sweep.trainings import sweep_of

    if status is not None:
        show(*state_lines(SweepResults(status).state()))
        return
    del settings["resume"]  # as every sweep
    axis, shard = settings.pop("axis") or (), shard_of(settings.pop("shard"))
    values = [value for text in axis for value in text.partition("=")[2].split(",")]
    axes, report = dict(map(parsed_axis, axis)), False if no_report else None
    found = sweep_of({**settings, "source": source, "named": values}, axes, report=report)
    place = found.out or RESULTS / (f"sweep-{source.stem}" if source else "sweep")
    run = SweepRun(found, place, sys.orig_argv, shard=shard, confirmed=yes)
    with show_cells(quiet=QUIET.get() or collect) as tell:
        frame = run.collect() if collect else run.run(retry=retry, tell=tell)
    say(*run.lines(frame, collected=collect))
    run.refuse_failed(frame)
