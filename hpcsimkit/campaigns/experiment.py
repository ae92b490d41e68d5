"""An experiment: a workload, the machine, the policies, and how they are run and judged.

One model is the command line's flags, the TOML file's keys and what is saved with the results.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcsimkit import registry
from hpcsimkit.campaigns.toml_lines import Location, line_of, toml_text
from hpcsimkit.dependencies import Dependencies
from hpcsimkit.errors import HpcsimkitError, UsageError, WorkloadError
from hpcsimkit.files import read_bytes
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import LublinModel, read_swf, with_estimates

__all__ = ["STANDARD_POLICIES", "Experiment", "Generate"]

STANDARD_POLICIES = (
    "fcfs", "fcfs+easy", "fcfs+conservative", "sjf+easy", "saf+easy", "wfp3+easy", "f1+easy", "random+easy",
)  # fmt: skip
"""What is compared when no policy is named."""

BUILT_IN_LOAD = 0.9
"""Offered load of the built-in workload."""


class Table(BaseModel):
    """A table of plain values, all of them checked, none unknown, none converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a table of the values, or where something is wrong with them, and what."""
        try:
            return cls(**values), None
        except ValidationError as error:
            return None, _first_problem(error)

    @classmethod
    def of_flags(cls, flags: Mapping[str, Any], base: Mapping[str, Any] | None = None) -> Self:
        """Return what the flags of a command say (None: not given), over other values.

        Raises
        ------
        UsageError
            A flag is not understood; the message names it.
        """
        given = {name: value for name, value in flags.items() if value is not None}
        table, problem = cls.checked({**(base or {}), **given})
        if table is None:
            location, text = problem or ((), "")
            flag = "-p" if location[:1] == ("policies",) else f"--{location[0]}" if location else ""
            raise UsageError(f"{flag.replace('_', '-')}{text}".removeprefix(": "))
        return table


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
        Path of a log in the Standard Workload Format.
    sha256 : str, optional
        What the log's file must hash to.
    generate : Generate, optional
        A model in place of a log. With neither, the built-in workload: ``nodes`` (256), ``jobs`` (5000) and
        ``seed`` are then the model's.
    policies : list of str
        Names as :func:`hpcsimkit.registry.make` understands them, each once.
    import_from : str, optional
        Folder in which modules and files of policies are looked for besides the current one.
    jobs, skip : int
        Simulate so many jobs, after leaving out the first so many, by submission; by default all.
    nodes : int, optional
        Size of the machine; by default the log's own.
    load_factor : float
        The time between submissions is divided by it.
    size : {"requested", "allocated"}
        Which processors a job of a log takes.
    strict : bool
        Refuse what is otherwise skipped and counted.
    walltime : {"run", "kill"}
        Jobs run their full run time, or are killed at their requested time.
    dependencies : bool
        Jobs wait for their preceding job (SWF fields 17 and 18).
    period : int, optional
        Passes happen only at multiples of so many seconds.
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

    log: str | None = Field(None, min_length=1)
    sha256: str | None = None
    generate: Generate | None = None
    policies: list[str] = list(STANDARD_POLICIES)
    import_from: str | None = None
    jobs: int | None = Field(None, ge=1)
    skip: int = Field(0, ge=0)
    nodes: int | None = Field(None, ge=1, lt=2**31)
    load_factor: float = Field(1.0, ge=1e-6, le=1e6)
    size: Literal["requested", "allocated"] = "requested"
    strict: bool = False
    walltime: Literal["run", "kill"] = "run"
    dependencies: bool = False
    period: int | None = Field(None, ge=1)
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

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.log is not None and self.generate is not None:
            raise ValueError("one of 'log' and 'generate' is needed, both are given")
        return self

    # --- from flags and files, and back --------------------------------------------------------------

    @classmethod
    def read(cls, file: Path) -> Experiment:
        """Read a TOML file; a relative path of a log is relative to the file.

        Raises
        ------
        UsageError
            The file cannot be read, is not TOML, or not an experiment; the message names the line.
        """
        text = _text(file)
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(_not_toml(file, text, error)) from None
        experiment, problem = cls.checked(values)
        if experiment is None:
            location, message = problem or ((), "")
            line = line_of(text, location) if location else None
            where = f"{file}:{line}" if line else str(file)
            raise UsageError(f"{where}: {_dotted(location)}{message}".replace(": : ", ": "))
        if experiment.log is None:
            return experiment
        return experiment.model_copy(update={"log": str(file.parent / experiment.log)})

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return an experiment whose policies can be made, or where something is wrong, and what."""
        experiment, problem = super().checked(values)
        for index, name in enumerate(experiment.policies if experiment is not None else ()):
            try:
                registry.make(name, experiment.import_from if experiment is not None else None)
            except HpcsimkitError as error:
                return None, (("policies", index), f": {error}")
        return experiment, problem

    def saved(self) -> str:
        """Return the TOML text that makes the same schedules again; it names the log by its absolute path."""
        fields = self.model_dump(exclude_none=True, exclude={"out", "workers", "log", "sha256", "generate"})
        if any(":" in policy for policy in self.policies):
            fields.setdefault("import_from", str(Path.cwd()))
        if self.log is not None:
            source = {"log": str(Path(self.log).absolute()), "sha256": sha256_of(self.log)}
            return toml_text({**source, **fields})
        if self._is_built_in:
            fields = {name: value for name, value in fields.items() if name not in ("jobs", "nodes")}
        return toml_text({**fields, "generate": self.model.model_dump(exclude_none=True)})

    # --- the workload --------------------------------------------------------------------------------

    @property
    def model(self) -> Generate:
        """What makes the workload if no log does."""
        if self.generate is not None:
            return self.generate
        sizes = {name: value for name in ("nodes", "jobs") if (value := getattr(self, name)) is not None}
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
        if self.sha256 is not None and (found := sha256_of(self.log)) != self.sha256:
            raise WorkloadError(f"{self.log}: a text with SHA-256 {self.sha256} is needed, found {found}")
        return read_swf(self.log, size=self.size, machine_size=self.nodes, strict=self.strict)

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
        """Leave out jobs larger than the machine, or refuse them."""
        source = self.log or workload.name
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


