"""How RLBackfilling was trained and on what, by its paper and its code; and how it learns faster."""

from __future__ import annotations

from hpcsimkit.agents.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.masks import Slots
from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.reward import BASELINE, TimelyImprovement
from hpcsimkit.agents.rlbackfilling.seat import SLOTS, Mode, backfilling_seat
from hpcsimkit.agents.sequences import Sequences
from hpcsimkit.agents.spinning_up import SpinningUpSettings
from hpcsimkit.environment import SchedulingEnv
from hpcsimkit.policies.dirlab.pipelines import order_of
from hpcsimkit.workload import Workload

__all__ = ["EVOLVED", "JOBS", "PUBLISHED", "backfilling_environment"]

JOBS = 256
"""Of a sequence that is learned from."""

ATTEMPTS = 1000
"""Sequences that are drawn, one after the other, until one has a decision."""

PUBLISHED = SpinningUpSettings(
    episodes=100, whole_episodes=True, epochs=80, learning_rate=3e-4, value_learning_rate=1e-3,
    discount=1.0, trace=0.97, clip=0.2, target_divergence=0.015, kind="slots", hidden=(32, 16, 8),
    activation="relu",
)  # fmt: skip
"""100 sequences a round; the networks have 897 and 25 281 weights. (The paper has one learning rate of 1e-3.)

First weights are orthogonal here. The published code stops a pass earlier when the policy has moved far
enough; it makes 100 rounds, or 300 as its read-me says: here `steps` decides.
"""

EVOLVED = CrossEntropySettings(
    steps=600_000,
    episodes=8,
    population=24,
    elite=6,
    spread=2.0,
    first=(0.0, -3.0, 0.0, 0.0, 0.0, -10.0, 0.0),
)
"""How a backfiller with seven weights evolves by the cross-entropy method, from *shortest first*.

A candidate's score is a weighted sum of its six columns; at first only the requested time counts, and to
decline is the last thing to do. Settings were found on the log KTH-SP2, which no table of backfillers is
about.
"""


def backfilling_environment(
    log: Workload, order: str = "fcfs", mode: Mode = "unguarded", *, decline: bool = False,
    penalty: float = 1.0, slots: int = SLOTS, jobs: int = JOBS, first: int = JOBS, last: int | None = None,
    longest_time: int | None = None,
) -> SchedulingEnv:  # fmt: skip
    """Return what RLBackfilling learns from, by the published rules.

    Parameters
    ----------
    log : Workload
        As :func:`~hpcsimkit.workloads.dirlab.read_published` returns it for ``"rlbackfilling"``.
    order : str
        Of the base scheduler: one of its own in :mod:`~hpcsimkit.policies.dirlab`.
    mode, decline, slots
        See :func:`~hpcsimkit.agents.rlbackfilling.seat.backfilling_seat`. (Published: unguarded.)
    penalty : float
        What a broken promise costs in the mode *penalty*.
    jobs : int
        Of a sequence.
    first, last : int
        Sequences begin at one of these rows; by default as published.
    longest_time : int, optional
        Of the encoder; by default the longest run time of the log, as published.

    Examples
    --------
    >>> import numpy as np
    >>> from hpcsimkit.workloads import default_workload
    >>> log = default_workload(np.random.default_rng(1), jobs=600)
    >>> observation, info = backfilling_environment(log).reset(seed=1)
    >>> observation.shape
    (128, 6)
    """
    seat = backfilling_seat(
        order_of("rlbackfilling", order), mode, semantics="dirlab", decline=decline, slots=slots
    )
    reward = TimelyImprovement(BASELINE, penalty=penalty) if mode == "penalty" else Improvement(BASELINE)
    encoder = Candidates(slots, longest_time or int(log.run_time.max()), decline=decline)
    last = len(log) - jobs - 1 if last is None else last
    return SchedulingEnv(
        Sequences(log, jobs, first=first, last=last), seat, encoder, Slots(slots, decline=decline), reward,
        stage="backfiller", attempts=ATTEMPTS,
    )  # fmt: skip
