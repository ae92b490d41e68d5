"""One table of several studies, from the outcomes in their folders."""

from __future__ import annotations

from pathlib import Path

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.records import markdown, row_of
from hpcsimkit.experiments.learn.study import OUTCOME
from hpcsimkit.io.documents import json_record

__all__ = ["collected"]

HEADINGS = (
    "log",
    "chosen family",
    "best heuristic on the past",
    "slowdown: learned / heuristic / clairvoyant",
    "difference of slowdowns",
    "mean wait [h]: learned / heuristic / clairvoyant",
    "difference of waits [h]",
    "longest wait / FCFS+EASY",
)


def collected(folder: Path) -> str:
    """Return a table in Markdown with a row for each study in the folders of a folder.

    Raises
    ------
    UsageError
        There is no complete study.
    """
    files = sorted(folder.glob(f"*/{OUTCOME}"))
    if not files:
        raise UsageError(f"{folder}: folders with complete studies are needed, found none")
    rows = [row_of(json_record(file)) for file in files]
    return markdown(HEADINGS, rows).rstrip("\n")
