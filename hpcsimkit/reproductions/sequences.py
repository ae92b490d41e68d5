"""Policies under test, the job sequences that they run on, and the measures of their runs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.evaluation.sequences import beginnings, places
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import TextbookOrder
from hpcsimkit.kernel.observers import Promises
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.results.metrics import measure

Floats = NDArray[np.float64]
Rules = Literal["textbook", "dirlab"]

MEASURES = ("mean_bounded_slowdown", "mean_wait_time", "max_bounded_slowdown", "utilisation")
"""Measures of each run, from :data:`~hpcsimkit.results.metrics.METRICS`."""

BSLD = MEASURES[0]

OF_PROMISES = ("promises", "broken_promises", "mean_delay_of_broken")
"""Further measures for guaranteed start times; see :class:`Meeting`."""

SEEDS_APART = 1000
"""Difference between the random seeds of two runs on a sequence."""


@dataclass(frozen=True)
class SequenceSet:
    """Set of sequences to compare policies on."""

    name: str
    scenarios: Sequence[Scenario]

    @classmethod
    def of(cls, name: str, log: Workload, starts: Sequence[int], jobs: int) -> SequenceSet:
        """Return the sequences of `jobs` jobs of a log that begin at some rows."""
        return cls(name, tuple(Scenario.sequence(log, start, jobs) for start in starts))

    @property
    def jobs(self) -> int:
        """Number of jobs of all sequences."""
        return sum(len(scenario.workload) for scenario in self.scenarios)

    def words(self, asked: int) -> str:
        """Return a text with the number of sequences, and with a reason if it is lower than requested.

        >>> log = Workload({"submit_time": range(9), "run_time": [1] * 9, "nodes": [1] * 9}, machine_size=1)
        >>> found = SequenceSet.of("rest", log, starts_apart(0, 9, jobs=4, count=3, seed=0), 4)
        >>> found.words(2), found.words(3)
        ('2 sequences of 4', '2 sequences of 4 (not 3: no more lie side by side)')
        """
        found = len(self.scenarios)
        fewer = f" (not {asked}: no more lie side by side)" if found < asked else ""
        return f"{found} sequence{'s' * (found != 1)} of {self.jobs // max(found, 1)}{fewer}"


def starts_apart(first: int, end: int, *, jobs: int, count: int, seed: int) -> list[int]:
    """Sample the start indices of non-overlapping sequences, as independent samples for tests.

    `first` and `end` are the first row of the jobs, and the row after the last. The count is reduced to the
    maximum number of non-overlapping sequences; the first ones do not depend on it.

    >>> starts_apart(100, 112, jobs=4, count=2, seed=0)
    [108, 100]
    >>> sorted(starts_apart(100, 112, jobs=4, count=50, seed=0))
    [100, 104, 108]
    """
    room = end - first
    if room < jobs:
        raise UsageError(f"sequences of {jobs} jobs from row {first} to {end} are needed, there is no room")
    rng = np.random.default_rng(seed)
    return [first + start for start in beginnings(room, jobs, min(count, places(room, jobs)), rng)]


@dataclass(frozen=True)
class Contestant:
    """Policy in a comparison: a heuristic, or a pipeline with a trained agent at its open seat.

    Parameters
    ----------
    name : str
        Name of the row in tables, unique in a set of sequences.
    policy : Policy
        Heuristic, or pipeline with the open seat of an agent.
    rules : {"dirlab", "textbook"}
        Rules of the simulation clock.
    learner : Learner, optional
        Training of the agent at the seat.
    sample : bool
        Whether the agent samples its actions; otherwise it takes the best one. Default: True.
    changes : mapping of str to object, optional
        Parameters of the agent's encoder that depend on the log and differ from the training.
    """

    name: str
    policy: Policy
    rules: Rules = "dirlab"
    learner: Learner | None = None
    sample: bool = True
    changes: Mapping[str, Any] | None = None

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return () if self.learner is None else (self.learner.name,)

    def scheduler(self, store: Path) -> Policy:
        """Return the policy; agents are loaded from the folder of all tasks."""
        if self.learner is None:
            return self.policy
        policy = self.learner.with_others(self.policy, store, sample=self.sample)
        for agent in self.learner.agents(store / self.learner.name, sample=self.sample):
            taken = agent
            if self.changes:
                encoder = copy.copy(agent.encoder)
                vars(encoder).update(self.changes)
                taken = Agent(encoder, agent.mask, agent.network, agent.stage, sample=self.sample)
            policy = with_agent(policy, taken)
        return policy


class Measuring(Protocol):
    """Function that simulates a policy and returns the measures of the run."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the measures."""

    def __call__(self, scenario: Scenario, policy: Policy) -> Mapping[str, float]:
        """Return the measures by name."""


