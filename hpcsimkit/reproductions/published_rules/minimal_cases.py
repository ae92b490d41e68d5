"""Minimal cases, one for each rule, with so few jobs that schedules can be drawn by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import FCFS, Order
from hpcsimkit.policies import EASY, SJF, WFP3
from hpcsimkit.policies.dirlab import published
from hpcsimkit.results.result import Result

__all__ = ["CASES", "DRAWN", "Case", "Row"]

TEXTBOOK: Mapping[str, Order] = {"fcfs": FCFS(), "sjf": SJF(), "wfp3": WFP3()}
"""Orders of the textbook."""

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
    jobs : sequence of Row
        Jobs in the order of submission.
    code : str
        Code base with this rule.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    published, textbook : tuple of int
        Start times of the published programs and of the textbook [s].
    """

    name: str
    rule: str
    nodes: int
    jobs: Sequence[Row]
    code: str
    order: str
    backfilling: bool
    published: tuple[int, ...]
    textbook: tuple[int, ...]

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
        policy = Pipeline(TEXTBOOK[self.order], backfiller=EASY() if self.backfilling else None)
        return replace(self.scenario, semantics="textbook").simulation(policy).run()

    @property
    def equal(self) -> int:
        """Number of schedules, of the two, that are as expected."""
        pairs = (self.by_published_rules, self.published), (self.by_the_textbook, self.textbook)
        return sum(tuple(result.start_time.tolist()) == times for result, times in pairs)


def _read() -> Iterator[Case]:
    cases = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    for name, case in cases.items():
        jobs = tuple(map(tuple, case.pop("jobs")))
        times: dict[str, Any] = {key: tuple(case.pop(key)) for key in ("published", "textbook")}
        yield Case(name, jobs=jobs, **case, **times)


CASES = tuple(_read())
"""All minimal cases, from the file beside this one."""

DRAWN = ("M1", "M2", "M4", "M5")
"""Cases drawn in the figure."""
