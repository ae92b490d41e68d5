"""Show or renew the golden cases.

    python -m tests.golden show "nodes sjf+easy+actual" > after.txt
    python -m tests.golden show-space "nodes f3+easy-k(3)" > after.txt
    python -m tests.golden renew

A case whose digest has changed is shown by this code and by the code before, and the texts are compared. If the
change is meant, the record is renewed, and the changelog says what changed.
"""

from __future__ import annotations

import sys

import pytest
import typer

from tests.golden.cases import cases, is_refused, runs_compiled
from tests.golden.record import Record, digest, read, write
from tests.golden.spaces import spaces
from tests.interpreted import interpret

app = typer.Typer(help=__doc__, add_completion=False)


@app.command()
def show(name: str) -> None:
    """Print the text of a case."""
    known = cases()
    if name not in known:
        raise typer.BadParameter(f"the name of a case is needed, as in record.json, found {name!r}")
    print(known[name]())


@app.command()
def show_space(name: str) -> None:
    """Print the shapes of the arrays of a run on the compiled simulator."""
    known = spaces(read().compiled)
    if name not in known:
        raise typer.BadParameter(f"the name of a run is needed, as in record.json, found {name!r}")
    print(known[name]())


@app.command()
def renew() -> None:
    """Compute all cases anew, and list those that have changed."""
    before, digests = read(), {name: digest(made()) for name, made in cases().items()}
    with pytest.MonkeyPatch.context() as patch:
        interpret(patch)
        compiled = [name for name, made in runs_compiled().items() if not is_refused(made())]
    found = {name: digest(made()) for name, made in spaces(compiled).items()}
    write(Record(digests, compiled, found))
    names = before.digests.keys() | digests.keys()
    changed = sorted(name for name in names if before.digests.get(name) != digests.get(name))
    for name in changed:
        print(name)
    for name in sorted(name for name in before.spaces if before.spaces[name] != found.get(name)):
        print(f"another space: {name}")
    for name in sorted(set(before.compiled) ^ set(compiled)):
        print(f"{'compiled' if name in compiled else 'refused'}: {name}")
    print(f"{len(changed)} of {len(digests)} digests have changed", file=sys.stderr)


if __name__ == "__main__":
    app()
