"""A training: whose seat, on what jobs, seen and paid how, by which algorithm, judged by what.

One model is the keys of a training file, the flags beside it, and what is saved with the agents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from hpcsimkit.campaigns.checked_table import Problem, Table
from hpcsimkit.campaigns.experiment import Experiment, Generate, sha256_of
from hpcsimkit.campaigns.toml_lines import toml_text
from hpcsimkit.campaigns.training_data import Division, Rules, Validation, WindowsOf, check_lengths, divided
from hpcsimkit.campaigns.training_parts import (
    OWN_EPISODES,
    Part,
    TrainerPart,
    arguments_of,
    part_of,
    seated,
    trainer_part,
)
from hpcsimkit.campaigns.training_source import Source
from hpcsimkit.campaigns.training_tables import EpisodeTable, ValidationTable
from hpcsimkit.decision import External
from hpcsimkit.errors import HpcsimkitError, UsageError
from hpcsimkit.learning import Episodes
from hpcsimkit.policies.one_seat import ONE_SEAT
from hpcsimkit.policies.two_level import STAGE
from hpcsimkit.policy import Policy
from hpcsimkit.workload import Workload

__all__ = ["EpisodeTable", "Training", "ValidationTable"]

TRAIN_SHARE = 0.8
"""Share of a log's jobs that are trained on if nothing is said, and the rest is for validation."""


