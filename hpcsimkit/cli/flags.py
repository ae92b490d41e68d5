"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from hpcsimkit.cli.declaring import Command, argument, name_in_table, option, switch
from hpcsimkit.cli.output import QUIET
from hpcsimkit.experiments.consent import consented
from hpcsimkit.io.budget import LIMITS, raise_limits
from hpcsimkit.kernel.setup import OPTIONS, Option

COMMAND_OPTIONS: dict[Callable[..., Any], Mapping[str, Any]] = {}
"""Types of the arguments and options of each command by name."""


def takes_only(**options: Any) -> Callable[[Command], Command]:
    """Return a decorator that gives a command arguments and options, passed by keyword (None: not given)."""

    def remember(command: Command) -> Command:
        COMMAND_OPTIONS[command] = options
        return command

    return remember


def takes(*names: str, **options: Any) -> Callable[[Command], Command]:
    """Return a decorator like :func:`takes_only`, with options of an experiment by name, too.

    The command also has ``--limit`` and ``--quiet``, and is not passed them.
    """
    return takes_only(**(of(*names) | options | {"limit": Limits, "quiet": Quiet}))


def results_in(usual: str) -> Any:
    """Return the type of the option of a results folder, by default one with a usual name."""
    return option(str, "FOLDER", f"Results folder.  [results/{usual}]", "--out", "-o")


def of(*names: str) -> dict[str, Any]:
    """Return the types of options of an experiment by name."""
    return {name: OF_EXPERIMENT[name] for name in names}


def with_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command with the arguments and options that it takes as its signature.

    Its own signature may name some, with a default. A command with the option ``--allow-code`` also has
    ``--remember-code``, and gets all consented code.
    """
    own, options = signature(command), dict(COMMAND_OPTIONS.get(command, {}))
    if "allow_code" in options:
        options["remember_code"] = RememberCode

    @wraps(command)
    def complete(**arguments: Any) -> Any:
        QUIET.set(bool(arguments.pop("quiet", False)))
        arguments.pop("limit", None)  # set when it was parsed
        if "remember_code" in options:
            remember = arguments.pop("remember_code", None)
            arguments["allow_code"] = consented(arguments, remember=remember)
        return command(**arguments)

    parameters = [_parameter(name, kind, own.parameters.get(name)) for name, kind in options.items()]
    complete.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    return complete


def _parameter(name: str, kind: Any, own: Parameter | None) -> Parameter:
    """Return a parameter of a type, with its own default, or with that of optional ones and switches."""
    of, default = get_args(kind)[0], Parameter.empty if own is None else own.default
    if default is Parameter.empty:
        default = None if NoneType in get_args(of) else False if of is bool else default
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)


Source = argument(
    Path | None,
    "LOG",
    "Path of a log (SWF, job table in CSV, output of sacct and others; plain or compressed), or of an "
    "experiment file (.toml).  [the built-in workload]",
)
MachineFile = option(
    str,
    "FILE",
    "Path of a file of machines (.csv, .toml, or the output of scontrol show node), or name of machines "
    "(`parts machines` lists them), or module:Name.  [none]",
    "--machines",
)
Seed = option(int, "N", "Random seed, 0 or more.  [0]")
EngineName = name_in_table(
    "Engine in place of --workers: processes:N, dask:N or slurm:N with N workers, or a Dask scheduler, "
    "dask:tls://HOST:PORT, or dask-insecure:tcp://HOST:PORT without TLS.  [processes]",
    "--engine",
)


def _raise_limits(limits: list[str] | None) -> list[str] | None:
    raise_limits(limits or [])
    return limits


Limits = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=N",
        callback=_raise_limits,
        help=f"Maximum size of an input; NAME is one of {', '.join(LIMITS)}; repeat the option for several.",
    ),
]
Resume = switch("--resume", "Resume an interrupted run in the results folder.")
Overwrite = switch(
    "--overwrite", "Replace finished results in the results folder, without a question on a terminal."
)
Quiet = switch("--quiet", "Print only errors.", "-q")
AllowCode = option(
    list[str],
    "NAME",
    "Module, file.py or folder from which files (.toml, .hpcsim) may import code; repeat the option for "
    "several.  [none]",
    "--allow-code",
)
RememberCode = option(
    bool,
    None,
    "Remember the consent of --allow-code for all files in the folder of this file, or forget it.  [unset]",
    "--remember-code/--forget-code",
)
NoReport = switch("--no-report", "Write no report.html and draw no figures.")


def _of_run(about: Option) -> Any:
    """Return the type of a command's argument for an option of a run."""
    kind = about.kind or str
    metavar = None if kind is bool else about.metavar or "|".join(about.choices)
    flag = (about.key or "").replace("_", "-")
    return option(kind, metavar, f"{about.meaning}.  [{about.unset}]", f"--{flag}")


