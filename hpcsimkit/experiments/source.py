"""Jobs and machines of a run: keys that experiments, trainings and evaluations have in common."""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from hpcsimkit.cluster.base import Nodes
from hpcsimkit.cluster.calendar import Calendar
from hpcsimkit.cluster.calendar_files import calendar_of_tables, read_calendar
from hpcsimkit.cluster.failure_files import FailureLog
from hpcsimkit.cluster.machines import Machines
from hpcsimkit.cluster.partition_files import partitions_of_tables, read_partitions
from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.errors import HpcsimkitError, WorkloadError
from hpcsimkit.experiments.generate import Generate
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.named_parts import (
    is_name,
    locality_of,
    machines_named,
    placement_of,
    reader_named,
    with_orders,
)
from hpcsimkit.experiments.parts.on_machines import fitting, place_of, without
from hpcsimkit.experiments.parts.trust import Trust, code_in, importing, version_of
from hpcsimkit.experiments.settings.checked_table import ALLOW_CODE, Problem, Table
from hpcsimkit.experiments.settings.keywords import (
    READ_FROM_TEXT,
    begin_at_of,
    failure_log_of,
    is_failure_log,
)
from hpcsimkit.experiments.settings.run_table import RunTable
from hpcsimkit.experiments.settings.toml_lines import Location
from hpcsimkit.io.files import is_folder, sha256_of_content
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.event_order import EVENT_ORDERS
from hpcsimkit.kernel.pipeline import Pipeline
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.kernel.service_time import ServiceTime
from hpcsimkit.kernel.setup import OPTIONS, Setup
from hpcsimkit.slurm.profile import Slurm
from hpcsimkit.slurm.whole_nodes import with_whole_nodes
from hpcsimkit.workloads import read_log
from hpcsimkit.workloads.readers.cells import date
from hpcsimkit.workloads.readers.local_time import calendar_of
from hpcsimkit.workloads.readers.logs import LogFormat, options_of
from hpcsimkit.workloads.readers.sacct_requests import MORE_ALLOCATED

__all__ = ["CONFIGURED", "Source", "sha256_of"]

BUILT_IN_LOAD = 0.9
"""Offered load of the built-in workload."""

HASHES = {
    "log": "sha256",
    "machines": "machines_sha256",
    "partitions": "partitions_sha256",
    "calendar": "calendar_sha256",
    "slurm": "slurm_sha256",
}
"""Keys of the hashes of files, by the keys of their paths."""

CONFIGURED = "as-configured"
"""Name of the policy of a folder with Slurm's configuration."""

UNDECISIVE = ("out", "workers", "engine", "report", "snapshots")
"""Keys that do not decide results."""


