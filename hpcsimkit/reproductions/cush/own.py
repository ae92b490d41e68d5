"""What is CuSH's own: job sets, agents on two seats, the metrics of a run, and its findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.problem import CushProblem
from hpcsimkit.agents.cush.returns import job_selector_returns, local_rewards
from hpcsimkit.agents.cush.taught import TaughtSettings
from hpcsimkit.agents.cush.trainer import CushSettings
from hpcsimkit.agents.cush.training import AGENTS, GamesSettings, GamesTrainer
from hpcsimkit.agents.training.catalogue import trainer_named
from hpcsimkit.agents.training.learning_curve import Report
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Order, Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.cush import figures, measured
from hpcsimkit.reproductions.cush.measured import (
    MEASURED,
    NTAT,
    REWARD,
    SUMS,
    WAIT,
    Measured,
    both_ways,
    class_sums,
    drawing,
)
from hpcsimkit.reproductions.learners import Learner, Training, learning_curve_of
from hpcsimkit.reproductions.plans.comparisons import Comparison, runs_by_use
from hpcsimkit.reproductions.plans.logs import Logs, each_once, name_among
from hpcsimkit.reproductions.plans.planned import PaperFindings, PaperReproduction
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.workloads.models.cush import CUSH_SYSTEMS, read_job_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CushLearner",
    "Given",
    "OwnFindings",
    "OwnReproduction",
    "Run",
    "ShortSighted",
    "Trial",
    "Trials",
    "learned_from",
    "mean_return",
]

VALIDATION, UNSEEN = 101, 102
"""Keys of the random streams for validation and test sets; trainings use other streams."""

DECISIONS = 30
"""Approximate number of decisions with a choice of the job selector in a simulation."""

EVOLVES_FASTER, TAUGHT_SLOWER = 2, 6
"""Ratio of decisions per second in cross-entropy training to those in CuSH's training, and of the time of a
decision in imitation learning to one in CuSH's: hardly any states recur."""

# --- job sets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Given:
    """A file of job sets, CSV or gzip; its name contains that of the system.

    >>> Given(Path("my_Sierra_sets.csv")).system, Given(Path("my_sierra_sets.csv.gz")).name
    ('sierra', 'my_sierra_sets.csv')
    """

    path: Path

    @property
    def name(self) -> str:
        """Name in tables."""
        return name_among(self.path, {})

    @property
    def system(self) -> Literal["sierra", "summit"]:
        """System of the job sets, by the file name."""
        found = [system for system in CUSH_SYSTEMS if system in self.path.name.lower()]
        if len(found) != 1:
            raise UsageError(
                f"{self.path}: the system of the job sets is unknown; the file name must contain one of the "
                f"words {', '.join(CUSH_SYSTEMS)}"
            )
        return cast(Literal["sierra", "summit"], found[0])

    @cached_property
    def sequences(self) -> SequenceSet:
        """Job sets on the paper's cluster."""
        problem = CushProblem(system=self.system)
        scenarios = tuple(map(problem.scenario, read_job_sets(self.path)))
        for scenario in scenarios:
            cluster, jobs = scenario.cluster, scenario.workload
            assert isinstance(cluster, Machines)
            misfits = jobs.id[cluster.misfits(jobs)]
            if len(misfits):
                raise UsageError(
                    f"{self.path}: job {misfits[0]} of {jobs.name} asks for more than all {problem.nodes} "
                    f"nodes of {self.system.capitalize()} have"
                )
        return SequenceSet(self.name, scenarios)

    def line(self) -> str:
        """Return a line on the file."""
        count = len(self.sequences.scenarios)
        return f"{self.name}: {count} job set{'s' * (count != 1)} for {self.system.capitalize()}"


