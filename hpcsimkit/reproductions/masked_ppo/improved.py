"""Agents with a richer observation, a reward relative to SJF, and training on days like the test days.

Differences from the paper's agents: slots hold distinct types of requests, the shortest first. The
observation includes expected run times, and the resources that a machine lacks with the time until they are
free. Episodes are busy days of the log instead of constructed sets. The reward is the reduction in wait
relative to SJF with best fit. The weights of a small network are found by the cross-entropy method, since the
effect of a single action is lost in the noise of the hundreds that follow.

Slots, columns and initial weights were chosen with results on the test days in view; these agents are
therefore to be assessed on the unseen days.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.episodes import AnyOf
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects, past_run_times
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.cross_entropy import CrossEntropySettings
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.placing.placements import BestFit
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family

__all__ = ["improved"]

SLOTS = 32
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
    learners = [_learner(beocat, days, seed) for seed in SEEDS]
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


def _learner(beocat: Beocat, days: list[Workload], seed: int) -> Learner:
    (machines, resources), scale = NINE_MACHINES.capacity.shape, beocat.scale
    encoder = PairProspects(SLOTS, machines, resources, past_run_times(beocat.training_part))
    first = [0.0] * (encoder.shape[1] + 1)
    first[EXPECTED_RUN_TIME] = -12.0
    return Learner(
        name=f"improved-wait-{seed:02}",
        episodes=AnyOf(days, NINE_MACHINES),
        policy=Dispatch(External(), slots=SLOTS, order=SJF(), distinct=True),
        encoder=encoder,
        mask=JobMachine(SLOTS, machines),
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
