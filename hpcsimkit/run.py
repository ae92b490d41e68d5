"""The command line: ``python -m hpcsimkit.run``.

One function a command; what it does stands in :mod:`~hpcsimkit.campaigns`, :mod:`~hpcsimkit.workloads` and
:mod:`~hpcsimkit.pictures`. What loads slowly is imported by the command that needs it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hpcsimkit import __version__
from hpcsimkit.errors import HpcsimkitError

if TYPE_CHECKING:
    from hpcsimkit.campaigns.experiment import Experiment

__all__ = ["app", "main"]

PROGRAM = "python -m hpcsimkit.run"
RESULTS = Path("results")
INTERRUPTED, BROKEN_PIPE, WRONG = 130, 141, 2
"""Exit codes: Ctrl-C and a reader that has gone (as the shell counts them), and everything else."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
generate = typer.Typer(rich_markup_mode=None)
app.add_typer(generate, name="generate", help="Make a workload by a model, as a log.")

# --- flags that several commands have -------------------------------------------------------------------

Source = Annotated[
    Path | None,
    typer.Argument(
        metavar="LOG",
        help="A log: SWF, a job table (CSV), sacct --parsable2 and others, plain or .gz; or an experiment "
        "(.toml); without one, the built-in workload.",
    ),
]
Jobs = Annotated[int | None, typer.Option(metavar="N", help="Only so many jobs, by submission.")]
Skip = Annotated[
    int | None, typer.Option(metavar="N", help="Leave out the first so many jobs, by submission.")
]
NodeCount = Annotated[
    int | None, typer.Option("--nodes", metavar="N", help="Size of the machine; by default the log's.")
]
MachineFile = Annotated[
    str | None,
    typer.Option("--machines", metavar="FILE", help="Machines: .csv or .toml; by default equal nodes."),
]
LoadFactor = Annotated[
    float | None, typer.Option(metavar="X", help="Divide the time between submissions by this.")
]
Size = Annotated[
    str | None,
    typer.Option(metavar="requested|allocated", help="Which processors of the log a job takes.  [requested]"),
]
Strict = Annotated[
    bool | None, typer.Option("--strict", help="Refuse what is otherwise skipped and counted.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]


def _examples(*commands: str) -> str:
    """Return the end of a help text; the first character keeps the lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {command}".rstrip() for command in commands)])


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"hpcsimkit {__version__}")
        raise typer.Exit


@app.callback(
    epilog=_examples(
        "",
        "compare KTH-SP2.swf.gz -p fcfs -p sjf+easy",
        "describe KTH-SP2.swf.gz",
        "policies",
    )
)
def about(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate how jobs are scheduled on HPC clusters.

    Without a command: compare eight policies on the built-in workload.
    """


# --- commands -------------------------------------------------------------------------------------------


@app.command(
    epilog=_examples(
        "compare KTH-SP2.swf.gz -p fcfs+easy -p sjf+easy --out kth",
        "compare KTH-SP2.swf.gz -p mymodule:MyPolicy --jobs 5000 --load-factor 1.2",
        "compare --machines machines.csv day.csv -p bfbp -p sjf --placement best-fit",
        "compare kth/experiment.toml --out kth-again",
    )
)
def compare(
    source: Source = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            "-p",
            metavar="NAME",
            help="A policy to simulate; once for each. `policies` lists them.",
        ),
    ] = None,
    jobs: Jobs = None,
    skip: Skip = None,
    nodes: NodeCount = None,
    machines: MachineFile = None,
    placement: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Where pipelines place jobs that do not say so.  [first-fit]"),
    ] = None,
    locality: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where a job runs changes how long: sierra, summit or module:name.  [it does not]",
        ),
    ] = None,
    load_factor: LoadFactor = None,
    walltime: Annotated[
        str | None,
        typer.Option(metavar="run|kill", help="Do jobs run to their end, or to their requested time?  [run]"),
    ] = None,
    size: Size = None,
    dependencies: Annotated[
        bool | None,
        typer.Option("--dependencies", help="Jobs wait for their preceding job (SWF fields 17, 18)."),
    ] = None,
    period: Annotated[
        int | None, typer.Option(metavar="S", help="Schedule only every so many seconds.")
    ] = None,
    warmup: Annotated[
        float | None,
        typer.Option(metavar="S", help="Metrics leave out so many seconds after the first submission."),
    ] = None,
    cooldown: Annotated[
        float | None,
        typer.Option(metavar="S", help="Metrics leave out so many seconds before the last submission."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Where all randomness comes from.  [0]")
    ] = None,
    strict: Strict = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Results folder.  [results/<name of the workload>]"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Simulate so many policies at a time.  [1]")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Draw no pictures.")] = False,
    trace: Annotated[
        bool | None, typer.Option("--trace", help="Write every event to OUT/traces/<policy>.jsonl.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with an interrupted run.")] = False,
    quiet: Quiet = False,
) -> None:
    """Compare policies on a workload.

    Simulates each, prints a table and writes a results folder. Without -p it takes
    fcfs, fcfs+easy, fcfs+conservative, sjf+easy, saf+easy, wfp3+easy, f1+easy and random+easy; on machines
    fcfs, fcfs+easy, sjf+easy, drf+easy, sjf+fitting, drf+fitting and random+fitting.
    On the built-in workload, --jobs, --nodes and --seed say how large it is and how it is made.
    """
    from hpcsimkit.campaigns import console
    from hpcsimkit.campaigns.campaign import Campaign
    from hpcsimkit.campaigns.results_folder import next_free

    experiment = _experiment(locals(), report=False if no_report else None)
    workload = experiment.workload()
    place = experiment.out or next_free(RESULTS / workload.name, resume=resume)
    if not quiet:
        print(*console.loaded(workload, experiment.cluster), sep="\n", flush=True)
    campaign = Campaign(experiment, workload, place, command=sys.orig_argv)
    with console.show_progress(experiment.policies, len(workload), quiet=quiet) as tell:
        runs = campaign.run(resume=resume, tell=tell)
    if not quiet:
        console.show_comparison(runs)
        page = "/report.html" if experiment.report else ""
        print(f"results: {os.path.relpath(campaign.folder.place)}{page}")