@dataclass(frozen=True)
class Trial:
    """Job sets of a problem: of a system with trained agents, of a file, or of Sierra with changes.

    Parameters
    ----------
    kind : {"system", "file", "swept"}
        Use of the job sets.
    problem : CushProblem
        Cluster and observation.
    scale : SimpleNamespace
        Size preset.
    seed : int
        Random seed.
    file : Given, optional
        File of the job sets.
    """

    kind: Literal["system", "file", "swept"]
    problem: CushProblem
    scale: Any
    seed: int
    file: Given | None = None

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.problem.system.capitalize() if self.file is None else self.file.name

    @property
    def label(self) -> str:
        """Short name of the problem, valid as part of a folder name.

        >>> problems = CushProblem(), CushProblem(system="summit", nodes=16, horizon=2)
        >>> [Trial("swept", problem, None, 0).label for problem in problems]
        ['sierra', 'summit-16-nodes-horizon-2']
        """
        problem, usual = self.problem, CushProblem(system=self.problem.system)
        nodes = f"-{problem.nodes}-nodes" * (problem.nodes != usual.nodes)
        return f"{problem.system}{nodes}" + f"-horizon-{problem.horizon}" * (problem.horizon != usual.horizon)

    @property
    def trained(self) -> bool:
        """Whether there are agents for the system."""
        return self.problem.system in self.scale.systems

    @cached_property
    def validation(self) -> SequenceSet:
        """Job sets to choose between sampled and greedy actions."""
        return self._drawn("validation", VALIDATION, self.scale.validation)

    @cached_property
    def unseen(self) -> SequenceSet:
        """Test sets, on which no agent is trained; jobs request the same shares of any cluster."""
        if self.kind == "swept":
            return self._drawn("swept-unseen", UNSEEN, self.scale.sweep_unseen)
        return self._drawn("unseen", UNSEEN, self.scale.unseen)

    @property
    def given(self) -> SequenceSet:
        """Job sets of the file."""
        assert self.file is not None
        return self.file.sequences

    def _drawn(self, part: str, purpose: int, count: int) -> SequenceSet:
        rng = np.random.default_rng([self.seed, purpose])
        return SequenceSet(f"{self.label}-{part}", tuple(self.problem.scenarios(rng, count)))

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the plan."""
        return {"log": self, "problem": self.problem}

    def line(self) -> str:
        """Return a line on the job sets."""
        if self.file is not None:
            return self.file.line()
        node, scale = CUSH_SYSTEMS[self.problem.system], self.scale
        return (
            f"{self.name}: {self.problem.nodes} nodes of {node.cpus} CPUs and {node.gpus} GPUs; "
            f"{scale.job_sets} job sets to learn from with each seed, {scale.validation} to choose by, "
            f"{scale.unseen} to be tested on"
        )


class Trials(Logs):
    """All job sets other than the training ones."""

    @cached_property
    def all(self) -> Sequence[Trial]:
        """Job sets by system, by file, and of Sierra with other clusters and horizons, each once."""
        files = each_once([Given(path) for path in self.paths])
        systems = [CushProblem(system=system) for system in self.scale.systems]
        sizes = [CushProblem(nodes=nodes) for nodes in self.scale.nodes]
        swept = dict.fromkeys([*sizes, *(CushProblem(horizon=horizon) for horizon in self.scale.horizons)])
        return [
            *(Trial("system", problem, self.scale, self.seed) for problem in systems),
            *(Trial("file", CushProblem(system=file.system), self.scale, self.seed, file) for file in files),
            *(Trial("swept", problem, self.scale, self.seed) for problem in swept),
        ]

    def lines(self) -> Iterator[str]:
        """Yield a line on each system and each file."""
        for trial in self.all:
            if trial.kind != "swept":
                yield trial.line()


# --- agents ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CushLearner:
    """A job selector and a policy selector that are trained together, in place of a :class:`Learner`.

    Parameters
    ----------
    name : str
        Unique name, valid as a folder name.
    problem : CushProblem
        Scheduling problem to learn.
    trainer : {"cush", "cush-taught"}
        Name of the algorithm: policy gradient, or imitation of a cross-entropy agent that is trained first.
    settings : GamesSettings
        Settings of the training.
    seed : int
        Random seed of the training.
    """

    name: str
    problem: CushProblem
    trainer: str
    settings: GamesSettings
    seed: int

    requires = ()

    @classmethod
    def of(cls, *parts: Any) -> Self:
        """Return the learner of a problem, from its parameters."""
        return cls(*parts)

    @property
    def policy(self) -> Pipeline:
        """Pipeline with the two open seats."""
        return self.problem.pipeline()

    @property
    def _epoch(self) -> int:
        """Approximate number of decisions of an epoch, or of others that take as long."""
        slower = TAUGHT_SLOWER if isinstance(self.settings, TaughtSettings) else 1
        return self.settings.job_sets * self.settings.simulations * DECISIONS * slower

    @property
    def size(self) -> int:
        """Approximate number of training decisions, or of others that take as long; the expert's included."""
        expert = getattr(self.settings, "teacher_timesteps", 0) // EVOLVES_FASTER
        return int(self.settings.epochs * self._epoch + expert)

    @property
    def _trainer(self) -> GamesTrainer:
        found: GamesTrainer = trainer_named(self.trainer)(self.problem, self.settings, seed=self.seed)
        return found

    def train(self, folder: Path, tell: Tell) -> Agent:
        """Train, or resume from the folder's checkpoint; return the job selector."""

        def told(report: Report) -> None:
            left = (self.settings.epochs - report.steps) * self._epoch
            is_expert = report.of != self.settings.epochs
            tell(report.steps // EVOLVES_FASTER if is_expert else self.size - left)

        return self._trainer.train(folder, resume=True, tell=told)["order"]

    def job_sets(self) -> list[Scenario]:
        """Return the job sets of every epoch, or of the first epoch if each has its own."""
        return self._trainer.job_sets(0)

    def with_others(self, policy: Policy, store: Path, *, sample: bool) -> Policy:
        """Return the policy: there are no further agents."""
        return policy

    def agents(self, folder: Path, *, sample: bool) -> list[Agent]:
        """Return the trained agents from a folder, either sampling or greedy."""
        return [Agent.load(folder / file, sample=sample) for file in AGENTS.values()]


def learned_from(learner: CushLearner) -> SequenceSet:
    """Return the training job sets of a learner."""
    return SequenceSet(f"{learner.name}-learned", tuple(learner.job_sets()))


# --- policies and runs ------------------------------------------------------------------------------------


class ShortSighted(Order):
    """Shortest requested time first, up to a horizon.

    Parameters
    ----------
    horizon : int
        Maximum requested time that is distinguished [s]; all longer jobs are alike.

    Examples
    --------
    >>> jobs = [Job(0, 1, 0, run_time=9, requested_time=time, nodes=1) for time in (3, 6, 20)]
    >>> [ShortSighted(horizon=5).key(job) for job in jobs]
    [3, 5, 5]
    """

    def __init__(self, *, horizon: int) -> None:
        self.horizon = horizon

    def key(self, job: Job) -> int:
        """Return the requested time up to the horizon [s]."""
        return min(job.requested_time, self.horizon)


def mean_return(system: System, ntat: float) -> float:
    """Return the mean return of the decisions of a finished run: "Rewards" of table 1.

    Parameters
    ----------
    system : System
        State of the run.
    ntat : float
        Mean normalised turnaround of its jobs.
    """
    returns = job_selector_returns([local_rewards(system)], np.array([ntat]), CushSettings().gamma)
    return float(returns.mean())


@dataclass(frozen=True)
class Run(Meeting):
    """Runs of a policy on job sets: metrics of jobs, returns of the job selector, and sums by class."""

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        return (*MEASURED, REWARD, *SUMS)

    def _measured(self, scenario: Scenario, policy: Policy) -> dict[str, float]:
        """Return the measures of a run."""
        simulation = scenario.simulation(policy)
        result, system = simulation.run(), simulation.system
        found = evaluate(result, names=MEASURED)
        styles = [system.given(row).style for row in range(len(result))]
        return {**found, REWARD: mean_return(system, found[NTAT]), **class_sums(result, styles)}


class OwnReproduction(PaperReproduction):
    """A job selector on images and a policy selector, against heuristics and the best allocation."""

    def _field(self, name: str, met: Sequence[Comparison]) -> Field:
        """Return the field of the comparisons of one table, without sampled actions of CuSH's agents."""
        known, rules, learned = runs_by_use(
            met, lambda who, _: "" if who.learner and who.sample else who.name
        )
        columns = {"NTAT": (NTAT, 1.0), "wait": (WAIT, 1.0), "rewards": (REWARD, 1.0)}
        return Field(name, known, rules, learned, columns)


# --- findings ---------------------------------------------------------------------------------------------

Both = tuple[Measured, Measured]
"""Measurements on the training job sets, and on unseen ones."""


class OwnFindings(PaperFindings):
    """Measurements of CuSH and its rivals."""

    @cached_property
    def ways(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Mean NTAT of CuSH's agents on the validation sets, greedy and sampled, by system."""
        return {each.contest.variables["problem"].system: both_ways(each) for each in self.of("validation")}

    @cached_property
    def systems(self) -> dict[str, Both]:
        """Measurements by system."""
        return {
            system: (self._measured("learned", problem), self._measured("unseen", problem))
            for system in self.plan.traces.scale.systems
            for problem in [CushProblem(system=system)]
        }

    @cached_property
    def given(self) -> dict[str, Measured]:
        """Measurements on the job sets from files, by file name."""
        return {each.contest.trace.name: self._of([each]) for each in self.of("given")}

    def swept(self, **changes: int) -> Both:
        """Return the measurements on Sierra with another cluster or horizon."""
        problem = CushProblem(**changes)  # type: ignore[arg-type]
        return self._measured("swept-learned", problem), self._measured("swept-unseen", problem)

    def _measured(self, protocol: str, problem: CushProblem) -> Measured:
        return self._of(self.of(protocol, problem=problem))

    def _of(self, scores: Sequence[Scores]) -> Measured:
        ways = self.ways.get(scores[0].contest.variables["problem"].system, {})
        return Measured.of(scores, drawing(ways))

    @cached_property
    def sizes(self) -> dict[str, dict[int, Measured]]:
        """Measurements by number of nodes, on training job sets and on unseen ones."""
        found = {nodes: self.swept(nodes=nodes) for nodes in self.plan.traces.scale.nodes}
        parts = ("job sets learned from", "unseen job sets") if found else ()
        return {
            part: {nodes: both[place] for nodes, both in found.items()} for place, part in enumerate(parts)
        }

    @property
    def horizons(self) -> dict[int, Both]:
        """Measurements by horizon."""
        return {steps: self.swept(horizon=steps) for steps in self.plan.traces.scale.horizons}

    @property
    def unseen(self) -> list[Measured]:
        """Measurements on unseen job sets, by system."""
        return [unseen for _, unseen in self.systems.values()]

    @property
    def about_trainings(self) -> list[tuple[str, int, float, float, float]]:
        """Name, epochs, time [s] and NTAT at the beginning and at the end of each training."""
        learners = sorted(self.plan.trained, key=lambda each: not isinstance(each, CushLearner))
        return [self._about(each) for each in learners]

    def _about(self, learner: Any) -> tuple[str, int, float, float, float]:
        seconds = self.store.seconds(Training(learner))
        if isinstance(learner, Learner):
            return learner.name, learner.size, seconds, float("nan"), float("nan")
        values = learning_curve_of(self.store.place / learner.name)["normalised_turnaround"]
        tenth = max(1, len(values) // 10)
        return learner.name, len(values), seconds, float(values[:tenth].mean()), float(values[-tenth:].mean())

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        more = {"problem": CushProblem(), "paper": CushSettings(), "taught": TaughtSettings()}
        return {**super().values(), "tables": measured, **more}

    def _curves(self, system: str) -> dict[str, list[Curve]]:
        """Return the learning curves of the groups with CuSH's networks, seed by seed."""
        found: dict[str, list[Curve]] = {}
        for scores in self.of("validation", problem=CushProblem(system=cast(Any, system))):
            for family, rows in scores.contest.families().items():
                names = dict.fromkeys(row.learner.name for row in rows if row.learner is not None)
                found[family] = [learning_curve_of(self.store.place / name) for name in names]
        return found

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        curves = {system: self._curves(system) for system in self.systems}
        for system, (learned, unseen) in self.systems.items():
            yield f"{learned.title}-learning", figures.draw_learning(curves[system], learned)
            parts = {"on the job sets learned from": learned, "on unseen job sets": unseen}
            yield f"{learned.title}-lengths", figures.draw_lengths(parts)
        placed = {system.capitalize(): each[measured.CUSH] for system, each in curves.items()}
        yield "placements", figures.draw_placements(placed)
        yield "penalties", figures.draw_penalties({unseen.title: unseen for unseen in self.unseen})
        if self.sizes:
            ratios = {
                part: {nodes: of.ratios for nodes, of in sizes.items()} for part, sizes in self.sizes.items()
            }
            yield "sizes", figures.draw_sizes(ratios)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        published = self.plan.published
        for name, of in self.given.items():
            yield from measured.file_targets(name, of, published[of.problem.system])
        for system, (_, unseen) in self.systems.items():
            yield from measured.gain_targets(unseen, published["gains"].number(system, "gain"))
            yield from measured.placement_targets(unseen)
        name, _, seconds, *_ = max(self.about_trainings, key=lambda each: each[2])
        yield measured.time_target(name, seconds)
