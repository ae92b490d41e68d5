"""Minimal cases, one for each rule, with so few jobs that schedules can be drawn by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Order
from hpcsimkit.policies import EASY, SJF, WFP3
from hpcsimkit.policies.dirlab import published
from hpcsimkit.results.result import Result

__all__ = ["CASES", "DRAWN", "Case", "Row"]

Row = tuple[int, int, int, int]
"""Job: submission [s], run time [s], nodes, requested time [s]."""


@dataclass(frozen=True)
class Case:
    """A few jobs with different schedules under published and textbook semantics.

    Parameters
    ----------
    name : str
        Name of the case, M1 to M8.
    rule : str
        Rule under test.
    nodes : int
        Number of nodes of the machine.
    jobs : tuple of Row
        Jobs in the order of submission.
    code : str
        Code base with this rule.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    published, textbook : tuple of int
        Start times of the published programs and of the textbook [s].
    meant : Order, optional
        Textbook order, if it differs from the published one.
    """

    name: str
    rule: str
    nodes: int
    jobs: tuple[Row, ...]
    code: str
    order: str
    backfilling: bool
    published: tuple[int, ...]
    textbook: tuple[int, ...]
    meant: Order | None = None

    @property
    def scenario(self) -> Scenario:
        """Jobs on the machine, under the published event semantics."""
        submit, run, nodes, requested = zip(*self.jobs, strict=True)
        columns = {"submit_time": submit, "run_time": run, "nodes": nodes, "requested_time": requested}
        return Scenario(Workload(columns, machine_size=self.nodes, name=self.name), semantics="dirlab")

    @cached_property
    def by_published_rules(self) -> Result:
        """Schedule of the published program."""
        policy = published(self.code, self.order, backfilling=self.backfilling)
        return self.scenario.simulation(policy).run()

    @cached_property
    def by_the_textbook(self) -> Result:
        """Schedule of the same base scheduler under textbook semantics."""
        order = self.meant or (SJF() if self.order == "sjf" else FCFS())
        policy = Pipeline(order, backfiller=EASY() if self.backfilling else None)
        return replace(self.scenario, semantics="textbook").simulation(policy).run()

    @property
    def equal(self) -> int:
        """Number of schedules, of the two, that are as expected."""
        pairs = (self.by_published_rules, self.published), (self.by_the_textbook, self.textbook)
        return sum(tuple(result.start_time.tolist()) == times for result, times in pairs)


CASES = (
    Case(
        "M1",
        "the selected job is kept to",
        4,
        ((0, 100, 4, 100), (1, 50, 4, 50), (2, 5, 1, 5)),
        "rlscheduler",
        "sjf",
        False,
        (0, 100, 150),
        (0, 105, 100),
    ),
    Case(
        "M2",
        "no use of nodes left over",
        10,
        ((0, 100, 6, 100), (1, 50, 8, 50), (2, 500, 2, 500)),
        "rlscheduler",
        "fcfs",
        True,
        (0, 100, 100),
        (0, 100, 2),
    ),
    Case(
        "M3",
        "before the reservation, not up to it",
        10,
        ((0, 100, 6, 100), (1, 50, 8, 50), (2, 98, 4, 98)),
        "rlscheduler",
        "fcfs",
        True,
        (0, 100, 150),
        (0, 100, 2),
    ),
    Case(
        "M4",
        "the reservation is made once",
        10,
        ((0, 50, 4, 1000), (0, 500, 4, 500), (1, 100, 10, 100), (60, 700, 4, 700)),
        "rlscheduler",
        "fcfs",
        True,
        (0, 0, 760, 60),
        (0, 0, 500, 600),
    ),
    Case(
        "M5",
        "who follows a backfilled job is skipped",
        10,
        ((0, 10, 2, 10), (0, 100, 8, 100), (1, 50, 10, 50), (2, 10, 1, 10), (3, 10, 1, 10)),
        "rlbackfilling",
        "fcfs",
        True,
        (0, 0, 100, 10, 20),
        (0, 0, 100, 10, 10),
    ),
    Case(
        "M6",
        "WFP3 without waiting times",
        1,
        ((0, 100, 1, 100), (1, 100, 1, 100), (2, 1000, 1, 1000), (3, 10, 1, 10)),
        "rlscheduler",
        "wfp3",
        False,
        (0, 100, 200, 1200),
        (0, 110, 210, 100),
        WFP3(),
    ),
    Case(
        "M7",
        "jobs of one second arrive one by one",
        1,
        ((5, 100, 1, 100), (5, 10, 1, 10)),
        "rlscheduler",
        "sjf",
        False,
        (5, 105),
        (15, 5),
    ),
    Case(
        "M8",
        "a job that outlives its request blocks backfilling",
        10,
        ((0, 1000, 6, 100), (1, 50, 8, 50), (200, 10, 2, 10)),
        "rlscheduler",
        "fcfs",
        True,
        (0, 1000, 1000),
        (0, 1000, 200),
    ),
)
"""All minimal cases; start times were computed by the published programs, unmodified, and by hand."""

DRAWN = ("M1", "M2", "M4", "M5")
"""Cases drawn in the figure."""
