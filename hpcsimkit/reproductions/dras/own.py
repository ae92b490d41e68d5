"""DRAS: logs split by months, tasks, measurements over seeds, tables, targets and figures."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.dras.measurements import (
    ENTROPY,
    LARGEST,
    OFTEN,
    SLOT_0,
    STEPS,
    choices_of,
    earned,
    processor_times,
    reserves,
)
from hpcsimkit.agents.dras.settings import LEARNERS, TRAINED, WINDOW, Objective, hidden_of, reward_of
from hpcsimkit.agents.dras.trainer import DrasSettings, DrasTrainer
from hpcsimkit.agents.seats import with_agent
from hpcsimkit.agents.spaces.episodes import InTurn
from hpcsimkit.agents.training.catalogue import settings_of, trainer_named
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tables import Table
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.reports.figures import DAY, HOUR, POLICY_COLOURS, Line
from hpcsimkit.reports.likeness import draw_likeness
from hpcsimkit.reproductions.cells import number, spread_cell
from hpcsimkit.reproductions.dras import figures
from hpcsimkit.reproductions.dras.figures import (
    ADDED_RULES,
    CHANCE,
    DRAS,
    FAMILIES,
    FCFS,
    LARGE,
    OPTIMIZATION,
    SJF_EASY,
)
from hpcsimkit.reproductions.learners import Learner, Training, trained_agent
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.comparisons import Comparison
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.plans.plan import paper_files
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.rivals import RULES, Field, parted
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Conclusion, Target
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_swf, scaled, three_phases
from hpcsimkit.workloads.models.job_sets import PHASES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Family",
    "Habits",
    "Measured",
    "MonthlyLog",
    "Operation",
    "Overhead",
    "OwnFindings",
    "OwnReproduction",
    "Run",
    "episodes",
    "further_rules",
    "settings",
]

Floats = NDArray[np.float64]

ADDED_AGENTS = ("DRAS-DQL, paid for short waits", "Evolved, two levels")
DRAWN = tuple(f"{family}, drawn" for family in DRAS[1:])
"""Learners with sampled actions, as in training and in the paper; the scores of DRAS-DQL are values."""

REWARD = "reward"

MEASURED = (
    "mean_wait_time",
    "max_wait_time",
    "mean_response_time",
    "mean_slowdown",
    "utilisation",
    *(f"{mode}_{what}_share" for mode in ("backfilled", "ready", "reserved") for what in ("job", "area")),
)
"""Measures of each run, of :data:`~hpcsimkit.results.metrics.METRICS`."""

RESULT, LARGE_NETWORK = "result.npz", 2000
"""File of a schedule, and width from which the first layer of a network counts as large."""

MONTH = 30.4 * DAY
"""Approximate twelfth of a year [s]; months are counted from the first submission."""

LEARNED, VALIDATED, FOREVER = 2, 1, 1e6
"""Numbers of months for training and for validation, and upper bound on the length of a log."""

DIVISOR = 10
"""Divisor of the sizes of Theta's jobs and machine, unless full size is requested."""

IN_OPERATION = "DRAS-PPO"
"""Learner of the agent that continues to learn in operation, as in the paper."""

DRAWING, LEARNING = "static, drawing", "dynamic"

LEAST_GAIN = 20.0
"""Minimum reduction of the mean wait [%]."""

LONGEST_ALL, LONGEST_LARGE = 1.5, 2.0
"""Maximum ratios to FCFS/EASY's maximum wait, for all jobs and for the largest ones."""

PUBLISHED = paper_files(Path(__file__).parent)[1]
"""Numbers of the paper, by table."""

LONGEST_WAITS: Mapping[str, str] = {
    **dict(zip(FAMILIES, ("13", "twice DRAS", "95", "170", "170"), strict=False)),
    **dict.fromkeys(DRAS, "14 to 20"),
}
"""Longest waits on Theta [d], as stated in the paper's text."""

METRICS: Mapping[str, tuple[str, float]] = {
    "mean wait [h]": ("mean_wait_time", 1 / HOUR),
    "maximum wait [d]": ("max_wait_time", 1 / DAY),
    "mean response [h]": ("mean_response_time", 1 / HOUR),
    "mean slowdown": ("mean_slowdown", 1.0),
    "utilisation [%]": ("utilisation", 100.0),
}
"""Headings, measures and their factors."""


# --- logs and agents ------------------------------------------------------------------------------------


