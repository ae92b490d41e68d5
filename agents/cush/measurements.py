"""Measurements of CuSH's agents and their baselines: returns, and placements that suit the type of a job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.cush.returns import job_selector_returns, local_rewards
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.locality import BREADTH, COMPUTE_BOUND, DEPTH
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.models.cush import CUSH_KINDS

NTAT, WAIT, REWARD = "mean_ntat", "mean_wait_time", "reward"

METRICS = (NTAT, WAIT, "mean_response_time")
"""Metrics of each run, of :data:`~hpcsimkit.results.metrics.METRICS`; `REWARD` is the mean return."""

SUMS = tuple(f"{quantity}, {kind}" for kind in CUSH_KINDS for quantity in ("jobs", "suited"))
"""Keys of the numbers of jobs of each type, and of those that are placed as suits them."""


def suited_sums(result: Result, styles: Sequence[str]) -> dict[str, float]:
    """Return the number of jobs of each type, and of those with a suitable placement, by `SUMS`.

    The style of each job is :data:`~hpcsimkit.kernel.locality.DEPTH` or
    :data:`~hpcsimkit.kernel.locality.BREADTH`.
    """
    kind = result.workload.column("kind")
    suited = np.array(styles) == np.where(kind == COMPUTE_BOUND, DEPTH, BREADTH)
    counts = ((kind == place, suited & (kind == place)) for place in range(len(CUSH_KINDS)))
    return dict(zip(SUMS, (float(each.sum()) for pair in counts for each in pair), strict=True))


def mean_return(system: System, ntat: float) -> float:
    """Return the mean return of the decisions of a finished run: "Rewards" of table 1."""
    returns = job_selector_returns([local_rewards(system)], np.array([ntat]), CushSettings().gamma)
    return float(returns.mean())


@dataclass(frozen=True)
class Measured:
    """Measures of a run: metrics of jobs, the return of the job selector, and sums by type of job."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the measures."""
        return (*METRICS, REWARD, *SUMS)

    def __call__(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Simulate a policy, and return the measures by name."""
        simulation = scenario.simulation(policy)
        result, system = simulation.run(), simulation.system
        found = measure(result, names=METRICS)
        styles = [system.given(row).style for row in range(len(result))]
        return {**found, REWARD: mean_return(system, found[NTAT]), **suited_sums(result, styles)}
