"""CuSH: job sets, agents on two seats, groups of policies, and their tables and targets."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.cush.classes import SUMS, class_sums, mean_of_class
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
from hpcsimkit.experiments.tables import Table
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.system import System
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reproductions.cells import number, spread_cell
from hpcsimkit.reproductions.cush import figures
from hpcsimkit.reproductions.cush.figures import (
    ALLOCATIONS,
    BEST_ALLOCATION,
    CUSH,
    HEURISTICS,
    NTAT,
    REWARD,
    SELECTORS,
    WAIT,
)
from hpcsimkit.reproductions.learners import Learner
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.comparisons import Comparison, runs_by_use
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import Logs, each_once, name_among
from hpcsimkit.reproductions.plans.plan import PublishedTable
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.scores import Scores, Standing, standings
from hpcsimkit.reproductions.sequences import Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.metrics import evaluate
from hpcsimkit.results.statistics import SIGNIFICANT
from hpcsimkit.workloads.models.cush import CUSH_KINDS, CUSH_SYSTEMS, read_job_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "CushLearner",
    "Measured",
    "OwnFindings",
    "OwnReproduction",
    "Run",
    "Trial",
    "Trials",
    "learned_from",
    "mean_return",
]

Floats = NDArray[np.float64]
Values = Mapping[str, Floats]
"""Values by measure."""

COLUMNS = {"NTAT": NTAT, "wait": WAIT, "rewards": REWARD}
"""Measures of tables, by heading."""

MEASURED = (NTAT, WAIT, "mean_response_time")
"""Measures of each run, of :data:`~hpcsimkit.results.metrics.METRICS`; `REWARD` is the mean return."""

EVOLVED_IN_SIGHT = "Evolved (best allocation, in sight)"
EVOLVED_ON_ALL = "Evolved (best allocation, whole queue)"
NEAR, SUITED, HOURS = 0.10, 99.0, 2.0
"""Targets: maximum relative deviation from the paper, minimum share of suitable placements [%], and maximum
time of a training on a machine of 2 cores [h]."""

VALIDATION, UNSEEN = 101, 102
"""Keys of the random streams for validation and test sets; trainings use other streams."""

DECISIONS = 30
"""Approximate number of decisions with a choice of the job selector in a simulation."""

EVOLVES_FASTER, TAUGHT_SLOWER = 2, 6
"""Ratio of decisions per second in cross-entropy training to those in CuSH's training, and of the time of a
decision in imitation learning to one in CuSH's: hardly any states recur."""

# --- job sets -------------------------------------------------------------------------------------------