@part
class MonthlyLog(PaperLog):
    """A log split by months: two for training, one for validation, the rest for tests.

    The sizes of Theta's jobs are divided, unless the size preset has `full`.
    """

    @property
    def is_theta(self) -> bool:
        """Whether the log is of Theta, the machine of the paper's targets."""
        return self.name.startswith("Theta")

    @property
    def objective(self) -> Objective:
        """Reward: equation 1, or equation 2 for machines with many small jobs."""
        return "capacity" if self.name == "HPC2N" else "capability"

    @property
    def divisor(self) -> int:
        """Divisor of sizes, which are rounded up."""
        return DIVISOR if self.is_theta and not self.scale.full else 1

    @cached_property
    def original(self) -> Workload:
        """Log in full size, without jobs larger than the machine; jobs are killed at their requested time."""
        log = read_swf(self.path)
        if log.machine_size is None:
            raise UsageError(f"{self.path}: the header does not say how large the machine is (MaxNodes)")
        return log.fitting(log.machine_size).killed_at_limit

    @cached_property
    def log(self) -> Workload:
        """Log as simulated."""
        log = scaled(self.original, self.divisor) if self.divisor > 1 else self.original
        needed = (LEARNED + VALIDATED) * MONTH
        if len(log) < 2 or log.span <= needed:
            found = log.span / DAY if len(log) else 0.0
            raise UsageError(
                f"{self.path}: jobs of more than {needed / DAY:g} days are needed (2 months to learn from, "
                f"1 to choose by, the rest to be tested on), found {found:.1f} days"
            )
        return log

    @property
    def nodes(self) -> int:
        """Number of nodes of the simulated machine."""
        return int(self.log.machine_size or 0)

    def _part(self, begin: float, end: float, name: str) -> Workload:
        """Return the jobs submitted in some months, counted from the first submission."""
        first = int(self.log.submit_time.min())
        part = self.log.window(first + round(begin * MONTH), first + round(end * MONTH))
        if len(part) < 2 or part.span == 0:
            raise UsageError(f"{self.path}: there is nothing to be scheduled in the months {name}")
        return part

    @cached_property
    def part(self) -> Workload:
        """Training jobs: those of the first two months."""
        return self._part(0, LEARNED, "to learn from")

    @cached_property
    def month(self) -> Scenario:
        """Validation month, the third, in one run; the best agent is chosen by it."""
        return Scenario(self._part(LEARNED, LEARNED + VALIDATED, "to choose by"))

    @cached_property
    def known(self) -> Scenario:
        """All jobs before the test part in one run, in which starvation becomes visible."""
        return Scenario(self._part(0, LEARNED + VALIDATED, "before the test"))

    @cached_property
    def validation(self) -> SequenceSet:
        """Validation month."""
        return SequenceSet(f"{self.name}-validation", (self.month,))

    @cached_property
    def test(self) -> SequenceSet:
        """Test part: all remaining jobs, in one run."""
        part = self._part(LEARNED + VALIDATED, FOREVER, "to be tested on")
        return SequenceSet(f"{self.name}-test", (Scenario(part),))

    @property
    def longest_time(self) -> int:
        """Longest requested time of the training jobs [s]."""
        return int(self.part.requested_time.max())

    @cached_property
    def job_sets(self) -> dict[str, list[Workload]]:
        """Training job sets by phase, the same for all agents of the log."""
        scale, rng = self.scale, np.random.default_rng(self.seed)
        sets = three_phases(self.part, rng, sampled=scale.sampled, synthetic=scale.synthetic, jobs=scale.jobs)
        return {phase: [each.workload for each in sets if each.phase == phase] for phase in PHASES}

    @property
    def decisions(self) -> int:
        """Number of training decisions: each job of each set is chosen once."""
        return sum(len(jobs) for sets in self.job_sets.values() for jobs in sets)

    @property
    def reward_scale(self) -> float:
        """Scale factor that makes rewards about 1; in equation 2 they are 1 / requested times."""
        if self.objective == "capability":
            return 1.0
        return 1.0 / float(np.mean(1.0 / np.maximum(self.part.requested_time, 1)))

    def line(self) -> str:
        """Return a line on the log and its split."""
        smaller = f" (sizes / {self.divisor}, rounded up)" if self.divisor > 1 else ""
        parts = [self.part, *(each.scenarios[0].workload for each in (self.validation, self.test))]
        words = [
            f"{grouped(len(part))} {what} (offered load {part.offered_load():.2f})"
            for part, what in zip(parts, ("to learn from", "to choose by", "to be tested on"), strict=True)
        ]
        equation = 1 if self.objective == "capability" else 2
        return (
            f"{self.name}: jobs on {grouped(self.nodes)} nodes{smaller}, equation {equation}: "
            f"{', '.join(words)}"
        )


