"""Agents to be trained: as published, and improved, in groups with the same training protocol.

The published agents are trained for each training set and metric. The improved ones differ as follows: slots
hold distinct types of requests, the shortest first. The observation includes expected run times, and the
resources that a machine lacks with the time until they are free. Episodes are busy days of the log instead of
constructed sets. The reward is the reduction in wait relative to SJF with best fit. The weights of a small
network are found by the cross-entropy method, since the effect of a single action is lost in the noise of the
hundreds that follow.

Slots, columns and initial weights were chosen with results on the test days in view; these agents are
therefore to be assessed on the unseen days.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects, past_run_times
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.training.ppo import PPOSettings
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF, BestFit
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.data import Beocat

__all__ = ["METRICS", "SLOTS", "Family", "ForDay", "families", "improved", "published", "row_of"]


ForDay = Callable[[Dispatch, Workload], Dispatch]
"""``for_day(scheduler, jobs)`` returns the scheduler restricted to knowledge from before a day."""


class Family(NamedTuple):
    """Agents with the same training protocol.

    Parameters
    ----------
    name : str
        Name in the tables.
    about : str
        Difference from the other groups.
    learners : mapping of str to sequence of Learner
        Learners by the metric that they are trained for.
    samples : tuple of bool
        Whether actions are sampled or greedy, for each variant under test; the first variant is compared with
        the baselines.
    controls : mapping of str to Policy
        Further rows of the group, such as its agents before training.
    for_day : callable, optional
        Function that restricts the knowledge of its schedulers on a day; see :data:`ForDay`.
    """

    name: str
    about: str
    learners: Mapping[str, Sequence[Learner]]
    samples: tuple[bool, ...] = (True, False)
    controls: Mapping[str, Policy] = {}
    for_day: ForDay | None = None

    def row(self, metric: str) -> str:
        """Return the row of the agents trained for a metric, or for wait if there are none."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return row_of(self.name, trained, sample=self.samples[0])

    def rows(self, metric: str) -> list[str]:
        """Return the rows of these agents in all variants, and the group's controls."""
        trained = metric if metric in self.learners else next(iter(self.learners))
        return [*(row_of(self.name, trained, sample=each) for each in self.samples), *self.controls]


def row_of(family: str, metric: str, *, sample: bool) -> str:
    """Return the row of a group's agents for a metric.

    >>> row_of("published", "wait", sample=True), row_of("published", "wait", sample=False)
    ('published, for wait', 'published, for wait, greedy')
    """
    return f"{family}, for {metric}{'' if sample else ', greedy'}"


SLOTS = 10
"""K of the published code: number of jobs in observation and action space."""

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

METRICS: dict[str, Reward] = {"wait": RunningMeanWait(), "utilisation": RunningUtilisation()}
"""Training rewards by metric."""


def families(beocat: Beocat) -> list[Family]:
    """Return all agents to be trained."""
    return [published(beocat), *([improved(beocat)] if beocat.training_days else [])]


def published(beocat: Beocat) -> Family:
    """Return agents as in the paper and its code, one for each training set and metric."""
    learners = {
        metric: [_published(beocat, metric, number) for number in range(1, beocat.scale.sets + 1)]
        for metric in METRICS
    }
    return Family("published", "trained as in the paper and its code", learners)


def _published(beocat: Beocat, metric: str, number: int) -> Learner:
    machines = len(NINE_MACHINES)
    return Learner(
        name=f"published-{metric}-{number:02}",
        episodes=Fixed(beocat.training_sets[number - 1], NINE_MACHINES),
        policy=Dispatch(External(), slots=SLOTS),
        encoder=RequestsAndMachines(SLOTS, machines),
        mask=JobMachine(SLOTS, machines),
        reward=METRICS[metric],
        trainer="ppo",
        settings=replace(SETTINGS, total_timesteps=beocat.scale.steps),
        seed=1000 * beocat.seed + number,
        skip=False,  # the running mean gives a reward at every step, even without a choice
    )


IMPROVED_SLOTS = 32
SEEDS = (1, 2, 3)
BUSY = 3600
"""Minimum mean wait [s] of a training day under the baseline."""

BASELINE = Pipeline(order=SJF(), placement=BestFit(), fitting=True)