@app.command(
    epilog=_examples(
        "describe KTH-SP2.swf.gz",
        "describe KTH-SP2.swf.gz --skip 10000 --jobs 5000 --out kth.svg",
        "describe --machines machines.csv day.csv",
    )
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

    experiment = _experiment(locals(), out=None)
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


@generate.command(
    epilog=_examples(
        "generate lublin --nodes 256 --jobs 10000 --seed 1 -o x.swf",
        "generate lublin --load 0.9 -o built-in.swf.gz",
    )
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


@app.command(
    epilog=_examples(
        "policies",
        "policies | grep backfilling",
    )
)
def policies() -> None:
    """List the names that -p understands."""
    from hpcsimkit import registry
    from hpcsimkit.campaigns.console import policy_lines

    print(*policy_lines(registry.entries()), sep="\n")


@app.command(
    epilog=_examples(
        "plot results/lublin-256",
        "plot results/lublin-256 --overview overview.png",
    )
)
def plot(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A results folder.")],
    overview: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw one wide picture instead: .png, .svg or .pdf.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw a report again.

    Reads the tables of a results folder; writes its report.html, and each picture into its folder pictures.
    """
    from hpcsimkit.pictures.report import draw_overview, plot_results

    written = plot_results(results) if overview is None else [draw_overview(results, overview)]
    if not quiet:
        print(*written, sep="\n")


# --- from flags to an experiment, from errors to one line -------------------------------------------------


def _experiment(arguments: dict[str, object], **changes: object) -> Experiment:
    """Return the experiment that the arguments of a command stand for."""
    from hpcsimkit.campaigns.experiment import Experiment

    source = arguments["source"]
    flags = {name: value for name, value in arguments.items() if name in Experiment.model_fields} | changes
    if isinstance(source, Path) and source.suffix == ".toml":
        return Experiment.of_flags(flags, Experiment.read(source).model_dump(exclude_unset=True))
    return Experiment.of_flags({**flags, "log": None if source is None else str(source)})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit: 0, or 2 after one line on standard error, or 130 after Ctrl-C."""
    code = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except OSError:  # nothing may be left that Python would complain about at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command line; what goes wrong becomes one line."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")):
        arguments = ["compare", *arguments]
    try:
        command = typer.main.get_command(app)
        with command.make_context(PROGRAM, arguments) as context:
            command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as leaving:
        return leaving.exit_code
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "stopped", INTERRUPTED)
    except BrokenPipeError:
        return BROKEN_PIPE
    except HpcsimkitError as error:
        return _say(str(error), WRONG)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", WRONG)
    except Exception as error:
        if hasattr(error, "format_message"):  # typer's own: a class of another name in each of its versions
            return _say(error.format_message(), WRONG)
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"a defect of hpcsimkit: {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        return _say(text, WRONG)
    return 0


def _say(line: str, code: int) -> int:
    print("hpcsimkit:", " ".join(line.split()), file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
