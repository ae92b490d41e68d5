"""Tables of several studies, from the outcomes in their folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Any

from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.learn.goal import LONGEST, REFERENCE
from hpcsimkit.experiments.learn.records import difference_text
from hpcsimkit.experiments.learn.study import OUTCOME
from hpcsimkit.experiments.tables import Table
from hpcsimkit.io.documents import json_record
from hpcsimkit.io.formats import Format

Study = Mapping[str, Any]

RIVALS = {"limited_rival": "the best heuristic within the limit", "rival": "the best heuristic"}
"""The heuristics of a study, and what they are."""

UNITS = {"mean_bounded_slowdown": ("Mean bounded slowdown", 1.0), "mean_wait_time": ("Mean wait [h]", 3600.0)}
"""Titles of the metrics, and the units in which they are shown."""

NAMES = {metric: title.split(" [")[0].lower() for metric, (title, _) in UNITS.items()}
"""Names of the metrics without units."""


def collected(folder: Path) -> str:
    """Return tables in Markdown of all studies in the folders of a folder, a row for each log.

    Studies of one log differ in their seeds. The two heuristics of each log are the best ones on its past, of
    those that kept the limit of the longest wait there, and of all.
    """
    files = sorted(folder.glob(f"*/{OUTCOME}"))
    if not files:
        raise UsageError(f"{folder}: folders with complete studies are needed, found none")
    outcomes = {file: json_record(file, Format.TASK) for file in files}
    if (changed := next((file for file, outcome in outcomes.items() if not outcome), None)) is not None:
        raise UsageError(f"{changed}: damaged, or changed since a study wrote it")
    studies = sorted(outcomes.values(), key=lambda study: (study["log"], study["seed"]))
    logs = [list(group) for _, group in groupby(studies, key=lambda study: study["log"])]
    tables = {"Logs": _summary(logs), "Share of the gap to the clairvoyant order that is closed": _gaps(logs)}
    if all(study.get("perfect") for study in studies):
        known = [[{**study, **study["perfect"]} for study in seeds] for seeds in logs]
        tables["Logs, with perfect predictions"] = _summary(known)
        tables["Share of the gap that is closed, with perfect predictions"] = _gaps(known)
    chosen = ("log", "seeds", "learned", "best heuristic within the limit", "best heuristic")
    tables["Policies"] = Table(chosen, list(map(_policies, logs)))
    others = ("within the limit", "best heuristic", "clairvoyant", "FCFS+EASY")
    for metric, (title, unit) in UNITS.items():
        rows = [_means(seeds, metric, unit) for seeds in logs]
        tables[f"{title}, mean over seeds"] = Table(("log", "chosen", *others), rows)
        rows = [_differences(seeds, metric, unit) for seeds in logs]
        heads = ("log", "from that within the limit", "from the best heuristic")
        tables[f"{title}: difference of the chosen policy, each seed"] = Table(heads, rows)
    tables["Longest wait [d]"] = Table(("log", "chosen, each seed", *others), list(map(_longest, logs)))
    return "\n\n".join(f"{title}\n\n{table}" for title, table in tables.items())


def _summary(logs: Sequence[Sequence[Study]]) -> Table:
    """Return how many logs meet a condition with all seeds, and with most."""
    conditions: dict[str, Callable[[Study], bool]] = {
        f"{what} than {which}": partial(_differs, role=role, sign=sign, metrics=metrics)
        for role, which in RIVALS.items()
        for what, sign, metrics in (
            ("both significantly lower", -1, tuple(UNITS)),
            *((f"{NAMES[metric]} significantly lower", -1, (metric,)) for metric in UNITS),
            *((f"{NAMES[metric]} significantly higher", 1, (metric,)) for metric in UNITS),
        )
    }
    conditions["limit of the longest wait kept"] = lambda study: study["keeps_limit"]
    conditions["learned order used"] = lambda study: study["learned"]
    rows = []
    for name, holds in conditions.items():
        met = [[holds(study) for study in seeds] for seeds in logs]
        counts = (sum(map(all, met)), sum(2 * sum(each) > len(each) for each in met))
        rows.append((name, *(f"{count} of {len(logs)}" for count in counts)))
    return Table(("", "all seeds", "most seeds"), rows)


def _differs(study: Study, role: str, sign: int, metrics: Iterable[str]) -> bool:
    """Return whether the intervals of the differences from a heuristic lie on one side of zero."""
    found = study["differences"].get(study[role])
    return found is not None and all(
        sign * found[metric]["low"] > 0 and sign * found[metric]["high"] > 0 for metric in metrics
    )


def _gaps(logs: Sequence[Sequence[Study]]) -> Table:
    """Return the share of each gap that is closed, in the mean over seeds, and in the mean over logs."""
    rows, columns = [], [(role, metric) for role in RIVALS for metric in UNITS]
    shares: dict[tuple[str, str], list[float]] = {column: [] for column in columns}
    for seeds in logs:
        cells = []
        for role, metric in columns:
            found = [share for study in seeds if (share := _closed(study, role, metric)) is not None]
            cells.append(f"{mean(found):.2f}" if found else "no gap")
            shares[role, metric] += [mean(found)] if found else []
        rows.append((seeds[0]["log"], *cells))
    rows.append(
        ("mean", *(f"{mean(each):.2f} ({len(each)} logs)" if each else "-" for each in shares.values()))
    )
    heads = [f"{NAMES[metric]}, from {RIVALS[role]}" for role, metric in columns]
    return Table(("log", *heads), rows)


def _closed(study: Study, role: str, metric: str) -> float | None:
    """Return the share of the gap from a heuristic to the clairvoyant order; None below a gap of 1 %."""
    policy, rival, bound = (study["test"][study[name]][metric] for name in ("policy", role, "clairvoyant"))
    return (rival - policy) / (rival - bound) if bound < 0.99 * rival else None


def _policies(seeds: Sequence[Study]) -> Sequence[str]:
    first, learned = seeds[0], sum(study["learned"] for study in seeds)
    count = f"{learned} of {len(seeds)}"
    return (
        first["log"],
        ", ".join(str(each["seed"]) for each in seeds),
        count,
        *(first[role] for role in RIVALS),
    )


def _means(seeds: Sequence[Study], metric: str, unit: float) -> Sequence[str]:
    first = seeds[0]
    chosen = mean(study["test"][study["policy"]][metric] for study in seeds)
    names = (*(first[role] for role in RIVALS), first["clairvoyant"], REFERENCE)
    return first["log"], *(
        f"{value / unit:.2f}" for value in (chosen, *(first["test"][name][metric] for name in names))
    )


def _longest(seeds: Sequence[Study]) -> Sequence[str]:
    log, _, *others = _means(seeds, LONGEST, 86_400)
    return log, ", ".join(f"{each['test'][each['policy']][LONGEST] / 86_400:.2f}" for each in seeds), *others


def _differences(seeds: Sequence[Study], metric: str, unit: float) -> Sequence[str]:
    def text(study: Study, role: str) -> str:
        found = study["differences"].get(study[role])
        return "the same" if found is None else difference_text(found[metric], unit)

    return seeds[0]["log"], *("; ".join(text(study, role) for study in seeds) for role in RIVALS)
