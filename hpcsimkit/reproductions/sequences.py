"""Everybody on the same sequences of jobs: who schedules, what is measured, and who is better for sure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.campaigns.evaluation_sequences import beginnings, places
from hpcsimkit.campaigns.evaluation_statistics import Comparison, Mean, compared, mean_of
from hpcsimkit.errors import UsageError
from hpcsimkit.metrics import evaluate
from hpcsimkit.observers import Promises
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policy import Policy
from hpcsimkit.reproductions.learners import Learner, trained_agent
from hpcsimkit.reproductions.tasks import Task, Tell
from hpcsimkit.scenario import Scenario
from hpcsimkit.workload import Workload

__all__ = [
    "BSLD", "MEASURES", "OF_PROMISES", "SIGNIFICANT", "Contestant", "Meeting", "SequenceSet", "Standing",
    "standings", "starts_apart",
]  # fmt: skip

Floats = NDArray[np.float64]
Rules = Literal["textbook", "dirlab"]

MEASURES = ("mean_bounded_slowdown", "mean_wait_time", "max_bounded_slowdown", "utilisation")
"""What is measured of each run, of :data:`~hpcsimkit.metrics.METRICS`."""

BSLD = MEASURES[0]

SIGNIFICANT = 0.05
"""p-values below are not taken for chance."""

OF_PROMISES = ("promises", "broken_promises", "mean_delay_of_broken")
"""What is also measured where promises are: see :class:`Meeting`."""


@dataclass(frozen=True)
class SequenceSet:
    """Sequences that everybody meets on.

    Parameters
    ----------
    name : str
        Unique, and fit to be part of the name of a folder.
    scenarios : sequence of Scenario
        By the rules ``dirlab``; those who go by the textbook get the same jobs by its rules.
    """

    name: str
    scenarios: Sequence[Scenario]

    @classmethod
    def of(cls, name: str, log: Workload, starts: Sequence[int], jobs: int) -> SequenceSet:
        """Cut sequences of so many jobs out of a log, from some rows on."""
        return cls(name, tuple(Scenario.sequence(log, start, jobs) for start in starts))

    @property
    def jobs(self) -> int:
        """Of all sequences."""
        return sum(len(scenario.workload) for scenario in self.scenarios)

    def words(self, asked: int) -> str:
        """Say how many sequences there are, and why not as many as were asked for.

        >>> log = Workload({"submit_time": range(9), "run_time": [1] * 9, "nodes": [1] * 9}, machine_size=1)
        >>> found = SequenceSet.of("rest", log, starts_apart(0, 9, jobs=4, count=3, seed=0), 4)
        >>> found.words(2), found.words(3)
        ('2 sequences of 4', '2 sequences of 4 (not 3: no more lie side by side)')
        """
        found = len(self.scenarios)
        fewer = f" (not {asked}: no more lie side by side)" if found < asked else ""
        return f"{found} sequence{'s' * (found != 1)} of {self.jobs // max(found, 1)}{fewer}"


def starts_apart(first: int, end: int, *, jobs: int, count: int, seed: int) -> list[int]:
    """Draw where sequences begin that have no job in common: samples of their own, as tests of them suppose.

    Parameters
    ----------
    first, end : int
        All jobs of all sequences are in the rows from `first` to before `end`.
    jobs, count : int
        Jobs of a sequence, and how many sequences are asked for; where there is no room for so many, as many
        as lie side by side are drawn.
    seed : int
        Where the chance comes from; more sequences of the same seed begin with the same ones.

    Raises
    ------
    UsageError
        There is no room for a single one.

    Examples
    --------
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
    """Who schedules sequences: a policy, or a pipeline with a trained agent on its open seat.

    Parameters
    ----------
    name : str
        Unique in a set of sequences; the row of tables.
    policy : Policy
        Who; of a learner's agent the pipeline whose seat it takes.
    rules : {"dirlab", "textbook"}
        By which rules.
    learner : Learner, optional
        Whose agent takes the seat.
    sample : bool
        The agent draws its actions, or takes the best.
    changes : mapping of str to object
        Parameters of the agent's encoder that are others here: those that are about a log.
    """

    name: str
    policy: Policy
    rules: Rules = "dirlab"
    learner: Learner | None = None
    sample: bool = True
    changes: Mapping[str, Any] | None = None

    def scheduler(self, shelf: Path) -> Policy:
        """Return who schedules; agents are found in the folder of all tasks."""
        if self.learner is None:
            return self.policy
        agent = trained_agent(self.learner, shelf / self.learner.name, sample=self.sample)
        if self.changes:
            encoder = copy.copy(agent.encoder)
            vars(encoder).update(self.changes)
            agent = Agent(encoder, agent.mask, agent.network, agent.stage, sample=self.sample)
        return with_agent(self.policy, agent)