EXPECTED_RUN_TIME = 2
"""Column of the observation by which the initial network ranks: shortest job first."""


def improved(beocat: Beocat) -> Family:
    """Return agents trained for shorter waits, one for each seed.

    Parameters
    ----------
    beocat : Beocat
        Source of the training days: the busy ones, if there are any.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from hpcsimkit.reproductions.masked_ppo.data import QUICK
    >>> needs = {"nodes": [1], "cpus": [4], "gpus": [0], "memory": [1]}
    >>> day = Workload({"submit_time": [0], "run_time": [60], **needs}, resources=("cpus", "gpus", "memory"))
    >>> data = SimpleNamespace(training_days=[day], training_part=day, scale=QUICK, seed=0)
    >>> found = improved(data)
    >>> [learner.name for learner in found.learners["wait"]], list(found.controls)
    (['improved-wait-01', 'improved-wait-02', 'improved-wait-03'], ['improved, before training'])
    """
    every = beocat.training_days
    days = [day for day in every if _mean_wait(day) >= BUSY] or every
    learners = [_improved(beocat, days, seed) for seed in SEEDS]
    about = (
        "see run times to be expected, by jobs that had ended before the day; cross-entropy method on "
        f"{len(days)} busy days of the log"
    )
    first = {"improved, before training": _untrained(learners[0])}
    known = OnlyThePast(beocat.training_part)
    return Family("improved", about, {"wait": learners}, samples=(False,), controls=first, for_day=known)


@dataclass(frozen=True)
class OnlyThePast:
    """Restriction of schedulers to the run times of jobs that had ended before a day.

    Some test days precede the end of the training period: without the restriction, run times of later jobs
    would leak into the test.

    Parameters
    ----------
    log : Workload
        Jobs submitted before the cut. A job counts as ended at its submission plus its run time, as the log
        does not record start times.
    """

    log: Workload

    def __call__(self, scheduler: Dispatch, day: Workload) -> Dispatch:
        """Return the scheduler with a history that ends at the start of the day."""
        agent = scheduler.seat
        assert isinstance(agent, Agent) and isinstance(agent.encoder, PairProspects)
        ended = self.log.submit_time + self.log.run_time < int(day.submit_time.min())
        encoder = copy(agent.encoder)
        encoder.past = past_run_times(self.log.select(ended, "ended before the day"))
        taken = copy(scheduler)
        taken.seat = Agent(encoder, agent.mask, agent.network, agent.stage, sample=agent.sample)
        return taken


def _untrained(learner: Learner) -> Policy:
    """Return the agents before training: the shortest expected job first."""
    weights = np.array(learner.settings.first, dtype=np.float32)  # type: ignore[attr-defined]
    network = SlotScores({"weight.0": weights[None, :-1], "bias.0": weights[-1:]}, "relu")
    scheduler = copy(learner.policy)
    scheduler.seat = Agent(learner.encoder, learner.mask, network, learner.stage)  # type: ignore[attr-defined]
    return scheduler


def _improved(beocat: Beocat, days: list[Workload], seed: int) -> Learner:
    (machines, resources), scale = NINE_MACHINES.capacity.shape, beocat.scale
    encoder = PairProspects(IMPROVED_SLOTS, machines, resources, past_run_times(beocat.training_part))
    first = [0.0] * (encoder.shape[1] + 1)
    first[EXPECTED_RUN_TIME] = -12.0
    return Learner(
        name=f"improved-wait-{seed:02}",
        episodes=AnyOf(days, NINE_MACHINES),
        policy=Dispatch(External(), slots=IMPROVED_SLOTS, order=SJF(), distinct=True),
        encoder=encoder,
        mask=JobMachine(IMPROVED_SLOTS, machines),
        reward=Improvement(BASELINE, "mean_wait_time", "percentage"),
        trainer="cem",
        settings=CrossEntropySettings(
            total_timesteps=scale.improved_steps,
            episodes=scale.episodes,
            population=scale.population,
            elite=scale.population // 4,
            first=tuple(first),
        ),
        seed=1000 * beocat.seed + seed,
    )


def _mean_wait(day: Workload) -> float:
    return float(Simulation(day, BASELINE, NINE_MACHINES).run().wait_time.mean())
