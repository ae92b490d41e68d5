"""Evaluation runs, and their folder with a table of all runs and their statistics."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hpcsimkit.engine.engines import Engine
from hpcsimkit.engine.provenance import Provenance, write_json
from hpcsimkit.engine.results_folder import FINISHED, PROVENANCE, ResultsFolder
from hpcsimkit.engine.runner import perform
from hpcsimkit.engine.store import Store
from hpcsimkit.engine.task import Task, Tell
from hpcsimkit.errors import UsageError
from hpcsimkit.experiments.console import metric_heading, number_text, plain_table
from hpcsimkit.experiments.evaluation import AGENT, Contest
from hpcsimkit.experiments.source import sha256_of
from hpcsimkit.io.files import write_bytes
from hpcsimkit.results.metrics import METRICS
from hpcsimkit.results.statistics import CONFIDENCE, SIGNIFICANT, Comparison, Mean, compared, mean_of

__all__ = ["EvaluationRun", "Verdict", "verdict_table"]

TABLE, STATISTICS = "evaluation.csv", "evaluation.json"
FILES = {TABLE, STATISTICS, PROVENANCE}
INTERVAL = f"{CONFIDENCE:.0%} interval".replace("%", " %")

Floats = NDArray[np.float64]


class Verdict(NamedTuple):
    """Statistics of one metric over the sequences.

    Parameters
    ----------
    metric : str
        Name of the metric.
    means : mapping of str to Mean
        Mean of each policy.
    comparisons : mapping of str to Comparison
        Differences between the agent and each other policy.
    """

    metric: str
    means: Mapping[str, Mean]
    comparisons: Mapping[str, Comparison]


class EvaluationFolder(ResultsFolder):
    """Results folder that may replace a former evaluation."""

    def _check_place(self) -> None:
        if not (self.place.is_dir() and {entry.name for entry in self.place.iterdir()} <= FILES):
            super()._check_place()


class SequenceRun(Task):
    """Runs of all policies on one sequence; the outcome is that of :meth:`Contest.outcome`.

    Parameters
    ----------
    contest : Contest
        Policies and sequences to compare.
    number : int
        Number of the sequence.
    """

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

    Parameters
    ----------
    contest : Contest
        Policies and sequences to compare.
    place : path
        Path of the results folder; a former evaluation there is replaced when the new one is complete.
    command : sequence of str
        Command line, for the records.
    engine : Engine, optional
        Engine that executes the simulations; by default that of the evaluation.
    """

    def __init__(
        self,
        contest: Contest,
        place: str | os.PathLike[str],
        command: Sequence[str] = (),
        engine: Engine | None = None,
    ) -> None:
        self.contest = contest
        self.folder = EvaluationFolder(place)
        self.command = tuple(command)
        self.engine = engine
        self.store = Store(self.folder.work / FINISHED)
        self.tasks = [SequenceRun(contest, number) for number in range(contest.evaluation.sequences)]

    def run(
        self, *, resume: bool = False, tell: Callable[[str, int], None] = lambda sequence, jobs: None
    ) -> list[Verdict]:
        """Simulate all sequences and write the folder.

        Parameters
        ----------
        resume : bool
            Whether finished sequences of an interrupted run of the same evaluation are kept. Default: False.
        tell : callable
            Callback ``tell(sequence, jobs)`` for each finished sequence, with the number of jobs in its runs.

        Raises
        ------
        HpcsimkitError
            A policy failed, or a file cannot be written. Finished sequences are kept for `resume`.
        Stopped
            Ctrl-C or SIGTERM was received. Finished sequences are kept for `resume`.
        """
        provenance, work = Provenance(self.command), self.folder.work
        with self.folder.session(FINISHED, resume=resume, kept=self._kept):
            self._simulate(tell)
            outcomes = [self.store.outcome(task) for task in self.tasks]
            verdicts = [_verdict(metric, outcomes) for metric in self.contest.metrics]
            write_bytes(work / TABLE, _csv(outcomes).encode())
            write_json(work / STATISTICS, self._statistics(verdicts))
            write_json(work / PROVENANCE, provenance.record(**self._facts()))
        return verdicts

    def _simulate(self, tell: Callable[[str, int], None]) -> None:
        """Simulate the sequences without an outcome."""
        missing = [task for task in self.tasks if not self.store.has(task)]
        for task in self.tasks:
            if task not in missing:
                tell(task.name, task.size)
        engine = self.engine or self.contest.evaluation.engine_for(len(missing))
        perform(missing, self.store, engine, tell=tell)

    def _kept(self) -> str:
        """Return the number of finished sequences as text; empty if there are none."""
        finished = sum(map(self.store.has, self.tasks))
        return f"{finished} of {len(self.tasks)} sequences are finished" if finished else ""

    # --- records ---------------------------------------------------------------------------------------

    def _statistics(self, verdicts: Sequence[Verdict]) -> dict[str, Any]:
        """Return the statistics without times and places, so that equal evaluations give equal files."""
        contest, evaluation = self.contest, self.contest.evaluation
        return {
            "model": Path(evaluation.model).name,
            "model_sha256": sha256_of(evaluation.model),
            "within": contest.within,
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
                    "policies": {name: _plain(asdict(mean)) for name, mean in verdict.means.items()},
                    "agent_minus": {
                        name: _plain(asdict(comparison)) for name, comparison in verdict.comparisons.items()
                    },
                }
                for verdict in verdicts
            },
        }

    def _facts(self) -> dict[str, Any]:
        """Return the provenance of the evaluation, besides versions and times."""
        return {
            "code": self.contest.code,
            "options": self.contest.evaluation.model_dump(exclude_none=True),
            "policies": {name: repr(policy) for name, policy in self.contest.policies.items()},
            "training": dict(self.contest.agent.about or {}),
        }


