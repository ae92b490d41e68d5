"""Comparison of policies on workloads in Python, as a table of all runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.results.metrics import evaluate

if TYPE_CHECKING:
    import pandas

__all__ = ["compare"]


def compare(
    workloads: Workload | Iterable[Workload],
    policies: Iterable[str | Policy] | Mapping[str, Policy],
    cluster: Cluster[Any, Any] | None = None,
    *,
    seeds: Iterable[int] = (0,),
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
    engine : Engine, optional
        Engine that executes the runs; by default this process. ``Processes(4)`` runs four at a time.
    **settings
        Further keyword arguments of :class:`~hpcsimkit.kernel.simulation.Simulation`.

    Returns
    -------
    pandas.DataFrame
        A row for each run: ``workload, policy, seed``, and all metrics of
        :data:`~hpcsimkit.results.metrics.METRICS` (float, NaN where undefined).

    Raises
    ------
    UsageError
        Two workloads or two policies have the same name, or a name is unknown.
    HpcsimkitError
        A run fails.

    Examples
    --------
    >>> from hpcsimkit.workloads import default_workload
    >>> import numpy as np
    >>> workload = default_workload(np.random.default_rng(1), jobs=200)
    >>> from dataclasses import replace
    >>> loads = [replace(workload.scale_load(x), name=f"load {x}") for x in (1.0, 1.2)]
    >>> table = compare(loads, ["fcfs", "fcfs+easy"])
    >>> table[["workload", "policy", "mean_wait_time"]].round()
       workload     policy  mean_wait_time
    0  load 1.0       fcfs         17985.0
    1  load 1.0  fcfs+easy          6317.0
    2  load 1.2       fcfs         20893.0
    3  load 1.2  fcfs+easy          8444.0
    """
    import pandas

    named = _distinct("workloads", _with_names(workloads))
    runs = [
        ComparisonRun(f"run-{number}", workload, name, policy, cluster, seed, settings)
        for number, (workload, (name, policy), seed) in enumerate(
            product(named.values(), _distinct("policies", _policies(policies)).items(), seeds)
        )
    ]
    with TemporaryDirectory() as place:
        store = Store(Path(place))
        perform(runs, store, engine or InProcess())
        rows = [{**run.values, **store.outcome(run)} for run in runs]
    return pandas.DataFrame(rows)


class ComparisonRun(Task):
    """Run of a policy on a workload; its outcome has the metrics.

    Parameters
    ----------
    name : str
        Name of the task.
    workload : Workload
        Jobs to simulate.
    label : str
        Name of the policy.
    policy : Policy
        The policy.
    cluster : Cluster, optional
        Cluster of the run.
    seed : int
        Random seed.
    settings : mapping
        Further keyword arguments of a simulation.
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
        settings: Mapping[str, Any],
    ) -> None:
        self.name = name
        self.workload = workload
        self.policy = policy
        self.cluster = cluster
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
        return evaluate(simulation.run())


def _with_names(workloads: Workload | Iterable[Workload]) -> Iterator[tuple[str, Workload]]:
    for workload in [workloads] if isinstance(workloads, Workload) else workloads:
        yield workload.name, workload


def _policies(policies: Iterable[str | Policy] | Mapping[str, Policy]) -> Iterator[tuple[str, Policy]]:
    if isinstance(policies, Mapping):
        yield from policies.items()
        return
    for policy in policies:
        yield (policy, registry.make(policy)) if isinstance(policy, str) else (repr(policy), policy)


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
            how = "replace(w, name=...)" if what == "workloads" else "give a mapping of names to policies"
            raise UsageError(f"two {what} have the name {name!r}; rename one: {how}")
        found[name] = value
    return found
