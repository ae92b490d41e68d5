"""Agents that see more, are paid for what counts, and train on days like those of the test.

What differs from those of the paper: slots hold kinds of requests, the shortest first; the observation says
how long jobs are likely to take, what a machine would lack and for how long; the episodes are busy days of
the log instead of constructed sets; the reward is how much less jobs wait than under SJF with best fit; and
the weights of a small network are found by the cross-entropy method, since what a single choice is worth
drowns in what the hundreds that follow it do.

Slots, columns and first weights were chosen with results on the days of the test in view: days that nobody
has looked at are to judge these agents.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cross_entropy import CrossEntropySettings
from hpcsimkit.agents.episodes import AnyOf
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masks import JobMachine
from hpcsimkit.agents.networks import SlotScores
from hpcsimkit.agents.prospects import PairProspects, past_run_times
from hpcsimkit.agents.rewards import Improvement
from hpcsimkit.decision import External
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policies import SJF
from hpcsimkit.policies.dispatch import Dispatch
from hpcsimkit.policies.placements import BestFit
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.masked_ppo.data import Beocat
from hpcsimkit.reproductions.masked_ppo.family import Family
from hpcsimkit.simulation import Simulation
from hpcsimkit.workload import Workload

__all__ = ["improved"]

SLOTS = 32
SEEDS = (1, 2, 3)
BUSY = 3600
"""Days are trained on if jobs wait so long on average [s] under the baseline."""

BASELINE = Pipeline(order=SJF(), placement=BestFit(), fitting=True)

EXPECTED_RUN_TIME = 2
"""Column of the observation that the first network ranks by: the shortest job first."""


def improved(beocat: Beocat) -> Family:
    """Return agents that are trained to let jobs wait less, one for each seed.

    Parameters
    ----------
    beocat : Beocat
        Its training days are learned from: the busy ones, if there are any.

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
    """Lets schedulers know, on a day, the run times of those jobs only that had ended before it.

    Some days of the test lie before the end of what is trained on: without this, jobs of later weeks would
    tell how long theirs are to take.

    Parameters
    ----------
    log : Workload
        What is known of: jobs from before the cut. A job counts as ended when it would have, had it started
        at once; the log does not say when it did.
    """

    log: Workload

    def __call__(self, scheduler: Dispatch, day: Workload) -> Dispatch:
        """Return the scheduler with a past that ends where the day begins."""
        agent = scheduler.seat
        assert isinstance(agent, Agent) and isinstance(agent.encoder, PairProspects)
        ended = self.log.submit_time + self.log.run_time < int(day.submit_time.min())
        encoder = copy(agent.encoder)
        encoder.past = past_run_times(self.log.select(ended, "ended before the day"))
        taken = copy(scheduler)
        taken.seat = Agent(encoder, agent.mask, agent.network, agent.stage, sample=agent.sample)
        return taken


def _untrained(learner: Learner) -> Policy:
    """Return the agents as they are before they have learned anything: the shortest expected job first."""
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
            steps=scale.improved_steps,
            episodes=scale.episodes,
            population=scale.population,
            elite=scale.population // 4,
            first=tuple(first),
        ),
        seed=1000 * beocat.seed + seed,
    )


def _mean_wait(day: Workload) -> float:
    return float(Simulation(day, BASELINE, NINE_MACHINES).run().wait_time.mean())
