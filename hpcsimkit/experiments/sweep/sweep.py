"""Sweeps: an experiment with axes, and its expansion into cells."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from pydantic import Field

from hpcsimkit.cluster.partitions import Partitions
from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.identity import identity_of
from hpcsimkit.errors import UsageError, WorkloadError, nearest
from hpcsimkit.experiments.comparison.experiment import Experiment, JobsOfExperiment
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.progress import show_tasks
from hpcsimkit.experiments.settings.checked_table import Problem
from hpcsimkit.experiments.source import HASHES, sha256_of
from hpcsimkit.experiments.sweep.axes import PERIOD, POLICY, QUESTION, REPLICATES, SEED, Axis, axes_of
from hpcsimkit.experiments.sweep.cell import Cell, SimulationCell
from hpcsimkit.experiments.sweep.draws import may_draw
from hpcsimkit.experiments.sweep.question_cell import QuestionCell, QuestionTable
from hpcsimkit.experiments.sweep.results import SweepResults
from hpcsimkit.experiments.sweep.windows import Window, Windows, WindowsOfLog
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.reports.sweep.table import SweepTable

if TYPE_CHECKING:
    from hpcsimkit.experiments.sweep.object_sweep import ObjectSweep
    from hpcsimkit.experiments.sweep.swept import Swept

__all__ = ["Sweep"]

OWN = {"sweep", "baseline", "metrics", "question"}
"""Keys of a sweep besides those of an experiment."""

OF_OUTCOME = ("skipped", "workload_sha256", "schedule_sha256", "version")
"""Columns of a cell besides its axes and metrics."""

NOT_OF_CELLS = {*OWN, "policies", "out", "workers", "engine", "report", "trace", "sha256", "machines_sha256"}
"""Keys that do not change the outcome of a cell."""

FILES = ("log", "machines")
"""Axes that are paths."""

NAMED = ("placement", "locality")
"""Axes that are names of components."""


class Sweep(Experiment):
    """Experiment with axes: all combinations of their values are simulated with every policy.

    A key that is an axis and also given as a setting takes the values of the axis.

    Parameters
    ----------
    sweep : dict
        Axes by key; see :func:`~hpcsimkit.experiments.sweep.axes.axes_of`. Of a generated workload, each
        value of ``seed`` makes other jobs; on a log, it is the random seed of the policies that draw random
        numbers, and others run once. Parameters of policies (``policy.window``) apply to the policies that
        have them; others run once.
    baseline : str, optional
        Name of the policy with which the others are compared; by default the first one.
    metrics : list of str, optional
        Names of the metrics in the report, by default those of a comparison; those of the user are further
        columns.
    question : QuestionTable, optional
        Question that is asked in each cell; its keys can be axes (``question.set``). By default the metrics
        of the run are computed.

    Examples
    --------
    >>> sweep = Sweep(jobs=50, policies=["fcfs", "sjf"], sweep={"seed": {"first": 0, "count": 3}})
    >>> len(sweep), [dict(cell.values) for cell in sweep.cells()][:2]
    (6, [{'policy': 'fcfs', 'seed': 0}, {'policy': 'sjf', 'seed': 0}])
    """

    inner: ClassVar = {**Experiment.inner, "question": QuestionTable}
    flags: ClassVar = {**Experiment.flags, "sweep": "--axis"}
    file_format: ClassVar = Format.SWEEP

    sweep: dict[str, Any] = Field(default_factory=dict)
    baseline: str | None = None
    question: QuestionTable | None = None

    @classmethod
    def read(cls, file: Path, allow_code: Sequence[str] = ()) -> Self:
        """Read a TOML file; relative paths of logs and machines, also on axes, are relative to the file."""
        sweep = super().read(file, allow_code)
        table = _with_paths(sweep.sweep, lambda path: str(file.parent / path))
        return sweep.model_copy(update={"sweep": table})

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a sweep with valid axes, or the first problem."""
        sweep, problem = super().checked(values)
        if sweep is None:
            return None, problem
        if sweep.baseline is not None and sweep.baseline not in sweep.policies:
            known = ", ".join(sweep.policies)
            return None, (
                ("baseline",),
                f": one of the policies is needed ({known}), found {sweep.baseline!r}",
            )
        try:
            for axis in sweep.axes:
                sweep._check(axis)
            if sweep.question is not None:
                sweep._first_asked.check()
        except UsageError as error:
            return None, (("sweep",), f": {error}")
        return sweep, None

    def _check(self, axis: Axis) -> None:
        """Check each value of an axis alone; combinations are checked by their cells."""
        if axis.is_windows:
            return
        if axis.name.startswith(f"{QUESTION}."):
            for value in axis.values:
                self._asked({axis.name: value})
            return
        parameter = _parameter(axis)
        if parameter:
            if all(self._named(name, parameter, axis.values[0]) is None for name in self.policies):
                known = registry.parameters_of(self.policies, self.import_from, self.trust)
                policies = ", ".join(self.policies)
                raise UsageError(
                    f"{axis.name}: no policy of {policies} has this parameter{nearest(parameter, known)}"
                )
            return
        kind = Experiment if axis.name in NAMED else JobsOfExperiment
        for value in axis.ends:
            _, problem = kind.checked(self._settings({axis.name: value}))
            if problem is not None:
                location, text = problem
                place = "" if axis.name in map(str, location) else ".".join(map(str, location))
                raise UsageError(f"{axis.name}{f' ({place})' if place else ''}{text}")

    @property
    def axes(self) -> list[Axis]:
        """Axes in the order of the table, without that of the policies."""
        return list(axes_of(self.sweep))

    @property
    def replicates(self) -> list[str]:
        """Names of the axes whose values are repetitions: the seed, and windows of the log."""
        return [
            axis.name
            for axis in self.axes
            if axis.name in REPLICATES and (axis.name != PERIOD or axis.is_windows)
        ]

    @property
    def columns(self) -> list[str]:
        """Columns of the table of cells, besides name, status and reason."""
        names = [POLICY, *(axis.name for axis in self.axes)]
        asked = None if self.question is None else self._first_asked
        numbers = self.metric_names if asked is None else asked.measured
        return [*dict.fromkeys([*names, *numbers, *OF_OUTCOME])]

    def described(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """Return the axes for the report, with their values in order; an axis that no cell has is none."""
        names = [POLICY, *(axis.name for axis in self.axes)]
        values = {name: dict.fromkeys(cell.values.get(name) for cell in cells) for name in names}
        known = {name: [value for value in found if value is not None] for name, found in values.items()}
        known[POLICY] = [policy for policy in self.policies if policy in values[POLICY]]
        without = {cell.values[POLICY]: None for cell in cells if SEED in known and SEED not in cell.values}
        metrics = self.metrics if self.question is None else self._first_asked.headlines
        return {
            "axes": {name: found for name, found in known.items() if found},
            "replicates": [name for name in self.replicates if known[name]],
            "baseline": self.baseline or self.policies[0],
            **({"without_seed": list(without)} if without else {}),
            **({"metrics": metrics} if metrics else {}),
        }

    def __len__(self) -> int:
        """Return the number of cells, if all policies have all parameters, and windows count once."""
        seeds = next((len(axis.values) for axis in self.axes if axis.name == SEED), 1)
        others = math.prod(len(axis.values) for axis in self.axes if axis.name != SEED)
        settings = self._settings({axis.name: axis.values[0] for axis in self.axes if not _parameter(axis)})
        identities = _Identities(self)
        return others * sum(
            seeds if identities.has_seeds(policy, settings) else 1 for policy in self.policies
        )

    @classmethod
    def of(
        cls,
        workloads: Workload | Iterable[Workload],
        policies: Any,
        axes: Mapping[str, Iterable[Any]] | None = None,
        *,
        metrics: Iterable[str] | None = None,
        **options: Any,
    ) -> ObjectSweep:
        """Return a sweep of workloads and policies of a program, which need no names.

        Parameters
        ----------
        workloads : Workload or iterable of Workload
            Jobs, with distinct names.
        policies : iterable of str, Policy or Stage, or mapping of str to one of these
            Policies, as in :func:`~hpcsimkit.experiments.questions.compare.compare`.
        axes : mapping of str to iterable, optional
            Values of ``load_factor``, by which loads are multiplied, and of options of a run: fields of
            :class:`~hpcsimkit.kernel.setup.Setup`, such as ``seed``, ``walltime`` and ``cluster``.
        metrics : iterable of str, optional
            Names of the metrics; by default all.
        **options
            Options of all runs: fields of :class:`~hpcsimkit.kernel.setup.Setup`.

        Raises
        ------
        UsageError
            An axis, a policy or an option is unknown.

        Examples
        --------
        >>> import numpy as np
        >>> from hpcsimkit.workloads import default_workload
        >>> jobs = default_workload(np.random.default_rng(1), jobs=100)
        >>> found = Sweep.of(jobs, ["fcfs", "fcfs+easy"], {"load_factor": [0.5, 1.0]}).run()
        >>> found.table[["policy", "load_factor", "mean_wait_time"]].round(1).values.tolist()[0]
        ['fcfs', 0.5, 4957.5]
        """
        from hpcsimkit.experiments.sweep.object_sweep import ObjectSweep

        return ObjectSweep.of(workloads, policies, axes, metrics=metrics, **options)

    def run(
        self,
        place: str | os.PathLike[str] | None = None,
        *,
        engine: Engine | None = None,
        progress: bool = False,
    ) -> Swept:
        """Perform all cells, and return their table, statistics and pictures.

        Parameters
        ----------
        place : path, optional
            Path of a results folder, in which the same sweep resumes; by default nothing is kept.
        engine : Engine, optional
            Engine that executes the cells; by default that of the sweep.
        progress : bool
            Whether to show a progress bar. Default: False.

        Raises
        ------
        HpcsimkitError
            A file cannot be read or written. Cells that fail are rows with the reason.
        """
        from hpcsimkit.experiments.sweep.sweep_run import SweepRun
        from hpcsimkit.experiments.sweep.swept import Swept

        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory()) if place is None else place
            sweep = self if place is not None else self.model_copy(update={"report": False})
            tell = stack.enter_context(show_tasks({"cells": len(self)}, "cells", progress=progress))
            done = SweepRun(sweep, folder, engine=engine)
            frame = done.run(tell=lambda ended, failed, of: tell("cells", ended + failed))
            return Swept(frame, SweepTable.read(folder))

    @classmethod
    def load(cls, place: str | os.PathLike[str]) -> SweepResults:
        """Return the results of a sweep in a folder.

        Raises
        ------
        UsageError
            The folder is not that of a sweep.
        """
        return SweepResults(place)

    def _saved(self) -> dict[str, Any]:
        """Return the saved values, with absolute paths on axes; a built-in workload stays with its axes."""
        fields = super()._saved()
        if self._is_built_in:
            fields.pop("generate", None)
            fields |= {
                name: value for name in ("jobs", "nodes") if (value := getattr(self, name)) is not None
            }
        fields["sweep"] = _with_paths(self.sweep, lambda path: str(Path(path).absolute()))
        return fields

    # --- cells -----------------------------------------------------------------------------------------

    def cells(self) -> Iterator[SimulationCell]:
        """Yield the cells; those with the same jobs follow each other.

        Raises
        ------
        HpcsimkitError
            A file cannot be read, or windows do not fit a log.
        """
        identities = _Identities(self)
        settings_axes = [axis for axis in self.axes if not _parameter(axis)]
        variants = list(self._variants([axis for axis in self.axes if _parameter(axis)]))
        order = [axis.name for axis in self.axes]
        for values in product(*(axis.values for axis in settings_axes)):
            chosen = dict(zip((axis.name for axis in settings_axes), values, strict=True))
            for own, policies in self._by_seed(chosen, variants, identities):
                settings = self._settings(own)
                files = identities.of_settings(settings)
                for window in identities.windows(settings, own.get(PERIOD)):
                    for variant in policies:
                        shown = own | variant.values
                        if window is not None:
                            shown[PERIOD] = window.name
                        values_shown = {name: shown[name] for name in order if name in shown}
                        made = {**files, "policy": identities.of_policy(variant.name, settings)}
                        shown_all = {POLICY: variant.policy, **values_shown}
                        yield self._cell(variant.name, shown_all, settings, window, made, chosen)

    def _cell(
        self,
        policy: str,
        values: Mapping[str, Any],
        settings: Mapping[str, Any],
        window: Window | None,
        identities: Mapping[str, Any],
        chosen: Mapping[str, Any],
    ) -> SimulationCell:
        """Return the cell of a policy with some settings."""
        if self.question is None:
            return SimulationCell(policy, values, settings, window, identities)
        asked = self._asked(chosen).model_dump(exclude_unset=True)
        return QuestionCell(policy, values, settings, window, identities, question=asked)

    @property
    def _first_asked(self) -> QuestionTable:
        """What is asked in the first cell; the names of the numbers are those of all."""
        return self._asked({axis.name: axis.values[0] for axis in self.axes})

    def _asked(self, chosen: Mapping[str, Any]) -> QuestionTable:
        """Return what is asked with some values of axes.

        Raises
        ------
        UsageError
            There is no question, or a value is invalid.
        """
        if self.question is None:
            raise UsageError(f"{next(iter(chosen))}: a question is needed, found none")
        own = {
            name.partition(".")[2]: value for name, value in chosen.items() if name.startswith(f"{QUESTION}.")
        }
        asked, problem = QuestionTable.checked({**self.question.model_dump(exclude_unset=True), **own})
        if asked is None:
            location, text = problem or ((), "")
            raise UsageError(f"{'.'.join([QUESTION, *map(str, location)])}{text}")
        return asked

    def _by_seed(
        self, chosen: dict[str, Any], variants: Sequence[_Variant], identities: _Identities
    ) -> Iterator[tuple[dict[str, Any], list[_Variant]]]:
        """Yield values of axes with the policies that run with them: with each seed, or once without one."""
        if SEED not in chosen:
            yield chosen, list(variants)
            return
        settings = self._settings(chosen)
        seeded = [each for each in variants if identities.has_seeds(each.name, settings)]
        yield chosen, seeded
        if chosen[SEED] == next(axis.values[0] for axis in self.axes if axis.name == SEED):
            others = [each for each in variants if each not in seeded]
            yield {name: value for name, value in chosen.items() if name != SEED}, others

    def _variants(self, axes: Sequence[Axis]) -> Iterator[_Variant]:
        """Yield each policy with each combination of those parameters that it has."""
        for policy in self.policies:
            own = [axis for axis in axes if self._named(policy, _parameter(axis), axis.values[0]) is not None]
            for values in product(*(axis.values for axis in own)):
                name = policy
                for axis, value in zip(own, values, strict=True):
                    name = self._named(name, _parameter(axis), value) or name
                chosen = zip((axis.name for axis in own), values, strict=True)
                yield _Variant(policy, name, dict(chosen))

    def _named(self, policy: str, parameter: str, value: Any) -> str | None:
        return registry.with_parameter(policy, parameter, value, self.import_from, self.trust)

    def _settings(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of cells with some values of axes."""
        values = self.model_dump(exclude_unset=True, exclude=NOT_OF_CELLS)
        if own := self.own_metrics:
            values["metrics"] = list(own)
        for name, value in chosen.items():
            if isinstance(value, Windows):
                continue
            if name == "log":
                values.pop("generate", None)
            table, dot, inner = name.partition(".")
            if table == QUESTION:
                continue
            if dot:
                values[table] = {**(values.get(table) or {}), inner: value}
            else:
                values[name] = value
        if "seed" in chosen and values.get("generate") is not None and "generate.seed" not in chosen:
            values["generate"] = {**values["generate"], "seed": chosen["seed"]}
        return values


def _with_paths(table: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """Return a table of axes with changed paths of logs and of machines."""
    return {
        key: [change(value) if isinstance(value, str) else value for value in values]
        if key in FILES and isinstance(values, list)
        else values
        for key, values in table.items()
    }


class _Variant(NamedTuple):
    """A policy with some parameters: its name without and with them, and their values."""

    policy: str
    name: str
    values: dict[str, Any]


class _Identities:
    """Identities of policies, files and windows, each determined once for all cells."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep
        self._sha256: Callable[[str], str] = cache(sha256_of)
        self._policies: dict[tuple[str, Any], Any] = {}
        self._windows: dict[str, WindowsOfLog] = {}
        self._localities: dict[str, Any] = {}
        self._drawing: dict[str, bool] = {}

    def of_settings(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Return the hashes of the files of some settings, and the locality model."""
        found: dict[str, Any] = {}
        if own := self.sweep.own_metrics:
            found["metrics"] = identity_of(own)
        for name, digest in HASHES.items():
            path, expected = settings.get(name), getattr(self.sweep, digest)
            if isinstance(path, str):
                found[name] = self._sha256(path)
                if expected is not None and path == getattr(self.sweep, name) and found[name] != expected:
                    raise WorkloadError(f"{path}: a text with SHA-256 {expected} is needed")
        locality = settings.get("locality")
        if locality is not None:
            if locality not in self._localities:
                model = self._experiment(settings).service_time
                self._localities[locality] = identity_of(model)
            found["locality"] = self._localities[locality]
        return found

    def of_policy(self, name: str, settings: Mapping[str, Any]) -> Any:
        """Return the identity of a policy with the placement of some settings."""
        key = (name, settings.get("placement"))
        if key not in self._policies:
            self._policies[key] = identity_of(self._source(settings).policy_named(name))
        return self._policies[key]

    def has_seeds(self, name: str, settings: Mapping[str, Any]) -> bool:
        """Return whether runs of a policy may differ between seeds: in their jobs, or in what is drawn."""
        if settings.get("log") is None and all(axis.name != "generate.seed" for axis in self.sweep.axes):
            return True
        key = repr((name, settings.get("placement"), settings.get("partitions")))
        if key not in self._drawing:
            self._drawing[key] = any(map(may_draw, self._parts_of(name, settings)))
        return self._drawing[key]

    def _parts_of(self, name: str, settings: Mapping[str, Any]) -> Iterator[Any]:
        """Yield the policy of a name, and the orders of partitions, which also belong to its runs."""
        yield self._source(settings).policy_named(name)
        if settings.get("partitions") is not None:
            scheduled = self._experiment(settings).scheduled
            yield from (part.order for part in scheduled.parts) if isinstance(scheduled, Partitions) else ()

    def _source(self, settings: Mapping[str, Any]) -> Experiment:
        """Return the settings that have constructed the policies with a placement."""
        own = settings.get("placement") == self.sweep.placement
        return self.sweep if own else self._experiment(settings)

    def windows(self, settings: Mapping[str, Any], windows: Any) -> Iterable[Window | None]:
        """Return the windows of the log of some settings; None without windows."""
        if not isinstance(windows, Windows):
            return [None]
        names = ("log", "generate", "size", "nodes", "jobs")
        of_jobs = {name: settings.get(name) for name in names}
        if of_jobs["log"] is None:
            of_jobs[SEED] = settings.get(SEED)
        key = repr(of_jobs)
        if key not in self._windows:
            self._windows[key] = windows.of(self._experiment(settings).whole())
        return self._windows[key]

    def _experiment(self, settings: Mapping[str, Any]) -> Experiment:
        return Experiment(**settings)


def _parameter(axis: Axis) -> str:
    """Return the parameter of an axis of parameters of policies; empty for other axes."""
    table, _, inner = axis.name.partition(".")
    return inner if table == POLICY else ""
