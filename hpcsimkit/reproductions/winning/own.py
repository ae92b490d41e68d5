"""Schedulers at no longer longest wait against the strongest heuristics, over logs with queues."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Ended
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.parts.registry import policy_named
from hpcsimkit.experiments.parts.trust import Trust
from hpcsimkit.experiments.tables import Table
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.reproductions.judged_logs import JudgedLog
from hpcsimkit.reproductions.plans.catalogue import part
from hpcsimkit.reproductions.plans.logs import Logs, each_once
from hpcsimkit.reproductions.plans.planned import PaperReproduction
from hpcsimkit.reproductions.targets import Conclusion, Target
from hpcsimkit.reproductions.templates import rendered
from hpcsimkit.reproductions.winning.statistics import Blocks, Pooled, pooled
from hpcsimkit.results.result import Result

Floats = NDArray[np.float64]

REFERENCE, RIVAL = "fcfs+easy", "unicef+easy"
"""The policy by which the load is chosen, and the one to which all ratios are."""

TESTS = "+tests(seconds=300)"

RIVALS = (RIVAL, "xfactor+easy", "wfp3+easy", REFERENCE, "fcfs+easy-sjf")
GUARDED = "unicef+guarded-wait+easy"
RECIPE = "predicted-aging"
AGED = "aged(mean=1)+easy-weighted(mean=1)"

NEW = (f"{RIVAL}{TESTS}", RECIPE, f"{RECIPE}{TESTS}", f"{AGED}+history")
"""The new policies by name."""

MAIN = (*RIVALS, GUARDED, f"{GUARDED}{TESTS}", *NEW)
"""Policies by name: the baselines, the strongest one with the guard of the recipe, and the new ones."""

BY_RULES = (GUARDED, "xfactor+guarded-wait+easy", "unicef+guarded-wait+easy-weighted(mean=1)+live-history")
"""The strongest heuristics with the rules of the recipe: its guard, and all of them but its order."""

PARTS = (
    f"{AGED}+live-history",
    *BY_RULES[1:],
    *(f"{rival}{TESTS}" for rival in (*RIVALS[1:], *BY_RULES[1:])),
)
"""The new rules one by one, rivals with the same rules, and the other rivals with tests."""


def policy_of(name: str) -> Policy:
    """Return a policy of the kit by its name."""
    return policy_named(name, None, Trust(()))


@part
@dataclass(frozen=True)
class WinningLogs(Logs):
    """The logs of the measurement."""

    @cached_property
    def all(self) -> Sequence[JudgedLog]:
        """Logs in the given order, each once."""
        return each_once([JudgedLog(path, self.scale.weeks) for path in self.paths])

    @cached_property
    def counted(self) -> Sequence[JudgedLog]:
        """Logs in a stable state."""
        return [log for log in self.all if not log.reason_left_out]


class Judged(Task):
    """Simulation of a policy on a whole log, of which the last third is judged."""

    kind = "simulation"

    def __init__(self, log: JudgedLog, policy: str, seed: int) -> None:
        self.log = log
        self.policy = policy
        self.seed = seed

    @property
    def name(self) -> str:
        """Log and policy."""
        return f"{self.log.name}-{file_name(self.policy)}"

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.log.jobs)

    def inputs(self) -> Any:
        """Return the jobs, the policy and the seed."""
        return {"jobs": self.log.jobs, "policy": policy_of(self.policy), "seed": self.seed}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and return sums over the blocks of the judged jobs."""
        scenario = Scenario(self.log.jobs, Setup(seed=self.seed))
        result = scenario.simulation(policy_of(self.policy), [Ended(tell)]).run()
        judged = self.log.judged

        def sums(values: Floats) -> list[float]:
            return np.bincount(self.log.block, values[judged]).tolist()

        return {
            "slowdown": sums(result.bounded_slowdown()),
            "wait": sums(result.wait_time),
            "jobs": np.bincount(self.log.block).tolist(),
            "longest": float(result.wait_time[judged].max()),
            "lost": _lost(result, judged),
            "schedule_sha256": result.hash,
        }


