"""Masked PPO: days of the logs, runs on them, and the paper's significance tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.masked_ppo.environments import BASELINE, OnlyThePast
from hpcsimkit.agents.masked_ppo.machines import NINE_MACHINES
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import WorkloadError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import Logs
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import Meeting, SequenceSet
from hpcsimkit.results.resource_metrics import resource_utilisation, snapshot_utilisation
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.readers.beocat import days, in_queue_order, training_set
from hpcsimkit.workloads.readers.cells import clock_of
from hpcsimkit.workloads.readers.job_table import read_job_table

Floats = NDArray[np.float64]
Days = Mapping[date, Workload]

WAIT, UTILISATION, WEIGHTED = MEASURES = ("wait", "utilisation", "weighted")
"""Mean wait [min], the paper's utilisation [%], and the one weighted by time and capacity [%]."""

TIMEZONE = "America/Chicago"
TOO_LARGE = "fit none of the nine machines"
MANY = 10**9

BUSY = 3600
"""Minimum mean wait under the baseline of a busy training day [s]."""

# --- days -----------------------------------------------------------------------------------------------


def _runnable(workload: Workload) -> Workload:
    """Return the jobs that fit some machine, in queue order."""
    queued = in_queue_order(workload)  # all jobs: without the others, the heap would break ties differently
    return queued.without(NINE_MACHINES.misfits(queued), TOO_LARGE)


def _sequences(name: str, days: Iterable[Workload]) -> SequenceSet:
    return SequenceSet(name, tuple(Scenario(jobs, Setup(NINE_MACHINES)) for jobs in days))


@part
class Beocat(Logs):
    """Months of Beocat in any order, and the samples drawn from them, which are its only test data."""

    name = "Beocat"

    @property
    def all(self) -> list[Beocat]:
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
        return {"log": self}

    @cached_property
    def months(self) -> list[Workload]:
        return sorted(map(self._month, self.paths), key=lambda log: int(log.submit_time.min()))

    @cached_property
    def log(self) -> Workload:
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
        return {day: jobs for day, (jobs,) in self._subsamples(self.log, 1, self.cut).items()}

    @cached_property
    def subsampled_days(self) -> Mapping[date, list[Workload]]:
        """All days from the cut on with enough jobs; several random subsamples of days with too many."""
        return self._subsamples(self.log, self.scale.subsamples_of_day, self.cut)

    @property
    def subsampled_sequences(self) -> SequenceSet:
        """The subsamples of all unseen days as sequences."""
        return _sequences("subsamples", (jobs for day in self.subsampled_days.values() for jobs in day))

    @property
    def subsample_sizes(self) -> list[int]:
        """Number of subsamples of each unseen day: a day counts once."""
        return [len(each) for each in self.subsampled_days.values()]

    @cached_property
    def training_days(self) -> list[Workload]:
        """Training days with enough jobs; days with too many jobs are subsampled several times."""
        found = self._subsamples(self.training_part, self.scale.copies)
        return [jobs for copies in found.values() for jobs in copies]

    @cached_property
    def busy_days(self) -> list[Workload]:
        """Training days with a long mean wait under the baseline, or all of them."""
        days = self.training_days
        runs = (Scenario(day, Setup(NINE_MACHINES)).simulation(BASELINE).run() for day in days)
        waits = [result.wait_time.mean() for result in runs]
        return [day for day, wait in zip(days, waits, strict=True) if wait >= BUSY] or days

    @property
    def has_training_days(self) -> bool:
        """Whether there are training days."""
        return bool(self.training_days)

    def _subsamples(self, log: Workload, copies: int, since: date = date.min) -> dict[date, list[Workload]]:
        """Return the days of a log with enough jobs; several random subsamples of those with too many."""
        found = {}
        for day, jobs in days(log, self.scale.least, MANY, TIMEZONE):
            if day >= since:
                numbers = range(copies if len(jobs) > self.scale.high else 1)
                rngs = (np.random.default_rng([self.seed, day.toordinal(), each]) for each in numbers)
                found[day] = [self._thinned(jobs, rng) for rng in rngs]
        return found

    def _thinned(self, jobs: Workload, rng: np.random.Generator) -> Workload:
        scale = self.scale
        if len(jobs) <= scale.high:
            return _runnable(jobs)
        rows = rng.choice(len(jobs), int(rng.integers(scale.low, scale.high + 1)), replace=False)
        return _runnable(jobs.select(np.sort(rows), f"{len(rows)} of {len(jobs)} jobs, by chance"))

    @property
    def test_sequences(self) -> SequenceSet:
        """Test days as sequences."""
        return _sequences("test", self.test_days.values())

    @property
    def unseen_sequences(self) -> SequenceSet:
        """Unseen days as sequences; a day in both sets has the same jobs in both."""
        return _sequences("unseen", self.unseen_days.values())

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
    """Runs of a policy on days; the outcome has a value of each measure for each day, the mean over runs."""

    @property
    def seeds(self) -> Sequence[int]:
        """Random seeds of the runs: that of the training, or several ones of a random scheduler."""
        learner = self.contestant.learner
        return range(self.seed, self.seed + self.draws) if learner is None else [learner.seed]

    @property
    def measures(self) -> tuple[str, ...]:
        return MEASURES

    def _scenarios(self, seed: int) -> Iterator[Scenario]:
        return (scenario.changed(seed=seed) for scenario in self.sequences.scenarios)

    def _measured(self, scenario: Scenario, policy: Policy) -> Mapping[str, float]:
        scheduler = policy.on(scenario.workload) if isinstance(policy, OnlyThePast) else policy
        return dict(zip(MEASURES, measured(scenario.simulation(scheduler).run()), strict=True))


