"""An experiment: a workload, the machine, the policies, and how they are run and judged.

One model is the command line's flags, the TOML file's keys and what is saved with the results.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hpcsimkit import registry
from hpcsimkit.errors import HpcsimkitError, UsageError, WorkloadError
from hpcsimkit.policy import Policy
from hpcsimkit.toml_lines import Location, line_of, toml_text
from hpcsimkit.workload import Workload
from hpcsimkit.workloads import LublinModel, default_workload, read_swf

__all__ = ["STANDARD_POLICIES", "Experiment", "Generate"]

STANDARD_POLICIES = (
    "fcfs", "fcfs+easy", "fcfs+conservative", "sjf+easy", "saf+easy", "wfp3+easy", "f1+easy", "random+easy",
)  # fmt: skip
"""What is compared when no policy is named."""

BUILT_IN_LOAD = 0.9

Seed = int


class Table(BaseModel):
    """A table of plain values, all of them checked, none unknown, none converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
        if self.estimates:
            return default_workload(rng, jobs=self.jobs, nodes=self.nodes, load=self.load)
        return LublinModel(nodes=self.nodes, load=self.load).generate(self.jobs, rng)


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
        Share of the jobs, first and last submitted, that the metrics leave out.
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
    policies: list[str] = Field(list(STANDARD_POLICIES), min_length=1)
    jobs: int | None = Field(None, ge=1)
    skip: int = Field(0, ge=0)
    nodes: int | None = Field(None, ge=1, lt=2**31)
    load_factor: float = Field(1.0, gt=0, allow_inf_nan=False)
    size: Literal["requested", "allocated"] = "requested"
    strict: bool = False
    walltime: Literal["run", "kill"] = "run"
    dependencies: bool = False
    period: int | None = Field(None, ge=1)
    warmup: float = Field(0.0, ge=0, lt=1)
    cooldown: float = Field(0.0, ge=0, lt=1)
    seed: int = Field(0, ge=0)
    out: str | None = Field(None, min_length=1)
    workers: int = Field(1, ge=1)
    report: bool = True
    trace: bool = False

    @field_validator("policies")
    @classmethod
    def _each_once(cls, names: list[str]) -> list[str]:
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name!r} is named twice")
        return names

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.log is not None and self.generate is not None:
            raise ValueError("one of 'log' and 'generate' is needed, both are given")
        return self

    # --- in and out ----------------------------------------------------------------------------------

    @classmethod
    def of_flags(cls, flags: dict[str, Any], file: Path | None = None) -> Experiment:
        """Return what the flags say, over what a TOML file says.

        Raises
        ------
        UsageError
            A flag or a line of the file is not understood; the message names it.
        """
        base = read_toml(file) if file is not None else cls()
        given = {name: value for name, value in flags.items() if value is not None}
        try:
            experiment = cls(**{**base.given(), **given})
        except ValidationError as error:
            location, text = explain(error)
            flag = "-p" if location[:1] == ("policies",) else f"--{location[0]}" if location else ""
            raise UsageError(f"{str(flag).replace('_', '-')} {text}".strip()) from None
        for name in given.get("policies", ()):
            registry.make(name)
        return experiment

    def given(self) -> dict[str, Any]:
        """Return the values that differ from their defaults."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def saved(self, workload: Workload) -> str:
        """Return the TOML text that makes the same schedules again, on this machine and on others."""
        source: dict[str, Any] = {}
        if self.log is not None:
            source = {"log": os.path.abspath(self.log), "sha256": file_sha256(self.log)}
        else:
            source = {"generate": self.generated}
        fields = {**self.model_dump(exclude_none=True, exclude={"out", "workers"}), **source}
        if self.generate is None and self.log is None:  # the built-in workload takes them from its table
            fields.pop("jobs", None)
            fields.pop("nodes", None)
        return toml_text(fields)

    # --- what it stands for --------------------------------------------------------------------------

    @property
    def generated(self) -> dict[str, Any]:
        return {}

    def workload(self) -> Workload:
        """Read or make the workload, cut and scaled as the experiment says; all jobs fit the machine."""
        raise NotImplementedError