@part
def episodes(log: MonthlyLog, phases: Sequence[str]) -> InTurn:
    """Return the job sets of some phases, in this order."""
    return InTurn([jobs for phase in phases for jobs in log.job_sets[phase]])


@part
def settings(algorithm: str, nodes: int, reward_scale: float) -> DrasSettings:
    """Return the training settings for a machine, with a scale factor for rewards."""
    found: Any = settings_of(trainer_named(algorithm))()
    return replace(found, **TRAINED[algorithm], hidden=hidden_of(nodes), reward_scale=reward_scale)


@part
def further_rules() -> list[tuple[str, Pipeline]]:
    """Return heuristics of the kit that the paper leaves out, with their names."""
    return [(name, RULES[name]) for name in outside()]


# --- rows -------------------------------------------------------------------------------------------------


def outside(rows: Collection[str] = RULES) -> list[str]:
    """Return the rows of further heuristics of the kit."""
    return [name for name in rows if name in RULES and name not in (FCFS, SJF_EASY)]


def slots(rows: Collection[str]) -> list[str]:
    """Return the rows of constant slots, except slot 0, which is FCFS/EASY."""
    return [name for name in rows if name.startswith("Slot ")]


def behaving(rows: Collection[str]) -> list[str]:
    """Return the rows of the comparison of agents with constant slots, in the order of its table."""
    return [name for name in (FCFS, CHANCE, *slots(rows), *DRAS, *DRAWN) if name in rows]


# --- tasks ------------------------------------------------------------------------------------------------


def in_full_size(kind: str, learner: Learner) -> str:
    """Return the type of a task, with a suffix if the network is for thousands of nodes."""
    settings: Any = learner.settings
    return f"{kind}{' in full size' * (max(settings.hidden, default=0) >= LARGE_NETWORK)}"


@part
@dataclass(frozen=True)
class Run(Meeting):
    """A run of a policy on a part of a log; the schedule is saved in the task's folder.

    Parameters
    ----------
    objective : {"capability", "capacity"}
        Reward to measure.
    """

    objective: Objective = "capability"

    @property
    def reward(self) -> Reward:
        """Reward to measure."""
        return reward_of(self.objective, reserved=reserves(self.contestant.policy))

    @property
    def kind(self) -> str:
        """Type of the task: agents are slower than other policies, and slower still with large networks."""
        learner = self.contestant.learner
        return super().kind if learner is None else in_full_size(super().kind, learner)

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        return (*MEASURED, REWARD)

    def inputs(self) -> Any:
        """Return the inputs of the task: policy, jobs and reward."""
        return {**super().inputs(), "reward": self.reward}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulation, and save the schedule."""
        total, result = self.earned(self.sequences.scenarios[0].changed(seed=self.seed), folder.parent)
        result.save(folder / RESULT)
        tell(self.size)
        measured = {name: [float(value)] for name, value in evaluate(result, names=MEASURED).items()}
        return {**measured, REWARD: [total]}

    def earned(self, scenario: Scenario, store: Path) -> tuple[float, Result]:
        """Return the total reward and the schedule; `store` is the folder of all tasks."""
        return earned(scenario, self.contestant.scheduler(store), self.reward)


def kept(store: Store, task: Task) -> Result:
    """Return the saved schedule of a task."""
    return Result.load(store.folder(task) / RESULT)


def best_of(learners: Sequence[Learner], store: Path) -> Learner:
    """Return the learner with the highest validation reward; `store` is the folder of all tasks."""

    def earned_by(learner: Learner) -> float:
        about = trained_agent(learner, store / learner.name, sample=False).about or {}
        return float(about["validation"])

    return max(learners, key=earned_by)


@dataclass(frozen=True)
class Operation(Run):
    """A run of the best of some trained agents on a part of a log, with sampled actions.

    Parameters
    ----------
    learners : tuple of Learner
        Candidates; the best is chosen by its validation reward.
    update_every : int
        Number of scheduling instances between two updates of the agent; 0 if it does not continue to learn.
    """

    learners: tuple[Learner, ...] = ()
    update_every: int = 0

    @property
    def kind(self) -> str:
        """Type of the task, which depends on the size of the network."""
        return in_full_size("operation", self.learners[0])

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the trainings that must be complete before."""
        return tuple(learner.name for learner in self.learners)

    def inputs(self) -> Any:
        """Return the inputs of the task: learners, jobs and update interval."""
        return {**super().inputs(), "learners": self.learners, "update_every": self.update_every}

    def earned(self, scenario: Scenario, store: Path) -> tuple[float, Result]:
        """Return the total reward and the schedule of the best agent."""
        learner = best_of(self.learners, store)
        agent = trained_agent(learner, store / learner.name, sample=True)
        if not self.update_every:
            return earned(scenario, with_agent(learner.policy, agent), learner.reward)
        parts = (learner.episodes, learner.policy, learner.encoder, learner.mask, learner.reward)
        env = SchedulingEnv(*parts, stage=learner.stage, skip=learner.skip)
        trainer = learner.trainer_class(env, learner.settings, seed=self.seed)
        assert isinstance(trainer, DrasTrainer)
        trainer.begin(agent)  # with a new state of the optimiser
        episode, _ = trainer.play(scenario, self.update_every)
        return trainer.earned, episode.result()


