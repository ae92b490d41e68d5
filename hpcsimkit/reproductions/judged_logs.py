"""Logs as judges of schedulers: the load is chosen on the first two thirds, and the last third is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.results_folder import file_name
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Ended
from hpcsimkit.experiments.console import grouped
from hpcsimkit.experiments.learn.periods import WEEK, Periods
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.policies import EASY
from hpcsimkit.reproductions.plans.logs import Logs, each_once, name_among
from hpcsimkit.reproductions.plans.parts import KIT
from hpcsimkit.reproductions.plans.plan import BY_FILE
from hpcsimkit.reproductions.sequences import SequenceSet
from hpcsimkit.results.result import Result
from hpcsimkit.workloads import read_swf

REFERENCE = Pipeline(backfiller=EASY())
"""The policy by which the load is chosen: FCFS with EASY."""

LEAST_WAIT = 1800
"""Mean wait of the reference on the past from which a log has queues [s]."""

STEP, HIGHEST = 1.1, 3.0
"""Factor between the loads that are tried, and the highest one."""

FEW_DAYS, SHORT_BLOCK = 40, 3
"""Number of judged days below which blocks are short, and their days."""

LEAST_WEEKS = 9
"""Number of weeks of a log, such that three are judged."""

DAY = 86_400


@dataclass(frozen=True)
class JudgedLog:
    """A log: its first two thirds are warm start, and choose the load; its last third is judged.

    Parameters
    ----------
    path : Path
        File in the Standard Workload Format.
    weeks : int
        Number of weeks, from the first submission; 0 for all.
    """

    path: Path
    weeks: int

    @property
    def name(self) -> str:
        """Name of the file without its endings."""
        return self.path.name.removesuffix(".gz").removesuffix(".swf")

    @cached_property
    def recorded(self) -> Workload:
        """The log, or its first weeks, at its own load."""
        log = read_swf(self.path)
        log = log if log.machine_size is None else log.fitting(log.machine_size)
        if log.span < LEAST_WEEKS * WEEK:
            raise UsageError(f"{self.path}: {LEAST_WEEKS} weeks are needed, found {log.span / WEEK:.1f}")
        if self.weeks:
            begin = int(log.submit_time.min())
            log = log.window(begin, begin + self.weeks * WEEK)
        return log

    @cached_property
    def load(self) -> float:
        """Factor of the load: the lowest one tried at which the jobs of the past wait, by the reference."""
        factor = 1.0
        while self._past_wait(factor) < LEAST_WAIT and factor * STEP <= HIGHEST:
            factor *= STEP
        return factor

    def _past_wait(self, factor: float) -> float:
        past = self.recorded.window(int(self.recorded.submit_time.min()), Periods.of(self.recorded).test)
        return float(Scenario(past.scale_load(factor)).simulation(REFERENCE).run().wait_time.mean())

    @cached_property
    def jobs(self) -> Workload:
        """The jobs at the chosen load."""
        return self.recorded if self.load == 1 else self.recorded.scale_load(self.load)

    @cached_property
    def judged(self) -> NDArray[np.bool_]:
        """Which jobs are judged: those submitted in the last third."""
        return Periods.of(self.jobs).masks(self.jobs)["test"]

    @cached_property
    def block(self) -> NDArray[np.int64]:
        """Number of the block in which each judged job is submitted: its week, or three days of a few."""
        submit = self.jobs.submit_time[self.judged]
        few = submit.max() - submit.min() < FEW_DAYS * DAY
        _, block = np.unique(
            (submit - submit.min()) // (SHORT_BLOCK * DAY if few else WEEK), return_inverse=True
        )
        return block.astype(np.int64)

    @cached_property
    def drains(self) -> bool:
        """Whether, by the reference, no job waits at some time in the second half of the judged part."""
        result = Scenario(self.jobs).simulation(REFERENCE).run()
        submit, start = result.submit_time, result.start_time
        middle = (int(submit[self.judged].min()) + int(submit.max())) // 2
        order = np.argsort(submit, kind="stable")
        waiting_until = np.maximum.accumulate(start[order])
        idle = (waiting_until[:-1] < submit[order][1:]) & (submit[order][1:] > middle)
        return bool(idle.any())

    @cached_property
    def times_are_known(self) -> bool:
        """Whether most requested times are run times, so that there is nothing to predict."""
        log = self.recorded
        return bool((log.requested_time == np.maximum(log.run_time, 1)).mean() > 0.5)

    @property
    def reason_left_out(self) -> str:
        """Reason why the log says nothing about schedulers, or nothing."""
        if self.times_are_known:
            return "its requested times are run times"
        return "" if self.drains else "its queue does not drain"

    def line(self) -> str:
        """Return a line on the jobs and their load."""
        if self.reason_left_out:
            return f"{self.name}: left out, {self.reason_left_out}"
        jobs, judged = grouped(len(self.jobs)), grouped(int(self.judged.sum()))
        return f"{self.name}: {jobs} jobs at {self.load_in_words}, {judged} of them judged"

    @property
    def load_in_words(self) -> str:
        """The factor of the load in words."""
        return "its own load" if self.load == 1 else f"{self.load:.2f} times its load"


@dataclass(frozen=True)
class JudgedLogs(Logs):
    """The logs of a measurement."""

    @cached_property
    def all(self) -> Sequence[JudgedLog]:
        """Logs in the given order, each once."""
        return each_once([JudgedLog(path, self.scale.weeks) for path in self.paths])

    @cached_property
    def counted(self) -> Sequence[JudgedLog]:
        """Logs in a stable state."""
        return [log for log in self.all if not log.reason_left_out]


class Judged(Task):
    """Simulation of a policy on a whole log, of which the last third is judged.

    Parameters
    ----------
    log : JudgedLog
        The log.
    policy : str
        Name of a policy of the kit.
    seed : int
        Random seed of the run.
    """

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
        return {"jobs": self.log.jobs, "policy": KIT.policy_named(self.policy), "seed": self.seed}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and return sums over the blocks of the judged jobs."""
        scenario, policy = Scenario(self.log.jobs, Setup(seed=self.seed)), KIT.policy_named(self.policy)
        result = scenario.simulation(policy, [Ended(tell)]).run()
        judged = self.log.judged

        def sums(values: NDArray[np.float64]) -> list[float]:
            return np.bincount(self.log.block, values[judged]).tolist()

        return {
            "slowdown": sums(result.bounded_slowdown()),
            "wait": sums(result.wait_time),
            "jobs": np.bincount(self.log.block).tolist(),
            "longest": float(result.wait_time[judged].max()),
            "lost": lost_share(result, judged),
            "schedule_sha256": result.hash,
        }