class Source(RunTable):
    """Jobs and machines of a run.

    Parameters
    ----------
    log : str, optional
        Path of a log in any format of :func:`hpcsimkit.workloads.readers.logs.read_log`.
    sha256 : str, optional
        Expected SHA-256 of the log.
    reader : str, optional
        Name of the reader of the log; see :func:`hpcsimkit.experiments.parts.named_parts.reader_named`. By
        default the format is detected.
    generate : Generate, optional
        Parameters of a model that generates the workload in place of a log. With neither, the built-in
        workload is used, and ``nodes`` (256), ``jobs`` (5000) and ``seed`` are parameters of its model.
    import_from : str, optional
        Additional search folder for modules and files of policies besides the current one.
    allow_code : list of str, optional
        Modules, files and folders from which the names in this table, and model files among them, may import
        code; see :mod:`hpcsimkit.experiments.parts.trust`. By default all code named in this object, and none
        named in model files; an experiment file may import none. The key is not allowed in a file.
    machines : str or list of tables, optional
        Path of a file of machines, or the tables of such a file; see :mod:`hpcsimkit.cluster.files`. Or name
        of machines; see :func:`hpcsimkit.experiments.parts.named_parts.machines_named`. By default a cluster
        of homogeneous nodes.
    machines_sha256 : str, optional
        Expected SHA-256 of the file of machines.
    partitions : str or list of tables, optional
        Path of a file of partitions, or the tables of such a file; see
        :mod:`hpcsimkit.cluster.partition_files`. By default there are no partitions.
    partitions_sha256 : str, optional
        Expected SHA-256 of the file of partitions.
    slurm : str, optional
        Path of a folder with the configuration of Slurm; see :mod:`hpcsimkit.slurm.configuration`. It has the
        machines and the partitions, jobs end at their limits, and stopped ones begin anew 121 s later, unless
        options say otherwise; the policy ``as-configured`` schedules all partitions. By default there is
        none.
    slurm_sha256 : str, optional
        Expected SHA-256 of the files in this folder.
    calendar : str or list of tables, optional
        Path of a file of windows, or the tables of such a file; see :mod:`hpcsimkit.cluster.calendar_files`.
        By default no capacity is known to be gone or reserved.
    calendar_sha256 : str, optional
        Expected SHA-256 of the file of windows.
    failures_sha256 : str, optional
        Expected SHA-256 of the failure log that the key ``failures`` names.
    partition_column : {"partition", "queue", "qos"}
        Column of the log with the partitions of the jobs. Default: ``"partition"``.
    placement : str, optional
        Name of the placement of all pipelines that name none; by default ``first-fit``.
    timezone : str, optional
        Name of the time zone of local times in a log that names none, such as ``Europe/Berlin``; see
        :func:`~hpcsimkit.workloads.readers.sacct.read_sacct`.
    features : list of str, optional
        Fields of the log that become required features of a job's machines, for a reader with such an option:
        ``constraints``, ``partition``, ``gpu_type``. Default: that of the reader.
    fields : str, optional
        Names of the fields of an export of ``sacct`` without a header, separated by commas.
    cluster_name : str, optional
        Name of the cluster whose jobs are simulated, in a log of several.
    from_date, to_date : str, optional
        Days (midnight) or times, on the clock of the log: only jobs submitted from the first on and before
        the second are simulated. By default all.
    jobs : int, optional
        Number of jobs to simulate, the first ones by submission; by default all.
    skip : int
        Number of first jobs to leave out before them, by submission. Default: 0.
    nodes : int, optional
        Number of nodes of a cluster of homogeneous nodes; by default that in the log.
    load_factor : float
        Divisor of the times between submissions, 1e-6 to 1e6. Default: 1.
    size : {"requested", "allocated"}
        Processors of a job, or its resources for a Slurm log: those requested or allocated.
    strict : bool
        Whether unusable jobs are errors; otherwise they are skipped and counted. Default: False.
    seed, walltime, ...
        Options of a run; see :class:`~hpcsimkit.kernel.setup.Setup`.

    Examples
    --------
    >>> source = Source(jobs=100, nodes=64)
    >>> source.workload()
    Workload('lublin-64', 100 jobs, machine_size=64)
    >>> Source.checked({"nodes": 0})[1]
    (('nodes',), ' must be greater than or equal to 1, found 0')
    """

    constructed: ClassVar[Collection[str]] = ("placement", "locality")
    """Keys with names whose objects are constructed to check them."""

    inner: ClassVar[Mapping[str, type[Table]]] = {"generate": Generate}
    flags: ClassVar[Mapping[str, str]] = {
        "from_date": "--from",
        "to_date": "--to",
        "cluster_name": "--cluster",
    }
    file_format: ClassVar[Format] = Format.EXPERIMENT

    log: str | None = Field(None, min_length=1)
    sha256: str | None = None
    reader: str | None = Field(None, min_length=1)
    generate: Generate | None = None
    import_from: str | None = None
    allow_code: list[str] | None = None
    machines: str | list[dict[str, Any]] | None = None
    machines_sha256: str | None = None
    partitions: str | list[dict[str, Any]] | None = None
    partitions_sha256: str | None = None
    slurm: str | None = Field(None, min_length=1)
    slurm_sha256: str | None = None
    calendar: str | list[dict[str, Any]] | None = None
    calendar_sha256: str | None = None
    failures_sha256: str | None = None
    partition_column: Literal["partition", "queue", "qos"] = "partition"
    placement: str | None = None
    timezone: str | None = Field(None, min_length=1)
    features: list[str] | None = None
    fields: str | None = Field(None, min_length=1)
    cluster_name: str | None = Field(None, min_length=1)
    from_date: str | None = None
    to_date: str | None = None
    jobs: int | None = Field(None, ge=1)
    skip: int = Field(0, ge=0)
    nodes: int | None = Field(None, ge=1, lt=2**31)
    load_factor: float = Field(1.0, ge=1e-6, le=1e6)
    size: Literal["requested", "allocated"] = "requested"
    strict: bool = False

    @field_validator("machines", "partitions", "calendar", mode="before")
    @classmethod
    def _a_file_or_tables(cls, found: Any, info: ValidationInfo) -> Any:
        tables = isinstance(found, list) and all(isinstance(table, dict) for table in found)
        if found is not None and not (found and (tables or isinstance(found, str))):
            raise ValueError(
                f"the path of a file or tables [[{info.field_name}]] are needed, found {found!r}"
            )
        return [_plain(table) for table in found] if isinstance(found, list) else found

    @field_validator("from_date", "to_date")
    @classmethod
    def _a_date(cls, found: str | None) -> str | None:
        try:
            if found is not None:
                date(found)
        except HpcsimkitError as error:
            raise ValueError(str(error)) from None
        return found

    @model_validator(mode="after")
    def _consistent_source(self) -> Self:
        beside_slurm = [("slurm", name) for name in ("nodes", "machines", "partitions")]
        for one, other in (("log", "generate"), ("nodes", "machines"), *beside_slurm):
            if getattr(self, one) is not None and getattr(self, other) is not None:
                raise ValueError(f"one of {one!r} and {other!r} is needed, both are given")
        for name in ("timezone", "features", "fields", "cluster_name", "reader"):
            if getattr(self, name) is not None and self.log is None:
                raise ValueError(f"{name!r} needs a log")
        for name in ("placement", "locality"):
            if getattr(self, name) is not None and self.machines is None and self.slurm is None:
                raise ValueError(f"{name!r} needs 'machines': nodes that are only counted are all alike")
        if self.nodes is not None and self.partitions is not None:
            raise ValueError("one of 'nodes' and 'partitions' is needed, both are given")
        for name in ("partitions", "slurm"):
            if getattr(self, name) is not None and self.semantics == "dirlab":
                raise ValueError(f"{name!r} is not known to the rules 'dirlab'")
        return self

    def __getstate__(self) -> dict[Any, Any]:
        """Return the settings only: where it is unpickled, code is imported by its name."""
        settings = {name: getattr(self, name) for name in type(self).model_fields}
        return {**super().__getstate__(), "__dict__": settings}

    def source(self, **changes: Any) -> Source:
        """Return the jobs and machines alone, with changes; None leaves a key out."""
        return Source.of_flags({**self.given, **changes})

    @property
    def given(self) -> dict[str, Any]:
        """Jobs and machines by key, so far as they were given."""
        return {name: getattr(self, name) for name in Source.model_fields if name in self.model_fields_set}

    # --- reading and saving --------------------------------------------------------------------------

    @classmethod
    def read(cls, file: Path, allow_code: Sequence[str] = ()) -> Self:
        """Read a TOML file; relative paths of a log and of machines are relative to the file.

        `allow_code` are modules, files and folders from which the file may import code. Messages name the
        line.
        """
        table = cls.of_toml(file, allow_code)
        files = [name for name in HASHES if not is_name(getattr(table, name), file.parent)]
        if table.failures is not None and is_failure_log(table.failures):
            files.append("failures")
        return table.model_copy(update=table.paths_from(file.parent, *files))

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a table with valid components, or the first problem."""
        table, problem = super().checked(values)
        for location, make in table._parts() if table is not None else ():
            try:
                make()
            except HpcsimkitError as error:
                return None, (location, f": {error}")
        return table, problem

    def _parts(self) -> Iterator[tuple[Location, Callable[[], object]]]:
        """Yield the locations of names and tables, each with a function that constructs its object."""
        for index, table in enumerate(self.machines if isinstance(self.machines, list) else ()):
            yield ("machines", index), partial(Machines.of_tables, [table])
        if isinstance(self.machines, str) and is_name(self.machines):
            yield ("machines",), partial(machines_named, self.machines, self.import_from, self.trust)
        if isinstance(self.calendar, list):
            yield ("calendar",), partial(calendar_of_tables, self.calendar)
        if self.reader is not None:
            yield ("reader",), partial(reader_named, self.reader, self.import_from, self.trust)
        if self.placement is not None and "placement" in self.constructed:
            yield ("placement",), partial(placement_of, self.placement, self.import_from, self.trust)
        if self.locality is not None and "locality" in self.constructed:
            yield ("locality",), partial(locality_of, self.locality, self.import_from, self.trust)
        for option, read in READ_FROM_TEXT.items():
            key = OPTIONS[option].key
            text = None if key is None else getattr(self, key)
            if key is not None and text is not None and not (key == "failures" and is_failure_log(text)):
                yield (key,), partial(read, text)
        if self.begin_at is not None:
            yield ("begin_at",), partial(begin_at_of, self.begin_at, self._policy_in_a_text)

    def saved_source(self) -> dict[str, Any]:
        """Return the keys that reproduce the jobs and machines, with absolute paths and hashes of files."""
        files: dict[str, Any] = {}
        for name, digest in HASHES.items():
            if isinstance(path := getattr(self, name), str) and not is_name(path):
                files |= {name: str(Path(path).absolute()), digest: sha256_of(path)}
        own = set(Source.model_fields) - {"generate", ALLOW_CODE, *HASHES.values(), "failures_sha256"}
        kept = self.model_dump(exclude_none=True, include=own)
        if self.failures is not None and is_failure_log(self.failures):
            files["failures"] = str(Path(self.failures).absolute())
            files["failures_sha256"] = sha256_of(failure_log_of(self.failures)[0])
        fields = files | kept | files
        if self.code:
            fields.setdefault("import_from", str(Path.cwd()))
        if self._is_built_in:
            fields = {name: value for name, value in fields.items() if name not in ("jobs", "nodes")}
        if self.log is None:
            fields["generate"] = self.generator.model_dump(exclude_none=True)
        return fields

    def settings(self) -> dict[str, Any]:
        """Return the settings that decide the results; files are represented by their names and hashes."""
        own = self.model_dump(exclude_none=True, exclude={*Source.model_fields, *UNDECISIVE})
        values = {**self.saved_source(), **own}
        for name, digest in HASHES.items():
            if digest in values:
                values[name] = f"{Path(values[name]).name} ({values.pop(digest)[:8]})"
        if isinstance(log := self.setup.outages, FailureLog):
            values["failures"] = str(log.record)
            del values["failures_sha256"]
        folder = values.pop("import_from", None)
        if self.code:
            values["code"] = [version_of(code, folder) for code in self.code]
        if values.get("generate", {}).get("seed") == self.seed:
            del values["generate"]["seed"]
        return values

    @property
    def trust(self) -> Trust:
        """Permission to import the code of the names."""
        return Trust(None if self.allow_code is None else tuple(self.allow_code))

    @property
    def code(self) -> list[str]:
        """Modules and files imported by the names, sorted."""
        names = [self.locality, self.reader, self.machines if is_name(self.machines) else None]
        code = filter(None, (code_in(name) for name in names if isinstance(name, str)))
        return sorted({*registry.code_of(self.placement or ""), *code})

    # --- machines and policies -----------------------------------------------------------------------

    @cached_property
    def profile(self) -> Slurm | None:
        """The configuration of Slurm, if any."""
        if self.slurm is None:
            return None
        _check_hash(self.slurm, self.slurm_sha256)
        return Slurm.read(self.slurm, self.partition_column)

    @cached_property
    def cluster(self) -> Machines | None:
        """The machines; None for homogeneous nodes."""
        if self.profile is not None:
            return self.profile.machines
        if isinstance(self.machines, list):
            return Machines.of_tables(self.machines)
        if self.machines is None:
            return None
        if is_name(self.machines):
            return machines_named(self.machines, self.import_from, self.trust)
        _check_hash(self.machines, self.machines_sha256)
        return Machines.read(self.machines)

    @cached_property
    def scheduled(self) -> Machines | Partitions | None:
        """The machines with their partitions, if any; None for homogeneous nodes without partitions."""
        if self.profile is not None:
            return self.profile.partitions
        if self.partitions is None:
            return self.cluster
        if isinstance(self.partitions, list):
            found = partitions_of_tables(self.partitions, self.cluster, self.partition_column)
        else:
            _check_hash(self.partitions, self.partitions_sha256)
            found = read_partitions(self.partitions, self.cluster, self.partition_column)
        return self.with_orders(found)

    def with_orders(self, partitions: Partitions) -> Partitions:
        """Return partitions with the orders that they name."""
        return with_orders(partitions, self.import_from, Trust(tuple(self.allow_code or ())))

    @cached_property
    def service_time(self) -> ServiceTime | None:
        """Locality model, if any."""
        return None if self.locality is None else locality_of(self.locality, self.import_from, self.trust)

    @cached_property
    def windows(self) -> Calendar:
        """Capacity that is known ahead to be gone or reserved."""
        if self.calendar is None:
            return Calendar()
        if isinstance(self.calendar, list):
            return calendar_of_tables(self.calendar)
        _check_hash(self.calendar, self.calendar_sha256)
        return read_calendar(self.calendar)

    @cached_property
    def setup(self) -> Setup:
        """Options of each run."""
        plain = {name: getattr(self, name) for name, option in OPTIONS.items() if option.kind is not None}
        rules = EVENT_ORDERS[self.semantics]()
        given: dict[str, Any] = {}
        for option, read in READ_FROM_TEXT.items():
            if (text := getattr(self, OPTIONS[option].key or option)) is not None:
                given[option] = read(text)
        if self.calendar is not None:
            given["calendar"] = self.windows
        if self.begin_at is not None:
            given["begin_at"] = begin_at_of(self.begin_at, self._policy_in_a_text)
        if self.profile is not None:
            for name, value in self.profile.options.items():
                if OPTIONS[name].key not in self.model_fields_set:
                    plain[name] = value
        return Setup(self.scheduled, event_order=rules, service_time=self.service_time, **given, **plain)

    @cached_property
    def _policies(self) -> dict[Any, Policy]:
        return {}

    def policy_named(self, name: str) -> Policy:
        """Return the policy of a name; a pipeline without a placement gets that of the table.

        The policy is constructed by the first call. It is not to be modified: further calls return the same
        object, and each simulation copies it.
        """
        return self.policy_of(name, self.trust)

    def policy_of(self, name: str, trust: Trust) -> Policy:
        """Return the policy of a name that is not from this table; see :meth:`policy_named`."""
        if name == CONFIGURED and self.profile is not None:
            return self.profile.policy
        key = (name, self.import_from, self.placement, trust)
        if key not in self._policies:
            self._policies[key] = self.placed(registry.policy_named(name, self.import_from, trust))
        return self._policies[key]

    def _policy_in_a_text(self, name: str) -> Policy:
        """Return the policy of a name within a text, which may refer to consented code only."""
        return self.policy_of(name, Trust(tuple(self.allow_code or ())))

    def placed(self, policy: Policy) -> Policy:
        """Return a new policy after giving it the placement of the table, if it is a pipeline without one."""
        if self.placement is not None and isinstance(policy, Pipeline) and policy.placement is None:
            policy.placement = placement_of(self.placement, self.import_from, self.trust)
        return policy

    # --- jobs ----------------------------------------------------------------------------------------

    @property
    def generator(self) -> Generate:
        """Model that generates the workload if there is no log."""
        if self.generate is not None:
            return self.generate
        sizes = {name: value for name in ("nodes", "jobs") if (value := getattr(self, name)) is not None}
        if self.cluster is not None:
            sizes["nodes"] = max(2, self.cluster.size)
        return Generate.of_flags({**sizes, "seed": self.seed, "load": BUILT_IN_LOAD})

    def workload(self, cut: Callable[[Workload], Workload] | None = None) -> Workload:
        """Read or generate the workload, selected and scaled; all of its jobs fit the cluster.

        `cut` selects jobs of the whole workload before all other steps.
        """
        whole = self.whole()
        return self.part(self._fitting(whole if cut is None else cut(whole)))

    def whole(self) -> Workload:
        """Read the log or generate the workload; the machine size may be unknown."""
        if self.log is None:
            return self._in_partitions(self.generator.workload())
        _check_hash(self.log, self.sha256)
        form = None if self.reader is None else reader_named(self.reader, self.import_from, self.trust)
        options: dict[str, Any] = {} if self.size == "requested" else {"size": self.size}
        if self.strict:
            options["strict"] = True
        for option, value in (
            ("timezone", self.timezone),
            ("features", self.features),
            ("fields", self.fields),
            ("cluster", self.cluster_name),
        ):
            if value is not None:
                options[option] = value
        options |= self._default_times(self.log, form)
        read = partial(read_log, self.log, form, **options)
        workload = read() if self.reader is None else importing(read, self.reader, "used")
        if self.profile is not None and "size" not in options and "size" in options_of(self.log, form):
            allocated = read(size="allocated") if MORE_ALLOCATED in workload.notes else workload
            workload = with_whole_nodes(workload, allocated, self.profile.machines)
        return self._in_partitions(
            workload if self.nodes is None else replace(workload, machine_size=self.nodes)
        )

    def _in_partitions(self, workload: Workload) -> Workload:
        """Return the jobs that name partitions that exist, under the rules of these; the others are skipped.

        What the files of machines and partitions had that could not be used is added to the notes.
        """
        partitions = self.scheduled
        notes = dict(getattr(self.cluster, "notes", {}))
        if isinstance(log := self.setup.outages, FailureLog):
            assert self.failures is not None
            _check_hash(failure_log_of(self.failures)[0], self.failures_sha256)
            notes |= log.notes_on(self.cluster or Nodes(1))
        if isinstance(partitions, Partitions):
            notes |= partitions.notes
        if self.profile is not None:
            notes |= self.profile.notes
        notes |= self.windows.notes
        if notes and self.strict:
            raise WorkloadError(next(iter(notes)))
        if not isinstance(partitions, Partitions):
            return replace(workload, notes={**workload.notes, **notes}) if notes else workload
        missing, partly = partitions.missing(workload), partitions.partly_unknown(workload)
        unknown = partitions.unknown(workload)
        if unknown and (self.strict or (missing != "").all()):
            row, text = unknown
            raise WorkloadError(f"{place_of(workload, row, self.log)}: {text}")
        if partly.any():
            if self.strict:
                row = int(np.argmax(partly))
                raise WorkloadError(f"{place_of(workload, row, self.log)}: an unknown partition in a list")
            notes["unknown partition in a list: the others taken"] = int(np.count_nonzero(partly))
        if notes:
            workload = replace(workload, notes={**workload.notes, **notes})
        return partitions.with_rules(without(workload, missing))

    def _default_times(self, log: str, form: LogFormat | None) -> dict[str, Any]:
        """Return the option of a reader for jobs without an estimate, if it has one."""
        partitions = self.scheduled
        known = isinstance(partitions, Partitions) and partitions.column != "qos"
        if not known or (self.fields is None and "default_times" not in options_of(log, form)):
            return {}
        assert isinstance(partitions, Partitions)
        return {"default_times": partitions.default_times}

    def part(self, workload: Workload) -> Workload:
        """Select jobs of a workload and scale its load by the settings."""
        workload = self._submitted_between(workload)
        whole = len(workload)
        limit = self.jobs if self.jobs is not None and not self._is_built_in else whole
        if self.skip or limit < whole:
            workload = workload.first(limit, self.skip)
        if not len(workload):
            raise WorkloadError(f"{workload.name}: no job is left of {whole} after skipping {self.skip}")
        return workload if self.load_factor == 1 else workload.scale_load(self.load_factor)

    def _submitted_between(self, workload: Workload) -> Workload:
        """Return the jobs submitted between the two dates."""
        if self.from_date is None and self.to_date is None:
            return workload
        calendar = calendar_of(workload)
        if calendar is None:
            raise WorkloadError(
                f"{workload.name}: a log with dates is needed for --from and --to, found none"
            )
        first, last = (
            None if text is None else date(text, calendar.zone) - calendar.start
            for text in (self.from_date, self.to_date)
        )
        submit = workload.submit_time
        kept = workload.window(
            int(submit.min()) if first is None else first, int(submit.max()) + 1 if last is None else last
        )
        if not len(kept):
            span = " to ".join(calendar.text(int(end)) for end in (submit.min(), submit.max()))
            raise WorkloadError(f"{workload.name}: jobs between --from and --to are needed, found {span}")
        return kept

    @property
    def _is_built_in(self) -> bool:
        return self.log is None and self.generate is None

    def _fitting(self, workload: Workload) -> Workload:
        """Leave out jobs that do not fit, or raise an error if `strict`."""
        source = self.log or workload.name
        if self.scheduled is not None and (self.cluster is not None or not workload.resources):
            return fitting(workload, self.scheduled, source, strict=self.strict)
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
    """Return the SHA-256 of a file's uncompressed text, as in the catalogue of logs, or of a folder."""
    if is_folder(file):
        each = (
            f"{path.name} {sha256_of(str(path))}" for path in sorted(Path(file).iterdir()) if path.is_file()
        )
        return hashlib.sha256("\n".join(each).encode()).hexdigest()
    try:
        about = Path(file).stat()
    except (OSError, ValueError):  # reading it says why
        return _sha256(file)
    return _sha256(file, about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _sha256(file: str, *version: int) -> str:
    """Return the SHA-256 of a file, computed once for each version of it."""
    return sha256_of_content(file)


def _check_hash(file: str, sha256: str | None) -> None:
    if sha256 is not None and (found := sha256_of(file)) != sha256:
        raise WorkloadError(f"{file}: a text with SHA-256 {sha256} is needed, found {found}")


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table with dates as texts, as in the saved settings."""
    return {key: str(value) if isinstance(value, datetime.date) else value for key, value in table.items()}