def system_of(path: Path) -> Literal["sierra", "summit"]:
    """Return the system of the job sets in a file, which its name contains.

    >>> system_of(Path("my_Sierra_sets.csv"))
    'sierra'
    """
    found = [system for system in CUSH_SYSTEMS if system in path.name.lower()]
    if len(found) != 1:
        raise UsageError(
            f"{path}: the system of the job sets is unknown; the file name must contain one of the words "
            f"{', '.join(CUSH_SYSTEMS)}"
        )
    return cast(Literal["sierra", "summit"], found[0])


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
    path : Path, optional
        File of the job sets, CSV or gzip.
    """

    kind: Literal["system", "file", "swept"]
    problem: CushProblem
    scale: Any
    seed: int
    path: Path | None = None

    @property
    def name(self) -> str:
        """Name in tables."""
        return self.problem.system.capitalize() if self.path is None else name_among(self.path, {})

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

    @cached_property
    def given(self) -> SequenceSet:
        """Job sets of the file, on the paper's cluster."""
        assert self.path is not None
        scenarios = tuple(map(self.problem.scenario, read_job_sets(self.path)))
        for scenario in scenarios:
            cluster, jobs = scenario.setup.cluster, scenario.workload
            assert isinstance(cluster, Machines)
            misfits = jobs.id[cluster.misfits(jobs)]
            if len(misfits):
                raise UsageError(
                    f"{self.path}: job {misfits[0]} of {jobs.name} asks for more than all "
                    f"{self.problem.nodes} nodes of {self.problem.system.capitalize()} have"
                )
        return SequenceSet(self.name, scenarios)

    def _drawn(self, part: str, purpose: int, count: int) -> SequenceSet:
        rng = np.random.default_rng([self.seed, purpose])
        return SequenceSet(f"{self.label}-{part}", tuple(self.problem.scenarios(rng, count)))

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the plan."""
        return {"log": self, "problem": self.problem}

    def line(self) -> str:
        """Return a line on the job sets."""
        if self.path is not None:
            count = len(self.given.scenarios)
            return f"{self.name}: {count} job set{'s' * (count != 1)} for {self.problem.system.capitalize()}"
        node, scale = CUSH_SYSTEMS[self.problem.system], self.scale
        return (
            f"{self.name}: {self.problem.nodes} nodes of {node.cpus} CPUs and {node.gpus} GPUs; "
            f"{scale.job_sets} job sets to learn from with each seed, {scale.validation} to choose by, "
            f"{scale.unseen} to be tested on"
        )


@part
class Trials(Logs):
    """All job sets other than the training ones."""

    @cached_property
    def all(self) -> Sequence[Trial]:
        """Job sets by system, by file, and of Sierra with other clusters and horizons, each once."""
        systems = [CushProblem(system=system) for system in self.scale.systems]
        sizes = [CushProblem(nodes=nodes) for nodes in self.scale.nodes]
        swept = dict.fromkeys([*sizes, *(CushProblem(horizon=horizon) for horizon in self.scale.horizons)])
        files = [
            Trial("file", CushProblem(system=system_of(path)), self.scale, self.seed, path)
            for path in self.paths
        ]
        return [
            *(Trial("system", problem, self.scale, self.seed) for problem in systems),
            *each_once(files),
            *(Trial("swept", problem, self.scale, self.seed) for problem in swept),
        ]

    def lines(self) -> Iterator[str]:
        """Yield a line on each system and each file."""
        for trial in self.all:
            if trial.kind != "swept":
                yield trial.line()


# --- agents ---------------------------------------------------------------------------------------------


@part
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


@part
def learned_from(learner: CushLearner) -> SequenceSet:
    """Return the training job sets of a learner."""
    return SequenceSet(f"{learner.name}-learned", tuple(learner.job_sets()))


# --- policies and runs ------------------------------------------------------------------------------------


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


@part
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
        columns = {heading: (measure, 1.0) for heading, measure in COLUMNS.items()}
        return Field(name, known, rules, learned, columns)


# --- groups of policies ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measured:
    """Measurements on job sets by group: agents with several seeds are averaged on each set.

    Parameters
    ----------
    problem : CushProblem
        Cluster and observation.
    groups : mapping of str to list of str
        Groups with measurements: the paper's heuristics (``paper``), further ones (``added``, ``outside``),
        and agents with CuSH's networks (``trained``) and others (``evolved``).
    values : mapping of str to mapping of str to array of float, shape (job sets,)
        Values by group and measure, averaged over the agents on a set.
    agents : mapping of str to mapping of str to array of float, shape (agents,)
        Values by group and measure, averaged over the sets of an agent.
    """

    problem: CushProblem
    groups: Mapping[str, Sequence[str]]
    values: Mapping[str, Values]
    agents: Mapping[str, Values]

    @classmethod
    def of(cls, scores: Sequence[Scores], drawn: Collection[str]) -> Measured:
        """Combine the comparisons of one problem.

        Parameters
        ----------
        scores : sequence of Scores
            Scores of the comparisons: several if agents of different seeds have their own job sets.
        drawn : collection of str
            Groups compared with sampled actions; all others are compared with greedy actions.
        """
        first = scores[0].contest
        families = sorted(first.families(), key=lambda family: family != CUSH)  # CuSH is the first row
        met = {family: _met(family, scores, drawn) for family in families}
        met = {family: contests for family, contests in met.items() if contests}
        groups = {
            group: [family for family in met if family in first.families(group)]
            for group in ("paper", "added", "outside", "trained", "evolved")
        }
        values = {family: _over_sets(contests) for family, contests in met.items()}
        agents = {family: _over_agents(contests) for family, contests in met.items()}
        return cls(first.variables["problem"], groups, values, agents)

    @property
    def sets(self) -> int:
        """Number of job sets."""
        return len(self.values[BEST_ALLOCATION][NTAT])

    @property
    def learned(self) -> list[str]:
        """Groups of agents."""
        return [*self.groups["trained"], *self.groups["evolved"]]

    def mean(self, family: str, measure: str = NTAT) -> float:
        """Return the mean of a measure of a group, over all sets."""
        return float(self.values[family][measure].mean())

    @cached_property
    def best(self) -> str:
        """Heuristic row of the paper with the lowest mean NTAT."""
        return min(self.groups["paper"], key=self.mean)

    @cached_property
    def best_outside(self) -> str:
        """Heuristic outside the paper with the lowest mean NTAT."""
        return min(self.groups["outside"], key=self.mean)

    @property
    def title(self) -> str:
        """Name of the system in texts."""
        return self.problem.system.capitalize()

    def is_ahead(self, family: str) -> bool:
        """Return whether a group has a lower mean NTAT than the best heuristic outside the paper."""
        return self.mean(family) < self.mean(self.best_outside)

    @property
    def ahead(self) -> list[str]:
        """Groups of agents ahead of it that select among as many jobs as CuSH."""
        return [family for family in self.learned if family != EVOLVED_ON_ALL and self.is_ahead(family)]

    @property
    def rivals(self) -> tuple[str, str, str]:
        """Baselines of the targets."""
        return self.best, BEST_ALLOCATION, self.best_outside

    def against(self, family: str) -> dict[str, Standing]:
        """Compare a group with its baselines by NTAT, set by set; p-values are corrected for all of them."""
        return standings({name: self.values[name][NTAT] for name in (*self.rivals, family)}, family)

    def gain(self, family: str, rival: str) -> Floats:
        """Return the reduction of each agent's NTAT relative to a baseline [%]."""
        found: Floats = 100 * (1 - self.agents[family][NTAT] / self.mean(rival))
        return found

    @property
    def ratios(self) -> dict[str, float]:
        """Ratios to CuSH's NTAT of selectors with their better allocation, and of SJF with the best one."""
        means = {
            selector: min(self.mean(f"{selector} {each}") for each in ALLOCATIONS) for selector in SELECTORS
        }
        means[BEST_ALLOCATION] = self.mean(BEST_ALLOCATION)
        return {name: mean / self.mean(CUSH) for name, mean in means.items()}

    # --- tables -----------------------------------------------------------------------------------------

    def table_1(self, paper: PublishedTable) -> Table:
        """Return a row per group, with the paper's numbers in italics; the lowest NTAT and wait are bold.

        For agents with several seeds, cells show the mean and the range.
        """
        rows = []
        for family in self.values:
            row = {"": family if family in (CUSH, *self.groups["paper"]) else f"*{family}*"}
            for column, (name, measure) in zip(paper.columns, COLUMNS.items(), strict=True):
                row[f"*{name}, paper*"] = number(paper.number(family, column))
                row[name] = self._cell(family, measure)
            rows.append(row)
        return Table.of(rows)

    def _cell(self, family: str, measure: str) -> str:
        cell = spread_cell(self.agents[family][measure])
        least = min(self.mean(each, measure) for each in self.values)
        is_best = measure != REWARD and number(self.mean(family, measure)) == number(least)
        return f"**{cell}**" if is_best else cell

    def in_short_table(self, learned: Measured) -> Table:
        """Return a row per group of agents: NTAT on training job sets and on these, and beside baselines."""
        beside = ("to the paper's best", f"to {BEST_ALLOCATION}", "to the kit's best")
        headings = ["", "NTAT, learned from", *beside, "NTAT, unseen", *beside]
        return Table(
            headings,
            [[family, *learned._beside(family), *self._beside(family)] for family in self.learned],
        )

    def _beside(self, family: str) -> Iterator[str]:
        yield number(self.mean(family))
        found = self.against(family)
        for rival in self.rivals:
            against = found[rival].against
            assert against is not None
            yield f"{100 * against.relative:+.1f} %{'*' * found[rival].is_beaten}"


