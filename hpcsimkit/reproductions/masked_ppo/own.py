"""Masked PPO: days of the logs, runs on them, significance tests and targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.masked_ppo.environments import BASELINE, OnlyThePast
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.engine.task import Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import WorkloadError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.reports.figures import save_figure
from hpcsimkit.reports.learning_curve import Curve
from hpcsimkit.reports.plots import draw_boxes
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.masked_ppo.figures import draw_training_curves
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.comparisons import Comparison, runs_by_use
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import Logs
from hpcsimkit.reproductions.plans.plan import PublishedTable, RowPlan
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.rivals import Field
from hpcsimkit.reproductions.sequences import Contestant, Meeting, SequenceSet
from hpcsimkit.reproductions.targets import Conclusion, Target
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.results.resource_metrics import resource_utilisation, snapshot_utilisation
from hpcsimkit.results.result import Result
from hpcsimkit.results.statistics import SIGNIFICANT, compared
from hpcsimkit.results.statistics import Comparison as Paired
from hpcsimkit.workloads.readers.beocat import days, in_queue_order, training_set
from hpcsimkit.workloads.readers.cells import clock_of
from hpcsimkit.workloads.readers.job_table import read_job_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Beocat", "Days", "OwnFindings", "OwnReproduction", "Playing", "Scores", "Verdict", "judged"]

Floats = NDArray[np.float64]
Days = Mapping[date, Workload]

WAIT, UTILISATION, WEIGHTED = MEASURES = ("wait", "utilisation", "weighted")
"""Mean wait [min], the paper's utilisation [%], and the one weighted by time and capacity [%]."""

TIMEZONE = "America/Chicago"
TOO_LARGE = "fit none of the nine machines"
MANY = 10**9

BUSY = 3600
"""Minimum mean wait under the baseline of a busy training day [s]."""

BFBP = "BFBP"
POINTS = 0.1
"""Allowed deficit of utilisation relative to BFBP's [percentage points]."""

BALANCED, UNTRAINED = "for both", "for both, before training"
"""Rows of the agents for wait and utilisation."""

BELOW = ("SJF + best fit", "random, K = 100")
"""Rows that they are meant to be below in wait."""

LABELS = {
    WAIT: "mean wait of a day [min], logarithmic",
    UTILISATION: "utilisation of a day, by snapshots [%]",
}
"""Axis labels of the box plots."""

# --- days -----------------------------------------------------------------------------------------------


def _runnable(workload: Workload) -> Workload:
    """Return the jobs that fit some machine, in queue order."""
    queued = in_queue_order(workload)  # all jobs: without the others, the heap would break ties differently
    return queued.without(NINE_MACHINES.misfits(queued), TOO_LARGE)


