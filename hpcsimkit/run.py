"""The command line: ``python -m hpcsimkit.run``.

This module registers the commands and turns errors into one-line messages; the commands are defined in
:mod:`hpcsimkit.cli`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from hpcsimkit._version import __version__
from hpcsimkit.cli.checking import check
from hpcsimkit.cli.command import Command, Group
from hpcsimkit.cli.comparing import compare, parts, plot, policies
from hpcsimkit.cli.declaring import EXAMPLES, PROGRAM, examples_text
from hpcsimkit.cli.flags import with_options
from hpcsimkit.cli.learning import evaluate, train
from hpcsimkit.cli.ordering import learn
from hpcsimkit.cli.questions import advise, explain, predict, validate, what_if
from hpcsimkit.cli.reproducing import reproduce
from hpcsimkit.cli.sweeping import sweep
from hpcsimkit.cli.workloads import describe, lublin, mimic
from hpcsimkit.errors import HpcsimkitError, PartlyFailedError
from hpcsimkit.io.budget import restored_limits
from hpcsimkit.io.interruption import signal_of, terminable
from hpcsimkit.io.printable import printable_warnings, warn

__all__ = ["app", "main"]

SIGNALLED, BROKEN_PIPE, WRONG, PARTLY_FAILED = 128, 141, 2, 3
"""Exit codes, by shell convention.

Signals, plus their number (130 after Ctrl-C, 143 after SIGTERM); a broken pipe; all other errors; a complete
run, some of whose tasks failed.
"""

BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Environment variables that set the number of NumPy's threads for matrix products, unless already set.

Runs are executed in parallel, each on one core; threads that wait for each other take ten times as long.
"""

OBJECTS_A_COLLECTION = 100_000
"""Number of new objects between collections of garbage; loading libraries makes hundreds of thousands."""

app = typer.Typer(
    cls=Group,
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
generate = typer.Typer(rich_markup_mode=None)
app.add_typer(generate, name="generate", help="Generate a workload and write it as a log.")
_of_app: list[Callable[..., None]] = [
    compare,
    sweep,
    train,
    evaluate,
    learn,
    validate,
    predict,
    advise,
    what_if,
    explain,
    reproduce,
    describe,
    parts,
    check,
    plot,
]
_of_generate: list[Callable[..., None]] = [lublin, mimic]
for _group, _commands in ((app, _of_app), (generate, _of_generate)):
    for _command in _commands:
        _group.command(cls=Command, epilog=EXAMPLES[_command])(with_options(_command))
app.command(cls=Command, epilog=EXAMPLES[policies], hidden=True)(policies)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"hpcsimkit {__version__}")
        raise typer.Exit


@app.callback(
    epilog=examples_text(
        "",
        "compare KTH-SP2.swf.gz -p fcfs -p sjf+easy",
        "describe KTH-SP2.swf.gz",
        "parts policies",
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit: 0, or 2, 3, 130 (Ctrl-C), 143 (SIGTERM) after a line on standard error."""
    for library in BLAS:
        os.environ.setdefault(library, "1")
    if arguments is None:  # this process is for the command alone
        gc.set_threshold(OBJECTS_A_COLLECTION)
        atexit.register(gc.freeze)  # the interpreter would search all objects for garbage once more
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the parent process
            setattr(sys, name, Path(os.devnull).open("w"))  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):  # the stream was replaced by a simpler object
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    code = _run(list(sys.argv[1:] if arguments is None else arguments))
    try:
        sys.stdout.flush()
    except OSError:  # avoid a message of Python at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command line; errors become a one-line message."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help", "--version")):
        arguments = ["compare", *arguments]
    try:
        with (
            restored_limits(),
            terminable(),
            printable_warnings(),
            _parser().make_context(PROGRAM, arguments) as context,
        ):
            _parser().invoke(context)
        sys.stdout.flush()
    except typer.Exit as leaving:
        return leaving.exit_code
    except KeyboardInterrupt as interrupt:
        return _say(str(interrupt) or "stopped", SIGNALLED + signal_of(interrupt))
    except BrokenPipeError:
        return BROKEN_PIPE
    except HpcsimkitError as error:
        return _say(str(error), PARTLY_FAILED if isinstance(error, PartlyFailedError) else WRONG)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _say(f"{where}{error.strerror or error}", WRONG)
    except MemoryError as error:
        return _say(f"not enough memory: {error or 'none is left'}; take fewer or smaller jobs", WRONG)
    except BaseException as error:  # such as SystemExit from user code
        if hasattr(error, "format_message"):  # typer's usage errors, under various class names
            return _say(error.format_message(), WRONG)
        from hpcsimkit.kernel.guard import Place, line_of  # loads numpy, which --help does without

        own = Place.of_error(error).own
        return _say(line_of(error, "a part of your own" if own else "a defect of hpcsimkit"), WRONG)
    return 0


@cache
def _parser() -> Any:
    """Return the parser of all commands, cached since its construction takes a tenth of a second."""
    return typer.main.get_command(app)


def _say(line: str, code: int) -> int:
    warn(line)
    return code


if __name__ == "__main__":
    main()
