"""Tables of several studies, from the outcomes in their folders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.goal import LONGEST, REFERENCE
from hpcsimkit.experiments.learn.records import difference_text, markdown
from hpcsimkit.experiments.learn.study import OUTCOME
from hpcsimkit.io.documents import json_record

__all__ = ["collected"]

HEADS = {
    "policies": ("log", "chosen", "best heuristic within the limit", "best heuristic"),
    "means": ("log", "chosen", "within the limit", "best heuristic", "clairvoyant", "FCFS+EASY"),
    "differences": ("log", "from that within the limit", "from the best heuristic"),
}
"""Headings of the tables."""

UNITS = {"mean_bounded_slowdown": ("Mean bounded slowdown", 1.0), "mean_wait_time": ("Mean wait [h]", 3600.0)}
"""Titles of the metrics, and the units in which they are shown."""


def collected(folder: Path) -> str:
    """Return tables in Markdown with a row for each study in the folders of a folder.

    The two heuristics of each log are the best ones on its past, of those that kept the limit of the longest
    wait there, and of all.

    Raises
    ------
    UsageError
        There is no complete study.
    """
    files = sorted(folder.glob(f"*/{OUTCOME}"))
    if not files:
        raise UsageError(f"{folder}: folders with complete studies are needed, found none")
    studies = [json_record(file) for file in files]
    parts = ["Policies\n", markdown(HEADS["policies"], map(_policies, studies))]
    for metric, (title, unit) in UNITS.items():
        rows = [_means(study, metric, unit) for study in studies]
        parts += [f"{title}\n", markdown(HEADS["means"], rows)]
        rows = [_differences(study, metric, unit) for study in studies]
        parts += [f"{title}: difference of the chosen policy\n", markdown(HEADS["differences"], rows)]
    parts += [
        "Longest wait [d]\n",
        markdown(HEADS["means"], [_means(each, LONGEST, 86_400) for each in studies]),
    ]
    return "\n".join(parts).rstrip("\n")


def _policies(study: Mapping[str, Any]) -> Sequence[str]:
    chosen = study["family"] if study["learned"] else study["policy"]
    return study["log"], chosen, study["limited_rival"], study["rival"]


def _means(study: Mapping[str, Any], metric: str, unit: float) -> Sequence[str]:
    names = (study["policy"], study["limited_rival"], study["rival"], study["clairvoyant"], REFERENCE)
    return [study["log"], *(f"{study['test'][name][metric] / unit:.2f}" for name in names)]


def _differences(study: Mapping[str, Any], metric: str, unit: float) -> Sequence[str]:
    rivals = (study["limited_rival"], study["rival"])
    found = (study["differences"].get(rival) for rival in rivals)
    texts = ["the same" if each is None else difference_text(each[metric], unit) for each in found]
    return [study["log"], *texts]
