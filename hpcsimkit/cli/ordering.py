"""Command that learns an order from a log."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcsimkit.cli.flags import (
    OF_JOBS,
    OF_RUNS,
    RESULTS,
    Limits,
    Overwrite,
    Quiet,
    Source,
    examples,
    experiment_of,
    of,
    option,
    takes,
)
from hpcsimkit.errors import UsageError
from hpcsimkit.io.printable import show


def _factor(option: str, text: str) -> float:
    """Return the number of a factor such as 1.5x."""
    try:
        return float(text.removesuffix("x"))
    except ValueError:
        raise UsageError(f"{option}: a factor such as 1.5x is needed, found {text!r}") from None


@examples(
    "learn KTH-SP2.swf.gz --out my-scheduler --workers 2",
    "learn KTH-SP2.swf.gz --guard --out my-scheduler",
    "learn march.sacct --machines machines.csv --partitions partitions.txt --out my-scheduler",
    "learn KTH-SP2.swf.gz --objective 'mean wait time' --longest-wait 1.2x --out my-scheduler",
    "compare KTH-SP2.swf.gz -p fcfs+easy -p learned:my-scheduler/policy.json",
    "learn --collect learned",
)
@takes(
    objective=option(
        str,
        "METRICS",
        "Metrics to lower, joined by 'and': mean bounded slowdown, mean wait time, p95 wait time.  "
        "[mean bounded slowdown and mean wait time]",
    ),
    longest_wait=option(
        str,
        "FACTOR",
        "Maximum longest wait, relative to that of FCFS with EASY, 1x or more.  [1.5x]",
    ),
    fairness=option(
        str,
        "FACTOR",
        "Minimum fairness between users (Jain's index of their mean bounded slowdowns), relative to that of "
        "FCFS with EASY, above 0x to 1x.  [none]",
    ),
    evaluations=option(int, "N", "Number of simulations of the search, 20 or more.  [360]"),
    choose_from=option(
        int,
        "WEEK",
        "Week, from 0, with which the part to choose by begins; by default after a third.  [auto]",
    ),
    test_from=option(
        int, "WEEK", "Week, from 0, with which the part to test begins; by default after two thirds.  [auto]"
    ),
    guard=option(
        bool,
        None,
        "Let the learned order fall back to that of the best heuristic while that is better in recent weeks.",
        "--guard",
    ),
    perfect=option(
        bool,
        None,
        "Search the parameters with actual run times as predictions as well, which shows how much better "
        "predictions could gain.",
        "--perfect",
    ),
    beside=option(
        list[str],
        "NAME",
        "Name of a further policy to test on the last part, such as an agent; repeat the option for "
        "several.  [none]",
    ),
    out=option(str, "FOLDER", "Results folder.  [results/<log>-learned]", *("--out", "-o")),
    **of(*(name for name in OF_JOBS if name != "load_factor")),
    **of("machines", "partitions", "partition_column", "placement", "workers", "allow_code", *OF_RUNS),
)
def learn(
    source: Source = None,
    *,
    collect: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Only print a table of all studies in the folders of a folder."),
    ] = None,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Tune an order with a bounded slack on a log, and test it on later weeks.

    Searches the parameters of a bounded order on the first two thirds of the log, unless a heuristic is
    better there, and simulates the chosen policy once on the last third, against all heuristics with EASY.
    Writes the policy, a model card, a report and tables. The same command resumes an interrupted study.
    """
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.learn.collection import collected
    from hpcsimkit.experiments.learn.records import HEADINGS, figures_cells
    from hpcsimkit.experiments.learn.settings import Learning
    from hpcsimkit.experiments.learn.study import Study
    from hpcsimkit.experiments.progress import show_cells

    if collect is not None:
        show(collected(collect))
        return
    limits = {
        name: None if settings[name] is None else _factor(f"--{name.replace('_', '-')}", settings[name])
        for name in ("longest_wait", "fairness")
    }
    study_settings = experiment_of(Learning, {"source": source, **settings, **limits, "out": None})
    workload = study_settings.workload()
    if not quiet:
        show(*console.loaded(workload, study_settings.cluster))
    out = settings["out"]
    place = Path(out) if out else RESULTS / f"{workload.name}-learned"
    study = Study(study_settings, workload, place, sys.orig_argv)
    with show_cells("steps", quiet=quiet) as tell:
        outcome = study.run(tell, overwrite=overwrite)
    if not quiet:
        first = (outcome["policy"], *outcome["beside"], outcome["rival"], outcome["limited_rival"])
        names = dict.fromkeys([*first, "fcfs+easy", outcome["clairvoyant"]])
        show(console.plain_table(HEADINGS, [[name, *figures_cells(outcome["test"][name])] for name in names]))
        show(f"results: {os.path.relpath(place)}/report.md")
