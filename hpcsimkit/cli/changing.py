"""Command that compares a cluster with a changed one."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

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
    takes,
)
from hpcsimkit.io.printable import show

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from hpcsimkit.cluster.opaque import AnyCluster
    from hpcsimkit.results.result import Result

__all__ = ["what_if"]

HEADINGS = ("mean wait", "jobs", "before [s]", "after [s]", "difference [s]", "95 % interval [s]")


@examples(
    "what-if KTH-SP2.swf.gz --set nodes+=20",
    "what-if march.sacct --machines machines.csv --partitions partitions.txt --set gpu.nodes+=20",
    "what-if march.sacct --partitions partitions.txt --set long.max_time=2d --set short.order=sjf",
)
@takes(
    *OF_JOBS,
    *("machines", "partitions", "partition_column", "placement", "allow_code"),
    *OF_RUNS,
)
def what_if(
    source: Source = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PARTITION.KEY=VALUE",
            help="Change: nodes, max_nodes, priority, max_time, default_time, order, or a limit such as "
            "in_use.gpus of a partition, or policy=NAME; += and -= add and subtract; repeat the option for "
            "several.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME", help="Name of the policy before the change.")
    ] = "fcfs+easy",
    *,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Results folder.  [results/<log>-what-if]"),
    ] = None,
    overwrite: Overwrite = False,
    limit: Limits = None,
    quiet: Quiet = False,
    **settings: Any,
) -> None:
    """Compare a cluster with a changed one.

    Simulates the same jobs before and after changes of the cluster, of the orders of partitions, or of the
    policy. Prints the mean waits of all jobs and by partition, QOS, account and user, and their differences
    with confidence intervals by blocks of weeks. Writes them as what-if.csv.
    """
    from dataclasses import replace

    import numpy as np

    from hpcsimkit.cluster.base import Nodes
    from hpcsimkit.cluster.partitions import Partitions
    from hpcsimkit.engine.recorded_files import RecordedFiles
    from hpcsimkit.errors import UsageError, WorkloadError
    from hpcsimkit.experiments import console
    from hpcsimkit.experiments.comparison.experiment import Experiment
    from hpcsimkit.experiments.comparison.what_if import Change, WhatIf, changed_cluster, places_in
    from hpcsimkit.io.files import write_bytes
    from hpcsimkit.kernel.simulation import Simulation

    if not changes:
        raise UsageError("at least one change is needed, such as --set gpu.nodes+=20")
    named = [text.partition("=")[2] for text in changes]
    experiment = experiment_of(
        Experiment, {"source": source, "policies": [policy], "named": named, **settings}
    )
    jobs = experiment.part(experiment.whole())
    cluster: AnyCluster | None = experiment.scheduled
    if cluster is None:
        cluster = Nodes(experiment.workload().machine_size or 1)
    results: list[Result] = []
    rows: list[NDArray[np.intp]] = []
    try:
        asked = [Change.of(text) for text in changes]
        changed = changed_cluster(cluster, asked)
        if isinstance(changed, Partitions):
            changed = experiment.with_orders(changed)
        after = [policy, *(str(change.value) for change in asked if change.key == "policy")][-1]
        experiment.policy_named(after)
    except UsageError as error:
        raise UsageError(f"--set: {error}") from None
    files = RecordedFiles(("what-if.csv",), {**experiment.settings(), "set": changes}, sys.orig_argv)
    place = files.checked(out, RESULTS / f"{jobs.name}-what-if", overwrite=overwrite)
    if not quiet:
        show(*console.loaded(jobs, experiment.cluster))
    for each, name in ((cluster, policy), (changed, after)):
        places = places_in(each, jobs)
        if not places.any():
            raise WorkloadError(f"{jobs.name}: no job may run on {each!r}")
        simulation = Simulation(
            jobs.select(places),
            experiment.policy_named(name),
            setup=replace(experiment.setup, cluster=each),
            name=name,
        )
        results.append(simulation.run())
        rows.append(np.flatnonzero(places))
    found = WhatIf(results[0], results[1], rows[0], rows[1])
    files.begin()
    write_bytes(place / "what-if.csv", found.table.to_csv(index=False, lineterminator="\n").encode())
    files.record()
    if quiet:
        return
    show(console.plain_table(HEADINGS, map(_cells, found.table.itertuples(index=False))))
    _show_left_out(len(jobs), rows[0], rows[1])
    show(f"results: {os.path.relpath(place)}/what-if.csv")


def _show_left_out(jobs: int, before: NDArray[np.intp], after: NDArray[np.intp]) -> None:
    """Print how many of some jobs are not among those of both runs."""
    import numpy as np

    from hpcsimkit.experiments.console import grouped

    for count, when in (
        (len(np.setdiff1d(before, after)), "only before the change"),
        (len(np.setdiff1d(after, before)), "only after the change"),
        (jobs - len(np.union1d(before, after)), "neither before nor after the change"),
    ):
        if count:
            show(f"{grouped(count)} job{'s' * (count != 1)} may run {when}: not compared")


def _cells(row: Any) -> list[str]:
    """Return a row of the table as text."""
    from hpcsimkit.experiments.console import grouped, number_text

    interval = "-" if row.low != row.low else f"{number_text(row.low)} to {number_text(row.high)}"
    name = row.group if row.by == "all" else f"{row.by} {row.group}"
    return [name, grouped(row.jobs), *map(number_text, (row.before, row.after, row.difference)), interval]
