"""Effects of published semantics on published numbers, from logs to tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from hpcsimkit.experiments.tasks import Shelf, Task
from hpcsimkit.io.files import write_bytes
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reproductions.published_rules import published_numbers, rules, tables
from hpcsimkit.reproductions.published_rules.data import FULL, PROTOCOLS, QUICK, Scale, Traces, Trial
from hpcsimkit.reproductions.published_rules.effects import Measured, effects_csv
from hpcsimkit.reproductions.published_rules.figures import draw_agents, draw_cases, draw_rules, draw_seeds
from hpcsimkit.reproductions.published_rules.published_numbers import AGENTS, READ_ME_ORDERS
from hpcsimkit.reproductions.published_rules.runs import Runs, all_runs
from hpcsimkit.reproductions.published_rules.targets import case_targets, digit_targets
from hpcsimkit.reproductions.reproduction import Conclusion, Reproduction
from hpcsimkit.reproductions.rivals import Field, field_of
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.templates import rendered

__all__ = ["PublishedRules"]


class PublishedRules(Reproduction):
    """Published tests of three papers under published and textbook semantics, and rule by rule."""

    title = "What the rules of published simulators do"
    logs_needed = (
        "logs in the Standard Workload Format: SDSC-SP2, CTC-SP2, HPC2N and KTH-SP2 are in the Parallel "
        "Workloads Archive, lublin_256 and lublin_256_new2 in https://github.com/DIR-LAB/SchedInspector "
        "and RLBackfilling"
    )
    rates = {"runs": 40_000.0}  # noqa: RUF012

    @cached_property
    def scale(self) -> Scale:
        """Size preset of the experiment."""
        return QUICK if self.quick else FULL

    @cached_property
    def traces(self) -> Traces:
        """Logs of the experiment."""
        return Traces(self.logs)

    @cached_property
    def runs(self) -> list[Runs]:
        """All simulations."""
        return list(all_runs(self.traces, self.scale))

    def prepare(self) -> Iterator[str]:
        """Read the logs; yield lines on the planned work."""
        yield from self.traces.lines()
        schedulers = sum(len(runs.schedulers) for runs in self.runs)
        yield f"{schedulers} schedulers on the sequences of published tests"

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return the runs, which are independent of each other."""
        return [self.runs]

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on RLScheduler's tests, beside those of its read-me."""
        found = []
        for trace in self.traces.all:
            trial = Trial.published(trace, "rlscheduler", self.scale)
            sequences = SequenceSet(f"rlscheduler-{trace.name}", tuple(trial.scenarios()))
            name = f"{trace.name}, RLScheduler's test with backfilling, by the textbook"
            everyone = field_of(name, sequences, trial.seeds[0], {})
            own = {f"{order.upper()}/EASY" for order in READ_ME_ORDERS}
            known = {row: tasks for row, tasks in everyone.rules.items() if row in own}
            rules = {row: tasks for row, tasks in everyone.rules.items() if row not in own}
            found.append(replace(everyone, known=known, rules=rules))
        return found

    def conclude(self, shelf: Shelf, pictures: Path) -> Conclusion:
        """Return tables and targets; draw figures."""
        of_tests, of_seeds = {}, {}
        for runs in self.runs:
            values = {row: np.array(each, dtype=np.float64) for row, each in shelf.outcome(runs).items()}
            if runs.of_seeds:
                seeds = len(runs.trial.seeds)
                of_seeds[runs.cell] = {
                    row: each.reshape(seeds, -1).mean(axis=1) for row, each in values.items()
                }
            else:
                of_tests[runs.cell] = values
        whole = all(runs.trial.is_whole for runs in self.runs)
        return self._conclusion(Measured(of_tests, of_seeds, whole), pictures)

    def _conclusion(self, measured: Measured, pictures: Path) -> Conclusion:
        """Return the report and the targets; figures and a table of all effects are written to a folder."""
        has_agents = bool({agent.log for agent in AGENTS} & {cell.log for cell in measured.runs})
        save_figure(draw_cases(), pictures / "cases.png")
        save_figure(draw_rules(measured), pictures / "rules.png")
        save_figure(draw_seeds(measured), pictures / "seeds.png")
        if has_agents:
            save_figure(draw_agents(measured), pictures / "agents.png")
        write_bytes(pictures / "effects.csv", effects_csv(measured))
        digits = list(digit_targets(measured))
        report = rendered(
            "published_rules/report.md.jinja",
            title=self.title,
            quick=self.quick,
            scale=self.scale,
            traces=self.traces,
            measured=measured,
            digits=digits,
            has_agents=has_agents,
            protocols=PROTOCOLS,
            numbers=published_numbers,
            rules=rules,
            tables=tables,
        )
        return Conclusion([*digits, *case_targets()], report)
