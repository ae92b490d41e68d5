"""Keys for jobs and machines that trainings and evaluations share with experiments."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from hpcsimkit.experiments.checked_table import Problem, Table
from hpcsimkit.experiments.experiment import Experiment, Generate, RunsOfExperiment

__all__ = ["Source"]


class Source(Table):
    """Keys of an experiment for its jobs and machines.

    :class:`~hpcsimkit.experiments.experiment.Experiment` documents them and checks their values.

    Examples
    --------
    >>> Source(nodes=64).experiment().workload()
    Workload('lublin-64', 5000 jobs, machine_size=64)
    >>> Source.checked({"nodes": 0})[1]
    (('nodes',), ' must be greater than or equal to 1, found 0')
    """

    inner: ClassVar[Mapping[str, type[Table]]] = {"generate": Generate}

    log: Any = None
    sha256: Any = None
    generate: Any = None
    import_from: Any = None
    allow_code: Any = None
    machines: Any = None
    machines_sha256: Any = None
    placement: Any = None
    locality: Any = None
    jobs: Any = None
    skip: Any = None
    nodes: Any = None
    load_factor: Any = None
    size: Any = None
    strict: Any = None
    walltime: Any = None
    semantics: Any = None
    seed: Any = None

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a table with keys that an experiment accepts, or the first problem."""
        table, problem = super().checked(values)
        if table is None:
            return None, problem
        _, problem = RunsOfExperiment.checked(table.keys_of_experiment())
        return (table, None) if problem is None else (None, problem)

    def keys_of_experiment(self) -> dict[str, Any]:
        """Return the given keys of an experiment."""
        values = {name: getattr(self, name) for name in Source.model_fields}
        return {name: value for name, value in values.items() if value is not None}

    def experiment(self, **changes: Any) -> RunsOfExperiment:
        """Return the experiment defined by the keys, with changes; None leaves a key out."""
        keys = {**self.keys_of_experiment(), **changes}
        return RunsOfExperiment.of_flags(keys)

    @staticmethod
    def saved_keys(experiment: Experiment) -> dict[str, Any]:
        """Return the keys that an experiment saves, with absolute paths and hashes of files."""
        saved = tomllib.loads(experiment.saved())
        return {name: value for name, value in saved.items() if name in Source.model_fields}
