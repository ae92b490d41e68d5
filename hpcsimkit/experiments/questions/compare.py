"""Which policy is better? Runs of policies on workloads, with their metrics."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, product
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.case import Asked, Case, settings_of, setup_of
from hpcsimkit.experiments.comparison.experiment import MACHINE_POLICIES, Experiment
from hpcsimkit.experiments.comparison.policy_run import RESULT, PolicyRun, Run
from hpcsimkit.experiments.console import comparison_lines
from hpcsimkit.experiments.parts.named_parts import metric_named
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.experiments.questions.question import Answer, Question, ask
from hpcsimkit.experiments.source import Source
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.results.metrics import Metric, measure
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Compared", "ComparisonQuestion", "compare"]

Policies = Iterable[str | Policy] | Mapping[str, Policy]

OF_PICTURE = ("mean_wait_time", "mean_bounded_slowdown")
"""Metrics in the picture."""


@dataclass(frozen=True, eq=False)
class Compared(Answer):
    """Metrics of runs.

    Parameters
    ----------
    keys : sequence of tuple of (str, int)
        Workload and seed of each run.
    runs : sequence of Run
        Records of the runs.
    metrics : sequence of str, optional
        Names of the printed metrics; by default the usual ones.
    results : mapping of str to Result
        Results of the runs on the first workload with the first seed, by policy. Default: none.
    """

    stem = "comparison"
    names = ("metrics",)

    keys: Sequence[tuple[str, int]]
    runs: Sequence[Run]
    metrics: Sequence[str] | None = None
    results: Mapping[str, Result] = field(default_factory=dict)

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each run.

        Columns: ``workload, policy, seed``, the metrics (float, NaN where undefined), and
        ``schedule_sha256``, by which :class:`~hpcsimkit.reports.sweep.table.SweepTable` recognises copies: a
        policy that draws no random numbers has the same schedule with every seed.
        """
        import pandas

        return pandas.DataFrame(
            {
                "workload": workload,
                "policy": run.policy,
                "seed": seed,
                **{name: math.nan if value is None else value for name, value in run.metrics.items()},
                "schedule_sha256": run.schedule_sha256,
            }
            for (workload, seed), run in zip(self.keys, self.runs, strict=True)
        )

    @property
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """The table, by its name ``metrics``."""
        return {"metrics": self.table}

    def plot(self) -> Figure:
        """Return the overview of the runs on the first workload with the first seed.

        Raises
        ------
        UsageError
            The results are not kept: those of a command are in its folder.
        """
        from hpcsimkit.reports.gallery import draw_comparison

        if not self.results:
            raise UsageError("the picture of a comparison needs its results, found none")
        metrics = {name: measure(result, names=OF_PICTURE) for name, result in self.results.items()}
        return draw_comparison(self.results, metrics)

    def lines(self) -> Iterator[str]:
        """Yield the metrics of each workload and seed as a table, with remarks."""
        parts = groupby(zip(self.keys, self.runs, strict=True), key=lambda pair: pair[0])
        several = len({*self.keys}) > 1
        for (workload, seed), pairs in parts:
            if several:
                yield f"{workload}, seed {seed}:"
            yield from comparison_lines([run for _, run in pairs], self.metrics)


class ComparisonQuestion(Question):
    """Which policy is better?

    Parameters
    ----------
    tasks : sequence of PolicyRun
        Runs of the policies; those whose results are saved are in the picture.
    """

    answers = Compared

    def __init__(self, tasks: Sequence[PolicyRun]) -> None:
        self._tasks = tasks

    @property
    def tasks(self) -> Sequence[Task]:
        """A task for each run."""
        return self._tasks

    def answer(self, store: Store) -> Compared:
        """Return the metrics of the runs."""
        keys = [(task.case.jobs.name, task.case.setup.seed) for task in self._tasks]
        runs = [Run(**store.outcome(task)) for task in self._tasks]
        results = {
            task.policy: Result.load(store.folder(task) / RESULT) for task in self._tasks if task.saved
        }
        shown = self._tasks[0].metrics
        names = self._tasks[0].experiment.metrics if shown is None else [*map(_name_of, shown)]
        return Compared(keys, runs, names, results)


