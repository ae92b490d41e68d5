"""Published mean bounded slowdowns of base schedulers and of trained agents, from the folders of papers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hpcsimkit.reproductions.catalogue import PAPERS
from hpcsimkit.reproductions.plans.plan import paper_files

__all__ = ["AGENTS", "BASES", "SEEDS", "SOURCES", "Agent", "Base", "same_digits"]

SOURCES = {
    "schedinspector": "SchedInspector, table 4",
    "rlbackfilling": "RLBackfilling, table 4",
    "rlscheduler": "RLScheduler, read-me",
}
"""Sources of the numbers, by code base."""

PAPER = {code: paper_files(PAPERS[code]) for code in SOURCES}
"""Plan and published tables of each paper."""

SEEDS = {("rlbackfilling", log): seed for log, seed in PAPER["rlbackfilling"][0].logs.seeds.items()}
"""Seeds of tests other than 1. They are unpublished, and were found by search for all published numbers."""

READ_ME_ORDERS = ("fcfs", "wfp3", "unicef", "sjf", "f1")
BACKFILLING_ORDERS = ("fcfs", "sjf", "wfp3", "f1")


class Base(NamedTuple):
    """A published mean of a base scheduler.

    Parameters
    ----------
    code : str
        Code base.
    log : str
        Name of the log.
    order : str
        Order of the base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    value : float
        Mean bounded slowdown.
    run_times : bool
        Whether run times were known (EASY-AR).
    """

    code: str
    log: str
    order: str
    backfilling: bool
    value: float
    run_times: bool = False


class Agent(NamedTuple):
    """A published mean of a trained agent, on the sequences of the base schedulers.

    Parameters
    ----------
    code : str
        Code base.
    log : str
        Name of the log used for training and test.
    order : str
        Order of the base scheduler; empty for RLScheduler's agent, which is itself the scheduler.
    backfilling : bool
        Whether the scheduler backfills.
    value : float
        Mean bounded slowdown.
    """

    code: str
    log: str
    order: str
    backfilling: bool
    value: float


def _rows(code: str, table: str) -> Iterator[tuple[str, bool, Mapping[str, float]]]:
    """Yield log, backfilling and numbers of each row of a table; its log Lublin is Lublin-1 elsewhere."""
    found = PAPER[code][1][table]
    for row in found.rows:
        log, _, backfilling = row.partition(", ")
        yield "Lublin-1" if log == "Lublin" else log, bool(backfilling), found.of(row)


def _bases() -> Iterator[Base]:
    for log, _, numbers in _rows("schedinspector", "table_4"):
        yield Base("schedinspector", log, "sjf", False, numbers["base"])
    for log, _, numbers in _rows("rlbackfilling", "table_4"):
        for order in BACKFILLING_ORDERS:
            yield Base("rlbackfilling", log, order, True, numbers[order])
    for log, _, numbers in _rows("rlbackfilling", "table_4"):
        for order in ("fcfs", "sjf"):
            if not math.isnan(numbers[f"{order} ar"]):
                yield Base("rlbackfilling", log, order, True, numbers[f"{order} ar"], run_times=True)
    for log, backfilling, numbers in _rows("rlscheduler", "read_me"):
        for order in READ_ME_ORDERS:
            yield Base("rlscheduler", log, order, backfilling, numbers[order.upper()])


def _agents() -> Iterator[Agent]:
    for log, _, numbers in _rows("schedinspector", "table_4"):
        yield Agent("schedinspector", log, "sjf", False, numbers["own"])
    for log, _, numbers in _rows("rlbackfilling", "table_4"):
        for order in ("fcfs", "sjf"):
            yield Agent("rlbackfilling", log, order, True, numbers[f"{order} agent"])
    for log, backfilling, numbers in _rows("rlscheduler", "read_me"):
        yield Agent("rlscheduler", log, "", backfilling, numbers["agent"])


BASES: tuple[Base, ...] = tuple(_bases())
AGENTS: tuple[Agent, ...] = tuple(_agents())


def same_digits(ours: float, published: float) -> bool:
    """Return whether a number equals a published one with two decimals, either rounded or truncated.

    >>> same_digits(333.196, 333.19), same_digits(192.893, 192.89), same_digits(50.9018, 50.9)
    (True, True, True)
    >>> same_digits(192.90, 192.89)
    False
    """
    hundredths = round(100 * published)
    return not math.isnan(ours) and hundredths in (round(100 * ours), math.floor(100 * ours))