Met = Sequence[Mapping[str, Values]]
"""Values of the rows of a group, comparison by comparison."""


def _met(family: str, scores: Sequence[Scores], drawn: Collection[str]) -> Met:
    """Return the comparisons that include a group, with sampled or greedy actions of two networks."""
    found = []
    for each in scores:
        rows = each.contest.families().get(family, [])
        trained = family in each.contest.families("trained")
        rows = [row for row in rows if not trained or row.sample == (family in drawn)]
        if rows:
            found.append({row.name: each.values[row.name] for row in rows})
    return found


def _over_sets(contests: Met) -> dict[str, Floats]:
    """Return measures set by set, in the order of comparisons: means over the rows of each."""
    return {
        measure: np.concatenate(
            [np.mean([row[measure] for row in rows.values()], axis=0) for rows in contests]
        )
        for measure in next(iter(contests[0].values()))
    }


def _over_agents(contests: Met) -> dict[str, Floats]:
    """Return measures agent by agent: means over all sets of each agent."""
    names = list(dict.fromkeys(name for rows in contests for name in rows))
    of_agent = {name: [rows[name] for rows in contests if name in rows] for name in names}
    return {
        measure: np.array(
            [np.concatenate([values[measure] for values in of_agent[name]]).mean() for name in names]
        )
        for measure in next(iter(contests[0].values()))
    }