def compare(
    workloads: Asked | Iterable[Workload],
    policies: Policies | None = None,
    cluster: AnyCluster | int | None = None,
    *,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str | Metric] | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> Compared:
    """Simulate every policy on every workload with every seed.

    Parameters
    ----------
    workloads : Workload, path, Experiment, or iterable of Workload, optional
        Jobs to simulate, with distinct names; path of a log or its name in the catalogue; or an experiment or
        the path of its TOML file, which has options of its own. By default the built-in workload.
    policies : iterable of str or Policy, or mapping of str to Policy, optional
        Names of policies, policies shown by their representation, or policies by the name to show; by default
        those of the experiment, or the usual ones.
    cluster : Cluster or int, optional
        Cluster of all runs, or number of nodes; by default that of each workload.
    seeds : iterable of int, optional
        Random seeds of the runs; by default that of the experiment, or 0.
    metrics : iterable of str or Metric, optional
        Metrics to compute: names in :data:`~hpcsimkit.results.metrics.METRICS`, and those of your own as
        objects or as ``module:Name`` or ``file.py:Name``; by default all of `METRICS`.
    engine : Engine, optional
        Engine that executes the runs; by default this process. ``Processes(4)`` runs four at a time.
    **options
        Further options of a run: fields of :class:`~hpcsimkit.kernel.setup.Setup`.

    Raises
    ------
    UsageError
        Two workloads, two policies or two metrics have the same name, a name is unknown, or options are given
        beside an experiment.
    HpcsimkitError
        A run fails.

    Examples
    --------
    >>> from hpcsimkit.workloads import default_workload
    >>> import numpy as np
    >>> workload = default_workload(np.random.default_rng(1), jobs=200)
    >>> loads = [replace(workload.scale_load(x), name=f"load {x}") for x in (1.0, 1.2)]
    >>> answer = compare(loads, ["fcfs", "fcfs+easy"], metrics=["mean_wait_time"])
    >>> answer.table.drop(columns="schedule_sha256").round()
       workload     policy  seed  mean_wait_time
    0  load 1.0       fcfs     0         17985.0
    1  load 1.0  fcfs+easy     0          6317.0
    2  load 1.2       fcfs     0         20893.0
    3  load 1.2  fcfs+easy     0          8444.0
    """
    if workloads is None or isinstance(workloads, Workload | Source | str | os.PathLike):
        source = settings_of(workloads, cluster, options)
        jobs = [workloads if isinstance(workloads, Workload) else source.workload()]
    else:
        source, jobs = settings_of(None, cluster, options), list(workloads)
    experiment = (
        source if isinstance(source, Experiment) else Experiment(**source.model_dump(exclude_unset=True))
    )
    setup = setup_of(cluster, options) or experiment.setup
    if policies is None:
        policies = MACHINE_POLICIES if isinstance(cluster, Machines) else experiment.policies
    named = _distinct("policies", _policies(policies, experiment))
    workloads = _distinct("workloads", ((each.name, each) for each in jobs)).values()
    computed = None if metrics is None else [*_distinct("metrics", map(_metric, metrics)).values()]
    runs = product(workloads, named.items(), [setup.seed] if seeds is None else seeds)
    tasks: list[PolicyRun] = []
    for number, (workload, (name, policy), seed) in enumerate(runs):
        case = Case(workload, name, experiment, policy, replace(setup, seed=seed))
        drawn = not tasks or (workload, seed) == (tasks[0].case.jobs, tasks[0].case.setup.seed)
        tasks.append(PolicyRun(case, metrics=computed, name=f"run-{number}", trust=CALLER, saved=drawn))
    found: Compared = ask(ComparisonQuestion(tasks), engine)
    return found


def _policies(policies: Policies, experiment: Experiment) -> Iterator[tuple[str, Policy]]:
    if isinstance(policies, Mapping):
        yield from policies.items()
        return
    for policy in policies:
        if isinstance(policy, str):
            yield (
                policy,
                experiment.policy_of(policy, experiment.trust if policy in experiment.policies else CALLER),
            )
        else:
            yield repr(policy), policy


def _metric(metric: str | Metric) -> tuple[str, str | Metric]:
    """Return the name of a metric, and the metric; a name is imported."""
    if isinstance(metric, str):
        metric_named(metric, None, CALLER)
    return _name_of(metric), metric


def _name_of(metric: str | Metric) -> str:
    return metric if isinstance(metric, str) else metric.name


HOW = {
    "workloads": "replace(w, name=...)",
    "policies": "give a mapping of names to policies",
    "metrics": "replace(metric, name=...)",
}
"""Ways to tell apart two values of the same name."""


def _distinct(what: str, named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return values by name.

    Raises
    ------
    UsageError
        Two have the same name.
    """
    found: dict[str, Any] = {}
    for name, value in named:
        if name in found:
            raise UsageError(f"two {what} have the name {name!r}; rename one: {HOW[what]}")
        found[name] = value
    return found
