"""Data of a training: disjoint parts of logs for training and validation, and windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hpcsimkit.agents.spaces.episodes import Windows
from hpcsimkit.envs.interfaces import Episodes, sampled
from hpcsimkit.envs.scenario import Scenario
from hpcsimkit.errors import UsageError
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.results.metrics import measure
from hpcsimkit.results.result import Result

RANDOM = "random agent"
"""Name of the agent with random choices, in tables of trainings and evaluations."""


class WindowsOf(Episodes):
    """Windows of several logs, all logs equally likely, run with the same settings.

    `jobs` and `warmup` are those of :class:`~hpcsimkit.agents.spaces.episodes.Windows`.
    """

    def __init__(self, workloads: Sequence[Workload], jobs: int, setup: Setup, *, warmup: int = 0) -> None:
        self.workloads = workloads
        self.jobs = jobs
        self.setup = setup
        self.warmup = warmup

    def sample(self, rng: np.random.Generator) -> Scenario:
        """Sample a log, and the start of the window."""
        several = len(self.workloads) > 1
        workload = self.workloads[int(rng.integers(len(self.workloads))) if several else 0]
        return Windows(workload, self.jobs, warmup=self.warmup).sample(rng).under(self.setup)


class Division(NamedTuple):
    """Logs, split into disjoint jobs for training and for validation."""

    training: list[Workload]
    validation: list[Workload]


def divided(
    workloads: Sequence[Workload],
    share: float,
    part: tuple[int, int] | None = None,
    others: Sequence[Workload] = (),
) -> Division:
    """Split logs: the first jobs of each are for training, others for validation.

    `share` is that of each log's jobs, by submission, for training. `part` is a range of jobs for validation
    instead, the first index and the index after the last: training uses the jobs before it, at most the given
    share. `others` are other logs for validation instead.

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
    """Validation of policies by a metric on fixed windows."""

    def __init__(self, scenarios: Sequence[Scenario], metric: str) -> None:
        self.scenarios = scenarios
        self.metric = metric

    @classmethod
    def drawn(cls, episodes: Episodes, windows: int, seed: int, metric: str) -> Validation:
        """Sample a number of windows."""
        rng = np.random.default_rng(seed)
        return cls([sampled(episodes, rng) for _ in range(windows)], metric)

    def mean(self, policy: Policy) -> float:
        """Return the mean of the metric over the windows."""
        values = [
            measured(scenario.simulation(policy).run(), scenario, [self.metric])[self.metric]
            for scenario in self.scenarios
        ]
        if not np.isfinite(values).all():
            raise UsageError(f"{self.metric} is not defined on window {int(np.argmin(np.isfinite(values)))}")
        return float(np.mean(values))


def measured(result: Result, scenario: Scenario, names: Sequence[str]) -> dict[str, float]:
    """Return metrics of a run over the jobs after its warm-up; NaN for undefined ones."""
    return measure(result, warmup=warmup_of(result, scenario), names=names)


def warmup_of(result: Result, scenario: Scenario) -> int:
    """Return the duration of the warm-up after the first submission [s]."""
    return 0 if scenario.learn_from is None else scenario.learn_from - int(result.submit_time.min())


def check_lengths(parts: Sequence[Workload], needed: int, what: str) -> None:
    """Check that each part of a log has enough jobs for a window."""
    for workload in parts:
        if len(workload) < needed:
            raise UsageError(
                f"{workload.name}: windows of {needed} jobs are needed for {what}, found {len(workload)} jobs"
            )
