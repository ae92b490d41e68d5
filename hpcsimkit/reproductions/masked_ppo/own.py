"""What is the masked-PPO scheduler's own: its agents, the runs on days, and their tests, tables and targets.

The improved agents differ from the published ones as follows: slots hold distinct types of requests, the
shortest first. The observation includes expected run times, and the resources that a machine lacks with the
time until they are free. Episodes are busy days of the log instead of constructed sets. The reward is the
reduction in wait relative to SJF with best fit. The weights of a small network are found by the cross-entropy
method, since the effect of a single action is lost in the noise of the hundreds that follow. Slots, columns
and initial weights were chosen with results on the test days in view; these agents are therefore to be
assessed on the unseen days.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.agents.masked_ppo.published import RunningMeanWait, RunningUtilisation
from hpcsimkit.agents.networks.numpy_networks import SlotScores
from hpcsimkit.agents.spaces.encoders import RequestsAndMachines
from hpcsimkit.agents.spaces.episodes import AnyOf, Fixed
from hpcsimkit.agents.spaces.masks import JobMachine
from hpcsimkit.agents.spaces.prospects import PairProspects, past_run_times
from hpcsimkit.agents.spaces.rewards import Improvement
from hpcsimkit.agents.training.ppo import PPOSettings
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.environment import SchedulingEnv
from hpcsimkit.envs.interfaces import Reward
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.policies import SJF
from hpcsimkit.policies.one_seat.dispatch import Dispatch
from hpcsimkit.reproductions.cells import Table, number
from hpcsimkit.reproductions.figures import draw_boxes
from hpcsimkit.reproductions.learners import Learner, learning_curve_of
from hpcsimkit.reproductions.masked_ppo.days import BASELINE, Beocat
from hpcsimkit.reproductions.masked_ppo.figures import draw_training_curves
from hpcsimkit.reproductions.plans.comparisons import Comparison, runs_by_use
from hpcsimkit.reproductions.plans.plan import PublishedTable, RowPlan
from hpcsimkit.reproductions.plans.planned import PaperFindings, PaperReproduction
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.sequences import Contestant, Meeting
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.resource_metrics import resource_utilisation, snapshot_utilisation
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import SIGNIFICANT, compared
from hpcsimkit.results.statistics import Comparison as Paired

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BASELINE",
    "SETTINGS",
    "OnlyThePast",
    "OwnFindings",
    "OwnReproduction",
    "Playing",
    "Scores",
    "Verdict",
    "first_weights",
    "improved_environment",
    "judged",
    "published_environment",
    "untrained",
]

Floats = NDArray[np.float64]

WAIT, UTILISATION, WEIGHTED = MEASURES = ("wait", "utilisation", "weighted")
"""Mean wait [min], the paper's utilisation [%], and the one weighted by time and capacity [%]."""

SLOTS, IMPROVED_SLOTS = 10, 32
"""K of the published code, and of the improved agents: number of jobs in observation and action space."""

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


EXPECTED_RUN_TIME = 2
"""Column of the observation by which the initial network ranks: shortest job first."""

MODEL, BFBP = "RL model", "BFBP"
POINTS = 0.1
"""Allowed deficit of utilisation relative to BFBP's [percentage points]."""

LABELS = {
    WAIT: "mean wait of a day [min], logarithmic",
    UTILISATION: "utilisation of a day, by snapshots [%]",
}
"""Axis labels of the box plots."""

# --- agents ---------------------------------------------------------------------------------------------


def published_environment(beocat: Beocat, number: int, metric: str) -> SchedulingEnv:
    """Return the environment of an agent as in the paper and its code: a training set and a metric."""
    jobs, machines = beocat.training_sets[number - 1], len(NINE_MACHINES)
    return SchedulingEnv(
        Fixed(jobs, NINE_MACHINES),
        Dispatch(External(), slots=SLOTS),
        RequestsAndMachines(SLOTS, machines),
        JobMachine(SLOTS, machines),
        METRICS[metric],
        stage="dispatch",
        skip=False,  # the running mean gives a reward at every step, even without a choice
    )


def _prospects(past: Workload | None = None) -> PairProspects:
    machines, resources = NINE_MACHINES.capacity.shape
    known = None if past is None else past_run_times(past)
    return PairProspects(IMPROVED_SLOTS, machines, resources, known)