@part
class Beocat(Logs):
    """Months of Beocat in any order, and the samples drawn from them, which are its only test data."""

    name = "Beocat"

    @property
    def all(self) -> list[Beocat]:
        """The months together."""
        return [self]

    def _month(self, path: Path) -> Workload:
        log = read_job_table(path)
        if not len(log) or log.submit_time.min() < datetime(2000, 1, 1).timestamp():
            raise WorkloadError(f"{path}: jobs with Unix time as submit time are needed: a log of Beocat")
        return log

    @property
    def first_seed(self) -> int:
        """Random seed of an agent with the number 0."""
        return 1000 * self.seed

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of the plan."""
        return {"log": self}

    @cached_property
    def months(self) -> list[Workload]:
        """Logs, the earliest first."""
        return sorted(map(self._month, self.paths), key=lambda log: int(log.submit_time.min()))

    @cached_property
    def log(self) -> Workload:
        """All jobs, by submission."""
        first, *others = self.months
        return replace(first.merge(*others), name="beocat")

    @cached_property
    def cut(self) -> date:
        """First day without training jobs: the first of the last log, or of a single log's last third."""
        begins = [int(month.submit_time.min()) for month in self.months]
        first, last = begins[0], int(self.log.submit_time.max())
        moment = begins[-1] if len(begins) > 1 else first + 2 * (last - first) // 3
        return datetime.fromtimestamp(moment, clock_of(TIMEZONE)).date()

    @cached_property
    def test_days(self) -> Days:
        """Days with about a thousand jobs, as in the paper.

        Raises
        ------
        WorkloadError
            If there are fewer than two.
        """
        scale = self.scale
        found = {day: _runnable(jobs) for day, jobs in days(self.log, scale.low, scale.high, TIMEZONE)}
        if len(found) < 2:
            raise WorkloadError(
                f"{', '.join(file.name for file in self.paths)}: at least 2 days with {scale.low} to "
                f"{scale.high} jobs are needed, found {len(found)}"
            )
        return found

    @cached_property
    def unseen_days(self) -> Days:
        """All days from the cut on with enough jobs; days with too many jobs are randomly subsampled."""
        scale = self.scale
        since = {day: jobs for day, jobs in days(self.log, scale.least, MANY, TIMEZONE) if day >= self.cut}
        return {
            day: self._thinned(jobs, np.random.default_rng([self.seed, day.toordinal()]))
            for day, jobs in since.items()
        }

    @cached_property
    def subsampled_days(self) -> Mapping[date, list[Workload]]:
        """All days from the cut on with enough jobs; several random subsamples of days with too many."""
        scale, found = self.scale, {}
        for day, jobs in days(self.log, scale.least, MANY, TIMEZONE):
            if day >= self.cut:
                copies = scale.subsamples_of_day if len(jobs) > scale.high else 1
                rngs = (np.random.default_rng([self.seed, day.toordinal(), copy]) for copy in range(copies))
                found[day] = [self._thinned(jobs, rng) for rng in rngs]
        return found

    @cached_property
    def subsampled_sequences(self) -> SequenceSet:
        """The subsamples of all unseen days as sequences."""
        each = [jobs for of_day in self.subsampled_days.values() for jobs in of_day]
        return SequenceSet("subsamples", tuple(Scenario(jobs, Setup(NINE_MACHINES)) for jobs in each))

    @cached_property
    def training_days(self) -> list[Workload]:
        """Training days with enough jobs; days with too many jobs are subsampled several times."""
        scale, found = self.scale, []
        for day, jobs in days(self.training_part, scale.least, MANY, TIMEZONE):
            copies = scale.copies if len(jobs) > scale.high else 1
            for copy in range(copies):
                found.append(self._thinned(jobs, np.random.default_rng([self.seed, day.toordinal(), copy])))
        return found

    @cached_property
    def busy_days(self) -> list[Workload]:
        """Training days with a long mean wait under the baseline, or all of them."""
        days = self.training_days
        waits = [Simulation(day, BASELINE, NINE_MACHINES).run().wait_time.mean() for day in days]
        return [day for day, wait in zip(days, waits, strict=True) if wait >= BUSY] or days

    @property
    def has_training_days(self) -> bool:
        """Whether there are training days."""
        return bool(self.training_days)

    def _thinned(self, jobs: Workload, rng: np.random.Generator) -> Workload:
        scale = self.scale
        if len(jobs) <= scale.high:
            return _runnable(jobs)
        rows = rng.choice(len(jobs), int(rng.integers(scale.low, scale.high + 1)), replace=False)
        return _runnable(jobs.select(np.sort(rows), f"{len(rows)} of {len(jobs)} jobs, by chance"))

    @cached_property
    def all_days(self) -> Days:
        """Test days and unseen days; a day in both sets has the same jobs in both."""
        return {**self.test_days, **self.unseen_days}

    @cached_property
    def sequences(self) -> SequenceSet:
        """All days as sequences."""
        return SequenceSet(
            "days", tuple(Scenario(jobs, Setup(NINE_MACHINES)) for jobs in self.all_days.values())
        )

    @cached_property
    def training_part(self) -> Workload:
        """Jobs available for training: submitted before the cut, and not on a test day."""
        zone = clock_of(TIMEZONE)
        midnight = int(datetime.combine(self.cut, time(), zone).timestamp())
        submitted = self.log.submit_time
        kept = (submitted < midnight) & ~NINE_MACHINES.misfits(self.log)
        for jobs in self.test_days.values():
            kept &= ~np.isin(self.log.id, jobs.id)
        return self.log.select(kept, f"submitted before {self.cut}, without the days of the test")

    @cached_property
    def training_sets(self) -> list[Workload]:
        """Training sets of large jobs and GPU jobs, all submitted at once."""
        scale, sets = self.scale, []
        for each in scale.sets:
            rng = np.random.default_rng([self.seed, each])
            drawn = training_set(
                self.training_part, rng, large_jobs=scale.large_jobs, gpu_jobs=scale.gpu_jobs
            )
            sets.append(replace(in_queue_order(drawn), name=f"set {each}"))
        return sets

    def lines(self) -> Iterator[str]:
        """Yield lines on the data."""
        dropped = int(NINE_MACHINES.misfits(self.log).sum())
        yield f"beocat: {grouped(len(self.log))} jobs of {len(self.paths)} logs on {NINE_MACHINES.summary}"
        yield f"  {grouped(dropped)} jobs left out: {TOO_LARGE}"
        for month in self.months:
            for reason, count in month.skipped.items():
                yield f"  {month.name}: {grouped(count)} rows left out: {reason}"
        test, unseen = self.test_days, self.unseen_days
        yield f"  {len(test)} days of the test ({self.scale.low} to {self.scale.high} jobs)"
        yield f"  {len(unseen)} unseen days from {self.cut} on, thinned to as many jobs"