@dataclass(frozen=True)
class Habits(Meeting):
    """A run of a trained agent with greedy actions on a part of a log, in which its choices are recorded."""

    @property
    def name(self) -> str:
        """Name of the task: part of the log and learner."""
        return f"habits-{self.sequences.name}-{self.contestant.requires[0]}"

    def run(self, folder: Path, tell: Tell) -> Mapping[str, float]:
        """Run the simulation, and return the statistics."""
        learner = self.contestant.learner
        assert learner is not None
        agent = trained_agent(learner, folder.parent / learner.name, sample=False)
        found = choices_of(
            agent,
            learner.policy,
            learner.reward,
            self.sequences.scenarios[0],
            scores_are_logits=learner.trainer != "dras-dql",
        )
        tell(self.size)
        return found


@dataclass(frozen=True)
class Overhead(Task):
    """Processor times of a learner's decisions and updates (section 6.7).

    Parameters
    ----------
    algorithm : str
        Name of the learner.
    nodes : int
        Number of nodes of the machine.
    repeats : int
        Number of updates measured.
    """

    algorithm: str
    nodes: int
    repeats: int

    kind = "overhead"

    @property
    def name(self) -> str:
        """Name of the task: learner and number of nodes."""
        return f"overhead-{self.algorithm}-{self.nodes}"

    @property
    def size(self) -> int:
        """Number of decisions in all updates."""
        return self.repeats * STEPS

    def inputs(self) -> Any:
        """Return the inputs of the task."""
        return {"algorithm": self.algorithm, "nodes": self.nodes, "repeats": self.repeats, "steps": STEPS}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Return processor times [s] (medians) and the number of weights."""
        found = processor_times(self.algorithm, self.nodes, self.repeats)
        tell(self.size)
        return found


# --- reproduction -----------------------------------------------------------------------------------------


class OwnReproduction(PaperReproduction):
    """Four learners of one two-level network against rules, an optimiser and a one-level agent.

    The flag ``behaviour`` restricts the experiment to the use of slots by the four learners.
    """

    @property
    def behaviour_alone(self) -> bool:
        """Whether the flag ``behaviour`` is given."""
        return bool(self.traces.scale.behaviour)

    @cached_property
    def contests(self) -> list[Comparison]:
        """Comparisons on the validation month and on the test part of each log."""
        found = list(self.workshop.comparisons())
        if not self.behaviour_alone:
            return found
        return [
            each._replace(contestants=[who for who in each.contestants if behaving([each.family_of(who)])])
            for each in found
        ]

    def further_learners(self) -> Iterator[Learner]:
        """Yield the learners of figure 5."""
        if not self.behaviour_alone:
            yield from super().further_learners()

    @cached_property
    def habits(self) -> dict[str, dict[str, list[Habits]]]:
        """Tasks on the use of slots on the validation month, by log and learner."""
        return {
            test.trace.name: {
                family: [Habits(who, validation.sequences) for who in whos]
                for family, whos in test.families().items()
                if family in DRAS
            }
            for validation, test in zip(self.contests[::2], self.contests[1::2], strict=True)
        }

    @cached_property
    def operations(self) -> dict[str, list[Operation]]:
        """Tasks of the best agent in operation by log: without and with learning."""
        every = self.traces.scale.update_every
        found: dict[str, list[Operation]] = {}
        for test in self.contests[1::2]:
            whos = test.families()[IN_OPERATION]
            learners = tuple(who.learner for who in whos if who.learner is not None)
            found[test.trace.name] = [
                Operation(
                    replace(whos[0], name=name, sample=True),
                    test.sequences,
                    self.seed,
                    learners=learners,
                    update_every=update_every,
                )
                for name, update_every in ((DRAWING, 0), (LEARNING, every))
            ]
        return found

    @cached_property
    def overheads(self) -> list[Overhead]:
        """Tasks of processor times, for the simulated and the full size."""
        logs: Sequence[Any] = self.traces.all
        sizes = {int(each.machine_size or 0) for log in logs for each in (log.log, log.original)}
        scale = self.traces.scale
        return [
            Overhead(f"dras-{kind}", size, scale.repeats) for size in sorted(sizes) for kind in scale.learners
        ]

    def further_runs(self) -> Iterator[Task]:
        """Yield the tasks on the use of slots, and on agents in operation."""
        for of_log in self.habits.values():
            for tasks in of_log.values():
                yield from tasks
        for operations in () if self.behaviour_alone else self.operations.values():
            yield from operations

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return trainings, then runs, then measurements of processor time."""
        return [*super().stages(), [] if self.behaviour_alone else self.overheads]

    def _training(self, learner: Learner) -> Training:
        return Training(learner, in_full_size(super()._training(learner).kind, learner))

    def fields(self) -> list[Field]:
        """Return the heuristics that the paper leaves out, on the test part of each log."""
        columns = {name: METRICS[name] for name in ("mean wait [h]", "maximum wait [d]", "mean slowdown")}
        found = []
        for contest in () if self.behaviour_alone else self.contests[1::2]:
            others, learned = parted(contest.meetings)
            rules = {row: others.pop(row) for row in outside(others)}
            columns_of = {**columns, "reward": (REWARD, 1.0)}
            found.append(Field(contest.trace.name, others, rules, learned, columns_of))
        return found


