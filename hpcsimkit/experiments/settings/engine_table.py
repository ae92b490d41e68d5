"""Parallel execution in experiments and evaluations: the keys ``workers`` and ``[engine]``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from hpcsimkit.engine.engines import Engine, engine_of
from hpcsimkit.engine.named import engine_named
from hpcsimkit.errors import HpcsimkitError
from hpcsimkit.experiments.settings.checked_table import Table
from hpcsimkit.io.units import memory_bytes


class EngineTable(Table):
    """Engine that executes the tasks, and the resources of its jobs.

    Parameters
    ----------
    name : str
        Name in the form of :func:`hpcsimkit.engine.named.engine_named`.
    partition : str, optional
        Partition of the jobs of Slurm.
    time : str, optional
        Time limit of a job in the notation of Slurm, such as ``"2:00:00"``.
    memory : str, optional
        Memory of a job, such as ``"8 GiB"``.
    cores : int, optional
        Number of cores of a job, 1 or more.
    logs : str, optional
        Path of a folder for the output of the jobs.

    Examples
    --------
    >>> EngineTable(name="slurm:8", partition="short", cores=4).engine().memory
    '16 GiB'
    """

    flags: ClassVar[Mapping[str, str]] = {"name": "--engine"}

    name: str
    partition: str | None = Field(None, pattern=r"^[\w.,-]+$")
    time: str | None = Field(None, pattern=r"^\d+(-\d+)?(:\d+){0,2}$")
    memory: str | None = None
    cores: int | None = Field(None, ge=1, le=10_000)
    logs: str | None = Field(None, min_length=1)

    @field_validator("name", "memory")
    @classmethod
    def _is_known(cls, text: str, field: ValidationInfo) -> str:
        try:
            engine_named(text) if field.field_name == "name" else memory_bytes(text)
        except HpcsimkitError as error:
            raise ValueError(str(error)) from None
        return text

    def engine(self) -> Engine:
        """Return the engine; it connects to a cluster when it runs."""
        return engine_named(self.name, **self.model_dump(exclude={"name"}, exclude_none=True))


class Parallel(Table):
    """Keys for the parallel execution of tasks, as fields of other tables.

    Parameters
    ----------
    workers : int
        Number of tasks executed in parallel, each in its own process, 1 or more. Default: 1.
    engine : EngineTable, optional
        Engine that executes the tasks; by default that number of processes.
    """

    workers: int = Field(1, ge=1)
    engine: EngineTable | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.engine is not None and "workers" in self.model_fields_set:
            raise ValueError("one of 'workers' and 'engine' is needed, both are given")
        return self

    def engine_for(self, tasks: int) -> Engine:
        """Return the engine for a number of tasks."""
        return engine_of(max(1, min(self.workers, tasks))) if self.engine is None else self.engine.engine()
