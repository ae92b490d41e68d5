"""Runs on job sets: how jobs fared, what the job selector would have been paid, and sums by class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.agents.cush.returns import job_selector_returns, local_rewards
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.metrics import evaluate
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.cush.classes import SUMS, class_sums
from hpcsimkit.reproductions.cush.methods import Method
from hpcsimkit.reproductions.rlbackfilling.draws import SEEDS_APART, mean_over_draws
from hpcsimkit.reproductions.sequences import Meeting
from hpcsimkit.reproductions.tasks import Tell
from hpcsimkit.scenario import Scenario
from hpcsimkit.system import System

__all__ = ["MEASURED", "NTAT", "REWARD", "WAIT", "Run", "mean_return"]

NTAT, WAIT = "mean_ntat", "mean_wait_time"

MEASURED = (NTAT, WAIT, "mean_response_time")
"""What is measured of each run, of :data:`~hpcsimkit.metrics.METRICS`."""

REWARD = "reward"
"""And the mean return of the job selector's decisions, whoever takes them."""


def mean_return(system: System, ntat: float) -> float:
    """Return the mean of what the decisions of a run that is over were worth: "Rewards" of table 1.

    Parameters
    ----------
    system : System
        The state of the run.
    ntat : float
        Mean normalised turnaround of its jobs.
    """
    returns = job_selector_returns([local_rewards(system)], np.array([ntat]), CushSettings().discount)
    return float(returns.mean())


def _tell_on(tell: Tell, before: int, done: int) -> None:
    tell(before + done)


@dataclass(frozen=True)
class Run(Meeting):
    """Runs of a method on job sets.

    Parameters
    ----------
    draws : int
        On each of them, by different seeds; what is measured are means over them.
    """

    contestant: Method
    draws: int = 1

    @property
    def kind(self) -> str:
        """Agents, and all others, who are faster."""
        return super().kind if self.contestant.selectors is None else "runs of agents"

    @property
    def size(self) -> int:
        """A decision a job and run."""
        return self.draws * super().size

    @property
    def measures(self) -> tuple[str, ...]:
        """The keys of the outcome."""
        return (*MEASURED, REWARD, *SUMS)

    def inputs(self) -> Any:
        """Return who, on what, and how often."""
        return {**super().inputs(), "selectors": self.contestant.selectors, "draws": self.draws}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        if self.draws == 1:
            return super().run(folder, tell)
        outcomes = []
        for draw in range(self.draws):
            once = replace(self, draws=1, seed=self.seed + SEEDS_APART * draw)
            outcomes.append(once.run(folder, partial(_tell_on, tell, draw * once.size)))
        return mean_over_draws(outcomes)

    def _measured(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Return the measures of a run."""
        simulation = scenario.simulation(policy)
        result, system = simulation.run(), simulation.system
        measured = evaluate(result, names=MEASURED)
        styles = [system.given(row).style for row in range(len(result))]
        return {**measured, REWARD: mean_return(system, measured[NTAT]), **class_sums(result, styles)}