# --- measurements -------------------------------------------------------------------------------------------


def longest_large_wait(result: Result) -> float:
    """Return the maximum wait of jobs that request a fifth of the nodes or more [s].

    NaN if there are none.
    """
    waits = result.wait_time[result.amount >= LARGE * result.size]
    return float(waits.max()) if len(waits) else float("nan")


@dataclass(frozen=True)
class Family:
    """A policy, over the seeds of its agents.

    Parameters
    ----------
    name : str
        Name in the tables.
    rows : mapping of str to mapping of str to float
        Measures by row: one row for each seed.
    validations : mapping of str to float
        Validation reward of each agent; empty for untrained policies.
    results : mapping of str to Result
        Schedules by row.
    reserves : bool
        Whether jobs that do not fit get reservations.
    """

    name: str
    rows: Mapping[str, Mapping[str, float]]
    validations: Mapping[str, float]
    results: Mapping[str, Result]
    reserves: bool

    def over_seeds(self, measure: str) -> Floats:
        """Return a measure of each seed."""
        return np.array([each[measure] for each in self.rows.values()])

    def mean(self, measure: str) -> float:
        """Return the mean of a measure over seeds."""
        return float(self.over_seeds(measure).mean())

    @cached_property
    def large_waits(self) -> Floats:
        """Maximum wait of the largest jobs with each seed [s]."""
        return np.array([longest_large_wait(result) for result in self.results.values()])

    @property
    def validation(self) -> float:
        """Mean validation reward of its agents."""
        return float(np.mean(list(self.validations.values())))

    @property
    def mean_wait(self) -> float:
        """Mean wait, over seeds [h]."""
        return self.mean("mean_wait_time") / HOUR

    @property
    def longest_wait(self) -> float:
        """Maximum wait, mean over seeds [d]."""
        return self.mean("max_wait_time") / DAY

    @property
    def reward(self) -> float:
        """Reward on the test part, mean over seeds."""
        return self.mean(REWARD)

    def same_starts(self, rule: Family) -> list[float]:
        """Return the share of jobs that a rule starts at the same second, for each seed [%]."""
        starts = rule.shown.start_time
        return [100 * float((result.start_time == starts).mean()) for result in self.results.values()]

    @property
    def best_row(self) -> str:
        """Row of the agent with the highest validation reward, or else the first one."""
        return max(self.validations or self.rows, key=lambda row: self.validations.get(row, 0.0))

    @property
    def shown(self) -> Result:
        """Schedule shown in figures."""
        return self.results[self.best_row]