def lost_share(result: Result, jobs: NDArray[np.bool_]) -> float:
    """Return the lost work of some jobs as a share of their work."""
    if result.attempts is None:
        return 0.0
    workload = result.workload
    work = float((workload.run_time * workload.size)[jobs].sum())
    return float(result.attempts.lost_work(workload)[jobs].sum()) / work


LEARN_FROM = 0.75
"""Share of the past of a log to learn from; agents are chosen by the rest."""


@dataclass(frozen=True)
class LearningLog(JudgedLog):
    """A log whose past has jobs to learn from, the first three quarters, and jobs to choose an agent by.

    Parameters
    ----------
    seed : int
        Random seed of its runs.
    least : int
        Minimum number of jobs to learn from.
    """

    seed: int
    least: int

    @property
    def name(self) -> str:
        """Name in tables."""
        return name_among(self.path, BY_FILE)

    @property
    def variables(self) -> dict[str, Any]:
        """Variables of a plan that depend on the log."""
        return {"log": self}

    @cached_property
    def _past(self) -> tuple[Workload, int]:
        """The jobs before the judged ones, and the number of those to learn from."""
        past = self.jobs.select(~self.judged)
        return past, int(LEARN_FROM * len(past))

    @cached_property
    def learn(self) -> Workload:
        """Training jobs."""
        past, many = self._past
        if many < self.least:
            raise UsageError(f"{self.path}: {self.least} jobs to learn from are needed, found {many}")
        return past.first(many)

    @cached_property
    def choose(self) -> Workload:
        """Jobs to choose by."""
        past, many = self._past
        return past.first(len(past) - many, many)

    @cached_property
    def whole(self) -> SequenceSet:
        """All jobs in one run, of which the last third is judged."""
        return SequenceSet(f"{self.name}-whole", (Scenario(self.jobs),))

    @property
    def before_judged(self) -> int:
        """Time from the first submission to the first judged week [s]."""
        periods = Periods.of(self.jobs)
        return periods.test - periods.past

    def line(self) -> str:
        """Return a line on the jobs and their load."""
        parts = [len(self.learn), len(self.choose), int(self.judged.sum())]
        words = ("to learn from", "to choose by", "that are judged")
        numbers = ", ".join(f"{grouped(many)} {what}" for many, what in zip(parts, words, strict=True))
        return f"{self.name}: jobs at {self.load_in_words}, {numbers}"


@dataclass(frozen=True)
class LearningLogs(Logs):
    """The logs of a study of a learned scheduler, with jobs for two episodes or more to learn from."""

    learn_from: ClassVar[float] = LEARN_FROM

    @cached_property
    def all(self) -> Sequence[LearningLog]:
        """Logs in the given order, each once."""
        scale = self.scale
        least = 2 * scale.plus_window
        return each_once([LearningLog(path, scale.plus_weeks, self.seed, least) for path in self.paths])
