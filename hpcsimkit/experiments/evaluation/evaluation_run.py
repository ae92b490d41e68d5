"""Evaluation runs, and their folder with a table of all runs and their statistics."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.provenance import Provenance, times_of, write_json
from hpcsimkit.engine.results_folder import FINISHED, PROVENANCE, SETTINGS, ResultsFolder
from hpcsimkit.engine.runner import finish, finished
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.experiments.evaluation.evaluation import Contest
from hpcsimkit.experiments.evaluation.report import evaluation_page
from hpcsimkit.experiments.evaluation.tables import Verdict, verdict_of
from hpcsimkit.experiments.evaluation.where import measure_of
from hpcsimkit.experiments.source import UNDECISIVE, sha256_of
from hpcsimkit.io.documents import csv_text
from hpcsimkit.io.files import write_bytes
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.statistics import Comparison

TABLE, STATISTICS, WHERE, PAGE = "evaluation.csv", "evaluation.json", "where.csv", "report.html"
FILES = {TABLE, STATISTICS, WHERE, PAGE, PROVENANCE, times_of(Path(PROVENANCE)).name}


class SequenceRun(Task):
    """Runs of all policies on one sequence; the outcome is that of :meth:`Contest.outcome`."""

    kind = "sequence"

    def __init__(self, contest: Contest, number: int) -> None:
        self.contest = contest
        self.number = number

    @property
    def name(self) -> str:
        """Number of the sequence as text."""
        return str(self.number)

    @property
    def size(self) -> int:
        """Number of jobs over the runs of all policies."""
        return self.contest.jobs_of_sequence

    def inputs(self) -> Any:
        """Return the settings of the evaluation and the number of the sequence."""
        return {"evaluation": self.contest.identity, "sequence": self.number}

    def run(self, folder: Path, tell: Tell) -> Any:
        """Simulate all policies on the sequence."""
        return self.contest.outcome(self.number)


class EvaluationRun:
    """Run of an evaluation, and its results folder.

    A former evaluation at the place is replaced when the new one is complete. The command is for the records.
    """

    def __init__(
        self,
        contest: Contest,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self.contest = contest
        self.folder = ResultsFolder(place, FILES)
        self.command = tuple(command)
        self.engine = engine
        self.store = Store(self.folder.work / FINISHED)
        self.tasks = [SequenceRun(contest, number) for number in range(contest.evaluation.sequences)]

    def run(
        self,
        *,
        resume: bool = False,
        overwrite: bool = False,
        tell: Callable[[str, int], None] = lambda sequence, jobs: None,
    ) -> list[Verdict]:
        """Simulate all sequences and write the folder; parameters and errors as in :meth:`Campaign.run`."""
        provenance, work = Provenance(self.command), self.folder.work
        settings = self.contest.settings
        with self.folder.session(
            FINISHED, resume=resume, settings=settings, overwrite=overwrite, kept=self._kept
        ):
            outcomes = finish(self.tasks, self.store, self._engine_of, tell=tell)
            verdicts = [verdict_of(metric, self.contest, outcomes) for metric in self.contest.metrics]
            write_bytes(work / TABLE, _csv(outcomes, self.contest.measures).encode())
            write_bytes(work / WHERE, _where(verdicts).encode())
            write_bytes(work / PAGE, evaluation_page(self.contest, verdicts).encode())
            write_json(work / STATISTICS, self._statistics(verdicts))
            provenance.write(work / PROVENANCE, self._facts())
        return verdicts

    def _engine_of(self, tasks: Sequence[Task]) -> Engine:
        return self.engine or self.contest.evaluation.engine_for(len(tasks))

    def _kept(self) -> str:
        return finished(self.tasks, self.store, "sequences")

    # --- records ---------------------------------------------------------------------------------------

    def _statistics(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return the statistics without times and places, so that equal evaluations give equal files."""
        contest, evaluation = self.contest, self.contest.evaluation
        return {
            "model": Path(evaluation.model).name,
            "model_sha256": sha256_of(evaluation.model),
            "within": contest.within,
            "behind": contest.behind,
            "stage": contest.agent.stage,
            "sample": contest.agent.sample,
            "workload": {"name": contest.workload.name, "hash": contest.workload.hash},
            "sequences": evaluation.sequences,
            "jobs": evaluation.jobs,
            "warmup": evaluation.warmup,
            "seed": evaluation.seed,
            "share_of_jobs_in_several_sequences": contest.overlap,
            "metrics": {
                verdict.metric: {
                    "unit": METRICS[verdict.metric].unit,
                    "better": METRICS[verdict.metric].direction,
                    "best_heuristic": verdict.best,
                    "policies": {name: _plain(asdict(mean)) for name, mean in verdict.means.items()},
                    "agent_minus": {
                        name: _compared(comparison, METRICS[verdict.metric].direction)
                        for name, comparison in verdict.comparisons.items()
                    },
                }
                for verdict in verdicts
            },
            "choices": dict(verdicts[0].choices),
        }

    def _facts(self) -> dict[str, Any]:
        """Return the provenance of the evaluation, besides versions and times."""
        return {
            "code": self.contest.code,
            "options": self.contest.evaluation.model_dump(exclude_none=True, exclude={*UNDECISIVE}),
            SETTINGS: self.contest.settings,
            "policies": {name: repr(policy) for name, policy in self.contest.policies.items()},
            "training": dict(self.contest.agent.about or {}),
        }


# --- files -----------------------------------------------------------------------------------------------


def _csv(outcomes: Sequence[Mapping[str, Any]], metrics: Sequence[str]) -> str:
    """Return a row for each sequence and policy; an undefined metric is left empty."""
    about = ("sequence", "first_job", "seed")
    rows = (
        [*(outcome[key] for key in about), name, *values.values()]
        for outcome in outcomes
        for name, values in outcome["metrics"].items()
    )
    return csv_text([*about, "policy", *metrics], rows)


def _where(verdicts: Sequence[Verdict]) -> str:
    """Return a row for each class of jobs and each feature of choices; an undefined number is left empty."""
    tables = {
        (measure_of(verdict.metric), other): parts
        for verdict in verdicts
        for other, parts in verdict.where.items()
    }
    tables["feature", verdicts[0].behind] = verdicts[0].features
    rows = [
        [*names, *part[:5], *map(_cell, [*vars(part.difference).values(), part.share])]
        for names, parts in tables.items()
        for part in parts
    ]
    own = ["measure", "other", "by", "label", "jobs", "agent", "of_other"]
    return csv_text([*own, "difference", "low", "high", "share"], rows)


def _cell(number: float) -> float | str:
    """Return a number as the cell of a table; an undefined one is left empty."""
    return "" if math.isnan(number) else number


def _compared(comparison: Comparison, direction: str) -> dict[str, Any]:
    """Return a comparison for JSON, with wins, ties and losses of the agent if a direction is better."""
    values = asdict(comparison)
    for name in ("lower", "equal", "higher"):
        del values[name]
    return {**_plain(values), **comparison.counts(direction)}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers for JSON: None for non-finite ones."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value if math.isfinite(value) else None
        for name, value in values.items()
    }