@dataclass(frozen=True)
class Measured:
    """All measurements on the test part of a log.

    Parameters
    ----------
    trace : MonthlyLog
        Log of the measurements.
    families : mapping of str to Family
        Measurements by policy.
    rewards : mapping of str to float
        Rewards of untrained policies on the validation month.
    """

    trace: MonthlyLog
    families: Mapping[str, Family]
    rewards: Mapping[str, float]

    @classmethod
    def of(cls, validation: Scores, test: Scores, store: Store) -> Measured:
        """Load the measurements from the store of outcomes."""
        rewards = {row: validation.mean(row, REWARD) for row in validation.values}
        meetings = test.contest.meetings
        families = {
            name: Family(
                name,
                {
                    who.name: {key: float(values[0]) for key, values in test.values[who.name].items()}
                    for who in whos
                },
                {
                    who.name: float(store.outcome(Training(who.learner))["best"])
                    for who in whos
                    if who.learner is not None
                },
                {who.name: kept(store, meetings[who.name]) for who in whos},
                reserves(whos[0].policy),
            )
            for name, whos in test.contest.families().items()
        }
        return cls(test.contest.trace, families, rewards)

    def among(self, names: Sequence[str]) -> list[Family]:
        """Return the policies of some names that were measured, in this order."""
        return [self.families[name] for name in names if name in self.families]

    @property
    def learned(self) -> list[Family]:
        """Learners of DRAS."""
        return self.among(DRAS)

    @property
    def added_agents(self) -> list[Family]:
        """Agents that the paper lacks."""
        return self.among(ADDED_AGENTS)

    @property
    def best(self) -> Family:
        """Learner of DRAS with the highest validation reward, averaged over seeds."""
        return max(self.learned, key=lambda family: family.validation)

    @property
    def leaders(self) -> list[Family]:
        """Learners with the same validation reward as the best: different learners may schedule alike."""
        most = self.best.validation
        return [family for family in self.learned if np.isclose(family.validation, most, rtol=1e-9, atol=0.0)]

    @property
    def agents(self) -> list[Family]:
        """Trained agents."""
        return [family for family in self.families.values() if family.validations]

    @property
    def faster_rules(self) -> dict[tuple[str, ...], list[str]]:
        """Names of agents by heuristics outside the paper with shorter mean and maximum waits."""
        found: dict[tuple[str, ...], list[str]] = {}
        for agent in [*self.learned, *self.added_agents]:
            faster = tuple(
                rule.name
                for rule in self.among(outside())
                if rule.mean_wait < agent.mean_wait and rule.longest_wait < agent.longest_wait
            )
            found.setdefault(faster, []).append(agent.name)
        return found

    @property
    def best_constant(self) -> str:
        """Row of the constant slot with the highest reward on the validation month."""
        return max([FCFS, *slots(self.rewards)], key=lambda row: self.rewards[row])

    def has_learned(self, family: Family) -> bool:
        """Return whether every seed's test reward exceeds those of random and best constant slots."""
        bound = max(self.families[row].reward for row in (CHANCE, self.best_constant))
        return bool((family.over_seeds(REWARD) > bound).all())

    @property
    def better_than_constant(self) -> list[str]:
        """Names of the learners of DRAS, with best and with sampled actions, that have learned."""
        return [
            name
            for name, family in self.families.items()
            if name in (*DRAS, *DRAWN) and self.has_learned(family)
        ]


# --- tables: the numbers of the paper are in italics, as are rows that it lacks ---------------------------


def name_of(family: Family) -> str:
    """Return the name of a row, in italics if the paper lacks it."""
    return family.name if family.name in FAMILIES else f"*{family.name}*"


def metrics_table(measured: Measured) -> Table:
    """Return a row per policy: means over seeds with their range; the best mean of each column is bold."""
    families = list(measured.families.values())
    lines = [[name_of(family)] for family in families]
    for measure, by in METRICS.values():
        means = [number(family.mean(measure) * by) for family in families]
        best = (max if measure == "utilisation" else min)(family.mean(measure) for family in families)
        for line, family, mean in zip(lines, families, means, strict=True):
            cell = spread_cell(family.over_seeds(measure), by)
            line.append(f"**{cell}**" if mean == number(best * by) and len(set(means)) > 1 else cell)
    for line, family in zip(lines, families, strict=True):
        line += [_reward_cell(family), "yes" if family.reserves else "no"]
    return Table(["", *METRICS, "reward", "reservations"], lines)


def _reward_cell(family: Family) -> str:
    return spread_cell(family.over_seeds(REWARD), form=lambda value: f"{value:.1f}")


def modes_table(measured: Measured) -> Table:
    """Return shares of jobs and core hours by mode [%], the paper's of Theta in italics (table 4)."""
    theta, rows = measured.trace.is_theta, measured.families
    families = [rows[name] for name in rows if name not in (*slots(rows), *outside(rows))]
    headings, lines = [""], [[name_of(family)] for family in families]
    for mode in ("backfilled", "ready", "reserved"):
        for words, share in (("jobs", "job"), ("core hours", "area")):
            headings += [f"*{mode}: {words}*"] * theta + [f"{mode}: {words}"]
            for line, family in zip(lines, families, strict=True):
                paper = number(PUBLISHED["table_4"].number(family.name, f"{mode}, {share}"))
                line += [paper] * theta + [number(100 * family.mean(f"{mode}_{share}_share"))]
    return Table(headings, lines)


