"""What DRAS learns from, and the sizes of its networks, by its paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hpcsimkit.agents.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.dras.encoder import JobsAndNodes
from hpcsimkit.agents.encoders import QueueWindow
from hpcsimkit.agents.long_waits import MinusLongWaits
from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.rewards import Capability, Capacity
from hpcsimkit.decision import External
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.learning import Episodes, Reward
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies.two_level import STAGE, TwoLevel

__all__ = [
    "EVOLVED", "LEARNERS", "TRAINED", "WINDOW", "Objective", "decima_environment", "dras_environment",
    "evolved_environment", "hidden_of",
]  # fmt: skip

WINDOW = 50
"""W: jobs among which one is selected."""

LEARNERS = ("dras-dql", "dras-pg", "dras-a2c", "dras-ppo")
"""The four, as :data:`~hpcsimkit.agents.trainers_catalogue.TRAINERS` calls them."""

Objective = Literal["capability", "capacity", "waiting"]
"""What is paid: equation 1, for machines that run large jobs, or equation 2, for those that run many.

The third is not the paper's: minus a mean power of the wait, so that jobs wait little, and none for very
long. Equation 1 pays those most who let the oldest or the largest job go first, and takes nothing off for
those that wait. The power is 3: of 2, 2.5, 3 and 4 the least with which an evolved agent lets nobody wait for
longer than 1.5 times what FCFS/EASY does, in the two months of Theta that it learns from.
"""

TRAINED: Mapping[str, Mapping[str, float | bool]] = {
    "dras-dql": {"discount": 0.95},
    "dras-pg": {"discount": 0.95},
    "dras-a2c": {"discount": 0.95, "bootstrap": True, "entropy_weight": 0.1},
    "dras-ppo": {"discount": 0.95, "bootstrap": True, "entropy_weight": 0.1},
}
"""What is set otherwise than in the paper, or where it is silent.

Settled for on the first two months of Theta in 2022 and the month that follows, as was `EVOLVED`.

Undiscounted, the values of DRAS-DQL grow without end: nothing ends inside of a job set.
"""

EVOLVED = CrossEntropySettings(steps=1_000_000, episodes=1, population=16, elite=4, spread=2.0)
"""How an agent evolves on DRAS's seat: a job's score is a weighted sum of five numbers, on both levels."""

THETA_NODES, THETA_HIDDEN = 4360, (4000, 1000)
LEAST_HIDDEN = (100, 25)


def hidden_of(nodes: int) -> tuple[int, int]:
    """Return the sizes of the two wide layers for a machine: Theta's, in proportion to the nodes.

    >>> [hidden_of(nodes) for nodes in (4360, 436, 100)]
    [(4000, 1000), (400, 100), (100, 25)]
    """
    first, second = (round(size * nodes / THETA_NODES) for size in THETA_HIDDEN)
    return max(first, LEAST_HIDDEN[0]), max(second, LEAST_HIDDEN[1])


def dras_environment(
    episodes: Episodes, nodes: int, longest_time: int | None, *, window: int = WINDOW,
    objective: Objective = "capability",
) -> SchedulingEnv:  # fmt: skip
    """Return what DRAS learns from: both levels of one seat, every decision of them.

    Parameters
    ----------
    episodes : Episodes
        Job sets; :class:`~hpcsimkit.agents.episodes.InTurn` for those that have an order.
    nodes : int
        Of the machine: N.
    longest_time : int, optional
        Requested time that counts as one [s], all nodes counting as one as well; with None observations are
        raw, as in the published code.
    window : int
        Jobs of a window: W.
    objective : {"capability", "capacity", "waiting"}
        What is paid.

    Examples
    --------
    >>> import numpy as np
    >>> from hpcsimkit.agents.episodes import InTurn
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=60)
    >>> env = dras_environment(InTurn([log]), log.machine_size, 86_400)
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape
    (356, 2)
    """
    return SchedulingEnv(
        episodes, TwoLevel(External(), window), _encoder(nodes, longest_time, window), Slots(window),
        _reward(objective, reserved=True), stage=STAGE, skip=False,
    )  # fmt: skip


def decima_environment(
    episodes: Episodes, nodes: int, longest_time: int | None, *, window: int = WINDOW,
    objective: Objective = "capability",
) -> SchedulingEnv:  # fmt: skip
    """Return what Decima-PG learns from: one level, only jobs that fit, nobody gets a reservation.

    Parameters are those of :func:`dras_environment`. (Fan et al., TPDS 2022, section 5.1; that jobs which do
    not fit cannot be chosen is a reading of it.)
    """
    return SchedulingEnv(
        episodes, Pipeline(order=External(), fitting=True, window=window),
        _encoder(nodes, longest_time, window), Slots(window), _reward(objective, reserved=False),
        stage="order", skip=False,
    )  # fmt: skip


def _encoder(nodes: int, longest_time: int | None, window: int) -> JobsAndNodes:
    if longest_time is None:
        return JobsAndNodes(window, nodes)
    return JobsAndNodes(window, nodes, float(nodes), float(longest_time))


def _reward(objective: Objective, *, reserved: bool) -> Reward:
    if objective == "waiting":
        return MinusLongWaits()
    return (Capability if objective == "capability" else Capacity)(reserved=reserved)


def evolved_environment(episodes: Episodes, *, window: int = WINDOW) -> SchedulingEnv:
    """Return what an agent of six weights evolves on: DRAS's seat, a row of five numbers for each job.

    Not the paper's: see :data:`EVOLVED`. What is paid is minus the mean cube of the wait.

    Parameters
    ----------
    episodes : Episodes
        Job sets, to be drawn from.
    window : int
        Jobs of a window: W.
    """
    return SchedulingEnv(
        episodes, TwoLevel(External(), window), QueueWindow(window), Slots(window), MinusLongWaits(),
        stage=STAGE,
    )  # fmt: skip
