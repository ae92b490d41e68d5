"""Simulations: all schedulers with the same base on the sequences of one test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.policies.dirlab import published
from hpcsimkit.reproductions.published_rules.data import Scale, Trace, Traces, Trial
from hpcsimkit.reproductions.published_rules.published_numbers import BACKFILLING_ORDERS, READ_ME_ORDERS
from hpcsimkit.reproductions.published_rules.rules import (
    PUBLISHED,
    TEXTBOOK,
    Scheduler,
    as_meant,
    one_rule_at_a_time,
    untrained,
)

__all__ = ["Cell", "Runs", "all_runs"]

AS_CODED = ("wfp3", "unicef")
"""Orders with published code that differs from the intended formula."""


@dataclass(frozen=True)
class Cell:
    """Position of a value in the published tables.

    Parameters
    ----------
    code : str
        Code base.
    log : str
        Name of the log.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    """

    code: str
    log: str
    order: str
    backfilling: bool


@dataclass(frozen=True)
class Runs(Task):
    """Runs of some schedulers on all sequences of a test; the outcome is a list of values for each.

    Parameters
    ----------
    trial : Trial
        Test sequences.
    order : str
        Base scheduler.
    backfilling : bool
        Whether the base scheduler backfills.
    schedulers : mapping of str to Scheduler
        Schedulers by row of the tables.
    """

    trial: Trial
    order: str
    backfilling: bool
    schedulers: Mapping[str, Scheduler]

    @property
    def cell(self) -> Cell:
        """Position in the tables."""
        return Cell(self.trial.code, self.trial.trace.name, self.order, self.backfilling)

    @property
    def of_seeds(self) -> bool:
        """Whether the runs compare seeds."""
        return len(self.trial.seeds) > 1

    @property
    def name(self) -> str:
        """Name of the task: test and base scheduler."""
        words = (
            self.trial.code,
            self.trial.trace.name,
            self.order,
            "bf" * self.backfilling,
            "seeds" * self.of_seeds,
        )
        return "-".join(filter(None, words))

    @property
    def kind(self) -> str:
        """Type of the task: the same for all runs, which have about the same rate."""
        return "runs"

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        runs = sum(scheduler.repeats for scheduler in self.schedulers.values())
        return runs * len(self.trial.starts) * self.trial.jobs

    def inputs(self) -> Any:
        """Return the inputs of the task: schedulers and sequences."""
        trace, code = self.trial.trace, self.trial.code
        swaps = sorted({each.swapped for each in self.schedulers.values()})
        logs = [trace.log(code, swapped=swapped) for swapped in swaps]
        return {
            "schedulers": self.schedulers,
            "logs": logs,
            "starts": self.trial.starts,
            "jobs": self.trial.jobs,
        }

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulations; values are mean bounded slowdowns."""
        outcome: dict[str, list[float]] = {}
        done = 0
        for row, scheduler in self.schedulers.items():
            values = outcome[row] = []
            for number, scenario in enumerate(self.trial.scenarios(swapped=scheduler.swapped)):
                values.append(scheduler.slowdown(scenario, number))
                done += scheduler.repeats * self.trial.jobs
                tell(done)
        return outcome


def all_runs(traces: Traces, scale: Scale) -> Iterator[Runs]:
    """Yield all simulations."""
    for trace in traces.all:
        yield from _rules(trace, scale)
        yield from _read_me(trace, scale)
        yield from _seeds(trace, scale)


def _rules(trace: Trace, scale: Scale) -> Iterator[Runs]:
    """Yield the tests of SchedInspector and RLBackfilling, rule by rule, and with untrained policies."""
    for code, modes in (("schedinspector", (False, True)), ("rlbackfilling", (True,))):
        trial, estimates = Trial.published(trace, code, scale), trace.has_requests(code)
        for backfilling in modes:
            for order in scale.orders:
                rows = dict(one_rule_at_a_time(code, order, backfilling=backfilling, estimates=estimates))
                if backfilling is (code == "rlbackfilling"):
                    rows |= dict(untrained(code, order, backfilling=backfilling))
                yield Runs(trial, order, backfilling, rows)
    for order in BACKFILLING_ORDERS:
        if order not in scale.orders:  # for these orders only the published variant
            yield Runs(
                trial,
                order,
                True,
                {PUBLISHED: Scheduler(published("rlbackfilling", order, backfilling=True))},
            )


def _read_me(trace: Trace, scale: Scale) -> Iterator[Runs]:
    """Yield the test of RLScheduler's read-me; FCFS, SJF and F1 rule by rule."""
    trial = Trial.published(trace, "rlscheduler", scale)
    for backfilling in (False, True):
        for order in READ_ME_ORDERS:
            if order in AS_CODED:
                rows = dict(as_meant(order, backfilling=backfilling))
            else:
                estimates = trace.has_requests("rlscheduler")
                rows = dict(
                    one_rule_at_a_time("rlscheduler", order, backfilling=backfilling, estimates=estimates)
                )
                if not scale.read_me_rules:
                    rows = {row: rows[row] for row in (PUBLISHED, TEXTBOOK)}
            yield Runs(trial, order, backfilling, rows)


def _seeds(trace: Trace, scale: Scale) -> Iterator[Runs]:
    """Yield tests with many seeds: FCFS with backfilling, SJF without."""
    for code, order, backfilling in (("rlbackfilling", "fcfs", True), ("schedinspector", "sjf", False)):
        trial = Trial(trace, code, tuple(range(scale.seeds)), scale.sequences(code))
        rows = one_rule_at_a_time(code, order, backfilling=backfilling, estimates=False)
        yield Runs(
            trial, order, backfilling, {row: each for row, each in rows if row in (PUBLISHED, TEXTBOOK)}
        )
