"""Writes the numbers that the examples of pages print here into the blocks of these pages whose numbers may vary.

``python -m tests.docs_numbers docs/tutorials/an_inspector.md`` runs the page as its test does, and shows each line that
it changes: the sentences about these numbers have to be read again.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests import test_docs
from tests.test_docs import NUMBER


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
    """Run the examples of a page in a folder of their own, and write the numbers that they print."""
    shown: list[tuple[int, str, str]] = []

    def remember(want: str, got: str, where: str, *, varies: bool) -> None:
        if varies:
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


if __name__ == "__main__":
    os.environ.update(COLUMNS="120", NO_COLOR="1", MPLBACKEND="Agg")
    for name in sys.argv[1:]:
        update(Path(name).resolve())