def improved_environment(beocat: Beocat) -> SchedulingEnv:
    """Return the environment of an agent for shorter waits: the busy training days, if there are any."""
    return SchedulingEnv(
        AnyOf(beocat.busy_days, NINE_MACHINES),
        Dispatch(External(), slots=IMPROVED_SLOTS, order=SJF(), distinct=True),
        _prospects(beocat.training_part),
        JobMachine(IMPROVED_SLOTS, len(NINE_MACHINES)),
        Improvement(BASELINE, "mean_wait_time", "percentage"),
        stage="dispatch",
    )


def first_weights() -> tuple[float, ...]:
    """Return the initial weights of the improved agents: the shortest expected job first."""
    first = [0.0] * (_prospects().shape[1] + 1)
    first[EXPECTED_RUN_TIME] = -12.0
    return tuple(first)


class OnlyThePast(Dispatch):
    """A dispatch restricted, on each day, to the run times of jobs that had ended before.

    Some test days precede the end of the training period: without the restriction, run times of later jobs
    would leak into the test.

    Parameters
    ----------
    dispatch : Dispatch
        The dispatch.
    log : Workload
        Jobs submitted before the cut. A job counts as ended at its submission plus its run time, as the log
        does not record start times.
    """

    def __init__(self, dispatch: Dispatch, log: Workload) -> None:
        super().__init__(dispatch.seat, dispatch.slots, dispatch.order, distinct=dispatch.distinct)
        self.dispatch = dispatch
        self.log = log

    def on(self, day: Workload) -> Dispatch:
        """Return the dispatch with a history that ends at the start of the day."""
        agent = self.seat
        assert isinstance(agent, Agent) and isinstance(agent.encoder, PairProspects)
        ended = self.log.submit_time + self.log.run_time < int(day.submit_time.min())
        encoder, taken = copy(agent.encoder), copy(self)
        encoder.past = past_run_times(self.log.select(ended, "ended before the day"))
        taken.seat = Agent(encoder, agent.mask, agent.network, agent.stage, sample=agent.sample)
        return taken


def untrained(learner: Learner, log: Workload) -> OnlyThePast:
    """Return the improved agents before training: the shortest expected job first."""
    weights = np.array(first_weights(), dtype=np.float32)
    network = SlotScores({"weight.0": weights[None, :-1], "bias.0": weights[-1:]}, "relu")
    dispatch = copy(learner.policy)
    assert isinstance(dispatch, Dispatch)
    dispatch.seat = Agent(learner.encoder, learner.mask, network, learner.stage)
    return OnlyThePast(dispatch, log)


# --- runs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Playing(Meeting):
    """Runs of a policy on all days; the outcome has a list of runs of each measure, with a value per day."""

    @property
    def seeds(self) -> Sequence[int]:
        """Random seeds of the runs: that of the training, or several ones of a random scheduler."""
        learner = self.contestant.learner
        return range(self.seed, self.seed + self.draws) if learner is None else [learner.seed]

    @property
    def size(self) -> int:
        """Expected number of decisions: one per job."""
        return self.sequences.jobs * len(self.seeds)

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the outcome."""
        return MEASURES

    def run(self, folder: Path, tell: Tell) -> Any:
        """Run the simulations."""
        policy, done = self.contestant.scheduler(folder.parent), 0
        found: dict[str, list[list[float]]] = {name: [[] for _ in self.seeds] for name in MEASURES}
        for scenario in self.sequences.scenarios:
            jobs = scenario.workload
            scheduler = policy.on(jobs) if isinstance(policy, OnlyThePast) else policy
            for place, seed in enumerate(self.seeds):
                result = Simulation(jobs, scheduler, NINE_MACHINES, seed=seed).run()
                for name, value in zip(MEASURES, measured(result), strict=True):
                    found[name][place].append(value)
                done += len(jobs)
                tell(done)
        return found


def measured(result: Result) -> tuple[float, float, float]:
    """Return mean wait [min], the paper's utilisation [%], and that by time and capacity [%]."""
    begin, end = int(result.submit_time.min()), int(np.max(result.end_time))
    used = [resource_utilisation(result, name, begin, end) for name in NINE_MACHINES.resources]
    by_snapshots = snapshot_utilisation(result, begin, end)
    return float(result.wait_time.mean()) / 60, 100 * by_snapshots, 100 * float(np.mean(used))


class OwnReproduction(PaperReproduction):
    """Twenty agents for each of two metrics, trained on constructed sets, tested on days of the log."""

    def fields(self) -> list[Field]:
        """Return the kit's heuristics on the test days and on the unseen days."""
        known, rules, learned = runs_by_use(self.contests, _row_of)
        beocat, columns = self.traces, {"mean wait [min]": (WAIT, 1.0)}
        places = {str(day): place for place, day in enumerate(beocat.all_days)}
        sets = {"days of the test": beocat.test_days, "unseen days": beocat.unseen_days}
        chosen = {name: tuple(places[day] for day in sorted(map(str, days))) for name, days in sets.items()}
        return [
            Field(name, known, rules, learned, columns, partial(waits_on, days))
            for name, days in chosen.items()
        ]