def _verdict(metric: str, outcomes: Sequence[Mapping[str, Any]]) -> Verdict:
    """Compare the agent with the other policies by a metric."""
    values = {name: _values(metric, name, outcomes) for name in outcomes[0]["metrics"]}
    others = {name: column for name, column in values.items() if name != AGENT}
    means = {name: mean_of(column) for name, column in values.items()}
    return Verdict(metric, means, compared(values[AGENT], others))


def _values(metric: str, policy: str, outcomes: Sequence[Mapping[str, Any]]) -> Floats:
    values = [outcome["metrics"][policy][metric] for outcome in outcomes]
    if None in values:
        raise UsageError(f"{metric} of {policy} is not defined on sequence {values.index(None)}")
    return np.array(values, dtype=np.float64)


# --- output ----------------------------------------------------------------------------------------------


def verdict_table(verdict: Verdict) -> str:
    """Return the table of a metric; p-values are corrected by Holm's method, a star marks significance."""
    headings = [
        metric_heading(verdict.metric),
        "mean",
        INTERVAL,
        "agent minus it",
        INTERVAL,
        "t-test",
        "Wilcoxon",
    ]
    rows = [
        [name, number_text(mean.mean), _interval(mean), *_cells(verdict.comparisons.get(name))]
        for name, mean in verdict.means.items()
    ]
    return plain_table(headings, rows)


def _cells(comparison: Comparison | None) -> Iterator[str]:
    """Yield the cells of a comparison; the agent is not compared with itself."""
    if comparison is None:
        yield from [""] * 4
        return
    share = "" if math.isnan(comparison.relative) else f" ({comparison.relative:+.1%})"
    yield f"{number_text(comparison.difference.mean)}{share}".replace("%", " %")
    yield _interval(comparison.difference)
    yield _p_value(comparison.t_test_holm)
    yield _p_value(comparison.wilcoxon_holm)


def _interval(mean: Mean) -> str:
    return "-" if math.isnan(mean.low) else f"{number_text(mean.low)} to {number_text(mean.high)}"


def _p_value(p: float) -> str:
    if math.isnan(p):
        return "-"
    star = "*" if p < SIGNIFICANT else " "
    return f"{star}{p:.1e}" if p < 0.001 else f"{star}{p:.3f}"


# --- files -----------------------------------------------------------------------------------------------


def _csv(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each sequence and policy; an undefined metric is left empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["sequence", "first_job", "seed", "policy", *METRICS])
    for outcome in outcomes:
        about = [outcome[name] for name in ("sequence", "first_job", "seed")]
        writer.writerows([*about, name, *values.values()] for name, values in outcome["metrics"].items())
    return text.getvalue()


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers for JSON: None for non-finite ones."""
    return {
        name: _plain(value) if isinstance(value, Mapping) else value if math.isfinite(value) else None
        for name, value in values.items()
    }