def measured(result: Result) -> tuple[float, float, float]:
    """Return mean wait [min], the paper's utilisation [%], and that by time and capacity [%]."""
    begin, end = int(result.submit_time.min()), int(np.max(result.end_time))
    used = [resource_utilisation(result, name, begin, end) for name in NINE_MACHINES.resources]
    by_snapshots = snapshot_utilisation(result, begin, end)
    return float(result.wait_time.mean()) / 60, 100 * by_snapshots, 100 * float(np.mean(used))


class OwnFindings(PaperFindings):
    """Measurements of agents and baselines, with the paper's tests beside paired ones.

    The paper's p-values are reproduced if each of the twenty agents' runs counts as a sample of its own and
    each baseline's days are repeated twenty times. This counts the agents' common source of variation, the
    days, twenty times as independent. The same hypotheses are therefore tested again with one value per day,
    paired, and corrected by Holm's method.
    """

    def t_test(self, scores: Scores, row: str, other: str, measure: str) -> float:
        """Return the p-value as in the paper: over agents x days, unpaired (Welch's test, two-sided)."""
        from scipy import stats

        ours, theirs = samples(scores, row, [other], measure)
        return float(stats.ttest_ind(ours, theirs, equal_var=False).pvalue)

    def anova(self, scores: Scores, row: str, measure: str) -> tuple[int, float, float]:
        """Return the number of samples, the p-value as in the paper, and that with one value per day."""
        from scipy import stats

        groups = list(scores.contest.families("paper"))
        ours, *others = samples(scores, row, groups, measure)
        days = stats.f_oneway(scores.of(row, measure), *(scores.of(each, measure) for each in groups))
        return len(ours), float(stats.f_oneway(ours, *others).pvalue), float(days.pvalue)


def samples(scores: Scores, row: str, others: Sequence[str], measure: str) -> list[Floats]:
    """Return the values of all agents of a row, and those of others repeated to their number."""
    ours = np.concatenate([scores.values[each][measure] for each in scores.members(row)])
    by_day = [scores.of(each, measure) for each in others]
    return [ours, *(np.tile(each, len(ours) // len(each)) for each in by_day)]
