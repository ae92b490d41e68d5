"""Measurements behind the report, its figures and targets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpcsimkit.io.files import write_bytes
from hpcsimkit.reproductions.findings import Findings
from hpcsimkit.reproductions.published_rules import published_numbers, rules, tables
from hpcsimkit.reproductions.published_rules.data import PROTOCOLS
from hpcsimkit.reproductions.published_rules.effects import Measured, effects_csv
from hpcsimkit.reproductions.published_rules.figures import draw_agents, draw_cases, draw_rules, draw_seeds
from hpcsimkit.reproductions.published_rules.published_numbers import AGENTS
from hpcsimkit.reproductions.published_rules.targets import case_targets, digit_targets
from hpcsimkit.reproductions.reproduction import Conclusion
from hpcsimkit.reproductions.targets import Target

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PublishedRulesFindings"]


class PublishedRulesFindings(Findings):
    """Measurements of schedulers under published and textbook rules."""

    @cached_property
    def measured(self) -> Measured:
        """Mean bounded slowdowns of all runs."""
        of_tests, of_seeds = {}, {}
        for runs in self.plan.runs:
            outcome = self.store.outcome(runs).items()
            values = {row: np.array(each, dtype=np.float64) for row, each in outcome}
            if runs.of_seeds:
                shape = len(runs.trial.seeds), -1
                of_seeds[runs.cell] = {row: each.reshape(shape).mean(axis=1) for row, each in values.items()}
            else:
                of_tests[runs.cell] = values
        return Measured(of_tests, of_seeds, all(runs.trial.is_whole for runs in self.plan.runs))

    @property
    def has_agents(self) -> bool:
        """Whether agents were published for any of the logs."""
        return not {agent.log for agent in AGENTS}.isdisjoint(cell.log for cell in self.measured.runs)

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {
            "scale": self.plan.scale,
            "measured": self.measured,
            "digits": list(digit_targets(self.measured)),
            "protocols": PROTOCOLS,
            "numbers": published_numbers,
            "rules": rules,
            "tables": tables,
        }

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        yield "cases", draw_cases()
        yield "rules", draw_rules(self.measured)
        yield "seeds", draw_seeds(self.measured)
        if self.has_agents:
            yield "agents", draw_agents(self.measured)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        yield from digit_targets(self.measured)
        yield from case_targets()

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report; figures and a table of all effects are written to a folder."""
        write_bytes(pictures / "effects.csv", effects_csv(self.measured))
        return super().conclusion(pictures)