class Training(Source):
    """What is trained; see the module.

    Keys that say what is simulated (``log``, ``generate``, ``jobs``, ``skip``, ``nodes``, ``machines`` ...)
    are those of an :class:`~hpcsimkit.campaigns.experiment.Experiment`.

    Parameters
    ----------
    logs, logs_sha256 : list of str, optional
        Train on windows of several logs, each divided alike, of texts that hash to these.
    stage : {"order", "inspector", "placement", "backfiller", "dispatch", "two-level"}
        The seat that is opened.
    policy : str, optional
        The pipeline whose seat it is, which also says what stands behind the seat; by default
        ``fcfs+easy``, for dispatch ``fcfs``.
    slots : int
        Options that the agent sees, and chooses among.
    train_share : float, optional
        Share of each log's jobs, by submission, that are trained on; by default 0.8, with a part or a log
        of its own for validation all there are.
    encoder, mask, reward : table
        ``name`` (see :data:`~hpcsimkit.agents.agent.ENCODERS`, :data:`~hpcsimkit.agents.agent.MASKS`,
        :data:`~hpcsimkit.campaigns.training_parts.REWARDS`; or ``module:Name``), and its parameters.
    trainer : table
        ``algorithm`` (see :data:`~hpcsimkit.agents.trainers_catalogue.TRAINERS`), and its settings.
    episodes, validation : table
        See `EpisodeTable`, `ValidationTable`.
    seed : int
        Where all chance of the training comes from.
    tensorboard : bool
        Write the learning curve for TensorBoard too.
    out : str, optional
        The results folder.

    Examples
    --------
    >>> training = Training(policy="sjf+easy", slots=8, trainer={"algorithm": "a2c", "steps": 1000})
    >>> training.open_policy()
    Pipeline(order=External(base=SJF()), backfiller=EASY(), window=8)
    """

    inner: ClassVar[Mapping[str, type[Table]]] = {
        "generate": Generate, "episodes": EpisodeTable, "validation": ValidationTable,
    }  # fmt: skip

    logs: list[str] | None = Field(None, min_length=1)
    logs_sha256: list[str] | None = None
    stage: Literal["order", "inspector", "placement", "backfiller", "dispatch", "two-level"] = "order"
    policy: str | None = None
    slots: int = Field(16, ge=1)
    train_share: float | None = Field(None, gt=0, le=1)
    encoder: dict[str, Any] = Field({})
    mask: dict[str, Any] = Field({})
    reward: dict[str, Any] = Field({})
    trainer: dict[str, Any] = Field({})
    episodes: EpisodeTable = EpisodeTable()
    validation: ValidationTable = ValidationTable()
    seed: int = Field(0, ge=0)
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

    # --- from files and flags, and back ----------------------------------------------------------------

    @classmethod
    def read(cls, file: Path) -> Training:
        """Read a TOML file; relative paths of logs and machines are relative to the file.

        Raises
        ------
        UsageError
            The file cannot be read, is not TOML, or not a training; the message names the line.
        """
        training = cls.of_toml(file)
        paths = {name: getattr(training, name) for name in ("log", "machines")}
        changes: dict[str, Any] = {
            name: str(file.parent / path) for name, path in paths.items() if isinstance(path, str)
        }
        if training.logs is not None:
            changes["logs"] = [str(file.parent / path) for path in training.logs]
        if training.validation.log is not None:
            there = {"log": str(file.parent / training.validation.log)}
            changes["validation"] = training.validation.model_copy(update=there)
        return training.model_copy(update=changes)

    @classmethod
    def with_flags(cls, flags: Mapping[str, Any], base: Training | None = None) -> Training:
        """Return what flags say (None: not given) over a training; those of the trainer are in its table.

        Raises
        ------
        UsageError
            A flag is not understood, or does not go with the rest.
        """
        values = {} if base is None else base.model_dump(exclude_unset=True)
        given = {name: value for name, value in flags.items() if value is not None}
        of_trainer = {name: given.pop(name) for name in ("algorithm", "steps") if name in given}
        training, problem = cls.checked(
            {**values, **given, "trainer": {**values.get("trainer", {}), **of_trainer}}
        )
        if training is None:
            location, text = problem or ((), "")
            place = ".".join(map(str, location))
            flag = f"--{location[-1]}" if location and location[-1] in {*of_trainer, *given} else place
            raise UsageError(f"{flag}{text}".removeprefix(": "))
        return training

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> tuple[Self | None, Problem | None]:
        """Return a training whose parts can be made, or where something is wrong, and what."""
        training, problem = super().checked(values)
        if training is not None:
            problem = training._problem()
        return (training, None) if problem is None else (None, problem)

    def _problem(self) -> Problem | None:
        try:
            self.open_policy()
        except HpcsimkitError as error:
            return ("policy",), f": {error}"
        for table in ("episodes", "trainer", *(part.kind for part in Part.all(self.stage))):
            _, problem = self._made(table)
            if problem is not None:
                return problem
        return None

    def saved(self) -> str:
        """Return the TOML text that trains the same again; files stand in it by absolute paths."""
        values = self.saved_keys(self.simulated)
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
        if any(":" in str(tables[name].get("name")) for name in ("encoder", "mask", "reward", "episodes")):
            values.setdefault("import_from", str(Path.cwd()))
        trainer = {"algorithm": self.algorithm, **vars(self.trainer_part.settings), **self.trainer}
        inside = {name: value for name, value in trainer.items() if isinstance(value, dict)}
        tables["trainer"] = {
            name: value for name, value in trainer.items() if value is not None and name not in inside
        }
        seat = {"seed": self.seed, "stage": self.stage, "policy": self.policy_name}
        text = toml_text({**values, **seat, **own, **tables})
        return text + "".join(f"\n[trainer.{name}]\n{toml_text(table)}" for name, table in inside.items())

    def _saved_part(self, kind: str) -> dict[str, Any]:
        """Return the table of an encoder, mask or reward with its name."""
        default = next(part.default for part in Part.all(self.stage) if part.kind == kind)
        return {"name": default, **getattr(self, kind)}

    # --- the parts -------------------------------------------------------------------------------------

    @cached_property
    def simulated(self) -> Experiment:
        """The experiment whose jobs and machines are trained on; of several logs, the first."""
        return self.experiment() if self.logs is None else self.experiment(log=self.logs[0])

    @property
    def policy_name(self) -> str:
        """The pipeline whose seat it is."""
        return self.policy or ("fcfs" if self.stage in ONE_SEAT else "fcfs+easy")

    @property
    def baseline_name(self) -> str:
        """The heuristic behind the seat; for a dispatch its order, where jobs that fit start at once.

        For two levels it is the order with EASY.
        """
        rule = {"dispatch": "+fitting", STAGE: "+easy"}.get(self.stage, "")
        return f"{self.policy_name}{rule}"

    @property
    def algorithm(self) -> str:
        """How the agent learns."""
        return str(self.trainer.get("algorithm", "ppo"))

    def _made(self, table: str) -> tuple[Any, Problem | None]:
        """Make what a table stands for, or return what is wrong with it."""
        if table == "trainer":
            return trainer_part(self.trainer)
        if table == "episodes":
            return self._own_episodes(Episodes())
        part = next(part for part in Part.all(self.stage) if part.kind == table)
        cluster = self.simulated.cluster
        given = {
            "slots": self.slots,
            "machines": None if cluster is None else len(cluster),
            "resources": 1 if cluster is None else len(cluster.resources),
        }
        return part_of(part, getattr(self, table), given, self.simulated.import_from)

    @cached_property
    def trainer_part(self) -> TrainerPart:
        """The trainer's class and settings."""
        return self._made("trainer")[0]

    @property
    def environment_parts(self) -> tuple[Any, Any, Any]:
        """Encoder, mask and reward, made anew."""
        encoder, mask, reward = (self._made(part.kind)[0] for part in Part.all(self.stage))
        return encoder, mask, reward

    def _own_episodes(self, windows: Episodes) -> tuple[Any, Problem | None]:
        """Return the class of the user's own episodes and its arguments, or what is wrong with the table."""
        table = self.episodes
        if table.name is None:
            problem = table.problem()
            return None, None if problem is None else (("episodes", *problem[0]), problem[1])
        values, given = {"name": table.name, **table.parameters}, {"episodes": windows}
        return arguments_of(OWN_EPISODES, values, given, self.simulated.import_from)

    def open_policy(self) -> Policy:
        """Return the policy with its seat open, and the heuristic behind it."""
        return self.with_seat(External(decline=bool(self.mask.get("decline", False))))

    def with_seat(self, holder: External) -> Policy:
        """Return the policy with somebody on its seat."""
        policy = self.simulated.policy(self.policy_name)
        return seated(policy, holder, self.stage, self.slots)

    # --- jobs ------------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        """How all runs of the training are run."""
        experiment = self.simulated
        return Rules(experiment.cluster, experiment.walltime, experiment.service_time, experiment.semantics)

    def workloads(self) -> list[Workload]:
        """Read or make what is trained on; see :meth:`Experiment.workload`."""
        if self.logs is None:
            return [self.simulated.workload()]
        hashes = self.logs_sha256
        pairs = [(log, hashes[n] if hashes else None) for n, log in enumerate(self.logs)]
        return [self.experiment(log=log, sha256=known).workload() for log, known in pairs]

    def divided(self, workloads: Sequence[Workload]) -> Division:
        """Divide logs into jobs for training and for validation, none in both.

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
            others = [self.experiment(**other, jobs=None, skip=None).workload()]
        whole = others or validation.part is not None
        share = self.train_share or (1.0 if whole else TRAIN_SHARE)
        part = None if validation.part is None else (validation.part[0], validation.part[1])
        division = divided(workloads, share, part, others)
        check_lengths(division.training, self.episodes.jobs + self.episodes.warmup, "training")
        check_lengths(division.validation, sum(self._validation_window), "validation")
        return division

    @property
    def _validation_window(self) -> tuple[int, int]:
        """Jobs and warm-up of a window for validation."""
        own, usual = self.validation, self.episodes
        return own.jobs or usual.jobs, usual.warmup if own.warmup is None else own.warmup

    def episodes_of(self, division: Division) -> Episodes:
        """Return what is trained on: windows of the logs, or the user's own episodes."""
        table = self.episodes
        windows = WindowsOf(division.training, table.jobs, self.rules, warmup=table.warmup)
        own, _ = self._own_episodes(windows)
        return windows if own is None else own.maker(**own.parameters)

    def validated_on(self, division: Division) -> Validation:
        """Return what agents are judged by."""
        own, (jobs, warmup) = self.validation, self._validation_window
        windows = WindowsOf(division.validation, jobs, self.rules, warmup=warmup)
        return Validation.drawn(windows, own.windows, own.seed, own.metric)
