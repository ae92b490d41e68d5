"""Problems with known optima at other seats than that of the order, for trainings at their shipped settings.

As in :mod:`tests.agents.known_optimum`, each episode has jobs of its own, and agents are tested on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from hpcsimkit import External, Pipeline, Simulation, Workload
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.trainer import CushSettings, CushTrainer
from hpcsimkit.agents.masked_ppo.environments import SCALED
from hpcsimkit.agents.masked_ppo.environments import SETTINGS as MASKED_PPO
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait
from hpcsimkit.agents.rlbackfilling.encoder import Candidates
from hpcsimkit.agents.rlbackfilling.settings import PUBLISHED as BACKFILLER
from hpcsimkit.agents.schedinspector.features import InspectorFeatures
from hpcsimkit.agents.schedinspector.settings import PROMPT, PUBLISHED
from hpcsimkit.agents.seats import ConstantAction, RandomAgent
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import Generated
from hpcsimkit.agents.spaces.machine_encoders import JobMachinePairs
from hpcsimkit.agents.spaces.masks import AcceptReject, JobMachine, Slots
from hpcsimkit.agents.spaces.prompt_improvement import PromptImprovement
from hpcsimkit.agents.spaces.rewards import Improvement, MinusMeanWait
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies import EASY, SJF
from hpcsimkit.policies.dirlab import FittingCandidates
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.policies.placing.styles import SuitsKind

UNSEEN = range(1000, 1100)
"""Seeds of the jobs on which agents are tested."""

Jobs = Callable[[np.random.Generator], Workload]


class Problem(NamedTuple):
    """Jobs with a known optimum, the policy with an agent at the seat, and the holder at which the way begins."""

    jobs: Jobs
    seat: Callable[[Any], Policy]
    chance: Any
    best: Callable[[], float]
    """Function that returns the least possible mean wait on the unseen jobs [s]."""
    cluster: Machines | None = None

    def mean_wait(self, holder: Any) -> float:
        """Return the mean wait of an agent on the unseen jobs [s]."""
        return mean_wait(self.jobs, self.seat(holder), self.cluster)

    def way(self, agent: Any) -> float:
        """Return the share of the way from chance to the optimum."""
        chance, best = self.mean_wait(self.chance), self.best()
        return (chance - self.mean_wait(agent)) / (chance - best)


def mean_wait(jobs: Jobs, policy: Policy, cluster: Machines | None = None) -> float:
    drawn = [jobs(np.random.default_rng(seed)) for seed in UNSEEN]
    runs = [
        Simulation(each, policy, cluster, seed=seed).run() for seed, each in zip(UNSEEN, drawn, strict=True)
    ]
    return float(np.mean([run.wait_time.mean() for run in runs]))


# --- an inspector: a long job should wait for the short one that always follows it --------------------------------

PAIRS, BETWEEN, LONG, SHORT, LATER = 16, 400, 100, 5, 10
INTERVAL = 10
"""Time after which a rejected job is shown again, at the latest [s]."""


def pairs(rng: np.random.Generator) -> Workload:
    """A long or a short job, and 10 s later a short one, again and again; each for the whole machine."""
    begins = BETWEEN * np.arange(PAIRS)
    first = np.where(rng.random(PAIRS) < 0.5, LONG, SHORT)
    columns = {
        "submit_time": np.stack([begins, begins + LATER], axis=1).ravel(),
        "run_time": np.stack([first, np.full(PAIRS, SHORT)], axis=1).ravel(),
        "nodes": np.full(2 * PAIRS, 4),
    }
    return Workload(columns, machine_size=4)


def least_wait_of_pairs() -> float:
    """A long job that waits for the short one to end: 15 s; otherwise the short one would wait for 90 s."""
    drawn = [pairs(np.random.default_rng(seed)) for seed in UNSEEN]
    return float(np.mean([(jobs.run_time == LONG).mean() for jobs in drawn])) * (LATER + SHORT)


def inspected(inspector: Any) -> Pipeline:
    return Pipeline(order=SJF(), inspector=inspector, max_rejections=72, max_interval=INTERVAL)


INSPECTOR = Problem(pairs, inspected, ConstantAction(AcceptReject(), action=0), least_wait_of_pairs)
"""The way begins at the base scheduler: chance, which rejects what nothing follows, is far behind it."""


# --- a backfiller: ten jobs beside a long one, in front of one that is blocked for long ----------------------------

CANDIDATES, AT_LONGEST = 10, 100


def candidates(rng: np.random.Generator) -> Workload:
    """Half of the machine is busy for long, and the next job needs all of it; ten more need the other half."""
    times = rng.integers(1, AT_LONGEST, CANDIDATES)
    columns = {
        "submit_time": np.zeros(CANDIDATES + 2),
        "run_time": np.concatenate([[10_000, 1], times]),
        "nodes": np.concatenate([[2, 4], np.full(CANDIDATES, 2)]),
    }
    return Workload(columns, machine_size=4)


def backfilled(backfiller: Any) -> Pipeline:
    backfiller = copy(backfiller)
    backfiller.base = FittingCandidates(slots=CANDIDATES)
    return Pipeline(backfiller=backfiller)


BACKFILLING = Problem(
    candidates,
    backfilled,
    RandomAgent(Slots(CANDIDATES)),
    lambda: mean_wait(candidates, Pipeline(backfiller=EASY(SJF()))),
)


# --- masked PPO: ten jobs for two machines --------------------------------------------------------------------------

TWO_MACHINES = Machines.of(2, cpus=4, gpus=0, memory="8 GB")


def for_two_machines(rng: np.random.Generator) -> Workload:
    """Ten jobs, each for a machine: the shortest first is best."""
    times = rng.integers(1, AT_LONGEST, CANDIDATES)
    ones = np.ones(CANDIDATES, dtype=np.int64)
    columns = {"submit_time": 0 * ones, "run_time": times, "nodes": ones}
    amounts = {"cpus": 4 * ones, "gpus": 0 * ones, "memory": 10**9 * ones}
    return Workload({**columns, **amounts}, resources=tuple(amounts))


def dispatched(agent: Any) -> Policy:
    return Dispatch(agent, slots=CANDIDATES)


DISPATCH = Problem(
    for_two_machines,
    dispatched,
    RandomAgent(JobMachine(CANDIDATES, len(TWO_MACHINES))),
    lambda: mean_wait(for_two_machines, Pipeline(order=SJF(), fitting=True), TWO_MACHINES),
    TWO_MACHINES,
)


# --- CuSH: ten jobs for the whole cluster ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class WholeCluster(CushProblem):
    """Job sets that are submitted at once, each job for the whole cluster: the shortest first is best."""

    def scenarios(self, rng: np.random.Generator, count: int) -> list[Scenario]:
        return [self.scenario(self._jobs(rng)) for _ in range(count)]

    def _jobs(self, rng: np.random.Generator) -> Workload:
        ones = np.ones(self.jobs, dtype=np.int64)
        columns = {
            "submit_time": 0 * ones,
            "run_time": rng.integers(1, 21, self.jobs),
            "nodes": ones,
            "spread": ones,
            "kind": rng.integers(0, 2, self.jobs),
            "cpus": 2 * self.nodes * ones,
            "gpus": 4 * self.nodes * ones,
        }
        return Workload(columns, resources=("cpus", "gpus"), labels={"kind": ("dgemm", "daxpy")})


WHOLE = WholeCluster(nodes=4, jobs=10, slots=10, horizon=20)


@cache
def whole_sets() -> list[Scenario]:
    return WHOLE.scenarios(np.random.default_rng(1000), len(UNSEEN))


def wait_of_sets(order: Any, placement: Any) -> float:
    policy = WHOLE.pipeline(order, placement)
    return float(np.mean([each.simulation(policy).run().wait_time.mean() for each in whole_sets()]))


def cush(seed: int, share: float = 1.0) -> float:
    """Return the share of the way of CuSH's two selectors, with new sets of equal weight in each epoch.

    The reproduction's agents with fresh job sets have these settings, too; the rates are as published.
    """
    settings = CushSettings(epochs=max(1, round(40 * share)), fresh=True, equal_sets=True)
    agents = CushTrainer(WHOLE, settings, seed=seed).train()
    chance, best = wait_of_sets(RandomAgent(WHOLE.mask), SuitsKind()), wait_of_sets(SJF(), SuitsKind())
    return (chance - wait_of_sets(agents["order"], agents["placement"])) / (chance - best)


# --- all of them ----------------------------------------------------------------------------------------------------


class SeatPreset(NamedTuple):
    """A training at a seat with its shipped settings, and for how long."""

    algorithm: str
    decisions: int
    settings: Any
    problem: Problem
    parts: Sequence[Any]
    """Encoder, mask and reward."""
    stage: str

    def way(self, seed: int, share: float = 1.0) -> float:
        """Return the share of the way from chance to the optimum after a share of a training."""
        episodes = Generated(self.problem.jobs, self.problem.cluster)
        seat = self.problem.seat(External(skip=self.stage == "backfiller"))
        env = SchedulingEnv(episodes, seat, *self.parts, stage=self.stage)
        settings = replace(self.settings, total_timesteps=int(share * self.decisions))
        return self.problem.way(trainer_named(self.algorithm)(env, settings, seed=seed).train())


def _inspector(reward: Reward) -> Sequence[Any]:
    return InspectorFeatures(longest_time=LONG, metric="wait", max_interval=INTERVAL), AcceptReject(), reward


_UNINSPECTED = Pipeline(order=SJF())
_PAIRS = JobMachine(CANDIDATES, 2)
_RAW = (RequestsAndMachines(CANDIDATES, 2), _PAIRS, RunningMeanWait())
_SCALED = (JobMachinePairs(CANDIDATES, 2, 3, AT_LONGEST), _PAIRS, MinusMeanWait(scale=AT_LONGEST))
"""Parts of masked PPO as published, and with one scale for all that it sees."""

SEAT_PRESETS: Mapping[str, Callable[..., float]] = {
    "prompt-inspector": SeatPreset(
        "prompt-inspector",
        250_000,
        PROMPT,
        INSPECTOR,
        _inspector(PromptImprovement(_UNINSPECTED, "mean_wait_time", "bounded")),
        "inspector",
    ).way,
    "schedinspector": SeatPreset(
        "schedinspector",
        300_000,
        PUBLISHED,
        INSPECTOR,
        _inspector(Improvement(_UNINSPECTED, "mean_wait_time", "bounded")),
        "inspector",
    ).way,
    "masked-ppo-scaled": SeatPreset("ppo", 60_000, SCALED, DISPATCH, _SCALED, "dispatch").way,
    "rlbackfilling": SeatPreset(
        "spinning-up-ppo",
        60_000,
        BACKFILLER,
        BACKFILLING,
        (Candidates(CANDIDATES, AT_LONGEST), Slots(CANDIDATES), MinusMeanWait(scale=AT_LONGEST)),
        "backfiller",
    ).way,
    "cush": cush,
}
"""Functions of a seed and the share of a training that return the share of the way, by name."""

AS_PUBLISHED: Mapping[str, Callable[..., float]] = {
    "masked-ppo": SeatPreset("ppo", 60_000, MASKED_PPO, DISPATCH, _RAW, "dispatch").way,
    "masked-ppo, scaled observations": SeatPreset(
        "ppo", 60_000, MASKED_PPO, DISPATCH, (_SCALED[0], *_RAW[1:]), "dispatch"
    ).way,
    "masked-ppo, scaled rewards": SeatPreset(
        "ppo", 60_000, MASKED_PPO, DISPATCH, (_RAW[0], *_SCALED[1:]), "dispatch"
    ).way,
}
"""Trainings of masked PPO as published, and with one part scaled: what it does not see, it cannot learn."""
