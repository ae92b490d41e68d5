"""Which policy is better? Runs of policies on workloads, with their metrics."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from hpcsimkit.experiments.comparison.policy_run import RESULT, Chosen, PolicyRun, Run
from hpcsimkit.experiments.console import comparison_lines
from hpcsimkit.experiments.parts.named_parts import metric_named
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.experiments.progress import show_tasks
from hpcsimkit.experiments.questions.question import Answer, Question, ask
from hpcsimkit.experiments.source import Source
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.given_policy import GivenPolicy, name_of, policy_of
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.reports.sweep.statistics import Statistics
from hpcsimkit.reports.sweep.table import SweepTable
from hpcsimkit.results.metrics import Metric, measure
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Compared", "ComparisonQuestion", "Policies", "compare", "named_policies"]

Policies = Iterable[GivenPolicy] | Mapping[str, GivenPolicy]

OF_PICTURE = ("mean_wait_time", "mean_bounded_slowdown")
"""Metrics in the picture."""


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Statistics, Answer):
    """Runs of policies on workloads: their results, metrics, tests and pictures.

    Parameters
    ----------
    keys : sequence of tuple of (str, int)
        Workload and seed of each run.
    runs : sequence of Run
        Records of the runs.
    metrics : sequence of str, optional
        Names of the printed metrics; by default the usual ones.
    kept : mapping of (str, str, int) to Result
        Results by workload, policy and seed. Default: none.
    """

    stem = "comparison"
    names = ("metrics",)

    keys: Sequence[tuple[str, int]]
    runs: Sequence[Run]
    metrics: Sequence[str] | None = None
    kept: Mapping[tuple[str, str, int], Result] = field(default_factory=dict)

    @property
    def results(self) -> dict[str, Result]:
        """Results on the first workload with the first seed, by policy: what plots are given."""
        first = self.keys[0]
        return {policy: result for (jobs, policy, seed), result in self.kept.items() if (jobs, seed) == first}

    def result(self, policy: str, workload: str | None = None, seed: int | None = None) -> Result:
        """Return the result of a policy, by default on the first workload with the first seed.

        Raises
        ------
        UsageError
            There is no such run, or the results are not kept.
        """
        jobs, number = self.keys[0]
        wanted = (jobs if workload is None else workload, policy, number if seed is None else seed)
        if wanted not in self.kept:
            known = ", ".join(map(repr, self.kept)) or "none: keep_results=True keeps them"
            raise UsageError(f"no result of {wanted!r}; there are {known}")
        return self.kept[wanted]

    @property
    def table(self) -> pandas.DataFrame:
        """A row for each run.

        Columns: ``workload, policy, seed``, the metrics (float, NaN where undefined), and
        ``schedule_sha256``, by which copies are recognised: a policy that draws no random numbers has the
        same schedule with every seed.
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

    @cached_property
    def cells(self) -> SweepTable:
        """The runs as cells; seeds repeat them, or else workloads."""
        several = {
            name: [*dict.fromkeys(values)]
            for name, values in zip(("workload", "seed"), zip(*self.keys, strict=True), strict=True)
            if len({*values}) > 1
        }
        policies = [*dict.fromkeys(run.policy for run in self.runs)]
        repeated = "seed" if "seed" in several else "workload"
        return SweepTable.of(
            self.table,
            {"policy": policies, **several},
            [repeated] if repeated in several else [],
            self.metrics or (),
        )

    def figure(self) -> Figure | None:
        """Return the overview of the runs on the first workload with the first seed, if they are kept."""
        from hpcsimkit.reports.gallery import draw_comparison

        results = self.results
        if not results or not all(result.finished.any() for result in results.values()):
            return None
        metrics = {name: measure(result, names=OF_PICTURE) for name, result in results.items()}
        return draw_comparison(results, metrics)

    def plot(self, kind: str | None = None, ax: Any = None, **options: Any) -> Any:
        """Draw the runs on the first workload with the first seed.

        Parameters
        ----------
        kind : str, optional
            One plot, as in :meth:`Result.plot <hpcsimkit.results.result.Result.plot>`; by default an overview
            in a new figure.
        ax : Axes or sequence of Axes, optional
            Axes to draw one plot on; by default those of a new figure.
        **options
            Further parameters of the plot.

        Returns
        -------
        Axes or array of Axes
            The axes.

        Raises
        ------
        UsageError
            The results are not kept.
        """
        if not self.results:
            raise UsageError("the picture of a comparison needs its results, found none")
        if kind is None and ax is None:
            return super().plot()
        from hpcsimkit.reports.views import plot_results

        return plot_results(self, kind or "wait", ax, **options)

    def lines(self) -> Iterator[str]:
        """Yield the metrics of each workload and seed as a table, with remarks."""
        parts = groupby(zip(self.keys, self.runs, strict=True), key=lambda pair: pair[0])
        several = len({*self.keys}) > 1
        for (workload, seed), pairs in parts:
            if several:
                yield f"{workload}, seed {seed}:"
            yield from comparison_lines([run for _, run in pairs], self.metrics)

    def _repr_html_(self) -> str:
        """Return the summary, the metrics and the picture, for notebooks."""
        from hpcsimkit.reports.views import answer_html

        shown = {"summary": self.summary(), "metrics": self.table.drop(columns="schedule_sha256")}
        return answer_html("Comparison", shown, self.figure)