def both_ways(validation: Scores) -> dict[str, tuple[float, float]]:
    """Return the mean validation NTAT of each group of CuSH agents, with greedy and with sampled actions."""

    def mean(family: str, drawn: Collection[str]) -> float:
        rows = [row for met in _met(family, [validation], drawn) for row in met.values()]
        return float(np.mean([row[NTAT].mean() for row in rows])) if rows else float("nan")

    return {
        family: (mean(family, ()), mean(family, [family]))
        for family in validation.contest.families("trained")
    }


def drawing(ways: Mapping[str, tuple[float, float]]) -> frozenset[str]:
    """Return the groups with a lower NTAT if actions are sampled, from the output of :func:`both_ways`.

    >>> sorted(drawing({"CuSH": (3.0, 3.5), "CuSH (fresh job sets)": (3.2, 3.1)}))
    ['CuSH (fresh job sets)']
    """
    return frozenset(family for family, (best, drawn) in ways.items() if drawn < best)


# --- targets ----------------------------------------------------------------------------------------------


def file_targets(name: str, measured: Measured, paper: PublishedTable) -> Iterator[Target]:
    """Yield the deviations from table 1 of the heuristics on the job sets of a file."""
    for family in measured.groups["paper"]:
        for words, column, measure in (("NTAT", "ntat", NTAT), ("wait", "wait", WAIT)):
            value, ours = paper.number(family, column), measured.mean(family, measure)
            what = f"{name}: {family}, {words} (within {100 * NEAR:g} %)"
            yield Target(what, value, ours, None, abs(ours / value - 1) <= NEAR)


