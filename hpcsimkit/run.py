"""The command line: ``python -m hpcsimkit.run``.

What the commands are called, and how errors become one line; the commands themselves stand in
:mod:`hpcsimkit.commands`.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from hpcsimkit import __version__
from hpcsimkit.commands.comparing import compare, plot, policies
from hpcsimkit.commands.explaining import explain
from hpcsimkit.commands.flags import EXAMPLES, PROGRAM, examples_text
from hpcsimkit.commands.learning import evaluate, train
from hpcsimkit.commands.reproducing import reproduce
from hpcsimkit.commands.training_cush import teach_cush, train_cush
from hpcsimkit.commands.workloads import describe, lublin, mimic
from hpcsimkit.errors import HpcsimkitError

__all__ = ["app", "main"]

INTERRUPTED, BROKEN_PIPE, WRONG = 130, 141, 2
"""Exit codes: Ctrl-C and a reader that has gone (as the shell counts them), and everything else."""

BLAS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""How many threads NumPy may multiply matrices with, unless it is said otherwise.

Runs stand side by side, each on one core; threads that wait for each other take ten times as long."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
generate = typer.Typer(rich_markup_mode=None)
app.add_typer(generate, name="generate", help="Make a workload by a model, as a log.")
_of_app: list[Callable[..., None]] = [
    compare, train, train_cush, teach_cush, evaluate, explain, reproduce, describe, policies, plot,
]  # fmt: skip
_of_generate: list[Callable[..., None]] = [lublin, mimic]
for _group, _commands in ((app, _of_app), (generate, _of_generate)):
    for _command in _commands:
        _group.command(epilog=EXAMPLES[_command])(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"hpcsimkit {__version__}")
        raise typer.Exit


@app.callback(
    epilog=examples_text(
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit: 0, or 2 after one line on standard error, or 130 after Ctrl-C."""
    for library in BLAS:
        os.environ.setdefault(library, "1")
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
