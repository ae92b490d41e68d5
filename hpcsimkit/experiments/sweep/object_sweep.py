"""Sweeps of objects: workloads and policies of a program, over axes of loads, seeds and options of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hpcsimkit.engine.engines import Engine
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import Chosen, PolicyRun
from hpcsimkit.experiments.parts.trust import CALLER
from hpcsimkit.experiments.progress import show_tasks
from hpcsimkit.experiments.questions.compare import Compared, ComparisonQuestion, Policies, named_policies
from hpcsimkit.experiments.questions.question import ask
from hpcsimkit.experiments.sweep.swept import Swept
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.setup import OPTIONS, Setup
from hpcsimkit.reports.sweep.table import SweepTable

__all__ = ["ObjectSweep"]

LOAD, SEED, WORKLOAD, POLICY = "load_factor", "seed", "workload", "policy"


@dataclass(frozen=True, eq=False)
class ObjectSweep:
    """Sweep of policies and workloads as objects or names, over axes; :meth:`Sweep.of` makes one.

    Parameters
    ----------
    workloads : sequence of Workload
        Jobs, with distinct names.
    policies : mapping of str to Policy
        Policies by name.
    axes : mapping of str to sequence
        Values of ``load_factor``, by which loads are multiplied, and of options of a run:
        fields of :class:`~hpcsimkit.kernel.setup.Setup`, such as ``seed``, ``walltime`` and ``cluster``.
    setup : Setup
        Other options of all runs.
    metrics : sequence of str, optional
        Names of the metrics; by default all.
    """

    workloads: Sequence[Workload]
    policies: Mapping[str, Policy]
    axes: Mapping[str, Sequence[Any]]
    setup: Setup
    metrics: Sequence[str] | None = None

    @classmethod
    def of(
        cls,
        workloads: Workload | Iterable[Workload],
        policies: Policies,
        axes: Mapping[str, Iterable[Any]] | None = None,
        *,
        metrics: Iterable[str] | None = None,
        **options: Any,
    ) -> ObjectSweep:
        """Return a sweep of objects or names; see :meth:`Sweep.of`."""
        jobs = [workloads] if isinstance(workloads, Workload) else list(workloads)
        names = [each.name for each in jobs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"two workloads have the name {twice!r}; rename one: replace(w, name=...)")
        values = {name: list(listed) for name, listed in (axes or {}).items()}
        for name, listed in values.items():
            if name != LOAD and name not in OPTIONS:
                raise UsageError(f"no axis {name!r}{nearest(name, (LOAD, *OPTIONS))}")
            if not listed or name in options:
                raise UsageError(f"axis {name!r} needs values, and no option of its name")
        computed = None if metrics is None else list(metrics)
        return cls(
            jobs, named_policies(policies, Experiment.model_validate({})), values, Setup(**options), computed
        )

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.workloads) * len(self.policies) * math.prod(map(len, self.axes.values()))

    def run(self, *, engine: Engine | None = None, progress: bool = False) -> Swept:
        """Simulate all cells, and return their table, statistics and pictures.

        Parameters
        ----------
        engine : Engine, optional
            Engine that executes the cells; by default this process.
        progress : bool
            Whether to show a progress bar. Default: False.

        Raises
        ------
        HpcsimkitError
            A cell fails.
        """
        chosen = None if self.metrics is None else Chosen(self.metrics, CALLER)
        experiment, cells = Experiment.model_validate({}), list(self._cells())
        tasks = [
            PolicyRun(
                Case(jobs, name, experiment, self.policies[name], setup),
                chosen=chosen,
                name=f"cell-{number}",
                saved=number < len(self.policies),
            )
            for number, (_, jobs, name, setup) in enumerate(cells)
        ]
        with show_tasks({task.name: task.size for task in tasks}, progress=progress) as tell:
            found: Compared = ask(ComparisonQuestion(tasks), engine, tell)
        return self._swept(found, [values for values, *_ in cells])

    def _cells(self) -> Iterator[tuple[dict[str, Any], Workload, str, Setup]]:
        """Yield the values of the axes, the jobs, the policy and the options of each cell."""
        for jobs in self.workloads:
            for values in product(*self.axes.values()):
                chosen = dict(zip(self.axes, values, strict=True))
                options = {name: value for name, value in chosen.items() if name != LOAD}
                setup = replace(self.setup, **options)
                load = chosen.get(LOAD)
                scaled = jobs if load is None else replace(jobs.scale_load(float(load)), name=jobs.name)
                for name in self.policies:
                    yield chosen, scaled, name, setup

    def _swept(self, found: Compared, values: Sequence[Mapping[str, Any]]) -> Swept:
        """Return the answer, with plain values in place of objects on axes."""
        frame = found.table
        for axis in self.axes:
            frame[axis] = [_plain(each[axis]) for each in values]
        listed = {axis: [_plain(value) for value in self.axes[axis]] for axis in self.axes}
        several = {WORKLOAD: [each.name for each in self.workloads]} if len(self.workloads) > 1 else {}
        repeated = [SEED] if len(listed.get(SEED, ())) > 1 else []
        axes = {POLICY: list(self.policies), **several, **listed}
        first = [WORKLOAD, POLICY, *self.axes]
        frame = frame[[*first, *(name for name in frame.columns if name not in first)]]
        return Swept(frame, SweepTable.of(frame, axes, repeated, self.metrics or ()), found.results)


def _plain(value: Any) -> Any:
    """Return a value of an axis as a number or a text."""
    return value if isinstance(value, int | float | str) and not isinstance(value, bool) else repr(value)