def _row_of(who: Contestant, row: RowPlan) -> str:
    """Return the row of a table: without the one that knows run times, and the agents before training."""
    is_rival = who.learner is not None or not (row.oracle or row.group == "improved")
    return (row.family or who.name) * is_rival


def waits_on(
    places: Sequence[int], outcome: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, list[float]]:
    """Return the mean waits on the days at some places, averaged over runs.

    >>> waits_on([1], {"wait": [[1.0, 4.0], [1.0, 6.0]]})
    {'wait': [5.0]}
    """
    return {WAIT: np.mean(outcome[WAIT], axis=0)[list(places)].tolist()}


# --- scores and their significance tests ------------------------------------------------------------------


@dataclass(frozen=True)
class Scores:
    """Measurements of all runs.

    Parameters
    ----------
    days : sequence of str
        Days of the measurements.
    rows : mapping of str to array of float, shape (runs, days, 3)
        Runs of each row of the tables, with measures in the order of `MEASURES`.
    """

    days: Sequence[str]
    rows: Mapping[str, Floats]

    def on(self, days: Sequence[str]) -> Scores:
        """Return the scores of some days."""
        places = [self.days.index(day) for day in days]
        return Scores(days, {row: values[:, places] for row, values in self.rows.items()})

    def values(self, row: str, measure: str) -> Floats:
        """Return the values of a measure, shape (runs, days)."""
        return self.rows[row][:, :, MEASURES.index(measure)]

    def by_day(self, row: str, measure: str) -> Floats:
        """Return the mean over runs, shape (days,)."""
        return self.values(row, measure).mean(axis=0)

    def mean(self, row: str, measure: str) -> float:
        """Return the mean over runs and days."""
        return float(self.values(row, measure).mean())

    def spread(self, row: str, measure: str) -> float | None:
        """Return the standard deviation of the means of runs, or None for a single run."""
        of_runs = self.values(row, measure).mean(axis=1)
        return float(of_runs.std(ddof=1)) if len(of_runs) > 1 else None


@dataclass(frozen=True)
class Verdict:
    """Comparison of a row of the tables with others, by one measure.

    The paper's p-values are reproduced if each of the twenty agents' runs counts as a sample of its own and
    each baseline's days are repeated twenty times. This counts the agents' common source of variation, the
    days, twenty times as independent. The same hypotheses are therefore tested again with one value per day,
    paired, and corrected by Holm's method.

    Parameters
    ----------
    anova, t_tests : float, mapping of str to float
        p-values as in the paper: over agents x days, unpaired (Welch's test, two-sided).
    samples : int
        Number of values in each group of these tests.
    anova_of_days : float
        p-value of the analysis of variance with one value per day.
    paired : mapping of str to Paired
        Paired comparisons over days, the row minus each other one.
    """

    anova: float
    t_tests: Mapping[str, float]
    samples: int
    anova_of_days: float
    paired: Mapping[str, Paired]


def judged(scores: Scores, measure: str, model: str, groups: Sequence[str], others: Sequence[str]) -> Verdict:
    """Compare the model with other rows.

    Parameters
    ----------
    scores : Scores
        Scores on the days of the comparison.
    measure : str
        Measure to compare.
    model : str
        Row of the agents.
    groups : sequence of str
        Groups of the analysis of variance: the paper's baselines.
    others : sequence of str
        All rows to compare the agents with.

    Examples
    --------
    Two agents on three days, and SJF; the paper's six samples are three days:

    >>> days = ["2021-05-01", "2021-05-02", "2021-05-03"]
    >>> waits = {"agents": [[[1.0], [4.0], [9.0]], [[2.0], [4.0], [8.0]]], "SJF": [[[3.0], [5.0], [12.0]]]}
    >>> scores = Scores(days, {row: np.array(values) for row, values in waits.items()})
    >>> found = judged(scores, "wait", "agents", ["SJF"], ["SJF"])
    >>> found.samples, round(found.t_tests["SJF"], 3)
    (6, 0.379)
    >>> round(found.paired["SJF"].difference.mean, 3), round(found.paired["SJF"].t_test, 3)
    (-2.0, 0.12)
    """
    from scipy import stats

    ours = scores.values(model, measure).ravel()
    repeated = {row: _repeated(scores, row, measure, len(ours)) for row in others}
    t_tests = {row: stats.ttest_ind(ours, values, equal_var=False).pvalue for row, values in repeated.items()}
    by_day = {row: scores.by_day(row, measure) for row in others}
    own = scores.by_day(model, measure)
    return Verdict(
        anova=float(stats.f_oneway(ours, *(repeated[row] for row in groups)).pvalue),
        t_tests={row: float(p) for row, p in t_tests.items()},
        samples=len(ours),
        anova_of_days=float(stats.f_oneway(own, *(by_day[row] for row in groups)).pvalue),
        paired=compared(own, by_day),
    )