def with_agent(policy: Policy, agent: Agent) -> Policy:
    """Return a pipeline with an agent on its open seat, before the heuristic behind it."""
    assert isinstance(policy, Pipeline)
    pipeline = copy.copy(policy)
    agent.base = getattr(policy, agent.stage).base
    setattr(pipeline, agent.stage, agent)
    return pipeline


@dataclass(frozen=True)
class Meeting(Task):
    """Runs of a contestant on all sequences of a set; the outcome has a list of values by measure.

    Parameters
    ----------
    contestant : Contestant
        Who.
    sequences : SequenceSet
        On what.
    seed : int
        Where the chance of who draws comes from; each sequence adds its number.
    promises : bool
        Also count, of each sequence, how many jobs that were blocked at the head were promised a start
        (``promises``), how many started later (``broken_promises``), and by how much on average [s]
        (``mean_delay_of_broken``, 0 where none did); see :class:`~hpcsimkit.observers.Promises`.

    Examples
    --------
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

    @property
    def name(self) -> str:
        """Set and contestant."""
        words = "".join(each if each.isalnum() else " " for each in self.contestant.name.lower())
        return f"runs-{self.sequences.name}-{'-'.join(words.split())}"

    @property
    def kind(self) -> str:
        """Agents, and all others, who are faster."""
        return "runs" if self.contestant.learner is None else "runs of agents"

    @property
    def size(self) -> int:
        """A decision a job."""
        return self.sequences.jobs

    @property
    def measures(self) -> tuple[str, ...]:
        """The keys of the outcome."""
        return MEASURES + OF_PROMISES * self.promises

    def inputs(self) -> Any:
        """Return who, and on what."""
        who = self.contestant
        return {
            "policy": who.policy, "rules": who.rules, "learner": who.learner, "sample": who.sample,
            "changes": who.changes, "scenarios": self.sequences.scenarios, "seed": self.seed,
            "measures": self.measures,
        }  # fmt: skip

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate."""
        policy, done = self.contestant.scheduler(folder.parent), 0
        outcome: dict[str, list[float]] = {name: [] for name in self.measures}
        for number, scenario in enumerate(self.sequences.scenarios):
            rules = replace(scenario, seed=self.seed + number)
            if self.contestant.rules == "textbook":
                rules = replace(rules, semantics="textbook", following=None)
            for name, value in self._measured(rules, policy).items():
                outcome[name].append(float(value))
            done += len(scenario.workload)
            tell(done)
        return outcome

    def _measured(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Return the measures of a run."""
        if not self.promises:
            return evaluate(scenario.simulation(policy).run(), names=MEASURES)
        promises = Promises()
        result = scenario.simulation(policy, [promises]).run()
        delay = promises.delay / max(promises.broken, 1)
        counted = dict(zip(OF_PROMISES, (promises.made, promises.broken, delay), strict=True))
        return {**evaluate(result, names=MEASURES), **counted}


@dataclass(frozen=True)
class Standing:
    """A row of a table: how somebody does, and whether one of the rows differs from it for sure.

    Parameters
    ----------
    mean : Mean
        Of a measure over the sequences.
    against : Comparison or None
        What that one has more than this, sequence by sequence; None for the row itself.
    """

    mean: Mean
    against: Comparison | None

    @property
    def is_beaten(self) -> bool:
        """Whether that one has less than this for sure: on average, and p is below 0.05 by both tests.

        By the paired t-test and by Wilcoxon's signed-rank test, each corrected by Holm's method.
        """
        found = self.against
        if found is None or not found.difference.mean < 0:
            return False
        return found.t_test_holm < SIGNIFICANT and found.wilcoxon_holm < SIGNIFICANT


def standings(values: Mapping[str, Floats], one: str) -> dict[str, Standing]:
    """Compare a row with all others on the same sequences.

    Parameters
    ----------
    values : mapping of str to array of float, shape (sequences,)
        Of each row.
    one : str
        The row that is compared with the others; p-values are corrected for their number (Holm).

    Examples
    --------
    >>> rows = standings({"a": np.array([1.0, 2.0, 4.0]), "b": np.array([2.0, 4.0, 5.0])}, "a")
    >>> rows["a"].against is None, round(rows["b"].against.difference.mean, 3)
    (True, -1.333)
    """
    found = compared(values[one], {name: each for name, each in values.items() if name != one})
    return {name: Standing(mean_of(each), found.get(name)) for name, each in values.items()}