class ComparisonQuestion(Question):
    """Which policy is better?

    Parameters
    ----------
    tasks : sequence of PolicyRun
        Runs of the policies; the answer keeps those results that are saved.
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
        kept = {
            (jobs, task.policy, seed): Result.load(store.folder(task) / RESULT)
            for (jobs, seed), task in zip(keys, self._tasks, strict=True)
            if task.saved
        }
        chosen = self._tasks[0].chosen
        names = self._tasks[0].experiment.metrics if chosen is None else [*map(_name_of, chosen.metrics)]
        return Compared(keys, runs, names, kept)


def compare(
    workloads: Asked | Iterable[Workload],
    policies: Policies | None = None,
    cluster: AnyCluster | int | None = None,
    *,
    seeds: Iterable[int] | None = None,
    metrics: Iterable[str | Metric] | None = None,
    engine: Engine | None = None,
    keep_results: bool = True,
    progress: bool = False,
    **options: Any,
) -> Compared:
    """Simulate every policy on every workload with every seed.

    Parameters
    ----------
    workloads : Workload, path, Experiment, or iterable of Workload, optional
        Jobs to simulate, with distinct names; path of a log or its name in the catalogue; or an experiment or
        the path of its TOML file, which has options of its own. By default the built-in workload.
    policies : iterable of str, Policy or Stage, or mapping of str to one of these, optional
        Names of policies, policies (or single stages of a pipeline) shown by their representation, or all of
        these by the name to show; by default those of the experiment, or the usual ones.
    cluster : Cluster or int, optional
        Cluster of all runs, or number of nodes; by default that of each workload.
    seeds : iterable of int, optional
        Random seeds of the runs; by default that of the experiment, or 0.
    metrics : iterable of str or Metric, optional
        Metrics to compute: names in :data:`~hpcsimkit.results.metrics.METRICS`, and those of your own as
        objects or as ``module:Name`` or ``file.py:Name``; by default all of `METRICS`.
    engine : Engine, optional
        Engine that executes the runs; by default this process. ``Processes(4)`` runs four at a time.
    keep_results : bool
        Whether the answer keeps all results; otherwise those of the first workload with the first seed.
        Default: True.
    progress : bool
        Whether to show a progress bar. Default: False.
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
    named = named_policies(policies, experiment)
    workloads = _distinct("workloads", ((each.name, each) for each in jobs)).values()
    computed = None if metrics is None else [*_distinct("metrics", map(_metric, metrics)).values()]
    chosen = None if computed is None else Chosen(computed, CALLER)
    runs = product(workloads, named.items(), [setup.seed] if seeds is None else seeds)
    tasks: list[PolicyRun] = []
    for number, (workload, (name, policy), seed) in enumerate(runs):
        case = Case(workload, name, experiment, policy, replace(setup, seed=seed))
        drawn = not tasks or (workload, seed) == (tasks[0].case.jobs, tasks[0].case.setup.seed)
        tasks.append(PolicyRun(case, chosen=chosen, name=f"run-{number}", saved=keep_results or drawn))
    with show_tasks({task.name: task.size for task in tasks}, progress=progress) as tell:
        found: Compared = ask(ComparisonQuestion(tasks), engine, tell)
    return found


def named_policies(policies: Policies, experiment: Experiment) -> dict[str, Policy]:
    """Return policies by their names in tables.

    Raises
    ------
    UsageError
        Two have the same name, or one is unknown.
    """
    pairs = (
        policies.items() if isinstance(policies, Mapping) else ((name_of(each), each) for each in policies)
    )
    return _distinct("policies", ((name, _policy(given, experiment)) for name, given in pairs))


def _policy(given: GivenPolicy, experiment: Experiment) -> Policy:
    if not isinstance(given, str):
        return policy_of(given)
    return experiment.policy_of(given, experiment.trust if given in experiment.policies else CALLER)


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
