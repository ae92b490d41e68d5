"""Command that chooses a policy for the log of a cluster."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hpcsimkit.cli.declaring import examples, former, option
from hpcsimkit.cli.flags import OF_JOBS, OF_RUNS, Overwrite, Source, of, results_in, takes
from hpcsimkit.cli.output import QUIET, RESULTS, say, say_results
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.consent import experiment_of
from hpcsimkit.io.printable import warn

OF_SLURM = (
    "of Slurm's configuration, machines, partitions and time limits hold; priorities, limits of QOS and "
    "accounts, and both loops for --beside as-configured only"
)

FORMER = {"evaluations": int, "choose_from": int, "guard": bool, "perfect": bool, "collect": str}
"""Kinds of options of version 1.0 without effect."""


@examples(
    "learn KTH-SP2.swf.gz --out my-scheduler --workers 2",
    "learn KTH-SP2.swf.gz --times 10 --times 100 --seconds 300 --out my-scheduler",
    "learn march.sacct --machines machines.csv --partitions partitions.txt --out my-scheduler",
    "learn march.sacct --slurm conf --beside as-configured --out my-scheduler",
    "learn KTH-SP2.swf.gz --objective 'mean wait time' --longest-wait 1.2x --out my-scheduler",
    "compare KTH-SP2.swf.gz -p fcfs+easy -p learned:my-scheduler/policy.json",
)
@takes(
    source=Source,
    times=option(
        list[float],
        "N",
        "Guard to try: a job goes first that has waited for more than N times the running mean wait; repeat "
        "the option for several.  [10, 30]",
    ),
    seconds=option(
        list[int],
        "S",
        "Time limit of tests to try [s]; repeat the option for several.  [60, 300]",
    ),
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
    test_from=option(
        int, "WEEK", "Week, from 0, with which the part to test begins; by default after two thirds.  [auto]"
    ),
    beside=option(
        list[str],
        "NAME",
        "Name of a further policy to test on the last part, such as an agent; repeat the option for "
        "several.  [none]",
    ),
    out=results_in("<log>-learned"),
    **of(*(name for name in OF_JOBS if name != "load_factor")),
    **of(
        "machines", "partitions", "slurm", "partition_column", "placement", "workers", "allow_code", *OF_RUNS
    ),
    overwrite=Overwrite,
    **{name: former(kind) for name, kind in FORMER.items()},
)
def learn(*, overwrite: bool, collect: str | None, **settings: Any) -> None:
    """Choose a policy for a cluster on the past of its log, and test it on later weeks.

    Simulates rules with EASY, and the recipe predicted-aging, with and without a guard of long waits and with
    and without tests of waiting jobs, on the first two thirds of the log. Shows the front: the longest wait
    against the slowdown and the wait. Simulates the front and the best policies within the limits once on
    the last third, at other loads, and with fewer users who allow tests. Writes the policies, a model card,
    a report and tables. The same command resumes an interrupted study.
    """
    from hpcsimkit.experiments.console import loaded
    from hpcsimkit.experiments.learn.records import lines_of
    from hpcsimkit.experiments.learn.settings import Learning
    from hpcsimkit.experiments.learn.study import Study
    from hpcsimkit.experiments.progress import show_cells

    if collect is not None:
        raise UsageError("--collect is gone: reproduce winning LOGS measures policies over logs")
    if given := [f"--{name.replace('_', '-')}" for name in FORMER if settings.get(name)]:
        warn(f"{', '.join(given)}: without effect; learn searches no parameters any more")
    study_settings = experiment_of(Learning, {**settings, "out": None})
    workload = study_settings.workload()
    say(*loaded(workload, study_settings.cluster), *[OF_SLURM] * (study_settings.slurm is not None))
    place = Path(settings["out"] or RESULTS / f"{workload.name}-learned")
    study = Study(study_settings, workload, place, sys.orig_argv)
    with show_cells("simulations", quiet=QUIET.get()) as tell:
        outcome = study.run(tell, overwrite=overwrite)
    say(*lines_of(outcome))
    say_results(place / "report.md")
