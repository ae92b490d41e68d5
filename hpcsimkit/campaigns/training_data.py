"""What a training learns from and what it is judged by: disjoint parts of logs, and windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from hpcsimkit.agents.episodes import Windows
from hpcsimkit.cluster import Cluster
from hpcsimkit.errors import UsageError
from hpcsimkit.learning import Episodes
from hpcsimkit.metrics import evaluate
from hpcsimkit.policy import Policy
from hpcsimkit.result import Result
from hpcsimkit.scenario import Scenario
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.workload import Workload

__all__ = ["Division", "Rules", "Validation", "WindowsOf", "check_lengths", "divided", "measured"]


@dataclass(frozen=True)
class Rules:
    """What runs have in common beside their jobs.

    Parameters
    ----------
    cluster : Cluster, optional
        The machines; by default the nodes of each workload.
    walltime : {"run", "kill"}
        Do jobs run to their end, or to their requested time?
    service_time : ServiceTime, optional
        Locality model.
    semantics : {"textbook", "dirlab"}
        See :mod:`hpcsimkit.semantics`.
    """

    cluster: Cluster | None = None
    walltime: Literal["run", "kill"] = "run"
    service_time: ServiceTime | None = None
    semantics: Literal["textbook", "dirlab"] = "textbook"

    def applied(self, scenario: Scenario) -> Scenario:
        """Return a scenario that is run by these rules."""
        return replace(
            scenario, walltime=self.walltime, service_time=self.service_time, semantics=self.semantics
        )


class WindowsOf(Episodes):
    """Windows of several logs, all logs equally likely, run by the same rules.

    Parameters
    ----------
    workloads : sequence of Workload
        The logs.
    jobs, warmup : int
        As in :class:`~hpcsimkit.agents.episodes.Windows`.
    rules : Rules
        How they are run.

    Raises
    ------
    UsageError
        When sampled: a log has fewer jobs.
    """

    def __init__(self, workloads: Sequence[Workload], jobs: int, rules: Rules, *, warmup: int = 0) -> None:
        self.workloads = workloads
        self.jobs = jobs
        self.rules = rules
        self.warmup = warmup

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Draw a log, and where the window begins."""
        several = len(self.workloads) > 1
        workload = self.workloads[int(rng.integers(len(self.workloads))) if several else 0]
        windows = Windows(workload, self.jobs, self.rules.cluster, warmup=self.warmup)
        return self.rules.applied(windows.sample(rng))


class Division(NamedTuple):
    """Logs, divided into jobs to learn from and jobs to be judged by; no job is in both."""

    training: list[Workload]
    validation: list[Workload]


def divided(
    workloads: Sequence[Workload], share: float, part: tuple[int, int] | None = None,
    others: Sequence[Workload] = (),
) -> Division:  # fmt: skip
    """Divide logs: the first jobs of each are for training, others for validation.

    Parameters
    ----------
    workloads : sequence of Workload
        The logs.
    share : float
        Share of each log's jobs, by submission, that is for training; the rest is for validation.
    part : (int, int), optional
        Validate on the jobs from one number to before another instead; training takes those before it, or
        fewer, as the share says.
    others : sequence of Workload
        Validate on these logs instead.

    Raises
    ------
    UsageError
        The part is not in the log, or overlaps with the jobs for training.

    Examples
    --------
    >>> w = Workload({"submit_time": range(10), "run_time": [1] * 10, "nodes": [1] * 10}, name="ten")
    >>> [len(part) for parts in divided([w], 0.8) for part in parts]
    [8, 2]
    >>> [len(part) for parts in divided([w], 1.0, part=(5, 9)) for part in parts]
    [5, 4]
    """
    sizes = [round(share * len(workload)) for workload in workloads]
    if others:
        return Division(_first(workloads, sizes), list(others))
    if part is None:
        rest = [workload.first(len(workload), size) for workload, size in zip(workloads, sizes, strict=True)]
        return Division(_first(workloads, sizes), rest)
    (workload,), (begin, end) = workloads, part
    if not 0 < begin < end <= len(workload):
        raise UsageError(
            f"{workload.name}: validation.part needs [first, end] with 0 < first < end <= {len(workload)}, "
            f"found {list(part)}"
        )
    if share == 1.0:
        sizes = [begin]
    if sizes[0] > begin:
        raise UsageError(
            f"{workload.name}: validation.part {list(part)} overlaps with the {sizes[0]} jobs for training"
        )
    return Division(_first(workloads, sizes), [workload.first(end - begin, begin)])


def _first(workloads: Sequence[Workload], sizes: Sequence[int]) -> list[Workload]:
    return [workload.first(size) for workload, size in zip(workloads, sizes, strict=True)]


class Validation:
    """Judges policies by a metric, on windows that are the same each time.

    Parameters
    ----------
    scenarios : sequence of Scenario
        The windows.
    metric : str
        A name of :data:`~hpcsimkit.metrics.METRICS` with a direction.
    """

    def __init__(self, scenarios: Sequence[Scenario], metric: str) -> None:
        self.scenarios = scenarios
        self.metric = metric

    @classmethod
    def drawn(cls, episodes: Episodes, windows: int, seed: int, metric: str) -> Validation:
        """Draw so many windows."""
        rng = np.random.default_rng(seed)
        return cls([episodes.sample(rng) for _ in range(windows)], metric)

    def mean(self, policy: Policy) -> float:
        """Return the mean of the metric over the windows.

        Raises
        ------
        UsageError
            The metric is not defined on some window.
        """
        values = [
            measured(scenario.simulation(policy).run(), scenario, [self.metric])[self.metric]
            for scenario in self.scenarios
        ]
        if not np.isfinite(values).all():
            raise UsageError(f"{self.metric} is not defined on window {int(np.argmin(np.isfinite(values)))}")
        return float(np.mean(values))


def measured(result: Result, scenario: Scenario, names: Sequence[str] | None = None) -> dict[str, float]:
    """Return metrics of a run, of the jobs after its warm-up.

    Not a number where a metric is not defined.
    """
    begin = scenario.learn_from
    warmup = 0 if begin is None else begin - int(result.submit_time.min())
    return evaluate(result, warmup=warmup, names=names)


def check_lengths(parts: Sequence[Workload], needed: int, what: str) -> None:
    """See that each part of a log has as many jobs as a window.

    Raises
    ------
    UsageError
        One has fewer.
    """
    for workload in parts:
        if len(workload) < needed:
            raise UsageError(
                f"{workload.name}: windows of {needed} jobs are needed for {what}, found {len(workload)} jobs"
            )
