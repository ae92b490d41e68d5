"""Flags that several commands have, help texts, and from flags to an experiment."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

if TYPE_CHECKING:
    from hpcsimkit.campaigns.experiment import Experiment

__all__ = ["EXAMPLES", "PROGRAM", "RESULTS", "examples", "examples_text", "experiment_of"]

PROGRAM = "python -m hpcsimkit.run"
RESULTS = Path("results")

Command = TypeVar("Command", bound=Callable[..., Any])

EXAMPLES: dict[Callable[..., Any], str] = {}
"""The end of the help text of each command."""


def examples_text(*commands: str) -> str:
    """Return the end of a help text; the first character keeps the lines as they are."""
    return "\n".join(["\b", "Examples:", *(f"  {PROGRAM} {command}".rstrip() for command in commands)])


def examples(*commands: str) -> Callable[[Command], Command]:
    """Give a command examples, which end its help text."""

    def remember(command: Command) -> Command:
        EXAMPLES[command] = examples_text(*commands)
        return command

    return remember


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
PlacementName = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Where pipelines place jobs that do not say so.  [first-fit]"),
]
LocalityName = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Where a job runs changes how long: sierra, summit or module:name.  [it does not]",
    ),
]
Walltime = Annotated[
    str | None,
    typer.Option(metavar="run|kill", help="Do jobs run to their end, or to their requested time?  [run]"),
]
Semantics = Annotated[
    str | None,
    typer.Option(
        metavar="textbook|dirlab",
        help="By which rules the clock runs; dirlab: those of published simulators.  [textbook]",
    ),
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


def experiment_of(arguments: dict[str, object], **changes: object) -> Experiment:
    """Return the experiment that the arguments of a command stand for."""
    from hpcsimkit.campaigns.experiment import Experiment

    source = arguments["source"]
    flags = {name: value for name, value in arguments.items() if name in Experiment.model_fields} | changes
    if isinstance(source, Path) and source.suffix == ".toml":
        return Experiment.of_flags(flags, Experiment.read(source).model_dump(exclude_unset=True))
    return Experiment.of_flags({**flags, "log": None if source is None else str(source)})
