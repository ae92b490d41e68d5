"""Training environments of the masked-PPO scheduler: as published, and improved for shorter waits.

The improved agents differ from the published ones as follows: slots hold distinct types of requests, the
shortest first. The observation includes expected run times, and the resources that a machine lacks with the
time until they are free. Episodes are busy days of the log instead of constructed sets. The reward is the
reduction in wait relative to SJF with best fit. The weights of a small network are found by the cross-entropy
method, since the effect of a single action is lost in the noise of the hundreds that follow. Slots, columns
and initial weights were chosen with results on the test days in view; these agents are therefore to be
assessed on the unseen days.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed
from hpcsimkit.agents.spaces.machine_encoders import JobMachinePairs
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects, past_run_times
from hpcsimkit.agents.spaces.rewards import Improvement, MinusMeanWait
from hpcsimkit.agents.training.ppo import PPOSettings
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.policies import SJF, BestFit
from hpcsimkit.policies.one_seat.dispatch import Dispatch

__all__ = [
    "BASELINE",
    "SCALED",
    "SETTINGS",
    "OnlyThePast",
    "first_weights",
    "improved_environment",
    "published_environment",
    "scaled_environment",
    "untrained",
]

SLOTS, IMPROVED_SLOTS = 10, 32
"""K of the published code, and of the improved agents: number of jobs in observation and action space."""

SETTINGS = PPOSettings(
    episodes=1,
    n_steps=2048,
    batch_size=64,
    n_epochs=10,
    clip_range_vf=1.0,
    normalise="batch",
    learning_rate=3e-4,
    gamma=0.99,
    gae_lambda=0.95,
    clip_range=0.2,
    ent_coef=0.0,
    vf_coef=0.5,
    max_grad_norm=0.5,
    hidden=(64, 64),
    activation="tanh",
)
"""Settings of :data:`~hpcsimkit.agents.masked_ppo.settings.PUBLISHED` for the kit's own PPO.

