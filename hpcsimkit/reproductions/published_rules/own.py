"""Parts of published rules alone: swapped estimates, minimal cases, and the variation over seeds."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.experiments.tables import Table
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import DirlabOrder
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies.dirlab import published, textbook
from hpcsimkit.reproductions.cells import number
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.findings import PaperFindings
from hpcsimkit.reproductions.plans.logs import PaperLog
from hpcsimkit.reproductions.scores import Scores
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.reproductions.targets import Target
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.dirlab import CODES, read_published

Floats = NDArray[np.float64]

REPEATS = 5
"""Number of runs of each sequence with a stochastic policy."""


# --- sequences --------------------------------------------------------------------------------------------


@part
def swapped(log: PaperLog) -> SequenceSet:
    """Return the test sequences with requested times where the published code has run times, and vice versa.

    Where the code has run times, requested times are those of RLBackfilling, which are at least run times.
    """
    times = np.maximum(log.log.run_time, 1)
    if CODES[log.plan.code].estimate == "run":
        asked = read_published(log.path, "rlbackfilling")
        known = dict(zip(asked.id.tolist(), asked.requested_time.tolist(), strict=True))
        ids = log.log.id.tolist()
        times = np.array([known.get(job, time) for job, time in zip(ids, times.tolist(), strict=True)])
    other = replace(log.log, columns={**log.log.columns, "requested_time": times})
    return log.sequences_of(other, log.starts(log.test_seed))


@part
def repeated(log: PaperLog) -> SequenceSet:
    """Return the test sequences, each several times for runs of a stochastic policy."""
    sequences = log.drawn
    return replace(sequences, scenarios=tuple(each for each in sequences.scenarios for _ in range(REPEATS)))


@part
def of_seeds(log: PaperLog, seeds: int) -> SequenceSet:
    """Return the sequences of the published test with several seeds from 0 on, seed by seed."""
    return log.sequences_of(log.log, [start for seed in range(seeds) for start in log.starts(seed)])


# --- minimal cases ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A few jobs with different schedules under published and textbook semantics.

    A job is (submission [s], run time [s], nodes, requested time [s]); `published` and `textbook` are the
    start times [s] of the published programs and of the textbook.
    """

    name: str
    rule: str
    nodes: int
    jobs: Sequence[Sequence[int]]
    code: str
    order: str
    backfilling: bool
    published: Sequence[int]
    textbook: Sequence[int]

    @property
    def scenario(self) -> Scenario:
        """Jobs on the machine, under the published event semantics."""
        submit, run, nodes, requested = zip(*self.jobs, strict=True)
        columns = {"submit_time": submit, "run_time": run, "nodes": nodes, "requested_time": requested}
        return Scenario(
            Workload(columns, machine_size=self.nodes, name=self.name), Setup(event_order=DirlabOrder())
        )

    @cached_property
    def schedules(self) -> tuple[Result, Result]:
        """Schedules of the published program, and of the same base scheduler under textbook semantics."""
        by_published, by_textbook = self._by(published), self._by(textbook)
        other = Scenario(self.scenario.workload)
        return self.scenario.simulation(by_published).run(), other.simulation(by_textbook).run()

    def _by(self, rules: Callable[..., Pipeline]) -> Pipeline:
        return rules(self.code, self.order, backfilling=self.backfilling)

    @property
    def equal(self) -> int:
        """Number of schedules, of the two, that are as expected."""
        pairs = zip(self.schedules, (self.published, self.textbook), strict=True)
        return sum(result.start_time.tolist() == list(times) for result, times in pairs)


CASES = tuple(
    Case(name, **case)
    for name, case in tomllib.loads(
        Path(__file__).with_name("minimal_cases.toml").read_text(encoding="utf-8")
    ).items()
)
"""All minimal cases, from the file beside this one."""


# --- seeds ------------------------------------------------------------------------------------------------


def spread_of_ratios(means: Floats) -> float:
    """Return the factor that bounds 95 % of the ratios of two tests of a scheduler with different seeds.

    >>> spread_of_ratios(np.array([100.0, 100.0, 120.0]))
    1.2
    """
    ratios = means[:, None] / means[None, :]
    others = ratios[~np.eye(len(means), dtype=bool)]
    return float(np.percentile(np.maximum(others, 1 / others), 95, method="higher"))


class OwnFindings(PaperFindings):
    """Measurements of schedulers under published and textbook rules, and minimal cases."""

    def targets(self) -> Iterator[Target]:
        yield from super().targets()
        for case in CASES:
            what = f"{case.name}, {case.rule}: schedules equal, published and textbook"
            yield Target(what, 2.0, float(case.equal), None, case.equal == 2)

    def seeds_table(self) -> Table:
        """Return the variation of the means of published tests over seeds."""
        return Table.of([self._of_seeds(each) for name in SEEDS for each in self.of(name)])

    def _of_seeds(self, scores: Scores) -> dict[str, str]:
        means, anew = scores.of("published"), scores.of("textbook")
        table, column = SEEDS[scores.contest.protocol]
        log = scores.contest.trace.name  # SchedInspector knows one log of Lublin's model only
        known = "Lublin" if table.startswith("schedinspector") and log == "Lublin-1" else log
        paper = self.quantities(scores).published(table, known, column)
        mean, spread = float(means.mean()), float(means.std(ddof=1))
        low, high = np.percentile(anew / means, [2.5, 97.5])
        below = "" if np.isnan(paper) else f"{np.count_nonzero(means < paper)} of {len(means)}"
        variables = scores.contest.variables
        return {
            "scheduler": f"{log} {variables['order'].upper()}" + " + EASY" * variables["backfilling"],
            "mean over seeds": number(mean),
            "standard deviation": number(spread),
            "of the mean": f"{100 * spread / mean:.0f} %",
            "least": number(float(means.min())),
            "most": number(float(means.max())),
            "*paper*": number(paper),
            "seeds below it": below,
            "two seeds differ by a factor of": f"{spread_of_ratios(means):.2f}",
            "textbook / published": f"{anew.mean() / mean:.2f}",
            "95 % of seeds": f"{low:.2f} to {high:.2f}",
        }


SEEDS = {
    "seeds-rlbackfilling": ("rlbackfilling:table_4", "fcfs"),
    "seeds-schedinspector": ("schedinspector:table_4", "base"),
}
"""Published table and column of the comparisons of seeds."""
