"""Settings of trainings: seat, jobs, observation, reward, algorithm and validation.

One model covers the keys of a training file, the flags of the command line and the settings saved with
agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hpcsimkit.envs.interfaces import Episodes
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.experiments.parts import registry
from hpcsimkit.experiments.parts.learner_parts import (
    OWN_EPISODES,
    Kind,
    TrainerPart,
    arguments_of,
    former_names,
    heuristic_behind,
    parameters_of,
    part_of,
    seated,
    trainer_part,
)
from hpcsimkit.experiments.parts.named_parts import metric_named
from hpcsimkit.experiments.settings.checked_table import Problem, Table
from hpcsimkit.experiments.settings.toml_lines import Location, toml_text
from hpcsimkit.experiments.source import Source, sha256_of
from hpcsimkit.experiments.training.data import Division, Validation, WindowsOf, check_lengths, divided
from hpcsimkit.experiments.training.tables import EpisodeTable, ValidationTable
from hpcsimkit.io.formats import Format
from hpcsimkit.io.printable import warn
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.decision import External
from hpcsimkit.kernel.policy import Policy
from hpcsimkit.policies.one_seat.catalogue import ONE_SEAT

__all__ = ["EpisodeTable", "Training", "ValidationTable"]

OF_SEATS = ("encoder", "mask", "reward", "trainer")
"""Tables of each seat."""

ALONE = "spinning-up-ppo"
"""Algorithm of each of several seats."""

BESIDE_PROBLEM = {"trainer", "problem", "seed", "tensorboard", "out", "import_from", "allow_code"}
"""Keys of a training whose algorithm brings its own problem."""

TRAIN_SHARE = 0.8
"""Default share of a log's jobs for training; the rest is for validation."""