Problem = tuple[Location, str]
"""Where something is wrong, and what, in words that go on from the name of the place."""


def sha256_of(log: str) -> str:
    """Return the SHA-256 of a log's uncompressed text, as the catalogue of logs gives it."""
    return hashlib.sha256(read_bytes(log)).hexdigest()


def _first_problem(error: ValidationError) -> Problem:
    """Return the first thing that pydantic found wrong."""
    found = error.errors()[0]
    location: Location = found["loc"]
    if found["type"] == "extra_forbidden":
        table: type[BaseModel] = Generate if location[0] == "generate" else Experiment
        return location, f": unknown key{_nearest(str(location[-1]), list(table.model_fields))}"
    text = _lowered(found["msg"].removeprefix("Value error, "))
    if found["type"] == "value_error":
        return location, f": {text}"
    text = re.sub(r"^\w+ should", "must", text)
    return location, f" {text}, found {found['input']!r}"


def _nearest(word: str, words: list[str]) -> str:
    matches = get_close_matches(word, words, n=3, cutoff=0.5)
    return f"; nearest: {', '.join(matches)}" if matches else f"; known: {', '.join(words)}"


def _dotted(location: Location) -> str:
    """Return a location as it is read in TOML.

    >>> _dotted(("policies", 1)), _dotted(("generate", "nodes"))
    ('policies[1]', 'generate.nodes')
    """
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in location)
    return "".join(steps).removeprefix(".")


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _text(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{file}: an experiment in TOML is needed, found no UTF-8 text") from None


def _not_toml(file: Path, text: str, error: tomllib.TOMLDecodeError) -> str:
    """Name the line; what the reader finds at the end of the text, it finds on the last line."""
    message, _, place = str(error).partition(" (at ")
    line = re.match(r"line (\d+)", place)
    number = int(line[1]) if line else len(text.splitlines())
    return f"{file}:{number}: not TOML: {_lowered(message)}"
