"""Experiments: a workload, a cluster, policies, and the settings of runs and metrics.

One model covers the flags of the command line, the keys of a TOML file and the settings saved with results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

from pydantic import Field, field_validator, model_validator

from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.named_parts import known_metrics, metric_named
from hpcsimkit.experiments.parts.trust import code_in
from hpcsimkit.experiments.settings.engine_table import EngineTable, Parallel
from hpcsimkit.experiments.settings.toml_lines import Location, toml_text
from hpcsimkit.experiments.source import CONFIGURED, Source, sha256_of
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.gate import Dependencies
from hpcsimkit.results.metrics import METRICS, Metric

__all__ = [
    "MACHINE_POLICIES",
    "STANDARD_POLICIES",
    "Experiment",
    "JobsOfExperiment",
]

STANDARD_POLICIES = (
    "fcfs",
    "fcfs+easy",
    "fcfs+conservative",
    "sjf+easy",
    "saf+easy",
    "wfp3+easy",
    "f1+easy",
    "random+easy",
)
"""Default policies."""

MACHINE_POLICIES = (
    "fcfs",
    "fcfs+easy",
    "sjf+easy",
    "drf+easy",
    "sjf+fitting",
    "drf+fitting",
    "random+fitting",
)
"""Default policies on machines, with and without head-of-line blocking, for any resource requests.

``bfbp`` is not among them, since it rejects jobs that need more than a share of one machine.
"""


PARTITION_POLICIES = ("fcfs", "fcfs+easy")
"""Default policies beside that of Slurm's configuration."""