OF_RUNS: Mapping[str, Any] = {each.key: _of_run(each) for each in OPTIONS.values() if each.key}
"""Options of all commands that simulate, by key: those of a :class:`~hpcsimkit.kernel.setup.Setup`."""

OF_EXPERIMENT: Mapping[str, Any] = {
    "policies": option(
        list[str],
        "NAME",
        "Name of a policy to simulate; repeat the option for several. `parts policies` lists all names.",
        *("--policy", "-p"),
    ),
    "reader": option(
        str,
        "NAME",
        "Reader of the log; `parts reader` lists them, your own: module:name.  [auto]",
    ),
    "timezone": option(
        str,
        "ZONE",
        "Time zone of the local times in a log that names none, such as Europe/Berlin.  [unset]",
    ),
    "features": option(
        list[str],
        "FIELD",
        "Field of a Slurm log that becomes a required feature of the machines of a job: constraints, "
        "partition or gpu_type; repeat the option for several.  [constraints]",
        "--features",
    ),
    "fields": option(
        str,
        "NAMES",
        "Fields of an export of sacct without a header, separated by commas, as sacct was given them; by "
        "default those of its first line.  [auto]",
    ),
    "cluster_name": option(
        str, "NAME", "Cluster whose jobs are simulated, in a log of several.  [all]", "--cluster"
    ),
    "from_date": option(
        str,
        "DATE",
        "Day or time (2024-03-01 or 2024-03-01T12:00:00) of the log: only jobs submitted from then on.  "
        "[all]",
        "--from",
    ),
    "to_date": option(
        str, "DATE", "Day or time of the log's clock: only jobs submitted before it.  [all]", "--to"
    ),
    "jobs": option(int, "N", "Number of jobs, 1 or more: the first ones by submission.  [all]"),
    "skip": option(int, "N", "Number of first jobs to leave out, by submission.  [0]"),
    "nodes": option(int, "N", "Number of nodes of the cluster, 1 or more.  [auto]", "--nodes"),
    "machines": MachineFile,
    "partitions": option(
        str,
        "FILE",
        "Path of a file of partitions: .toml, or the output of scontrol show partition.  [none]",
        "--partitions",
    ),
    "slurm": option(
        str,
        "FOLDER",
        "Path of a folder with slurm.conf and what sacctmgr prints: machines, partitions and the policy "
        "as-configured.  [none]",
        "--slurm",
    ),
    "partition_column": option(
        str,
        "NAME",
        "Column of the log with the partitions of the jobs: partition, queue or qos.  [partition]",
    ),
    "placement": option(
        str, "NAME", "Placement of the pipelines that name none; needs --machines.  [first-fit]"
    ),
    "load_factor": option(
        float,
        "X",
        "Factor of the offered load, 1e-6 to 1e6: times between submissions are divided by it.  [1]",
    ),
    "size": option(
        str, "requested|allocated", "Processors of a job: those requested or allocated.  [requested]"
    ),
    **OF_RUNS,
    "warmup": option(
        float,
        "S",
        "Warm-up time [s]: metrics leave out jobs submitted within it after the first one.  [0]",
    ),
    "cooldown": option(
        float,
        "S",
        "Cool-down time [s]: metrics leave out jobs submitted within it before the last one.  [0]",
    ),
    "strict": option(
        bool, None, "Reject a log with unusable jobs, instead of skipping and counting them.", "--strict"
    ),
    "allow_code": AllowCode,
    "metrics": option(
        list[str],
        "NAME",
        "Metric of the printed table or report, by name, module:Name or file.py:Name; repeat the option "
        "for several. Metrics of your own are also columns of the results.  [auto]",
        *("--metric", "-m"),
    ),
    "out": results_in("<name of the workload>"),
    "workers": option(int, "N", "Number of simulations in parallel, each in a process, 1 or more.  [1]"),
    "engine": EngineName,
}
"""Options by key of :class:`~hpcsimkit.experiments.comparison.experiment.Experiment`; a test checks them."""

OF_JOBS = (
    *("reader", "timezone", "features", "fields", "cluster_name", "from_date", "to_date"),
    *("jobs", "skip", "nodes", "load_factor", "size", "strict"),
)
"""Names of the options that determine the jobs of an experiment."""

OF_CLUSTERS = ("machines", "partitions", "slurm", "partition_column", "placement", "allow_code")
"""Names of the options that determine its cluster."""
