"""Sweeps of trainings: seeds, settings of trainers, encoders and rewards as axes."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import Field

from hpcsimkit._version import __version__
from hpcsimkit.engine.results_folder import PROVENANCE
from hpcsimkit.engine.task import Tell
from hpcsimkit.errors import UsageError, nearest
from hpcsimkit.experiments.comparison.experiment import Experiment
from hpcsimkit.experiments.consent import experiment_of
from hpcsimkit.experiments.settings.checked_table import Problem, Table
from hpcsimkit.experiments.settings.engine_table import Parallel
from hpcsimkit.experiments.settings.toml_lines import toml_text
from hpcsimkit.experiments.sweep.axes import POLICY, REPLICATES, Axis, counted
from hpcsimkit.experiments.sweep.cell import Cell
from hpcsimkit.experiments.sweep.sweep import Sweep
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.io.documents import json_record, toml_values
from hpcsimkit.io.files import read_bytes
from hpcsimkit.io.formats import Format

AGENT = "agent"
"""Subfolder of a cell with the results of its training."""

OWN = {"sweep", "workers", "engine", "report", "out"}
"""Keys of a sweep of trainings that its trainings do not have, or that do not change them."""

FIXED = {*OWN, "tensorboard", "import_from", "allow_code", "sha256", "logs_sha256", "machines_sha256"}
"""Keys that cannot be axes."""

PATHS = ("log", "logs", "machines", "import_from")
"""Keys of a saved training that name places, which are identified by their hashes."""

MEASURES = ("baseline", "chance", "steps", "reward", "reward_of_chance", "reward_of_constant")
"""Columns of a training besides its validation metric."""

OF_OUTCOME = ("version",)


class TrainingSweep(Training, Parallel):
    """Training with axes: all combinations of their values are trained.

    Parameters
    ----------
    sweep : dict
        Lists of values by key of a training, such as ``seed``, ``slots``, ``trainer.learning_rate``,
        ``trainer.algorithm`` or ``encoder.name``; ``{first = 0, count = 10}`` for whole numbers. Trainings
        that differ only in the seed are replicates.
    report : bool
        Whether figures and ``report.html`` are written. Default: True.

    Examples
    --------
    >>> sweep = TrainingSweep(slots=4, sweep={"seed": [0, 1], "trainer.learning_rate": [0.001, 0.0003]})
    >>> len(sweep), [cell.values["policy"] for cell in sweep.cells()][:2]
    (4, ['learning_rate 0.001', 'learning_rate 0.0003'])
    """

    flags: ClassVar = {"sweep": "--axis"}
    file_format: ClassVar = Format.SWEEP

    sweep: dict[str, Any] = Field(default_factory=dict)
    report: bool = True

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a sweep with valid axes, or the first problem."""
        found, problem = super().checked(values)
        if found is None:
            return None, problem
        try:
            for axis in found.axes:
                found._check(axis)
        except UsageError as error:
            return None, (("sweep",), f": {error}")
        return found, None

    @classmethod
    def of_file(
        cls, source: Path, flags: Mapping[str, Any], axes: Mapping[str, Any], *, report: bool | None
    ) -> Self:
        """Return the sweep of trainings of a file, with flags of a command and further axes.

        Raises
        ------
        UsageError
            An option does not belong to trainings, or a value is invalid.
        """
        given = {name: each for name, each in flags.items() if each is not None}
        unknown = sorted(set(given) - set(cls.model_fields))
        if unknown:
            flag = "-p" if unknown[0] == "policies" else f"--{unknown[0].replace('_', '-')}"
            raise UsageError(f"{flag}: not an option for trainings, and {source} has one")
        base = cls.read(source, given.get("allow_code", ()))
        return cls.with_flags({**given, "sweep": {**base.sweep, **axes}, "report": report}, base)

    def _check(self, axis: Axis) -> None:
        """Check the name of an axis, and each of its values."""
        table, dot, _ = axis.name.partition(".")
        known = [name for name in Training.model_fields if name not in FIXED]
        if table not in known or bool(dot) is not isinstance(getattr(self, table), dict | Table):
            raise UsageError(f"unknown axis {axis.name!r}{nearest(axis.name, known)}")
        for value in axis.ends:
            _, problem = Training.checked(self._settings({axis.name: value}))
            if problem is not None:
                location, text = problem
                raise UsageError(f"{axis.name}: {'.'.join(map(str, location))}{text}")

    @property
    def axes(self) -> list[Axis]:
        """Axes in the order of the table."""
        return [Axis(name, counted(name, values)) for name, values in self.sweep.items()]

    @property
    def columns(self) -> list[str]:
        """Columns of the table of cells, besides name, status and reason."""
        names = [POLICY, *(axis.name for axis in self.axes)]
        return [*dict.fromkeys([*names, self.validation.metric, *MEASURES, *OF_OUTCOME])]

    def __len__(self) -> int:
        """Return the number of cells."""
        return math.prod(len(axis.values) for axis in self.axes)

    def described(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """Return the axes for the report: combinations of settings as policies, and replicates."""
        names = [POLICY, *(axis.name for axis in self.axes if axis.name in REPLICATES)]
        return {
            "axes": {name: list(dict.fromkeys(cell.values[name] for cell in cells)) for name in names},
            "replicates": names[1:],
            "metrics": [self.validation.metric],
            "curves": f"{AGENT}/curve.csv",
        }

    def cells(self) -> Iterator[TrainingCell]:
        """Yield the cells."""
        names = [axis.name for axis in self.axes]
        for values in product(*(axis.values for axis in self.axes)):
            chosen = dict(zip(names, values, strict=True))
            settings = self._settings(chosen)
            training, problem = Training.checked(settings)
            if training is None:
                location, text = problem or ((), "")
                raise UsageError(f"{_label(chosen)}: {'.'.join(map(str, location))}{text}")
            shown = _label({name: value for name, value in chosen.items() if name not in REPLICATES})
            yield TrainingCell({POLICY: shown or training.algorithm, **chosen}, training)

    def _settings(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a training with some values of axes."""
        values = self.model_dump(exclude_unset=True, exclude=OWN)
        for name, value in chosen.items():
            table, dot, inner = name.partition(".")
            values[table] = {**(values.get(table) or {}), inner: value} if dot else value
        return values

    def saved(self) -> str:
        """Return a TOML text that repeats the sweep, with absolute paths of files."""
        training = Training(**self._settings({}))
        return training.saved() + "\n" + toml_text({"sweep": self.sweep})


class TrainingCell(Cell):
    """Training with some settings; its outcome has the validation metric of the best agent."""

    kind = "training"

    def __init__(self, values: Mapping[str, Any], training: Training) -> None:
        super().__init__(values)
        self.training = training

    @property
    def label(self) -> str:
        """Values of the axes."""
        return _label(self.values)

    def inputs(self) -> Any:
        """Return all settings, with hashes in place of files, and the components."""
        saved = tomllib.loads(self.training.saved())
        kept = {name: value for name, value in saved.items() if name not in PATHS}
        return {"training": kept, "parts": self.training.environment_parts}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Train, or resume an interrupted training; return the metric of the best agent, and of others."""
        from hpcsimkit.experiments.training.training_run import TrainingRun

        done = folder / AGENT / PROVENANCE
        if not done.is_file():
            training = self.training
            run = TrainingRun(training, training.workloads(), folder / AGENT)
            run.run(resume=True, tell=lambda report: tell(0))
        facts = json_record(done, Format.PROVENANCE)
        chance, constant = facts["learned"]["rivals"].values()
        return {
            "metrics": {
                facts["metric"]: facts["best"],
                "baseline": facts["baseline"],
                "chance": facts["chance"],
                "steps": facts["best_after_steps"],
                "reward": facts["learned"]["reward"],
                "reward_of_chance": chance["reward"],
                "reward_of_constant": constant["reward"],
            },
            "version": __version__,
        }


def _label(values: Mapping[str, Any]) -> str:
    """Return values of axes as text, by the last part of their names.

    >>> _label({"trainer.algorithm": "a2c", "slots": 4})
    'algorithm a2c, slots 4'
    """
    return ", ".join(f"{name.rpartition('.')[2]} {value}" for name, value in values.items())


def sweep_of(
    arguments: Mapping[str, Any], axes: Mapping[str, Any], *, report: bool | None
) -> Sweep | TrainingSweep:
    """Return the sweep defined by the arguments of a command: of trainings, if its file is one."""
    source = arguments["source"]
    if source is None or source.suffix != ".toml" or not is_training(source):
        return experiment_of(Sweep, arguments, sweep=axes, report=report)
    flags = {name: value for name, value in arguments.items() if name not in ("source", "named")}
    return TrainingSweep.of_file(source, flags, axes, report=report)


def is_training(file: Path) -> bool:
    """Return whether a TOML file has keys that only trainings have."""
    try:
        values = toml_values(read_bytes(file, Format.SWEEP).decode(), file)
    except (UnicodeDecodeError, ValueError):
        return False
    return bool(values.keys() & ({*Training.model_fields} - {*Experiment.model_fields}))