class Experiment(Source, Parallel):
    """Settings of a comparison of policies on a workload.

    Keys of the jobs and the machines are those of a :class:`~hpcsimkit.experiments.source.Source`.

    Parameters
    ----------
    policies : list of str
        Names of policies in the form of :func:`hpcsimkit.experiments.parts.registry.make`, each once; by
        default `STANDARD_POLICIES`, on machines `MACHINE_POLICIES`, with `slurm` ``as-configured`` and two
        more.
    warmup : float
        Time after the first submission [s], 0 or more; metrics leave out jobs submitted in it. Default: 0.
    cooldown : float
        Time before the last submission [s], 0 or more; metrics leave out jobs submitted in it. Default: 0.
    metrics : list of str, optional
        Names of the metrics of the printed table, by default the usual ones; see
        :func:`hpcsimkit.experiments.parts.named_parts.metric_named`. Those of the user are further columns
        of all results.
    out : str, optional
        Path of the results folder.
    workers : int
        Number of simulations in parallel, each in its own process, 1 or more. By default there is one, or two
        threads in this process if all simulations are compiled ones.
    engine : EngineTable, optional
        Engine that executes the simulations; by default that number of processes.
    report : bool
        Whether figures and ``report.html`` are written. Default: True.
    trace : bool
        Whether all events are written to ``traces/<policy>.jsonl``. Default: False.
    snapshots : int, optional
        Interval of computing time at which the state of a run is saved [s], so that an interrupted comparison
        goes on within the run; by default it goes on with the next run.

    Examples
    --------
    >>> experiment = Experiment(jobs=100, seed=3, policies=["fcfs", "fcfs+easy"])
    >>> experiment.workload()
    Workload('lublin-256', 100 jobs, machine_size=256)
    """

    constructed: ClassVar[Collection[str]] = ("policies", "placement", "locality", "metrics")
    """Keys with names whose objects are constructed to check them."""

    inner: ClassVar = {**Source.inner, "engine": EngineTable}
    flags: ClassVar = {**Source.flags, "policies": "-p", "metrics": "--metric"}

    policies: list[str] = Field(list(STANDARD_POLICIES))
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    cooldown: float = Field(0.0, ge=0, allow_inf_nan=False)
    metrics: list[str] | None = Field(None, min_length=1)
    out: str | None = Field(None, min_length=1)
    report: bool = True
    trace: bool = False
    snapshots: int | None = Field(None, ge=0)

    @field_validator("policies")
    @classmethod
    def _each_once(cls, names: list[str]) -> list[str]:
        if not names:
            raise ValueError("at least one is needed")
        twice = next((name for name, times in Counter(names).items() if times > 1), None)
        if twice is not None:
            raise ValueError(f"{twice!r} is named twice")
        return names

    @field_validator("metrics")
    @classmethod
    def _are_known(cls, names: list[str] | None) -> list[str] | None:
        return known_metrics(names)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if "policies" not in self.model_fields_set and (self.machines is not None or self.slurm is not None):
            usual = MACHINE_POLICIES if self.slurm is None else (CONFIGURED, *PARTITION_POLICIES)
            object.__setattr__(self, "policies", list(usual))  # still a default
        return self

    # --- reading and saving --------------------------------------------------------------------------

    def _parts(self) -> Iterator[tuple[Location, Callable[[], object]]]:
        """Yield the locations of names and tables, each with a function that constructs its object."""
        named = enumerate(self.policies if "policies" in self.constructed else ())
        policies = [each for each in named if each[1] != CONFIGURED or self.slurm is None]
        for index, name in policies:  # all of them before anything is imported
            yield ("policies", index), partial(registry.check, name, self.import_from, self.trust)
        yield from super()._parts()
        for index, name in policies:
            yield ("policies", index), partial(self.policy_named, name)
        for index, name in enumerate(self.metrics or () if "metrics" in self.constructed else ()):
            yield ("metrics", index), partial(metric_named, name, self.import_from, self.trust)

    def saved(self) -> str:
        """Return a TOML text that reproduces the schedules, with absolute paths of files."""
        return toml_text(self._saved())

    def _saved(self) -> dict[str, Any]:
        others = {*Source.model_fields, "out", "workers", "engine"}
        return {**self.saved_source(), **self.model_dump(exclude_none=True, exclude=others)}

    @property
    def code(self) -> list[str]:
        """Modules and files imported by the names, sorted."""
        named = [code for name in self.policies for code in registry.code_of(name)]
        named += [code_in(name) for name in self._names_of_own_metrics]
        return sorted({*named, *super().code})

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide the results; see :meth:`Source.settings`."""
        models = [file for name in self.policies for file in registry.models_of(name, self.import_from)]
        versions = [f"{file.name} ({sha256_of(str(file))[:8]})" for file in models]
        return {**super().settings(), **({"models": versions} if versions else {})}

    @property
    def _names_of_own_metrics(self) -> list[str]:
        return [name for name in dict.fromkeys(self.metrics or ()) if ":" in name]

    @property
    def own_metrics(self) -> dict[str, Metric]:
        """Metrics of the user by name."""
        names = self._names_of_own_metrics
        return {name: metric_named(name, self.import_from, self.trust) for name in names}

    @property
    def metric_names(self) -> list[str]:
        """Names of the metrics of every run: those of the kit and of plug-ins, then those of the user."""
        return [*METRICS, *self._names_of_own_metrics]

    def workload(self, cut: Callable[[Workload], Workload] | None = None) -> Workload:
        """Read or generate the workload; see :meth:`Source.workload`. Void dependencies are noted."""
        workload = super().workload(cut)
        if not self.setup.dependencies:
            return workload
        dependencies = Dependencies()
        dependencies.reset(workload)
        ignored = {"preceding job not usable: ignored": dependencies.void} if dependencies.void else {}
        return replace(workload, notes={**workload.notes, **ignored})


class JobsOfExperiment(Experiment):
    """Experiment of which only the jobs and the machines are used; nothing that it names is constructed.

    Examples
    --------
    >>> JobsOfExperiment(policies=["unknown:Policy"]).policies
    ['unknown:Policy']
    """

    constructed: ClassVar = ()
