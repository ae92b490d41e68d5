"""Cells of a sweep: one policy with one combination of settings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Protocol

from hpcsimkit._version import __version__
from hpcsimkit.engine.code_version import code_version
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.identity import digest, modules_of
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.comparison.case import Case
from hpcsimkit.experiments.comparison.experiment import JobsOfExperiment
from hpcsimkit.experiments.comparison.policy_run import metrics_of, write_tables
from hpcsimkit.experiments.generate import Generate
from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.experiments.settings.run_table import DECISIVE_KEYS, RUN_KEYS
from hpcsimkit.experiments.sweep.windows import Window
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.guard import guarded
from hpcsimkit.kernel.policy import Policy

JOBS = "jobs"
"""Name of a cell's table of jobs, without suffix."""

NOT_DECISIVE = {
    *("allow_code", "import_from", "policies", "metrics", "out", "workers", "engine", "report", "trace"),
    *(key for key in RUN_KEYS if key not in DECISIVE_KEYS),
}
"""Settings that do not change the outcome of a cell; policies are identified by themselves."""

WORKLOADS = 4
"""Number of workloads that a process keeps for further cells."""

POLICIES = 64
"""Number of policies that a process keeps for further cells."""

OF_POLICIES = ("allow_code", "import_from", "machines", "partition_column", "placement", "slurm")
"""Settings of an experiment that determine its policies; a placement needs machines or a profile."""

NOT_OF_JOBS = (*RUN_KEYS, "warmup", "cooldown", "metrics", "placement")
"""Settings of an experiment that do not change the jobs of a log."""


class Cell(Task):
    """Task of a sweep, named by its fingerprint.

    `values` are those of the axes by name, as shown in tables.
    """

    size = 1

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    @property
    def name(self) -> str:
        """Fingerprint, which is also the name of the folder."""
        return self.fingerprint


class Cells(Protocol):
    """What a run of a sweep needs to know of it."""

    report: bool

    def __len__(self) -> int:
        """Return the number of cells."""

    def cells(self) -> Iterable[Cell]:
        """Yield the cells."""

    def engine_for(self, tasks: int) -> Engine:
        """Return the engine for a number of tasks."""

    def described(self, cells: Any) -> dict[str, Any]:
        """Return the axes for the report."""

    def saved(self) -> str:
        """Return the settings as TOML."""

    def model_dump(self, *, exclude_unset: bool, exclude: Any) -> dict[str, Any]:
        """Return the settings as plain values."""

    @property
    def columns(self) -> list[str]:
        """Columns of the table of cells."""

    @property
    def code(self) -> list[str]:
        """Modules and files that its names import."""


class SimulationCell(Cell):
    """Simulation of a policy with some settings; its outcome has the metrics.

    The policy is a name with parameters, and the settings are those of a TOML file. `identities` of the
    policy and of all files take the place of their names.
    """

    kind = "simulation"

    def __init__(
        self,
        policy: str,
        values: Mapping[str, Any],
        settings: Mapping[str, Any],
        window: Window | None,
        identities: Mapping[str, Any],
    ) -> None:
        super().__init__(values)
        self.policy = policy
        self.settings = settings
        self.window = window
        self.identities = identities

    def inputs(self) -> Any:
        """Return the policy, all settings with their defaults, and the identities of files."""
        window = None if self.window is None else self.window[:3]
        settings = {name: value for name, value in self.settings.items() if name not in NOT_DECISIVE}
        generate = settings.get("generate")
        if generate is not None:
            settings["generate"] = {**_defaults(Generate), **generate}
        defaults = _defaults(JobsOfExperiment)
        return {**defaults, **settings, "name": self.policy, "window": window, **self.identities}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate; write the table of jobs, and return the metrics and the provenance."""
        case = self.case()
        experiment = case.source
        assert isinstance(experiment, JobsOfExperiment)
        result = (case.traced(folder / "trace.jsonl") if experiment.trace else case).run()
        write_tables(result.to_arrow(), folder, JOBS, with_csv=False)
        return {
            "policy": repr(case.policy),
            "skipped": sum(case.jobs.skipped.values()),
            "metrics": metrics_of(result, experiment),
            "workload_sha256": case.jobs.hash,
            "schedule_sha256": result.hash,
            "version": __version__,
        }

    def case(self) -> Case:
        """Return the case of the cell; with a window, its warm-up is that of the metrics."""
        text = json.dumps(self.settings, sort_keys=True)
        experiment, window = _experiment(text), self.window
        workload = _workload(_jobs_only(text), window)
        with guarded(self.policy):
            policy = _policy(self.policy, _of_policies(text), self._version_of_policy())
            policy.check_workload(workload)
        if window is None:
            return Case(workload, self.policy, experiment, policy)
        first = int(workload.submit_time.min())
        warmup = max(0.0, (window.begin - first) / experiment.load_factor)
        measured = experiment.model_copy(update={"warmup": warmup})
        return Case(workload, self.policy, measured, policy, begin=first + math.ceil(warmup))

    def case_of_all(self) -> Case:
        """Return the case of the cell with the jobs that do not fit the cluster, too."""
        return self.case().with_all_jobs(None if self.window is None else self.window.cut)

    def _version_of_policy(self) -> str:
        """Return the hash of the parameters and the code of the policy, which may change between sweeps."""
        policy = self.identities.get("policy")
        return digest([policy, code_version(modules_of(policy))])


@cache
def _defaults(table: type[Table]) -> dict[str, Any]:
    """Return the default values of a table, which may change in a later version."""
    fields = {
        name: field.get_default(call_default_factory=False) for name, field in table.model_fields.items()
    }
    return {name: value for name, value in fields.items() if name not in NOT_DECISIVE}


@lru_cache(maxsize=WORKLOADS)
def _experiment(settings: str) -> JobsOfExperiment:
    """Return the experiment of some settings, as JSON."""
    return JobsOfExperiment(**json.loads(settings))


def _of_policies(settings: str) -> str:
    """Return the settings that determine the policies."""
    values = json.loads(settings)
    return json.dumps({key: value for key, value in values.items() if key in OF_POLICIES}, sort_keys=True)


@lru_cache(maxsize=POLICIES)
def _policy(name: str, settings: str, version: str) -> Policy:
    """Return the policy of a name, which further cells of this process share; simulations copy it.

    Another `version` of its parameters or code is another policy.
    """
    return JobsOfExperiment(**json.loads(settings)).policy_named(name)


def _jobs_only(settings: str) -> str:
    """Return the settings that determine the jobs, so that cells with the same jobs share them."""
    values = json.loads(settings)
    is_built_in = values.get("log") is None and values.get("generate") is None
    others = {*NOT_OF_JOBS} - ({"seed"} if is_built_in else set())
    return json.dumps({key: value for key, value in values.items() if key not in others}, sort_keys=True)


@lru_cache(maxsize=WORKLOADS)
def _workload(settings: str, window: Window | None) -> Workload:
    """Return the jobs of some settings, which further cells of this process share."""
    return _experiment(settings).workload(None if window is None else window.cut)