def _lost(result: Result, judged: NDArray[np.bool_]) -> float:
    """Return the lost work of some jobs as a share of their work."""
    nodes = result.workload.column("nodes")
    work = float((result.workload.run_time * nodes)[judged].sum())
    found = result.attempts
    if found is None:
        return 0.0
    return float((found.lost * nodes[found.job])[judged[found.job]].sum()) / work


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
        return (*MAIN, *PARTS) if self.traces.scale.full else MAIN

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
        self._seed = plan.seed
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
        return pooled([each.ratio for each in blocks], blocks, self._seed)

    def lost(self, policy: str) -> float:
        """Return the mean share of lost work over the logs."""
        return float(np.mean([self._of(log, policy)["lost"] for log in self._logs]))

    def _of(self, log: JudgedLog, policy: str) -> dict[str, Any]:
        outcome: dict[str, Any] = self._outcomes[log.name, policy]
        return outcome

    # --- tables ----------------------------------------------------------------------------------------

    @property
    def ratios(self) -> Table:
        """Ratios of all policies to the baseline, over all logs."""
        rows = []
        for policy in self._rows[1:]:
            slowdown, wait, longest = (
                self.pooled(policy, metric) for metric in ("slowdown", "wait", "longest")
            )
            mark = "**" * slowdown.is_better
            rows.append(
                [
                    f"`{policy}`",
                    f"{mark}{slowdown.mean:.2f} [{slowdown.low:.2f}, {slowdown.high:.2f}]{mark}",
                    f"{slowdown.p:.3f}",
                    f"{slowdown.won} of {slowdown.logs}",
                    f"{wait.mean:.2f} [{wait.low:.2f}, {wait.high:.2f}]",
                    f"{wait.p:.3f}",
                    f"{longest.mean:.2f}",
                    f"{longest.p:.3f}",
                    f"{100 * self.lost(policy):.2f} %" if self.lost(policy) else "-",
                ]
            )
        columns = ("policy", "slowdown", "p", "logs won", "wait", "p", "longest wait", "p", "lost work")
        return Table(columns, rows)

    @property
    def with_tests(self) -> Table:
        """Ratios of the baselines with tests to the same ones without."""
        rows = []
        for rival in (each for each in (*RIVALS, *BY_RULES, RECIPE) if f"{each}{TESTS}" in self._rows):
            slowdown, wait, longest = (
                self.pooled(f"{rival}{TESTS}", metric, rival) for metric in ("slowdown", "wait", "longest")
            )
            rows.append(
                [
                    f"`{rival}`",
                    f"{slowdown.mean:.2f} [{slowdown.low:.2f}, {slowdown.high:.2f}]",
                    f"{slowdown.p:.3f}",
                    f"{slowdown.won} of {slowdown.logs}",
                    f"{wait.mean:.2f}",
                    f"{longest.mean:.2f}",
                ]
            )
        return Table(("policy", "slowdown", "p", "logs won", "wait", "longest wait"), rows)

    @property
    def by_log(self) -> Table:
        """The baseline on each log, and the ratios of the main policies to it."""
        main = (GUARDED, f"{GUARDED}{TESTS}", *NEW)
        rows = []
        for log in self._logs:
            rival = self._of(log, RIVAL)
            jobs = sum(rival["jobs"])
            ratios = [sum(self._of(log, policy)["slowdown"]) / sum(rival["slowdown"]) for policy in main]
            rows.append(
                [
                    log.name,
                    f"{log.load:.2f}",
                    grouped(jobs),
                    f"{sum(rival['slowdown']) / jobs:.1f}",
                    f"{sum(rival['wait']) / jobs / 3600:.2f}",
                    f"{rival['longest'] / 3600:.0f}",
                    *(f"{ratio:.2f}" for ratio in ratios),
                ]
            )
        columns = ("log", "load", "jobs", "UNICEF: slowdown", "wait [h]", "longest [h]")
        return Table((*columns, *(f"`{policy}`" for policy in main)), rows)

    # --- targets ---------------------------------------------------------------------------------------

    def targets(self) -> Iterator[Target]:
        """Yield the targets: ratios to UNICEF, and lost work."""
        yield Target("logs in a stable state [at least 8]", 8, len(self._logs), None, len(self._logs) >= 8)
        yield from self._at_most(RECIPE, slowdown=0.87, wait=1.0, longest=1.05)
        yield from self._at_most(f"{RIVAL}{TESTS}", slowdown=0.60, wait=0.97, longest=1.0)
        yield from self._at_most(f"{RECIPE}{TESTS}", slowdown=0.53, wait=0.97, longest=1.0)
        for policy in (f"{RIVAL}{TESTS}", f"{RECIPE}{TESTS}"):
            lost = 100 * self.lost(policy)
            yield Target(f"{policy}: lost work [%, at most 1]", 1.0, lost, None, lost <= 1)

    def _at_most(self, policy: str, **goals: float) -> Iterator[Target]:
        for metric, goal in goals.items():
            found = self.pooled(policy, metric)
            yield Target(
                f"{policy}: {metric} / that of {RIVAL} [at most {goal}]",
                goal,
                found.mean,
                None,
                found.mean <= goal,
            )
            if metric == "slowdown":
                yield Target(f"{policy}: p over logs [below 0.05]", 0.05, found.p, None, found.p < 0.05)
                yield Target(
                    f"{policy}: upper end of the interval [below 1]", 1.0, found.high, None, found.high < 1
                )