class Training(Source):
    """Settings of a training.

    Keys of the simulation (``log``, ``generate``, ``jobs``, ``skip``, ``nodes``, ``machines`` ...) are those
    of a :class:`~hpcsimkit.experiments.source.Source`.

    Parameters
    ----------
    logs : list of str, optional
        Paths of several logs to train on, each with the same train/test split.
    logs_sha256 : list of str, optional
        Expected SHA-256 of each of these logs.
    stage : str
        Seat of the agent: ``"order"``, ``"inspector"``, ``"placement"``, ``"backfiller"``,
        ``"preemptor"``, ``"gate"``, ``"tester"``, ``"dispatch"`` or ``"two-level"``.
    policy : str, optional
        Name of the pipeline with the seat and the heuristic behind it; by default ``fcfs+easy``, for dispatch
        ``fcfs``.
    slots : int
        Number of options that the agent observes and selects from, 1 or more. Default: 16.
    train_share : float, optional
        Share of each log's jobs, by submission, for training, in (0, 1]; by default 0.8, or all of them if
        the validation has its own part or log.
    encoder, mask, reward : table
        Tables with a ``name`` (see :data:`~hpcsimkit.agents.catalogue.ENCODERS`,
        :data:`~hpcsimkit.agents.catalogue.MASKS`, :data:`~hpcsimkit.agents.catalogue.REWARDS`; or
        ``module:Name``) and parameters.
    trainer : table
        Table with an ``algorithm`` (see :data:`~hpcsimkit.agents.training.catalogue.TRAINERS`) and settings.
    problem : table
        Parameters of the problem of an algorithm that brings its own, such as ``cush``. It takes the place of
        jobs, machines, seat, episodes and validation; beside it there are only ``trainer``, ``seed``,
        ``tensorboard`` and ``out``.
    seats : table of tables
        Further seats with agents trained in the same episodes, for the algorithm ``together``: by stage, a
        table with the tables ``encoder``, ``mask``, ``reward`` and ``trainer``, the last of them for settings
        that differ from those of the first seat.
    episodes, validation : table
        Tables described by `EpisodeTable` and `ValidationTable`.
    seed : int
        Random seed of the training, 0 or more. Default: 0.
    tensorboard : bool
        Whether the learning curve is written for TensorBoard too. Default: False.
    out : str, optional
        Path of the results folder.

    Examples
    --------
    >>> training = Training(policy="sjf+easy", slots=8, trainer={"algorithm": "a2c", "total_timesteps": 1000})
    >>> training.open_policy()
    Pipeline(order=External(base=SJF()), backfiller=EASY(), window=8)
    """

    file_format: ClassVar = Format.TRAINING
    inner: ClassVar[Mapping[str, type[Table]]] = {
        **Source.inner,
        "episodes": EpisodeTable,
        "validation": ValidationTable,
    }

    logs: list[str] | None = Field(None, min_length=1)
    logs_sha256: list[str] | None = None
    stage: Literal[
        "order",
        "inspector",
        "placement",
        "backfiller",
        "preemptor",
        "gate",
        "tester",
        "dispatch",
        "two-level",
    ] = "order"
    policy: str | None = None
    slots: int = Field(16, ge=1)
    train_share: float | None = Field(None, gt=0, le=1)
    encoder: dict[str, Any] = Field({})
    mask: dict[str, Any] = Field({})
    reward: dict[str, Any] = Field({})
    trainer: dict[str, Any] = Field({})
    problem: dict[str, Any] = Field({})
    seats: dict[str, dict[str, Any]] = Field({})
    episodes: EpisodeTable = EpisodeTable()
    validation: ValidationTable = ValidationTable()
    tensorboard: bool = False
    out: str | None = Field(None, min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.logs is not None and (self.log is not None or self.generate is not None):
            raise ValueError("one of 'log', 'logs' and 'generate' is needed, several are given")
        if self.logs_sha256 is not None and len(self.logs_sha256) != len(self.logs or ()):
            raise ValueError("'logs_sha256' needs one for each of 'logs'")
        if self.validation.part is not None and (self.logs is not None or self.validation.log is not None):
            raise ValueError("'validation.part' needs one log, that of the training")
        if self.stage == "dispatch" and self.placement is not None:
            raise ValueError("'placement' has no place beside the stage 'dispatch', which says where jobs go")
        return self

    # --- reading and saving ----------------------------------------------------------------------------

    @classmethod
    def read(cls, file: Path, allow_code: Sequence[str] = ()) -> Self:
        """Read a TOML file; relative paths of logs and machines are relative to the file.

        Former names of a trainer's settings are replaced by the current ones, with a line on standard error.

        Parameters
        ----------
        file : Path
            The file.
        allow_code : sequence of str
            Modules, files and folders from which the file may import code.

        Raises
        ------
        UsageError
            The file cannot be read, is not TOML, or is not a training; the message names the line.
        """
        training, changes = super().read(file, allow_code), dict[str, Any]()
        if training.logs is not None:
            changes["logs"] = [str(file.parent / path) for path in training.logs]
        if training.validation.log is not None:
            there = training.validation.paths_from(file.parent, "log")
            changes["validation"] = training.validation.model_copy(update=there)
        names = former_names(training.trainer, training.import_from, training.trust)
        if names:
            changes["trainer"] = training.trainer_keys
            renamed = ", ".join(f"{old} is now {new}" for old, new in names.items())
            warn(f"{file}: trainer: {renamed}; the next release reads the new names only")
        return training.model_copy(update=changes)

    @classmethod
    def of_source(cls, source: Path | None, flags: Mapping[str, Any]) -> Self:
        """Return the training of a TOML file, or on a log or the built-in workload, with flags of a command.

        Raises
        ------
        UsageError
            The file or a flag is invalid.
        """
        if source is not None and source.suffix == ".toml":
            return cls.with_flags(flags, cls.read(source, flags.get("allow_code") or ()))
        return cls.with_flags({**flags, "log": None if source is None else str(source)})

    @classmethod
    def with_flags(cls, flags: Mapping[str, Any], base: Training | None = None) -> Self:
        """Return a training with flags (None: not given) that override others; some belong to the trainer.

        Raises
        ------
        UsageError
            A flag is invalid, or inconsistent with other settings.
        """
        values = {} if base is None else base.model_dump(exclude_unset=True)
        given = {name: value for name, value in flags.items() if value is not None}
        of_trainer = {name: given.pop(name) for name in ("algorithm", "total_timesteps") if name in given}
        training, problem = cls.checked(
            {**values, **given, "trainer": {**values.get("trainer", {}), **of_trainer}}
        )
        if training is None:
            location, text = problem or ((), "")
            place = ".".join(map(str, location))
            is_flag = location and location[-1] in {*of_trainer, *given}
            flag = cls.flags.get(place, f"--{location[-1]}".replace("_", "-")) if is_flag else place
            raise UsageError(f"{flag}{text}".removeprefix(": "))
        return training

    def with_trainer(self, **settings: Any) -> Self:
        """Return the training with some settings of its trainer changed, as in a search over them.

        Raises
        ------
        UsageError
            A setting is unknown or out of range.

        Examples
        --------
        >>> Training().with_trainer(learning_rate=0.01).trainer
        {'learning_rate': 0.01}
        """
        return self.with_flags({}, self.model_copy(update={"trainer": {**self.trainer, **settings}}))

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a training with valid components, or the first problem."""
        training, problem = super().checked(values)
        if training is not None:
            problem = training._problem()
        return (training, None) if problem is None else (None, problem)

    def _parts(self) -> Iterator[tuple[Location, Callable[[], object]]]:
        """Yield the locations of names, each with a function that constructs its object."""
        yield from super()._parts()
        yield ("validation", "metric"), self._check_metric

    def _check_metric(self) -> None:
        metric = metric_named(self.validation.metric, self.import_from, self.trust)
        if metric.direction == "none":
            raise UsageError(
                f"metric {self.validation.metric!r} has no better direction; choose one with a direction"
            )

    def _problem(self) -> Problem | None:
        part, problem = self._made("trainer")
        if problem is not None:
            return problem
        if part.problem is not None:
            return self._problem_of_own(part.problem)
        if self.problem:
            return ("problem",), f": {self.algorithm} learns from jobs, not from a problem of its own"
        problem = self._problem_of_seats()
        if problem is not None:
            return problem
        try:
            self.open_policy()
        except HpcsimkitError as error:
            return ("policy",), f": {error}"
        for table in ("episodes", *(kind.table for kind in Kind.of_seat(self.stage))):
            _, problem = self._made(table)
            if problem is not None:
                return problem
        return None

    def _problem_of_seats(self) -> Problem | None:
        """Return the first problem of the further seats."""
        is_for_several = hasattr(self.trainer_part.trainer, "file_settings")
        if is_for_several != bool(self.seats):
            needs = "further seats, [seats.NAME]" if is_for_several else "no further seats"
            return ("trainer", "algorithm"), f": {self.algorithm} needs {needs}"
        for stage, tables in self.seats.items():
            known = {key for key, table in tables.items() if key in OF_SEATS and isinstance(table, Mapping)}
            unknown = next((key for key in tables if key not in known), None)
            if unknown is not None or stage == self.stage or stage in ONE_SEAT:
                text = f": other seats of a pipeline with the tables {', '.join(OF_SEATS)} are needed"
                return ("seats", stage, *([unknown] if unknown else [])), text
            problem = Training.checked(self._values_of(stage))[1]
            if problem is not None:
                return ("seats", stage, *problem[0]), problem[1]
        return None

    def _values_of(self, stage: str) -> dict[str, Any]:
        """Return the settings of a training of another seat alone."""
        own = self.model_dump(exclude_unset=True, exclude={"seats", *OF_SEATS})
        tables = self.seats[stage]
        settings = {**self.trainer, **tables.get("trainer", {}), "algorithm": ALONE}
        settings.pop("rounds", None)
        return {**own, **tables, "stage": stage, "trainer": settings}

    @property
    def of_seats(self) -> dict[str, Training]:
        """Trainings of each seat alone, by stage; of a single seat this one itself."""
        return {self.stage: self, **{stage: Training(**self._values_of(stage)) for stage in self.seats}}

    def _problem_of_own(self, maker: type[Any]) -> Problem | None:
        """Return the first problem of a training with an algorithm that brings its own problem to learn."""
        others = [name for name in type(self).model_fields if name in self.model_fields_set - BESIDE_PROBLEM]
        if others:
            return (others[0],), f": {self.algorithm} has a table [problem] instead"
        _, problem = parameters_of(maker, self.problem, {})
        return None if problem is None else (("problem", *problem[0]), problem[1])

    @cached_property
    def own_problem(self) -> Any:
        """Problem of an algorithm that brings its own; None if it learns from jobs on a seat."""
        maker = self.trainer_part.problem
        return None if maker is None else maker(**parameters_of(maker, self.problem, {})[0])

    def saved(self) -> str:
        """Return a TOML text that reproduces the training, with absolute paths of files."""
        if self.own_problem is not None:
            own_values: dict[str, Any] = {"seed": self.seed, "tensorboard": self.tensorboard}
            if self.code:
                own_values["import_from"] = self.import_from or str(Path.cwd())
            problem = {"problem": asdict(self.own_problem)}
            return toml_text({**own_values, **problem}) + self._saved_trainer()
        values = self.simulated.saved_source()
        if self.logs is not None:
            values = {name: value for name, value in values.items() if name not in ("log", "sha256")}
            values["logs"] = [str(Path(log).absolute()) for log in self.logs]
            values["logs_sha256"] = [sha256_of(log) for log in self.logs]
        own = self.model_dump(
            exclude=set(Source.model_fields) | {"out", "logs", "logs_sha256"}, exclude_none=True
        )
        tables = {name: own.pop(name) for name in list(own) if isinstance(own[name], dict)}
        if self.validation.log is not None:
            there = Path(self.validation.log).absolute()
            tables["validation"] |= {"log": str(there), "sha256": sha256_of(str(there))}
        for name in ("encoder", "mask", "reward"):
            tables[name] = self._saved_part(name)
        if self.code:
            values.setdefault("import_from", str(Path.cwd()))
        for name in ("trainer", "problem", "seats"):
            tables.pop(name, None)
        seat = {"seed": self.seed, "stage": self.stage, "policy": self.policy_name}
        text = toml_text({**values, **seat, **own, **tables}) + self._saved_trainer()
        return text + "".join(
            f"\n[seats.{stage}.{name}]\n{toml_text(each._saved_seat(name))}"
            for stage, each in self.of_seats.items()
            for name in (OF_SEATS if stage in self.seats else ())
        )

    def _saved_seat(self, name: str) -> dict[str, Any]:
        """Return a table of a further seat with all its keys."""
        if name != "trainer":
            return self._saved_part(name)
        return {key: value for key, value in vars(self.trainer_part.settings).items() if value is not None}

    def _saved_trainer(self) -> str:
        """Return the table of the trainer with all its settings."""
        trainer = {"algorithm": self.algorithm, **vars(self.trainer_part.settings), **self.trainer_keys}
        inside = {name: value for name, value in trainer.items() if isinstance(value, dict)}
        plain = {name: value for name, value in trainer.items() if value is not None and name not in inside}
        tables = {"trainer": plain, **{f"trainer.{name}": table for name, table in inside.items()}}
        return "".join(f"\n[{name}]\n{toml_text(table)}" for name, table in tables.items())

    @property
    def code(self) -> list[str]:
        """Modules and files imported by the names, sorted."""
        words = [
            word
            for table in (self.episodes.model_dump(), *self._tables_of_seats())
            for word in table.values()
            if isinstance(word, str) and ":" in word  # names of components and of policies
        ]
        words += [self.policy_name, self.validation.metric]
        named = {code for word in words for code in registry.code_of(word)}
        return sorted(named | set(self.simulated.code))

    def _tables_of_seats(self) -> Iterator[Mapping[str, Any]]:
        """Yield the tables of all seats."""
        yield from (self.encoder, self.mask, self.reward, self.trainer)
        for tables in self.seats.values():
            yield from (table for table in tables.values() if isinstance(table, Mapping))

    def _saved_part(self, table: str) -> dict[str, Any]:
        """Return the table of an encoder, mask or reward with its name."""
        default = next(kind.default for kind in Kind.of_seat(self.stage) if kind.table == table)
        return {"name": default, **getattr(self, table)}

    # --- components ------------------------------------------------------------------------------------

    @cached_property
    def simulated(self) -> Source:
        """Jobs and machines of the training; with several logs, of the first."""
        return self.source() if self.logs is None else self.source(log=self.logs[0])

    @property
    def policy_name(self) -> str:
        """Name of the pipeline with the seat."""
        return self.policy or ("fcfs" if self.stage in ONE_SEAT else "fcfs+easy")

    @property
    def baseline_name(self) -> str:
        """Name of the heuristic behind the seat."""
        return heuristic_behind(self.policy_name, self.stage)

    @property
    def algorithm(self) -> str:
        """Name of the learning algorithm."""
        return str(self.trainer.get("algorithm", "ppo"))

    def _made(self, table: str) -> tuple[Any, Problem | None]:
        """Construct the object of a table, or return the first problem."""
        if table == "trainer":
            return trainer_part(self.trainer, self.import_from, self.trust)
        if table == "episodes":
            return self._own_episodes(Episodes())
        kind = next(kind for kind in Kind.of_seat(self.stage) if kind.table == table)
        cluster = self.simulated.cluster
        given = {
            "slots": self.slots,
            "machines": None if cluster is None else len(cluster),
            "resources": 1 if cluster is None else len(cluster.resources),
        }
        return part_of(kind, getattr(self, table), given, self.simulated.import_from, self.simulated.trust)

    @cached_property
    def trainer_part(self) -> TrainerPart:
        """Class and settings of the trainer."""
        return self._made("trainer")[0]

    @property
    def trainer_keys(self) -> dict[str, Any]:
        """The table ``[trainer]`` with the current names of settings."""
        names = former_names(self.trainer, self.import_from, self.trust)
        return {names.get(key, key): value for key, value in self.trainer.items()}

    @property
    def environment_parts(self) -> tuple[Any, Any, Any]:
        """New encoder, mask and reward."""
        encoder, mask, reward = (self._made(kind.table)[0] for kind in Kind.of_seat(self.stage))
        return encoder, mask, reward

    def _own_episodes(self, windows: Episodes) -> tuple[Any, Problem | None]:
        """Return the class and arguments of user-defined episodes, or the first problem of the table."""
        table = self.episodes
        if table.name is None:
            problem = table.problem()
            return None, None if problem is None else (("episodes", *problem[0]), problem[1])
        values, given = {"name": table.name, **table.parameters}, {"episodes": windows}
        simulated = self.simulated
        return arguments_of(OWN_EPISODES, values, given, simulated.import_from, simulated.trust)

    def open_policy(self) -> Policy:
        """Return the policy with open seats, and the heuristics behind them."""
        holders = {
            stage: External(decline=bool(each.mask.get("decline", False)))
            for stage, each in self.of_seats.items()
        }
        return self.with_seats(holders)

    def with_seats(self, holders: Mapping[str, External]) -> Policy:
        """Return the policy with agents at its seats, by stage."""
        policy = self.simulated.policy_named(self.policy_name)
        for stage, holder in holders.items():
            policy = seated(policy, holder, stage, self.slots)
        return policy

    # --- jobs ------------------------------------------------------------------------------------------

    def workloads(self) -> list[Workload]:
        """Read or generate the workloads; see :meth:`Source.workload`."""
        if self.logs is None:
            return [self.simulated.workload()]
        hashes = self.logs_sha256
        pairs = [(log, hashes[n] if hashes else None) for n, log in enumerate(self.logs)]
        return [self.source(log=log, sha256=known).workload() for log, known in pairs]

    def divided(self, workloads: Sequence[Workload]) -> Division:
        """Split logs into disjoint jobs for training and for validation.

        Raises
        ------
        UsageError
            A part is shorter than a window.
        WorkloadError
            The log for validation cannot be read.
        """
        validation, others = self.validation, []
        if validation.log is not None:
            other = {"log": validation.log, "sha256": validation.sha256}
            others = [self.source(**other, jobs=None, skip=None).workload()]
        whole = others or validation.part is not None
        share = self.train_share or (1.0 if whole else TRAIN_SHARE)
        part = None if validation.part is None else (validation.part[0], validation.part[1])
        division = divided(workloads, share, part, others)
        check_lengths(division.training, self.episodes.jobs + self.episodes.warmup, "training")
        check_lengths(division.validation, sum(self._validation_window), "validation")
        return division

    @property
    def _validation_window(self) -> tuple[int, int]:
        """Number of jobs and of warm-up jobs of a validation window."""
        own, usual = self.validation, self.episodes
        return own.jobs or usual.jobs, usual.warmup if own.warmup is None else own.warmup

    def episodes_of(self, division: Division) -> Episodes:
        """Return the training episodes: windows of the logs, or user-defined ones."""
        table = self.episodes
        windows = WindowsOf(division.training, table.jobs, self.simulated.setup, warmup=table.warmup)
        own, _ = self._own_episodes(windows)
        return windows if own is None else own.maker(**own.parameters)

    def validated_on(self, division: Division) -> Validation:
        """Return the validation of agents on the validation jobs."""
        own, (jobs, warmup) = self.validation, self._validation_window
        windows = WindowsOf(division.validation, jobs, self.simulated.setup, warmup=warmup)
        return Validation.drawn(windows, own.windows, own.seed, own.metric)
