"""Training runs, and their folder with agents, learning curve and records."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hpcsimkit.agents.agent import Agent
from hpcsimkit.agents.seats import RandomAgent, Watched
from hpcsimkit.agents.training.behaviour import Behaviour
from hpcsimkit.agents.training.old_names import current_names
from hpcsimkit.engine.provenance import Provenance, times_of
from hpcsimkit.engine.replacing import difference
from hpcsimkit.engine.results_folder import PROVENANCE, SETTINGS, ResultsFolder, head_of_toml
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import grouped, metric_heading, number_text, plain_table
from hpcsimkit.experiments.parts.trust import version_of
from hpcsimkit.experiments.training.data import RANDOM, Division, Validation
from hpcsimkit.experiments.training.training import Training
from hpcsimkit.experiments.training.verdict import Verdict, verdict_on
from hpcsimkit.io.documents import json_record, toml_values
from hpcsimkit.io.files import read_bytes, write_bytes
from hpcsimkit.io.formats import Format
from hpcsimkit.jobs.workload import Workload
from hpcsimkit.kernel.watchdog import Watchdog

if TYPE_CHECKING:
    from hpcsimkit.agents.training.callbacks import Callback
    from hpcsimkit.agents.training.learning_curve import Report

__all__ = ["Trained", "TrainingFiles", "TrainingRun"]

TOML = "training.toml"
CHECKPOINTS = "checkpoint*"
PICTURE = "learning_curve"
FILES = (
    "*.hpcsim",
    CHECKPOINTS,
    "curve.csv",
    f"{PICTURE}.*",
    TOML,
    PROVENANCE,
    times_of(Path(PROVENANCE)).name,
    "tensorboard",
    "snapshots",
    "teacher",
)

PACKAGES = ("simpy", "numpy", "torch", "gymnasium", "stable-baselines3", "sb3-contrib", "safetensors")
"""Packages with recorded versions."""


class Trained(NamedTuple):
    """Outcome of a training.

    Parameters
    ----------
    agent : Agent
        Best agent in validation; of several seats that of the first.
    metric : str
        Name of the validation metric.
    score : float
        Mean of the metric with the best agent.
    policy : str
        Name of the heuristic behind the seat.
    baseline : float
        Mean of the metric with that heuristic.
    chance : float
        Mean of the metric with a random agent.
    verdict : Verdict
        Choices of the agent in validation, and the comparison of its reward with chance and constant actions.
    """

    agent: Agent
    metric: str
    score: float
    policy: str
    baseline: float
    chance: float
    verdict: Verdict

    @property
    def summary(self) -> str:
        """Table of the outcome, and the verdict."""
        agent = f"best agent, after {grouped((self.agent.about or {})['steps'])} steps"
        values = {agent: self.score, self.policy: self.baseline, RANDOM: self.chance}
        rows = [[name, number_text(value)] for name, value in values.items()]
        table = plain_table([metric_heading(self.metric), "mean in validation"], rows)
        return "\n".join([table, *self.verdict.lines()])


class TrainingFiles:
    """Results folder of a training run.

    Parameters
    ----------
    training : Training
        Settings of the training.
    place : path
        Path of the results folder: new, empty, or one of a training. Until the training is complete, its
        files are in a folder of the same name with the suffix ``.partial``.
    command : sequence of str
        Command line, for the records.
    """

    def __init__(
        self, training: Training, place: str | os.PathLike[str], command: Sequence[str] = ()
    ) -> None:
        self.training = training
        self.folder = ResultsFolder(place, FILES)
        self.command = tuple(command)
        self.workloads: Sequence[Workload] = ()
        self.product = ""

    def _kept(self) -> str:
        """Return whether there is a checkpoint, as text; empty if there is none."""
        return "the last checkpoint is kept" if self._interrupted else ""

    # --- existing files --------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """Whether a complete training of the same settings is in the folder, and no interrupted one."""
        record = self.folder.place / PROVENANCE
        if not record.is_file() or self._interrupted:
            return False
        held = json_record(record, Format.PROVENANCE).get(SETTINGS)
        return held is not None and not difference(held, self._with_code)

    @property
    def _interrupted(self) -> bool:
        """Whether there is a checkpoint."""
        return any(self.folder.work.rglob(CHECKPOINTS))

    @contextmanager
    def _session(self, *, resume: bool, overwrite: bool) -> Iterator[None]:
        """Claim and check the folder, write the settings, and publish the folder at the end."""
        self.folder.claim(resume=resume)
        try:
            self._check_place(resume=resume, overwrite=overwrite)
        except BaseException:
            self.folder.close(keep=True)
            raise
        with self.folder.session(
            resume=resume, settings=self._with_code, overwrite=overwrite, kept=self._kept
        ):
            self._write_training()
            yield

    def _check_place(self, *, resume: bool, overwrite: bool) -> None:
        """Raise an error if an interrupted training is not resumed, or a complete one is.

        One that is replaced anyway may be: a process killed before its first file leaves nothing to resume.
        """
        place, work = self.folder.place, self.folder.work
        if self._interrupted:
            if not resume:
                raise UsageError(
                    f"{work}: an interrupted training is there; --resume goes on with it, else choose "
                    "another --out"
                )
            self._check_same(work / TOML)
        elif resume and not overwrite and (place / PROVENANCE).is_file():
            raise UsageError(f"{place}: a complete training is in it; without --resume another one begins")

    def _check_same(self, file: Path) -> None:
        """Check that an interrupted training has the same settings, except for the device."""
        here = self._settings
        there = _without_device(
            current_names(toml_values(read_bytes(file, Format.TRAINING).decode(), file), here)
        )
        changed = _changed_file(here, there)
        if changed:
            raise UsageError(
                f"{changed}: the file has changed since the interrupted training in {file.parent} began; "
                "choose another --out"
            )
        if differs := difference(there, here):
            raise UsageError(
                f"{file}: an interrupted training of other keys is there: {differs}; choose another --out"
            )

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings that decide the results."""
        return _without_device(toml_values(self.training.saved(), TOML))

    @property
    def _with_code(self) -> dict[str, Any]:
        """The settings that decide the results, with the versions of the user's code."""
        versions = [version_of(code, self.training.import_from) for code in self.training.code]
        return {**self._settings, **({"code": versions} if versions else {})}

    # --- files -----------------------------------------------------------------------------------------

    def _write_training(self) -> None:
        command = "python -m hpcsimkit.run train training.toml --out FOLDER"
        text = head_of_toml(command, self.training.code) + self.training.saved()
        write_bytes(self.folder.work / TOML, text.encode())

    def _draw_curve(self, metric: str | None, rivals: Mapping[str, float] | None = None, **how: str) -> None:
        """Draw the learning curve."""
        from hpcsimkit.agents.training.trainer import CURVE
        from hpcsimkit.reports.figures import save_figure
        from hpcsimkit.reports.learning_curve import draw_learning_curve, read_curve

        figure = draw_learning_curve(read_curve(self.folder.work / CURVE), metric, rivals, **how)
        for ending in ("png", "svg"):
            save_figure(figure, self.folder.work / f"{PICTURE}.{ending}")