def gain_targets(unseen: Measured, needed: float) -> Iterator[Target]:
    """Yield the reductions of agents' NTAT relative to the baselines, on unseen job sets.

    The gain needed [%] is the paper's: CuSH's, over the best heuristic of its table.
    """
    titles = ("the best heuristic of the paper", "", "the best heuristic of the kit")
    for family in unseen.learned:
        if family == EVOLVED_IN_SIGHT:  # a bound on CuSH's information, not a competitor
            continue
        against = unseen.against(family)
        for rival, title in zip(unseen.rivals, titles, strict=True):
            gains = unseen.gain(family, rival)
            who = ", ".join(filter(None, [rival, title]))
            what = (
                f"{unseen.title}, unseen job sets: {family}, NTAT below that of {who}, by [%] "
                f"(needed: {needed:g}, p < {SIGNIFICANT})"
            )
            ours, spread = float(gains.mean()), float(gains.std(ddof=1)) if len(gains) > 1 else None
            paper = needed if family == CUSH and rival == unseen.best else None
            yield Target(what, paper, ours, spread, ours >= needed and against[rival].is_beaten)


def placement_targets(unseen: Measured) -> Iterator[Target]:
    """Yield the shares of each type's jobs that the policy selector places suitably [%]."""
    for family in unseen.groups["trained"]:
        for kind in CUSH_KINDS:
            share = 100 * mean_of_class(unseen.values[family], "suited", kind)
            what = (
                f"{unseen.title}, unseen job sets: {family}, {kind} jobs placed as suits "
                f"them [%] (at least {SUITED:g})"
            )
            yield Target(what, None, share, None, share >= SUITED)


def time_target(name: str, seconds: float) -> Target:
    """Return the target for the longest training: its time on one core, an upper bound for two."""
    hours = seconds / 3600
    what = f"longest training, {name} [h of one core] (at most {HOURS:g}, on 2 cores)"
    return Target(what, None, hours, None, hours <= HOURS)


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
        seconds = self.seconds(learner)
        if isinstance(learner, Learner):
            return learner.name, learner.size, seconds, float("nan"), float("nan")
        values = self.curve(learner)["normalised_turnaround"]
        tenth = max(1, len(values) // 10)
        return learner.name, len(values), seconds, float(values[:tenth].mean()), float(values[-tenth:].mean())

    def _curves(self, system: str) -> dict[str, list[Curve]]:
        """Return the learning curves of the groups with CuSH's networks, seed by seed."""
        found: dict[str, list[Curve]] = {}
        for scores in self.of("validation", problem=CushProblem(system=cast(Any, system))):
            for family, rows in scores.contest.families().items():
                learners = {row.learner.name: row.learner for row in rows if row.learner is not None}
                found[family] = [self.curve(each) for each in learners.values()]
        return found

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        curves = {system: self._curves(system) for system in self.systems}
        for system, (learned, unseen) in self.systems.items():
            yield f"{learned.title}-learning", figures.draw_learning(curves[system], learned.values)
            parts = {"on the job sets learned from": learned.values, "on unseen job sets": unseen.values}
            yield f"{learned.title}-lengths", figures.draw_lengths(parts)
        placed = {system.capitalize(): each[CUSH] for system, each in curves.items()}
        yield "placements", figures.draw_placements(placed)
        shown = {each.title: (*HEURISTICS[:4], *each.groups["trained"]) for each in self.unseen}
        penalties = {each.title: {row: each.values[row] for row in shown[each.title]} for each in self.unseen}
        yield "penalties", figures.draw_penalties(penalties)
        if self.sizes:
            ratios = {
                part: {nodes: of.ratios for nodes, of in sizes.items()} for part, sizes in self.sizes.items()
            }
            yield "sizes", figures.draw_sizes(ratios)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        published = self.plan.published
        for name, of in self.given.items():
            yield from file_targets(name, of, published[of.problem.system])
        for system, (_, unseen) in self.systems.items():
            yield from gain_targets(unseen, published["gains"].number(system, "gain"))
            yield from placement_targets(unseen)
        name, _, seconds, *_ = max(self.about_trainings, key=lambda each: each[2])
        yield time_target(name, seconds)
