"""Small deliberate faults in the code, one at a time: do the tests of a default run notice each?

    python -m tests.mutants --count 200
    python -m tests.mutants --paths hpcsimkit/kernel/reservation.py --paths policies/backfill --count 30
    python -m tests.mutants --count 200 --again  # those that were not noticed, against all tests concerned

The faults are made in a copy of the checkout. For each, the quick tests that run its line are tried, the quickest
first, until one fails (`tests.mutants.covering`: all of them run once before, to see which run which lines).
Outcomes are appended to a file of JSON lines; a run with the same seed goes on where it stopped, and one with a
larger count tries the same faults first. The faults that no test notices are listed at the end. Those that change
no behaviour stand in ``tests/mutants/equivalent.toml``, each with its reason.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tests.mutants.covering import measured
from tests.mutants.faults import Fault, faults_of
from tests.mutants.trial import PACKAGES, Checkout, Outcome, concerned_by

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")

LIMIT = 1800.0
"""Time limit of the tests of a fault [s], each of which has one of its own."""

Key = tuple[str, str, str, int]


def all_faults(paths: list[str]) -> list[Fault]:
    """Return the faults of all files in some folders, by file."""
    files: list[Path] = []
    for path in paths:
        found = [ROOT / path] if path.endswith(".py") else sorted((ROOT / path).rglob("*.py"))
        if not found or not found[0].is_file():
            raise typer.BadParameter(f"a Python file or a folder of them is needed, found {path}")
        files += found
    names = dict.fromkeys(str(file.relative_to(ROOT)) for file in files)
    return [each for name in names for each in faults_of((ROOT / name).read_text(encoding="utf-8"), name)]


def equivalent() -> dict[Key, str]:
    """Return the reasons of the faults that change no behaviour."""
    table = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {
        (each["path"], each["function"], each["change"], each.get("repeat", 0)): each["reason"]
        for each in table["equivalent"]
    }


def key_of(record: dict[str, Any]) -> Key:
    """Return the identity of the fault of a record."""
    return record["path"], record["function"], record["change"], record["repeat"]


def read(results: Path) -> dict[Key, dict[str, Any]]:
    """Return the records of a results file, the last of each fault; a line cut short by a kill is left out."""
    records = {}
    for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        records[key_of(record)] = record
    return records


def report(chosen: list[Fault], records: dict[Key, dict[str, Any]], reasons: dict[Key, str]) -> None:
    """Print the faults that were not noticed, and the share of those that were."""
    tried = [fault for fault in chosen if fault.key in records and fault.key not in reasons]
    outcomes = Counter(records[fault.key]["word"] for fault in tried)
    for fault in tried:
        if records[fault.key]["word"] == "unnoticed":
            print(f"{fault.path}:{fault.line}  {fault.function}  {fault.change}")
    left_out = sum(fault.key in reasons for fault in chosen)
    noticed = len(tried) - outcomes["unnoticed"]
    share = f" ({noticed / len(tried):.1%})" if tried else ""
    print(
        f"{noticed} of {len(tried)} faults noticed{share}, {outcomes['hangs']} of them by the time limit; "
        f"{left_out} more are equivalent; {len(chosen) - len(tried) - left_out} were not tried"
    )


class Progress:
    """Lines with the rate and the time left."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.began = total, 0, time.monotonic()

    def show(self, fault: Fault, word: str, test: str) -> None:
        """Print a line for a fault that has been tried."""
        self.done += 1
        rate = (time.monotonic() - self.began) / self.done
        left = rate * (self.total - self.done) / 60
        print(
            f"{self.done}/{self.total}, {rate:.0f} s each, {left:.0f} min left: {word} "
            f"{fault.path}:{fault.line} {fault.change} {test}",
            file=sys.stderr,
            flush=True,
        )


def mutants(
    paths: Annotated[list[str] | None, typer.Option(help="File or folder in which faults are made.")] = None,
    count: Annotated[int, typer.Option(help="Number of faults, drawn from all.")] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 1,
    results: Annotated[Path, typer.Option(help="File of the outcomes, JSON lines.")] = Path("mutants.jsonl"),
    again: Annotated[
        bool, typer.Option("--again", help="Try the unnoticed again, with all tests concerned.")
    ] = False,
    lines: Annotated[Path, typer.Option(help="Folder of what was measured.")] = Path("mutants-lines"),
) -> None:
    """Make small faults in the code, and list those that no test concerned notices."""
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # so that the copy and the tests that run end, too
    everything = all_faults(paths or list(PACKAGES))
    random.Random(seed).shuffle(everything)
    chosen, reasons, records = everything[:count], equivalent(), read(results)
    left = [
        fault
        for fault in chosen
        if fault.key not in reasons
        and (fault.key not in records or (again and records[fault.key]["word"] == "unnoticed"))
    ]
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        checkout = Checkout(ROOT, Path(folder))
        covering, progress = measured(checkout, lines.resolve()), Progress(len(left))
        for fault in left:
            tests = concerned_by(fault.path, ROOT) if again else covering.tests_of(fault.path, fault.line)
            outcome = checkout.outcome(tests, LIMIT, fault) if tests else Outcome("unnoticed", "", 0.0)
            records[fault.key] = {**asdict(fault), **asdict(outcome)}
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(records[fault.key]) + "\n")
            progress.show(fault, outcome.word, outcome.test)
    report(chosen, records, reasons)


if __name__ == "__main__":
    typer.run(mutants)
