"""An experiment: a workload, the machine, the policies, and how they are run and judged.

One model is the command line's flags, the TOML file's keys and what is saved with the results.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from hpcsimkit import registry
from hpcsimkit.campaigns.checked_table import Problem, Table
from hpcsimkit.campaigns.on_machines import fitting, locality_of, placement_of
from hpcsimkit.campaigns.toml_lines import Location, toml_text
from hpcsimkit.dependencies import Dependencies
from hpcsimkit.errors import HpcsimkitError, WorkloadError
from hpcsimkit.files import read_bytes
from hpcsimkit.machine_files import machines_of
from hpcsimkit.machines import Machines
from hpcsimkit.pipeline import Pipeline
from hpcsimkit.policy import Policy
from hpcsimkit.service_time import ServiceTime
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import LublinModel, read_log, with_estimates

__all__ = ["MACHINE_POLICIES", "STANDARD_POLICIES", "Experiment", "Generate"]

STANDARD_POLICIES = (
    "fcfs", "fcfs+easy", "fcfs+conservative", "sjf+easy", "saf+easy", "wfp3+easy", "f1+easy", "random+easy",
)  # fmt: skip
"""What is compared when no policy is named."""

MACHINE_POLICIES = (
    "fcfs", "fcfs+easy", "sjf+easy", "drf+easy", "sjf+fitting", "drf+fitting", "random+fitting",
)  # fmt: skip
"""What is compared on machines when no policy is named.

