"""Choices of an agent beside those of the heuristic behind its seat: how often and where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.agents.seats import Observe
from hpcsimkit.agents.spaces.shares import shares_of
from hpcsimkit.jobs.job import Job
from hpcsimkit.kernel.decision import ABOUT_ONE_JOB, Decision
from hpcsimkit.kernel.system import System

FEATURES = (
    "wait so far [s]",
    "requested time [s]",
    "size [share of the machine]",
    "size x requested time [s]",
    "waiting jobs",
    "free share of the machine",
)
"""Features of a decision: the first `OF_JOB` are those of a job, the others those of the cluster."""

OF_JOB = 4


class Choices:
    """Record of an agent's decisions beside the answers of the heuristic behind its seat.

    At seats that choose jobs (order, backfiller, dispatch, two levels), the features are those of the agent's
    job and of the heuristic's job where they choose different ones. At seats that decide on a given job
    (inspector, placement), they are those of the decisions in which the agent differs, and of the others.
    """

    def __init__(self) -> None:
        self.decisions = self.differing = self.declined = 0
        self.own: list[list[float]] = []
        self.others: list[list[float]] = []

    def bind(self, system: System) -> Observe:
        """Return the function that records the decisions of a run."""
        shares, workload, cluster = shares_of(system), system.workload, system.cluster

        def features(job: Job) -> list[float]:
            row = job.index
            share, requested = float(shares[row]), int(workload.requested_time[row])
            return [system.now - job.submit_time, requested, share, share * requested]

        def observe(decision: Decision, position: int) -> None:
            if len(decision.options) == 1:
                return
            chosen, usual = decision.options[position], decision.default
            differs = position != decision.position(usual)
            self.decisions += 1
            self.differing += differs
            self.declined += chosen is None
            if decision.stage in ABOUT_ONE_JOB:
                assert decision.job is not None
                state = [len(system.queue), cluster.share(system.free)]
                (self.own if differs else self.others).append([*features(decision.job), *state])
            elif (jobs := (_job(chosen), _job(usual)))[0] is not jobs[1] and None not in jobs:
                self.own.append(features(jobs[0]))  # type: ignore[arg-type]
                self.others.append(features(jobs[1]))  # type: ignore[arg-type]

        return observe

    def record(self) -> dict[str, Any]:
        """Return numbers of decisions, and the mean features of both kinds; None for a kind without any."""
        counts = {name: getattr(self, name) for name in ("decisions", "differing", "declined")}
        return {**counts, "own": _means(self.own), "others": _means(self.others)}


def _job(option: Any) -> Job | None:
    """Return the job of an option; None if it declines."""
    return option if option is None or isinstance(option, Job) else option[0]


def _means(rows: list[list[float]]) -> list[float] | None:
    means: NDArray[np.float64] = np.mean(rows, axis=0) if rows else np.zeros(0)
    return means.tolist() or None
