"""Training environment of agents for short waits and the utilisation of the masked-PPO paper at once.

They differ from the improved agents in :mod:`~hpcsimkit.agents.masked_ppo.environments` as follows: the
network has half the inputs, no products of columns, and prefers small machines from the beginning. Expected
run times are learned during the day only. The reward includes the utilisation, and episodes are all days of
the log, not only busy ones. All this was chosen on March and April 2021 of Beocat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcsimkit.agents.masked_ppo.environments import BASELINE, IMPROVED_SLOTS
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningUtilisation
from hpcsimkit.agents.spaces.episodes import AnyOf
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.policies import SJF
from hpcsimkit.policies.one_seat.dispatch import Dispatch

__all__ = ["WaitAndUtilisation", "balanced_environment", "balanced_weights"]

UTILISATION_WEIGHT = 0.25
"""Weight of a percentage point of utilisation: as much as a quarter of the mean wait."""


class WaitAndUtilisation(Improvement):
    """Bounded improvement of the mean wait over a baseline, plus the paper's utilisation, at the end.

    Parameters
    ----------
    baseline : Policy
        Baseline of the wait.
    weight : float
        Weight of a percentage point of utilisation.
    """

    reads_compiled = True

    def __init__(self, baseline: Policy, weight: float = UTILISATION_WEIGHT) -> None:
        super().__init__(baseline, "mean_wait_time", "bounded")
        self.weight = weight

    def on_begin(self, system: System) -> None:
        """Run the baseline, unless its result is known, and reset the utilisation."""
        super().on_begin(system)
        self._utilisation = RunningUtilisation()
        self._utilisation.on_begin(system)

    def on_start(self, job: Job, allocation: Any, system: System) -> None:
        """Take a snapshot after a start."""
        self._utilisation.on_start(job, allocation, system)

    def on_end(self, job: Job, system: System) -> None:
        """Take a snapshot after an end."""
        self._utilisation.on_end(job, system)

    def on_finish(self, system: System) -> None:
        """Compute the reward."""
        super().on_finish(system)
        self._earned += self.weight * 100 * self._utilisation.take(system)


def balanced_environment(days: Sequence[Workload]) -> SchedulingEnv:
    """Return the environment of an agent for short waits and utilisation.

    Parameters
    ----------
    days : sequence of Workload
        Training days, drawn by chance.
    """
    machines, resources = NINE_MACHINES.capacity.shape
    return SchedulingEnv(
        AnyOf(days, NINE_MACHINES),
        Dispatch(External(), slots=IMPROVED_SLOTS, order=SJF(), distinct=True),
        PairProspects(IMPROVED_SLOTS, machines, resources, products=False),
        JobMachine(IMPROVED_SLOTS, machines),
        WaitAndUtilisation(BASELINE),
        stage="dispatch",
    )


def balanced_weights() -> tuple[float, ...]:
    """Return the initial weights, by hand: short jobs first, on small machines, the least used of them."""
    return (
        *(0.0, -6.0, -6.0, 0.0, 1.0),  # option, requested time, expected run time, wait, size
        *(1.0, 0.5, 0.0),  # shares of CPUs, GPUs and memory left
        *(-4.0, -5.0, -5.0),  # surplus of CPUs, GPUs and memory
        1.0,  # extension of the time in use
        0.0,  # bias
    )