With and without somebody being blocked, and whatever jobs ask for; ``bfbp`` is not among them, since it
refuses jobs that need more than a share of one machine.
"""

BUILT_IN_LOAD = 0.9
"""Offered load of the built-in workload."""


class Generate(Table):
    """A workload made by a model instead of read from a log: the table ``[generate]``.

    Parameters
    ----------
    model : {"lublin"}
        Which model (Lublin and Feitelson, 2003).
    nodes : int
        Size of the machine, 2 or more.
    jobs : int
        How many, 1 or more.
    seed : int
        Where the model's randomness comes from, 0 or more.
    load : float, optional
        Offered load to reach; by default the model's own.
    estimates : bool
        Model user estimates too; else jobs request exactly what they run.

    Examples
    --------
    >>> len(Generate(jobs=100).workload())
    100
    """

    model: Literal["lublin"] = "lublin"
    nodes: int = Field(256, ge=2, lt=2**31)
    jobs: int = Field(5000, ge=1)
    seed: int = Field(0, ge=0)
    load: float | None = Field(None, gt=0, allow_inf_nan=False)
    estimates: bool = True

    def workload(self) -> Workload:
        """Make the workload: equal parameters, equal jobs."""
        rng = np.random.default_rng(self.seed)
        workload = LublinModel(nodes=self.nodes, load=self.load).generate(self.jobs, rng)
        return with_estimates(workload, rng) if self.estimates else workload


class Experiment(Table):
    """What is simulated; see the module.

    Parameters
    ----------
    log : str, optional
        Path of a log of any form that :func:`hpcsimkit.workloads.logs.read_log` understands.
    sha256 : str, optional
        What the log's file must hash to.
    generate : Generate, optional
        A model in place of a log. With neither, the built-in workload: ``nodes`` (256), ``jobs`` (5000) and
        ``seed`` are then the model's.
    policies : list of str
        Names as :func:`hpcsimkit.registry.make` understands them, each once; by default
        `STANDARD_POLICIES`, on machines `MACHINE_POLICIES`.
    import_from : str, optional
        Folder in which modules and files of policies are looked for besides the current one.
    machines : str or list of tables, optional
        Path of a file of machines, or tables as such a file has them: see
        :mod:`hpcsimkit.machine_files`. By default nodes that are only counted.
    machines_sha256 : str, optional
        What the file of machines must hash to.
    placement : str, optional
        Name of the placement of every pipeline that names none; by default the first machines that fit.
    locality : str, optional
        How much longer jobs take where they are placed: see
        :func:`hpcsimkit.campaigns.on_machines.locality_of`. By default no longer.
    jobs, skip : int
        Simulate so many jobs, after leaving out the first so many, by submission; by default all.
    nodes : int, optional
        Size of a machine whose nodes are only counted; by default the log's own.
    load_factor : float
        The time between submissions is divided by it.
    size : {"requested", "allocated"}
        Which processors (of a log of Slurm: which resources) a job takes.
    strict : bool
        Refuse what is otherwise skipped and counted.
    walltime : {"run", "kill"}
        Jobs run their full run time, or are killed at their requested time.
    dependencies : bool
        Jobs wait for their preceding job (SWF fields 17 and 18).
    period : int, optional
        Passes happen only at multiples of so many seconds.
    semantics : {"textbook", "dirlab"}
        By which rules the clock runs: see :mod:`hpcsimkit.semantics`.
    warmup, cooldown : float
        Seconds after the first and before the last submission that the metrics leave out.
    seed : int
        Where the randomness of each run comes from.
    out : str, optional
        The results folder.
    workers : int
        Policies simulated at the same time, in processes of their own.
    report : bool
        Draw pictures and write ``report.html``.
    trace : bool
        Write every event to ``traces/<policy>.jsonl``.

    Examples
    --------
    >>> experiment = Experiment(jobs=100, seed=3, policies=["fcfs", "fcfs+easy"])
    >>> experiment.workload()
    Workload('lublin-256', 100 jobs, machine_size=256)
    """

    inner: ClassVar = {"generate": Generate}
    flags: ClassVar = {"policies": "-p"}

    log: str | None = Field(None, min_length=1)
    sha256: str | None = None
    generate: Generate | None = None
    policies: list[str] = Field(list(STANDARD_POLICIES))
    import_from: str | None = None
    machines: str | list[dict[str, Any]] | None = None
    machines_sha256: str | None = None
    placement: str | None = None
    locality: str | None = None
    jobs: int | None = Field(None, ge=1)
    skip: int = Field(0, ge=0)
    nodes: int | None = Field(None, ge=1, lt=2**31)
    load_factor: float = Field(1.0, ge=1e-6, le=1e6)
    size: Literal["requested", "allocated"] = "requested"
    strict: bool = False
    walltime: Literal["run", "kill"] = "run"
    dependencies: bool = False
    period: int | None = Field(None, ge=1)
    semantics: Literal["textbook", "dirlab"] = "textbook"
    warmup: float = Field(0.0, ge=0, allow_inf_nan=False)
    cooldown: float = Field(0.0, ge=0, allow_inf_nan=False)
    seed: int = Field(0, ge=0)
    out: str | None = Field(None, min_length=1)
    workers: int = Field(1, ge=1)
    report: bool = True
    trace: bool = False

    @field_validator("policies")
    @classmethod
    def _each_once(cls, names: list[str]) -> list[str]:
        if not names:
            raise ValueError("at least one is needed")
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice")
        return names

    @field_validator("machines", mode="before")
    @classmethod
    def _a_file_or_tables(cls, machines: Any) -> Any:
        tables = isinstance(machines, list) and all(isinstance(table, dict) for table in machines)
        if machines is not None and not (machines and (tables or isinstance(machines, str))):
            raise ValueError(f"the path of a file or tables [[machines]] are needed, found {machines!r}")
        return machines

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for one, other in (("log", "generate"), ("nodes", "machines")):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ValueError(f"one of {one!r} and {other!r} is needed, both are given")
        for name in ("placement", "locality"):
            if getattr(self, name) is not None and self.machines is None:
                raise ValueError(f"{name!r} needs 'machines': nodes that are only counted are all alike")
        for name in ("dependencies", "period", "locality") if self.semantics == "dirlab" else ():
            if getattr(self, name):
                raise ValueError(f"{name!r} is not known to the rules 'dirlab'")
        if self.machines is not None and "policies" not in self.model_fields_set:
            object.__setattr__(self, "policies", list(MACHINE_POLICIES))  # still a default: not set by anyone
        return self

    # --- from flags and files, and back --------------------------------------------------------------

    @classmethod
    def read(cls, file: Path) -> Experiment:
        """Read a TOML file; relative paths of a log and of machines are relative to the file.

        Raises
        ------
        UsageError
            The file cannot be read, is not TOML, or not an experiment; the message names the line.
        """
        experiment = cls.of_toml(file)
        paths = {name: getattr(experiment, name) for name in ("log", "machines")}
        return experiment.model_copy(
            update={name: str(file.parent / path) for name, path in paths.items() if isinstance(path, str)}
        )

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return an experiment whose parts can be made, or where something is wrong, and what."""
        experiment, problem = super().checked(values)
        for location, make in experiment._parts() if experiment is not None else ():
            try:
                make()
            except HpcsimkitError as error:
                return None, (location, f": {error}")
        return experiment, problem

    def _parts(self) -> Iterator[tuple[Location, Callable[[], object]]]:
        """Yield where names and tables stand, and what makes of each what it stands for."""
        if self.placement is not None:
            yield ("placement",), partial(placement_of, self.placement, self.import_from)
        if self.locality is not None:
            yield ("locality",), partial(locality_of, self.locality, self.import_from)
        for index, table in enumerate(self.machines if isinstance(self.machines, list) else ()):
            yield ("machines", index), partial(machines_of, table)
        for index, name in enumerate(self.policies):
            yield ("policies", index), partial(self.policy, name)

    def saved(self) -> str:
        """Return the TOML text that makes the same schedules again; files stand in it by absolute paths."""
        files = {"log": "sha256", "machines": "machines_sha256"}
        source: dict[str, Any] = {}
        for name, digest in files.items():
            if isinstance(path := getattr(self, name), str):
                source |= {name: str(Path(path).absolute()), digest: sha256_of(path)}
        kept = self.model_dump(exclude_none=True, exclude={"out", "workers", "generate", *files.values()})
        fields = source | kept | source
        if any(":" in name for name in (*self.policies, self.placement or "", self.locality or "")):
            fields.setdefault("import_from", str(Path.cwd()))
        if self._is_built_in:
            fields = {name: value for name, value in fields.items() if name not in ("jobs", "nodes")}
        if self.log is None:
            fields["generate"] = self.model.model_dump(exclude_none=True)
        return toml_text(fields)

    # --- the machine and the policies ----------------------------------------------------------------

    @cached_property
    def cluster(self) -> Machines | None:
        """The machines; None where nodes are only counted.

        Raises
        ------
        UsageError
            Something in the file of machines is not understood.
        WorkloadError
            The file cannot be read, or is not the one meant.
        """
        if isinstance(self.machines, list):
            return reduce(Machines.__add__, map(machines_of, self.machines))
        if self.machines is None:
            return None
        _check_hash(self.machines, self.machines_sha256)
        return Machines.read(self.machines)

    @cached_property
    def service_time(self) -> ServiceTime | None:
        """How long jobs take where they are placed, if it matters."""
        return None if self.locality is None else locality_of(self.locality, self.import_from)

    def policy(self, name: str) -> Policy:
        """Make the policy of a name; a pipeline without a placement of its own gets the experiment's."""
        policy = registry.make(name, self.import_from)
        if self.placement is not None and isinstance(policy, Pipeline) and policy.placement is None:
            policy.placement = placement_of(self.placement, self.import_from)
        return policy

    # --- the workload --------------------------------------------------------------------------------

    @property
    def model(self) -> Generate:
        """What makes the workload if no log does."""
        if self.generate is not None:
            return self.generate
        sizes = {name: value for name in ("nodes", "jobs") if (value := getattr(self, name)) is not None}
        if self.cluster is not None:
            sizes["nodes"] = max(2, self.cluster.size)
        return Generate(**sizes, seed=self.seed, load=BUILT_IN_LOAD)

    def workload(self) -> Workload:
        """Read or make the workload, cut and scaled as the experiment says; all of its jobs fit the machine.

        Raises
        ------
        WorkloadError
            The log cannot be used, is not the one meant, or no job is left.
        """
        workload = self.part(self._fitting(self.whole()))
        void = Dependencies(workload).void if self.dependencies else 0
        if not void:
            return workload
        return replace(workload, notes={**workload.notes, "preceding job not usable: ignored": void})

    def whole(self) -> Workload:
        """Read the log, or ask the model; the size of the machine may be unknown."""
        if self.log is None:
            return self.model.workload()
        _check_hash(self.log, self.sha256)
        size = {} if self.size == "requested" else {"size": self.size}
        workload = read_log(self.log, strict=self.strict, **size)
        return workload if self.nodes is None else replace(workload, machine_size=self.nodes)

    def part(self, workload: Workload) -> Workload:
        """Cut and scale a workload as the experiment says."""
        whole = len(workload)
        limit = self.jobs if self.jobs is not None and not self._is_built_in else whole
        if self.skip or limit < whole:
            workload = workload.first(limit, self.skip)
        if not len(workload):
            raise WorkloadError(f"{workload.name}: no job is left of {whole} after skipping {self.skip}")
        return workload if self.load_factor == 1 else workload.scale_load(self.load_factor)

    @property
    def _is_built_in(self) -> bool:
        return self.log is None and self.generate is None

    def _fitting(self, workload: Workload) -> Workload:
        """Leave out jobs that do not fit, or refuse them."""
        source = self.log or workload.name
        if self.cluster is not None:
            return fitting(workload, self.cluster, source, strict=self.strict)
        if workload.resources:
            asked = ", ".join(workload.resources)
            raise WorkloadError(f"{source}: its jobs ask for {asked}; say of which machines: --machines FILE")
        size = workload.machine_size if self._is_built_in else self.nodes or workload.machine_size
        if size is None:
            raise WorkloadError(f"{source}: the log names no machine size; say how many nodes: --nodes N")
        larger = workload.nodes > size
        if larger.any() and (self.strict or larger.all()):
            row = int(np.argmax(larger))
            job = f"job {workload.id[row]} needs {workload.nodes[row]} nodes"
            raise WorkloadError(
                f"{source}: {job}; the machine has {size}{' (no job fits)' * bool(larger.all())}"
            )
        return workload.fitting(size)


def sha256_of(file: str) -> str:
    """Return the SHA-256 of a file's uncompressed text, as the catalogue of logs gives it."""
    return hashlib.sha256(read_bytes(file)).hexdigest()


def _check_hash(file: str, sha256: str | None) -> None:
    if sha256 is not None and (found := sha256_of(file)) != sha256:
        raise WorkloadError(f"{file}: a text with SHA-256 {sha256} is needed, found {found}")