@part
def training_set_of(beocat: Beocat, number: int) -> Workload:
    """Return a training set by its number, from 1."""
    return beocat.training_sets[number - 1]


# --- runs -----------------------------------------------------------------------------------------------


@part
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
        if beocat.scale.subsamples:
            of_days = partial(waits_of_days, [len(each) for each in beocat.subsampled_days.values()])
            return [Field("unseen days, several subsamples", known, rules, learned, columns, of_days)]
        places = {str(day): place for place, day in enumerate(beocat.all_days)}
        sets = {"days of the test": beocat.test_days, "unseen days": beocat.unseen_days}
        chosen = {name: tuple(places[day] for day in sorted(map(str, days))) for name, days in sets.items()}
        return [
            Field(name, known, rules, learned, columns, partial(waits_on, days))
            for name, days in chosen.items()
        ]


def _row_of(who: Contestant, row: RowPlan) -> str:
    """Return the row of a table: without the one that knows run times, and the agents before training."""
    is_rival = who.learner is not None or not (row.oracle or row.group in ("improved", "balanced"))
    return (row.family or who.name) * is_rival


def waits_on(
    places: Sequence[int], outcome: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, list[float]]:
    """Return the mean waits on the days at some places, averaged over runs.

    >>> waits_on([1], {"wait": [[1.0, 4.0], [1.0, 6.0]]})
    {'wait': [5.0]}
    """
    return {WAIT: np.mean(outcome[WAIT], axis=0)[list(places)].tolist()}


def waits_of_days(
    sizes: Sequence[int], outcome: Mapping[str, Sequence[Sequence[float]]]
) -> dict[str, list[float]]:
    """Return the mean waits of days with some numbers of subsamples, averaged over runs.

    >>> waits_of_days([2, 1], {"wait": [[1.0, 3.0, 7.0]]})
    {'wait': [2.0, 7.0]}
    """
    return {WAIT: means_of_days(np.mean(outcome[WAIT], axis=0), sizes).tolist()}


def means_of_days(values: Floats, sizes: Sequence[int]) -> Floats:
    """Return the means over the subsamples of each day, along the last axis."""
    return np.stack(
        [part.mean(axis=-1) for part in np.split(values, np.cumsum(sizes)[:-1], axis=-1)], axis=-1
    )


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

    def cell(self, row: str, measure: str) -> str:
        """Return the text of a mean, with the standard deviation over runs if there are several."""
        mean, spread = number(self.mean(row, measure)), self.spread(row, measure)
        return mean if spread is None else f"{mean} ± {number(spread)}"


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
    for which, scores in day_sets.items():
        bfbp, spread = scores.mean(BFBP, WAIT), scores.spread(for_wait, WAIT)
        below = 100 * (1 - scores.mean(for_wait, WAIT) / bfbp)
        spread = None if spread is None else 100 * spread / bfbp
        what = f"{name}: wait below BFBP's by {reduction} %, {which} days [%]"
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
    for which, scores in day_sets.items():
        gap = scores.mean(for_utilisation, UTILISATION) - scores.mean(BFBP, UTILISATION)
        what = f"{name}: utilisation at most {POINTS} points below BFBP's, {which} days [points]"
        yield Target(what, -0.02, gap, scores.spread(for_utilisation, UTILISATION), gap >= -POINTS)


