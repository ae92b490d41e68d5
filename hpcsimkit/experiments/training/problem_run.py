"""Training runs of algorithms with a problem of their own, in one process or several started by torchrun."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpcsimkit.engine.provenance import Provenance
from hpcsimkit.engine.results_folder import PROVENANCE, SETTINGS, next_free
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import number_text, plain_table
from hpcsimkit.experiments.training.training_run import PACKAGES, TrainingFiles, TrainingRun
from hpcsimkit.kernel.watchdog import Watchdog

if TYPE_CHECKING:
    from hpcsimkit.agents.training.callbacks import Callback
    from hpcsimkit.agents.training.learning_curve import Report
    from hpcsimkit.experiments.training.training import Training

__all__ = ["ProblemRun", "ProblemTrained", "rank_of_process", "run_of"]


def rank_of_process() -> int:
    """Return the rank that torchrun gave to this process; 0 if it was not started by torchrun."""
    return int(os.environ.get("RANK", "0")) if "TORCHELASTIC_RUN_ID" in os.environ else 0


class ProblemTrained(NamedTuple):
    """Outcome of a training: the measures of the last round, by name."""

    steps: str
    measures: Mapping[str, float]

    @property
    def summary(self) -> str:
        """Table of the measures."""
        rows = [[name, number_text(value)] for name, value in self.measures.items()]
        return plain_table([f"after {self.steps}", "last round"], rows)


class ProblemRun(TrainingFiles):
    """Run of a training with a problem of its own, and its results folder.

    Parameters are those of :class:`~hpcsimkit.experiments.training.training_run.TrainingFiles`; all workers
    need the same `place`.
    """

    def run(
        self,
        *,
        resume: bool = False,
        overwrite: bool = False,
        tell: Callable[[Report], None] = lambda report: None,
        callbacks: Sequence[Callback] = (),
    ) -> ProblemTrained | None:
        """Train to the end and write the folder; only the first of several workers has an outcome.

        Parameters and errors are those of a :class:`TrainingRun`; a worker that dies ends the others.
        """
        from hpcsimkit.agents.training.workers import joined_workers

        training, (make, settings) = self.training, self.training.trainer_part
        with joined_workers() as workers:
            if workers.count > 1 and training.out is None:
                raise UsageError(f"{workers.count} workers need the same --out, found none")
            trainer = make(training.own_problem, settings, seed=training.seed, workers=workers)
            if workers.rank:
                workers.least(0)  # a barrier: the first worker has opened the folder
                trainer.train(self.folder.work, resume=resume, callbacks=callbacks)
                return None
            provenance = Provenance(self.command, PACKAGES)
            with self._session(resume=resume, overwrite=overwrite):
                workers.least(0)
                with Watchdog():
                    trainer.train(
                        self.folder.work,
                        resume=resume,
                        tensorboard=training.tensorboard,
                        tell=tell,
                        callbacks=callbacks,
                    )
                self._draw_curve(None, unit=trainer.unit)
                trained = ProblemTrained(f"{trainer.steps} {trainer.unit}", trainer.curve[-1].measures)
                facts = {
                    "seed": training.seed,
                    "code": training.code,
                    "algorithm": training.algorithm,
                    "problem": asdict(training.own_problem),
                    "measures": dict(trained.measures),
                    SETTINGS: self._with_code,
                }
                times = {"resumed": resume, "workers": workers.count}
                provenance.write(self.folder.work / PROVENANCE, facts, times)
            return trained


def run_of(
    training: Training, results: Path, command: Sequence[str] = (), *, resume: bool = False
) -> TrainingRun | ProblemRun:
    """Return the run of a training, in its folder, or in the usual one among other results.

    Parameters
    ----------
    training : Training
        Settings of the training.
    results : Path
        Path of the folder with the usual folders of results.
    command : sequence of str
        Command line, for the records.
    resume : bool
        Whether an interrupted training in the usual folder is resumed. Default: False.
    """
    if training.own_problem is not None:
        place = training.out or next_free(results / training.algorithm, resume=resume)
        return ProblemRun(training, place, command)
    workloads = training.workloads()
    usual = results / f"{workloads[0].name}-{training.algorithm}"
    return TrainingRun(training, workloads, training.out or next_free(usual, resume=resume), command)
