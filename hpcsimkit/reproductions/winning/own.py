"""Schedulers at no longer longest wait against the strongest heuristics, over logs with queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.tables import Table
from hpcsimkit.reproductions.judged_logs import Judged, JudgedLog
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.targets import Conclusion, Target
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.reproductions.winning.statistics import Blocks, Pooled, pooled

RIVAL = "unicef+easy"
"""The policy to which all ratios are."""

TESTS = "+tests(seconds=300)"
RECIPE = "predicted-aging"

GOALS = {
    RECIPE: {"slowdown": 0.87, "wait": 1.0, "longest": 1.05},
    f"{RIVAL}{TESTS}": {"slowdown": 0.60, "wait": 0.97, "longest": 1.0},
    f"{RECIPE}{TESTS}": {"slowdown": 0.53, "wait": 0.97, "longest": 1.0},
}
"""Largest ratio of each measure of a policy to that of UNICEF."""


class OwnReproduction(PaperReproduction):
    """The measurement: the same policies on each log."""

    def prepare(self) -> Iterator[str]:
        """Read the logs and choose their loads; yield a line on each."""
        yield from self.traces.lines()
        if not self.traces.counted:
            raise UsageError(f"winning needs {self.logs_needed}; found none with queues that drain")
        yield f"{len(self.rows)} policies on {len(self.traces.counted)} logs"

    @property
    def rows(self) -> Sequence[str]:
        """The policies, the most important ones first."""
        scale = self.traces.scale
        return [*scale.policies, *(scale.further if scale.full else ())]

    def stages(self) -> Sequence[Sequence[Task]]:
        """Return all simulations, the most important policies first."""
        return [[Judged(log, policy, self.seed) for policy in self.rows for log in self.traces.counted]]

    def conclude(self, store: Store, pictures: Path) -> Conclusion:
        """Return the tables and the targets."""
        found = Found(self, store)
        text = rendered("winning/report.md.jinja", title=self.title, plan=self, found=found)
        return Conclusion(list(found.targets()), text)


class Found:
    """What was measured.

    Parameters
    ----------
    plan : OwnReproduction
        The measurement.
    store : Store
        The outcomes of its tasks.
    """

    def __init__(self, plan: OwnReproduction, store: Store) -> None:
        self._logs: Sequence[JudgedLog] = plan.traces.counted
        self._rows = plan.rows
        self._plan = plan
        self._outcomes = {
            (log.name, policy): store.outcome(Judged(log, policy, plan.seed))
            for log in self._logs
            for policy in plan.rows
        }

    def pooled(self, policy: str, metric: str, rival: str = RIVAL) -> Pooled:
        """Return the ratios of a policy to a rival over all logs."""
        if metric == "longest":
            ratios = [
                self._of(log, policy)["longest"] / self._of(log, rival)["longest"] for log in self._logs
            ]
            return pooled(ratios)
        blocks = [
            Blocks(*(np.array(self._of(log, each)[metric]) for each in (policy, rival))) for log in self._logs
        ]
        return pooled([each.ratio for each in blocks], blocks, self._plan.seed)

    def lost(self, policy: str) -> float:
        """Return the mean share of lost work over the logs."""
        return float(np.mean([self._of(log, policy)["lost"] for log in self._logs]))

    def _of(self, log: JudgedLog, policy: str) -> dict[str, Any]:
        outcome: dict[str, Any] = self._outcomes[log.name, policy]
        return outcome

    # --- tables ----------------------------------------------------------------------------------------

    def _ratios(self, policy: str, rival: str = RIVAL) -> tuple[Pooled, Pooled, Pooled]:
        """Return the ratios of the slowdown, the wait and the longest wait of a policy to a rival."""
        slowdown, wait, longest = (
            self.pooled(policy, measure, rival) for measure in ("slowdown", "wait", "longest")
        )
        return slowdown, wait, longest

    @property
    def ratios(self) -> Table:
        """Ratios of all policies to the baseline, over all logs."""
        rows = []
        for policy in self._rows[1:]:
            slowdown, wait, longest = self._ratios(policy)
            mark, lost = "**" * slowdown.is_better, self.lost(policy)
            times = [f"{slowdown.p:.3f}", f"{slowdown.won} of {slowdown.logs}", wait.text, f"{wait.p:.3f}"]
            last = [f"{longest.mean:.2f}", f"{longest.p:.3f}", f"{100 * lost:.2f} %" if lost else "-"]
            rows.append([f"`{policy}`", f"{mark}{slowdown.text}{mark}", *times, *last])
        columns = ("policy", "slowdown", "p", "logs won", "wait", "p", "longest wait", "p", "lost work")
        return Table(columns, rows)

    @property
    def with_tests(self) -> Table:
        """Ratios of the baselines with tests to the same ones without."""
        rows = []
        for rival in (each for each in self._plan.traces.scale.tested if f"{each}{TESTS}" in self._rows):
            slowdown, wait, longest = self._ratios(f"{rival}{TESTS}", rival)
            won = f"{slowdown.won} of {slowdown.logs}"
            means = (f"{each.mean:.2f}" for each in (wait, longest))
            rows.append([f"`{rival}`", slowdown.text, f"{slowdown.p:.3f}", won, *means])
        return Table(("policy", "slowdown", "p", "logs won", "wait", "longest wait"), rows)

    @property
    def by_log(self) -> Table:
        """The baseline on each log, and the ratios of the main policies to it."""
        main, rows = self._plan.traces.scale.by_log, []
        for log in self._logs:
            rival = self._of(log, RIVAL)
            jobs, slowdown, wait = (sum(rival[name]) for name in ("jobs", "slowdown", "wait"))
            ratios = (sum(self._of(log, policy)["slowdown"]) / slowdown for policy in main)
            times = [f"{slowdown / jobs:.1f}", f"{wait / jobs / 3600:.2f}", f"{rival['longest'] / 3600:.0f}"]
            cells = [log.name, f"{log.load:.2f}", grouped(jobs), *times]
            rows.append([*cells, *(f"{ratio:.2f}" for ratio in ratios)])
        columns = ("log", "load", "jobs", "UNICEF: slowdown", "wait [h]", "longest [h]")
        return Table((*columns, *(f"`{policy}`" for policy in main)), rows)

    # --- targets ---------------------------------------------------------------------------------------

    def targets(self) -> Iterator[Target]:
        """Yield the targets: ratios to UNICEF, and lost work."""
        yield Target("logs in a stable state [at least 8]", 8, len(self._logs), None, len(self._logs) >= 8)
        for policy, goals in GOALS.items():
            for measure, goal in goals.items():
                yield from self._at_most(policy, measure, goal)
        for policy in (each for each in GOALS if each.endswith(TESTS)):
            lost = 100 * self.lost(policy)
            yield Target(f"{policy}: lost work [%, at most 1]", 1.0, lost, None, lost <= 1)

    def _at_most(self, policy: str, measure: str, goal: float) -> Iterator[Target]:
        found = self.pooled(policy, measure)
        what = f"{policy}: {measure} / that of {RIVAL} [at most {goal}]"
        yield Target(what, goal, found.mean, None, found.mean <= goal)
        if measure == "slowdown":
            yield Target(f"{policy}: p over logs [below 0.05]", 0.05, found.p, None, found.p < 0.05)
            what = f"{policy}: upper end of the interval [below 1]"
            yield Target(what, 1.0, found.high, None, found.high < 1)
