"""Comparison of policies on workloads in Python, as a table of all runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hpcsimkit.cluster.base import Cluster
from hpcsimkit.engine.engines import Engine, InProcess
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.named_parts import metric_named
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.metrics import Metric, evaluate

if TYPE_CHECKING:
    import pandas

__all__ = ["compare"]


def compare(
    workloads: Workload | Iterable[Workload],
    policies: Iterable[str | Policy] | Mapping[str, Policy],
    cluster: Cluster[Any, Any] | None = None,
    *,
    seeds: Iterable[int] = (0,),
    metrics: Iterable[str | Metric] | None = None,
    engine: Engine | None = None,
    **settings: Any,
) -> pandas.DataFrame:
    """Simulate every policy on every workload with every seed.

    Parameters
    ----------
    workloads : Workload or iterable of Workload
        Jobs to simulate, with distinct names.
    policies : iterable of str or Policy, or mapping of str to Policy
        Names of policies, policies shown by their representation, or policies by the name to show.
    cluster : Cluster, optional
        Cluster of all runs; by default the counted nodes of each workload.
    seeds : iterable of int
        Random seeds of the runs. Default: 0 only.
    metrics : iterable of str or Metric, optional
        Metrics to compute: names in :data:`~hpcsimkit.results.metrics.METRICS`, and those of your own as
        objects or as ``module:Name`` or ``file.py:Name``; by default all of `METRICS`.
    engine : Engine, optional
        Engine that executes the runs; by default this process. ``Processes(4)`` runs four at a time.
    **settings
        Further keyword arguments of :class:`~hpcsimkit.kernel.simulation.Simulation`.

    Returns
    -------
    pandas.DataFrame
        A row for each run: ``workload, policy, seed``, the metrics (float, NaN where undefined), and
        ``schedule_sha256``, by which :class:`~hpcsimkit.reports.sweep.table.SweepTable` recognises copies: a
        policy that draws no random numbers has the same schedule with every seed.

    Raises
    ------
    UsageError
        Two workloads, two policies or two metrics have the same name, or a name is unknown.
    HpcsimkitError
        A run fails.

    Examples
    --------
    >>> from hpcsimkit.workloads import default_workload
    >>> import numpy as np
    >>> workload = default_workload(np.random.default_rng(1), jobs=200)
    >>> from dataclasses import replace
    >>> loads = [replace(workload.scale_load(x), name=f"load {x}") for x in (1.0, 1.2)]
    >>> table = compare(loads, ["fcfs", "fcfs+easy"], metrics=["mean_wait_time"])
    >>> table.drop(columns="schedule_sha256").round()
       workload     policy  seed  mean_wait_time
    0  load 1.0       fcfs     0         17985.0
    1  load 1.0  fcfs+easy     0          6317.0
    2  load 1.2       fcfs     0         20893.0
    3  load 1.2  fcfs+easy     0          8444.0
    """
    import pandas

    named = _distinct("workloads", _with_names(workloads))
    computed = None if metrics is None else [*_distinct("metrics", map(_metric, metrics)).values()]
    runs = [
        ComparisonRun(f"run-{number}", workload, name, policy, cluster, seed, computed, settings)
        for number, (workload, (name, policy), seed) in enumerate(
            product(named.values(), _distinct("policies", _policies(policies)).items(), seeds)
        )
    ]
    with TemporaryDirectory() as place:
        store = Store(Path(place), durable=False)
        perform(runs, store, engine or InProcess())
        rows = [{**run.values, **store.outcome(run)} for run in runs]
    return pandas.DataFrame(rows)


class ComparisonRun(Task):
    """Run of a policy on a workload; its outcome has the metrics.

    The label is the name of the policy; settings are further keyword arguments of a simulation.
    """

    name, kind = "", "simulation"

    def __init__(
        self,
        name: str,
        workload: Workload,
        label: str,
        policy: Policy,
        cluster: Cluster[Any, Any] | None,
        seed: int,
        metrics: Sequence[str | Metric] | None,
        settings: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.workload = workload
        self.policy = policy
        self.cluster = cluster
        self.metrics = metrics
        self.values = {"workload": workload.name, "policy": label, "seed": seed}
        self.settings = {**settings, "seed": seed, "name": label}

    @property
    def size(self) -> int:
        """Number of jobs."""
        return len(self.workload)

    def inputs(self) -> Any:
        """Return the names of the run; nothing is resumed."""
        return self.values

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate, and return the metrics."""
        simulation = Simulation(self.workload, self.policy, self.cluster, **self.settings)
        for metric in self.metrics or ():
            _metric(metric)  # a worker imports it, too
        result = simulation.run()
        return {**evaluate(result, names=self.metrics), "schedule_sha256": result.hash}


def _with_names(workloads: Workload | Iterable[Workload]) -> Iterator[tuple[str, Workload]]:
    for workload in [workloads] if isinstance(workloads, Workload) else workloads:
        yield workload.name, workload


def _policies(policies: Iterable[str | Policy] | Mapping[str, Policy]) -> Iterator[tuple[str, Policy]]:
    if isinstance(policies, Mapping):
        yield from policies.items()
        return
    for policy in policies:
        yield (policy, registry.make(policy)) if isinstance(policy, str) else (repr(policy), policy)


def _metric(metric: str | Metric) -> tuple[str, str | Metric]:
    """Return the name of a metric, and the metric; a name is imported."""
    if isinstance(metric, Metric):
        return metric.name, metric
    metric_named(metric, None, CALLER)
    return metric, metric


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