def behaviour_table(log: Measured, watched: Mapping[str, Sequence[Mapping[str, float]]]) -> Table:
    """Return a row per policy: rewards and waits, then its choices in decisions with several options.

    Parameters
    ----------
    log : Measured
        Measurements.
    watched : mapping of str to sequence of mapping of str to float
        Choices of each learner's agents on the validation month, seed by seed.
    """
    headings = [
        "",
        "reward on the month to choose by",
        "reward",
        "mean wait [h]",
        "maximum wait [d]",
        "learned",
    ]
    headings += ["slot 0 [%]", "slot taken most often", "largest probability", "entropy / that of chance"]
    lines = []
    for family in log.among(behaving(log.families)):
        trained = bool(family.validations)
        chosen_by = family.validation if trained else log.rewards.get(family.name, float("nan"))
        lines.append(
            [
                name_of(family),
                "" if family.name in DRAWN else f"{chosen_by:.1f}",
                _reward_cell(family),
                spread_cell(family.over_seeds("mean_wait_time"), 1 / HOUR),
                spread_cell(family.over_seeds("max_wait_time"), 1 / DAY),
                ("yes" if log.has_learned(family) else "no") if trained else "",
                *_habits(watched.get(family.name, ())),
            ]
        )
    return Table(headings, lines)


