"""CuSH+: one network for any number of jobs, on the seat of CuSH's job selector."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.context import JobsInContext
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.relative_wait import MinusRelativeWait
from hpcsimkit.agents.cush.returns import fared
from hpcsimkit.agents.ranges import Count, Share
from hpcsimkit.agents.seats import Watched
from hpcsimkit.agents.training.behaviour import Behaviour
from hpcsimkit.agents.training.taught_ppo import TaughtPPOSettings
from hpcsimkit.agents.training.trainer import Validated
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.placing.styles import SuitsKind
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, CushJobSets, job_set_of

__all__ = ["PLUS", "ManySizes", "PlusValidation", "plus_environment", "plus_policy"]

SLOTS = 100
"""Number of visible jobs in training; the weights fit any other number."""

PROBLEMS = (CushProblem(system="sierra", slots=SLOTS), CushProblem(system="summit", slots=SLOTS))
"""Clusters of the training job sets."""

VALIDATION = 103
"""Key of the random stream of the validation sets; tests and trainings use other streams."""

BASELINE = Pipeline(order=SJF(), placement=SuitsKind(), backfiller=EASY(SJF()))
"""SJF with EASY backfilling, to which waits are relative."""

LOG_TIME, SPREAD, LONGEST = 4.0, 1.3, 20_000
"""Mean and standard deviation of the logarithm of log-normal run times [s], and the upper bound [s]."""

HALVINGS = 7
"""Upper bound of how often the cluster is halved for a job of a set with log-normal run times."""

FIRST = (
    *(-1.27, 0.07, -0.18, -0.64, 1.0, -0.23, -0.37, -0.57, 0.21),  # of a job
    *(0.14, 0.47, 0.08, 0.13, -0.61, -0.22),  # of queue and cluster, the same in all rows
    *(0.32, *[0.0] * 6),  # of starting no job: itself, by queue and cluster
    0.14,  # the bias
)
"""First weights of the teacher: those that the cross-entropy method found from zero in 300 000 decisions.

The job sets were those of 10, 20 and 40 jobs for Sierra, of a random stream that no result uses.
"""

PLUS = TaughtPPOSettings(
    total_timesteps=260_000,
    episodes=256,
    whole_episodes=True,
    group=8,
    gae_lambda=1.0,
    n_epochs=4,
    batch_size=1024,
    hidden=(32, 32),
    target_kl=0.02,
    teacher_timesteps=200_000,
    teacher_first=FIRST,
    teacher_spread=0.2,
    sharpness=10.0,
    watched=0.0,
)
"""Settings of the training: each round has 32 job sets, eight times each."""


MOST_TRAINED = 45
"""Upper bound of the number of jobs in a training set: what a decision does is clearer in short episodes."""


class ManySizes(Episodes):
    """A new job set in each episode, of either system and with any number of jobs.

    Some sets have log-normal run times, and requests of a half, a quarter, ... of the cluster, as logs of GPU
    clusters tend to have; no log is used.

    Parameters
    ----------
    fewest, most : int
        Bounds of the number of jobs; its logarithm is uniform.
    lognormal : float
        Share of the job sets with log-normal run times.

    Examples
    --------
    >>> sets = ManySizes(fewest=10, most=20)
    >>> rng = np.random.default_rng(1)
    >>> all(10 <= len(sets.sample(rng).workload) <= 20 for _ in range(20))
    True
    """

    def __init__(self, fewest: Count = 10, most: Count = 100, lognormal: Share = 0.25) -> None:
        self.fewest = fewest
        self.most = most
        self.lognormal = lognormal

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a job set."""
        low, high = np.log([self.fewest - 0.5, self.most + 0.5])
        jobs = int(np.clip(np.round(np.exp(rng.uniform(low, high))), self.fewest, self.most))
        problem = PROBLEMS[rng.integers(len(PROBLEMS))]
        if rng.random() < self.lognormal:
            return problem.scenario(_lognormal(problem, jobs, rng))
        generator = CushJobSets(system=problem.system, nodes=problem.nodes, jobs=jobs)
        return problem.scenario(generator.generate(rng)[0])


def _lognormal(problem: CushProblem, jobs: int, rng: np.random.Generator) -> Workload:
    """Return a job set with log-normal run times, and requests of a half, a quarter, ... of a resource."""
    times = np.exp(rng.normal(LOG_TIME, SPREAD, jobs)).clip(1, LONGEST).astype(np.int64)
    most = 0.5 ** rng.integers(0, HALVINGS, jobs)
    shares = np.stack([most, most * rng.random(jobs)])
    rng.shuffle(shares)
    node = CUSH_SYSTEMS[problem.system]
    totals = [problem.nodes * node.cpus, problem.nodes * node.gpus]
    cpus, gpus = (
        np.maximum(share * total, 1).astype(np.int64) for share, total in zip(shares, totals, strict=True)
    )
    return job_set_of("log-normal", rng, times, {"cpus": cpus, "gpus": gpus}, totals)


def plus_policy(order: object = None, placement: object = None) -> Pipeline:
    """Return the scheduler of CuSH+: with a seat for the next job, which is selected among all waiting jobs.

    A job that is held waits for the next submission or end: nothing else changes what is known.

    Parameters
    ----------
    order, placement : stage, optional
        Stages of the seat and of the placement; by default an open seat, and what suits the job type.
    """
    placement = SuitsKind() if placement is None else placement
    scheduler = copy(CushProblem(slots=SLOTS).pipeline(order, placement))
    scheduler.max_interval = None
    return scheduler


def plus_environment(episodes: Episodes | None = None) -> SchedulingEnv:
    """Return the training environment of CuSH+.

    Parameters
    ----------
    episodes : Episodes, optional
        Job sets; by default :class:`ManySizes` of up to 45 jobs.

    Examples
    --------
    >>> observation, info = plus_environment().reset(seed=1)
    >>> observation.shape
    (101, 22)
    """
    episodes = ManySizes(most=MOST_TRAINED) if episodes is None else episodes
    mask = CushProblem(slots=SLOTS).mask
    return SchedulingEnv(episodes, plus_policy(), JobsInContext(SLOTS), mask, MinusRelativeWait(BASELINE))


@dataclass(frozen=True)
class PlusValidation:
    """Validation of CuSH+ on job sets of its own: minus the mean NTAT, each over that of SJF with EASY.

    Parameters
    ----------
    seed : int
        Random seed of the job sets.
    sets : int
        Number of job sets.
    """

    seed: int = 0
    sets: Count = 200

    @cached_property
    def _beside(self) -> list[tuple[Scenario, float]]:
        """Job sets, and the NTAT of SJF with EASY on each."""
        rng, episodes = np.random.default_rng([self.seed, VALIDATION]), ManySizes()
        drawn = [episodes.sample(rng) for _ in range(self.sets)]
        return [(scenario, _ntat(scenario, BASELINE)) for scenario in drawn]

    def __call__(self, agent: Agent) -> Validated:
        """Return the score of an agent, and what it does in choices."""
        behaviour = Behaviour(agent)
        policy = plus_policy(Watched(agent, behaviour))
        ratios = [_ntat(scenario, policy) / base for scenario, base in self._beside]
        return Validated(-float(np.mean(ratios)), behaviour.measures())


def _ntat(scenario: Scenario, policy: Policy) -> float:
    """Return the mean normalised turnaround of a policy on a job set."""
    simulation = scenario.simulation(policy)
    simulation.run()
    return fared(simulation.system).normalised_turnaround
