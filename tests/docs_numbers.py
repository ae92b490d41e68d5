"""Prints the figures of pages anew, and names the pages whose figures are older than the code that decides them.

``python -m tests.docs_numbers docs/tutorials/an_inspector.md`` runs the page as its test does, and writes the numbers
that its examples print here: those of blocks whose numbers may vary, and all of a page that a slow test runs. Tables
after a comment ``% printed by python -m tests.tables NAME`` (`tests/printed.py`) are simulated and replaced. Each line
that changes is shown: the sentences about these numbers have to be read again.

``--stale`` lists the older figures, each with its command, and ``--renew`` prints all of them anew that take minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests import test_docs
from tests.printed import ROOT, Stamp, stamps, table_after
from tests.tables import TRACES
from tests.test_docs import NUMBER, PAGES

TABLES = "python -m tests.tables "
OF_PAGES = "python -m tests.docs_numbers "
"""Beginnings of the commands that are run here; all others take hours."""


def with_numbers_of(want: str, got: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a block that print other numbers, each with what is printed.

    >>> list(with_numbers_of("agent 4 456 (-17.2 %)\\n...\\nfcfs 12", "agent 956 (-7.2 %)\\nsteps\\nfcfs 12"))
    [('agent 4 456 (-17.2 %)', 'agent 956 (-7.2 %)')]
    """
    printed = got.splitlines()
    for line in (each for each in want.splitlines() if "..." not in each):
        pattern = re.compile(r"\s*".join(map(re.escape, NUMBER.sub("0", line).split())))
        matching = (at for at, each in enumerate(printed) if pattern.fullmatch(NUMBER.sub("0", each).strip()))
        place = next(matching, None)
        if place is None:
            continue  # the test of the page reports it
        if printed[place].rstrip() != line.rstrip():
            yield line, printed[place].rstrip()
        del printed[: place + 1]


def update(page: Path) -> None:
    """Print all figures of a page anew: its examples, if their numbers vary or they take long, and its tables."""
    for number, stamp in enumerate(stamps(page)):
        if stamp.command.startswith(TABLES):
            _print_table(page, number)
    run_page(page)
    for number, stamp in enumerate(stamps(page)):
        if stamp.command.startswith(OF_PAGES):
            _replace(page, stamp.place, stamp.end, [*stamps(page)][number].renewed)


def _print_table(page: Path, number: int) -> None:
    """Simulate the table after a comment, and replace it."""
    stamp = [*stamps(page)][number]
    if not TRACES.is_dir():
        print(f"{page}: left as it is, for {stamp.command} needs the logs (HPCSIMKIT_SHARED)")
        return
    text, printed = page.read_text(encoding="utf-8"), output_of(stamp)
    begin, end = table_after(text, stamp.end)
    if text[begin:end] != printed:
        print(f"{page}: {stamp.command}\n{printed}", end="", flush=True)
    _replace(page, begin, end, printed)
    _replace(page, stamp.place, stamp.end, stamp.renewed)


def output_of(stamp: Stamp) -> str:
    """Return what the command of a comment prints."""
    words = [sys.executable, *stamp.command.split()[1:]]
    return subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def _replace(page: Path, begin: int, end: int, new: str) -> None:
    text = page.read_text(encoding="utf-8")
    page.write_text(text[:begin] + new + text[end:], encoding="utf-8")


def run_page(page: Path) -> None:
    """Run the examples of a page in a folder of their own, and write the numbers that they print."""
    shown: list[tuple[int, str, str]] = []
    takes_long = any(stamp.command.startswith(OF_PAGES) for stamp in stamps(page))

    def remember(want: str, got: str, where: str, *, varies: bool) -> None:
        if varies or takes_long:
            shown.append((int(where.rpartition(":")[2]), want, got))

    with TemporaryDirectory() as folder, chdir(folder), patch.object(test_docs, "check", remember):
        sys.path.insert(0, folder)
        test_docs.check_examples(page, Path(folder), as_typed=False)
    lines = page.read_text(encoding="utf-8").splitlines()
    for begin, want, got in shown:
        for old, new in with_numbers_of(want, got):
            place = next(at for at in range(begin, len(lines)) if lines[at].strip() == old.strip())
            lines[place] = lines[place].replace(old.strip(), new.strip())
            print(f"{page}:{place + 1}\n- {old}\n+ {new}", flush=True)
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def stale(pages: Iterable[Path] = PAGES) -> Iterator[str]:
    """Yield a line for all figures that are older than the code that decides them."""
    for page in pages:
        for stamp in stamps(page):
            if stamp.is_older:
                line = page.read_text(encoding="utf-8").count("\n", 0, stamp.place) + 1
                yield f"{os.path.relpath(page, ROOT)}:{line}: older than the code: {stamp.command}"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.docs_numbers", description=__doc__.split("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path, help="pages to print anew")
    parser.add_argument("--stale", action="store_true", help="only list figures older than their code")
    parser.add_argument("--renew", action="store_true", help="print all older figures anew that take minutes")
    options = parser.parse_args()
    os.environ.update(COLUMNS="120", NO_COLOR="1", MPLBACKEND="Agg")
    if options.stale:
        print("\n".join(stale()) or "no figures are older than the code that decides them")
        return
    short = (page for page in PAGES if page.parent.name in ("guides", "background"))
    older = [page for page in short if options.renew and any(stamp.is_older for stamp in stamps(page))]
    for page in [*map(Path.resolve, options.pages), *older]:
        update(page)


if __name__ == "__main__":
    main()
