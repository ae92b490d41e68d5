"""Cases: jobs, a policy and the options of a run, as objects or by name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.task import Tell
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.source import Source
from hpcsimkit.jobs.job import Job
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.given_policy import GivenPolicy, name_of, policy_of
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.setup import OPTIONS, Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.system import System
from hpcsimkit.results.result import Result
from hpcsimkit.workloads.catalogue import CATALOGUE

__all__ = ["Asked", "Case", "Ended", "settings_of", "setup_of"]

Asked = Workload | Source | str | os.PathLike[str] | None
"""Jobs: a workload, the path of a log or its name in the catalogue, an experiment or the path of its file, or
None for the built-in workload."""

Cut = Callable[[Workload], Workload]
"""Function that selects jobs of a whole log."""


@dataclass(frozen=True)
class Case:
    """Jobs, a policy and the options of a run, about which a question is asked.

    Parameters
    ----------
    jobs : Workload
        The jobs.
    name : str
        Name of the policy.
    source : Source
        Settings of the run, by which names are resolved.
    given : Policy, optional
        The policy; by default that of its name.
    options : Setup, optional
        Options of the run; by default those of the settings.
    observers : sequence of Observer
        Observers of the run. Default: none.
    begin : int, optional
        Time of the first measured submission [s of the log's clock]: earlier jobs fill the cluster. By
        default all jobs are measured.

    Examples
    --------
    >>> case = Case.of(None, "sjf+easy")
    >>> len(case.jobs), case.policy
    (5000, Pipeline(order=SJF(), backfiller=EASY()))
    """

    jobs: Workload
    name: str
    source: Source
    given: Policy | None = None
    options: Setup | None = None
    observers: Sequence[Observer] = ()
    begin: int | None = None

    @classmethod
    def of(
        cls,
        workload: Asked | Case,
        policy: GivenPolicy,
        cluster: AnyCluster | int | None = None,
        *,
        every: bool = False,
        cut: Cut | None = None,
        **options: Any,
    ) -> Case:
        """Return the case of objects or names.

        Parameters
        ----------
        workload : Workload, path, Experiment or Case, optional
            Jobs, path of a log, or an experiment or the path of its TOML file, which has options of its own;
            by default the built-in workload. Or a case, for which nothing else counts.
        policy : str, Policy or Stage
            Name of a policy, the policy, or a stage of a pipeline with no other one.
        cluster : Cluster or int, optional
            Cluster, or number of nodes; by default that of the workload.
        every : bool
            Whether jobs of a file that do not fit the cluster are in the case. Default: False.
        cut : callable, optional
            Function that selects jobs of the whole log before all other steps.
        **options
            Further options of a run: fields of :class:`~hpcsimkit.kernel.setup.Setup`.

        Raises
        ------
        UsageError
            A name or an option is unknown, or options are given beside an experiment.
        """
        if isinstance(workload, Case):
            return workload
        source = settings_of(workload, cluster, options)
        own = isinstance(workload, Workload)
        setup = setup_of(cluster, options)
        case = cls(
            workload if isinstance(workload, Workload) else source.workload(cut),
            name_of(policy),
            source,
            None if isinstance(policy, str) else policy_of(policy),
            setup,
        )
        case.policy  # noqa: B018 - an unknown name is an error here
        return case if own or not every else case.with_all_jobs(cut)

    def with_all_jobs(self, cut: Cut | None = None) -> Case:
        """Return the case with the jobs of its settings that do not fit the cluster, too.

        Parameters
        ----------
        cut : callable, optional
            Function that selects jobs of the whole log before all other steps.
        """
        options, whole = self.setup, self.source.whole()
        if options.cluster is None:
            options = replace(options, cluster=Nodes(self.jobs.machine_size or 1))
        return replace(self, jobs=self.source.part(whole if cut is None else cut(whole)), options=options)

    @property
    def policy(self) -> Policy:
        """The policy."""
        return self.source.policy_named(self.name) if self.given is None else self.given

    @property
    def setup(self) -> Setup:
        """Options of the run."""
        return self.source.setup if self.options is None else self.options

    @property
    def cluster(self) -> AnyCluster:
        """Cluster of the run."""
        cluster = self.setup.cluster
        if isinstance(cluster, int) or cluster is None:
            return Nodes(self.jobs.machine_size or 1 if cluster is None else cluster)
        return cluster

    def watched(self, *observers: Observer) -> Case:
        """Return the case with further observers of its run."""
        return replace(self, observers=[*self.observers, *observers])

    def traced(self, file: Path) -> Case:
        """Return the case with a file of all events of its run."""
        return self.watched(Trace(file))

    @property
    def simulation(self) -> Simulation:
        """The simulation."""
        return Simulation(self.jobs, self.policy, setup=self.setup, observers=self.observers, name=self.name)

    def run(self, *observers: Observer) -> Result:
        """Simulate, and return the result."""
        return self.watched(*observers).simulation.run()


def settings_of(workload: Asked, cluster: AnyCluster | int | None, options: Mapping[str, Any]) -> Source:
    """Return the settings of jobs that are asked about; by default those of the built-in workload.

    Raises
    ------
    UsageError
        Options are given beside an experiment, which has its own; or there is no such log.
    """
    own: Source
    if isinstance(workload, Source):
        own = workload
    elif isinstance(workload, str | os.PathLike) and Path(workload).suffix == ".toml":
        own = Experiment.read(Path(workload))
    elif isinstance(workload, str | os.PathLike):
        nodes = cluster if isinstance(cluster, int) else None
        return Experiment.of_flags({**_log_of(workload), "nodes": nodes})
    else:
        return Experiment.of_flags({})
    if type(own) is not Source and (options or cluster is not None):
        raise UsageError("an experiment has options of its own; further ones are keys of it")
    return own


def setup_of(cluster: AnyCluster | int | None, options: Mapping[str, Any]) -> Setup | None:
    """Return the options of a run; None if none is given.

    Raises
    ------
    UsageError
        An option is unknown.
    """
    unknown = next((name for name in options if name not in OPTIONS), None)
    if unknown is not None:
        raise UsageError(f"unknown option {unknown!r}{nearest(unknown, list(OPTIONS))}")
    return Setup(**{"cluster": cluster, **options}) if options or cluster is not None else None


def _log_of(name: str | os.PathLike[str]) -> dict[str, str]:
    """Return the path of a log; for a name in the catalogue, that of its file here, and its checksum."""
    entry = None if Path(name).exists() else CATALOGUE.get(str(name))
    if entry is None:
        return {"log": str(name)}
    files = [file for file in (Path(f"{entry.file}.gz"), Path(entry.file)) if file.is_file()]
    if not files:
        raise UsageError(f"{name}: {entry.file}.gz of the archive is needed in this folder, found none")
    return {"log": str(files[0]), "sha256": entry.sha256}


class Ended(Observer):
    """Observer that reports the number of ended jobs.

    Parameters
    ----------
    tell : callable
        Callback, called with the number of ended jobs.
    """

    EVERY = 1000
    needs_events = False

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self.jobs = 0

    def on_end(self, job: Job, system: System) -> None:
        """Count the job, and report every thousandth one."""
        self.jobs += 1
        if self.jobs % self.EVERY == 0:
            self.tell(self.jobs)