@dataclass(frozen=True)
class Meeting(Task):
    """Runs of a policy on all sequences of a set; the outcome has a list of values for each measure.

    Parameters
    ----------
    contestant : Contestant
        Policy to run.
    sequences : SequenceSet
        Sequences to run on.
    seed : int
        Random seed of stochastic policies; the number of the sequence is added. Default: 0.
    promises : bool
        Whether reservations are measured for each sequence: the number of guaranteed start times of blocked
        head jobs (``promises``), the number of reservation violations (``broken_promises``), and their mean
        delay [s] (``mean_delay_of_broken``, 0 without any); see
        :class:`~hpcsimkit.kernel.observers.Promises`. Default: False.
    draws : int
        Number of runs on each sequence with different random seeds; the outcome has their means. Default: 1.
    names : sequence of str
        Metrics of a run, of :data:`~hpcsimkit.results.metrics.METRICS`. Default: `MEASURES`.
    warmup : float
        Time after the first submission before which no job counts in metrics [s]. Default: 0.
    measuring : Measuring, optional
        Measures of a run in place of metrics and reservations.

    Examples
    --------
    >>> from hpcsimkit import Pipeline
    >>> from hpcsimkit.policies import Greedy
    >>> w = Workload({"submit_time": [0, 1, 2], "run_time": [9, 9, 50], "nodes": [3, 4, 1]}, machine_size=4)
    >>> greedy = Contestant("greedy", Pipeline(backfiller=Greedy()), rules="textbook")
    >>> meeting = Meeting(greedy, SequenceSet("all", [Scenario(w)]), promises=True)
    >>> meeting.name
    'runs-all-greedy'
    >>> outcome = meeting.run(Path(), print)
    3
    >>> outcome["mean_wait_time"], outcome["broken_promises"], outcome["mean_delay_of_broken"]
    ([17.0], [1.0], [43.0])
    """

    contestant: Contestant
    sequences: SequenceSet
    seed: int = 0
    promises: bool = False
    draws: int = 1
    names: Sequence[str] = MEASURES
    warmup: float = 0
    measuring: Measuring | None = None

    @property
    def name(self) -> str:
        """Name of the set and the policy."""
        words = "".join(each if each.isalnum() else " " for each in self.contestant.name.lower())
        return f"runs-{self.sequences.name}-{'-'.join(words.split())}"

    @property
    def kind(self) -> str:
        """Name of the group of runs with the same rate: agents, or heuristics, which are faster."""
        return "runs" if self.contestant.learner is None else "runs of agents"

    @property
    def size(self) -> int:
        """Number of decisions, one for each job and run."""
        return len(self.seeds) * self.sequences.jobs

    @property
    def seeds(self) -> Sequence[int]:
        """Random seed of each run on the first sequence."""
        return [self.seed + SEEDS_APART * draw for draw in range(self.draws)]

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        if self.measuring is not None:
            return tuple(self.measuring.names)
        return (*self.names, *OF_PROMISES * self.promises)

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return self.contestant.requires

    def inputs(self) -> Any:
        """Return the policy, the sequences and the number of runs."""
        who = self.contestant
        return {
            "policy": who.policy,
            "rules": who.rules,
            "learner": who.learner,
            "sample": who.sample,
            "changes": who.changes,
            "scenarios": self.sequences.scenarios,
            "seed": self.seed,
            "measures": self.measures,
            "draws": self.draws,
            "warmup": self.warmup,
            "measuring": self.measuring,
        }

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        policy, done = self.contestant.scheduler(folder.parent), 0
        outcomes: list[dict[str, list[float]]] = []
        for seed in self.seeds:
            outcomes.append({name: [] for name in self.measures})
            for scenario in self._scenarios(seed):
                for name, value in self._measured(scenario, policy).items():
                    outcomes[-1][name].append(float(value))
                done += len(scenario.workload)
                tell(done)
        return mean_over_draws(outcomes)

    def _scenarios(self, seed: int) -> Iterator[Scenario]:
        """Yield the sequences with the rules of the policy."""
        for number, scenario in enumerate(self.sequences.scenarios):
            seeded = scenario.changed(seed=seed + number)
            is_textbook = self.contestant.rules == "textbook"
            yield seeded.changed(event_order=TextbookOrder()) if is_textbook else seeded

    def _measured(self, scenario: Scenario, policy: Policy) -> Mapping[str, float]:
        """Return the measures of a run."""
        if self.measuring is not None:
            return self.measuring(scenario, policy)
        promises = Promises()
        result = scenario.simulation(policy, [promises] * self.promises).run()
        found = measure(result, names=self.names, warmup=self.warmup)
        if not self.promises:
            return found
        delay = promises.delay / max(promises.broken, 1)
        counted = dict(zip(OF_PROMISES, (promises.made, promises.broken, delay), strict=True))
        return {**found, **counted}


def mean_over_draws(outcomes: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return means of measures over several runs for each sequence; delays are means over violations.

    >>> few = {"promises": [4.0], "broken_promises": [1.0], "mean_delay_of_broken": [10.0]}
    >>> many = {"promises": [6.0], "broken_promises": [3.0], "mean_delay_of_broken": [30.0]}
    >>> mean_over_draws([few, many])
    {'promises': [5.0], 'broken_promises': [2.0], 'mean_delay_of_broken': [25.0]}
    """
    values = {name: np.array([outcome[name] for outcome in outcomes]) for name in outcomes[0]}
    means = {name: each.mean(axis=0) for name, each in values.items()}
    _, broken, delay = OF_PROMISES
    if delay in values:
        late = (values[broken] * values[delay]).mean(axis=0)
        means[delay] = np.divide(late, means[broken], out=np.zeros_like(late), where=means[broken] > 0)
    return {name: each.tolist() for name, each in means.items()}
