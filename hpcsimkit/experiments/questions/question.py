"""Cases, about which questions are asked, and answers with tables, a picture and text."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.opaque import AnyCluster
from hpcsimkit.engine.provenance import Provenance
from hpcsimkit.engine.results_folder import SETTINGS, ResultsFolder, next_free
from hpcsimkit.engine.task import Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.comparison.policy_run import Ended
from hpcsimkit.experiments.source import Source
from hpcsimkit.io.files import write_bytes
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.observers import Observer
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.recording import Trace
from hpcsimkit.kernel.setup import Setup
from hpcsimkit.kernel.simulation import Simulation
from hpcsimkit.kernel.watchdog import Watchdog
from hpcsimkit.results.result import Result

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

__all__ = ["Answer", "Asked", "Case"]

Asked = Workload | Source | str | os.PathLike[str] | None
"""Jobs of a case: a workload, the path of a log or of an experiment file, settings, or the built-in one."""

PACKAGES = ("simpy", "numpy", "pandas", "scipy", "matplotlib")
"""Packages with recorded versions."""


@dataclass(frozen=True)
class Case:
    """Jobs, a policy and the options of a run, about which a question is asked.

    Parameters
    ----------
    jobs : Workload
        The jobs.
    policy : Policy
        The policy.
    name : str
        Name of the policy.
    setup : Setup
        Options of the run.
    source : Source
        Settings by which further names are resolved.
    observers : sequence of Observer
        Observers of the run. Default: none.
    """

    jobs: Workload
    policy: Policy
    name: str
    setup: Setup
    source: Source
    observers: Sequence[Observer] = ()

    @classmethod
    def of(
        cls,
        workload: Asked,
        policy: str | Policy,
        cluster: AnyCluster | int | None = None,
        *,
        every: bool = False,
        **options: Any,
    ) -> Case:
        """Return the case of objects or names.

        Parameters
        ----------
        workload : Workload, path or Experiment, optional
            Jobs, path of a log, or an experiment or the path of its TOML file, which has options of its own;
            by default the built-in workload.
        policy : str or Policy
            Name of a policy, or the policy.
        cluster : Cluster or int, optional
            Cluster, or number of nodes; by default that of the workload.
        every : bool
            Whether jobs of a file that do not fit the cluster are in the case. Default: False.
        **options
            Further options of a run: fields of :class:`~hpcsimkit.kernel.setup.Setup`.

        Raises
        ------
        UsageError
            A name or an option is unknown, or options are given beside an experiment.
        """
        own = workload if isinstance(workload, Source) else None
        if isinstance(workload, str | os.PathLike):
            path = Path(workload)
            own = Experiment.read(path) if path.suffix == ".toml" else Source.of_flags({"log": str(path)})
            if isinstance(cluster, int) and type(own) is Source:
                own = own.source(nodes=cluster)
        source = own or Source.of_flags({})
        if own is not None and type(own) is not Source and (options or cluster is not None):
            raise UsageError("an experiment has options of its own; further ones are keys of it")
        found = source.policy_named(policy) if isinstance(policy, str) else policy
        name = policy if isinstance(policy, str) else repr(policy)
        setup = Setup(cluster, **options) if options or cluster is not None else source.setup
        if isinstance(workload, Workload):
            return cls(workload, found, name, setup, source)
        if not every:
            return cls(source.workload(), found, name, setup, source)
        if setup.cluster is None:
            setup = replace(setup, cluster=Nodes(source.workload().machine_size or 1))
        return cls(source.part(source.whole()), found, name, setup, source)

    @property
    def cluster(self) -> AnyCluster:
        """Cluster of the run."""
        cluster = self.setup.cluster
        if isinstance(cluster, int) or cluster is None:
            return Nodes(self.jobs.machine_size or 1 if cluster is None else cluster)
        return cluster

    def watched(self, tell: Tell) -> Case:
        """Return the case with a callback that is told the number of ended jobs from time to time."""
        return replace(self, observers=[*self.observers, Ended(tell)])

    def traced(self, file: Path) -> Case:
        """Return the case with a file of all events of its run."""
        return replace(self, observers=[*self.observers, Trace(file)])

    def run(self, *observers: Observer) -> Result:
        """Simulate, and return the result."""
        observers = (*self.observers, *observers)
        return Simulation(self.jobs, self.policy, setup=self.setup, observers=observers, name=self.name).run()


class Answer(ABC):
    """Answer to a question: tables, a picture, and text for a terminal."""

    stem: ClassVar[str]
    """Name of the record and of the picture, without suffix."""

    names: ClassVar[tuple[str, ...]]
    """Names of the tables."""

    has_picture: ClassVar[bool] = True

    has_trace: ClassVar[bool] = True
    """Whether the events of its run may be written, if an experiment asks for it."""

    number_format: ClassVar[str | None] = None
    """Format of numbers in files."""

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, pandas.DataFrame]:
        """Tables by name."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the answer as lines of text."""

    def plot(self) -> Figure | None:
        """Return the picture; None if the answer has none."""
        return None

    @classmethod
    def files(cls) -> list[str]:
        """Return the names of the files, the one to look at last."""
        return [*(f"{name}.csv" for name in cls.names), *[f"{cls.stem}.png"] * cls.has_picture]

    def save(self, folder: Path) -> None:
        """Write the tables as CSV files, and the picture.

        Raises
        ------
        StorageError
            A file cannot be written.
        """
        from hpcsimkit.reports.figures import save_figure

        for name, table in self.tables.items():
            text = table.to_csv(index=False, lineterminator="\n", float_format=self.number_format)
            write_bytes(folder / f"{name}.csv", text.encode())
        if (figure := self.plot()) is not None:
            save_figure(figure, folder / f"{self.stem}.png")


class Place(NamedTuple):
    """Folder of the files of an answer: that of the user, else the usual one of its settings."""

    out: str | None
    usual: Path
    command: Sequence[str] = ()
    overwrite: bool = False

    def folder(self, kind: type[Answer], settings: Mapping[str, Any]) -> ResultsFolder:
        """Return the folder for the files of a kind of answer."""
        if self.out == "":
            raise UsageError("--out must have at least 1 character, found ''")
        make = partial(ResultsFolder, files=kind.files(), record=f"{kind.stem}.json")
        suits = lambda candidate: not make(candidate).holds_others(settings)  # noqa: E731
        return make(next_free(self.usual, suits=suits) if self.out is None else self.out)


def answered(
    case: Case,
    kind: type[Answer],
    ask: Callable[[Case], Answer],
    settings: Mapping[str, Any],
    place: Place,
) -> tuple[Answer, Path]:
    """Ask a question about a case, and write the files of the answer and their record.

    Returns the answer and the path of its folder.

    Raises
    ------
    HpcsimkitError
        There is no answer, results of other settings are in the folder, or it cannot be written.
    """
    folder = place.folder(kind, settings)
    provenance = Provenance(place.command, PACKAGES)
    with folder.in_place(settings, overwrite=place.overwrite):
        if kind.has_trace and getattr(case.source, "trace", False):
            folder.begin(settings)
            case = case.traced(folder.path / "trace.jsonl")
        with Watchdog():
            answer = ask(case)
        folder.begin(settings)
        answer.save(folder.path)
        folder.conclude(provenance, {SETTINGS: settings})
    return answer, folder.path
