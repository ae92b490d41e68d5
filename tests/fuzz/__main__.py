"""Mutated inputs of every kind: each must be accepted, or refused with one clear line.

    python -m tests.fuzz --seconds 60
    python -m tests.fuzz --cases 100000 --seed 7 --kind swf --kind experiment
    python -m tests.fuzz --repeat fuzz-failures/swf-12345.json

Counts what came of the cases. An input that ends in a traceback, a hang, "a defect of hpcsimkit", several lines
or control characters is saved, with its seed, into a folder from which it can be repeated; the exit code is 1.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from tests.fuzz.cases import GOOD, NAMES, Case, outcome_of

SEEDS_OF_A_RUN = 10**9


def fuzz(
    seconds: Annotated[float, typer.Option(help="Time to spend.")] = 60,
    cases: Annotated[int | None, typer.Option(help="Number of cases, instead of a time.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the first case; the next has the next.")] = 0,
    kind: Annotated[list[str] | None, typer.Option(help=f"Kind of input: {', '.join(NAMES)}.")] = None,
    failures: Annotated[Path, typer.Option(help="Folder of the inputs that failed.")] = Path("fuzz-failures"),
    repeat: Annotated[Path | None, typer.Option(help="An input that failed, to be tried again.")] = None,
) -> None:
    """Try mutated inputs of every kind."""
    if repeat is not None:
        outcome = outcome_of(Case.load(repeat))
        print(outcome.text, outcome.word, sep="\n")
        raise typer.Exit(outcome.word not in GOOD)
    began = shown = time.monotonic()
    counts: Counter[str] = Counter()
    for number in count():
        now = time.monotonic()
        if number >= cases if cases is not None else now - began >= seconds:
            break
        case = Case.of(seed + number, kind[number % len(kind)] if kind else None)
        outcome = outcome_of(case)
        counts[outcome.word] += 1
        if outcome.word not in GOOD:
            print(
                f"{outcome.word}: {case.save(failures)}: {(outcome.text.splitlines() or [''])[-1][:300]!r}",
                flush=True,
            )
        if now - shown >= 5:
            shown = now
            print(
                f"{number} cases, {number / (now - began):.0f} a second: {_said(counts)}",
                file=sys.stderr,
                flush=True,
            )
    print(f"{counts.total()} cases: {_said(counts)}")
    raise typer.Exit(any(word not in GOOD for word in counts))


def _said(counts: Counter[str]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.most_common())


if __name__ == "__main__":
    typer.run(fuzz)