def balanced_targets(scores: Scores, agents: str, others: Sequence[str]) -> Iterator[Target]:
    """Yield the targets of the agents for wait and utilisation.

    Wilcoxon's signed-rank test over days was chosen before the agents were judged: the waits of days differ
    by a factor of ten thousand, so the t-test depends on the one or two longest. The aim is to be below both
    rows at once, for which each test alone may be at the level of 0.05.
    """
    found = judged(scores, WAIT, agents, [BFBP], others).paired
    for other in BELOW:
        what = f"{agents}: wait below that of {other} [%], p < {SIGNIFICANT} by Wilcoxon's test over days"
        less = found[other].difference.mean < 0
        yield Target(
            what, None, -100 * found[other].relative, None, less and found[other].wilcoxon < SIGNIFICANT
        )
    gap = scores.mean(agents, UTILISATION) - scores.mean(BFBP, UTILISATION)
    what = f"{agents}: utilisation at most {POINTS} points below BFBP's [points]"
    yield Target(what, None, gap, scores.spread(agents, UTILISATION), gap >= -POINTS)


class OwnFindings(PaperFindings):
    """Measurements of agents and baselines."""

    @cached_property
    def of_subsamples(self) -> Scores:
        """Means over the subsamples of each unseen day."""
        days, values = self.plan.traces.subsampled_days, self.scores[0].values
        sizes = [len(each) for each in days.values()]
        rows = {
            family: np.concatenate(
                [
                    np.stack([means_of_days(values[who.name][each], sizes) for each in MEASURES], axis=2)
                    for who in of
                ]
            )
            for family, of in self.contest.families().items()
            if self.contest.rows[of[0].name].group != "outside"
        }
        return Scores([str(day) for day in days], rows)

    @property
    def rivals_of_balanced(self) -> list[str]:
        """Rows that the agents for wait and utilisation are compared with."""
        return [*self.groups[0], *self.groups[1], UNTRAINED]

    def verdict_of_balanced(self, measure: str) -> Verdict:
        """Return the tests of the agents for wait and utilisation, with one value per day."""
        return judged(self.of_subsamples, measure, BALANCED, self.groups[0], self.rivals_of_balanced)

    def conclusion(self, pictures: Path) -> Conclusion:
        """Return the targets and the report, or those of the agents for wait and utilisation alone."""
        if not self.plan.traces.scale.subsamples:
            return super().conclusion(pictures)
        scores, chosen = self.of_subsamples, [*BELOW, BFBP, "SJF", BALANCED]
        for measure, label in LABELS.items():
            by_day = {row: scores.by_day(row, measure) for row in chosen}
            figure = draw_boxes(by_day, label, logarithmic=measure == WAIT)
            save_figure(figure, pictures / f"{measure}-subsamples.png")
        values = {**super().values(), "found": self, "plan": self.plan}
        text = rendered("masked_ppo/subsamples.md.jinja", **values)
        return Conclusion(list(balanced_targets(scores, BALANCED, self.rivals_of_balanced)), text)

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
        return {**super().values(), "jobs": jobs}

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Yield the figures with their names."""
        for measure, label in LABELS.items():
            for name, scores in self.day_sets.items():
                values = {row: scores.by_day(row, measure) for row in self.rows(measure)}
                yield f"{measure}-{name}", draw_boxes(values, label, logarithmic=measure == WAIT)
        for group in self.agents:
            curves: dict[str, dict[str, Curve]] = {}
            for who in self.contest.contestants:
                if who.learner is not None and self.contest.rows[who.name].group == group:
                    _, metric, _ = who.learner.name.split("-")
                    curves.setdefault(metric, {})[who.learner.name] = self.curve(who.learner)
            lists = {metric: list(of_agents.values()) for metric, of_agents in curves.items()}
            yield f"training-{group}", draw_training_curves(lists)

    def targets(self) -> Iterator[Target]:
        """Yield the targets."""
        published = self.plan.published
        yield from baseline_targets(self.day_sets["test"], self.groups[0], published)
        reduction = published["reduction"].number(BFBP, WAIT)
        for group in self.agents:
            rows = self.rows_of(group, WAIT)[0], self.rows_of(group, UTILISATION)[0]
            yield from family_targets(group, rows, self.day_sets, reduction, self.groups)