Its update equals that of MaskablePPO (a test compares them) and takes half the time.
"""

SCALED = replace(SETTINGS, clip_range_vf=None)
"""Settings for :func:`scaled_environment`."""

METRICS: Mapping[str, Reward] = {"wait": RunningMeanWait(), "utilisation": RunningUtilisation()}
"""Training rewards by metric."""

BASELINE = Pipeline(order=SJF(), placement=BestFit(), fitting=True)
"""Baseline of the improved agents."""

EXPECTED_RUN_TIME = 2
"""Column of the observation by which the initial network ranks: shortest job first."""


def published_environment(jobs: Workload, metric: str, slots: int = SLOTS) -> SchedulingEnv:
    """Return the environment of an agent as in the paper and its code.

    Parameters
    ----------
    jobs : Workload
        Training set, the same in every episode.
    metric : {"wait", "utilisation"}
        Metric whose running value is the reward.
    slots : int
        Number of jobs in observation and action space: the queue depth K.
    """
    return SchedulingEnv(
        Fixed(jobs, NINE_MACHINES),
        Dispatch(External(), slots=slots),
        RequestsAndMachines(slots, len(NINE_MACHINES)),
        JobMachine(slots, len(NINE_MACHINES)),
        METRICS[metric],
        stage="dispatch",
        skip=False,  # the running mean gives a reward at every step, even without a choice
    )


def scaled_environment(days: Sequence[Workload], time_scale: float = 3600.0) -> SchedulingEnv:
    """Return the environment of an agent that is as published, but for the scale of what it sees and is paid.

    Raw observations hold memory in kB beside times in seconds. Sums of millions saturate the hyperbolic
    tangents of the network whatever the times are, so that it learns nothing of them, not even from other
    rewards. With these observations it also learns from the published rewards.

    Parameters
    ----------
    days : sequence of Workload
        Training days, drawn by chance.
    time_scale : float
        Unit of time in observations and rewards [s], > 0. Default: an hour.

    Examples
    --------
    >>> from hpcsimkit import Workload
    >>> needs = {"cpus": [4], "gpus": [0], "memory": [10**9]}
    >>> times = {"submit_time": [0], "run_time": [5], "nodes": [1]}
    >>> day = Workload({**times, **needs}, resources=tuple(needs))
    >>> scaled_environment([day]).encoder.shape
    (90, 10)
    """
    machines, resources = NINE_MACHINES.capacity.shape
    return SchedulingEnv(
        AnyOf(days, NINE_MACHINES),
        Dispatch(External(), slots=SLOTS),
        JobMachinePairs(SLOTS, machines, resources, time_scale),
        JobMachine(SLOTS, machines),
        MinusMeanWait(scale=time_scale),
        stage="dispatch",
    )


def _prospects(past: Workload | None = None) -> PairProspects:
    machines, resources = NINE_MACHINES.capacity.shape
    known = None if past is None else past_run_times(past)
    return PairProspects(IMPROVED_SLOTS, machines, resources, known)


def improved_environment(days: Sequence[Workload], past: Workload) -> SchedulingEnv:
    """Return the environment of an agent for shorter waits.

    Parameters
    ----------
    days : sequence of Workload
        Training days, drawn by chance.
    past : Workload
        Jobs whose run times are known.
    """
    return SchedulingEnv(
        AnyOf(days, NINE_MACHINES),
        Dispatch(External(), slots=IMPROVED_SLOTS, order=SJF(), distinct=True),
        _prospects(past),
        JobMachine(IMPROVED_SLOTS, len(NINE_MACHINES)),
        Improvement(BASELINE, "mean_wait_time", "percentage"),
        stage="dispatch",
    )


def first_weights() -> tuple[float, ...]:
    """Return the initial weights of the improved agents: the shortest expected job first."""
    first = [0.0] * (_prospects().shape[1] + 1)
    first[EXPECTED_RUN_TIME] = -12.0
    return tuple(first)


def untrained(environment: SchedulingEnv, first: Sequence[float] | None = None) -> Dispatch:
    """Return an agent before its training, from its environment; by default an improved one.

    Parameters
    ----------
    environment : SchedulingEnv
        Its environment.
    first : sequence of float, optional
        Initial weights of the network. Default: :func:`first_weights`.
    """
    weights = np.array(first_weights() if first is None else first, dtype=np.float32)
    network = SlotScores({"weight.0": weights[None, :-1], "bias.0": weights[-1:]}, "relu")
    dispatch = copy(environment.policy)
    assert isinstance(dispatch, Dispatch)
    dispatch.seat = Agent(environment.encoder, environment.mask, network, environment.stage)
    return dispatch


class OnlyThePast(Dispatch):
    """A dispatch restricted, on each day, to the run times of jobs that had ended before.

    Some test days precede the end of the training data: without the restriction, run times of later jobs
    would leak into the test.

    Parameters
    ----------
    dispatch : Dispatch
        The dispatch.
    log : Workload
        Jobs submitted before the cut. A job counts as ended at its submission plus its run time, as the log
        does not record start times.
    """

    def __init__(self, dispatch: Dispatch, log: Workload) -> None:
        super().__init__(dispatch.seat, dispatch.slots, dispatch.order, distinct=dispatch.distinct)
        self.dispatch = dispatch
        self.log = log

    def on(self, day: Workload) -> Dispatch:
        """Return the dispatch with a history that ends at the start of the day."""
        agent = self.seat
        assert isinstance(agent, Agent) and isinstance(agent.encoder, PairProspects)
        ended = self.log.submit_time + self.log.run_time < int(day.submit_time.min())
        encoder, taken = copy(agent.encoder), copy(self)
        encoder.past = past_run_times(self.log.select(ended, "ended before the day"))
        taken.seat = Agent(encoder, agent.mask, agent.network, agent.stage, sample=agent.sample)
        return taken