class TrainingRun(TrainingFiles):
    """Run of a training, and its results folder.

    Parameters
    ----------
    training : Training
        Settings of the training.
    workloads : sequence of Workload
        Workloads returned by ``training.workloads()``.
    place : path
        Path of the results folder: new, empty, or one of a training. Until the training is complete, its
        files are in a folder of the same name with the suffix ``.partial``.
    command : sequence of str
        Command line, for the records.
    """

    def __init__(
        self,
        training: Training,
        workloads: Sequence[Workload],
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
    ) -> None:
        super().__init__(training, place, command)
        self.workloads = workloads
        self.product = "/best.hpcsim"

    def run(
        self,
        *,
        resume: bool = False,
        overwrite: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
        callbacks: Sequence[Callback] = (),
    ) -> Trained:
        """Train to the end and write the folder.

        Parameters
        ----------
        resume : bool
            Whether the last checkpoint of an interrupted run of the same training, if any, is resumed.
            Default: False.
        overwrite : bool
            Whether a complete training of other settings is replaced; otherwise the user is asked, or it is
            an error. One of the same settings is replaced in any case; see `finished`. Default: False.
        tell : callable
            Function called with the report of each training round, to show progress.
        callbacks : sequence of Callback
            Callbacks after every round and every validation. An exception of theirs ends the training; the
            last checkpoint is kept.

        Raises
        ------
        HpcsimkitError
            Settings are inconsistent, or a file cannot be written. The last checkpoint is kept for `resume`.
        Stopped
            Ctrl-C or SIGTERM was received. The last checkpoint is kept for `resume`.
        """
        from hpcsimkit.agents.training.trainer import Validated
        from hpcsimkit.experiments.training.environment import trainer_of

        training = self.training
        division = training.divided(self.workloads)
        with Watchdog():
            validation = training.validated_on(division)

            def validate(agents: dict[str, Agent]) -> Validated:
                score, behaviour = self._watched(validation, agents, trainer.learns_policy)
                return Validated(score, behaviour.measures())

            trainer = trainer_of(training, division, validate)
        provenance = Provenance(self.command, PACKAGES)
        with self._session(resume=resume, overwrite=overwrite):
            with Watchdog():
                rivals = self._rivals(validation)
                trainer.train(
                    self.folder.work,
                    resume=resume,
                    tensorboard=training.tensorboard,
                    tell=tell,
                    callbacks=callbacks,
                )
            trained = self._finish(trainer, validation, rivals, division)
            times = {"resumed": resume, "simulators": dict(trainer.simulators)}
            provenance.write(self.folder.work / PROVENANCE, self._facts(trained, division), times)
        return trained

    def _watched(
        self, validation: Validation, agents: Mapping[str, Agent], learns_policy: bool
    ) -> tuple[float, Behaviour]:
        """Return the score of agents in validation, and the behaviour of the one at the first seat."""
        stage = self.training.stage
        behaviour = Behaviour(agents[stage], learns_policy=learns_policy)
        holders = {**agents, stage: Watched(agents[stage], behaviour)}
        mean = validation.mean(self.training.with_seats(holders))
        return self.training.validation.sign * mean, behaviour

    def _judged(self, validation: Validation, agents: Mapping[str, Agent], learns_policy: bool) -> Verdict:
        """Return whether the agent at the first seat has learned, the others being at theirs."""
        training, stage = self.training, self.training.stage
        return verdict_on(
            agents[stage],
            self._watched(validation, agents, learns_policy)[1],
            validation.scenarios,
            lambda holder: training.with_seats({**agents, stage: holder}),
            lambda: training.environment_parts[2],
        )

    def _rivals(self, validation: Validation) -> dict[str, float]:
        """Return the validation scores of the heuristic behind the seat and of a random agent."""
        training = self.training
        heuristic = training.simulated.policy_named(training.baseline_name)
        masks = {stage: each.environment_parts[1] for stage, each in training.of_seats.items()}
        random = training.with_seats(
            {
                stage: RandomAgent(mask, decline=bool(getattr(mask, "decline", False)))
                for stage, mask in masks.items()
            }
        )
        return {
            training.baseline_name: validation.mean(heuristic),
            RANDOM: validation.mean(random),
        }

    def _finish(
        self, trainer: Any, validation: Validation, rivals: Mapping[str, float], division: Division
    ) -> Trained:
        """Add the facts of the training to the agents' files, and draw the learning curve."""
        from hpcsimkit.agents.training.trainer import BEST, LAST

        work = self.folder.work
        heuristic = self.training.baseline_name
        values = {"baseline": rivals[heuristic], "chance": rivals[RANDOM]}
        about = {**self._about(division), "metric": validation.metric, **values}
        agents = {}
        for name in (LAST, BEST):
            for stage, each in self.training.of_seats.items():
                encoder, mask, reward = each.environment_parts
                file = work / trainer.file_of(stage, name)
                agents[stage] = agent = Agent.load(file, encoder=encoder, mask=mask)
                agent.about = {**(agent.about or {}), "training": {**about, "reward": repr(reward)}}
                agent.save(file)
        self._draw_curve(validation.metric, rivals)
        first = agents[self.training.stage]
        score = self.training.validation.sign * float((first.about or {})["validation"])
        verdict = self._judged(validation, agents, trainer.learns_policy)
        return Trained(first, validation.metric, score, heuristic, **values, verdict=verdict)

    def _about(self, division: Division) -> dict[str, Any]:
        """Return the facts of the training for an agent's file, without times and places."""
        training, parts = self.training, division._asdict()
        return {
            "policy": training.policy_name,
            "slots": training.slots,
            "reward": repr(training.environment_parts[2]),
            **{name: [_about_workload(workload) for workload in parts[name]] for name in parts},
        }

    def _facts(self, trained: Trained, division: Division) -> dict[str, Any]:
        """Return the provenance of the training, besides versions and times."""
        return {
            "seed": self.training.seed,
            "code": self.training.code,
            "algorithm": self.training.algorithm,
            "network": repr(trained.agent.network),
            "metric": trained.metric,
            "best": trained.score,
            "best_after_steps": (trained.agent.about or {}).get("steps"),
            "baseline": trained.baseline,
            "chance": trained.chance,
            "learned": trained.verdict.record(),
            SETTINGS: self._with_code,
            **self._about(division),
        }


def _changed_file(here: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """Return the first file with different hashes in two trainings; empty if there is none.

    >>> _changed_file({"log": "/a.swf", "sha256": "12"}, {"log": "/a.swf", "sha256": "34"})
    '/a.swf'
    """
    here, there = _hashes(here), _hashes(there)
    return next((path for path in here if there.get(path, here[path]) != here[path]), "")


def _hashes(table: Mapping[str, Any]) -> dict[str, str]:
    """Return the files named in a saved training, with their hashes."""
    found = dict(zip(table.get("logs", ()), table.get("logs_sha256", ()), strict=False))
    for part, file, digest in (
        (table, "log", "sha256"),
        (table, "machines", "machines_sha256"),
        (table.get("validation", {}), "log", "sha256"),
    ):
        if isinstance(part.get(file), str) and digest in part:
            found[part[file]] = part[digest]
    return found


def _without_device(table: dict[str, Any]) -> dict[str, Any]:
    """Return a saved training without the device, which does not decide the results."""
    table.get("trainer", {}).pop("device", None)
    return table


def _about_workload(workload: Workload) -> dict[str, Any]:
    facts = {"name": workload.name, "jobs": len(workload), "hash": workload.hash}
    return {**facts, "steps": list(workload.provenance)}
