"""Runs on job sets: metrics of jobs, returns of the job selector's decisions, and sums by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hpcsimkit.agents.cush.returns import job_selector_returns, local_rewards
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.reproductions.cush.classes import SUMS, class_sums
from hpcsimkit.reproductions.cush.methods import Method
from hpcsimkit.reproductions.draws import Draws
from hpcsimkit.results.metrics import evaluate

__all__ = ["MEASURED", "NTAT", "REWARD", "WAIT", "Run", "mean_return"]

NTAT, WAIT = "mean_ntat", "mean_wait_time"

MEASURED = (NTAT, WAIT, "mean_response_time")
"""Measures of each run, of :data:`~hpcsimkit.results.metrics.METRICS`."""

REWARD = "reward"
"""Mean return of the job selector's decisions, for any policy."""


def mean_return(system: System, ntat: float) -> float:
    """Return the mean return of the decisions of a finished run: "Rewards" of table 1.

    Parameters
    ----------
    system : System
        State of the run.
    ntat : float
        Mean normalised turnaround of its jobs.
    """
    returns = job_selector_returns([local_rewards(system)], np.array([ntat]), CushSettings().gamma)
    return float(returns.mean())


@dataclass(frozen=True)
class Run(Draws):
    """Runs of a policy on job sets; with several draws, measures are averaged."""

    contestant: Method

    @property
    def kind(self) -> str:
        """Type of the task: agents are slower than all other policies."""
        return super().kind if self.contestant.selectors is None else "runs of agents"

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        return (*MEASURED, REWARD, *SUMS)

    def inputs(self) -> Any:
        """Return the inputs of the task: policy, job sets and number of runs."""
        return {**super().inputs(), "selectors": self.contestant.selectors}

    def _measured(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Return the measures of a run."""
        simulation = scenario.simulation(policy)
        result, system = simulation.run(), simulation.system
        measured = evaluate(result, names=MEASURED)
        styles = [system.given(row).style for row in range(len(result))]
        return {**measured, REWARD: mean_return(system, measured[NTAT]), **class_sums(result, styles)}