def _habits(seeds: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the cells of the choices of some agents, means over seeds."""
    if not seeds:
        return [""] * 4
    means = {key: float(np.mean([each[key] for each in seeds])) for key in seeds[0]}
    cells = [number(100 * means[SLOT_0]), ", ".join(f"{each[OFTEN]:.0f}" for each in seeds)]
    return cells + [number(means.get(key)) for key in (LARGEST, ENTROPY)]


# --- targets ------------------------------------------------------------------------------------------------


def waiting_targets(measured: Measured, agents: Family) -> Iterator[Target]:
    """Yield the agents' reductions of mean wait on a log, and their ratios of maximum waits.

    Numbers are means over seeds. The paper's claims concern Theta and its own learners; all others are stated
    for comparison.
    """
    judged = measured.trace.is_theta and agents.name in DRAS
    where, rule = f"{measured.trace.name}: {agents.name}", measured.families[FCFS]
    claimed = PUBLISHED["claims"].number("DRAS", "better")
    for rival in (FCFS, OPTIMIZATION):
        theirs = measured.families[rival].mean("mean_wait_time")
        gains = 100 * (1 - over(agents.over_seeds("mean_wait_time"), theirs))
        what = f"{where}, mean wait shorter than {rival}'s by [%] (needed: {LEAST_GAIN:g})"
        yield _target(what, claimed, gains, bool(gains.mean() >= LEAST_GAIN) if judged else None)
    for what, ours, bound, limit in (
        ("", agents.over_seeds("max_wait_time"), rule.over_seeds("max_wait_time"), LONGEST_ALL),
        (" of the largest jobs", agents.large_waits, rule.large_waits, LONGEST_LARGE),
    ):
        ratios = over(ours, float(bound.mean()))
        words = f"{where}, maximum wait{what}, times FCFS/EASY's (at most {limit:g})"
        yield _target(words, None, ratios, bool(ratios.mean() <= limit) if judged else None)


def over(values: Floats, by: float) -> Floats:
    """Return the quotients of values by a number, or NaN if it is 0, as for waits on an underloaded machine.

    >>> over(np.array([3.0, 6.0]), 2.0).tolist(), over(np.array([3.0]), 0.0).tolist()
    ([1.5, 3.0], [nan])
    """
    return values / by if by else np.full(len(values), np.nan)


def _target(what: str, paper: float | None, values: Floats, met: bool | None) -> Target:
    """Return a target for a mean over seeds, with its standard deviation if there are several."""
    spread = float(values.std(ddof=1)) if len(values) > 1 else None
    return Target(what, paper, float(values.mean()), spread, met)


def speed_targets(
    learner: Learner, seconds: float, overheads: Sequence[tuple[Overhead, Mapping[str, float]]]
) -> Iterator[Target]:
    """Yield the longest training time [h], and the update times of the largest networks [s].

    The paper's hours are for Theta in full size and for more decisions; they are no target for smaller runs.
    """
    decisions = grouped(learner.settings.total_timesteps)
    what = f"longest training, {learner.name}, {decisions} decisions [h of a core]"
    yield Target(what, PUBLISHED["claims"].number("DRAS", "training"), seconds / 3600, None, None)
    largest = max(task.nodes for task, _ in overheads)
    for task, found in overheads:
        if task.nodes == largest:
            limit, took = PUBLISHED["update"].number(task.algorithm, "seconds"), found["update"]
            what = f"an update of {task.algorithm} on {largest} nodes [s of a core]"
            yield Target(what, limit, took, None, took <= limit)


# --- findings -------------------------------------------------------------------------------------------


class OwnFindings(PaperFindings):
    """Measurements of DRAS and its rivals."""

    plan: OwnReproduction

    @cached_property
    def logs(self) -> list[Measured]:
        """Measurements by log, on the validation month and on the test part."""
        pairs = zip(self.scores[::2], self.scores[1::2], strict=True)
        return [Measured.of(validation, test, self.store) for validation, test in pairs]

    @property
    def habits(self) -> dict[str, dict[str, list[Mapping[str, float]]]]:
        """Measured use of slots, by log and learner."""
        return {
            log: {name: [self.store.outcome(task) for task in tasks] for name, tasks in of_log.items()}
            for log, of_log in self.plan.habits.items()
        }

    @cached_property
    def overheads(self) -> list[tuple[Overhead, dict[str, float]]]:
        """Processor times of decisions and updates."""
        return [(task, self.store.outcome(task)) for task in self.plan.overheads]

    @property
    def order_curves(self) -> dict[str, Floats]:
        """Validation rewards by order of job sets."""
        return {name: curve["validation"] for name, curve in self.curves.get("orders", {}).items()}

    def in_operation(self, log: Measured) -> dict[str, Mapping[str, float]]:
        """Return the measures of the best agent in operation, and of baselines."""
        ppo, tasks = log.families[IN_OPERATION], self.plan.operations[log.trace.name]
        outcomes = [
            {measure: value[0] for measure, value in self.store.outcome(task).items()} for task in tasks
        ]
        rules = {name: log.families[name].rows[name] for name in (FCFS, OPTIMIZATION)}
        static = {"static": ppo.rows[ppo.best_row]}
        return {**rules, **static, **dict(zip((DRAWING, LEARNING), outcomes, strict=True))}

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        return {**super().values(), "window": WINDOW}

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report, or only the report on the use of slots."""
        if not self.plan.behaviour_alone:
            return super().conclusion(pictures)
        values = {"found": self, "plan": self.plan, **self.values()}
        return Conclusion([], rendered("dras/behaviour.md.jinja", **values))

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        for log in self.logs:
            for family in [*log.leaders, *log.added_agents]:
                yield from waiting_targets(log, family)
        longest = max((each for each in self.plan.trained if each.trainer in LEARNERS), key=self.seconds)
        yield from speed_targets(longest, self.seconds(longest), self.overheads)

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        means = {
            log.trace.name: {
                family.name: {measure: family.mean(measure) for measure in figures.AXES}
                for family in log.among(FAMILIES)
            }
            for log in self.logs
        }
        yield "kiviat", figures.draw_kiviat({log: figures.kiviat(each) for log, each in means.items()})
        for log, test in zip(self.logs, self.plan.contests[1::2], strict=True):
            name, rows = log.trace.name, log.families
            results = {family.name: family.shown for family in log.among(FAMILIES)}
            yield f"{name}-sizes", figures.draw_sizes(results)
            yield f"{name}-modes", figures.draw_modes(results)
            yield f"{name}-learning", self._draw_learning(log, test)
            shown = {rule: rows[rule].shown for rule in (FCFS, OPTIMIZATION)}
            shown["static"] = rows[IN_OPERATION].shown
            for mode, task in zip((DRAWING, LEARNING), self.plan.operations[name], strict=True):
                shown[mode] = kept(self.store, task)
            yield f"{name}-weeks", figures.draw_weeks(shown)
            if sets := log.trace.job_sets["synthetic"]:
                yield f"{name}-synthetic", draw_likeness(log.trace.part, sets[0])
        if self.order_curves:
            looks = {
                order: Line(POLICY_COLOURS[1 + place], ("solid", "solid", "dashed")[place % 3], "")
                for place, order in enumerate(self.order_curves)
            }
            curves = {order: [curve] for order, curve in self.order_curves.items()}
            yield "orders", figures.draw_learning(curves, {}, looks)

    def _draw_learning(self, log: Measured, test: Comparison) -> Figure:
        curves = {  # other agents than the paper's have other rewards
            family: [self.curve(who.learner)["validation"] for who in whos if who.learner is not None]
            for family, whos in test.families().items()
            if family in FAMILIES
        }
        curves = {family: of_agents for family, of_agents in curves.items() if of_agents}
        others = {name: log.rewards[name] for name in (*FAMILIES, *ADDED_RULES) if name in log.rewards}
        looks = {each: figures.look_of(each) for each in (*curves, *others)}
        return figures.draw_learning(curves, others, looks)