def _repeated(scores: Scores, row: str, measure: str, size: int) -> np.ndarray:
    """Return a row's daily means, repeated to the model's number of values."""
    by_day = scores.by_day(row, measure)
    return np.tile(by_day, size // len(by_day))


# --- tables -----------------------------------------------------------------------------------------------


def means_table(
    measure: str, model: str, rows: Sequence[str], paper: PublishedTable | None, **scores: Scores
) -> Table:
    """Return the mean of each row beside the paper's, with the spread over agents or seeds.

    Parameters
    ----------
    measure : str
        Measure to show.
    model : str
        Row of the paper's model.
    rows : sequence of str
        All rows to show.
    paper : PublishedTable or None
        The paper's table, if any.
    **scores : Scores
        Columns: scores by the name of a set of days.
    """
    headings = [f"{measure} [{'min' if measure == WAIT else '%'}]", *(["paper, 23 days"] if paper else [])]
    headings += [f"{name} days ({len(each.days)})" for name, each in scores.items()]
    lines = []
    for row in rows:
        published = [] if paper is None else [number(paper.number(MODEL if row == model else row, "mean"))]
        lines.append([row, *published, *(_with_spread(each, row, measure) for each in scores.values())])
    return Table(headings, lines)


def _with_spread(scores: Scores, row: str, measure: str) -> str:
    spread = scores.spread(row, measure)
    mean = number(scores.mean(row, measure))
    return mean if spread is None else f"{mean} ± {number(spread)}"


# --- findings ---------------------------------------------------------------------------------------------


def baseline_targets(
    scores: Scores, rows: Sequence[str], published: Mapping[str, PublishedTable]
) -> Iterator[Target]:
    """Yield the paper's baselines beside ours; days differ, so only their order can be reproduced."""
    for measure, unit in ((WAIT, "min"), (UTILISATION, "%")):
        for row in rows:
            what = f"{row}: {measure} [{unit}], {len(scores.days)} days (paper: 23 others)"
            theirs = published[measure].number(row, "mean")
            yield Target(what, theirs, scores.mean(row, measure), None, None)
    in_order = sorted(rows, key=lambda row: scores.mean(row, WAIT))
    as_published = sorted(rows, key=lambda row: published[WAIT].number(row, "mean"))
    agree = sum(one == other for one, other in zip(in_order, as_published, strict=True))
    what = f"baselines in the order {' < '.join(as_published)} by wait [places]"
    yield Target(what, float(len(as_published)), float(agree), None, agree == len(as_published))


def family_targets(
    name: str,
    rows: tuple[str, str],
    day_sets: Mapping[str, Scores],
    reduction: float,
    groups: tuple[Sequence[str], Sequence[str]],
) -> Iterator[Target]:
    """Yield the targets of a group of agents.

    Parameters
    ----------
    name : str
        Name of the group.
    rows : tuple of two str
        Rows of its agents for wait and for utilisation.
    day_sets : mapping of str to Scores
        Scores on the test days and on the unseen days.
    reduction : float
        Published reduction of the mean wait relative to BFBP's [%].
    groups : tuple of two sequences of str
        Rows of the paper's baselines and of others; agents must have a lower mean wait than SJF and the
        others. p-values are corrected for the number of all of them.
    """
    (for_wait, for_utilisation), (baselines, controls) = rows, groups
    for days, scores in day_sets.items():
        bfbp, spread = scores.mean(BFBP, WAIT), scores.spread(for_wait, WAIT)
        below = 100 * (1 - scores.mean(for_wait, WAIT) / bfbp)
        spread = None if spread is None else 100 * spread / bfbp
        what = f"{name}: wait below BFBP's by {reduction} %, {days} days [%]"
        yield Target(what, reduction, below, spread, below >= reduction)
    verdict = judged(day_sets["unseen"], WAIT, for_wait, baselines, [*baselines, *controls])
    for other in ("SJF", *controls):
        found = verdict.paired[other]
        less = found.difference.mean < 0
        what = f"{name}: wait below that of {other}, unseen days [%]"
        yield Target(what, None, -100 * found.relative, None, less)
        tests = {"paired t-test": found.t_test_holm, "Wilcoxon's test": found.wilcoxon_holm}
        for test_name, p in tests.items():
            what = f"{name}: p < {SIGNIFICANT} against {other}, {test_name}, Holm"
            yield Target(what, None, p, None, less and p < SIGNIFICANT)
    for days, scores in day_sets.items():
        gap = scores.mean(for_utilisation, UTILISATION) - scores.mean(BFBP, UTILISATION)
        what = f"{name}: utilisation at most {POINTS} points below BFBP's, {days} days [points]"
        yield Target(what, -0.02, gap, scores.spread(for_utilisation, UTILISATION), gap >= -POINTS)


class OwnFindings(PaperFindings):
    """Measurements of agents and baselines."""

    @property
    def contest(self) -> Comparison:
        """Comparison on all days."""
        return self.scores[0].contest

    @cached_property
    def day_sets(self) -> dict[str, Scores]:
        """Scores on the test days, and on the unseen days."""
        beocat, values = self.plan.traces, self.scores[0].values
        rows = {
            family: np.concatenate(
                [np.stack([values[who.name][each] for each in MEASURES], axis=2) for who in of]
            )
            for family, of in self.contest.families().items()
        }
        every = Scores([str(day) for day in beocat.all_days], rows)
        sets = {"test": beocat.test_days, "unseen": beocat.unseen_days}
        return {name: every.on([str(day) for day in days]) for name, days in sets.items()}

    @property
    def groups(self) -> tuple[list[str], list[str]]:
        """Rows of the paper's baselines, and of further ones."""
        return list(self.contest.families("paper")), list(self.contest.families("control"))

    @cached_property
    def agents(self) -> dict[str, list[str]]:
        """Rows of each group of agents."""
        found = {name: list(self.contest.families(name)) for name in ("published", "improved")}
        return {name: rows for name, rows in found.items() if rows}

    def rows_of(self, group: str, measure: str) -> list[str]:
        """Return the rows of the agents trained for a measure, or for wait if there are none."""
        rows = self.agents[group]
        metric = measure if any(f", for {measure}" in row for row in rows) else WAIT
        return [row for row in rows if f", for {metric}" in row or ", for " not in row]

    def rows(self, measure: str) -> list[str]:
        """Return the rows of a table: untrained policies, and the agents trained for the measure."""
        agents = (row for group in self.agents for row in self.rows_of(group, measure))
        return [*self.groups[0], *self.groups[1], *agents]

    @property
    def all_rows(self) -> list[str]:
        """All rows, each once."""
        return list(dict.fromkeys((*self.rows(WAIT), *self.rows(UTILISATION))))

    def rows_of_days(self, measure: str) -> list[str]:
        """Return the rows of a table of single days."""
        agents = (self.rows_of(group, measure)[0] for group in self.agents)
        return [*self.groups[0], *self.groups[1], *agents]

    def verdicts(self, measure: str, model: str) -> dict[str, Verdict]:
        """Return the tests of a row against untrained policies, by set of days."""
        baselines, controls = self.groups
        return {
            name: judged(scores, measure, model, baselines, [*baselines, *controls])
            for name, scores in self.day_sets.items()
        }

    def values(self) -> dict[str, Any]:
        """Return further values of the template, by name."""
        jobs = {str(day): workload for day, workload in self.plan.traces.all_days.items()}
        return {**super().values(), "jobs": jobs, "means_table": means_table}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for measure, label in LABELS.items():
            for name, scores in self.day_sets.items():
                values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
                yield f"{measure}-{name}", draw_boxes(values, label, logarithmic=measure == WAIT)
        for group in self.agents:
            learners: dict[str, list[Path]] = {}
            for who in self.contest.contestants:
                if who.learner is not None and self.contest.rows[who.name].group == group:
                    _, metric, _ = who.learner.name.split("-")
                    learners.setdefault(metric, []).append(self.store.place / who.learner.name)
            curves = {
                metric: [learning_curve_of(place) for place in dict.fromkeys(of)]
                for metric, of in learners.items()
            }
            yield f"training-{group}", draw_training_curves(curves)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        published = self.plan.published
        yield from baseline_targets(self.day_sets["test"], self.groups[0], published)
        reduction = published["reduction"].number(BFBP, WAIT)
        for group in self.agents:
            rows = self.rows_of(group, WAIT)[0], self.rows_of(group, UTILISATION)[0]
            yield from family_targets(group, rows, self.day_sets, reduction, self.groups)
